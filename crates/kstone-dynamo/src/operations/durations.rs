//! Measures how long operations take, to decide whether one runs on the executor's own thread or on
//! a thread for blocking work.
//!
//! Handing work to another thread costs more than most operations take, and a long operation on the
//! executor's thread delays other connections. How long the next one takes is estimated from those
//! before it: a page of a query mostly takes microseconds, from memory, but milliseconds when
//! partitions are large, when the disk is read, or when writers have to wait for a flush.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kstone_core::env::{Clock as _, SystemClock};

use super::Operation;

/// Up to this duration an operation runs on the executor's thread. Not less, because handing over
/// costs about 20 µs of processor time. Not more, because everything else on the thread waits.
const INLINE_US_MAX: u32 = 250;
/// A measurement moves the average by an eighth of the difference.
const WEIGHT: i64 = 8;

/// How long each kind of operation typically takes.
#[derive(Debug)]
pub(super) struct TypicalDurations {
    clock: SystemClock,
    /// A moving average in microseconds, by operation. Lost updates of racing threads do no harm.
    typical_us: [AtomicU32; Operation::COUNT],
}

impl TypicalDurations {
    pub(super) fn new() -> Self {
        let typical_us = std::array::from_fn(|_| AtomicU32::new(0));
        TypicalDurations { clock: SystemClock::new(), typical_us }
    }

    /// Whether this operation is expected to be quick.
    pub(super) fn is_quick(&self, operation: Operation) -> bool {
        self.typical_us[operation as usize].load(Ordering::Relaxed) <= INLINE_US_MAX
    }

    /// Does the work, and adds its duration to the average.
    pub(super) fn measure<T>(&self, operation: Operation, work: impl FnOnce() -> T) -> T {
        let start = self.clock.monotonic();
        let done = work();
        self.learn(operation, self.clock.monotonic().saturating_sub(start));
        done
    }

    fn learn(&self, operation: Operation, took: Duration) {
        let typical = &self.typical_us[operation as usize];
        let took = i64::try_from(took.as_micros()).unwrap_or(i64::MAX / 2);
        let before = i64::from(typical.load(Ordering::Relaxed));
        // Rounded away from the old value, so that the average reaches a constant duration.
        let change = took - before;
        let after = before + change / WEIGHT + (change % WEIGHT).signum();
        typical.store(u32::try_from(after).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_that_becomes_slow_is_moved_and_comes_back() {
        let durations = TypicalDurations::new();
        let learn = |ms: u64, times: usize| {
            (0..times).for_each(|_| durations.learn(Operation::Query, Duration::from_millis(ms)));
        };
        assert!(durations.is_quick(Operation::Query));
        learn(1, 1);
        assert!(durations.is_quick(Operation::Query), "one slow page is no habit");
        learn(1, 10);
        assert!(!durations.is_quick(Operation::Query));
        assert!(durations.is_quick(Operation::GetItem), "each has its own pace");
        learn(0, 100);
        assert!(durations.is_quick(Operation::Query));
        durations.learn(Operation::Query, Duration::MAX);
        assert!(!durations.is_quick(Operation::Query));
    }
}
