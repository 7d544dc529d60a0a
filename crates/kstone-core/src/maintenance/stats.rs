//! Statistics: per stripe and in total.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::{Engine, Inner};

/// The state of the database and what happened since it was opened.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// One for each stripe, in order.
    pub stripes: Vec<StripeStats>,
    /// Sums over all stripes.
    pub total: StripeStats,
    /// Bytes that callers committed.
    pub user_bytes: u64,
    /// Bytes that the log wrote.
    pub log_bytes_written: u64,
    /// Bytes that the log holds on disk now.
    pub log_bytes: u64,
    /// Flushes, each of one or more stripes.
    pub flushes: u64,
    /// Bytes that flushes wrote.
    pub flush_bytes: u64,
    /// Compactions that rewrote files.
    pub compactions: u64,
    /// Compactions that only moved a file to another level.
    pub compaction_moves: u64,
    /// Bytes that compactions read.
    pub compaction_read_bytes: u64,
    /// Bytes that compactions wrote.
    pub compaction_write_bytes: u64,
    /// Bytes that bulk ingest wrote.
    pub ingest_bytes: u64,
    /// Bytes of SST files read.
    pub file_read_bytes: u64,
    /// Data blocks found in the cache.
    pub cache_hits: u64,
    /// Data blocks read from a file.
    pub cache_misses: u64,
    /// Bytes that the block cache holds.
    pub cache_bytes: u64,
    /// Gets that a filter answered: the key is not in the file.
    pub filter_useful: u64,
    /// Gets that a filter let pass in vain.
    pub filter_false_positives: u64,
    /// Commits.
    pub commits: u64,
    /// Syncs of the log.
    pub syncs: u64,
    /// Sync latency: `sync_us[i]` counts the syncs that took less than 2^i microseconds and not
    /// less than 2^(i-1).
    pub sync_us: Vec<u64>,
    /// How often a writer had to wait for memory or for a stripe with too many files.
    pub stalls: u64,
    /// How long, in microseconds, in total.
    pub stalled_us: u64,
    /// The longest wait.
    pub longest_stall_us: u64,
    /// Memory held by memtables.
    pub memtable_bytes: u64,
}

/// One stripe, or the sum of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StripeStats {
    /// Records, as far as can be told without reading: puts less deletes, overwritten versions
    /// included until compaction removes them.
    pub records: u64,
    /// Entries of all kinds, in memory and in files.
    pub entries: u64,
    /// Uncompressed bytes of keys and values.
    pub data_bytes: u64,
    /// Bytes of files.
    pub file_bytes: u64,
    /// Files.
    pub files: u64,
    /// Files in L0, each of which a get may have to ask.
    pub l0_files: u64,
    /// Levels that hold files, L0 included.
    pub levels: u64,
    /// Memory held by memtables.
    pub memtable_bytes: u64,
    /// Gets since it was opened.
    pub gets: u64,
    /// Records written since it was opened.
    pub writes: u64,
    /// Bytes of keys and values written since it was opened.
    pub bytes_written: u64,
    /// Bytes that flushes and compactions wrote for them.
    pub bytes_rewritten: u64,
}

impl Stats {
    /// Bytes written to disk for each byte committed: log, flush and compaction.
    pub fn write_amplification(&self) -> f64 {
        let written = self.log_bytes_written + self.flush_bytes + self.compaction_write_bytes;
        written as f64 / self.user_bytes.max(1) as f64
    }

    /// Sources that a get that finds nothing must ask, at worst: memtable, L0 files, levels.
    pub fn read_amplification_max(&self) -> u64 {
        let sources =
            |s: &StripeStats| 1 + s.l0_files + s.levels.saturating_sub(u64::from(s.l0_files > 0));
        self.stripes.iter().map(sources).max().unwrap_or(1)
    }

    /// The share of data blocks found in the cache.
    pub fn cache_hit_rate(&self) -> f64 {
        self.cache_hits as f64 / (self.cache_hits + self.cache_misses).max(1) as f64
    }

    /// Commits for each sync of the log.
    pub fn commits_per_sync(&self) -> f64 {
        self.commits as f64 / self.syncs.max(1) as f64
    }

    /// An upper bound, in microseconds, for the latency of a share `q` (0 to 1) of the syncs.
    pub fn sync_us_quantile(&self, q: f64) -> u64 {
        let total: u64 = self.sync_us.iter().sum();
        let wanted = (total as f64 * q).ceil() as u64;
        let mut seen = 0;
        for (i, count) in self.sync_us.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return 1 << i;
            }
        }
        0
    }
}

impl StripeStats {
    fn add(&mut self, other: &StripeStats) {
        self.records += other.records;
        self.entries += other.entries;
        self.data_bytes += other.data_bytes;
        self.file_bytes += other.file_bytes;
        self.files += other.files;
        self.l0_files += other.l0_files;
        self.levels = self.levels.max(other.levels);
        self.memtable_bytes += other.memtable_bytes;
        self.gets += other.gets;
        self.writes += other.writes;
        self.bytes_written += other.bytes_written;
        self.bytes_rewritten += other.bytes_rewritten;
    }
}

impl Engine {
    /// Statistics, gathered without stopping anybody.
    pub fn stats(&self) -> Stats {
        self.inner().stats()
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Inner {
    fn stats(&self) -> Stats {
        let stripes: Vec<_> = (0..=255).map(|stripe| self.stripe_stats(stripe)).collect();
        let mut total = StripeStats::default();
        stripes.iter().for_each(|stripe| total.add(stripe));
        let (log, reads, counters) = (self.log.stats(), self.cache.stats(), &self.counters);
        Stats {
            total,
            stripes,
            user_bytes: load(&counters.user_bytes),
            log_bytes_written: log.bytes,
            log_bytes: self.log.live_bytes(),
            flushes: load(&counters.flushes),
            flush_bytes: load(&counters.flush_bytes),
            compactions: load(&counters.compactions),
            compaction_moves: load(&counters.compaction_moves),
            compaction_read_bytes: load(&counters.compaction_read_bytes),
            compaction_write_bytes: load(&counters.compaction_write_bytes),
            ingest_bytes: load(&counters.ingest_bytes),
            file_read_bytes: reads.file_read_bytes,
            cache_hits: reads.data_hits,
            cache_misses: reads.data_misses,
            cache_bytes: self.cache.used_bytes(),
            filter_useful: reads.filter_useful,
            filter_false_positives: reads.filter_false_positives,
            commits: log.commits,
            syncs: log.syncs,
            sync_us: log.sync_latency.to_vec(),
            stalls: load(&self.admission.stalls),
            stalled_us: load(&self.admission.stalled_us),
            longest_stall_us: load(&self.admission.longest_stall_us),
            memtable_bytes: self.admission.used_bytes() as u64,
        }
    }

    fn stripe_stats(&self, stripe: u8) -> StripeStats {
        let tree = self.stripe(stripe);
        let version = tree.version();
        let mut stats = StripeStats::default();
        let (mut puts, mut deletes) = (0, 0);
        for table in std::iter::once(&version.active).chain(&version.frozen) {
            // Each record with an expiry has a second put, in the expiry index.
            puts += table.puts().saturating_sub(table.expiring());
            deletes += table.deletes();
            stats.entries += table.len();
            stats.data_bytes += table.key_bytes() + table.value_bytes();
            if !table.is_empty() {
                stats.memtable_bytes += table.bytes() as u64;
            }
        }
        for level in 0..version.levels.depth() {
            let files = version.levels.level(level);
            stats.levels += u64::from(!files.is_empty());
            for file in files {
                let meta = file.meta();
                puts += meta.puts.saturating_sub(meta.expiring);
                deletes += meta.deletes;
                stats.entries += meta.entries;
                stats.data_bytes += meta.key_bytes + meta.value_bytes;
                stats.file_bytes += meta.file_bytes;
                stats.files += 1;
                stats.l0_files += u64::from(level == 0);
            }
        }
        stats.records = puts.saturating_sub(deletes);
        stats.gets = load(&tree.stats.gets);
        stats.writes = load(&tree.stats.writes);
        stats.bytes_written = load(&tree.stats.bytes_written);
        stats.bytes_rewritten = load(&tree.stats.bytes_flushed) + load(&tree.stats.bytes_compacted);
        stats
    }
}
