//! A list as records: the head has its two ends, and each element is a part under its position.
//!
//! Positions count up from the front to the back, without gaps, and start in the middle of the
//! number range, so that either end can grow: reaching an element by its index is one read.
//! Inserting or removing in the middle moves the elements on the shorter side by one position.

use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow, Range};

use bytes::Bytes;
use kstone_core::{BATCH_LEN_MAX, VALUE_LEN_MAX};

use crate::commands::lists::window::{self, Window};
use crate::fault::{Fault, Result};
use crate::store::{Kind, Txn};

/// The first byte of the sort key of an element.
const ELEMENT: u8 = 1;
/// Where the first element of a new list goes.
const MIDDLE: u64 = 1 << 63;
/// How many bytes of elements one command may move by a place: they have to fit into one commit,
/// which has something else to hold too.
const MOVED_BYTES_MAX: usize = BATCH_LEN_MAX / 2;

/// Up to so many records are removed one by one: a mark for all of them is short, but who reads the
/// key passes by it until it is compacted away.
const ONE_BY_ONE: u64 = 64;

const DAMAGED: Fault = Fault::fixed("MISCONF a stored list is damaged");
const TOO_LONG: Fault = Fault::fixed("ERR element exceeds maximum allowed size (16 MB)");
const TOO_MUCH_TO_MOVE: Fault =
    Fault::fixed("ERR list is too long for a change so far from both of its ends");

/// One of the two ends of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

/// The head of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List {
    /// The place of the first element.
    first: u64,
    len: u64,
    expires_at_ms: Option<u64>,
}

/// Refuses an element that no record can hold.
pub(super) fn check_element(element: &[u8]) -> Result<()> {
    if element.len() > VALUE_LEN_MAX { Err(TOO_LONG) } else { Ok(()) }
}

fn sort_key(place: u64) -> [u8; 9] {
    let mut key = [ELEMENT; 9];
    if let Some(rest) = key.last_chunk_mut::<8>() {
        *rest = place.to_be_bytes();
    }
    key
}

impl List {
    /// No elements yet.
    pub(crate) fn new() -> List {
        List { first: MIDDLE, len: 0, expires_at_ms: None }
    }

    /// The list at a key, if there is one; an error if the key holds something else.
    pub(crate) fn find(txn: &mut Txn<'_>, key: &[u8]) -> Result<Option<List>> {
        let Some(entry) = txn.lookup_kind(key, Kind::List)? else { return Ok(None) };
        let Some((first, rest)) = entry.body.split_first_chunk() else { return Err(DAMAGED) };
        let Ok(len) = rest.try_into() else { return Err(DAMAGED) };
        let (first, len) = (u64::from_le_bytes(*first), u64::from_le_bytes(len));
        Ok(Some(List { first, len, expires_at_ms: entry.expires_at_ms }))
    }

    /// Writes the head, or removes the key if no element is left. All parts are as they should be.
    pub(crate) fn save(&self, txn: &mut Txn<'_>, key: &[u8]) -> Result<()> {
        if self.len == 0 {
            txn.remove_empty(key);
            return Ok(());
        }
        let mut body = [0; 16];
        let (first, len) = body.split_at_mut(8);
        first.copy_from_slice(&self.first.to_le_bytes());
        len.copy_from_slice(&self.len.to_le_bytes());
        txn.put_head(key, Kind::List, &body, self.expires_at_ms)?;
        txn.touch(key);
        Ok(())
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The end that it has grown at since it began at this place, or since it was made.
    pub(crate) fn grown_end(&self, was_first: Option<u64>) -> End {
        let grown_by = was_first.unwrap_or(MIDDLE).wrapping_sub(self.first);
        if (1..MIDDLE).contains(&grown_by) { End::Front } else { End::Back }
    }

    fn place(&self, index: u64) -> u64 {
        self.first.wrapping_add(index)
    }

    /// The index that a client means, which counts from the end if it is negative; `None` if it is
    /// beyond the ends.
    pub(crate) fn index(&self, given: i64) -> Option<u64> {
        let index = match u64::try_from(given) {
            Ok(index) => index,
            Err(_) => self.len.checked_sub(given.unsigned_abs())?,
        };
        (index < self.len).then_some(index)
    }

    /// The indices from `start` to `stop`, both included, as a client means them.
    pub(crate) fn range(&self, start: i64, stop: i64) -> Range<u64> {
        let from_end = |given: i64| self.len.checked_sub(given.unsigned_abs());
        let start = u64::try_from(start).ok().or_else(|| from_end(start)).unwrap_or(0);
        let Some(stop) = u64::try_from(stop).ok().or_else(|| from_end(stop)) else { return 0..0 };
        let end = stop.saturating_add(1).min(self.len);
        if start < end { start..end } else { 0..0 }
    }

    /// The element at an index that is there.
    pub(crate) fn get(&self, txn: &mut Txn<'_>, key: &[u8], index: u64) -> Result<Bytes> {
        let place = self.place(index);
        if let Some(window) = txn.resident::<Window>(key)
            && let Some(mut elements) = window.get(&(place..place.wrapping_add(1)))
            && let Some(element) = elements.next()
        {
            return Ok(element.clone());
        }
        txn.part(key, &sort_key(place))?.ok_or(DAMAGED)
    }

    /// Writes the element at an index: a new one at an end, or another one.
    pub(crate) fn set(&self, txn: &mut Txn<'_>, key: &[u8], index: u64, element: Bytes) {
        let place = self.place(index);
        // Most lists have no window, and an element that is not shared is cheaper.
        let shared = txn.resident::<Window>(key).is_some().then(|| element.clone());
        txn.put_part(key, &sort_key(place), element);
        if let Some(element) = shared {
            txn.step_resident(key, 1, |window: &mut Window| window.put(place, &element));
        }
    }

    /// Removes the record of an element.
    fn unset(&self, txn: &mut Txn<'_>, key: &[u8], index: u64) {
        let place = self.place(index);
        txn.delete_part(key, &sort_key(place));
        txn.step_resident(key, 1, |window: &mut Window| window.delete(place));
    }

    /// Shows the elements in a range of indices, in order or from its end, until told to stop.
    pub(crate) fn each(
        &self,
        txn: &mut Txn<'_>,
        key: &[u8],
        range: Range<u64>,
        reverse: bool,
        mut see: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let places = self.place(range.start)..self.place(range.end);
        if let Some(window) = txn.resident::<Window>(key)
            && let Some(elements) = window.get(&places)
        {
            let _ = match reverse {
                false => range.zip(elements).try_for_each(|(index, element)| see(index, element)),
                true => (range.rev().zip(elements.rev()))
                    .try_for_each(|(index, element)| see(index, element)),
            };
            return Ok(());
        }
        let mut seen = 0;
        let mut bytes = 0;
        let mut stopped = false;
        self.read(txn, key, range.clone(), reverse, |element| {
            let index = if reverse { range.end - 1 - seen } else { range.start + seen };
            seen += 1;
            bytes += window::cost(element);
            let flow = see(index, element);
            stopped = flow.is_break();
            flow
        })?;
        if !stopped && seen != range.end - range.start {
            return Err(DAMAGED);
        }
        self.keep_in_memory(txn, key, range, seen as usize, bytes)
    }

    /// Keeps what was read in memory, with as much again on both sides, if it is read often.
    fn keep_in_memory(
        &self,
        txn: &mut Txn<'_>,
        key: &[u8],
        range: Range<u64>,
        seen: usize,
        bytes: usize,
    ) -> Result<()> {
        let len = range.end - range.start;
        let wanted = range.start.saturating_sub(len)..range.end.saturating_add(len).min(self.len);
        if bytes.saturating_mul(3) > window::BYTES_MAX {
            return Ok(());
        }
        txn.note_read(key, seen);
        if !txn.is_resident_due(key, 3 * len as usize, 3 * bytes) {
            return Ok(());
        }
        let mut elements = VecDeque::with_capacity((wanted.end - wanted.start) as usize);
        let first = self.place(wanted.start);
        self.read(txn, key, wanted, false, |element| {
            elements.push_back(Bytes::copy_from_slice(element));
            ControlFlow::Continue(())
        })?;
        txn.admit_resident(key, Window::new(first, elements));
        Ok(())
    }

    /// Taking one element after the other from an end loads the next ones into memory, many at a
    /// time: reading a stretch costs little more than reading one.
    fn read_ahead(&self, txn: &mut Txn<'_>, key: &[u8], end: End) -> Result<()> {
        const AFTER: usize = 16;
        const AHEAD: u64 = 1024;
        let is_due = match txn.resident::<Window>(key) {
            // The last stretch was used up.
            Some(window) if window.is_empty() => true,
            Some(_) => return Ok(()),
            None => {
                txn.note_read(key, 1);
                txn.is_resident_due(key, AFTER, 0)
            }
        };
        if !is_due || self.len < AFTER as u64 {
            return Ok(());
        }
        let count = self.len.min(AHEAD);
        let (range, is_back) = match end {
            End::Front => (0..count, false),
            End::Back => (self.len - count..self.len, true),
        };
        let (mut elements, mut bytes) = (VecDeque::with_capacity(count as usize), 0);
        self.read(txn, key, range.clone(), is_back, |element| {
            let element = Bytes::copy_from_slice(element);
            bytes += window::cost(&element);
            match is_back {
                true => elements.push_front(element),
                false => elements.push_back(element),
            }
            match bytes <= window::BYTES_MAX / 4 {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        let first = match end {
            End::Front => self.place(range.start),
            End::Back => self.place(range.end).wrapping_sub(elements.len() as u64),
        };
        txn.admit_resident(key, Window::new(first, elements));
        Ok(())
    }

    /// Reads the records of the elements in a range of indices that is not empty.
    fn read(
        &self,
        txn: &Txn<'_>,
        key: &[u8],
        range: Range<u64>,
        reverse: bool,
        mut see: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let low = sort_key(self.place(range.start));
        let high = sort_key(self.place(range.end).wrapping_sub(1));
        let (low, high) = (Bound::Included(&low[..]), Bound::Included(&high[..]));
        txn.each_part(key, low, high, reverse, |_, element| Ok(see(element)))
    }

    /// Adds an element at an end.
    pub(crate) fn push(&mut self, txn: &mut Txn<'_>, key: &[u8], end: End, element: Bytes) {
        if end == End::Front {
            self.first = self.first.wrapping_sub(1);
        }
        let index = if end == End::Front { 0 } else { self.len };
        self.len += 1;
        self.set(txn, key, index, element);
    }

    /// Takes an element from an end of a list that has one.
    pub(crate) fn pop(&mut self, txn: &mut Txn<'_>, key: &[u8], end: End) -> Result<Bytes> {
        let index = if end == End::Front { 0 } else { self.len.saturating_sub(1) };
        txn.note_engine_needed();
        self.read_ahead(txn, key, end)?;
        let element = self.get(txn, key, index)?;
        self.unset(txn, key, index);
        if end == End::Front {
            self.first = self.first.wrapping_add(1);
        }
        self.len -= 1;
        Ok(element)
    }

    /// Keeps only the elements in a range of indices: at the cost of those that stay or of those
    /// that go, whichever are fewer.
    pub(crate) fn keep(&mut self, txn: &mut Txn<'_>, key: &[u8], range: Range<u64>) -> Result<()> {
        let Range { start, end } = range;
        let kept = end - start;
        let rewritten = match self.len - kept {
            removed if removed <= kept.max(ONE_BY_ONE) => None,
            _ => self.collect(txn, key, start..end, |_| true)?,
        };
        match rewritten {
            Some(elements) => self.replace(txn, key, elements)?,
            None => {
                self.delete(txn, key, 0..start);
                self.delete(txn, key, end..self.len);
                self.first = self.place(start);
                self.len = kept;
            }
        }
        Ok(())
    }

    /// Removes the records of these elements one by one.
    fn delete(&self, txn: &mut Txn<'_>, key: &[u8], range: Range<u64>) {
        for index in range {
            self.unset(txn, key, index);
        }
    }

    /// Removes all records at once, and writes these instead.
    fn replace(&mut self, txn: &mut Txn<'_>, key: &[u8], elements: Vec<Bytes>) -> Result<()> {
        if let Some(entry) = txn.lookup(key)? {
            txn.remove_to_rewrite(key, &entry);
        }
        (self.first, self.len) = (MIDDLE, 0);
        for element in elements {
            self.push(txn, key, End::Back, element);
        }
        Ok(())
    }

    /// Puts an element before the one at an index.
    pub(crate) fn insert(
        &mut self,
        txn: &mut Txn<'_>,
        key: &[u8],
        index: u64,
        element: Bytes,
    ) -> Result<()> {
        if index < self.len / 2 {
            let moved = self.collect(txn, key, 0..index, |_| true)?.ok_or(TOO_MUCH_TO_MOVE)?;
            self.first = self.first.wrapping_sub(1);
            for (index, element) in (0..).zip(moved) {
                self.set(txn, key, index, element);
            }
        } else {
            let moved =
                self.collect(txn, key, index..self.len, |_| true)?.ok_or(TOO_MUCH_TO_MOVE)?;
            for (index, element) in (index + 1..).zip(moved) {
                self.set(txn, key, index, element);
            }
        }
        self.len += 1;
        self.set(txn, key, index, element);
        Ok(())
    }

    /// Takes out the elements at some indices, given in ascending order.
    pub(crate) fn remove(&mut self, txn: &mut Txn<'_>, key: &[u8], indices: &[u64]) -> Result<()> {
        let (Some(&lowest), Some(&highest)) = (indices.first(), indices.last()) else {
            return Ok(());
        };
        let removed = indices.len() as u64;
        let stays = |index: u64| indices.binary_search(&index).is_err();
        if removed > (self.len - removed).max(ONE_BY_ONE)
            && let Some(kept) = self.collect(txn, key, 0..self.len, stays)?
        {
            return self.replace(txn, key, kept);
        }
        if highest < self.len - lowest {
            // Those before the last one that goes move up to it.
            let moved = self.collect(txn, key, 0..highest + 1, stays)?.ok_or(TOO_MUCH_TO_MOVE)?;
            for (index, element) in (removed..).zip(moved) {
                self.set(txn, key, index, element);
            }
            self.delete(txn, key, 0..removed);
            self.first = self.place(removed);
        } else {
            let moved = self.collect(txn, key, lowest..self.len, stays)?.ok_or(TOO_MUCH_TO_MOVE)?;
            for (index, element) in (lowest..).zip(moved) {
                self.set(txn, key, index, element);
            }
            self.delete(txn, key, self.len - removed..self.len);
        }
        self.len -= removed;
        Ok(())
    }

    /// The elements in a range of indices that are to move; `None` if they are too many.
    fn collect(
        &self,
        txn: &mut Txn<'_>,
        key: &[u8],
        range: Range<u64>,
        moves: impl Fn(u64) -> bool,
    ) -> Result<Option<Vec<Bytes>>> {
        let mut elements = Vec::new();
        let mut bytes = 0;
        self.each(txn, key, range, false, |index, element| {
            if !moves(index) {
                return ControlFlow::Continue(());
            }
            bytes += element.len() + key.len() + 16;
            if bytes > MOVED_BYTES_MAX {
                return ControlFlow::Break(());
            }
            elements.push(Bytes::copy_from_slice(element));
            ControlFlow::Continue(())
        })?;
        Ok((bytes <= MOVED_BYTES_MAX).then_some(elements))
    }
}
