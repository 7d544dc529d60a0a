//! The registered snapshots, whose view of the past flush and compaction must preserve.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::commit::Log;
use crate::engine::clock::EngineClock;
use crate::entry::Seq;
use crate::sync::{Condvar, Mutex};
use crate::tree::retain::Boundaries;

/// The list of registered snapshots.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    list: Mutex<List>,
    removed: Condvar,
    /// Those with a number below this were ended by a purge. Later numbers have no lower sequence
    /// numbers, so snapshots below a number come before all others.
    ended_before: AtomicU64,
}

#[derive(Debug, Default)]
struct List {
    /// In the order of their registration, which is that of their sequence numbers too.
    live: VecDeque<Registered>,
    next: u64,
    /// How many wait for a removal: waking nobody would be a system call for every reader.
    waiting: usize,
}

/// A registration; it must be given back with [`Snapshots::remove`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registered {
    pub(crate) seq: Seq,
    number: u64,
}

impl List {
    /// How many read below `seq`: the first of the list.
    fn below(&self, seq: Seq) -> usize {
        self.live.partition_point(|registered| registered.seq < seq)
    }
}

impl Snapshots {
    /// Registers a snapshot at the watermark. The number is read under the list's lock, so that a
    /// compaction either sees the registration or a watermark that is not above it.
    pub(crate) fn register(&self, log: &Log) -> Registered {
        let mut list = self.list.lock();
        let registered = Registered { seq: log.visible(), number: list.next };
        list.next += 1;
        list.live.push_back(registered);
        registered
    }

    pub(crate) fn remove(&self, registered: &Registered) {
        let mut list = self.list.lock();
        // It is not there if it was ended.
        if let Ok(at) = list.live.binary_search_by_key(&registered.number, |live| live.number) {
            list.live.remove(at);
        }
        if list.waiting > 0 {
            self.removed.notify_all();
        }
    }

    /// Whether a purge has ended the snapshot.
    #[inline]
    pub(crate) fn is_ended(&self, registered: &Registered) -> bool {
        registered.number < self.ended_before.load(Ordering::Acquire)
    }

    /// The numbers that a flush or compaction starting now must respect.
    pub(crate) fn boundaries(&self, log: &Log) -> Boundaries {
        let list = self.list.lock();
        let mut seqs: Vec<Seq> = list.live.iter().map(|registered| registered.seq).collect();
        seqs.dedup();
        if crate::bugs::on(crate::bugs::Bug::SnapshotIgnoredByCompaction) {
            seqs.clear();
        }
        Boundaries::new(seqs, log.visible())
    }

    /// Waits until no snapshot reads below `seq`; answers how many still do when `timeout` has passed.
    pub(crate) fn wait_none_below(
        &self,
        seq: Seq,
        timeout: Duration,
        clock: &EngineClock,
    ) -> usize {
        let step = Duration::from_millis(20);
        let mut left = timeout;
        let mut list = self.list.lock();
        loop {
            let count = list.below(seq);
            if count == 0 || left.is_zero() {
                return count;
            }
            let before = clock.monotonic();
            list.waiting += 1;
            list = self.removed.wait_timeout(list, left.min(step));
            list.waiting -= 1;
            // A clock that a test has stopped still lets the wait end.
            let passed = clock.monotonic().saturating_sub(before);
            left = left.saturating_sub(if passed.is_zero() { step } else { passed });
        }
    }

    /// Ends all snapshots that read below `seq`.
    pub(crate) fn end_below(&self, seq: Seq) {
        let mut list = self.list.lock();
        let count = list.below(seq);
        let kept = list.live.get(count).map_or(list.next, |first| first.number);
        list.live.drain(..count);
        self.ended_before.fetch_max(kept, Ordering::AcqRel);
    }
}
