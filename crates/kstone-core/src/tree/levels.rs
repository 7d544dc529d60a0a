//! The files of one stripe, by level.
//!
//! Invariants: L0 is ordered newest first and its files' sequence ranges do not overlap; each
//! deeper level is sorted by key, its files share no key; of two files that share a key, the one
//! at the higher level (smaller number) holds the newer versions.

use std::sync::Arc;

use crate::entry::Seq;
use crate::error::Result;
use crate::sst::{SstHit, SstMeta, SstReader};
use crate::tree::cursor::{Cursor, RunCursor};
use crate::tree::file::TreeFile;

/// The files of a stripe at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Levels {
    levels: Vec<Vec<Arc<TreeFile>>>,
    max_mark_seq: Seq,
    /// The only file's, if there is just one: a get goes straight there, past four places in memory.
    only_reader: Option<Arc<SstReader>>,
}

impl Levels {
    /// Level `n` (0 = L0); empty where there is none.
    pub(crate) fn level(&self, n: usize) -> &[Arc<TreeFile>] {
        self.levels.get(n).map_or(&[], Vec::as_slice)
    }

    /// How many levels there are, L0 included.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<TreeFile>> {
        self.levels.iter().flatten()
    }

    pub(crate) fn level_bytes(&self, n: usize) -> u64 {
        self.level(n).iter().map(|file| file.meta().file_bytes).sum()
    }

    /// How many files a reader may look into that would not be there if L0 were merged into L1.
    pub(crate) fn extra_files(&self) -> u64 {
        let l0 = self.level(0).len() as u64;
        if self.level(1).is_empty() { l0.saturating_sub(1) } else { l0 }
    }

    /// The newest partition drop in any file; 0 when there is none.
    pub(crate) fn max_mark_seq(&self) -> Seq {
        self.max_mark_seq
    }

    /// The same tree with files added and removed.
    pub(crate) fn edited(&self, add: &[(u8, Arc<TreeFile>)], remove: &[u64]) -> Levels {
        let mut levels = self.levels.clone();
        for level in &mut levels {
            level.retain(|file| !remove.contains(&file.meta().file_id));
        }
        for (level, file) in add {
            let level = usize::from(*level);
            if levels.len() <= level {
                levels.resize_with(level + 1, Vec::new);
            }
            if let Some(files) = levels.get_mut(level) {
                files.push(Arc::clone(file));
            }
        }
        for (n, files) in levels.iter_mut().enumerate() {
            if n == 0 {
                files.sort_by(|a, b| newest_first(a.meta(), b.meta()));
            } else {
                files.sort_by(|a, b| a.meta().smallest.cmp(&b.meta().smallest));
            }
        }
        while levels.last().is_some_and(Vec::is_empty) {
            levels.pop();
        }
        let max_mark_seq =
            levels.iter().flatten().map(|f| f.meta().max_mark_seq).max().unwrap_or(0);
        let mut files = levels.iter().flatten();
        let only_reader = match (files.next(), files.next()) {
            (Some(file), None) => Some(Arc::clone(&file.reader)),
            _ => None,
        };
        Levels { levels, max_mark_seq, only_reader }
    }

    /// The newest version of `key` at or below `max_seq`.
    pub(crate) fn get(&self, key: &[u8], hash: u64, max_seq: Seq) -> Result<Option<SstHit>> {
        // Whether a file's bounds hold the key, its reader looks itself.
        if let Some(only) = &self.only_reader {
            return only.get(key, hash, max_seq);
        }
        for file in self.level(0) {
            if let Some(hit) = file.reader.get(key, hash, max_seq)? {
                return Ok(Some(hit));
            }
        }
        for files in self.levels.iter().skip(1) {
            let at = match files.as_slice() {
                [_] => 0,
                files => files.partition_point(|file| file.meta().largest.as_slice() < key),
            };
            if let Some(file) = files.get(at)
                && let Some(hit) = file.reader.get(key, hash, max_seq)?
            {
                return Ok(Some(hit));
            }
        }
        Ok(None)
    }

    /// Cursors over everything that may hold a key of `[low, high)`, newest source first.
    pub(crate) fn cursors(&self, low: &[u8], high: Option<&[u8]>, into: &mut Vec<Cursor>) {
        for file in self.level(0).iter().filter(|file| file.overlaps(low, high)) {
            into.push(Cursor::file(file, true));
        }
        for level in self.levels.iter().skip(1) {
            into.extend(run_cursor(level, low, high));
        }
    }

    /// The cursor that [`cursors`](Self::cursors) would give, if it would give just one.
    pub(crate) fn only_cursor(&self, low: &[u8], high: Option<&[u8]>) -> Option<Cursor> {
        let l0 = self.level(0).iter().filter(|file| file.overlaps(low, high));
        let runs = self.levels.iter().skip(1).filter_map(|level| run_cursor(level, low, high));
        let mut cursors = l0.map(|file| Cursor::file(file, true)).chain(runs);
        let first = cursors.next()?;
        cursors.next().is_none().then_some(first)
    }

    /// Whether any file may hold a key of `[low, high)`.
    pub(crate) fn overlap(&self, low: &[u8], high: Option<&[u8]>) -> bool {
        self.files().any(|file| file.overlaps(low, high))
    }
}

/// A cursor over what a level below L0 has of `[low, high)`, if it has any.
fn run_cursor(files: &[Arc<TreeFile>], low: &[u8], high: Option<&[u8]>) -> Option<Cursor> {
    let mut files = files.iter().filter(|file| file.overlaps(low, high));
    let first = files.next()?;
    Some(match files.next() {
        None => Cursor::file(first, true),
        Some(second) => {
            let run = [first, second].into_iter().chain(files).cloned().collect();
            Cursor::Run(RunCursor::new(run, true))
        }
    })
}

/// L0 order. Sequence ranges of L0 files do not overlap, except that the files of one bulk ingest
/// share their number; those share no key, so their order does not matter, only that it is fixed.
fn newest_first(a: &SstMeta, b: &SstMeta) -> std::cmp::Ordering {
    b.newest_seq().cmp(&a.newest_seq()).then(a.file_id.cmp(&b.file_id))
}
