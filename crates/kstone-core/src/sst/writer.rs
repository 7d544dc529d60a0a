//! Writes one SST from entries that arrive in order.
//!
//! Called by flush, compaction and ingest. The writer never syncs: its caller syncs the files of
//! a whole batch at once, then the folder, and only then names them in the manifest. A file that
//! was not finished, or not named, is an orphan that the next open removes.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::{BlockBuilder, SEQ_MAX, common_prefix_len};
use super::filter::{Filter, key_hash};
use super::footer::{FOOTER_LEN, Footer, Properties};
use super::frame::{FrameSealer, PAYLOAD_LEN_MAX, seal_raw};
use super::index::{Handle, IndexBuilder};
use super::{FileIdent, SstMeta, SstOptions, file_name};
use crate::entry::{EntryRef, Seq};
use crate::env::{OpenMode, Vfs, VfsFile};
use crate::error::{Error, Result};

/// Writes are this large at least. Smaller ones cost a system call each; larger ones only memory.
const WRITE_BYTES: usize = 256 << 10;

/// Half of what a frame may hold: the other half is a margin for the block's own fields.
const ENTRY_LEN_MAX: usize = PAYLOAD_LEN_MAX / 2;

/// A file being written.
#[derive(Debug)]
pub(crate) struct SstWriter {
    path: PathBuf,
    file: Arc<dyn VfsFile>,
    ident: FileIdent,
    options: SstOptions,
    sealer: FrameSealer,
    block: BlockBuilder,
    index: IndexBuilder,
    /// Of each distinct key, in order.
    hashes: Vec<u64>,
    properties: Properties,
    smallest: Vec<u8>,
    last_key: Vec<u8>,
    last_seq: Seq,
    /// Bytes that are not in the file yet; they belong at `written`.
    pending: Vec<u8>,
    written: u64,
}

impl SstWriter {
    /// Creates the file, which must not exist.
    pub(crate) fn create(
        vfs: &dyn Vfs,
        dir: &Path,
        ident: FileIdent,
        options: SstOptions,
    ) -> Result<Self> {
        let sealer = FrameSealer::new(options.compression)?;
        let path = dir.join(file_name(ident.stripe, ident.file_id));
        let file =
            vfs.open(&path, OpenMode::CreateNew).map_err(|e| Error::io("create", &path, e))?;
        Ok(SstWriter {
            path,
            file,
            ident,
            options,
            sealer,
            block: BlockBuilder::new(options.restart_interval),
            index: IndexBuilder::default(),
            hashes: Vec::new(),
            properties: Properties::default(),
            smallest: Vec::new(),
            last_key: Vec::new(),
            last_seq: 0,
            pending: Vec::with_capacity(WRITE_BYTES + options.block_bytes),
            written: 0,
        })
    }

    /// Whether nothing was added yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.properties.entries == 0
    }

    /// About how large the file would be if it were finished now.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        let filter = self.hashes.len() as u64 * u64::from(self.options.filter_bits_per_key) / 8;
        self.offset() + (self.block.len() + self.index.len() + FOOTER_LEN) as u64 + filter
    }

    /// Appends an entry, which must be behind the one before in entry order.
    pub(crate) fn add(&mut self, entry: EntryRef<'_>) -> Result<()> {
        let common = common_prefix_len(&self.last_key, entry.key);
        let is_first = self.is_empty();
        let key_order = self.last_key.get(common..).cmp(&entry.key.get(common..));
        let key_is_new = is_first || key_order == Ordering::Less;
        if !is_first && key_order.then_with(|| entry.seq.cmp(&self.last_seq)).is_ge() {
            return Err(Error::invalid(format!(
                "entries of {} are out of order: sequence number {} after {}",
                self.path.display(),
                entry.seq,
                self.last_seq
            )));
        }
        if entry.seq > SEQ_MAX {
            return Err(Error::invalid(format!("sequence number {} is too large", entry.seq)));
        }
        let len = entry.key.len().saturating_add(entry.value.len());
        if len > ENTRY_LEN_MAX {
            return Err(Error::ValueTooLong { len, max: ENTRY_LEN_MAX });
        }

        if !self.block.is_empty() && self.block.len_with(&entry, common) > self.options.block_bytes
        {
            self.finish_block(Some(entry.key))?;
        }
        self.block.add(&entry, common);
        self.properties.count(&entry, key_is_new);
        if key_is_new {
            if self.options.filter_bits_per_key > 0 {
                self.hashes.push(key_hash(entry.key));
            }
            self.last_key.truncate(common);
            self.last_key.extend_from_slice(entry.key.get(common..).unwrap_or_default());
        }
        if is_first {
            self.smallest = entry.key.to_vec();
        }
        self.last_seq = entry.seq;
        Ok(())
    }

    /// Writes what is left. The file is complete, but not durable: the caller syncs it, and the
    /// folder. After an error the file is useless and still there; the caller removes it.
    pub(crate) fn finish(mut self) -> Result<(SstMeta, Arc<dyn VfsFile>)> {
        if self.is_empty() {
            return Err(Error::invalid(format!("{} would have no entries", self.path.display())));
        }
        self.finish_block(None)?;
        let filter = if self.hashes.is_empty() {
            Handle { offset: self.offset(), ..Handle::default() }
        } else {
            let filter = Filter::build(&self.hashes, self.options.filter_bits_per_key);
            self.append_raw(&filter.encode())?
        };
        let index = self.append_raw(&self.index.encode())?;
        self.properties
            .bound(std::mem::take(&mut self.smallest), std::mem::take(&mut self.last_key));
        let properties = self.append_raw(&self.properties.encode())?;
        let mut footer = Footer { filter, index, properties, ident: self.ident, checksum: 0 };
        self.pending.extend_from_slice(&footer.encode());
        self.flush()?;
        Ok((self.properties.into_meta(self.ident, self.written, footer.checksum), self.file))
    }

    /// Seals the current block. `next` is the key that will open the next one.
    fn finish_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        let offset = self.offset();
        let start = self.pending.len();
        let checksum = self.sealer.seal(self.block.finish(), &mut self.pending);
        self.block.clear();
        // Entries are at most half of what a frame's length can say.
        let handle = Handle { offset, len: (self.pending.len() - start) as u32, checksum };
        self.index.add(handle, (&self.last_key, self.last_seq), next);
        self.flush_if_large()
    }

    fn append_raw(&mut self, payload: &[u8]) -> Result<Handle> {
        let offset = self.offset();
        let start = self.pending.len();
        let checksum = seal_raw(payload, &mut self.pending);
        let len = u32::try_from(self.pending.len() - start).map_err(|_| {
            Error::invalid(format!("{} has too many entries for one file", self.path.display()))
        })?;
        self.flush_if_large()?;
        Ok(Handle { offset, len, checksum })
    }

    fn offset(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    fn flush_if_large(&mut self) -> Result<()> {
        if self.pending.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file
            .write_at(&self.pending, self.written)
            .map_err(|e| Error::io("write", &self.path, e))?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}
