//! Reading a sorted set in its order: by rank, by score, by name.
//!
//! A set that is asked about often is read from its in-memory form ([`Ranked`]), another from its
//! index records, as few of them as the question needs. Reading many of them is what makes a set
//! worth loading.

use std::ops::{Bound, ControlFlow, Range};

use crate::commands::sorted_sets::bounds::{LexEnd, LexRange, ScoreRange};
use crate::commands::sorted_sets::layout::{self, Extent};
use crate::commands::sorted_sets::ranked::{MEMBER_BYTES, Ranked, order};
use crate::commands::sorted_sets::set::SortedSet;
use crate::fault::Result;
use crate::store::Txn;

/// Taking the first record costs more than reading on: the iterator has to be made.
const SEEK_COST: usize = 32;
/// How long names are taken to be before any was seen.
const NAME_LEN: usize = 16;

/// What is shown of a range: how many are left out at first, and how many are shown then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

impl Window {
    /// All of it.
    pub(crate) const ALL: Window = Window { offset: 0, limit: usize::MAX };

    /// The positions of it that are shown.
    fn of(self, range: Range<usize>, reverse: bool) -> Range<usize> {
        let len = range.len().saturating_sub(self.offset).min(self.limit);
        if reverse {
            let end = range.end.saturating_sub(self.offset);
            return end.saturating_sub(len).min(end)..end;
        }
        let start = range.start.saturating_add(self.offset);
        start..start.saturating_add(len)
    }
}

/// One sorted set being read.
#[derive(Debug)]
pub(crate) struct Walk<'t, 's, 'k> {
    txn: &'t mut Txn<'s>,
    key: &'k [u8],
    len: usize,
    extent: &'k Extent,
}

impl<'t, 's, 'k> Walk<'t, 's, 'k> {
    pub(crate) fn new(txn: &'t mut Txn<'s>, key: &'k [u8], set: &'k SortedSet) -> Self {
        Walk { txn, key, len: set.len(), extent: set.extent() }
    }

    /// Where in the index the members are.
    fn all(&self) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
        (Bound::Included(self.extent.floor()), Bound::Excluded(self.extent.ceiling()))
    }

    /// A range of scores in the index, no longer than need be.
    fn clipped<'r>(&'r self, places: &'r (Vec<u8>, Vec<u8>)) -> (Bound<&'r [u8]>, Bound<&'r [u8]>) {
        let low = places.0.as_slice().max(self.extent.floor());
        let high = places.1.as_slice().min(self.extent.ceiling()).max(low);
        (Bound::Included(low), Bound::Excluded(high))
    }

    /// The set's in-memory form, if it has one or is due to get one.
    fn ranked(&mut self) -> Result<Option<&Ranked>> {
        if self.txn.resident::<Ranked>(self.key).is_none() {
            let bytes = self.len.saturating_mul(MEMBER_BYTES + NAME_LEN);
            if !self.txn.is_resident_due(self.key, self.len, bytes) {
                return Ok(None);
            }
            let mut members = Vec::with_capacity(self.len);
            let (low, high) = self.all();
            self.scan(low, high, false, Window::ALL, |member, score| {
                members.push((member.into(), score));
                ControlFlow::Continue(())
            })?;
            self.txn.admit_resident(self.key, Ranked::from_ordered(members.into_iter()));
        }
        Ok(self.txn.resident(self.key))
    }

    /// Reads index records, and returns how many.
    fn scan(
        &self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        reverse: bool,
        window: Window,
        mut see: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<usize> {
        let mut read = 0;
        let end = window.offset.saturating_add(window.limit);
        if window.limit == 0 {
            return Ok(0);
        }
        self.txn.each_part(self.key, low, high, reverse, |sk, value| {
            read += 1;
            if read <= window.offset {
                return Ok(ControlFlow::Continue(()));
            }
            let (member, score) = layout::read_index(sk, value)?;
            let flow = see(member, score);
            Ok(if read >= end { ControlFlow::Break(()) } else { flow })
        })?;
        Ok(read)
    }

    /// The same for a set that is not loaded: what it costs counts towards loading it.
    fn scan_cold(
        &self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        reverse: bool,
        window: Window,
        see: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<usize> {
        let read = self.scan(low, high, reverse, window, see)?;
        // Loaded when it is asked about the next time, not now: it may never be.
        self.txn.note_read(self.key, read + SEEK_COST);
        Ok(read)
    }

    /// Shows the members at these positions, counted from the end they are shown from.
    pub(crate) fn by_rank(
        &mut self,
        positions: Range<usize>,
        reverse: bool,
        mut see: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = self.len;
        let window = Window { offset: positions.start, limit: positions.len() };
        if positions.is_empty() {
            return Ok(());
        }
        if let Some(ranked) = self.ranked()? {
            ranked.walk(window.of(0..len, reverse), reverse, see);
            return Ok(());
        }
        let (low, high) = self.all();
        if positions.start <= len / 2 {
            self.scan_cold(low, high, reverse, window, see)?;
            return Ok(());
        }
        // The other end is nearer.
        let mut seen = Vec::with_capacity(positions.len().min(len));
        let offset = len.saturating_sub(positions.end);
        self.scan_cold(low, high, !reverse, Window { offset, ..window }, |name, score| {
            seen.push((name.to_vec(), score));
            ControlFlow::Continue(())
        })?;
        let _ = seen.iter().rev().try_for_each(|(name, score)| see(name, *score));
        Ok(())
    }

    /// Shows the members whose scores are in a range.
    pub(crate) fn by_score(
        &mut self,
        range: &ScoreRange,
        reverse: bool,
        window: Window,
        see: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<()> {
        if range.is_empty() || window.offset >= self.len {
            return Ok(());
        }
        if let Some(ranked) = self.ranked()? {
            ranked.walk(window.of(score_positions(ranked, range), reverse), reverse, see);
            return Ok(());
        }
        let places = score_places(range);
        let (low, high) = self.clipped(&places);
        self.scan_cold(low, high, reverse, window, see)?;
        Ok(())
    }

    /// How many members have scores in a range.
    pub(super) fn count_by_score(&mut self, range: &ScoreRange) -> Result<usize> {
        if range.is_empty() {
            return Ok(0);
        }
        if let Some(ranked) = self.ranked()? {
            return Ok(score_positions(ranked, range).len());
        }
        let places = score_places(range);
        let (low, high) = self.clipped(&places);
        self.scan_cold(low, high, false, Window::ALL, |_, _| ControlFlow::Continue(()))
    }

    /// Shows the members whose names are in a range. All scores are taken to be the same; where
    /// they are not, so much as Redis promises: some of the members.
    pub(super) fn by_lex(
        &mut self,
        range: &LexRange<'_>,
        reverse: bool,
        window: Window,
        mut see: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> Result<()> {
        if range.is_empty() || window.limit == 0 {
            return Ok(());
        }
        let len = self.len;
        if let Some(ranked) = self.ranked()?
            && ranked.scores().is_some_and(|(low, high)| low == high)
        {
            ranked.walk(window.of(lex_positions(ranked, range), reverse), reverse, see);
            return Ok(());
        }
        if let Some(score) = self.only_score()? {
            let (low, high) = lex_places(range, score);
            let (low, high) = (as_slices(&low), as_slices(&high));
            self.scan_cold(low, high, reverse, window, see)?;
            return Ok(());
        }
        let (mut offset, mut limit) = (window.offset, window.limit);
        self.by_rank(0..len, reverse, |name, score| {
            let (is_before, is_after) = match reverse {
                false => (range.is_below(name), range.is_above(name)),
                true => (range.is_above(name), range.is_below(name)),
            };
            if is_before {
                return ControlFlow::Continue(());
            }
            if is_after {
                return ControlFlow::Break(());
            }
            if offset > 0 {
                offset -= 1;
                return ControlFlow::Continue(());
            }
            see(name, score)?;
            limit -= 1;
            if limit == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }

    /// How many members have names in a range.
    pub(super) fn count_by_lex(&mut self, range: &LexRange<'_>) -> Result<usize> {
        if let Some(ranked) = self.ranked()?
            && ranked.scores().is_some_and(|(low, high)| low == high)
        {
            return Ok(if range.is_empty() { 0 } else { lex_positions(ranked, range).len() });
        }
        let mut count = 0;
        self.by_lex(range, false, Window::ALL, |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// The score of all members, if it is the same.
    fn only_score(&self) -> Result<Option<f64>> {
        let (low, high) = self.all();
        let (mut first, mut last) = (None, None);
        for (reverse, score_of_end) in [(false, &mut first), (true, &mut last)] {
            self.scan(low, high, reverse, Window { offset: 0, limit: 1 }, |_, score| {
                *score_of_end = Some(score);
                ControlFlow::Break(())
            })?;
        }
        Ok(first.filter(|_| first == last))
    }

    /// How many members come before one that has this score.
    pub(super) fn rank(&mut self, member: &[u8], score: f64) -> Result<usize> {
        if let Some(ranked) = self.ranked()? {
            return Ok(ranked.position(|have, name| order((have, name), (score, member)).is_lt()));
        }
        let high = layout::index_key(score, member);
        let (low, high) = (self.all().0, Bound::Excluded(high.as_slice()));
        self.scan_cold(low, high, false, Window::ALL, |_, _| ControlFlow::Continue(()))
    }
}

fn score_positions(ranked: &Ranked, range: &ScoreRange) -> Range<usize> {
    let start = ranked.position(|score, _| range.is_below(score));
    start..ranked.position(|score, _| !range.is_above(score)).max(start)
}

fn lex_positions(ranked: &Ranked, range: &LexRange<'_>) -> Range<usize> {
    let start = ranked.position(|_, name| range.is_below(name));
    start..ranked.position(|_, name| !range.is_above(name)).max(start)
}

/// Where a range of scores begins in the index, and where what follows it does.
fn score_places(range: &ScoreRange) -> (Vec<u8>, Vec<u8>) {
    let min = layout::ordered(range.min) + u64::from(range.min_open);
    let max = layout::ordered(range.max) + u64::from(!range.max_open);
    (layout::index_place(min, b""), layout::index_place(max, b""))
}

/// The ends in the index of a range of names that all have one score.
fn lex_places(range: &LexRange<'_>, score: f64) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let ordered = layout::ordered(score);
    let place = |end: LexEnd<'_>| match end {
        LexEnd::Lowest => Bound::Included(layout::index_place(ordered, b"")),
        LexEnd::Highest => Bound::Excluded(layout::index_place(ordered + 1, b"")),
        LexEnd::At { name, is_open: true } => Bound::Excluded(layout::index_place(ordered, name)),
        LexEnd::At { name, is_open: false } => Bound::Included(layout::index_place(ordered, name)),
    };
    (place(range.min), place(range.max))
}

fn as_slices(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
