//! Reads chunks out of one segment file, and searches a file for anything that looks like one.
//!
//! Called by `recover` only. Reads go through a window so that a log of many small chunks does not
//! cost two system calls each; the window never grows beyond what the file holds.

use super::format::{CHUNK_HEADER_LEN, ChunkHeader, ChunkSeed, SEGMENT_HEADER_LEN};
use crate::bugs::{self, Bug};
use crate::env::VfsFile;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Large enough that a system call is nothing beside the hashing, small enough to be forgotten.
const WINDOW_BYTES: u64 = 1 << 20;

/// A segment file, read front to back.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    path: PathBuf,
    file: Arc<dyn VfsFile>,
    file_len: u64,
    window: Vec<u8>,
    window_start: u64,
}

/// Where a chunk must be, and what it must say of itself, to count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expect {
    pub(crate) generation: u64,
    /// The position of the segment's first chunk byte.
    pub(crate) start_pos: u64,
    pub(crate) pos: u64,
    /// Where the next generation takes over; a chunk may not reach beyond it.
    pub(crate) end_pos: Option<u64>,
}

impl SegmentReader {
    pub(crate) fn new(path: &Path, file: &Arc<dyn VfsFile>, file_len: u64) -> Self {
        SegmentReader {
            path: path.to_owned(),
            file: Arc::clone(file),
            file_len,
            window: Vec::new(),
            window_start: 0,
        }
    }

    /// The bytes at `offset`; `None` if the file is shorter.
    fn bytes(&mut self, offset: u64, len: u64) -> Result<Option<&[u8]>> {
        let Some(end) = offset.checked_add(len).filter(|end| *end <= self.file_len) else {
            return Ok(None);
        };
        let window_end = self.window_start + self.window.len() as u64;
        if offset < self.window_start || end > window_end {
            let want = len.max(WINDOW_BYTES).min(self.file_len - offset);
            self.window.clear();
            self.window.resize(want as usize, 0);
            self.window_start = offset;
            if let Err(error) = self.file.read_exact_at(&mut self.window, offset) {
                self.window.clear();
                return Err(Error::io("read", &self.path, error));
            }
        }
        let from = (offset - self.window_start) as usize;
        Ok(self.window.get(from..from + len as usize))
    }

    /// The chunk at a position, if a whole and intact one is there.
    pub(crate) fn chunk(
        &mut self,
        expect: Expect,
        seed: ChunkSeed,
    ) -> Result<Option<(ChunkHeader, &[u8])>> {
        let Some(header) = self.chunk_header(expect, seed)? else { return Ok(None) };
        let offset = offset_of(expect.start_pos, expect.pos) + CHUNK_HEADER_LEN as u64;
        let payload = self.bytes(offset, u64::from(header.payload_len))?;
        Ok(payload
            .filter(|payload| header.payload_is_intact(payload, seed))
            .map(|payload| (header, payload)))
    }

    /// The head of the chunk at a position, if it is the one expected there; its payload may be
    /// torn or missing.
    pub(crate) fn chunk_header(
        &mut self,
        expect: Expect,
        seed: ChunkSeed,
    ) -> Result<Option<ChunkHeader>> {
        let offset = offset_of(expect.start_pos, expect.pos);
        let Some(head) = self.bytes(offset, CHUNK_HEADER_LEN as u64)? else { return Ok(None) };
        Ok(ChunkHeader::decode(head, seed).filter(|header| {
            let end = expect.pos.checked_add(header.total_len());
            let is_expected = header.generation == expect.generation && header.pos == expect.pos;
            (is_expected || bugs::on(Bug::StaleChunkAccepted))
                && end.is_some_and(|end| expect.end_pos.is_none_or(|limit| end <= limit))
        }))
    }

    /// Calls `found` with the offset of every chunk header of this database, of any generation,
    /// from `offset` on. Looks at every multiple of 8, because the length of a bad chunk says
    /// nothing about where the next one starts.
    pub(crate) fn search(
        &mut self,
        offset: u64,
        seed: ChunkSeed,
        found: &mut dyn FnMut(u64, ChunkHeader),
    ) -> Result<()> {
        const HEAD: u64 = CHUNK_HEADER_LEN as u64;
        let mut at = offset.max(SEGMENT_HEADER_LEN as u64).next_multiple_of(8);
        while at.saturating_add(HEAD) <= self.file_len {
            let len = (self.file_len - at).min(WINDOW_BYTES);
            let Some(block) = self.bytes(at, len)? else { break };
            for (i, head) in block.chunks(8).enumerate() {
                if !ChunkHeader::may_start_with(head) {
                    continue;
                }
                let from = i * 8;
                let head = block.get(from..from + CHUNK_HEADER_LEN).unwrap_or_default();
                if let Some(header) = ChunkHeader::decode(head, seed) {
                    found(at + from as u64, header);
                }
            }
            // The next block starts early enough to see a header that this one cut in two.
            let step = if at + len < self.file_len { len - HEAD + 8 } else { len };
            at += step.next_multiple_of(8);
        }
        Ok(())
    }
}

/// Where in its file a position is. The caller knows that `pos` is not before the segment.
pub(crate) fn offset_of(start_pos: u64, pos: u64) -> u64 {
    (SEGMENT_HEADER_LEN as u64).saturating_add(pos.saturating_sub(start_pos))
}
