//! Spins for a moment for what another thread is about to do, before sleeping until it is done.
//!
//! To sleep and be woken takes fifty microseconds and more: two switches, and a core that has to come
//! back from its rest, or from another program. What is waited for here mostly takes one or two.
//! Measured with two threads of which each call is a get or a put: of a million puts 22,900 slept
//! until the one before was visible, for 60 µs each, which was most of all calls beyond 60 µs.
//!
//! Called by `commit::group` and `commit::publish`; calls nothing.

use crate::sync::atomic::{AtomicUsize, Ordering};

/// How often the first waiting thread looks: for some fifty microseconds, which is what sleeping would
/// cost. Where every step is played in every order, once.
const LOOKS_FIRST: u32 = if cfg!(kstone_shuttle) { 1 } else { 256 };
/// How often the others look. The thread they wait for may need a core to go on: they must not occupy
/// all of them for long.
const LOOKS_OTHERS: u32 = if cfg!(kstone_shuttle) { 1 } else { 64 };
/// Between two looks: each takes a cache line from the thread that is at work.
const PAUSES: u32 = 4;

/// The threads that spin for one kind of event.
#[derive(Debug, Default)]
pub(super) struct Spin {
    lookers: AtomicUsize,
}

impl Spin {
    /// Looks a number of times; answers whether `is_done` was true in one of them.
    pub(super) fn until(&self, mut is_done: impl FnMut() -> bool) -> bool {
        if is_done() {
            return true;
        }
        let is_first = self.lookers.fetch_add(1, Ordering::Relaxed) == 0;
        let looks = if is_first { LOOKS_FIRST } else { LOOKS_OTHERS };
        let found = (1..looks).any(|_| {
            for _ in 0..PAUSES {
                std::hint::spin_loop();
            }
            is_done()
        });
        self.lookers.fetch_sub(1, Ordering::Relaxed);
        found
    }
}

#[cfg(all(test, not(kstone_shuttle)))]
mod tests {
    use super::*;

    fn looks(spin: &Spin) -> u32 {
        let mut looks = 0;
        let found = spin.until(|| {
            looks += 1;
            false
        });
        assert!(!found);
        looks
    }

    #[test]
    fn the_first_looks_for_longer_than_those_who_come_meanwhile() {
        let spin = Spin::default();
        let mut of_another = 0;
        let mut looked = false;
        assert!(spin.until(|| {
            if std::mem::replace(&mut looked, true) {
                of_another = looks(&spin);
            }
            of_another > 0
        }));
        assert_eq!((of_another, looks(&spin)), (LOOKS_OTHERS, LOOKS_FIRST));
    }

    #[test]
    fn what_is_done_is_seen_at_the_first_look() {
        let mut looks = 0;
        assert!(Spin::default().until(|| {
            looks += 1;
            true
        }));
        assert_eq!(looks, 1);
    }
}
