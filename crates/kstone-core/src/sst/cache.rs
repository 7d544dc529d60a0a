//! The block cache: one memory budget for the data blocks, indexes and filters of all files.
//!
//! Over `quick_cache` (scan-resistant, sharded, weighted by bytes). Values are decoded: a hit costs
//! a lookup and a reference count, nothing is parsed or copied.
//!
//! Filters and indexes of live files are asked by every get. Their readers hold them directly, up to
//! half of the budget ([`BlockCache::pin`]); what they hold is taken off what the cache may hold, so
//! the budget is still one. Beyond that half they are cached like blocks.
//!
//! Two threads that miss the same block both read it. Making one wait for the other would save a
//! read now and then, and hide a lock from shuttle behind every read.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::FileId;
use super::block::Block;
use super::filter::Filter;
use super::index::Index;
use super::stats::{Count, ReadCounts, ReadStats};
use crate::sync::Mutex;

/// What an item costs beside its bytes: the cache's own entry and the allocation's header.
const ITEM_OVERHEAD: usize = 96;
/// A shard holds at least this much, so that the filter of a large file fits into one.
const SHARD_BYTES_MIN: u64 = 8 << 20;
const SHARDS_MAX: u64 = 64;
/// For sizing the cache's tables only.
const ITEM_BYTES_TYPICAL: u64 = 4096;

/// Where a part of a file begins.
type PartKey = (FileId, u64);

#[derive(Debug, Clone)]
enum Part {
    Data(Block),
    Index(Arc<Index>),
    Filter(Arc<Filter>),
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<PartKey, Part> for ByBytes {
    fn weight(&self, _: &PartKey, part: &Part) -> u64 {
        let bytes = match part {
            Part::Data(block) => block.weight(),
            Part::Index(index) => index.weight(),
            Part::Filter(filter) => filter.weight(),
        };
        (bytes + ITEM_OVERHEAD) as u64
    }
}

/// Decoded parts of files, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct BlockCache {
    parts: Cache<PartKey, Part, ByBytes>,
    budget: Mutex<Budget>,
    stats: ReadStats,
}

/// Held while the capacity of `parts` is set, so that the last change is the one that counts.
#[derive(Debug)]
struct Budget {
    /// Of the cache and the pinned parts together.
    bytes: u64,
    pinned_bytes: u64,
}

impl BlockCache {
    /// A cache of about `bytes` bytes; 0 keeps nothing.
    pub(crate) fn new(bytes: u64) -> Self {
        let shards = (bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        // Rounded down: quick_cache would round up and make the shards smaller than intended.
        let shards = 1usize << shards.ilog2();
        let items = (bytes / ITEM_BYTES_TYPICAL).max(32) as usize;
        let (hash, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        let mut options = OptionsBuilder::new();
        options.shards(shards).estimated_items_capacity(items).weight_capacity(bytes);
        let parts = match options.build() {
            Ok(options) => Cache::with_options(options, ByBytes, hash, lifecycle),
            Err(_) => Cache::with(items, bytes, ByBytes, hash, lifecycle),
        };
        let budget = Mutex::new(Budget { bytes, pinned_bytes: 0 });
        BlockCache { parts, budget, stats: ReadStats::default() }
    }

    /// Changes the budget; what is over it is dropped at once, except for what is pinned. The size is
    /// asked for under the lock, so that of two callers the later one has the last word.
    pub(crate) fn set_capacity(&self, bytes: impl FnOnce() -> u64) {
        let mut budget = self.budget.lock();
        budget.bytes = bytes();
        self.parts.set_capacity(budget.bytes.saturating_sub(budget.pinned_bytes));
    }

    #[cfg(test)]
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.budget.lock().bytes
    }

    /// Bytes in use, the pinned ones included.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.parts.weight() + self.budget.lock().pinned_bytes
    }

    /// Takes `bytes` off the cache for a part that its reader wants to hold itself. `false` if half
    /// of the budget is held that way already.
    pub(super) fn pin(&self, bytes: usize) -> bool {
        let mut budget = self.budget.lock();
        let pinned_bytes = budget.pinned_bytes + (bytes + ITEM_OVERHEAD) as u64;
        if pinned_bytes > budget.bytes / 2 {
            return false;
        }
        budget.pinned_bytes = pinned_bytes;
        self.parts.set_capacity(budget.bytes - pinned_bytes);
        true
    }

    /// Gives back what [`pin`](Self::pin) took.
    pub(super) fn unpin(&self, bytes: usize) {
        let mut budget = self.budget.lock();
        debug_assert!(budget.pinned_bytes >= (bytes + ITEM_OVERHEAD) as u64, "unpinned twice");
        budget.pinned_bytes = budget.pinned_bytes.saturating_sub((bytes + ITEM_OVERHEAD) as u64);
        self.parts.set_capacity(budget.bytes.saturating_sub(budget.pinned_bytes));
    }

    /// Hits, misses, and what the filters were worth.
    pub(crate) fn stats(&self) -> ReadCounts {
        self.stats.counts()
    }

    /// Forgets everything of these files, for purge: nothing of them may stay in memory. Looks at
    /// every cached part, so call it once for many files. (A file that compaction replaced needs
    /// no call: what nobody asks for is evicted first. What a reader has pinned goes with it.)
    pub(crate) fn forget_files(&self, is_gone: impl Fn(FileId) -> bool) {
        self.parts.retain(|&(file_id, _), _| !is_gone(file_id));
    }

    pub(super) fn counters(&self) -> &ReadStats {
        &self.stats
    }

    #[inline]
    pub(super) fn data(&self, file: FileId, offset: u64) -> Option<Block> {
        match self.parts.get(&(file, offset)) {
            Some(Part::Data(block)) => {
                self.stats.count(Count::DataHit);
                Some(block)
            }
            _ => {
                self.stats.count(Count::DataMiss);
                None
            }
        }
    }

    #[inline]
    pub(super) fn index(&self, file: FileId, offset: u64) -> Option<Arc<Index>> {
        match self.parts.get(&(file, offset)) {
            Some(Part::Index(index)) => {
                self.stats.count(Count::IndexHit);
                Some(index)
            }
            _ => {
                self.stats.count(Count::IndexMiss);
                None
            }
        }
    }

    #[inline]
    pub(super) fn filter(&self, file: FileId, offset: u64) -> Option<Arc<Filter>> {
        match self.parts.get(&(file, offset)) {
            Some(Part::Filter(filter)) => {
                self.stats.count(Count::FilterHit);
                Some(filter)
            }
            _ => {
                self.stats.count(Count::FilterMiss);
                None
            }
        }
    }

    pub(super) fn insert_data(&self, file: FileId, offset: u64, block: Block) {
        self.parts.insert((file, offset), Part::Data(block));
    }

    pub(super) fn insert_index(&self, file: FileId, offset: u64, index: Arc<Index>) {
        self.parts.insert((file, offset), Part::Index(index));
    }

    pub(super) fn insert_filter(&self, file: FileId, offset: u64, filter: Arc<Filter>) {
        self.parts.insert((file, offset), Part::Filter(filter));
    }
}
