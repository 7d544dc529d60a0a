//! Wall clock for expiry, stopwatch for statistics.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of time.
pub trait Clock: Send + Sync + Debug {
    /// Milliseconds since 1970-01-01 UTC. May jump; the engine never lets it run backwards.
    fn now_ms(&self) -> u64;
    /// A stopwatch that never runs backwards; only differences mean something.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Starts the stopwatch at zero.
    #[expect(clippy::disallowed_methods, reason = "this is the Clock of the real machine")]
    pub fn new() -> Self {
        SystemClock { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock of the real machine")]
    fn now_ms(&self) -> u64 {
        // A clock before 1970 counts as 1970: nothing expires early.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A clock that stands still until it is told otherwise.
#[derive(Debug, Default)]
pub struct ManualClock {
    ms: AtomicU64,
}

impl ManualClock {
    /// Starts at `ms` milliseconds since 1970.
    pub fn at(ms: u64) -> Self {
        ManualClock { ms: AtomicU64::new(ms) }
    }

    /// Moves forward.
    pub fn advance(&self, ms: u64) {
        self.ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Jumps, backwards too.
    pub fn set(&self, ms: u64) {
        self.ms.store(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.ms.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.ms.load(Ordering::SeqCst))
    }
}
