//! Counts operations and connections of a port and measures latencies cheaply: two clock reads and one
//! addition per operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::env::{Clock, SystemClock};

/// Powers of two of microseconds: enough for twelve days.
const BUCKETS: usize = 40;

/// Counts the operations and the connections of one port.
#[derive(Debug)]
pub struct Meter {
    clock: Arc<dyn Clock>,
    connections: AtomicU64,
    took_us: [AtomicU64; BUCKETS],
}

/// What a [`Meter`] shows at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Connections that are open.
    pub connections: u64,
    /// Operations since the meter was made.
    pub operations: u64,
    /// How many of them took up to 1, 2, 4, … microseconds. They need not be all.
    pub took_us: Vec<u64>,
}

/// An operation under way: it counts when this is dropped.
#[derive(Debug)]
pub struct Timed<'m> {
    meter: &'m Meter,
    began: Duration,
}

/// A connection that is open until this is dropped.
#[derive(Debug)]
pub struct Connected(Arc<Meter>);

impl Meter {
    /// A meter by this clock, at zero.
    pub fn new(clock: Arc<dyn Clock>) -> Meter {
        let took_us = [const { AtomicU64::new(0) }; BUCKETS];
        Meter { clock, connections: AtomicU64::new(0), took_us }
    }

    /// An operation begins.
    pub fn begin(&self) -> Timed<'_> {
        Timed { meter: self, began: self.clock.monotonic() }
    }

    /// A connection is opened.
    pub fn connect(self: &Arc<Self>) -> Connected {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connected(Arc::clone(self))
    }

    /// What it shows now.
    pub fn read(&self) -> Reading {
        let took_us: Vec<u64> =
            self.took_us.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Reading {
            connections: self.connections.load(Ordering::Relaxed),
            operations: took_us.iter().sum(),
            took_us,
        }
    }

    fn took(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - us.saturating_sub(1).leading_zeros()) as usize;
        if let Some(count) = self.took_us.get(bucket.min(BUCKETS - 1)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Default for Meter {
    /// By the machine's clock.
    fn default() -> Self {
        Meter::new(Arc::new(SystemClock::new()))
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        self.meter.took(self.meter.clock.monotonic().saturating_sub(self.began));
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Reading {
    /// What happened since an earlier reading of the same meter. The connections are those of now.
    pub fn since(&self, earlier: &Reading) -> Reading {
        let before = |at: usize| earlier.took_us.get(at).copied().unwrap_or(0);
        let took_us = self.took_us.iter().enumerate();
        Reading {
            connections: self.connections,
            operations: self.operations.saturating_sub(earlier.operations),
            took_us: took_us.map(|(at, count)| count.saturating_sub(before(at))).collect(),
        }
    }

    /// An upper bound, in microseconds, for how long a share `q` (0 to 1) of the operations took;
    /// `None` if there were none.
    pub fn quantile_us(&self, q: f64) -> Option<u64> {
        let timed: u64 = self.took_us.iter().sum();
        let wanted = ((timed as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        self.took_us
            .iter()
            .position(|count| {
                seen += count;
                seen >= wanted
            })
            .map(|bucket| 1 << bucket.min(63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::ManualClock;

    fn meter() -> (Arc<ManualClock>, Arc<Meter>) {
        let clock = Arc::new(ManualClock::at(0));
        (Arc::clone(&clock), Arc::new(Meter::new(clock)))
    }

    #[test]
    fn an_operation_counts_when_it_is_over_and_with_the_time_it_took() {
        let (clock, meter) = meter();
        let timed = meter.begin();
        assert_eq!(meter.read().operations, 0);
        clock.advance(3);
        drop(timed);
        let reading = meter.read();
        assert_eq!(reading.operations, 1);
        assert_eq!(reading.quantile_us(0.5), Some(4096), "3 ms are more than 2048 µs");
    }

    #[test]
    fn a_quantile_is_of_what_happened_since_the_earlier_reading() {
        let (clock, meter) = meter();
        for _ in 0..99 {
            drop(meter.begin());
        }
        let earlier = meter.read();
        assert_eq!((earlier.quantile_us(0.5), earlier.quantile_us(1.0)), (Some(1), Some(1)));
        let timed = meter.begin();
        clock.advance(1000);
        drop(timed);
        let all = meter.read();
        assert_eq!((all.quantile_us(0.99), all.quantile_us(1.0)), (Some(1), Some(1 << 20)));
        assert_eq!(all.since(&earlier).quantile_us(0.01), Some(1 << 20));
        assert_eq!(all.since(&all).quantile_us(0.5), None);
    }

    #[test]
    fn connections_are_counted_while_they_are_open() {
        let (_, meter) = meter();
        let (one, two) = (meter.connect(), meter.connect());
        assert_eq!(meter.read().connections, 2);
        drop(one);
        assert_eq!(meter.read().connections, 1);
        drop(two);
        assert_eq!(meter.read().connections, 0);
    }
}
