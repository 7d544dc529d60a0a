//! Counters of the log: commits, bytes, syncs and how long they took.

// The standard library's atomics on purpose: counters decide nothing, and as scheduling points
// they would only lengthen every shuttle run.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Bucket `i` counts syncs of less than 2^i microseconds that are not in the bucket before it.
/// The last one, from about half a second on, has no upper end.
pub(crate) const LATENCY_BUCKETS: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) chunks: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) rotations: AtomicU64,
    sync_latency: [AtomicU64; LATENCY_BUCKETS],
}

/// The counters at one moment, since the log was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogStats {
    /// Commits written.
    pub(crate) commits: u64,
    /// Write calls.
    pub(crate) chunks: u64,
    pub(crate) bytes: u64,
    /// Syncs of the segment being written; `commits / syncs` is what group commit achieves.
    pub(crate) syncs: u64,
    pub(crate) rotations: u64,
    /// Power-of-two buckets of microseconds.
    pub(crate) sync_latency: [u64; LATENCY_BUCKETS],
}

impl Counters {
    pub(crate) fn synced(&self, took: Duration) {
        self.syncs.fetch_add(1, Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = (64 - micros.leading_zeros()) as usize;
        if let Some(count) = self.sync_latency.get(bucket.min(LATENCY_BUCKETS - 1)) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn snapshot(&self) -> LogStats {
        LogStats {
            commits: self.commits.load(Relaxed),
            chunks: self.chunks.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
            rotations: self.rotations.load(Relaxed),
            sync_latency: self.sync_latency.each_ref().map(|count| count.load(Relaxed)),
        }
    }
}
