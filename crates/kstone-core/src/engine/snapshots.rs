//! Who reads the past: the registered snapshots, which flush and compaction must respect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
}

#[derive(Debug, Default)]
struct List {
    /// (sequence number, a number of its own) → the flag that ends it.
    live: BTreeMap<(Seq, u64), Arc<AtomicBool>>,
    next: u64,
}

/// A registration; it must be given back with [`Snapshots::remove`].
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) seq: Seq,
    number: u64,
    ended: Arc<AtomicBool>,
}

impl Registered {
    /// Whether a purge has ended the snapshot.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Snapshots {
    /// Registers a snapshot at the watermark. The number is read under the list's lock, so that a
    /// compaction either sees the registration or a watermark that is not above it.
    pub(crate) fn register(&self, log: &Log) -> Registered {
        let mut list = self.list.lock();
        let (seq, number) = (log.visible(), list.next);
        list.next += 1;
        let ended = Arc::new(AtomicBool::new(false));
        list.live.insert((seq, number), Arc::clone(&ended));
        Registered { seq, number, ended }
    }

    pub(crate) fn remove(&self, registered: &Registered) {
        self.list.lock().live.remove(&(registered.seq, registered.number));
        self.removed.notify_all();
    }

    /// The numbers that a flush or compaction starting now must respect.
    pub(crate) fn boundaries(&self, log: &Log) -> Boundaries {
        let list = self.list.lock();
        let mut seqs: Vec<Seq> = list.live.keys().map(|&(seq, _)| seq).collect();
        seqs.dedup();
        if crate::bugs::on(crate::bugs::Bug::SnapshotIgnoredByCompaction) {
            seqs.clear();
        }
        Boundaries::new(seqs, log.visible())
    }

    /// Waits until nobody reads below `seq`; answers how many still do when `timeout` has passed.
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
            let count = list.live.range(..(seq, 0)).count();
            if count == 0 || left.is_zero() {
                return count;
            }
            let before = clock.monotonic();
            list = self.removed.wait_timeout(list, left.min(step));
            // A clock that a test has stopped still lets the wait end.
            let passed = clock.monotonic().saturating_sub(before);
            left = left.saturating_sub(if passed.is_zero() { step } else { passed });
        }
    }

    /// Ends everybody who reads below `seq`.
    pub(crate) fn end_below(&self, seq: Seq) {
        let mut list = self.list.lock();
        let keep = list.live.split_off(&(seq, 0));
        for ended in std::mem::replace(&mut list.live, keep).into_values() {
            ended.store(true, Ordering::Release);
        }
    }
}
