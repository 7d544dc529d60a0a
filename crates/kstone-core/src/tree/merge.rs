//! Merges sorted sources into one sequence of entries, in entry order, forward or backward.
//!
//! With the few sources a stripe has (memtables, a handful of L0 files, one run a level), finding
//! the least by looking at each beats a heap: no entry is moved, and most steps stay with the
//! source they came from.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::entry::{EntryRef, Seq, entry_order};
use crate::error::Result;
use crate::tree::cursor::Cursor;

/// The union of several cursors.
#[derive(Debug)]
pub(crate) struct Merge {
    sources: Vec<Cursor>,
    /// The source that holds the current entry.
    at: Option<usize>,
}

impl Merge {
    /// Sources in order of age, newest first: of two equal entries the newer source's comes first.
    pub(crate) fn new(sources: Vec<Cursor>) -> Self {
        Merge { sources, at: None }
    }

    pub(crate) fn entry(&self) -> Option<EntryRef<'_>> {
        self.sources.get(self.at?)?.entry()
    }

    /// Which of the sources holds the current entry.
    pub(crate) fn source(&self) -> Option<usize> {
        self.at
    }

    pub(crate) fn value_bytes(&self) -> Bytes {
        self.at.and_then(|at| self.sources.get(at)).map(Cursor::value_bytes).unwrap_or_default()
    }

    /// Goes to the first entry at or behind (key, seq).
    pub(crate) fn seek(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        for source in &mut self.sources {
            source.seek(key, seq)?;
        }
        self.pick(Ordering::Less);
        Ok(())
    }

    /// Goes to the last entry strictly in front of (key, seq). From here on only `prev` may follow.
    pub(crate) fn seek_before(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        for source in &mut self.sources {
            source.seek_before(key, seq)?;
        }
        self.pick(Ordering::Greater);
        Ok(())
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        if let Some(source) = self.at.and_then(|at| self.sources.get_mut(at)) {
            source.next()?;
            self.pick(Ordering::Less);
        }
        Ok(())
    }

    pub(crate) fn prev(&mut self) -> Result<()> {
        if let Some(source) = self.at.and_then(|at| self.sources.get_mut(at)) {
            source.prev()?;
            self.pick(Ordering::Greater);
        }
        Ok(())
    }

    /// Makes current the source whose entry is the least (`wanted` = Less) or the greatest.
    fn pick(&mut self, wanted: Ordering) {
        let mut best: Option<(usize, EntryRef<'_>)> = None;
        for (i, source) in self.sources.iter().enumerate() {
            let Some(entry) = source.entry() else { continue };
            let better = best
                .as_ref()
                .is_none_or(|(_, b)| entry_order(entry.key, entry.seq, b.key, b.seq) == wanted);
            if better {
                best = Some((i, entry));
            }
        }
        self.at = best.map(|(i, _)| i);
    }
}
