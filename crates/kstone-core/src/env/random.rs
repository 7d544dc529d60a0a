//! Randomness, for ids.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random numbers.
pub trait Random: Send + Sync + Debug {
    /// The next number, uniform over all of `u64`.
    fn next_u64(&self) -> u64;
}

/// The machine's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::disallowed_methods, reason = "this is the Random of the real machine")]
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        match getrandom::fill(&mut bytes) {
            Ok(()) => u64::from_le_bytes(bytes),
            // Ids only have to differ between databases: the address of a fresh allocation and
            // the process id still do that on a machine without a random source.
            Err(_) => {
                let here = Box::new(0u8);
                xxhash_rust::xxh3::xxh3_64_with_seed(
                    format!("{:p}", &raw const *here).as_bytes(),
                    u64::from(std::process::id()),
                )
            }
        }
    }
}

/// A sequence that depends on nothing but its seed (splitmix64).
#[derive(Debug)]
pub struct SeededRandom {
    state: AtomicU64,
}

impl SeededRandom {
    /// Starts the sequence.
    pub fn new(seed: u64) -> Self {
        SeededRandom { state: AtomicU64::new(seed) }
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
