//! The threads and futures that wait until the log is written or synced up to a sequence number.
//!
//! Every waiter is woken by itself: with one condition variable for all, each sync would wake 64
//! threads to let most of them go back to sleep.
//!
//! Covered threads wake each other: a turn wakes two, and each wakes one more on its way out. A
//! leader that wakes all of them makes a system call for each before its own caller goes on, and
//! dozens of threads runnable at once: measured with 64 writers, a commit then takes 1.44 context
//! switches instead of 1.21.
//!
//! A small group is *gathered*: until all that a turn covered are on their way, nobody begins the next
//! turn, so that their next commits are in it. Else those who were not covered begin at once, the others
//! find a sync under way, and two halves take turns for good, each waiting for the other's sync: with 8
//! writers a sync had 4 commits. Where many are covered, waking them takes longer than what is gained.
//! The gathering is over when the last one leaves, who wakes the next leader; it depends on nobody coming
//! back. The first who would have led in the meantime gives it up after a while: a woken thread may have
//! to wait for a processor.
//!
//! Invariant: a thread in the list has not got what it waits for, or the turn that gave it that has its
//! [`Waiters::take_satisfied`] still to come. So a waiter that is taken out to lead does, or somebody else is
//! about to be.
//!
//! Called by `commit::group`; calls nothing.

use super::park::{Thread, ThreadId};
use crate::entry::Seq;
use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

/// So many covered threads are woken by the thread that covered them. Fewer: a second core is idle until
/// the first thread has run; more: what is said above. One where every step is played in every
/// order: the chain is then as long as a few threads can make it.
const WOKEN_AT_ONCE: usize = if cfg!(kstone_shuttle) { 1 } else { 2 };

/// The most threads that are gathered. Few where every step is played in every order, so that groups
/// that are too large for it come about as well.
const GATHERED_MAX: usize = if cfg!(kstone_shuttle) { 2 } else { 8 };

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
pub(crate) struct LogProgress {
    pub(crate) written: Seq,
    pub(crate) durable: Seq,
}

impl LogProgress {
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

impl ThreadWaiter {
    fn name(&self) -> (Seq, ThreadId) {
        (self.seq, self.thread.id())
    }
}

/// The role of a thread that waits for a group to be gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gathering {
    /// Has to see to it that there is an end to it.
    Keeper,
    Other,
}

/// The waiting threads and futures.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    threads: Vec<ThreadWaiter>,
    /// Threads that have what they wait for and are still to be woken. As long as there are any,
    /// somebody who was woken before them is on its way to [`Waiters::leave`].
    covered: VecDeque<ThreadWaiter>,
    /// While a group is gathered: the threads that were covered and woken, and have not left yet.
    leaving: Vec<(Seq, ThreadId)>,
    is_gathering: bool,
    /// Who sees to it that the gathering has an end: the first who would else have begun a turn.
    keeper: Option<(Seq, ThreadId)>,
    /// By level, sequence number and order of arrival.
    futures: BTreeMap<(Level, Seq, u64), Waker>,
    arrivals: u64,
}

/// The threads and futures to wake after a write or a sync.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    /// A thread whose commit was not covered: it writes the next group.
    pub(crate) next_leader: Option<Thread>,
    /// Futures that were not covered are left, and no thread will lead for them.
    pub(crate) futures_left: bool,
    /// The first covered threads, which wake the others.
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
        self.leaving.retain(|left| *left != (seq, thread.id()));
        if let Some(covered) = self.covered.pop_front() {
            if self.is_gathering && covered.level == Level::Durable {
                self.leaving.push(covered.name());
            }
            return Some(covered.thread);
        }
        if !self.is_gathering || !self.leaving.is_empty() {
            return None;
        }
        self.end_gathering();
        self.next_leader()
    }

    /// Adds a thread if a group is being gathered; without an answer there is none, and it may lead.
    pub(crate) fn join_gathering(
        &mut self,
        level: Level,
        seq: Seq,
        thread: &Thread,
    ) -> Option<Gathering> {
        if !self.is_gathering {
            return None;
        }
        self.add_thread(level, seq, thread);
        let me = (seq, thread.id());
        let is_keeper = *self.keeper.get_or_insert(me) == me;
        Some(if is_keeper { Gathering::Keeper } else { Gathering::Other })
    }

    /// Those who are still missing are waited for no more; the caller will lead. Not if it has been
    /// covered or taken out to lead meanwhile: then what is being gathered is another's affair.
    pub(crate) fn give_up_gathering(&mut self, seq: Seq, thread: &Thread) {
        if self.threads.iter().any(|w| w.name() == (seq, thread.id())) {
            self.end_gathering();
        }
    }

    pub(crate) fn is_gathering(&self) -> bool {
        self.is_gathering
    }

    fn end_gathering(&mut self) {
        self.is_gathering = false;
        self.keeper = None;
        self.leaving.clear();
    }

    /// Takes a thread out of those whose commits were not covered.
    fn next_leader(&mut self) -> Option<Thread> {
        // It comes back to the list if another thread gets ahead of it.
        (!self.threads.is_empty()).then(|| self.threads.remove(0).thread)
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

    /// Takes out all that got what they wait for, and picks the next leader.
    pub(crate) fn take_satisfied(&mut self, reached: LogProgress) -> Wake {
        let mut wake = Wake::default();
        let done = |w: &mut ThreadWaiter| reached.satisfies(w.level, w.seq);
        self.covered.extend(self.threads.extract_if(.., done));
        let first = self.covered.len().min(WOKEN_AT_ONCE);
        // Who waited for a write has nothing to gain from a sync that begins later.
        let is_durable = |w: &&ThreadWaiter| w.level == Level::Durable;
        let on_their_way = self.covered.iter().filter(is_durable).count() + self.leaving.len();
        if (1..=GATHERED_MAX).contains(&on_their_way) {
            self.is_gathering = true;
            let woken = self.covered.iter().take(first).filter(is_durable);
            self.leaving.extend(woken.map(ThreadWaiter::name));
        } else {
            self.end_gathering();
            wake.next_leader = self.next_leader();
        }
        wake.threads.extend(self.covered.drain(..first).map(|w| w.thread));
        for (level, upto) in [(Level::Written, reached.written), (Level::Durable, reached.durable)]
        {
            while let Some((&key, _)) =
                self.futures.range((level, 0, 0)..=(level, upto, u64::MAX)).next()
                && let Some(waker) = self.futures.remove(&key)
            {
                wake.futures.push(waker);
            }
        }
        let one_will_lead = self.is_gathering && !self.threads.is_empty();
        wake.futures_left = !self.futures.is_empty() && !one_will_lead;
        wake
    }

    pub(crate) fn take_all(&mut self) -> Wake {
        self.end_gathering();
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

    fn synced(upto: Seq) -> LogProgress {
        LogProgress { written: upto, durable: upto }
    }

    #[test]
    fn covered_threads_wake_each_other_until_none_is_left() {
        let me = park::current();
        let covered = GATHERED_MAX as Seq + 2;
        let mut waiters = waiting(covered + 1);
        let wake = waiters.take_satisfied(synced(covered));
        assert_eq!((wake.threads.len(), wake.next_leader.is_some()), (2, true));
        assert_eq!(waiters.join_gathering(Level::Durable, 99, &me), None, "they are too many");
        for seq in 1..=covered {
            let wakes_another = seq <= covered - 2;
            assert_eq!(waiters.leave(seq, &me).is_some(), wakes_another, "the one with {seq}");
        }
    }

    #[test]
    fn nobody_leads_before_all_of_a_small_group_have_left() {
        let me = park::current();
        let mut waiters = waiting(6);
        let wake = waiters.take_satisfied(synced(4));
        assert_eq!((wake.threads.len(), wake.next_leader.is_some()), (2, false));
        let join = |waiters: &mut Waiters, seq| waiters.join_gathering(Level::Durable, seq, &me);
        assert_eq!(join(&mut waiters, 7), Some(Gathering::Keeper));
        assert_eq!(join(&mut waiters, 8), Some(Gathering::Other));
        assert!(waiters.leave(2, &me).is_some(), "the third is woken");
        assert!(waiters.leave(1, &me).is_some(), "and the fourth");
        assert!(waiters.leave(4, &me).is_none(), "the third has not left");
        assert!(waiters.leave(3, &me).is_some(), "the last one wakes who leads");
        assert_eq!(join(&mut waiters, 9), None, "it is over");
        let left: Vec<Seq> = waiters.threads.iter().map(|w| w.seq).collect();
        assert_eq!(left, [6, 7, 8], "the one with 5 leads");
    }

    #[test]
    fn a_gathering_that_is_given_up_is_over_even_if_waiters_are_missing() {
        let me = park::current();
        let mut waiters = waiting(4);
        waiters.take_satisfied(synced(3));
        for _ in 0..2 {
            let joined = waiters.join_gathering(Level::Durable, 5, &me);
            assert_eq!(joined, Some(Gathering::Keeper), "also if it comes round once more");
        }
        waiters.give_up_gathering(2, &me);
        assert!(waiters.is_gathering(), "who is covered does not lead, and so may not end it");
        waiters.give_up_gathering(5, &me);
        assert_eq!(waiters.join_gathering(Level::Durable, 5, &me), None);
        for (seq, wakes_another) in [(1, true), (2, false), (3, false)] {
            assert_eq!(waiters.leave(seq, &me).is_some(), wakes_another, "the one with {seq}");
        }
        assert!(waiters.take_satisfied(synced(3)).next_leader.is_some(), "who asks next leads");
    }

    #[test]
    fn a_thread_that_notices_by_itself_is_not_woken_and_wakes_the_next_all_the_same() {
        let me = park::current();
        let mut waiters = waiting(4);
        assert_eq!(waiters.take_satisfied(synced(4)).threads.len(), 2);
        // The third has not been woken yet. It takes itself out, and wakes the fourth.
        assert!(waiters.leave(3, &me).is_some());
        assert!(waiters.leave(1, &me).is_none());
        assert!(waiters.is_gathering(), "two were woken and are still there");
    }

    #[test]
    fn a_failure_wakes_those_too_who_were_still_to_be_woken() {
        let mut waiters = waiting(6);
        waiters.take_satisfied(synced(4));
        // Of the six, two were woken as covered.
        assert_eq!(waiters.take_all().threads.len(), 4);
        assert!(!waiters.is_gathering());
    }
}
