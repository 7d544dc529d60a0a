//! The options of an engine, and the limits that follow from them.
//!
//! Few options: each one has somebody who would set it. Everything else is derived from the one
//! memory budget in [`Limits`].

use std::time::Duration;

use crate::error::{Error, Result};
use crate::sst::{Compression, PARTS_BEYOND_BYTES};

/// How a database is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Create the database if the folder holds none. Default: yes.
    pub create_if_missing: bool,

    /// Memory for memtables and block cache together, in bytes. Default: 256 MiB.
    ///
    /// Up to half of it buffers writes; what they do not hold caches blocks, indexes and filters.
    /// Why not smaller: every flush writes files of about `budget / 1000` a stripe, and small files
    /// mean more compaction. Why not larger: what it holds unflushed must be replayed from the log
    /// after a crash. At least 256 KiB.
    pub memory_budget_bytes: usize,

    /// Compression of all levels but the last. Default: LZ4, which costs less time than the bytes
    /// it saves.
    pub compression: Compression,

    /// Compression of the last level, where nine tenths of the data end up. Default: ZSTD 3. Why
    /// not a higher level: compaction would take several times the CPU for a few per cent.
    pub bottom_compression: Compression,

    /// Threads that flush and compact. Default: 2. Why not fewer: a long compaction would delay
    /// the flush that writers wait for. Why not more: they compete with the callers for cores and
    /// disk.
    pub background_threads: usize,

    /// How old an `Interval` commit may get before it is synced. Default: 1 s.
    pub sync_interval: Duration,

    /// How many SST files are kept open. Default: 512, half of the usual limit of a process.
    pub open_files_max: usize,

    /// Flush a stripe at this many records, whatever its size. Default: none, because bytes are
    /// what memory and files are made of.
    pub stripe_records_max: Option<u64>,

    /// Sizes that only tests change, to make a small run meet what a large one does.
    #[doc(hidden)]
    pub tuning: Tuning,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            create_if_missing: true,
            memory_budget_bytes: 256 << 20,
            compression: Compression::Lz4,
            bottom_compression: Compression::Zstd { level: 3 },
            background_threads: 2,
            sync_interval: Duration::from_secs(1),
            open_files_max: 512,
            stripe_records_max: None,
            tuning: Tuning::default(),
        }
    }
}

/// Sizes that follow from the memory budget unless a test says otherwise.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Tuning {
    /// Uncompressed size of a data block. 4 KiB: smaller ones compress badly, larger ones make a
    /// point read decode more.
    pub block_bytes: usize,
    /// Entries between two restart points of a block. Fewer: files are larger (1 % with 8, 3 % with 4);
    /// more: a search in a block walks further. A get from memory does not walk.
    pub restart_interval: usize,
    /// Filter bits per key.
    pub filter_bits_per_key: u32,
    /// Length of a file's filter, or of its index, beyond which both are written in parts.
    pub parts_beyond_bytes: usize,
    /// L0 files of one stripe that make it due for compaction, whether anybody reads it or not. Fewer:
    /// L1 is written more often; more: readers look into more files until they have paid for a merge.
    pub l0_compact_files: usize,
    /// L0 files of one stripe at which writers to it wait.
    pub l0_stop_files: usize,
    /// Size of L1 of one stripe; each further level is ten times the one above.
    pub l1_bytes: u64,
    /// Size at which a compaction starts its next output file (L1; doubled per level).
    pub file_bytes: u64,
    /// Size of a log segment, if not derived.
    pub log_segment_bytes: Option<u64>,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning {
            block_bytes: 4096,
            restart_interval: 16,
            filter_bits_per_key: 14,
            parts_beyond_bytes: PARTS_BEYOND_BYTES,
            l0_compact_files: 8,
            l0_stop_files: 24,
            l1_bytes: 8 << 20,
            file_bytes: 4 << 20,
            log_segment_bytes: None,
        }
    }
}

/// What the engine works with: the options, checked, and everything derived from them.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    /// Memtable bytes at which writers wait.
    pub(crate) write_buffer_bytes: usize,
    /// Memtable bytes at which a flush starts; see [`flush_at_bytes`].
    pub(crate) flush_at_bytes: usize,
    /// What the block cache has however much is unflushed.
    pub(crate) cache_bytes_min: usize,
    /// One log segment.
    pub(crate) log_segment_bytes: u64,
    /// Live log bytes at which the oldest stripes are flushed for age.
    pub(crate) log_bytes_max: u64,
}

const BUDGET_MIN: usize = 256 << 10;

/// A flush writes to all stripes, so that of little memory much has to be flushed at once, or the files
/// are tiny: three eighths of the budget. More than that, and writers fill the rest of their half before
/// the flush is done, and wait. What makes files of a useful length is enough, though: the rest of a
/// large budget is better used for reading, and is not there to be held by a process that only writes.
fn flush_at_bytes(budget: usize) -> usize {
    const ENOUGH: usize = 24 << 20;
    (budget / 8 * 3).min(ENOUGH).max(budget / 32 * 7)
}

impl Options {
    pub(crate) fn limits(&self) -> Result<Limits> {
        if self.memory_budget_bytes < BUDGET_MIN {
            return Err(Error::invalid(format!(
                "memory_budget_bytes is {}, the least is {BUDGET_MIN}",
                self.memory_budget_bytes
            )));
        }
        if self.background_threads == 0 || self.background_threads > 64 {
            return Err(Error::invalid("background_threads must be 1 to 64"));
        }
        if self.open_files_max < 8 {
            return Err(Error::invalid("open_files_max must be at least 8"));
        }
        if self.stripe_records_max == Some(0) {
            return Err(Error::invalid("stripe_records_max must be at least 1"));
        }
        let tuning = &self.tuning;
        if tuning.block_bytes == 0 || tuning.restart_interval == 0 || tuning.l0_compact_files == 0 {
            return Err(Error::invalid("block, restart and L0 sizes must be at least 1"));
        }
        let write_buffer_bytes = self.memory_budget_bytes / 2;
        let log_segment_bytes = tuning
            .log_segment_bytes
            .unwrap_or_else(|| (write_buffer_bytes as u64 / 4).clamp(256 << 10, 64 << 20));
        Ok(Limits {
            write_buffer_bytes,
            flush_at_bytes: flush_at_bytes(self.memory_budget_bytes),
            cache_bytes_min: self.memory_budget_bytes - write_buffer_bytes,
            log_segment_bytes,
            // Twice the write buffer, because a record is larger in the log than it needs to be
            // for its stripe's memtable to be due; and never less than a few segments.
            log_bytes_max: (write_buffer_bytes as u64 * 2).max(log_segment_bytes * 4),
        })
    }
}
