//! The index: one slot per data block, with the highest position that belongs to the block.
//!
//! The payload of an uncompressed frame, of fixed-width arrays so that nothing has to be decoded
//! before it can be searched:
//!
//! ```text
//! count       u32: number of data blocks, at least 1
//! prefix_len  u32: length of what all separators begin with
//! head        u64 × count: the eight bytes of the separator behind the prefix, as a big-endian
//!             number (zeros where it is shorter)
//! slot        28 bytes × count:
//!   offset    u64: where the block's frame begins
//!   len       u32: the frame's length
//!   checksum  u64: the frame's checksum
//!   seq       u64: second half of the separator
//! end         u32 × count: where the separator's rest ends, counted from the start of all rests
//! prefix      prefix_len bytes
//! rest        the separators without the prefix, one behind the other
//! ```
//!
//! A block's *separator* is a position `(key, seq)` in entry order: not in front of the block's last
//! entry, and in front of the first entry of the next block. Its key is shortened where that is
//! possible. Because it has a sequence number, any `(key, seq)` belongs to exactly one block, even
//! where the versions of one key fill several.
//!
//! An index of many blocks is in parts, each of which has this form, and so has their top, whose slots
//! point to them ([`indexed`](super::indexed)).
//!
//! A search compares heads, which are dense (eight to a cache line), and looks at the rests only
//! where heads are equal. Built by the writer, searched by reader and cursor.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;

use super::block::common_prefix_len;
use crate::codec::Reader;
use crate::entry::Seq;
use crate::prefetch;

const HEADER_LEN: usize = 8;
const HEAD_LEN: usize = 8;
const SLOT_LEN: usize = 28;
const END_LEN: usize = 4;

/// Where a frame is, and the checksum it must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Handle {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) checksum: u64,
}

impl Handle {
    pub(super) fn end(&self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.len))
    }
}

/// The first eight bytes as a number that compares like them.
#[inline]
fn head(key: &[u8]) -> u64 {
    if let Some(bytes) = key.first_chunk::<HEAD_LEN>() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; HEAD_LEN];
    for (to, from) in bytes.iter_mut().zip(key) {
        *to = *from;
    }
    u64::from_be_bytes(bytes)
}

/// Collects the separators of a file.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    keys: Vec<u8>,
    ends: Vec<usize>,
    slots: Vec<(Handle, Seq)>,
}

impl IndexBuilder {
    /// Adds the block at `handle`. `last` is its last entry's position; `next` is the key of the
    /// entry that follows in the next block, if there is one.
    pub(super) fn add(&mut self, handle: Handle, last: (&[u8], Seq), next: Option<&[u8]>) {
        let (key, seq) = separator(last, next);
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
        self.slots.push((handle, seq));
    }

    /// Adds a part of an index, the last of whose blocks is `nth` of `blocks`.
    pub(super) fn add_part(&mut self, part: Handle, blocks: &IndexBuilder, nth: usize) {
        self.keys.extend_from_slice(blocks.key(nth));
        self.ends.push(self.keys.len());
        self.slots.push((part, blocks.slots.get(nth).map_or(0, |(_, seq)| *seq)));
    }

    /// Adds all that a part points to; `None` if the part is malformed.
    pub(super) fn add_all(&mut self, part: &Index) -> Option<()> {
        for i in 0..part.count() {
            self.keys.extend_from_slice(part.prefix());
            self.keys.extend_from_slice(part.rest(i)?);
            self.ends.push(self.keys.len());
            self.slots.push((part.handle(i)?, part.seq(i)?));
        }
        Some(())
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// About how long the payload will be.
    pub(super) fn len(&self) -> usize {
        HEADER_LEN + self.keys.len() + self.slots.len() * (HEAD_LEN + SLOT_LEN + END_LEN)
    }

    fn key(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).and_then(|i| self.ends.get(i)).copied().unwrap_or(0);
        self.ends.get(i).and_then(|&end| self.keys.get(start..end)).unwrap_or_default()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        self.encode_part(0..self.count())
    }

    /// The index of these blocks.
    pub(super) fn encode_part(&self, blocks: Range<usize>) -> Vec<u8> {
        let key = |i: usize| self.key(i);
        let slots = self.slots.get(blocks.clone()).unwrap_or_default();
        let prefix_len = common_prefix_len(key(blocks.start), key(blocks.end.saturating_sub(1)));
        let rests = || blocks.clone().map(|i| key(i).get(prefix_len..).unwrap_or_default());
        let mut out = Vec::new();
        out.extend_from_slice(&(slots.len() as u32).to_le_bytes());
        out.extend_from_slice(&(prefix_len as u32).to_le_bytes());
        for rest in rests() {
            out.extend_from_slice(&head(rest).to_le_bytes());
        }
        for (handle, seq) in slots {
            out.extend_from_slice(&handle.offset.to_le_bytes());
            out.extend_from_slice(&handle.len.to_le_bytes());
            out.extend_from_slice(&handle.checksum.to_le_bytes());
            out.extend_from_slice(&seq.to_le_bytes());
        }
        let mut end = 0;
        for rest in rests() {
            end += rest.len() as u32;
            out.extend_from_slice(&end.to_le_bytes());
        }
        out.extend_from_slice(key(blocks.start).get(..prefix_len).unwrap_or_default());
        for rest in rests() {
            out.extend_from_slice(rest);
        }
        out
    }
}

/// A separator: the last entry's position itself, or, if that is shorter, the beginning of the next
/// key. So it holds nothing that is not in a key of the file: a key counted up between the two could
/// be that of somebody who was erased.
fn separator<'a>(last: (&'a [u8], Seq), next: Option<&'a [u8]>) -> (&'a [u8], Seq) {
    let (key, _) = last;
    let Some(next) = next else { return last };
    let common = common_prefix_len(key, next);
    match next.get(..common + 1) {
        // It is behind every version of the last key and in front of the next one, so its sequence
        // number may be the last there is.
        Some(shorter) if shorter.len() < key.len().min(next.len()) => (shorter, 0),
        _ => last,
    }
}

/// An index in memory: the payload as it is in the file.
#[derive(Debug)]
pub(super) struct Index {
    payload: Bytes,
    count: usize,
    prefix_len: usize,
}

impl Index {
    /// Checks that the arrays are there; what they say is checked when it is used.
    pub(super) fn parse(payload: Bytes) -> Option<Self> {
        let mut reader = Reader::new(&payload);
        let count = usize::try_from(reader.u32()?).ok()?;
        let prefix_len = usize::try_from(reader.u32()?).ok()?;
        let arrays = count.checked_mul(HEAD_LEN + SLOT_LEN + END_LEN)?;
        if count == 0 || arrays.checked_add(prefix_len)? > reader.remaining() {
            return None;
        }
        Some(Index { payload, count, prefix_len })
    }

    /// How many blocks it points to.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn weight(&self) -> usize {
        self.payload.len()
    }

    /// Where block `i` is; `None` if there is no such block.
    #[inline]
    pub(super) fn handle(&self, i: usize) -> Option<Handle> {
        let mut reader = Reader::new(self.slot(i)?);
        Some(Handle { offset: reader.u64()?, len: reader.u32()?, checksum: reader.u64()? })
    }

    /// The separator of block `i`, put together. For `verify`.
    pub(super) fn separator(&self, i: usize) -> Option<(Vec<u8>, Seq)> {
        Some(([self.prefix(), self.rest(i)?].concat(), self.seq(i)?))
    }

    /// Whether separator `i` is separator `j` of the other.
    pub(super) fn has_separator_of(&self, i: usize, other: &Index, j: usize) -> bool {
        match (self.rest(i), other.rest(j)) {
            (Some(ours), Some(theirs)) => {
                let ours = self.prefix().iter().chain(ours);
                ours.eq(other.prefix().iter().chain(theirs)) && self.seq(i) == other.seq(j)
            }
            _ => false,
        }
    }

    /// The block that `(key, seq)` belongs to: the first whose separator is not in front of it.
    /// `None` if it is behind them all.
    #[inline]
    pub(super) fn find(&self, key: &[u8], seq: Seq) -> Option<usize> {
        self.find_among(self.narrow(key), key, seq)
    }

    /// The first half of [`find`](Self::find): the blocks that it may be one of, as far as heads tell;
    /// the one behind them is the last of those.
    #[inline]
    pub(super) fn narrow(&self, key: &[u8]) -> Range<usize> {
        let prefix = self.prefix();
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { 0..0 } else { self.count..self.count };
        };
        let ours = head(rest);
        let (heads, _) = self.heads().as_chunks::<HEAD_LEN>();
        let low = heads.partition_point(|theirs| u64::from_le_bytes(*theirs) < ours);
        // Usually there is none, or one; of the blocks of one partition there may be some.
        let is_tie = |at: usize| heads.get(at).is_some_and(|h| u64::from_le_bytes(*h) == ours);
        let mut high = low;
        let mut step = 1;
        while is_tie(high + step - 1) {
            high += step;
            step *= 2;
        }
        if step > 1 {
            let rest = heads.get(high..).unwrap_or_default();
            let rest = rest.get(..step - 1).unwrap_or(rest);
            high += rest.partition_point(|theirs| u64::from_le_bytes(*theirs) == ours);
        }
        low..high
    }

    /// The second half, with what the first has answered.
    #[inline]
    pub(super) fn find_among(&self, among: Range<usize>, key: &[u8], seq: Seq) -> Option<usize> {
        let Range { start: mut low, end: mut high } = among;
        let rest = key.get(self.prefix_len..).unwrap_or_default();
        while low < high {
            let middle = low + (high - low) / 2;
            let order = self.rest(middle)?.cmp(rest);
            let order = order.then_with(|| seq.cmp(&self.seq(middle).unwrap_or(0)));
            if order == Ordering::Less { low = middle + 1 } else { high = middle }
        }
        (low < self.count).then_some(low)
    }

    /// Asks for what [`narrow`](Self::narrow) looks at first: what all separators begin with, and heads.
    #[inline]
    pub(super) fn prefetch(&self) {
        let heads = self.heads();
        for quarter in 1..4 {
            if let Some(head) = heads.get(heads.len() / 4 * quarter) {
                prefetch::soon(head);
            }
        }
        if let Some(first) = self.prefix().first() {
            prefetch::soon(first);
        }
    }

    /// Asks for what [`find_among`](Self::find_among) looks at first: where a separator's rest ends.
    #[inline]
    pub(super) fn prefetch_among(&self, among: &Range<usize>) {
        let middle = among.start + among.len() / 2;
        let end_at = self.prefix_at() - self.count.saturating_sub(middle) * END_LEN;
        if !among.is_empty()
            && let Some(end) = self.payload.get(end_at)
        {
            prefetch::soon(end);
        }
    }

    fn heads(&self) -> &[u8] {
        self.payload.get(HEADER_LEN..HEADER_LEN + self.count * HEAD_LEN).unwrap_or_default()
    }

    #[inline]
    fn slot(&self, i: usize) -> Option<&[u8]> {
        if i >= self.count {
            return None;
        }
        let at = HEADER_LEN + self.count * HEAD_LEN + i * SLOT_LEN;
        self.payload.get(at..at + SLOT_LEN)
    }

    fn seq(&self, i: usize) -> Option<Seq> {
        Reader::new(self.slot(i)?.get(SLOT_LEN - 8..)?).u64()
    }

    #[inline]
    fn prefix_at(&self) -> usize {
        HEADER_LEN + self.count * (HEAD_LEN + SLOT_LEN + END_LEN)
    }

    #[inline]
    fn prefix(&self) -> &[u8] {
        let at = self.prefix_at();
        self.payload.get(at..at + self.prefix_len).unwrap_or_default()
    }

    #[inline]
    fn rest(&self, i: usize) -> Option<&[u8]> {
        let end = |i: usize| {
            let at = self.prefix_at() - (self.count - i) * END_LEN;
            Some(u32::from_le_bytes(*self.payload.get(at..)?.first_chunk()?) as usize)
        };
        if i >= self.count {
            return None;
        }
        let start = if i == 0 { 0 } else { end(i - 1)? };
        let rests = self.payload.get(self.prefix_at() + self.prefix_len..)?;
        rests.get(start..end(i)?)
    }

    /// Checks all that searching takes for granted.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let mut last: Option<(Vec<u8>, Seq)> = None;
        let mut rests_len = 0;
        let (heads, _) = self.heads().as_chunks::<HEAD_LEN>();
        for (i, stored) in heads.iter().enumerate() {
            let (Some(rest), Some(position)) = (self.rest(i), self.separator(i)) else {
                return Err("a separator is malformed");
            };
            rests_len += rest.len();
            if head(rest) != u64::from_le_bytes(*stored) {
                return Err("a separator does not begin as its head says");
            }
            if last.is_some_and(|last| {
                crate::entry::entry_order(&last.0, last.1, &position.0, position.1).is_ge()
            }) {
                return Err("the separators are out of order");
            }
            last = Some(position);
        }
        if self.prefix_at() + self.prefix_len + rests_len != self.payload.len() {
            return Err("there are bytes behind the last separator");
        }
        Ok(())
    }
}

/// Whether any bytes are a well-formed index, searched as well. For fuzzing.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_index(bytes: &[u8]) -> bool {
    let Some(index) = Index::parse(Bytes::copy_from_slice(bytes)) else { return false };
    let found = index.find(bytes, Seq::MAX).and_then(|i| index.handle(i));
    let first = index.find(index.prefix(), 0).is_some_and(|i| i < index.count());
    index.prefetch();
    index.prefetch_among(&index.narrow(bytes));
    index.check().is_ok() && (found.is_some() || first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::entry_order;

    fn index_of(separators: &[(&[u8], Seq)]) -> Index {
        let mut builder = IndexBuilder::default();
        for (i, &last) in separators.iter().enumerate() {
            builder.add(Handle { offset: i as u64, len: 1, checksum: 2 }, last, None);
        }
        let index = Index::parse(Bytes::from(builder.encode())).unwrap();
        index.check().unwrap();
        index
    }

    #[test]
    fn a_position_is_found_among_separators_that_are_alike() {
        let separators: &[(&[u8], Seq)] = &[
            (b"user#", 4),
            (b"user#\0", 4),
            (b"user#12345678", 9),
            (b"user#12345678", 5),
            (b"user#12345678a", 5),
            (b"user#12345678b", 5),
            (b"user#2", 0),
            (b"usf", 0),
        ];
        let index = index_of(separators);
        let mut probes: Vec<(Vec<u8>, Seq)> = Vec::new();
        for (key, seq) in separators {
            for suffix in [&b""[..], b"\0", b"a", b"\xff"] {
                for seq in [0, 1, *seq, seq + 1, u64::MAX] {
                    probes.push(([key, suffix].concat(), seq));
                }
            }
        }
        probes.extend([(b"".to_vec(), 1), (b"a".to_vec(), 1), (b"z".to_vec(), 1)]);
        for (key, seq) in probes {
            let expected = separators.iter().position(|s| entry_order(s.0, s.1, &key, seq).is_ge());
            assert_eq!(index.find(&key, seq), expected, "{key:?} {seq}");
        }
    }

    #[test]
    fn a_separator_lies_between_its_neighbours_and_is_never_longer() {
        let keys: Vec<&[u8]> = vec![
            b"",
            b"\0",
            b"a",
            b"a\0",
            b"aa",
            b"aa\xff\xffz",
            b"ab",
            b"abacus",
            b"b",
            b"b\xff",
            b"c",
            b"cat",
            b"catalogue",
            b"d\xff\xff",
            b"e",
            b"\xff",
            b"\xff\xff",
        ];
        for pair in keys.windows(2) {
            let [last, next] = pair else { continue };
            let (key, seq) = separator((last, 7), Some(next));
            assert!(entry_order(last, 7, key, seq).is_le(), "{last:?} {key:?}");
            assert!(entry_order(key, seq, next, Seq::MAX).is_lt(), "{key:?} {next:?}");
            assert!(key.len() <= last.len());
            assert!(key == *last || next.starts_with(key), "{key:?} is of no key");
        }
        assert_eq!(separator((b"catalogue", 7), Some(b"dog")), (&b"d"[..], 0));
        assert_eq!(separator((b"s016:a", 7), Some(b"s018:a")), (&b"s018"[..], 0));
    }

    #[test]
    fn an_index_that_claims_more_than_there_is_is_refused() {
        let good = index_of(&[(b"a", 1), (b"b", 1)]).payload;
        for cut in 0..good.len() {
            let cut = Index::parse(good.slice(..cut));
            assert!(cut.is_none_or(|index| index.check().is_err()));
        }
        let mut huge = good.to_vec();
        huge[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Index::parse(Bytes::from(huge)).is_none());
    }
}
