//! Merges sorted sources into one sequence of entries, in entry order, forward or backward.
//!
//! With the few sources a stripe has (memtables, a handful of L0 files, one run a level), finding
//! the least by looking at each beats a heap: no entry is moved. Most steps stay with the source they
//! came from, so the next best is remembered: as long as it has not had its turn, a step looks at two
//! entries, however many sources there are.

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
    /// The source that comes next when this one's entries are behind its own.
    rival: Option<usize>,
}

impl Merge {
    /// Sources in order of age, newest first: of two equal entries the newer source's comes first.
    pub(crate) fn new(sources: Vec<Cursor>) -> Self {
        Merge { sources, at: None, rival: None }
    }

    #[inline]
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
            self.stay_or_pick(Ordering::Less);
        }
        Ok(())
    }

    pub(crate) fn prev(&mut self) -> Result<()> {
        if let Some(source) = self.at.and_then(|at| self.sources.get_mut(at)) {
            source.prev()?;
            self.stay_or_pick(Ordering::Greater);
        }
        Ok(())
    }

    /// After a step of the current source: the others are where they were, so only the best of them
    /// can be ahead of it.
    fn stay_or_pick(&mut self, wanted: Ordering) {
        if !self.is_ahead(wanted) {
            self.pick(wanted);
        }
    }

    /// Whether the current source still comes before all others.
    fn is_ahead(&self, wanted: Ordering) -> bool {
        let Some(at) = self.at else { return false };
        let Some(entry) = self.sources.get(at).and_then(Cursor::entry) else { return false };
        let Some(rival) = self.rival else { return true };
        let Some(other) = self.sources.get(rival).and_then(Cursor::entry) else { return false };
        match entry_order(entry.key, entry.seq, other.key, other.seq) {
            Ordering::Equal => at < rival,
            order => order == wanted,
        }
    }

    /// Makes current the source whose entry is the least (`wanted` = Less) or the greatest.
    fn pick(&mut self, wanted: Ordering) {
        let mut best: Option<(usize, EntryRef<'_>)> = None;
        let mut second: Option<(usize, EntryRef<'_>)> = None;
        for (i, source) in self.sources.iter().enumerate() {
            let Some(entry) = source.entry() else { continue };
            let is_before = |than: &Option<(usize, EntryRef<'_>)>| {
                than.as_ref()
                    .is_none_or(|(_, b)| entry_order(entry.key, entry.seq, b.key, b.seq) == wanted)
            };
            if is_before(&best) {
                second = best.replace((i, entry));
            } else if is_before(&second) {
                second = Some((i, entry));
            }
        }
        self.at = best.map(|(i, _)| i);
        self.rival = second.map(|(i, _)| i);
    }
}
