//! The arena of a memtable: its records, appended to chunks that never move or shrink.
//!
//! A record is a fixed header, when it expires if it does, the key, and the value unless that is
//! large:
//!
//! ```text
//! seq u64 | key length << 4 | expires << 3 | large << 2 | kind: u32 | value length or slot: u32
//! [ expires_at_ms u64 ] | key | [ value ]
//! ```
//!
//! Large values are kept beside the chunks, so that a reader shares one instead of copying it.
//! These bytes never leave the process. Calls `entry` and the pool of chunks; called by the tree.

use std::cmp::Ordering;

use bytes::Bytes;

use super::chunk_pool::ChunkPool;
use crate::entry::{EntryRef, Kind, Seq};
use crate::prefetch;

/// The longest value that is copied into a chunk. Up to here a copy costs less than the second
/// allocation and the shared counter that a value of its own needs.
pub(super) const INLINE_VALUE_LEN_MAX: usize = 4 * 1024;

/// Small, because most of a database's stripes hold a handful of records most of the time.
pub(super) const CHUNK_LEN_MIN: usize = 4 * 1024;
/// Large enough to make an allocation rare, small enough that an allocator takes it from memory that
/// others gave back, and does not ask the system for each.
pub(super) const CHUNK_LEN_MAX: usize = 64 * 1024;

/// What a memtable holds when it goes on with chunks of twice the least length.
const SHARED_FROM: usize = 16 * 1024;

/// So much of a record is asked for before it is looked at. What follows, the processor foresees.
const ASKED_LEN_MAX: usize = 192;
/// So much of where records will go.
const PUSHED_LEN_MAX: usize = 1024;

const HEADER_LEN: usize = 16;
const EXPIRY_LEN: usize = 8;
const KIND_BITS: u32 = 0b0011;
const LARGE_BIT: u32 = 0b0100;
const EXPIRY_SHIFT: u32 = 3;
const KEY_LEN_SHIFT: u32 = 4;

/// Where a record starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Loc {
    chunk: u32,
    offset: u32,
}

/// A record's value: in its chunk, or shared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Inline(&'a [u8]),
    Large(&'a Bytes),
}

impl Value<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Value::Inline(bytes) => bytes.len(),
            Value::Large(bytes) => bytes.len(),
        }
    }

    pub(super) fn to_bytes(self) -> Bytes {
        match self {
            Value::Inline(bytes) => Bytes::copy_from_slice(bytes),
            Value::Large(bytes) => bytes.clone(),
        }
    }
}

/// A record as it lies in the arena.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) key: &'a [u8],
    pub(super) seq: Seq,
    pub(super) kind: Kind,
    pub(super) expires_at_ms: u64,
    pub(super) value: Value<'a>,
}

/// The bytes of a record, and whatever follows it in its chunk.
struct Parts<'a> {
    head: &'a [u8],
    key: &'a [u8],
    rest: &'a [u8],
}

#[derive(Debug, Default)]
pub(super) struct Arena {
    chunks: Vec<Vec<u8>>,
    /// The chunk that is being filled; a record too long to share a chunk has one behind it.
    filling: usize,
    chunk_bytes: usize,
    large: Vec<Bytes>,
    large_bytes: usize,
}

impl Arena {
    /// Appends a record. Nothing finds it before the tree refers to it.
    pub(super) fn push(&mut self, entry: EntryRef<'_>, pool: &ChunkPool) -> Loc {
        // The engine refuses such keys long before; a cut length would corrupt silently.
        assert!(entry.key.len() < 1 << (32 - KEY_LEN_SHIFT), "key length fits its field");
        let is_large = entry.value.len() > INLINE_VALUE_LEN_MAX;
        let mut meta = ((entry.key.len() as u32) << KEY_LEN_SHIFT) | entry.kind as u32;
        let (inline, value_field) = if is_large {
            meta |= LARGE_BIT;
            self.large.push(Bytes::copy_from_slice(entry.value));
            self.large_bytes += entry.value.len();
            (&[][..], self.large.len() - 1)
        } else {
            (entry.value, entry.value.len())
        };

        meta |= u32::from(entry.expires_at_ms != 0) << EXPIRY_SHIFT;

        let mut header = [0u8; HEADER_LEN + EXPIRY_LEN];
        header[..8].copy_from_slice(&entry.seq.to_le_bytes());
        header[8..12].copy_from_slice(&meta.to_le_bytes());
        header[12..16].copy_from_slice(&(value_field as u32).to_le_bytes());
        header[16..].copy_from_slice(&entry.expires_at_ms.to_le_bytes());
        let header = &header[..key_start(meta)];

        let index = self.chunk_with_room(header.len() + entry.key.len() + inline.len(), pool);
        let chunk = &mut self.chunks[index];
        let loc = Loc { chunk: index as u32, offset: chunk.len() as u32 };
        chunk.extend_from_slice(header);
        chunk.extend_from_slice(entry.key);
        chunk.extend_from_slice(inline);
        loc
    }

    /// Gives a large value's memory back after a newer record took the place of the one at `loc`.
    /// What is in a chunk stays until the whole memtable goes.
    pub(super) fn release(&mut self, loc: Loc) {
        let header = self.header(loc);
        if u32_at(header, 8) & LARGE_BIT != 0 {
            let slot = u32_at(header, 12) as usize;
            self.large_bytes -= std::mem::take(&mut self.large[slot]).len();
        }
    }

    #[inline]
    pub(super) fn key(&self, loc: Loc) -> &[u8] {
        self.parts(loc).key
    }

    #[inline]
    pub(super) fn key_and_seq(&self, loc: Loc) -> (&[u8], Seq) {
        let parts = self.parts(loc);
        (parts.key, u64_at(parts.head, 0))
    }

    #[inline]
    pub(super) fn record(&self, loc: Loc) -> Record<'_> {
        let Parts { head, key, rest } = self.parts(loc);
        let meta = u32_at(head, 8);
        let value_field = u32_at(head, 12) as usize;
        Record {
            key,
            seq: u64_at(head, 0),
            kind: match meta & KIND_BITS {
                1 => Kind::Put,
                2 => Kind::Delete,
                _ => Kind::DropPartition,
            },
            expires_at_ms: if head.len() > HEADER_LEN { u64_at(head, HEADER_LEN) } else { 0 },
            value: if meta & LARGE_BIT == 0 {
                Value::Inline(&rest[..value_field])
            } else {
                Value::Large(&self.large[value_field])
            },
        }
    }

    /// The order of the record at `loc` against `(…key_rest, seq)`, both without their first
    /// `skip` bytes, which the caller knows to be equal.
    #[inline]
    pub(super) fn order(&self, loc: Loc, skip: usize, key_rest: &[u8], seq: Seq) -> Ordering {
        let Parts { head, key, .. } = self.parts(loc);
        key[skip..].cmp(key_rest).then_with(|| seq.cmp(&u64_at(head, 0)))
    }

    /// Memory held outside this struct.
    pub(super) fn bytes(&self) -> usize {
        self.chunk_bytes
            + self.large_bytes
            + self.chunks.capacity() * size_of::<Vec<u8>>()
            + self.large.capacity() * size_of::<Bytes>()
    }

    #[inline]
    fn parts(&self, loc: Loc) -> Parts<'_> {
        let record = &self.chunks[loc.chunk as usize][loc.offset as usize..];
        let meta = u32_at(record, 8);
        let (head, rest) = record.split_at(key_start(meta));
        let (key, rest) = rest.split_at((meta >> KEY_LEN_SHIFT) as usize);
        Parts { head, key, rest }
    }

    #[inline]
    fn header(&self, loc: Loc) -> &[u8] {
        let start = loc.offset as usize;
        &self.chunks[loc.chunk as usize][start..start + HEADER_LEN]
    }

    /// Prefetches the record at `loc`, or its beginning.
    #[inline]
    pub(super) fn prefetch(&self, loc: Loc) {
        let chunk = self.chunks.get(loc.chunk as usize);
        if let Some(record) = chunk.and_then(|chunk| chunk.get(loc.offset as usize..)) {
            prefetch::bytes_soon(record, ASKED_LEN_MAX);
        }
    }

    /// Prefetches the end of the chunk that is being filled, for records that take so many bytes.
    pub(super) fn prefetch_insert(&self, bytes: usize) {
        if let Some(chunk) = self.chunks.get(self.filling) {
            prefetch::behind(chunk, bytes.min(chunk.capacity() - chunk.len()).min(PUSHED_LEN_MAX));
        }
    }

    #[inline]
    fn chunk_with_room(&mut self, len: usize, pool: &ChunkPool) -> usize {
        match self.chunks.get(self.filling) {
            Some(chunk) if chunk.capacity() - chunk.len() >= len => self.filling,
            _ => self.add_chunk(len, pool),
        }
    }

    /// About an eighth of all chunks before it, within the limits: what a memtable holds but does not
    /// use stays small beside its records, which doubling would not achieve for the few hundred
    /// KiB that a stripe usually has. A power of two, so that what a flushed memtable gives back is
    /// just what others need: of chunks of any length, a third of the process's memory was
    /// holes. A record that would take much of such a chunk gets one of
    /// exactly its length, so that the room left in the chunk that is being filled is not lost.
    fn add_chunk(&mut self, len: usize, pool: &ChunkPool) -> usize {
        let eighth = self.chunk_bytes / 8;
        // With a dozen records of a kilobyte more of them will come: these, too, share chunks.
        let min_len =
            if self.chunk_bytes < SHARED_FROM { CHUNK_LEN_MIN } else { 2 * CHUNK_LEN_MIN };
        let shared_len = (1 << eighth.max(1).ilog2()).clamp(min_len, CHUNK_LEN_MAX);
        let is_own = len > shared_len / 4;
        let chunk = if is_own { Vec::with_capacity(len) } else { pool.take(shared_len) };
        self.chunk_bytes += chunk.capacity();
        self.chunks.push(chunk);
        let index = self.chunks.len() - 1;
        if !is_own {
            self.filling = index;
        }
        index
    }
}

/// How much of a record lies before its key.
#[inline]
fn key_start(meta: u32) -> usize {
    HEADER_LEN + EXPIRY_LEN * (meta >> EXPIRY_SHIFT & 1) as usize
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}
