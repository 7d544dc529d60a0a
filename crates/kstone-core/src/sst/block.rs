//! A data block: entries in order, each key written as its difference to the one before.
//!
//! The payload of a frame:
//!
//! ```text
//! entry, one or more:
//!   shared     varint: how many bytes of the key are those of the previous entry's key
//!   unshared   varint: how many follow here
//!   tag        varint: sequence number << 3 | has_expiry << 2 | kind (1 put, 2 delete, 3 mark)
//!   expires_at varint, milliseconds since 1970; only if has_expiry
//!   value_len  varint
//!   key        unshared bytes
//!   value      value_len bytes
//! restart      u32, one or more: where in the payload an entry begins whose `shared` is 0
//! restarts     u32: how many
//! ```
//!
//! The first restart is 0. Away from restarts, `shared` is *all* that the two keys have in common;
//! [`Block::get`] relies on that to skip entries without looking at their keys.
//!
//! The header fields stand in front of the key bytes, so that walking over an entry reads from one
//! place. This file has the builder and the point lookup; `block_cursor` walks.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

#[cfg(any(test, feature = "fuzzing"))]
use super::block_cursor::{BlockCursor, Reached};
#[cfg(any(test, feature = "fuzzing"))]
use super::filter::key_hash;
use super::hints::{Hint, Hints};
use super::slots::{EvictedPart, Part, Uses};
use crate::codec::{Reader, put_varint, varint_len};
pub(super) use crate::entry::SEQ_MAX;
#[cfg(any(test, feature = "fuzzing"))]
use crate::entry::View;
use crate::entry::{EntryRef, Kind, Seq};
use crate::prefetch;

/// A value up to this long is copied out of its block, and any value out of a block that is one piece.
const PIECE_COPIED_MAX: usize = 2048;
/// How many restarts are asked for ahead of a search by halves.
const RESTARTS_PREFETCHED_MAX: usize = 16;
/// The most that is asked for ahead of a search.
const PREFETCHED_MAX: usize = 2048;

/// What is asked for of a block itself: up to the hints that a block with values of 100 bytes has.
const BLOCK_PREFETCHED: usize = 320;

/// The same of a block with few records, which is what shortcuts lead to.
const HEAD_PREFETCHED: usize = 128;
/// How far in front of its value an entry begins, about.
const ENTRY_HEAD_PREFETCHED: usize = 64;
/// What is asked for of such a record.
const RECORD_PREFETCHED: usize = 1344;
/// What is asked for of a block that a walk will come to.
const WALK_PREFETCHED: usize = 512;

/// Five varints.
const HEADER_LEN_MAX: usize = 5 * 10;

const HAS_EXPIRY: u64 = 1 << 2;
const KIND_MASK: u64 = 0b11;

/// The bytes are not a data block. The caller adds where they came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// How many leading bytes `a` and `b` have in common.
#[inline]
pub(crate) fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    let (a_words, _) = a.as_chunks::<8>();
    let (b_words, _) = b.as_chunks::<8>();
    let mut len = 0;
    for (a, b) in a_words.iter().zip(b_words) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return len + (differ.trailing_zeros() / 8) as usize;
        }
        len += 8;
    }
    let tails = a.get(len..).unwrap_or_default().iter().zip(b.get(len..).unwrap_or_default());
    len + tails.take_while(|(a, b)| a == b).count()
}

/// [`Reader::varint`], with the lengths that entries have in mind: one byte (lengths of keys), or
/// up to eight (sequence numbers) without a loop. A get decodes some thirty of these.
#[inline(always)]
fn varint(reader: &mut Reader<'_>) -> Option<u64> {
    let mut ahead = reader.clone();
    let first = ahead.u8()?;
    if first < 0x80 {
        *reader = ahead;
        return Some(u64::from(first));
    }
    let Some(word) = reader.clone().u64() else { return reader.varint() };
    let Some((value, len)) = varint_of(word) else { return reader.varint() };
    reader.bytes(len)?;
    Some(value)
}

/// The varint at the beginning of these eight bytes, and its length; `None` if it is longer.
#[inline(always)]
fn varint_of(word: u64) -> Option<(u64, usize)> {
    let stops = !word & 0x8080_8080_8080_8080;
    if stops == 0 {
        return None;
    }
    // The bytes up to and with the first one whose high bit is clear, seven bits of each, pushed
    // together in pairs, then fours, then eights.
    let x = word & (stops ^ stops.wrapping_sub(1)) & 0x7f7f_7f7f_7f7f_7f7f;
    let x = (x & 0x007f_007f_007f_007f) | ((x & 0x7f00_7f00_7f00_7f00) >> 1);
    let x = (x & 0x0000_3fff_0000_3fff) | ((x & 0x3fff_0000_3fff_0000) >> 2);
    let x = (x & 0x0000_0000_0fff_ffff) | ((x & 0x0fff_ffff_0000_0000) >> 4);
    Some((x, (stops.trailing_zeros() / 8 + 1) as usize))
}

/// Collects the entries of one block.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    restart_interval: usize,
    buf: Vec<u8>,
    restarts: Vec<u32>,
    since_restart: usize,
}

impl BlockBuilder {
    pub(super) fn new(restart_interval: usize) -> Self {
        let restart_interval = restart_interval.max(1);
        BlockBuilder { restart_interval, buf: Vec::new(), restarts: Vec::new(), since_restart: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.restarts.is_empty()
    }

    /// The payload's length if it ended here.
    pub(super) fn len(&self) -> usize {
        self.buf.len() + 4 * self.restarts.len() + 4
    }

    /// Whether the payload would be longer than that with one more entry.
    #[inline]
    pub(super) fn exceeds_with(
        &self,
        entry: &EntryRef<'_>,
        common: usize,
        block_bytes: usize,
    ) -> bool {
        // Far from the end, which is nearly always, the longest header there is will do.
        let longest = self.len() + HEADER_LEN_MAX + entry.key.len() + entry.value.len() + 4;
        longest > block_bytes && self.len_with(entry, common) > block_bytes
    }

    /// The payload's length with one more entry, never too low.
    fn len_with(&self, entry: &EntryRef<'_>, common: usize) -> usize {
        let header = 2 * varint_len(entry.key.len() as u64)
            + varint_len(entry.seq << 3)
            + varint_len(entry.expires_at_ms)
            + varint_len(entry.value.len() as u64);
        let restarts = self.since_restart >= self.restart_interval || self.is_empty();
        let shared = if restarts { 0 } else { common };
        self.len() + header + entry.key.len() - shared + entry.value.len() + 4
    }

    /// Appends an entry. `common` is the common prefix with the entry added before, in bytes. The
    /// caller keeps the order, and sequence numbers up to [`SEQ_MAX`].
    pub(super) fn add(&mut self, entry: &EntryRef<'_>, common: usize) {
        let mut shared = common;
        if self.is_empty() || self.since_restart >= self.restart_interval {
            self.restarts.push(self.buf.len() as u32);
            self.since_restart = 0;
            shared = 0;
        }
        self.since_restart += 1;
        let suffix = entry.key.get(shared..).unwrap_or_default();
        let has_expiry = entry.expires_at_ms != 0;
        let mut tag = (entry.seq << 3) | entry.kind as u64;
        if has_expiry {
            tag |= HAS_EXPIRY;
        }
        let (unshared, value_len) = (suffix.len() as u64, entry.value.len() as u64);
        if (shared as u64 | unshared | tag | value_len) < 0x80 && !has_expiry {
            // One byte each, as ingested records mostly have them.
            let header = [shared as u8, unshared as u8, tag as u8, value_len as u8];
            self.buf.extend_from_slice(&header);
        } else {
            put_varint(&mut self.buf, shared as u64);
            put_varint(&mut self.buf, unshared);
            put_varint(&mut self.buf, tag);
            if has_expiry {
                put_varint(&mut self.buf, entry.expires_at_ms);
            }
            put_varint(&mut self.buf, value_len);
        }
        self.buf.extend_from_slice(suffix);
        self.buf.extend_from_slice(entry.value);
    }

    /// The finished payload; the builder keeps it until [`clear`](Self::clear).
    pub(super) fn finish(&mut self) -> &[u8] {
        for restart in &self.restarts {
            self.buf.extend_from_slice(&restart.to_le_bytes());
        }
        self.buf.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        &self.buf
    }

    pub(super) fn clear(&mut self) {
        self.buf.clear();
        self.restarts.clear();
        self.since_restart = 0;
    }
}

/// One entry as it lies in the block: its key is still a difference.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawEntry<'a> {
    pub(super) shared: usize,
    pub(super) suffix: &'a [u8],
    pub(super) seq: Seq,
    pub(super) kind: Kind,
    pub(super) expires_at_ms: u64,
    pub(super) value: &'a [u8],
    /// Where the next entry begins.
    pub(super) end: usize,
}

impl RawEntry<'_> {
    /// Where in the payload the rest of the key lies.
    #[inline]
    pub(super) fn suffix_at(&self) -> usize {
        self.end - self.value.len() - self.suffix.len()
    }

    /// Where in the payload the value lies.
    #[inline]
    pub(super) fn value_range(&self) -> Range<usize> {
        self.end - self.value.len()..self.end
    }
}

/// What a lookup found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) seq: Seq,
    pub(super) kind: Kind,
    pub(super) expires_at_ms: u64,
    pub(super) value: Range<usize>,
}

impl Found {
    #[inline]
    fn of(entry: &RawEntry<'_>) -> Self {
        let RawEntry { seq, kind, expires_at_ms, .. } = *entry;
        Found { seq, kind, expires_at_ms, value: entry.value_range() }
    }
}

/// A block in memory, uncompressed.
///
/// One that is kept is one piece of memory with its payload behind its head, made by a `BlockBuffer`. Who has
/// found where it is kept then knows where all of it is, and need not wait for the head before it
/// asks for the payload.
///
/// In this order: what every lookup needs is at the beginning, then the hints' many places.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Block<P: ?Sized = [u8]> {
    /// The payload of a block that is not kept, or is a long one; else empty.
    elsewhere: Bytes,
    len: u32,
    entries_len: u32,
    restarts: u32,
    uses: Uses,
    /// Made when a lookup meets the block for the second time: a reader that reads a block once has no use
    /// for them. `None` where they cannot be made.
    hints: OnceLock<Option<Hints>>,
    /// The payload, and something behind it; or nothing.
    here: P,
}

impl<P> Block<P> {
    /// One of which nothing is known yet.
    pub(super) fn unparsed(elsewhere: Bytes, here: P) -> Self {
        let (uses, hints) = (Uses::default(), OnceLock::new());
        Block { elsewhere, len: 0, entries_len: 0, restarts: 0, uses, hints, here }
    }
}

impl Part for Block {
    fn weight(&self) -> usize {
        size_of_val(self) + self.elsewhere.len()
    }

    #[inline]
    fn uses(&self) -> &Uses {
        &self.uses
    }

    fn into_evicted(self: Arc<Self>) -> EvictedPart {
        EvictedPart::Block(self)
    }
}

impl Block {
    /// Checks the payload's frame of restarts; the entries are checked as they are read.
    pub(super) fn parse(payload: Bytes) -> Result<Arc<Self>, Malformed> {
        let len = payload.len();
        Self::parse_padded(payload, len)
    }

    /// The same of a payload that has only the first `len` of these bytes.
    pub(super) fn parse_padded(bytes: Bytes, len: usize) -> Result<Arc<Self>, Malformed> {
        let mut block: Arc<Block> = Arc::new(Block::unparsed(bytes, []));
        Arc::get_mut(&mut block).ok_or(Malformed)?.parse_payload(len)?;
        Ok(block)
    }

    /// The memory that a [`BlockBuffer`](super::block_buffer::BlockBuffer)'s payload is put into.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.here
    }

    /// Forgets all that is known of a payload which is replaced next; answers how much room there is.
    pub(super) fn clear(&mut self) -> usize {
        (self.len, self.entries_len, self.restarts) = (0, 0, 0);
        (self.uses, self.hints) = (Uses::default(), OnceLock::new());
        self.here.len()
    }

    /// Checks a payload that has the first `len` of the bytes that it is in.
    pub(super) fn parse_payload(&mut self, len: usize) -> Result<(), Malformed> {
        let parse = |bytes: &[u8]| {
            let payload = bytes.get(..len)?;
            let count_at = len.checked_sub(4)?;
            let restarts = Reader::new(payload.get(count_at..)?).u32()?;
            let entries_len = count_at.checked_sub((restarts as usize).checked_mul(4)?)?;
            let (entries_len, len) = (u32::try_from(entries_len).ok()?, u32::try_from(len).ok()?);
            (restarts > 0 && entries_len > 0).then_some((len, entries_len, restarts))
        };
        (self.len, self.entries_len, self.restarts) = parse(self.bytes()).ok_or(Malformed)?;
        if self.restart(0) == Some(0) { Ok(()) } else { Err(Malformed) }
    }

    /// Asks for what [`get_again`](Self::get_again) will look at first, without looking.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch::value_soon(self, BLOCK_PREFETCHED);
        // Its last bytes, for the sake of their page: to find where that is takes about as long as to fetch
        // what is there, and the record may be on it.
        if let Some(last) = self.here.last() {
            prefetch::soon(last);
        }
    }

    /// The same for a record of which it is known about where in the payload its value begins: no look at
    /// the head is needed to ask for that, too.
    #[inline]
    pub(super) fn prefetch_at(&self, value_at: usize) {
        prefetch::value_soon(self, HEAD_PREFETCHED);
        let from = value_at.saturating_sub(ENTRY_HEAD_PREFETCHED);
        let ahead = self.here.get(from..).unwrap_or_default();
        prefetch::bytes_soon(ahead, RECORD_PREFETCHED);
    }

    /// Asks for what a walk that comes here from the block in front will look at first.
    #[inline]
    pub(super) fn prefetch_for_walk(&self) {
        prefetch::value_soon(self, HEAD_PREFETCHED);
        prefetch::bytes_soon(&self.here, WALK_PREFETCHED);
    }

    /// The payload, and something behind it.
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        if self.here.is_empty() { &self.elsewhere } else { &self.here }
    }

    #[inline]
    pub(super) fn payload(&self) -> &[u8] {
        self.bytes().get(..self.len as usize).unwrap_or_default()
    }

    /// A piece of the payload that can be kept. A small one is copied: that takes less time than
    /// sharing, and a caller that keeps it does not keep the whole block in memory.
    pub(super) fn piece(&self, range: Range<usize>) -> Bytes {
        if range.len() > PIECE_COPIED_MAX && self.here.is_empty() {
            return self.elsewhere.slice(range);
        }
        Bytes::copy_from_slice(self.payload().get(range).unwrap_or_default())
    }

    /// Where the entries end.
    #[inline]
    pub(super) fn entries_len(&self) -> usize {
        self.entries_len as usize
    }

    pub(super) fn restarts(&self) -> usize {
        self.restarts as usize
    }

    /// Where restart `i` is.
    #[inline]
    pub(super) fn restart(&self, i: usize) -> Option<usize> {
        let at = self.entries_len() + 4 * i;
        let bytes = self.payload().get(at..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes) as usize)
    }

    /// The entry that begins at `at`.
    #[inline]
    pub(super) fn entry(&self, at: usize) -> Result<RawEntry<'_>, Malformed> {
        self.try_entry(at).ok_or(Malformed)
    }

    #[inline]
    fn try_entry(&self, at: usize) -> Option<RawEntry<'_>> {
        // Not `or_else`, which is not always inlined and then passes the whole entry on in memory.
        match self.usual_entry(at) {
            Some(entry) => Some(entry),
            None => self.any_entry(at),
        }
    }

    /// The entry that begins at `at` if it is as most are: keys shorter than 128 bytes, no expiry, a
    /// value shorter than 16 KiB, and not the very last bytes of the block. Then its lengths lie in
    /// the first 16 bytes, and one look tells that those are there.
    #[inline(always)]
    pub(super) fn usual_entry(&self, at: usize) -> Option<RawEntry<'_>> {
        let bytes = self.payload().get(at..self.entries_len())?;
        let head = bytes.first_chunk::<16>()?;
        let [shared, unshared, ..] = *head;
        let (tag, tag_len) = varint_of(u64::from_le_bytes(*head[2..].first_chunk()?))?;
        let value_len = u16::from_le_bytes(*head.get(2 + tag_len..)?.first_chunk()?);
        let is_long = value_len & 0x80 != 0;
        if (shared | unshared) & 0x80 != 0
            || tag & HAS_EXPIRY != 0
            || is_long && value_len >> 15 != 0
        {
            return None;
        }
        let value_len = match is_long {
            true => value_len & 0x7f | (value_len & 0x7f00) >> 1,
            false => value_len & 0x7f,
        };
        let kind = Kind::from_u8((tag & KIND_MASK) as u8)?;
        let (_, rest) = bytes.split_at_checked(3 + tag_len + usize::from(is_long))?;
        let (suffix, rest) = rest.split_at_checked(usize::from(unshared))?;
        let (value, rest) = rest.split_at_checked(usize::from(value_len))?;
        let end = self.entries_len() - rest.len();
        let shared = usize::from(shared);
        Some(RawEntry { shared, suffix, seq: tag >> 3, kind, expires_at_ms: 0, value, end })
    }

    #[inline(never)]
    fn any_entry(&self, at: usize) -> Option<RawEntry<'_>> {
        let mut reader = Reader::new(self.payload().get(at..self.entries_len())?);
        let shared = usize::try_from(varint(&mut reader)?).ok()?;
        let unshared = usize::try_from(varint(&mut reader)?).ok()?;
        let tag = varint(&mut reader)?;
        let kind = Kind::from_u8((tag & KIND_MASK) as u8)?;
        let expires_at_ms = if tag & HAS_EXPIRY != 0 { varint(&mut reader)? } else { 0 };
        let value_len = usize::try_from(varint(&mut reader)?).ok()?;
        let suffix = reader.bytes(unshared)?;
        let value = reader.bytes(value_len)?;
        let end = at + reader.position();
        Some(RawEntry { shared, suffix, seq: tag >> 3, kind, expires_at_ms, value, end })
    }

    /// The entry at restart `i`, whose suffix is its whole key.
    fn restart_entry(&self, i: usize) -> Result<RawEntry<'_>, Malformed> {
        let entry = self.entry(self.restart(i).ok_or(Malformed)?)?;
        if entry.shared == 0 { Ok(entry) } else { Err(Malformed) }
    }

    /// Where to begin a forward search for `(key, seq)`: at the last restart in front of it, or at
    /// the block's first entry.
    #[inline]
    pub(super) fn search_start(&self, key: &[u8], seq: Seq) -> Result<usize, Malformed> {
        let (mut low, mut high) = (0, self.restarts() - 1);
        // They lie far apart, and are looked at one after the other: all are asked for at once.
        for i in 0..=high.min(RESTARTS_PREFETCHED_MAX) {
            if let Some(first) = self.restart(i).and_then(|at| self.payload().get(at)) {
                prefetch::soon(first);
            }
        }
        while low < high {
            let middle = (low + high).div_ceil(2);
            let entry = self.restart_entry(middle)?;
            let order = entry.suffix.cmp(key).then_with(|| seq.cmp(&entry.seq));
            if order == Ordering::Less { low = middle } else { high = middle - 1 }
        }
        self.restart(low).ok_or(Malformed)
    }

    /// The newest version of `key` with a sequence number up to `seq`, if it is in this block.
    pub(super) fn get(&self, key: &[u8], seq: Seq) -> Result<Option<Found>, Malformed> {
        let start = self.search_start(key, seq)?;
        // All entries up to the next restart at once, or so: they are met one after the other.
        let run = self.entries_len() / self.restarts();
        let ahead = self.payload().get(start..).unwrap_or_default();
        prefetch::bytes_soon(ahead, run.min(PREFETCHED_MAX));
        self.get_from(start, 0, key, seq)
    }

    /// The same for a block that is kept: with the [`key_hash`](super::key_hash) of the key, the
    /// hints tell where it is.
    pub(super) fn get_again(
        &self,
        key: &[u8],
        hash: u64,
        seq: Seq,
    ) -> Result<Option<Found>, Malformed> {
        let Some(hints) = self.hints.get_or_init(|| Hints::of(self)) else {
            return self.get(key, seq);
        };
        let mut nth = 0;
        while let Some((hint, next)) = hints.find(hash, nth) {
            if let Some(entry) = self.entry_of(key, hint, hints)? {
                if entry.seq <= seq {
                    return Ok(Some(Found::of(&entry)));
                }
                // Its older versions follow.
                return self.get_from(entry.end, key.len(), key, seq);
            }
            nth = next;
        }
        Ok(None)
    }

    /// The entry that a hint leads to, if it is the key's.
    #[inline]
    fn entry_of(
        &self,
        key: &[u8],
        hint: Hint,
        hints: &Hints,
    ) -> Result<Option<RawEntry<'_>>, Malformed> {
        // The pieces of the key lie apart: all are asked for at once.
        let ahead = self.payload().get(hint.at..).unwrap_or_default();
        prefetch::bytes_soon(ahead, hints.entry_len().min(PREFETCHED_MAX));
        let parent = hints.parent(hint);
        let mut above = parent;
        while let Some(hint) = above {
            if let Some(first) = self.payload().get(hint.at) {
                prefetch::soon(first);
            }
            above = hints.parent(hint);
        }
        let entry = self.entry(hint.at)?;
        if key.get(entry.shared..) != Some(entry.suffix) {
            return Ok(None);
        }
        let (mut known_from, mut above) = (entry.shared, parent);
        while let Some(hint) = above {
            let piece = self.entry(hint.at)?;
            let len = known_from.checked_sub(piece.shared).ok_or(Malformed)?;
            if key.get(piece.shared..known_from) != piece.suffix.get(..len) {
                return Ok(None);
            }
            (known_from, above) = (piece.shared, hints.parent(hint));
        }
        if known_from != 0 {
            return Err(Malformed);
        }
        Ok(Some(entry))
    }

    /// Looks for the key from an entry on: from a restart, which is the last in front of the key, or
    /// holds its first version, with nothing `matched`; or from behind a version that is too new, whose
    /// key is all `matched`.
    ///
    /// No key is put together on the way. `matched` is how much of `key` the previous entry's key
    /// shares; since that one is in front of `key`, an entry that shares more with its predecessor
    /// is in front too, one that shares less is behind, and only one that shares exactly as much
    /// has to be compared, from there on.
    #[inline]
    fn get_from(
        &self,
        start: usize,
        mut matched: usize,
        key: &[u8],
        seq: Seq,
    ) -> Result<Option<Found>, Malformed> {
        let (mut at, mut previous_len) = (start, matched);
        while at < self.entries_len() {
            let entry = self.entry(at)?;
            if entry.shared > previous_len {
                return Err(Malformed);
            }
            at = entry.end;
            previous_len = entry.shared + entry.suffix.len();
            if entry.shared == 0 {
                // A restart writes its key in full, whatever it shares.
                matched = 0;
            }
            match entry.shared.cmp(&matched) {
                Ordering::Greater => continue,
                Ordering::Less => return Ok(None),
                Ordering::Equal => {}
            }
            let rest = key.get(matched..).ok_or(Malformed)?;
            let common = common_prefix_len(entry.suffix, rest);
            match (entry.suffix.get(common), rest.get(common)) {
                (None, None) if entry.seq <= seq => {
                    return Ok(Some(Found::of(&entry)));
                }
                // A version that is too new, or a key in front.
                (None, _) => matched += common,
                (Some(_), None) => return Ok(None),
                (Some(theirs), Some(ours)) if theirs > ours => return Ok(None),
                (Some(_), Some(_)) => matched += common,
            }
        }
        Ok(None)
    }
}

/// Whether any bytes are a well-formed block payload, read in every way there is. For fuzzing.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_block(bytes: &[u8]) -> bool {
    let Ok(block) = Block::parse(Bytes::copy_from_slice(bytes)) else { return false };
    let probe = bytes.get(..bytes.len() / 2).unwrap_or_default();
    let got = block.get(probe, SEQ_MAX);
    // By its own hash, and by that of whatever is there.
    let again = block.get_again(probe, key_hash(probe), SEQ_MAX);
    let mut at = 0;
    while at < block.entries_len()
        && let Ok(entry) = block.entry(at)
    {
        let _ = block.get_again(entry.suffix, key_hash(entry.suffix), SEQ_MAX);
        at = entry.end;
    }
    let mut cursor = BlockCursor::new(block);
    let mut back = cursor.seek_last();
    while back.is_ok() && cursor.valid() {
        back = cursor.prev();
    }
    let sought = cursor.seek(probe, SEQ_MAX);
    for is_plain_first in [false, true] {
        let view = View { seq: SEQ_MAX, now_ms: 0, high: Some(probe) };
        cursor.begin_anew();
        while cursor.next_visible(&view) == Reached::Visible {
            while is_plain_first && cursor.next_plain(&view) == Some(Reached::Visible) {}
        }
    }
    got.is_ok() && again.is_ok() && back.is_ok() && sought.is_ok() && cursor.check().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_prefix_is_found_across_word_boundaries() {
        let a: Vec<u8> = (0..40).collect();
        for len in 0..=a.len() {
            let mut b = a.clone();
            assert_eq!(common_prefix_len(&a, &b[..len]), len);
            if let Some(byte) = b.get_mut(len) {
                *byte ^= 0x80;
                assert_eq!(common_prefix_len(&a, &b), len);
            }
        }
    }

    #[test]
    fn varints_of_every_length_are_read_as_the_codec_reads_them() {
        for bits in 0..=64 {
            let value = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            for value in [value, value / 3, value ^ (value >> 1)] {
                for rest in [&b""[..], &[0xff; 12], &[0; 12]] {
                    let mut bytes = Vec::new();
                    put_varint(&mut bytes, value);
                    bytes.extend_from_slice(rest);
                    let mut reader = Reader::new(&bytes);
                    assert_eq!(varint(&mut reader), Some(value));
                    assert_eq!(reader.remaining(), rest.len());
                }
            }
        }
        for bad in [&[][..], &[0x80; 3], &[0xff; 11]] {
            assert_eq!(varint(&mut Reader::new(bad)), None);
        }
    }

    #[test]
    fn usual_entries_are_read_as_any_are() {
        let lens = [0, 1, 100, 127, 128, 1000, 16_383, 16_384, 70_000];
        let mut builder = BlockBuilder::new(3);
        let mut last = Vec::new();
        for (nth, value_len) in lens.iter().cycle().take(90).enumerate() {
            let mut key = format!("key{nth:04}").into_bytes();
            key.resize(if nth % 13 == 5 { 200 } else { key.len() }, b'x');
            let value = vec![nth as u8; *value_len];
            let seq = SEQ_MAX >> (nth % 61);
            let expires_at_ms = if nth % 5 == 0 { 1 << (nth % 60) } else { 0 };
            let entry = EntryRef { key: &key, seq, kind: Kind::Put, expires_at_ms, value: &value };
            builder.add(&entry, common_prefix_len(&last, &key));
            last = key;
        }
        let block = Block::parse(Bytes::copy_from_slice(builder.finish())).unwrap();
        let (mut at, mut usual) = (0, 0);
        while at < block.entries_len() {
            let any = block.any_entry(at).unwrap();
            let as_any = |entry: RawEntry<'_>| format!("{entry:?}");
            assert_eq!(block.try_entry(at).map(as_any), Some(as_any(any)));
            usual += usize::from(block.usual_entry(at).is_some());
            at = any.end;
        }
        assert!((40..70).contains(&usual), "{usual}");
    }

    #[test]
    fn a_block_without_entries_or_restarts_is_refused() {
        for bytes in [&[][..], &[0; 3], &[0; 4], &[0; 8], &[1, 0, 0, 0], &[0xff; 12]] {
            assert!(Block::parse(Bytes::copy_from_slice(bytes)).is_err());
        }
    }

    #[test]
    fn an_entry_that_shares_more_than_there_is_is_malformed() {
        let mut builder = BlockBuilder::new(16);
        let entry = |key| EntryRef { key, seq: 1, kind: Kind::Put, expires_at_ms: 0, value: b"v" };
        builder.add(&entry(b"abc"), 0);
        builder.add(&entry(b"abd"), 2);
        let mut bytes = builder.finish().to_vec();
        assert!(check_block(&bytes));
        let second = Block::parse(Bytes::from(bytes.clone())).unwrap().entry(0).unwrap().end;
        bytes[second] = 9;
        assert_eq!(
            Block::parse(Bytes::from(bytes.clone())).unwrap().get(b"abd", 9),
            Err(Malformed)
        );
        assert!(!check_block(&bytes));
    }
}
