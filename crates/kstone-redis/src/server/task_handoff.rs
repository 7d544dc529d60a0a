//! Moves other tasks to another thread while a long command runs on this one.
//!
//! Commands run on the executor's own threads, because nearly all of them take microseconds. The
//! few that take longer (scripts, walks over large keys, waiting for a lock that such a command
//! holds) must not keep the other tasks of their thread waiting.

use std::cell::Cell;
use std::sync::OnceLock;

/// The function by which the executor moves its other tasks to another thread, if it has one.
#[derive(Debug, Default)]
pub(crate) struct TaskHandoff {
    hand_off: OnceLock<fn()>,
}

impl TaskHandoff {
    /// Sets the function. The first one stays: all doors of a process run on the same executor.
    pub(crate) fn set(&self, hand_off: fn()) {
        let _ = self.hand_off.set(hand_off);
    }

    /// Lets the executor move its other tasks away: this thread will be busy for a while.
    pub(crate) fn hand_off(&self) {
        if let Some(hand_off) = self.hand_off.get() {
            hand_off();
        }
    }
}

/// Decides when a long command hands tasks off: after some milliseconds, and again later, because
/// no other thread may have been free the first time. Most commands end long before.
#[derive(Debug, Default)]
pub(crate) struct HandoffTimer {
    times: Cell<usize>,
    steps: Cell<u32>,
}

impl HandoffTimer {
    const AFTER_MS: [u64; 4] = [3, 8, 30, 100];
    /// The clock is read after this many steps of a walk, which take less than a millisecond.
    const STEPS: u32 = 256;

    /// Hands tasks off if the command has run for long enough.
    pub(crate) fn check(&self, handoff: &TaskHandoff, so_far_ms: u64) {
        let times = self.times.get();
        if Self::AFTER_MS.get(times).is_some_and(|after_ms| so_far_ms >= *after_ms) {
            self.times.set(times + 1);
            handoff.hand_off();
        }
    }

    /// Counts one step of a walk that may be long, and [checks](HandoffTimer::check) now and then.
    pub(crate) fn step(&self, handoff: &TaskHandoff, so_far_ms: impl FnOnce() -> u64) {
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(Self::STEPS) {
            self.check(handoff, so_far_ms());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_walk_hands_tasks_off_only_when_it_takes_long() {
        static HANDED_OFF: AtomicUsize = AtomicUsize::new(0);
        let (handoff, timer) = (TaskHandoff::default(), HandoffTimer::default());
        handoff.set(|| {
            HANDED_OFF.fetch_add(1, Ordering::Relaxed);
        });
        let mut looks = 0;
        for step in 0..100 * u64::from(HandoffTimer::STEPS) {
            timer.step(&handoff, || {
                looks += 1;
                step / u64::from(HandoffTimer::STEPS) / 4
            });
        }
        // 25 ms passed, and the clock was read a hundred times.
        assert_eq!((looks, HANDED_OFF.load(Ordering::Relaxed)), (100, 2));
    }
}
