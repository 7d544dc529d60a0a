//! Frees the space of dropped tables and partitions where ordinary compaction has no reason to pass.
//!
//! Dropping a table is a mark. Flush and compaction leave out its records when they pass, and this
//! makes them pass: a file that holds nothing else is removed unread, one that begins or ends in
//! the table is rewritten where it is. (One that has it in its middle waits for compaction: from
//! the outside it looks the same before and after.)
//!
//! Dropped partitions and deletes leave marks and tombstones in the upper levels. A stripe that
//! has them and has not been flushed for a while is merged once, whole.

use std::sync::atomic::Ordering;

use crate::engine::Inner;
use crate::engine::compact::Claim;
use crate::engine::install::Change;
use crate::entry::Seq;
use crate::error::Result;
use crate::key::internal;
use crate::sync::Arc;
use crate::table::TableId;
use crate::tree::file::TreeFile;
use crate::tree::levels::Levels;
use crate::tree::picker::Task;

/// How long a stripe must have been quiet before its tombstones are worth a whole merge. Sooner,
/// and a stripe that is written to all the time would be merged all the time.
const QUIET_MS: u64 = 30_000;

/// The key range of a table that no reader sees any more.
pub(crate) struct Dropped {
    low: Vec<u8>,
    high: Vec<u8>,
}

impl Inner {
    /// Removes or rewrites one file that holds records of a dropped table; answers whether there
    /// was one.
    pub(crate) fn reclaim_step(&self) -> Result<bool> {
        let dropped = self.reclaimable_tables();
        if dropped.is_empty() {
            return Ok(false);
        }
        for stripe in 0..=255u8 {
            let levels = Arc::clone(&self.stripe(stripe).version().levels);
            if find(&levels, &dropped).is_none() {
                continue;
            }
            let Some(_claim) = Claim::take(self, stripe) else { continue };
            // Again under the claim: a compaction may just have changed the files.
            let levels = Arc::clone(&self.stripe(stripe).version().levels);
            if let Some((level, file, is_whole)) = find(&levels, &dropped) {
                self.reclaim_file(stripe, &levels, level, file, is_whole)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Merges one quiet stripe whose upper levels hold drops or many deletes; answers whether there
    /// was one.
    pub(crate) fn settle_step(&self) -> Result<bool> {
        let now_ms = self.clock.monotonic().as_millis() as u64;
        let oldest = self.snapshots.boundaries(&self.log).oldest();
        for stripe in 0..=255u8 {
            let tree = self.stripe(stripe);
            let quiet_since = tree.touched_ms.load(Ordering::Relaxed);
            if now_ms.saturating_sub(quiet_since) < QUIET_MS
                || !has_garbage(&tree.version().levels, oldest)
            {
                continue;
            }
            // Whatever comes of it, not again for a while: a snapshot may keep the garbage alive.
            tree.touched_ms.store(now_ms, Ordering::Relaxed);
            self.compact_whole(&[stripe].into_iter().collect(), false)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn reclaim_file(
        &self,
        stripe: u8,
        levels: &Levels,
        level: u8,
        file: Arc<TreeFile>,
        is_whole: bool,
    ) -> Result<()> {
        let inputs = vec![(level, file)];
        if is_whole {
            let (add, flushed) = (Vec::new(), None);
            return self.install(vec![Change { stripe, add, remove: inputs, flushed }]);
        }
        self.compact(stripe, levels, &Task { inputs, output_level: level, is_move: false })
    }

    /// Tables whose drop every reader sees.
    pub(crate) fn reclaimable_tables(&self) -> Vec<Dropped> {
        let tables = self.tables();
        if tables.known.values().all(|table| table.dropped_seq.is_none()) {
            return Vec::new();
        }
        let oldest = self.snapshots.boundaries(&self.log).oldest();
        tables
            .known
            .iter()
            .filter(|(_, table)| table.dropped_seq.is_some_and(|seq| seq <= oldest))
            .map(|(&id, _)| Dropped {
                low: internal::table_start(TableId(id)),
                high: internal::table_start(TableId(id.saturating_add(1))),
            })
            .collect()
    }
}

/// Whether files hold a partition drop, or deletes for a quarter of what they hold, that a merge
/// would remove: in the last level only what a snapshot had kept, and keeps no longer.
fn has_garbage(levels: &Levels, oldest: Seq) -> bool {
    let last = levels.depth().saturating_sub(1).max(1);
    let upper = (0..last).flat_map(|n| levels.level(n));
    let kept = levels.level(last).iter().filter(|file| file.meta().newest_seq() <= oldest);
    let (mut deletes, mut entries, mut marks) = (0, 0, 0);
    for meta in upper.chain(kept).map(|file| file.meta()) {
        deletes += meta.deletes;
        entries += meta.entries;
        marks += meta.marks;
    }
    marks > 0 || (deletes > 0 && deletes * 4 >= entries)
}

/// Whether a file may hold records of a dropped table.
pub(crate) fn touches(file: &TreeFile, dropped: &[Dropped]) -> bool {
    dropped.iter().any(|table| file.overlaps(&table.low, Some(&table.high)))
}

/// A file that holds records of a dropped table, and whether it holds nothing else.
fn find(levels: &Levels, dropped: &[Dropped]) -> Option<(u8, Arc<TreeFile>, bool)> {
    for level in 0..levels.depth() {
        for file in levels.level(level) {
            let meta = file.meta();
            for table in dropped {
                let holds_first = in_table(&meta.smallest, table);
                let holds_last = in_table(&meta.largest, table);
                if holds_first || holds_last {
                    return Some((level as u8, Arc::clone(file), holds_first && holds_last));
                }
            }
        }
    }
    None
}

fn in_table(key: &[u8], table: &Dropped) -> bool {
    key >= table.low.as_slice() && key < table.high.as_slice()
}
