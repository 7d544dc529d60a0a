//! The bytes of a log file. All integers are little-endian.
//!
//! ```text
//! segment  header (64 bytes), then chunks, each at a multiple of 8 bytes
//!
//! header   magic 8 | version u32 | db_id 16 | generation u64 | start_pos u64 | durable_pos u64
//!          | xxh3-64 of all before | zero u32
//!
//! chunk    magic 2 | generation u16 | payload_len u32 | first_seq u64 | xxh3-64 of the payload
//!          | unsynced u32 | clock_ms u48 | xxh3-48 of all before, the generation and the offset
//!          | payload | zeros up to a multiple of 8
//!
//! payload  commits: ops_len varint | seq_count varint | ops
//! ```
//!
//! This is version 2. A put that is written alone pays for a whole chunk, so the header says
//! nothing that its reader knows already: generation and offset are hashed and not stored (but for
//! 16 bits of the generation, by which a segment that lost its header is recognised), the position
//! follows from the offset, and the number of a commit from the counts before it. Segments of
//! [version 1](version1), whose chunks begin with 72 bytes, are read and never written.
//!
//! Both checksums of a chunk are seeded with the database's id. A client that stores bytes which
//! look like a chunk therefore cannot make them verify, and recovery, which searches for chunks at
//! every aligned offset, cannot be misled by data. The header has a checksum of its own so that
//! this search costs some 50 bytes of hashing a candidate and never a whole payload.
//!
//! The payload's checksum has 64 bits, because nothing else stands between a torn chunk and its
//! replay. The header's has 48: all that a header which verifies by chance can do is to keep a
//! sound database from opening after a crash, by a claim that nobody made. A search looks at 2^20
//! places of a segment of 8 MiB. With 32 bits, a client that has filled a used segment with magics
//! would get there in one of 4096 crashes; with 48, in one of 2^28.

use super::DbId;
use super::version1;
use crate::codec::{Reader, put_varint, varint_len};
use crate::entry::Seq;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(crate) const SEGMENT_HEADER_LEN: usize = 64;
pub(crate) const CHUNK_HEADER_LEN: usize = 40;
/// No version has longer ones.
pub(crate) const CHUNK_HEADER_LEN_MAX: usize = version1::CHUNK_HEADER_LEN;
/// The newest version of the format, and the only one that is written.
pub(crate) const VERSION: u32 = 2;
/// The generation of a file that is allocated and synced but was never used.
pub(crate) const UNUSED: u64 = 0;

const SEGMENT_MAGIC: [u8; 8] = *b"KSTNWAL\n";
const CHUNK_MAGIC: [u8; 2] = *b"K2";
const SEGMENT_SUMMED_LEN: usize = 52;
const CHUNK_SUM_LEN: usize = 6;
const CHUNK_SUMMED_LEN: usize = CHUNK_HEADER_LEN - CHUNK_SUM_LEN;
const CLOCK_MS_MAX: u64 = (1 << 48) - 1;
/// In place of a distance that is too long to be told.
const NO_CLAIM: u32 = u32::MAX;

/// What a chunk of `len` bytes takes in the log: chunks start at multiples of 8.
pub(crate) const fn padded(len: u64) -> u64 {
    len.next_multiple_of(8)
}

/// The first 64 bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Of the chunks behind it. The header itself is the same in both.
    pub(crate) version: u32,
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
        out.extend_from_slice(&self.version.to_le_bytes());
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
        let sound = version >= version1::VERSION
            && sum == xxh3_64(bytes.get(..SEGMENT_SUMMED_LEN)?)
            && durable_pos <= start_pos
            && start_pos.is_multiple_of(8);
        sound.then_some(SegmentHeaderRead::Header(SegmentHeader {
            version,
            db_id,
            generation,
            start_pos,
            durable_pos,
        }))
    }

    pub(crate) fn identity(&self) -> SegmentIdentity {
        SegmentIdentity {
            version: self.version,
            generation: self.generation,
            start_pos: self.start_pos,
        }
    }
}

/// Seeds the checksums of chunks, so that only this database's chunks verify.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkSeed(u64);

impl ChunkSeed {
    pub(crate) fn new(db_id: &DbId) -> Self {
        ChunkSeed(xxh3_64(db_id))
    }

    pub(super) fn sum(self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.0)
    }
}

/// Identifies the segment to which a chunk must have been written, to be valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentIdentity {
    pub(crate) version: u32,
    pub(crate) generation: u64,
    /// The position of the segment's first chunk byte.
    pub(crate) start_pos: u64,
}

impl SegmentIdentity {
    /// Where in the file a position is. The caller knows that it is not before the segment.
    pub(crate) fn offset_of(&self, pos: u64) -> u64 {
        (SEGMENT_HEADER_LEN as u64).saturating_add(pos.saturating_sub(self.start_pos))
    }

    /// The position of a place in the file that is not inside the segment's header.
    pub(crate) fn pos_of(&self, offset: u64) -> u64 {
        self.start_pos.saturating_add(offset.saturating_sub(SEGMENT_HEADER_LEN as u64))
    }
}

/// The head of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub(crate) header_len: usize,
    pub(crate) payload_len: u32,
    /// How much of the log before the chunk was not known to be synced when it was written;
    /// `None` if it does not say.
    pub(crate) unsynced_bytes: Option<u64>,
    /// The wall clock when it was written.
    pub(crate) clock_ms: u64,
    pub(crate) first_seq: Seq,
    /// Version 1 says it. In version 2 it follows from the commits.
    pub(crate) last_seq: Option<Seq>,
    pub(super) payload_sum: u64,
}

/// What goes into the header of a chunk that is about to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkStamp {
    /// Of the segment.
    pub(crate) generation: u64,
    /// In the segment's file.
    pub(crate) offset: u64,
    pub(crate) unsynced_bytes: u64,
    pub(crate) clock_ms: u64,
    pub(crate) first_seq: Seq,
}

impl ChunkHeader {
    /// Verifies and decodes the head of a chunk at an offset of a segment. The payload is not
    /// looked at.
    pub(crate) fn decode(
        bytes: &[u8],
        identity: &SegmentIdentity,
        offset: u64,
        seed: ChunkSeed,
    ) -> Option<ChunkHeader> {
        if identity.version == version1::VERSION {
            let chunk = version1::Chunk::decode(bytes, seed)?;
            let expected =
                chunk.generation == identity.generation && chunk.pos == identity.pos_of(offset);
            return expected.then_some(chunk.header);
        }
        Self::decode_2(bytes, identity.generation, offset, seed)
    }

    fn decode_2(
        bytes: &[u8],
        generation: u64,
        offset: u64,
        seed: ChunkSeed,
    ) -> Option<ChunkHeader> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(CHUNK_MAGIC.len())? != CHUNK_MAGIC {
            return None;
        }
        let generation_end = reader.bytes(2)?;
        let payload_len = reader.u32()?;
        let first_seq = reader.u64()?;
        let payload_sum = reader.u64()?;
        let unsynced = reader.u32()?;
        let clock_ms = u48(reader.bytes(6)?)?;
        let summed = bytes.first_chunk::<CHUNK_SUMMED_LEN>()?;
        let sound = generation_end == low_16(generation)
            && reader.bytes(CHUNK_SUM_LEN)? == chunk_sum(summed, generation, offset, seed);
        sound.then_some(ChunkHeader {
            header_len: CHUNK_HEADER_LEN,
            payload_len,
            unsynced_bytes: (unsynced != NO_CLAIM).then_some(u64::from(unsynced) * 8),
            clock_ms,
            first_seq,
            last_seq: None,
            payload_sum,
        })
    }

    /// Whether these bytes, at an offset of a file that has lost its header, begin a chunk of a
    /// generation above `newest`. Of the generations that end as the chunk says, only the next one
    /// is tried: so many headers cannot have got lost that it would be another.
    pub(crate) fn is_newer_than(bytes: &[u8], newest: u64, offset: u64, seed: ChunkSeed) -> bool {
        if let Some(chunk) = version1::Chunk::decode(bytes, seed) {
            return chunk.generation > newest;
        }
        let generation = generation_end(bytes).and_then(|end| {
            let ahead = end.wrapping_sub(newest as u16).wrapping_sub(1);
            newest.checked_add(u64::from(ahead) + 1)
        });
        generation.is_some_and(|g| Self::decode_2(bytes, g, offset, seed).is_some())
    }

    /// For the deliberate bug of that name: a chunk at this offset of this generation, or of the
    /// last one before it that ends as the chunk says.
    pub(crate) fn decode_stale(
        bytes: &[u8],
        identity: &SegmentIdentity,
        offset: u64,
        seed: ChunkSeed,
    ) -> Option<ChunkHeader> {
        let behind = (identity.generation as u16).wrapping_sub(generation_end(bytes)?);
        let generation = identity.generation.checked_sub(u64::from(behind))?;
        Self::decode_2(bytes, generation, offset, seed)
    }

    pub(crate) fn payload_is_intact(&self, payload: &[u8], seed: ChunkSeed) -> bool {
        payload.len() as u64 == u64::from(self.payload_len) && self.payload_sum == seed.sum(payload)
    }

    /// The bytes the chunk takes in the log, padding included.
    pub(crate) fn total_len(&self) -> u64 {
        padded(self.header_len as u64 + u64::from(self.payload_len))
    }

    /// Everything before this position was synced when the chunk, which is at `pos`, was written.
    pub(crate) fn durable_pos(&self, pos: u64) -> u64 {
        self.unsynced_bytes.map_or(0, |unsynced| pos.saturating_sub(unsynced))
    }

    /// A quick look at whether a chunk of any version may start here; decoding decides.
    pub(crate) fn may_start_with(bytes: &[u8]) -> bool {
        bytes.starts_with(&CHUNK_MAGIC) || bytes.starts_with(&version1::CHUNK_MAGIC)
    }
}

fn low_16(generation: u64) -> [u8; 2] {
    (generation as u16).to_le_bytes()
}

fn generation_end(head: &[u8]) -> Option<u16> {
    head.get(2..4)?.first_chunk().map(|end| u16::from_le_bytes(*end))
}

fn u48(bytes: &[u8]) -> Option<u64> {
    let mut wide = [0; 8];
    wide.get_mut(..6)?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(wide))
}

/// Covers what the header holds, and where it is: a chunk that an earlier use of the file left
/// behind does not verify, nor does one at another offset.
fn chunk_sum(
    summed: &[u8; CHUNK_SUMMED_LEN],
    generation: u64,
    offset: u64,
    seed: ChunkSeed,
) -> [u8; CHUNK_SUM_LEN] {
    let mut all = [0; CHUNK_SUMMED_LEN + 16];
    let place = generation.to_le_bytes().into_iter().chain(offset.to_le_bytes());
    for (to, from) in all.iter_mut().zip(summed.iter().copied().chain(place)) {
        *to = from;
    }
    let [a, b, c, d, e, f, _, _] = seed.sum(&all).to_le_bytes();
    [a, b, c, d, e, f]
}

/// An empty chunk to append commits to: room for the header, nothing else.
pub(crate) fn begin_chunk(buf: &mut Vec<u8>) {
    buf.clear();
    buf.resize(CHUNK_HEADER_LEN, 0);
}

/// What a commit adds to a chunk.
pub(crate) fn commit_bytes(ops_len: usize, seq_count: u32) -> u64 {
    let header = varint_len(ops_len as u64) + varint_len(u64::from(seq_count));
    header as u64 + ops_len as u64
}

/// Appends one commit to a chunk. The caller has checked that the lengths fit.
pub(crate) fn put_commit(buf: &mut Vec<u8>, seq_count: u32, ops: &[u8]) {
    put_varint(buf, ops.len() as u64);
    put_varint(buf, u64::from(seq_count));
    buf.extend_from_slice(ops);
}

/// Fills in the header and pads the chunk: afterwards `buf` is what goes to disk. `None` if the
/// payload is over what the format can hold, or `buf` was not begun.
pub(crate) fn finish_chunk(buf: &mut Vec<u8>, stamp: ChunkStamp, seed: ChunkSeed) -> Option<()> {
    let payload = buf.get(CHUNK_HEADER_LEN..)?;
    let payload_len = u32::try_from(payload.len()).ok()?;
    let payload_sum = seed.sum(payload);
    // Rounded up, and left out where it does not fit: less may be claimed than is true, never more.
    let unsynced = u32::try_from(stamp.unsynced_bytes.div_ceil(8)).unwrap_or(NO_CLAIM);
    // Enough until the year 10889.
    let [c0, c1, c2, c3, c4, c5, _, _] = stamp.clock_ms.min(CLOCK_MS_MAX).to_le_bytes();
    let mut summed = [0; CHUNK_SUMMED_LEN];
    let mut at = 0;
    let mut put = |field: &[u8]| {
        for (to, from) in summed.iter_mut().skip(at).zip(field) {
            *to = *from;
        }
        at += field.len();
    };
    put(&CHUNK_MAGIC);
    put(&low_16(stamp.generation));
    put(&payload_len.to_le_bytes());
    put(&stamp.first_seq.to_le_bytes());
    put(&payload_sum.to_le_bytes());
    put(&unsynced.to_le_bytes());
    put(&[c0, c1, c2, c3, c4, c5]);
    let sum = chunk_sum(&summed, stamp.generation, stamp.offset, seed);
    buf.get_mut(..CHUNK_SUMMED_LEN)?.copy_from_slice(&summed);
    buf.get_mut(CHUNK_SUMMED_LEN..CHUNK_HEADER_LEN)?.copy_from_slice(&sum);
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

/// Takes the next commit, which is to have the number `first_seq`, off a payload. `None` if the
/// bytes are not such a commit.
pub(crate) fn read_commit<'a>(
    reader: &mut Reader<'a>,
    version: u32,
    first_seq: Seq,
) -> Option<CommitRef<'a>> {
    let commit = if version == version1::VERSION {
        version1::read_commit(reader)?
    } else {
        let ops_len = usize::try_from(reader.varint()?).ok()?;
        let seq_count = u32::try_from(reader.varint()?).ok()?;
        CommitRef { first_seq, seq_count, ops: reader.bytes(ops_len)? }
    };
    (commit.seq_count > 0 && commit.first_seq == first_seq).then_some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDENTITY: SegmentIdentity =
        SegmentIdentity { version: VERSION, generation: 0x1_0003, start_pos: 640 };
    const OFFSET: u64 = 128;

    fn seed() -> ChunkSeed {
        ChunkSeed::new(&[7; 16])
    }

    fn stamp() -> ChunkStamp {
        ChunkStamp {
            generation: IDENTITY.generation,
            offset: OFFSET,
            unsynced_bytes: 320,
            clock_ms: 1_700_000_000_000,
            first_seq: 5,
        }
    }

    fn chunk(stamp: ChunkStamp, commits: &[(u32, &[u8])]) -> Vec<u8> {
        let mut buf = Vec::new();
        begin_chunk(&mut buf);
        for (seq_count, ops) in commits {
            let before = buf.len() as u64;
            put_commit(&mut buf, *seq_count, ops);
            assert_eq!(buf.len() as u64 - before, commit_bytes(ops.len(), *seq_count));
        }
        finish_chunk(&mut buf, stamp, seed()).unwrap();
        buf
    }

    #[test]
    fn a_chunk_reads_back_and_is_padded() {
        let long = [9; 300];
        let buf = chunk(stamp(), &[(1, b"one"), (200, &long), (1, b"")]);
        assert!(buf.len().is_multiple_of(8));
        let header = ChunkHeader::decode(&buf, &IDENTITY, OFFSET, seed()).unwrap();
        assert_eq!(header.total_len(), buf.len() as u64);
        assert_eq!((header.first_seq, header.clock_ms), (5, 1_700_000_000_000));
        let pos = IDENTITY.pos_of(OFFSET);
        assert_eq!((pos, IDENTITY.offset_of(pos), header.durable_pos(pos)), (704, OFFSET, 384));
        let payload_len = 2 + 3 + (2 + 2 + 300) + 2;
        assert_eq!(header.payload_len, payload_len);
        let payload = &buf[CHUNK_HEADER_LEN..][..payload_len as usize];
        assert!(header.payload_is_intact(payload, seed()));
        let mut reader = Reader::new(payload);
        let expected = [(5, 1, &b"one"[..]), (6, 200, &long), (206, 1, b"")];
        for (first_seq, seq_count, ops) in expected {
            let commit = read_commit(&mut reader, VERSION, first_seq);
            assert_eq!(commit, Some(CommitRef { first_seq, seq_count, ops }));
        }
        assert!(reader.is_empty());
    }

    #[test]
    fn a_chunk_of_another_database_does_not_verify() {
        let buf = chunk(stamp(), &[]);
        let other = ChunkSeed::new(&[8; 16]);
        assert_eq!(ChunkHeader::decode(&buf, &IDENTITY, OFFSET, other), None);
        assert!(!ChunkHeader::is_newer_than(&buf, IDENTITY.generation - 1, OFFSET, other));
    }

    #[test]
    fn a_chunk_of_an_earlier_generation_at_the_same_offset_does_not_verify() {
        // Of the last, the header does not even show that it is another.
        for behind in [1, 2, 0x1_0000] {
            let stale = ChunkStamp { generation: IDENTITY.generation - behind, ..stamp() };
            let buf = chunk(stale, &[(1, b"old")]);
            assert_eq!(ChunkHeader::decode(&buf, &IDENTITY, OFFSET, seed()), None, "{behind}");
            let identity = SegmentIdentity { generation: stale.generation, ..IDENTITY };
            assert!(ChunkHeader::decode(&buf, &identity, OFFSET, seed()).is_some());
        }
    }

    #[test]
    fn a_chunk_that_was_moved_to_another_offset_does_not_verify() {
        let buf = chunk(stamp(), &[(1, b"moved")]);
        for offset in (0..1024).step_by(8).filter(|offset| *offset != OFFSET) {
            assert_eq!(ChunkHeader::decode(&buf, &IDENTITY, offset, seed()), None, "{offset}");
            assert!(!ChunkHeader::is_newer_than(&buf, IDENTITY.generation - 1, offset, seed()));
        }
    }

    #[test]
    fn a_claim_that_cannot_be_told_is_a_lower_one_never_a_higher_one() {
        let longest = (u64::from(u32::MAX) - 1) * 8;
        let claim = |unsynced_bytes: u64, pos: u64| {
            let buf = chunk(ChunkStamp { unsynced_bytes, ..stamp() }, &[]);
            ChunkHeader::decode(&buf, &IDENTITY, OFFSET, seed()).unwrap().durable_pos(pos)
        };
        let pos = 1 << 40;
        assert_eq!(claim(0, pos), pos);
        assert_eq!(claim(8, pos), pos - 8);
        assert_eq!(claim(13, pos), pos - 16, "rounded down");
        assert_eq!(claim(longest, pos), pos - longest);
        for unsynced in [longest + 1, longest + 8, longest + 16, 1 << 39, u64::MAX] {
            assert_eq!(claim(unsynced, pos), 0, "{unsynced}");
        }
        assert_eq!(claim(4096, 64), 0, "never below the beginning of the log");
    }

    #[test]
    fn a_clock_beyond_48_bits_is_the_last_that_fits() {
        let late = ChunkStamp { clock_ms: u64::MAX, ..stamp() };
        let header = ChunkHeader::decode(&chunk(late, &[]), &IDENTITY, OFFSET, seed()).unwrap();
        assert_eq!(header.clock_ms, (1 << 48) - 1);
    }

    #[test]
    fn a_chunk_newer_than_every_header_is_known_without_its_own() {
        let buf = chunk(stamp(), &[(1, b"new")]);
        let is_newer = |newest| ChunkHeader::is_newer_than(&buf, newest, OFFSET, seed());
        for newest in
            [IDENTITY.generation - 0x1_0000, IDENTITY.generation - 17, IDENTITY.generation - 1]
        {
            assert!(is_newer(newest), "{newest}");
        }
        for newest in [IDENTITY.generation, IDENTITY.generation + 1, u64::MAX] {
            assert!(!is_newer(newest), "{newest}");
        }
        let first = chunk(ChunkStamp { generation: 1, ..stamp() }, &[]);
        assert!(ChunkHeader::is_newer_than(&first, UNUSED, OFFSET, seed()));
    }

    #[test]
    fn a_flip_of_any_bit_of_a_segment_header_is_noticed() {
        for version in [version1::VERSION, VERSION] {
            let header = SegmentHeader {
                version,
                db_id: [1; 16],
                generation: 2,
                start_pos: 4096,
                durable_pos: 4096,
            };
            let bytes = header.encode();
            assert_eq!(SegmentHeader::decode(&bytes), SegmentHeaderRead::Header(header));
            // The last four bytes are padding.
            for bit in 0..(SEGMENT_HEADER_LEN - 4) * 8 {
                let mut bad = bytes;
                bad[bit / 8] ^= 1 << (bit % 8);
                let read = SegmentHeader::decode(&bad);
                assert!(!matches!(read, SegmentHeaderRead::Header(_)), "bit {bit}: {read:?}");
            }
        }
    }

    #[test]
    fn a_flip_of_any_bit_of_a_chunk_header_is_noticed() {
        let buf = chunk(stamp(), &[]);
        let old = version1::writer::Stamp {
            generation: IDENTITY.generation,
            pos: IDENTITY.pos_of(OFFSET),
            durable_pos: 320,
            clock_ms: 9,
            first_seq: 5,
            last_seq: 4,
        };
        let old = version1::writer::chunk(&[], old, seed());
        assert_eq!((buf.len(), old.len()), (CHUNK_HEADER_LEN, version1::CHUNK_HEADER_LEN));
        for (version, buf) in [(VERSION, buf), (version1::VERSION, old)] {
            let identity = SegmentIdentity { version, ..IDENTITY };
            assert!(ChunkHeader::decode(&buf, &identity, OFFSET, seed()).is_some());
            for bit in 0..buf.len() * 8 {
                let mut bad = buf.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(ChunkHeader::decode(&bad, &identity, OFFSET, seed()), None, "bit {bit}");
                let newest = IDENTITY.generation - 1;
                assert!(!ChunkHeader::is_newer_than(&bad, newest, OFFSET, seed()), "bit {bit}");
            }
        }
    }

    #[test]
    fn a_chunk_of_one_version_does_not_count_in_a_segment_of_the_other() {
        let buf = chunk(stamp(), &[(1, b"new"), (1, &[0; 100])]);
        let old_identity = SegmentIdentity { version: version1::VERSION, ..IDENTITY };
        assert_eq!(ChunkHeader::decode(&buf, &old_identity, OFFSET, seed()), None);
    }

    proptest! {
        #[test]
        fn decoding_any_bytes_does_not_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..100),
            magic in 0..3,
        ) {
            let magic: &[u8] = match magic {
                0 => &CHUNK_MAGIC,
                1 => &version1::CHUNK_MAGIC,
                _ => &[],
            };
            for (to, from) in bytes.iter_mut().zip(magic) {
                *to = *from;
            }
            let _ = SegmentHeader::decode(&bytes);
            let _ = ChunkHeader::is_newer_than(&bytes, 3, OFFSET, seed());
            for version in [version1::VERSION, VERSION] {
                let _ = ChunkHeader::decode(&bytes, &SegmentIdentity { version, ..IDENTITY }, OFFSET, seed());
                let mut reader = Reader::new(&bytes);
                while read_commit(&mut reader, version, 1).is_some() {}
            }
        }
    }
}
