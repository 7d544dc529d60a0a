//! A filter in pieces of 64 lines, for files whose filter is long: a get reads the one piece that has
//! the key's line, 4 KiB, and not the filter.
//!
//! A piece is the payload of an uncompressed frame: 64 lines as in [`filter`](super::filter), and
//! nothing else. The pieces lie back to back. Their *directory* is the payload of another:
//!
//! ```text
//! first      u64: where the frame of the first piece begins
//! lines      u32: of all pieces together; a multiple of 64
//! probes     u8: as at the end of a whole filter
//! checksum   u64 × lines / 64: that of each piece's frame
//! ```
//!
//! The line of a hash is found as in a whole filter, among all lines; line n is in piece n / 64. All
//! pieces are of one length, so their places follow from the first.
//!
//! Written by `assembly`, asked by `reader`.

use std::sync::Arc;

use super::filter::{Filter, LINE_LEN, Line, PROBES_MAX, encode_lines, line_of};
use super::frame::{TRAILER_LEN, open_raw};
use super::index::Handle;
use super::join::RequestCounter;
use super::reader::SstReader;
use super::slots::{EvictedPart, Part, Slots, Uses, numbers, plain_part};
use super::stats::Count;
use crate::codec::Reader;
use crate::error::{Error, Result};

pub(super) const PIECE_LINES: usize = 64;
const PIECE_LEN: usize = PIECE_LINES * LINE_LEN;
const PIECE_FRAME_LEN: usize = PIECE_LEN + TRAILER_LEN;
const HEADER_LEN: usize = 8 + 4 + 1;
const CHECKSUM_LEN: usize = 8;

/// The payloads of a filter's pieces, one after the other.
pub(super) fn each_piece(filter: &Filter) -> impl Iterator<Item = Vec<u8>> {
    filter.lines().chunks(PIECE_LINES).map(|lines| {
        let mut payload = Vec::with_capacity(PIECE_LEN);
        encode_lines(lines, &mut payload);
        payload
    })
}

/// Where the pieces of a filter are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directory {
    first: u64,
    lines: usize,
    probes: u32,
    checksums: Box<[u64]>,
}

impl Directory {
    /// Of the pieces of this filter, which have been written back to back.
    pub(super) fn of(filter: &Filter, pieces: &[Handle]) -> Self {
        Directory {
            first: pieces.first().map_or(0, |piece| piece.offset),
            lines: filter.lines().len(),
            probes: filter.probes(),
            checksums: pieces.iter().map(|piece| piece.checksum).collect(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN + self.checksums.len() * CHECKSUM_LEN);
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&(self.lines as u32).to_le_bytes());
        out.push(self.probes as u8);
        for checksum in &self.checksums {
            out.extend_from_slice(&checksum.to_le_bytes());
        }
        out
    }

    /// `None` if the bytes are no directory.
    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(payload);
        let first = reader.u64()?;
        let lines = usize::try_from(reader.u32()?).ok()?;
        let probes = u32::from(reader.u8()?);
        let (checksums, rest) = payload.get(HEADER_LEN..)?.as_chunks::<CHECKSUM_LEN>();
        let is_sound = rest.is_empty()
            && !checksums.is_empty()
            && checksums.len().checked_mul(PIECE_LINES) == Some(lines)
            && (1..=PROBES_MAX).contains(&probes);
        let checksums = || checksums.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let directory =
            is_sound.then(|| Directory { first, lines, probes, checksums: checksums() });
        directory.filter(|directory| directory.end().is_some())
    }

    /// Where the first piece begins.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Where the last piece ends.
    pub(super) fn end(&self) -> Option<u64> {
        let len = self.checksums.len().checked_mul(PIECE_FRAME_LEN)?;
        self.first.checked_add(len as u64)
    }

    pub(super) fn count(&self) -> usize {
        self.checksums.len()
    }

    /// Which piece has the line of this hash, and which of its lines that is.
    #[inline]
    fn place(&self, hash: u64) -> (usize, usize) {
        let line = line_of(hash, self.lines);
        (line / PIECE_LINES, line % PIECE_LINES)
    }

    pub(super) fn handle(&self, nth: usize) -> Option<Handle> {
        let checksum = *self.checksums.get(nth)?;
        // It was seen that they all lie below `u64::MAX`.
        let offset = self.first + (nth * PIECE_FRAME_LEN) as u64;
        Some(Handle { offset, len: PIECE_FRAME_LEN as u32, checksum })
    }
}

/// A piece of a filter.
#[derive(Debug)]
pub(super) struct Piece {
    lines: [Line; PIECE_LINES],
    uses: Uses,
}

impl Piece {
    fn decode(payload: &[u8]) -> Option<Self> {
        let (chunks, rest) = payload.as_chunks::<LINE_LEN>();
        if chunks.len() != PIECE_LINES || !rest.is_empty() {
            return None;
        }
        let mut lines = [Line::FULL; PIECE_LINES];
        for (line, chunk) in lines.iter_mut().zip(chunks) {
            *line = Line::decode(chunk);
        }
        Some(Piece { lines, uses: Uses::default() })
    }

    #[inline]
    fn may_contain(&self, line: usize, hash: u64, probes: u32) -> bool {
        self.lines.get(line).is_none_or(|line| line.may_contain(hash, probes))
    }
}

impl Part for Piece {
    fn weight(&self) -> usize {
        size_of::<Piece>()
    }

    plain_part!();
}

/// A filter's directory, and a place for each of its pieces.
#[derive(Debug)]
pub(super) struct PiecedFilter {
    directory: Directory,
    pieces: Arc<Slots<Piece>>,
    uses: Uses,
    requests: RequestCounter,
}

impl Part for PiecedFilter {
    const OWNS_PARTS: bool = true;

    fn weight(&self) -> usize {
        size_of::<PiecedFilter>()
            + self.directory.count() * (CHECKSUM_LEN + Slots::<Piece>::PLACE_BYTES)
    }

    plain_part!();
}

impl PiecedFilter {
    /// What the whole filter takes in memory.
    pub(super) fn joined_bytes(&self) -> usize {
        self.directory.lines * LINE_LEN
    }

    /// Have pieces been asked for so often that they are worth joining? To be counted each time one was.
    #[inline]
    pub(super) fn is_worth_joining(&self) -> bool {
        self.requests.is_now(self.directory.count())
    }

    /// They could not be joined.
    pub(super) fn not_joined(&self) {
        self.requests.refused();
    }

    /// What the filter says of a hash, if the piece that knows is in memory.
    #[inline]
    pub(super) fn check_cached(&self, hash: u64) -> Option<bool> {
        let (nth, line) = self.directory.place(hash);
        let piece = self.pieces.get(nth)?;
        Some(piece.may_contain(line, hash, self.directory.probes))
    }
}

impl SstReader {
    /// What a filter in pieces says of a hash.
    pub(super) fn check_piece(&self, hash: u64) -> Result<bool> {
        let filter = self.pieced_filter()?;
        let counters = self.cache().counters();
        if let Some(said) = filter.check_cached(hash) {
            counters.count(Count::FilterHit);
            return Ok(said);
        }
        counters.count(Count::FilterMiss);
        let (nth, line) = filter.directory.place(hash);
        let piece = Arc::new(self.read_piece(&filter.directory, nth)?);
        filter.pieces.put(nth, &piece);
        Ok(piece.may_contain(line, hash, filter.directory.probes))
    }

    fn pieced_filter(&self) -> Result<Arc<PiecedFilter>> {
        if let Some(filter) = self.hot_pieces().get() {
            return Ok(filter);
        }
        self.cache().counters().count(Count::FilterMiss);
        let directory = self.read_directory()?;
        let (cache, file) = (self.cache(), self.meta().file_id);
        let pieces = Slots::new(cache, file, numbers::FILTER_PIECES, directory.count());
        let (uses, requests) = (Uses::default(), RequestCounter::default());
        let filter = Arc::new(PiecedFilter { directory, pieces, uses, requests });
        self.hot_pieces().keep(cache, file, numbers::FILTER, &filter);
        Ok(filter)
    }

    /// Reads the directory, and sees that its pieces are where pieces can be.
    pub(super) fn read_directory(&self) -> Result<Directory> {
        let footer = self.footer()?;
        let directory = Directory::decode(&self.read_frame(footer.filter)?);
        directory
            .filter(|directory| directory.end().is_some_and(|end| end <= footer.blocks_end()))
            .ok_or_else(|| {
                let what = "the filter's directory is malformed";
                Error::corruption(&self.path(), footer.filter.offset, what)
            })
    }

    /// All of a filter, from memory or from the file.
    pub(super) fn joined_pieces(&self, filter: &PiecedFilter) -> Result<Filter> {
        let directory = &filter.directory;
        let mut lines = Vec::with_capacity(directory.lines);
        for nth in 0..directory.count() {
            match filter.pieces.peek(nth) {
                Some(piece) => lines.extend_from_slice(&piece.lines),
                None => lines.extend_from_slice(&self.read_piece(directory, nth)?.lines),
            }
        }
        Ok(Filter::of_lines(lines.into(), directory.probes))
    }

    fn read_piece(&self, directory: &Directory, nth: usize) -> Result<Piece> {
        let handle = directory.handle(nth).unwrap_or_default();
        let piece =
            self.read_small(handle, |frame| open_raw(frame, handle.checksum).map(Piece::decode))?;
        let what = "the piece of the filter is malformed";
        piece.ok_or_else(|| Error::corruption(&self.path(), handle.offset, what))
    }

    /// All of the filter, for `verify`. Pieces that are damaged are told to `report`, and deny nothing.
    pub(super) fn read_pieces(
        &self,
        directory: &Directory,
        report: &mut dyn FnMut(Error) -> Result<()>,
    ) -> Result<Filter> {
        let mut lines = Vec::with_capacity(directory.lines);
        for nth in 0..directory.count() {
            match self.read_piece(directory, nth) {
                Ok(piece) => lines.extend_from_slice(&piece.lines),
                Err(error) => {
                    report(error)?;
                    lines.extend_from_slice(&[Line::FULL; PIECE_LINES]);
                }
            }
        }
        Ok(Filter::of_lines(lines.into(), directory.probes))
    }
}

/// Decodes any bytes as a directory, and writes what it read again. For fuzzing.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check_directory(bytes: &[u8]) -> bool {
    let Some(directory) = Directory::decode(bytes) else { return false };
    assert_eq!(directory.encode(), bytes);
    for hash in [0, 1 << 32, u64::MAX, super::key_hash(bytes)] {
        let (nth, _) = directory.place(hash);
        assert!(directory.handle(nth).is_some(), "every line is in a piece");
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sst::key_hash;

    fn hash(i: u64) -> u64 {
        key_hash(format!("user#{i}").as_bytes())
    }

    #[test]
    fn pieces_say_what_the_whole_filter_says() {
        for keys in [1, 2000, 30_000] {
            let hashes: Vec<u64> = (0..keys).map(hash).collect();
            let filter = Filter::build(&hashes, 14, PIECE_LINES);
            assert_eq!(filter.lines().len() % PIECE_LINES, 0);
            let pieces: Vec<Piece> =
                each_piece(&filter).map(|payload| Piece::decode(&payload).unwrap()).collect();
            let handle = |nth: u64| Handle {
                offset: 100 + nth * PIECE_FRAME_LEN as u64,
                len: PIECE_FRAME_LEN as u32,
                checksum: nth * 7,
            };
            let handles: Vec<Handle> = (0..pieces.len() as u64).map(handle).collect();
            let directory = Directory::decode(&Directory::of(&filter, &handles).encode()).unwrap();
            assert_eq!(directory.end(), handles.last().and_then(Handle::end));
            for hash in (0..2 * keys).map(hash) {
                let (nth, line) = directory.place(hash);
                assert_eq!(directory.handle(nth), Some(handles[nth]));
                let said = pieces[nth].may_contain(line, hash, directory.probes);
                assert_eq!(said, filter.may_contain(hash));
            }
        }
    }

    #[test]
    fn bytes_that_are_no_directory_are_refused() {
        let directory = |first: u64, lines: u32, probes: u8, pieces: usize| {
            let mut bytes = first.to_le_bytes().to_vec();
            bytes.extend(lines.to_le_bytes());
            bytes.push(probes);
            bytes.resize(bytes.len() + pieces * CHECKSUM_LEN, 3);
            bytes
        };
        assert!(check_directory(&directory(9, 128, 8, 2)));
        for bad in [
            Vec::new(),
            directory(9, 0, 8, 0),
            directory(9, 128, 8, 1),
            directory(9, 127, 8, 2),
            directory(9, 128, 0, 2),
            directory(9, 128, 17, 2),
            directory(u64::MAX - 8000, 128, 8, 2),
            directory(9, u32::MAX, 8, 2),
            [directory(9, 128, 8, 2), vec![0]].concat(),
        ] {
            assert!(!check_directory(&bad), "{bad:?}");
        }
    }
}
