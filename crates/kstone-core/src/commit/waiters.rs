//! Who waits for the log to be written or synced up to which sequence number.
//!
//! Every waiter is woken by itself: with one condition variable for all, each sync would wake 64
//! threads to let most of them go back to sleep. Called by `commit::group`; calls nothing.

use super::park::Thread;
use crate::entry::Seq;
use std::collections::BTreeMap;
use std::task::Waker;

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
        self.threads.retain(|w| w.seq != seq || w.thread.id() != thread.id());
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
        wake.threads.extend(self.threads.extract_if(.., done).map(|w| w.thread));
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
            threads: self.threads.drain(..).map(|w| w.thread).collect(),
            futures: std::mem::take(&mut self.futures).into_values().collect(),
        }
    }

    /// What the waiting futures want at least.
    pub(crate) fn futures_want(&self) -> Option<Level> {
        self.futures.last_key_value().map(|((level, _, _), _)| *level)
    }
}
