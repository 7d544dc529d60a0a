//! Random options, most of them tiny, so that a short run meets what a long one does.

use kstone_core::{Compression, Options, Tuning};
use proptest::prelude::*;

/// The options that a run varies.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Memory for memtables and cache.
    pub memory_budget_bytes: usize,
    /// Records at which a stripe is flushed.
    pub stripe_records_max: Option<u64>,
    /// See [`Tuning`].
    pub block_bytes: usize,
    /// See [`Tuning`].
    pub restart_interval: usize,
    /// See [`Tuning`].
    pub filter_bits_per_key: u32,
    /// See [`Tuning`].
    pub parts_beyond_bytes: usize,
    /// See [`Tuning`].
    pub l0_compact_files: usize,
    /// See [`Tuning`].
    pub l1_bytes: u64,
    /// See [`Tuning`].
    pub file_bytes: u64,
    /// See [`Tuning`].
    pub log_segment_bytes: u64,
    /// Compression of the upper levels.
    pub compression: Compression,
    /// Compression of the last level.
    pub bottom_compression: Compression,
    /// Threads, where the run has any.
    pub background_threads: usize,
    /// SST files kept open.
    pub open_files_max: usize,
}

impl Settings {
    /// Everything as small as it gets: a flush at every other write, a compaction at every other
    /// flush, a block for every record.
    pub fn tiny() -> Self {
        Settings {
            memory_budget_bytes: 256 << 10,
            stripe_records_max: Some(2),
            block_bytes: 1,
            restart_interval: 1,
            filter_bits_per_key: 1,
            parts_beyond_bytes: 0,
            l0_compact_files: 1,
            l1_bytes: 1,
            file_bytes: 1,
            log_segment_bytes: 1024,
            compression: Compression::None,
            bottom_compression: Compression::Lz4,
            background_threads: 1,
            open_files_max: 8,
        }
    }

    /// What users have: on a short run, nothing ever leaves memory by itself.
    pub fn ordinary() -> Self {
        let (options, tuning) = (Options::default(), Tuning::default());
        Settings {
            memory_budget_bytes: 8 << 20,
            stripe_records_max: None,
            block_bytes: tuning.block_bytes,
            restart_interval: tuning.restart_interval,
            filter_bits_per_key: tuning.filter_bits_per_key,
            parts_beyond_bytes: tuning.parts_beyond_bytes,
            l0_compact_files: tuning.l0_compact_files,
            l1_bytes: tuning.l1_bytes,
            file_bytes: tuning.file_bytes,
            log_segment_bytes: 1 << 20,
            compression: options.compression,
            bottom_compression: options.bottom_compression,
            background_threads: options.background_threads,
            open_files_max: options.open_files_max,
        }
    }

    /// The engine's options.
    pub fn options(&self) -> Options {
        Options {
            memory_budget_bytes: self.memory_budget_bytes,
            compression: self.compression,
            bottom_compression: self.bottom_compression,
            background_threads: self.background_threads,
            open_files_max: self.open_files_max,
            stripe_records_max: self.stripe_records_max,
            tuning: Tuning {
                block_bytes: self.block_bytes,
                restart_interval: self.restart_interval,
                filter_bits_per_key: self.filter_bits_per_key,
                parts_beyond_bytes: self.parts_beyond_bytes,
                l0_compact_files: self.l0_compact_files,
                l0_stop_files: self.l0_compact_files + 2,
                l1_bytes: self.l1_bytes,
                file_bytes: self.file_bytes,
                log_segment_bytes: Some(self.log_segment_bytes),
            },
            ..Options::default()
        }
    }
}

fn compression() -> impl Strategy<Value = Compression> {
    prop_oneof![
        Just(Compression::None),
        Just(Compression::Lz4),
        Just(Compression::Zstd { level: 1 })
    ]
}

/// Random settings.
pub fn settings() -> impl Strategy<Value = Settings> {
    let sizes = (
        prop::option::of(1..20u64),
        prop::sample::select(vec![1, 64, 300, 4096]),
        1..6usize,
        prop::sample::select(vec![0, 1, 10]),
        1..5usize,
        prop::sample::select(vec![1, 500, 4000, 1 << 20]),
        prop::sample::select(vec![1, 300, 2000, 1 << 20]),
        prop::sample::select(vec![1024, 4096, 1 << 16]),
    );
    let shared = (
        prop::sample::select(vec![256 << 10, 1 << 20]),
        1..4usize,
        prop::sample::select(vec![8, 100]),
    );
    (sizes, compression(), compression(), shared).prop_map(
        |(sizes, compression, bottom_compression, shared)| {
            let (memory_budget_bytes, background_threads, open_files_max) = shared;
            let (records, block, restart, filter, l0, l1, file, segment) = sizes;
            Settings {
                memory_budget_bytes,
                stripe_records_max: records,
                block_bytes: block,
                restart_interval: restart,
                filter_bits_per_key: filter,
                // In parts or not, half and half.
                parts_beyond_bytes: match block {
                    1 | 300 => 0,
                    _ => Tuning::default().parts_beyond_bytes,
                },
                l0_compact_files: l0,
                l1_bytes: l1,
                file_bytes: file,
                log_segment_bytes: segment,
                compression,
                bottom_compression,
                background_threads,
                open_files_max,
            }
        },
    )
}
