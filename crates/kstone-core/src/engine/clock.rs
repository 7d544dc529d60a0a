//! The engine's clock: the environment's, kept from running backwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::env::Clock;

/// Never answers less than it answered before, not even before the last restart: an item that was
/// expired once stays expired, whatever happens to the machine's clock.
#[derive(Debug)]
pub(crate) struct EngineClock {
    clock: Arc<dyn Clock>,
    highest_ms: AtomicU64,
}

impl EngineClock {
    /// `seen_ms` is the highest time that the database has a record of.
    pub(crate) fn new(clock: Arc<dyn Clock>, seen_ms: u64) -> Self {
        EngineClock { clock, highest_ms: AtomicU64::new(seen_ms) }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let now = self.clock.now_ms();
        self.highest_ms.fetch_max(now, Ordering::Relaxed).max(now)
    }

    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
}
