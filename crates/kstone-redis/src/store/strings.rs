//! The string of a key: short ones in the head, longer ones in pieces.
//!
//! A string of [`Kind::String`] is the head's body. One of [`Kind::LongString`] has its bytes in
//! pieces of [`PIECE_LEN`], so that a bit or a range of it is read and written without the rest;
//! its head's body is its length (8 bytes, little-endian). A piece's sort key is [`PIECE`] and the
//! piece's number (4 bytes, big-endian). A piece that is not there, or what a piece is too short
//! for, is zeros: a string that is mostly zeros takes little room.

use std::ops::{Bound, ControlFlow, Range};

use bytes::Bytes;
use kstone_core::KEY_LEN_MAX;

use crate::fault::{Fault, Result};
use crate::store::txn::KEY_TOO_LONG;
use crate::store::{Entry, Kind, Txn};

/// The longest string that is kept in the head. Writing any of it writes all of it: a bit costs
/// about 1 us for each KiB of its string. Shorter would give pieces to values that are only ever
/// read and written as a whole.
const INLINE_LEN_MAX: u64 = 32 << 10;
/// The length of a piece. Writing any of it writes all of it, so a bit of a long string costs half
/// of what it costs in pieces twice as long; whole strings take a fifth longer to write.
const PIECE_LEN: u64 = 16 << 10;
/// Up to so many pieces are looked up one by one. More are read in one walk, which is quicker for
/// each of them but has to pass everything that was there before.
const PIECES_LOOKED_UP_MAX: u64 = 16;
/// Long strings up to this length are written over piece by piece. The mark that removes all pieces
/// at once is cheap to write, but every reader of the key has to heed it from then on.
const OVERWRITTEN_LEN_MAX: u64 = 4 << 20;
/// A write of more than this writes the whole string anew: then, and only then, it may be larger
/// than one batch (`annex`).
const IN_PLACE_LEN_MAX: u64 = 16 << 20;

/// The first byte of a piece's sort key.
const PIECE: u8 = 0x01;
/// The length of a piece's sort key.
const PIECE_KEY_LEN: usize = 5;

/// A string that was found.
#[derive(Debug, Clone)]
pub(crate) struct StringValue {
    pub(crate) entry: Entry,
    len: u64,
}

impl StringValue {
    /// The entry's string; none if it holds something else.
    pub(crate) fn from_entry(entry: Entry) -> Result<Option<StringValue>> {
        let len = match entry.kind {
            Kind::String => entry.body.len() as u64,
            Kind::LongString => decode_long(&entry.body)?,
            _ => return Ok(None),
        };
        Ok(Some(StringValue { entry, len }))
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// All of it, if it is in the head.
    pub(crate) fn inline(&self) -> Option<&Bytes> {
        (self.entry.kind == Kind::String).then_some(&self.entry.body)
    }
}

impl Txn<'_> {
    /// The key's string, if there is one; an error if the key holds something else.
    pub(crate) fn string(&mut self, key: &[u8]) -> Result<Option<StringValue>> {
        let Some(entry) = self.lookup(key)? else { return Ok(None) };
        StringValue::from_entry(entry)?.ok_or(Fault::WRONG_TYPE).map(Some)
    }

    /// Some of a string: what there is of the range.
    pub(crate) fn string_range(
        &self,
        key: &[u8],
        value: &StringValue,
        range: Range<u64>,
    ) -> Result<Bytes> {
        let end = range.end.min(value.len);
        let start = range.start.min(end);
        if let Some(body) = value.inline() {
            return Ok(body.slice(start as usize..end as usize));
        }
        let mut bytes = vec![0; (end - start) as usize];
        if start == end {
            return Ok(Bytes::new());
        }
        let mut fill = |number: u64, piece: &[u8]| {
            let first = number * PIECE_LEN;
            let from = first.max(start);
            let to = (first + piece.len() as u64).min(end);
            if from < to
                && let Some(into) = bytes.get_mut((from - start) as usize..(to - start) as usize)
                && let Some(piece) = piece.get((from - first) as usize..(to - first) as usize)
            {
                into.copy_from_slice(piece);
            }
        };
        let (first, last) = (start / PIECE_LEN, (end - 1) / PIECE_LEN);
        if last - first < PIECES_LOOKED_UP_MAX {
            for number in first..=last {
                if let Some(piece) = self.part(key, &piece_key(number))? {
                    fill(number, &piece);
                }
            }
            return Ok(Bytes::from(bytes));
        }
        let (low, high) = (piece_key(first), piece_key(last));
        let (low, high) = (Bound::Included(&low[..]), Bound::Included(&high[..]));
        self.each_part(key, low, high, false, |sk, piece| {
            fill(piece_number(sk)?, piece);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Bytes::from(bytes))
    }

    /// All of a string.
    pub(crate) fn string_bytes(&self, key: &[u8], value: &StringValue) -> Result<Bytes> {
        self.string_range(key, value, 0..value.len)
    }

    /// Makes the key this string. `old` is what was found there, of any type.
    pub(crate) fn set_string(
        &mut self,
        key: &[u8],
        old: Option<&Entry>,
        bytes: &[u8],
        expires_at_ms: Option<u64>,
    ) -> Result<()> {
        let len = bytes.len() as u64;
        if len > INLINE_LEN_MAX {
            check_room_for_pieces(key)?;
        }
        let mut pieces_left = 0;
        if let Some(old) = old.filter(|old| old.kind.has_parts()) {
            let old_len = if old.kind == Kind::LongString { decode_long(&old.body)? } else { 0 };
            let overwritten = INLINE_LEN_MAX + 1..=OVERWRITTEN_LEN_MAX;
            if overwritten.contains(&old_len) && overwritten.contains(&len) {
                pieces_left = old_len.div_ceil(PIECE_LEN);
            } else {
                self.remove_to_replace(key, old);
            }
        }
        if len <= INLINE_LEN_MAX {
            return self.put_head(key, Kind::String, bytes, expires_at_ms);
        }
        self.put_long_head(key, len, expires_at_ms)?;
        let bytes = Bytes::copy_from_slice(bytes);
        for (number, first) in (0..bytes.len()).step_by(PIECE_LEN as usize).enumerate() {
            let end = bytes.len().min(first + PIECE_LEN as usize);
            self.put_part(key, &piece_key(number as u64), bytes.slice(first..end));
        }
        for number in len.div_ceil(PIECE_LEN)..pieces_left {
            self.delete_part(key, &piece_key(number));
        }
        Ok(())
    }

    /// Writes over a part of the key's string, which grows by as many zeros as it takes, and keeps
    /// its expiry. `old` is the string that was found; none if the key was not there. Returns the
    /// string's new length.
    pub(crate) fn write_string(
        &mut self,
        key: &[u8],
        old: Option<&StringValue>,
        at: u64,
        bytes: &[u8],
    ) -> Result<u64> {
        let old_len = old.map_or(0, |old| old.len);
        let expires_at_ms = old.and_then(|old| old.entry.expires_at_ms);
        let end = at + bytes.len() as u64;
        let len = old_len.max(end);
        let inline = match old {
            None => Some(&[][..]),
            Some(old) => old.inline().map(|body| &body[..]),
        };
        if inline.is_some() && len <= INLINE_LEN_MAX || bytes.len() as u64 > IN_PLACE_LEN_MAX {
            let mut all = match (inline, old) {
                (None, Some(old)) => self.string_bytes(key, old)?.to_vec(),
                (body, _) => body.unwrap_or_default().to_vec(),
            };
            all.resize(len as usize, 0);
            if let Some(into) = all.get_mut(at as usize..end as usize) {
                into.copy_from_slice(bytes);
            }
            self.set_string(key, old.map(|old| &old.entry), &all, expires_at_ms)?;
            return Ok(len);
        }
        check_room_for_pieces(key)?;
        if inline.is_some() || len != old_len {
            self.put_long_head(key, len, expires_at_ms)?;
        }
        if let Some(body) = inline {
            self.write_pieces(key, 0, body)?;
        }
        self.write_pieces(key, at, bytes)?;
        Ok(len)
    }

    fn write_pieces(&mut self, key: &[u8], at: u64, bytes: &[u8]) -> Result<()> {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let (number, from) = (at / PIECE_LEN, (at % PIECE_LEN) as usize);
            let (now, later) = rest.split_at(rest.len().min(PIECE_LEN as usize - from));
            let sk = piece_key(number);
            let is_whole = now.len() == PIECE_LEN as usize;
            let old = if is_whole { None } else { self.part(key, &sk)? };
            let mut piece = old.map(Vec::from).unwrap_or_default();
            let to = from + now.len();
            if piece.len() < to {
                piece.resize(to, 0);
            }
            if let Some(into) = piece.get_mut(from..to) {
                into.copy_from_slice(now);
            }
            self.put_part(key, &sk, piece);
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    fn put_long_head(&mut self, key: &[u8], len: u64, expires_at_ms: Option<u64>) -> Result<()> {
        self.put_head(key, Kind::LongString, &len.to_le_bytes(), expires_at_ms)
    }
}

/// An error if the names of pieces do not fit behind the key.
fn check_room_for_pieces(key: &[u8]) -> Result<()> {
    if key.len() + PIECE_KEY_LEN > KEY_LEN_MAX { Err(KEY_TOO_LONG) } else { Ok(()) }
}

/// The length in a long string's head.
fn decode_long(body: &[u8]) -> Result<u64> {
    const BROKEN: Fault = Fault::fixed("MISCONF the head of a long string is damaged");
    body.try_into().map(u64::from_le_bytes).map_err(|_| BROKEN)
}

fn piece_key(number: u64) -> [u8; PIECE_KEY_LEN] {
    let [a, b, c, d] = (number as u32).to_be_bytes();
    [PIECE, a, b, c, d]
}

fn piece_number(sk: &[u8]) -> Result<u64> {
    const BROKEN: Fault = Fault::fixed("MISCONF the name of a piece of a string is damaged");
    let number = sk.last_chunk().ok_or(BROKEN)?;
    Ok(u64::from(u32::from_be_bytes(*number)))
}
