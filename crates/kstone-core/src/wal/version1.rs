//! Reads log chunks of format version 1, whose headers store every checked field. New segments are
//! written in the current version.
//!
//! ```text
//! chunk    magic u32 | payload_len u32 | generation u64 | pos u64 | durable_pos u64 | clock_ms u64
//!          | first_seq u64 | last_seq u64 | xxh3-64 of the payload | xxh3-64 of all before
//!          | payload | zeros up to a multiple of 8
//!
//! payload  commits: ops_len u32 | first_seq u64 | seq_count u32 | ops
//! ```
//!
//! Segment headers and the seed of the checksums are those of [`format`](super::format), which is
//! the only caller.

use super::format::{ChunkHeader, ChunkSeed, CommitRef};
use crate::codec::Reader;

pub(crate) const VERSION: u32 = 1;
pub(crate) const CHUNK_HEADER_LEN: usize = 72;
pub(crate) const CHUNK_MAGIC: [u8; 4] = *b"KChk";

const CHUNK_SUMMED_LEN: usize = CHUNK_HEADER_LEN - 8;

/// The head of a chunk, and where it says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) generation: u64,
    pub(crate) pos: u64,
    pub(crate) header: ChunkHeader,
}

impl Chunk {
    /// Verifies and decodes the head of a chunk, wherever it is. The payload is not looked at.
    pub(crate) fn decode(bytes: &[u8], seed: ChunkSeed) -> Option<Chunk> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(CHUNK_MAGIC.len())? != CHUNK_MAGIC {
            return None;
        }
        let payload_len = reader.u32()?;
        let (generation, pos, durable_pos) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (clock_ms, first_seq, last_seq) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (payload_sum, sum) = (reader.u64()?, reader.u64()?);
        let sound = sum == seed.sum(bytes.get(..CHUNK_SUMMED_LEN)?)
            && first_seq <= last_seq.checked_add(1)?;
        let header = ChunkHeader {
            header_len: CHUNK_HEADER_LEN,
            payload_len,
            unsynced_bytes: Some(pos.checked_sub(durable_pos)?),
            clock_ms,
            first_seq,
            last_seq: Some(last_seq),
            payload_sum,
        };
        sound.then_some(Chunk { generation, pos, header })
    }
}

/// Takes the next commit off a payload.
pub(crate) fn read_commit<'a>(reader: &mut Reader<'a>) -> Option<CommitRef<'a>> {
    let ops_len = usize::try_from(reader.u32()?).ok()?;
    let (first_seq, seq_count) = (reader.u64()?, reader.u32()?);
    Some(CommitRef { first_seq, seq_count, ops: reader.bytes(ops_len)? })
}

/// How chunks of version 1 were written: for tests that read them, and for the fuzzer, which makes
/// their checksums right again.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod writer {
    use super::*;
    use crate::entry::Seq;

    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Stamp {
        pub(crate) generation: u64,
        pub(crate) pos: u64,
        pub(crate) durable_pos: u64,
        pub(crate) clock_ms: u64,
        pub(crate) first_seq: Seq,
        pub(crate) last_seq: Seq,
    }

    /// The chunk with this payload, padded.
    pub(crate) fn chunk(payload: &[u8], stamp: Stamp, seed: ChunkSeed) -> Vec<u8> {
        let mut out = CHUNK_MAGIC.to_vec();
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        for field in [
            stamp.generation,
            stamp.pos,
            stamp.durable_pos,
            stamp.clock_ms,
            stamp.first_seq,
            stamp.last_seq,
            seed.sum(payload),
        ] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&seed.sum(&out).to_le_bytes());
        out.extend_from_slice(payload);
        out.resize(out.len().next_multiple_of(8), 0);
        out
    }

    /// One commit of a payload.
    pub(crate) fn commit(first_seq: Seq, seq_count: u32, ops: &[u8]) -> Vec<u8> {
        let mut out = (ops.len() as u32).to_le_bytes().to_vec();
        out.extend_from_slice(&first_seq.to_le_bytes());
        out.extend_from_slice(&seq_count.to_le_bytes());
        out.extend_from_slice(ops);
        out
    }
}
