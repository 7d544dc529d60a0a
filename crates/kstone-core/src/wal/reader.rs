//! Reads chunks out of one segment file, and searches a file for anything that looks like one.
//!
//! Called by `recover` only. Reads go through a window so that a log of many small chunks does not
//! cost two system calls each; the window never grows beyond what the file holds.

use super::format::SEGMENT_HEADER_LEN;
use super::format::{
    CHUNK_HEADER_LEN, CHUNK_HEADER_LEN_MAX, ChunkHeader, ChunkSeed, SegmentIdentity,
};
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

/// Where a chunk must be to count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expect {
    pub(crate) identity: SegmentIdentity,
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
        let offset = expect.identity.offset_of(expect.pos) + header.header_len as u64;
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
        let (identity, offset) = (expect.identity, expect.identity.offset_of(expect.pos));
        // A file may end right behind a header that is shorter than the longest.
        let len = self.file_len.saturating_sub(offset).min(CHUNK_HEADER_LEN_MAX as u64);
        let Some(head) = self.bytes(offset, len)? else { return Ok(None) };
        let mut found = ChunkHeader::decode(head, &identity, offset, seed);
        if found.is_none() && bugs::on(Bug::StaleChunkAccepted) {
            found = ChunkHeader::decode_stale(head, &identity, offset, seed);
        }
        Ok(found.filter(|header| {
            let end = expect.pos.checked_add(header.total_len());
            end.is_some_and(|end| expect.end_pos.is_none_or(|limit| end <= limit))
        }))
    }

    /// Calls `found` with every place, from `offset` on, where the head of a chunk may be, and with
    /// the bytes there. Looks at every multiple of 8, because the length of a bad chunk says
    /// nothing about where the next one starts.
    pub(crate) fn search(&mut self, offset: u64, found: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
        const HEAD: u64 = CHUNK_HEADER_LEN_MAX as u64;
        let mut at = offset.max(SEGMENT_HEADER_LEN as u64).next_multiple_of(8);
        while at.saturating_add(CHUNK_HEADER_LEN as u64) <= self.file_len {
            let len = (self.file_len - at).min(WINDOW_BYTES);
            // The next block starts with the first place whose header this one may cut in two.
            let step = if at + len < self.file_len { len - HEAD + 8 } else { len };
            let Some(block) = self.bytes(at, len)? else { break };
            for (i, start) in block.chunks(8).enumerate().take(step.div_ceil(8) as usize) {
                if ChunkHeader::may_start_with(start) {
                    let head = block.get(i * 8..).unwrap_or_default();
                    let head = head.get(..CHUNK_HEADER_LEN_MAX).unwrap_or(head);
                    found(at + i as u64 * 8, head);
                }
            }
            at += step.next_multiple_of(8);
        }
        Ok(())
    }
}
