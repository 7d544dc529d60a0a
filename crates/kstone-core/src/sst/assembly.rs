//! Puts one SST file together from data blocks that arrive in order.
//!
//! Called by the writer, which makes blocks of entries one at a time, and by ingest, which makes
//! them on one thread and has them compressed and written on another. Neither syncs: see `writer`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::filter::Filter;
use super::filter_parts::{Directory, PIECE_LINES, each_piece};
use super::footer::{FOOTER_LEN, Footer, Properties, VERSION_IN_PARTS, VERSION_WHOLE};
use super::frame::{FrameSealer, seal_raw};
use super::index::{Handle, IndexBuilder};
use super::indexed::PART_BLOCKS;
use super::run::Run;
use super::{Compression, FileIdent, SstMeta, SstOptions, file_name};
use crate::entry::Seq;
use crate::env::{OpenMode, Vfs, VfsFile};
use crate::error::{Error, Result};

/// Writes are this large at least. Smaller ones cost a system call each; larger ones only memory.
pub(super) const WRITE_BYTES: usize = 256 << 10;

/// Where frames are made before they go to their file. It outlives the files, because what
/// compressors keep for themselves is best used again while it is warm: a thread that writes hundreds
/// of files in turns has one for all of them.
#[derive(Debug)]
pub(crate) struct FrameBuffer {
    sealer: FrameSealer,
    /// Frames that are not in the file yet.
    pending: Vec<u8>,
}

impl FrameBuffer {
    pub(crate) fn new(compression: Compression) -> Result<Self> {
        Ok(FrameBuffer { sealer: FrameSealer::new(compression)?, pending: Vec::new() })
    }

    pub(super) fn pending_len(&self) -> usize {
        self.pending.len()
    }
}

/// A file of which some blocks are known. What of it is not in the file yet is in the [`FrameBuffer`]
/// that every call is given.
#[derive(Debug)]
pub(crate) struct SstAssembly {
    path: PathBuf,
    file: Arc<dyn VfsFile>,
    ident: FileIdent,
    filter_bits_per_key: u32,
    parts_beyond_bytes: usize,
    index: IndexBuilder,
    /// The latest block: its place in the index follows from the next key.
    unindexed: Option<Handle>,
    /// Of each distinct key, in order.
    pub(super) hashes: Vec<u64>,
    pub(super) properties: Properties,
    pub(super) smallest: Vec<u8>,
    /// Of the latest entry.
    pub(super) last_key: Vec<u8>,
    pub(super) last_seq: Seq,
    /// Bytes in the file; those in the frame buffer belong behind them.
    written: u64,
}

impl SstAssembly {
    /// Creates the file, which must not exist.
    pub(crate) fn create(
        vfs: &dyn Vfs,
        dir: &Path,
        ident: FileIdent,
        options: SstOptions,
    ) -> Result<Self> {
        let path = dir.join(file_name(ident.stripe, ident.file_id));
        let file =
            vfs.open(&path, OpenMode::CreateNew).map_err(|e| Error::io("create", &path, e))?;
        Ok(SstAssembly {
            path,
            file,
            ident,
            filter_bits_per_key: options.filter_bits_per_key,
            parts_beyond_bytes: options.parts_beyond_bytes,
            index: IndexBuilder::default(),
            unindexed: None,
            hashes: Vec::new(),
            properties: Properties::default(),
            smallest: Vec::new(),
            last_key: Vec::new(),
            last_seq: 0,
            written: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &Arc<dyn VfsFile> {
        &self.file
    }

    /// About how large the file would be if it were finished now.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        let filter = self.hashes.len() as u64 * u64::from(self.filter_bits_per_key) / 8;
        self.written + (self.index.len() + FOOTER_LEN) as u64 + filter
    }

    /// Appends the blocks of a run, all of whose keys are behind those that are here, and writes
    /// them to the file; answers how many bytes they became. The frame buffer is empty before and after.
    pub(crate) fn append(&mut self, run: &Run, frame_buffer: &mut FrameBuffer) -> Result<u64> {
        for block in run.blocks() {
            self.index_latest(Some(block.first_key));
            self.seal_block(block.payload, frame_buffer);
            self.last_key.clear();
            self.last_key.extend_from_slice(block.last_key);
            if self.smallest.is_empty() {
                self.smallest.extend_from_slice(block.first_key);
            }
        }
        self.hashes.extend_from_slice(run.hashes());
        self.properties.add(run.properties());
        let bytes = frame_buffer.pending.len() as u64;
        self.flush(frame_buffer).map(|()| bytes)
    }

    /// Writes what is left. The file is complete, but not durable: the caller syncs it, and the
    /// folder. After an error the file is useless and still there; the caller removes it.
    pub(crate) fn finish(
        mut self,
        frame_buffer: &mut FrameBuffer,
    ) -> Result<(SstMeta, Arc<dyn VfsFile>)> {
        self.index_latest(None);
        let (version, (filter, index)) = if self.is_large() {
            (VERSION_IN_PARTS, self.append_in_parts(frame_buffer)?)
        } else {
            (VERSION_WHOLE, self.append_whole(frame_buffer)?)
        };
        self.properties
            .bound(std::mem::take(&mut self.smallest), std::mem::take(&mut self.last_key));
        let properties = self.append_raw(&self.properties.encode(), frame_buffer)?;
        let ident = self.ident;
        let mut footer = Footer { filter, index, properties, ident, version, checksum: 0 };
        frame_buffer.pending.extend_from_slice(&footer.encode());
        self.flush(frame_buffer)?;
        Ok((self.properties.into_meta(self.ident, self.written, footer.checksum), self.file))
    }

    /// Whether filter and index are so long that a get, which needs a little of them, should not have to read
    /// all.
    fn is_large(&self) -> bool {
        let filter_len = match self.hashes.len() {
            0 => 0,
            keys => Filter::encoded_len(keys, self.filter_bits_per_key),
        };
        filter_len.max(self.index.len()) > self.parts_beyond_bytes
    }

    /// Appends filter and index; answers where they are.
    fn append_whole(&mut self, frame_buffer: &mut FrameBuffer) -> Result<(Handle, Handle)> {
        let filter = if self.hashes.is_empty() {
            self.nothing(frame_buffer)
        } else {
            let filter = Filter::build(&self.hashes, self.filter_bits_per_key, 1);
            self.append_raw(&filter.encode(), frame_buffer)?
        };
        Ok((filter, self.append_raw(&self.index.encode(), frame_buffer)?))
    }

    /// Appends pieces of the filter, parts of the index, the directory of the ones and the top of the
    /// others; answers where these two are.
    fn append_in_parts(&mut self, frame_buffer: &mut FrameBuffer) -> Result<(Handle, Handle)> {
        let mut directory = None;
        if !self.hashes.is_empty() {
            let filter = Filter::build(&self.hashes, self.filter_bits_per_key, PIECE_LINES);
            let mut pieces = Vec::new();
            for piece in each_piece(&filter) {
                pieces.push(self.append_part(&piece, frame_buffer)?);
            }
            directory = Some(Directory::of(&filter, &pieces));
        }
        let mut top = IndexBuilder::default();
        let count = self.index.count();
        for start in (0..count).step_by(PART_BLOCKS) {
            let end = count.min(start + PART_BLOCKS);
            let part = self.append_part(&self.index.encode_part(start..end), frame_buffer)?;
            top.add_part(part, &self.index, end - 1);
        }
        let directory = match directory {
            Some(directory) => self.append_raw(&directory.encode(), frame_buffer)?,
            None => self.nothing(frame_buffer),
        };
        Ok((directory, self.append_raw(&top.encode(), frame_buffer)?))
    }

    /// One of many that are more than should wait in memory together.
    fn append_part(&mut self, payload: &[u8], frame_buffer: &mut FrameBuffer) -> Result<Handle> {
        if frame_buffer.pending.len() >= WRITE_BYTES {
            self.flush(frame_buffer)?;
        }
        self.append_raw(payload, frame_buffer)
    }

    /// Where a filter would be.
    fn nothing(&self, frame_buffer: &FrameBuffer) -> Handle {
        Handle { offset: self.offset(frame_buffer), ..Handle::default() }
    }

    /// Seals a block; [`index_latest`](Self::index_latest) is due before the next one.
    pub(super) fn seal_block(&mut self, payload: &[u8], frame_buffer: &mut FrameBuffer) {
        let offset = self.offset(frame_buffer);
        let start = frame_buffer.pending.len();
        let checksum = frame_buffer.sealer.seal(payload, &mut frame_buffer.pending);
        // Entries are at most half of what a frame's length can say.
        let len = (frame_buffer.pending.len() - start) as u32;
        self.unindexed = Some(Handle { offset, len, checksum });
    }

    /// Puts the latest block into the index. `next` is the key that opens the next one.
    pub(super) fn index_latest(&mut self, next: Option<&[u8]>) {
        if let Some(handle) = self.unindexed.take() {
            self.index.add(handle, (&self.last_key, self.last_seq), next);
        }
    }

    fn append_raw(&mut self, payload: &[u8], frame_buffer: &mut FrameBuffer) -> Result<Handle> {
        let offset = self.offset(frame_buffer);
        let start = frame_buffer.pending.len();
        let checksum = seal_raw(payload, &mut frame_buffer.pending);
        let len = u32::try_from(frame_buffer.pending.len() - start).map_err(|_| {
            Error::invalid(format!("{} has too many entries for one file", self.path.display()))
        })?;
        Ok(Handle { offset, len, checksum })
    }

    fn offset(&self, frame_buffer: &FrameBuffer) -> u64 {
        self.written + frame_buffer.pending.len() as u64
    }

    /// Empties the frame buffer into the file.
    pub(super) fn flush(&mut self, frame_buffer: &mut FrameBuffer) -> Result<()> {
        // Emptied whatever happens: after an error it may serve another file.
        let result = self.file.write_at(&frame_buffer.pending, self.written);
        self.written += frame_buffer.pending.len() as u64;
        frame_buffer.pending.clear();
        result.map_err(|e| Error::io("write", &self.path, e))
    }
}
