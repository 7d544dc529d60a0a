//! Writes one SST from entries that arrive in order.
//!
//! Called by flush, compaction and ingest. The writer never syncs: its caller syncs the files of
//! a whole batch at once, then the folder, and only then names them in the manifest. A file that
//! was not finished, or not named, is an orphan that the next open removes.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use super::assembly::{FrameBuffer, SstAssembly, WRITE_BYTES};
use super::block::{BlockBuilder, SEQ_MAX, common_prefix_len};
use super::filter::key_hash;
use super::frame::PAYLOAD_LEN_MAX;
use super::{FileIdent, SstMeta, SstOptions};
use crate::entry::EntryRef;
use crate::env::{Vfs, VfsFile};
use crate::error::{Error, Result};

/// Half of what a frame may hold: the other half is a margin for the block's own fields.
const ENTRY_LEN_MAX: usize = PAYLOAD_LEN_MAX / 2;

/// A file being written.
#[derive(Debug)]
pub(crate) struct SstWriter {
    options: SstOptions,
    block: BlockBuilder,
    file: SstAssembly,
    frame_buffer: FrameBuffer,
}

impl SstWriter {
    /// Creates the file, which must not exist.
    pub(crate) fn create(
        vfs: &dyn Vfs,
        dir: &Path,
        ident: FileIdent,
        options: SstOptions,
    ) -> Result<Self> {
        let frame_buffer = FrameBuffer::new(options.compression)?;
        let file = SstAssembly::create(vfs, dir, ident, options)?;
        Ok(SstWriter {
            options,
            block: BlockBuilder::new(options.restart_interval),
            file,
            frame_buffer,
        })
    }

    /// Whether nothing was added yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.file.properties.entries == 0
    }

    /// About how large the file would be if it were finished now.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        self.file.estimated_bytes() + (self.frame_buffer.pending_len() + self.block.len()) as u64
    }

    /// Appends an entry, which must be behind the one before in entry order.
    pub(crate) fn add(&mut self, entry: EntryRef<'_>) -> Result<()> {
        let file = &mut self.file;
        let common = common_prefix_len(&file.last_key, entry.key);
        let is_first = file.properties.entries == 0;
        let key_order = file.last_key.get(common..).cmp(&entry.key.get(common..));
        let key_is_new = is_first || key_order == Ordering::Less;
        if !is_first && key_order.then_with(|| entry.seq.cmp(&file.last_seq)).is_ge() {
            return Err(Error::invalid(format!(
                "entries of {} are out of order: sequence number {} after {}",
                file.path().display(),
                entry.seq,
                file.last_seq
            )));
        }
        if entry.seq > SEQ_MAX {
            return Err(Error::invalid(format!("sequence number {} is too large", entry.seq)));
        }
        let len = entry.key.len().saturating_add(entry.value.len());
        if len > ENTRY_LEN_MAX {
            return Err(Error::ValueTooLong { len, max: ENTRY_LEN_MAX });
        }

        let block_bytes = self.options.block_bytes;
        if !self.block.is_empty() && self.block.exceeds_with(&entry, common, block_bytes) {
            file.seal_block(self.block.finish(), &mut self.frame_buffer);
            file.index_latest(Some(entry.key));
            self.block.clear();
            if self.frame_buffer.pending_len() >= WRITE_BYTES {
                file.flush(&mut self.frame_buffer)?;
            }
        }
        self.block.add(&entry, common);
        file.properties.count(&entry, key_is_new);
        if key_is_new {
            if self.options.filter_bits_per_key > 0 {
                file.hashes.push(key_hash(entry.key));
            }
            file.last_key.truncate(common);
            file.last_key.extend_from_slice(entry.key.get(common..).unwrap_or_default());
        }
        if is_first {
            file.smallest = entry.key.to_vec();
        }
        file.last_seq = entry.seq;
        Ok(())
    }

    /// Writes what is left. The file is complete, but not durable: the caller syncs it, and the
    /// folder. After an error the file is useless and still there; the caller removes it.
    pub(crate) fn finish(mut self) -> Result<(SstMeta, Arc<dyn VfsFile>)> {
        if self.is_empty() {
            return Err(Error::invalid(format!(
                "{} would have no entries",
                self.file.path().display()
            )));
        }
        self.file.seal_block(self.block.finish(), &mut self.frame_buffer);
        self.file.finish(&mut self.frame_buffer)
    }
}
