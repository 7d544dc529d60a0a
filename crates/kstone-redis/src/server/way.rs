//! Making way: a thread that is busy for long lets its executor see to other tasks elsewhere.
//!
//! Commands are carried out on the executor's own threads, because nearly all of them are done in
//! microseconds. The few that take longer (scripts, walks over large keys, waiting for one who
//! walks) must not keep other clients waiting that want nothing of what they have locked.

use std::cell::Cell;
use std::sync::OnceLock;

/// How the executor is told, if there is one that wants to know.
#[derive(Debug, Default)]
pub(crate) struct Way {
    make: OnceLock<fn()>,
}

impl Way {
    /// From now on whoever takes long does this now and then.
    pub(crate) fn make_with(&self, make: fn()) {
        // Whoever serves first decides; all of them run on the same executor.
        let _ = self.make.set(make);
    }

    /// Lets the executor see to its other tasks elsewhere: this thread will be busy for a while.
    pub(crate) fn make(&self) {
        if let Some(make) = self.make.get() {
            make();
        }
    }
}

/// When to make way: after some milliseconds, and later again, because the first time may have come
/// to nothing. Most work is done long before, and pays nothing for it.
#[derive(Debug, Default)]
pub(crate) struct Manners {
    times: Cell<usize>,
    steps: Cell<u32>,
}

impl Manners {
    const AFTER_MS: [u64; 4] = [3, 8, 30, 100];
    /// The clock is looked at after so many steps of a walk, which take less than a millisecond.
    const STEPS: u32 = 256;

    /// Makes way if the time has come.
    pub(crate) fn make_way(&self, way: &Way, so_far_ms: u64) {
        let times = self.times.get();
        if Self::AFTER_MS.get(times).is_some_and(|after_ms| so_far_ms >= *after_ms) {
            self.times.set(times + 1);
            way.make();
        }
    }

    /// One step of a walk that may be long: now and then this makes way if the time has come.
    pub(crate) fn step(&self, way: &Way, so_far_ms: impl FnOnce() -> u64) {
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(Self::STEPS) {
            self.make_way(way, so_far_ms());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_walk_makes_way_only_when_it_takes_long() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let (way, manners) = (Way::default(), Manners::default());
        way.make_with(|| {
            MADE.fetch_add(1, Ordering::Relaxed);
        });
        let mut looks = 0;
        for step in 0..100 * u64::from(Manners::STEPS) {
            manners.step(&way, || {
                looks += 1;
                step / u64::from(Manners::STEPS) / 4
            });
        }
        // 25 ms passed, and the clock was looked at a hundred times.
        assert_eq!((looks, MADE.load(Ordering::Relaxed)), (100, 2));
    }
}
