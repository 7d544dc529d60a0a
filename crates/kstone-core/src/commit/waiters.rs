//! Who waits for the log to be written or synced up to which sequence number.
//!
//! Every waiter is woken by itself: with one condition variable for all, each sync would wake 64
//! threads to let most of them go back to sleep.
//!
//! Covered threads wake each other: a turn wakes two, and each wakes one more on its way out. A
//! leader that wakes all of them makes a system call for each before its own caller goes on, and
//! dozens of threads runnable at once: measured with 64 writers, a commit then takes 1.44 context
//! switches instead of 1.21.
//!
//! Called by `commit::group`; calls nothing.

use super::park::Thread;
use crate::entry::Seq;
use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

/// So many covered threads are woken by whoever covered them. Fewer: a second core is idle until
/// the first thread has run; more: what is said above. One where every step is played in every
/// order: the chain is then as long as a few threads can make it.
const WOKEN_AT_ONCE: usize = if cfg!(kstone_shuttle) { 1 } else { 2 };

/// How far a commit has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Handed to the operating system: survives the process.
    Written,
    /// Synced: survives the machine.
    Durable,
}

/// How far the log has got.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached {
    pub(crate) written: Seq,
    pub(crate) durable: Seq,
}

impl Reached {
    pub(crate) fn satisfies(self, level: Level, seq: Seq) -> bool {
        match level {
            Level::Written => seq <= self.written,
            Level::Durable => seq <= self.durable,
        }
    }
}

#[derive(Debug)]
struct ThreadWaiter {
    level: Level,
    seq: Seq,
    thread: Thread,
}

/// The waiting threads and futures.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    threads: Vec<ThreadWaiter>,
    /// Threads that have what they wait for and are still to be woken. As long as there are any,
    /// somebody who was woken before them is on its way to [`Waiters::leave`].
    covered: VecDeque<ThreadWaiter>,
    /// By level, sequence number and order of arrival.
    futures: BTreeMap<(Level, Seq, u64), Waker>,
    arrivals: u64,
}

/// Whom to wake after a write or a sync.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    /// A thread whose commit was not covered: it writes the next group.
    pub(crate) next_leader: Option<Thread>,
    /// Futures that were not covered are left, and no thread will lead for them.
    pub(crate) futures_left: bool,
    /// The first covered threads, who wake the others.
    pub(crate) threads: Vec<Thread>,
    pub(crate) futures: Vec<Waker>,
}

impl Waiters {
    pub(crate) fn add_thread(&mut self, level: Level, seq: Seq, thread: &Thread) {
        if !self.threads.iter().any(|w| w.seq == seq && w.thread.id() == thread.id()) {
            self.threads.push(ThreadWaiter { level, seq, thread: thread.clone() });
        }
    }

    pub(crate) fn remove_thread(&mut self, seq: Seq, thread: &Thread) {
        let is_other = |w: &ThreadWaiter| w.seq != seq || w.thread.id() != thread.id();
        self.threads.retain(is_other);
        self.covered.retain(is_other);
    }

    /// A thread that was added has what it waited for and goes: whom it has to wake. It must ask
    /// whether it was woken or noticed by itself, or nobody would wake the rest.
    pub(crate) fn leave(&mut self, seq: Seq, thread: &Thread) -> Option<Thread> {
        self.remove_thread(seq, thread);
        self.covered.pop_front().map(|w| w.thread)
    }

    pub(crate) fn add_future(&mut self, level: Level, seq: Seq, waker: &Waker) {
        // A future that is polled again registers the same waker. Only the latest few are
        // compared: a duplicate costs one needless wake-up, a long comparison costs every poll.
        let known = self
            .futures
            .range((level, seq, 0)..=(level, seq, u64::MAX))
            .rev()
            .take(8)
            .any(|(_, known)| known.will_wake(waker));
        if !known {
            self.arrivals += 1;
            self.futures.insert((level, seq, self.arrivals), waker.clone());
        }
    }

    /// Takes out everybody who got what they wait for, and picks the next leader.
    pub(crate) fn take_satisfied(&mut self, reached: Reached) -> Wake {
        let mut wake = Wake::default();
        let done = |w: &mut ThreadWaiter| reached.satisfies(w.level, w.seq);
        self.covered.extend(self.threads.extract_if(.., done));
        let first = self.covered.len().min(WOKEN_AT_ONCE);
        wake.threads.extend(self.covered.drain(..first).map(|w| w.thread));
        if !self.threads.is_empty() {
            // It comes back to the list if another thread gets ahead of it.
            wake.next_leader = Some(self.threads.remove(0).thread);
        }
        for (level, upto) in [(Level::Written, reached.written), (Level::Durable, reached.durable)]
        {
            while let Some((&key, _)) =
                self.futures.range((level, 0, 0)..=(level, upto, u64::MAX)).next()
                && let Some(waker) = self.futures.remove(&key)
            {
                wake.futures.push(waker);
            }
        }
        wake.futures_left = !self.futures.is_empty();
        wake
    }

    pub(crate) fn take_all(&mut self) -> Wake {
        Wake {
            next_leader: None,
            futures_left: false,
            threads: (self.threads.drain(..).chain(self.covered.drain(..)))
                .map(|w| w.thread)
                .collect(),
            futures: std::mem::take(&mut self.futures).into_values().collect(),
        }
    }

    /// What the waiting futures want at least.
    pub(crate) fn futures_want(&self) -> Option<Level> {
        self.futures.last_key_value().map(|((level, _, _), _)| *level)
    }
}

#[cfg(all(test, not(kstone_shuttle)))]
mod tests {
    use super::*;
    use crate::commit::park;

    /// Waiters for a sync up to 1, 2, … `count`.
    fn waiting(count: Seq) -> Waiters {
        let mut waiters = Waiters::default();
        for seq in 1..=count {
            waiters.add_thread(Level::Durable, seq, &park::current());
        }
        waiters
    }

    fn synced(upto: Seq) -> Reached {
        Reached { written: upto, durable: upto }
    }

    #[test]
    fn covered_threads_wake_each_other_until_none_is_left() {
        let me = park::current();
        let mut waiters = waiting(6);
        let wake = waiters.take_satisfied(synced(5));
        assert_eq!((wake.threads.len(), wake.next_leader.is_some()), (2, true));
        for (seq, wakes_another) in [(1, true), (2, true), (3, true), (4, false), (5, false)] {
            assert_eq!(waiters.leave(seq, &me).is_some(), wakes_another, "the one with {seq}");
        }
    }

    #[test]
    fn a_thread_that_notices_by_itself_is_not_woken_and_wakes_the_next_all_the_same() {
        let me = park::current();
        let mut waiters = waiting(4);
        assert_eq!(waiters.take_satisfied(synced(4)).threads.len(), 2);
        // The third has not been woken yet. It takes itself out, and wakes the fourth.
        assert!(waiters.leave(3, &me).is_some());
        assert!(waiters.leave(1, &me).is_none());
    }

    #[test]
    fn a_failure_wakes_those_too_who_were_still_to_be_woken() {
        let mut waiters = waiting(6);
        waiters.take_satisfied(synced(4));
        // Of the six, two were woken as covered and one to lead.
        assert_eq!(waiters.take_all().threads.len(), 3);
    }
}
