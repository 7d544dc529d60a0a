//! A seeded source of the choices of a workload.

use kstone_core::env::{Random, SeededRandom};

/// A sequence of choices.
#[derive(Debug)]
pub struct Dice(SeededRandom);

impl Dice {
    /// Starts the sequence.
    pub fn new(seed: u64) -> Self {
        Dice(SeededRandom::new(seed))
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&self, end: u64) -> u64 {
        self.0.next_u64().checked_rem(end).unwrap_or(0)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of them. There must be one.
    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
