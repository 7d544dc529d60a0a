//! Counters of the read path, cheap enough to bump on every get.
//!
//! One set serves all files of a database (it lives in the [`BlockCache`](super::BlockCache)). A
//! thread counts on a lane of its own as long as there are lanes, so that cores do not take turns
//! owning one cache line; reading the counters adds the lanes up.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What is counted.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(super) enum Count {
    DataHit,
    DataMiss,
    IndexHit,
    IndexMiss,
    FilterHit,
    FilterMiss,
    FilterUseful,
    FilterFalsePositive,
    FileReads,
    FileReadBytes,
}

const COUNTS: usize = 10;
const LANES: usize = 16;

/// Two cache lines: neighbours are fetched in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane([AtomicU64; COUNTS]);

#[derive(Debug, Default)]
pub(super) struct ReadStats {
    lanes: [Lane; LANES],
}

static THREADS_SEEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LANE: usize = THREADS_SEEN.fetch_add(1, Relaxed) % LANES;
}

impl ReadStats {
    #[inline]
    pub(super) fn count(&self, what: Count) {
        self.add(what, 1);
    }

    #[inline]
    pub(super) fn add(&self, what: Count, n: u64) {
        let lane = LANE.try_with(|lane| *lane).unwrap_or(0);
        self.lanes[lane % LANES].0[what as usize].fetch_add(n, Relaxed);
    }

    pub(super) fn counts(&self) -> ReadCounts {
        let sum = |what: Count| self.lanes.iter().map(|l| l.0[what as usize].load(Relaxed)).sum();
        ReadCounts {
            data_hits: sum(Count::DataHit),
            data_misses: sum(Count::DataMiss),
            index_hits: sum(Count::IndexHit),
            index_misses: sum(Count::IndexMiss),
            filter_hits: sum(Count::FilterHit),
            filter_misses: sum(Count::FilterMiss),
            filter_useful: sum(Count::FilterUseful),
            filter_false_positives: sum(Count::FilterFalsePositive),
            file_reads: sum(Count::FileReads),
            file_read_bytes: sum(Count::FileReadBytes),
        }
    }
}

/// The counters at one moment (each exact, not all of the same instant).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReadCounts {
    pub(crate) data_hits: u64,
    pub(crate) data_misses: u64,
    /// Indexes, or parts of them, found in the cache. A top that had to be read is a miss of its own.
    pub(crate) index_hits: u64,
    pub(crate) index_misses: u64,
    /// Filters, or pieces of them, found in the cache; with `filter_misses`, how often a filter was
    /// asked, and how often a directory had to be read.
    pub(crate) filter_hits: u64,
    pub(crate) filter_misses: u64,
    /// Gets that ended at the filter: the key is not in the file.
    pub(crate) filter_useful: u64,
    /// Gets that the filter let pass although the key is not in the file. A get below the file's
    /// newest sequence number cannot tell, and is not counted.
    pub(crate) filter_false_positives: u64,
    /// Reads of a file, of any part.
    pub(crate) file_reads: u64,
    pub(crate) file_read_bytes: u64,
}
