//! The bytes of a log file. All integers are little-endian.
//!
//! ```text
//! segment  header (64 bytes), then chunks, each at a multiple of 8 bytes
//!
//! header   magic 8 | version u32 | db_id 16 | generation u64 | start_pos u64 | durable_pos u64
//!          | xxh3-64 of all before | zero u32
//!
//! chunk    magic u32 | payload_len u32 | generation u64 | pos u64 | durable_pos u64 | clock_ms u64
//!          | first_seq u64 | last_seq u64 | xxh3-64 of the payload | xxh3-64 of all before
//!          | payload | zeros up to a multiple of 8
//!
//! payload  commits: ops_len u32 | first_seq u64 | seq_count u32 | ops
//! ```
//!
//! Both checksums of a chunk are seeded with the database's id. A client that stores bytes which
//! look like a chunk therefore cannot make them verify, and recovery, which searches for chunks at
//! every aligned offset, cannot be misled by data. The header has a checksum of its own so that
//! this search costs 72 bytes of hashing a candidate and never a whole payload.

use super::DbId;
use crate::codec::Reader;
use crate::entry::Seq;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(crate) const SEGMENT_HEADER_LEN: usize = 64;
pub(crate) const CHUNK_HEADER_LEN: usize = 72;
pub(crate) const COMMIT_HEADER_LEN: usize = 16;
/// The newest version of the format, and the only one so far.
pub(crate) const VERSION: u32 = 1;
/// The generation of a file that is allocated and synced but was never used.
pub(crate) const UNUSED: u64 = 0;

const SEGMENT_MAGIC: [u8; 8] = *b"KSTNWAL\n";
const CHUNK_MAGIC: [u8; 4] = *b"KChk";
const SEGMENT_SUMMED_LEN: usize = 52;
const CHUNK_SUMMED_LEN: usize = CHUNK_HEADER_LEN - 8;

/// What a chunk of `len` bytes takes in the log: chunks start at multiples of 8.
pub(crate) const fn padded(len: u64) -> u64 {
    len.next_multiple_of(8)
}

/// The first 64 bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) db_id: DbId,
    pub(crate) generation: u64,
    /// The position of the first byte after this header.
    pub(crate) start_pos: u64,
    /// Everything before this position was synced when the header was written.
    pub(crate) durable_pos: u64,
}

/// What the first bytes of a file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SegmentHeaderRead {
    Header(SegmentHeader),
    /// Zeros, a header that was torn while being written, or damage.
    Unreadable,
    /// Written by another version of the program.
    Version(u32),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_LEN] {
        let mut out = Vec::with_capacity(SEGMENT_HEADER_LEN);
        out.extend_from_slice(&SEGMENT_MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.db_id);
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.start_pos.to_le_bytes());
        out.extend_from_slice(&self.durable_pos.to_le_bytes());
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        for (to, from) in bytes.iter_mut().zip(out) {
            *to = from;
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> SegmentHeaderRead {
        Self::try_decode(bytes).unwrap_or(SegmentHeaderRead::Unreadable)
    }

    fn try_decode(bytes: &[u8]) -> Option<SegmentHeaderRead> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(SEGMENT_MAGIC.len())? != SEGMENT_MAGIC {
            return None;
        }
        // Another version may keep its checksum elsewhere, so the version is judged first.
        let version = reader.u32()?;
        if version > VERSION {
            return Some(SegmentHeaderRead::Version(version));
        }
        let db_id = *reader.bytes(16)?.first_chunk::<16>()?;
        let (generation, start_pos, durable_pos) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let sum = reader.u64()?;
        let sound = version == VERSION
            && sum == xxh3_64(bytes.get(..SEGMENT_SUMMED_LEN)?)
            && durable_pos <= start_pos
            && start_pos.is_multiple_of(8);
        sound.then_some(SegmentHeaderRead::Header(SegmentHeader {
            db_id,
            generation,
            start_pos,
            durable_pos,
        }))
    }
}

/// Seeds the checksums of chunks, so that only this database's chunks verify.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkSeed(u64);

impl ChunkSeed {
    pub(crate) fn new(db_id: &DbId) -> Self {
        ChunkSeed(xxh3_64(db_id))
    }
}

/// The head of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub(crate) payload_len: u32,
    /// The generation of the segment it was written to.
    pub(crate) generation: u64,
    /// Where in the log the chunk starts.
    pub(crate) pos: u64,
    /// Everything before this position was synced when the chunk was written.
    pub(crate) durable_pos: u64,
    /// The wall clock when it was written.
    pub(crate) clock_ms: u64,
    pub(crate) first_seq: Seq,
    /// `first_seq - 1` when the chunk holds no commit (the mark of a clean shutdown).
    pub(crate) last_seq: Seq,
    payload_sum: u64,
}

/// What goes into the header of a chunk that is about to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkStamp {
    pub(crate) generation: u64,
    pub(crate) pos: u64,
    pub(crate) durable_pos: u64,
    pub(crate) clock_ms: u64,
    pub(crate) first_seq: Seq,
    pub(crate) last_seq: Seq,
}

impl ChunkHeader {
    /// Verifies and decodes the head of a chunk. The payload is not looked at.
    pub(crate) fn decode(bytes: &[u8], seed: ChunkSeed) -> Option<ChunkHeader> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(CHUNK_MAGIC.len())? != CHUNK_MAGIC {
            return None;
        }
        let header = ChunkHeader {
            payload_len: reader.u32()?,
            generation: reader.u64()?,
            pos: reader.u64()?,
            durable_pos: reader.u64()?,
            clock_ms: reader.u64()?,
            first_seq: reader.u64()?,
            last_seq: reader.u64()?,
            payload_sum: reader.u64()?,
        };
        let sum = reader.u64()?;
        let sound = sum == xxh3_64_with_seed(bytes.get(..CHUNK_SUMMED_LEN)?, seed.0)
            && header.durable_pos <= header.pos
            && header.first_seq <= header.last_seq.checked_add(1)?;
        sound.then_some(header)
    }

    pub(crate) fn payload_is_intact(&self, payload: &[u8], seed: ChunkSeed) -> bool {
        payload.len() as u64 == u64::from(self.payload_len)
            && self.payload_sum == xxh3_64_with_seed(payload, seed.0)
    }

    /// The bytes the chunk takes in the log, padding included.
    pub(crate) fn total_len(&self) -> u64 {
        padded(CHUNK_HEADER_LEN as u64 + u64::from(self.payload_len))
    }

    /// A quick look at whether a chunk may start here; [`ChunkHeader::decode`] decides.
    pub(crate) fn may_start_with(bytes: &[u8]) -> bool {
        bytes.starts_with(&CHUNK_MAGIC)
    }
}

/// An empty chunk to append commits to: room for the header, nothing else.
pub(crate) fn begin_chunk(buf: &mut Vec<u8>) {
    buf.clear();
    buf.resize(CHUNK_HEADER_LEN, 0);
}

/// Appends one commit to a chunk. The caller has checked that the lengths fit.
pub(crate) fn put_commit(buf: &mut Vec<u8>, first_seq: Seq, seq_count: u32, ops: &[u8]) {
    buf.extend_from_slice(&(ops.len() as u32).to_le_bytes());
    buf.extend_from_slice(&first_seq.to_le_bytes());
    buf.extend_from_slice(&seq_count.to_le_bytes());
    buf.extend_from_slice(ops);
}

/// Fills in the header and pads the chunk: afterwards `buf` is what goes to disk. `None` if the
/// payload is over what the format can hold, or `buf` was not begun.
pub(crate) fn finish_chunk(buf: &mut Vec<u8>, stamp: ChunkStamp, seed: ChunkSeed) -> Option<()> {
    let payload = buf.get(CHUNK_HEADER_LEN..)?;
    let payload_len = u32::try_from(payload.len()).ok()?;
    let payload_sum = xxh3_64_with_seed(payload, seed.0);
    let mut head = [0; CHUNK_HEADER_LEN];
    let mut at = 0;
    let mut put = |field: &[u8]| {
        for (to, from) in head.iter_mut().skip(at).zip(field) {
            *to = *from;
        }
        at += field.len();
    };
    put(&CHUNK_MAGIC);
    put(&payload_len.to_le_bytes());
    for field in [
        stamp.generation,
        stamp.pos,
        stamp.durable_pos,
        stamp.clock_ms,
        stamp.first_seq,
        stamp.last_seq,
        payload_sum,
    ] {
        put(&field.to_le_bytes());
    }
    let sum = xxh3_64_with_seed(head.get(..CHUNK_SUMMED_LEN)?, seed.0);
    head.get_mut(CHUNK_SUMMED_LEN..)?.copy_from_slice(&sum.to_le_bytes());
    buf.get_mut(..CHUNK_HEADER_LEN)?.copy_from_slice(&head);
    buf.resize(buf.len().next_multiple_of(8), 0);
    Some(())
}

/// One commit of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitRef<'a> {
    pub(crate) first_seq: Seq,
    pub(crate) seq_count: u32,
    pub(crate) ops: &'a [u8],
}

/// Takes the next commit off a payload. `None` if the bytes are not a commit.
pub(crate) fn read_commit<'a>(reader: &mut Reader<'a>) -> Option<CommitRef<'a>> {
    let ops_len = usize::try_from(reader.u32()?).ok()?;
    let (first_seq, seq_count) = (reader.u64()?, reader.u32()?);
    let ops = reader.bytes(ops_len)?;
    (seq_count > 0).then_some(CommitRef { first_seq, seq_count, ops })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamp() -> ChunkStamp {
        ChunkStamp {
            generation: 3,
            pos: 640,
            durable_pos: 320,
            clock_ms: 9,
            first_seq: 5,
            last_seq: 6,
        }
    }

    #[test]
    fn a_chunk_reads_back_and_is_padded() {
        let seed = ChunkSeed::new(&[7; 16]);
        let mut buf = Vec::new();
        begin_chunk(&mut buf);
        put_commit(&mut buf, 5, 1, b"one");
        put_commit(&mut buf, 6, 1, b"");
        let len = buf.len();
        finish_chunk(&mut buf, stamp(), seed).unwrap();
        assert!(buf.len().is_multiple_of(8));
        let header = ChunkHeader::decode(&buf, seed).unwrap();
        assert_eq!(header.total_len(), buf.len() as u64);
        assert_eq!((header.pos, header.first_seq, header.last_seq), (640, 5, 6));
        let payload = &buf[CHUNK_HEADER_LEN..len];
        assert!(header.payload_is_intact(payload, seed));
        let mut reader = Reader::new(payload);
        assert_eq!(
            read_commit(&mut reader),
            Some(CommitRef { first_seq: 5, seq_count: 1, ops: b"one" })
        );
        assert_eq!(
            read_commit(&mut reader),
            Some(CommitRef { first_seq: 6, seq_count: 1, ops: b"" })
        );
        assert!(reader.is_empty());
    }

    #[test]
    fn a_chunk_of_another_database_does_not_verify() {
        let mut buf = Vec::new();
        begin_chunk(&mut buf);
        finish_chunk(&mut buf, stamp(), ChunkSeed::new(&[7; 16])).unwrap();
        assert_eq!(ChunkHeader::decode(&buf, ChunkSeed::new(&[8; 16])), None);
    }

    #[test]
    fn a_flip_of_any_bit_of_a_segment_header_is_noticed() {
        let header =
            SegmentHeader { db_id: [1; 16], generation: 2, start_pos: 4096, durable_pos: 4096 };
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), SegmentHeaderRead::Header(header));
        // The last four bytes are padding.
        for bit in 0..(SEGMENT_HEADER_LEN - 4) * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(SegmentHeader::decode(&bad), SegmentHeaderRead::Header(header), "bit {bit}");
        }
    }

    #[test]
    fn a_flip_of_any_bit_of_a_chunk_header_is_noticed() {
        let seed = ChunkSeed::new(&[7; 16]);
        let mut buf = Vec::new();
        begin_chunk(&mut buf);
        finish_chunk(&mut buf, stamp(), seed).unwrap();
        for bit in 0..CHUNK_HEADER_LEN * 8 {
            let mut bad = buf.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ChunkHeader::decode(&bad, seed), None, "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn decoding_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = SegmentHeader::decode(&bytes);
            let _ = ChunkHeader::decode(&bytes, ChunkSeed::new(&[0; 16]));
            let mut reader = Reader::new(&bytes);
            while read_commit(&mut reader).is_some() {}
        }
    }
}
