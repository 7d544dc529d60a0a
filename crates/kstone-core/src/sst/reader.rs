//! Reads one SST: point lookups, and the loading of parts for cursor and `verify`.
//!
//! A reader is made for every live file when the database opens, so making one opens nothing and
//! reads nothing. Footer, index, filter and blocks are read when first needed and checked then;
//! all but the footer (a few dozen bytes) count against the cache's budget. Index and filter are kept
//! here as long as the cache lets them be pinned, else in the cache.
//!
//! Called by the levels of a stripe, which have hashed the key already.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::block::{Block, SEQ_MAX};
use super::cache::BlockCache;
use super::cursor::SstCursor;
use super::filter::Filter;
use super::footer::{FOOTER_LEN, Footer, FooterFault, Properties, VERSION, parse_footer};
use super::frame::{self, TRAILER_LEN};
use super::handles::FileHandles;
use super::index::{Handle, Index};
use super::stats::Count;
use super::{FileIdent, SstMeta};
use crate::entry::{Kind, Seq};
use crate::env::{OpenMode, Vfs, VfsFile};
use crate::error::{Error, Result};

/// The version of a key that a lookup found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SstHit {
    pub(crate) seq: Seq,
    pub(crate) kind: Kind,
    /// 0 = never.
    pub(crate) expires_at_ms: u64,
    /// Shares the cached block's memory.
    pub(crate) value: Bytes,
}

/// One live file.
#[derive(Debug)]
pub(crate) struct SstReader {
    meta: Arc<SstMeta>,
    handles: Arc<FileHandles>,
    cache: Arc<BlockCache>,
    db_id: [u8; 16],
    /// Read and checked once. Threads that race read it twice and agree.
    footer: OnceLock<Footer>,
    pinned_index: OnceLock<Arc<Index>>,
    pinned_filter: OnceLock<Arc<Filter>>,
}

impl Drop for SstReader {
    fn drop(&mut self) {
        if let Some(index) = self.pinned_index.get() {
            self.cache.unpin(index.weight());
        }
        if let Some(filter) = self.pinned_filter.get() {
            self.cache.unpin(filter.weight());
        }
    }
}

impl SstReader {
    /// Prepares to read the file that `meta` describes; does not touch it.
    pub(crate) fn open(
        meta: Arc<SstMeta>,
        handles: Arc<FileHandles>,
        cache: Arc<BlockCache>,
        db_id: [u8; 16],
    ) -> Self {
        SstReader {
            meta,
            handles,
            cache,
            db_id,
            footer: OnceLock::new(),
            pinned_index: OnceLock::new(),
            pinned_filter: OnceLock::new(),
        }
    }

    pub(crate) fn meta(&self) -> &Arc<SstMeta> {
        &self.meta
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.handles.path(self.meta.stripe, self.meta.file_id)
    }

    /// The newest version of `key` with a sequence number up to `max_seq`. `hash` is its
    /// [`key_hash`](super::key_hash).
    pub(crate) fn get(&self, key: &[u8], hash: u64, max_seq: Seq) -> Result<Option<SstHit>> {
        let meta = &*self.meta;
        let (oldest, newest) = match meta.global_seq {
            Some(seq) => (seq, seq),
            None => (meta.min_seq, meta.max_seq),
        };
        if max_seq < oldest || key < meta.smallest.as_slice() || key > meta.largest.as_slice() {
            return Ok(None);
        }
        let has_filter = match self.filter_admits(hash)? {
            Some(false) => {
                self.cache.counters().count(Count::FilterUseful);
                return Ok(None);
            }
            Some(true) => true,
            None => false,
        };
        let own_seq_max = if meta.global_seq.is_some() { SEQ_MAX } else { max_seq };
        let hit = self.search(key, hash, own_seq_max)?;
        if hit.is_none() && has_filter && newest <= max_seq {
            self.cache.counters().count(Count::FilterFalsePositive);
        }
        Ok(hit)
    }

    /// Looks the key up by the sequence numbers that are in the file's bytes.
    fn search(&self, key: &[u8], hash: u64, own_seq_max: Seq) -> Result<Option<SstHit>> {
        let cached;
        let index = match self.pinned_index.get() {
            Some(pinned) => {
                self.cache.counters().count(Count::IndexHit);
                pinned
            }
            None => {
                cached = self.index(true)?;
                &cached
            }
        };
        let Some(handle) = index.find(key, own_seq_max).and_then(|i| index.handle(i)) else {
            return Ok(None);
        };
        let (block, found) = match self.cache.data(self.meta.file_id, handle.offset) {
            Some(block) => {
                let found = block.get_again(key, hash, own_seq_max);
                (block, found)
            }
            None => {
                let block = self.load_block(handle)?;
                let found = block.get(key, own_seq_max);
                (block, found)
            }
        };
        let found = found.map_err(|_| self.malformed(handle.offset))?;
        Ok(found.map(|found| SstHit {
            seq: self.meta.global_seq.unwrap_or(found.seq),
            kind: found.kind,
            expires_at_ms: found.expires_at_ms,
            value: block.piece(found.value),
        }))
    }

    /// A cursor on no entry yet. Without `fill_cache` it reads past the cache, in large reads: for
    /// compaction and other one-time scans.
    pub(crate) fn cursor(self: &Arc<Self>, fill_cache: bool) -> SstCursor {
        SstCursor::new(self.clone(), fill_cache)
    }

    /// The index; kept in the cache unless the caller is only passing through.
    pub(super) fn index(&self, fill_cache: bool) -> Result<Arc<Index>> {
        if let Some(index) = self.pinned_index.get() {
            self.cache.counters().count(Count::IndexHit);
            return Ok(Arc::clone(index));
        }
        let handle = self.footer()?.index;
        if let Some(index) = self.cache.index(self.meta.file_id, handle.offset) {
            return Ok(index);
        }
        let index = Arc::new(self.read_index()?);
        if fill_cache && !self.pin(&self.pinned_index, &index, index.weight()) {
            self.cache.insert_index(self.meta.file_id, handle.offset, index.clone());
        }
        Ok(index)
    }

    /// What the filter says about the key with this hash; `None` if the file has no filter.
    #[inline]
    fn filter_admits(&self, hash: u64) -> Result<Option<bool>> {
        if let Some(filter) = self.pinned_filter.get() {
            self.cache.counters().count(Count::FilterHit);
            return Ok(Some(filter.may_contain(hash)));
        }
        Ok(self.filter()?.map(|filter| filter.may_contain(hash)))
    }

    fn filter(&self) -> Result<Option<Arc<Filter>>> {
        let handle = self.footer()?.filter;
        if handle.len == 0 {
            return Ok(None);
        }
        if let Some(filter) = self.cache.filter(self.meta.file_id, handle.offset) {
            return Ok(Some(filter));
        }
        let filter = self.read_filter()?.map(Arc::new);
        if let Some(filter) = &filter
            && !self.pin(&self.pinned_filter, filter, filter.weight())
        {
            self.cache.insert_filter(self.meta.file_id, handle.offset, filter.clone());
        }
        Ok(filter)
    }

    /// Keeps a part in its slot if the cache gives up the memory for it.
    fn pin<T>(&self, slot: &OnceLock<Arc<T>>, part: &Arc<T>, bytes: usize) -> bool {
        if !self.cache.pin(bytes) {
            return false;
        }
        if slot.set(Arc::clone(part)).is_err() {
            // Another thread was first.
            self.cache.unpin(bytes);
        }
        true
    }

    /// A data block, through the cache.
    #[inline]
    pub(super) fn block(&self, handle: Handle) -> Result<Block> {
        if let Some(block) = self.cache.data(self.meta.file_id, handle.offset) {
            return Ok(block);
        }
        self.load_block(handle)
    }

    /// Reads a data block into the cache.
    fn load_block(&self, handle: Handle) -> Result<Block> {
        let block = self.read_block(handle)?;
        self.cache.insert_data(self.meta.file_id, handle.offset, block.clone());
        Ok(block)
    }

    /// The footer, read and checked on first use.
    pub(super) fn footer(&self) -> Result<&Footer> {
        if let Some(footer) = self.footer.get() {
            return Ok(footer);
        }
        let footer = self.read_footer()?;
        Ok(self.footer.get_or_init(|| footer))
    }

    /// Reads the footer and checks that the file is the one the manifest means.
    pub(super) fn read_footer(&self) -> Result<Footer> {
        let path = self.path();
        let footer = footer_of(&*self.file()?, &path, self.meta.file_bytes)?;
        check_owner(&footer, &path, self.db_id)?;
        let at = self.meta.file_bytes.saturating_sub(FOOTER_LEN as u64);
        let FileIdent { stripe, file_id, .. } = footer.ident;
        if (stripe, file_id) != (self.meta.stripe, self.meta.file_id) {
            let what = format!("it is file {file_id} of stripe {stripe} under another name");
            return Err(Error::corruption(&path, at, what));
        }
        if footer.checksum != self.meta.footer_checksum {
            let what = "the footer is intact but not the one that the manifest knows";
            return Err(Error::corruption(&path, at, what));
        }
        Ok(footer)
    }

    pub(super) fn read_index(&self) -> Result<Index> {
        let handle = self.footer()?.index;
        Index::parse(self.read_frame(handle)?)
            .ok_or_else(|| Error::corruption(&self.path(), handle.offset, "the index is malformed"))
    }

    pub(super) fn read_filter(&self) -> Result<Option<Filter>> {
        let handle = self.footer()?.filter;
        if handle.len == 0 {
            return Ok(None);
        }
        let filter = Filter::decode(&self.read_frame(handle)?);
        let malformed =
            || Error::corruption(&self.path(), handle.offset, "the filter is malformed");
        filter.ok_or_else(malformed).map(Some)
    }

    pub(super) fn read_properties(&self) -> Result<Properties> {
        let handle = self.footer()?.properties;
        let properties = Properties::decode(&self.read_frame(handle)?);
        properties.ok_or_else(|| {
            Error::corruption(&self.path(), handle.offset, "the properties are malformed")
        })
    }

    /// Reads a data block from the file, past the cache.
    pub(super) fn read_block(&self, handle: Handle) -> Result<Block> {
        self.check_data_handle(handle)?;
        self.parse_block(handle, self.read(handle.offset, handle.len as usize)?)
    }

    /// Makes a block of its frame, which has been read.
    pub(super) fn parse_block(&self, handle: Handle, frame: Bytes) -> Result<Block> {
        let payload = self.open_frame(handle, frame)?;
        Block::parse(payload).map_err(|_| self.malformed(handle.offset))
    }

    /// Refuses a handle that points outside of the data blocks, before anything is allocated.
    pub(super) fn check_data_handle(&self, handle: Handle) -> Result<()> {
        let data_end = self.footer()?.data_end();
        if handle.end().is_some_and(|end| end <= data_end) && handle.len as usize > TRAILER_LEN {
            return Ok(());
        }
        let what = "the index points to a block outside of the data";
        Err(Error::corruption(&self.path(), handle.offset, what))
    }

    /// Bytes of the file, past the cache.
    pub(super) fn read(&self, offset: u64, len: usize) -> Result<Bytes> {
        self.cache.counters().count(Count::FileReads);
        self.cache.counters().add(Count::FileReadBytes, len as u64);
        read_bytes(&*self.file()?, || self.path(), offset, len)
    }

    pub(super) fn malformed(&self, offset: u64) -> Error {
        Error::corruption(&self.path(), offset, "the block is intact but its entries are malformed")
    }

    /// A part that the footer points to (whose layout was checked against the file's length).
    fn read_frame(&self, handle: Handle) -> Result<Bytes> {
        self.open_frame(handle, self.read(handle.offset, handle.len as usize)?)
    }

    fn open_frame(&self, handle: Handle, frame: Bytes) -> Result<Bytes> {
        frame::open(frame, handle.checksum)
            .map_err(|fault| Error::corruption(&self.path(), handle.offset, fault.to_string()))
    }

    fn file(&self) -> Result<Arc<dyn VfsFile>> {
        self.handles.get(self.meta.stripe, self.meta.file_id)
    }
}

/// Describes a file from what it says itself, without a manifest: for a search through all files.
/// With `db_id`, a file of another database is refused. The parent checksums down from the footer
/// are checked; whether the footer is the right one, nobody here knows.
pub(crate) fn open_standalone(
    vfs: &dyn Vfs,
    path: &Path,
    db_id: Option<[u8; 16]>,
) -> Result<(SstMeta, FileIdent, Properties)> {
    let file = vfs.open(path, OpenMode::Read).map_err(|e| Error::io("open", path, e))?;
    let file_bytes = file.len().map_err(|e| Error::io("measure", path, e))?;
    let footer = footer_of(&*file, path, file_bytes)?;
    if let Some(db_id) = db_id {
        check_owner(&footer, path, db_id)?;
    }
    let handle = footer.properties;
    let damaged = |what: String| Error::corruption(path, handle.offset, what);
    let frame = read_bytes(&*file, || path.to_owned(), handle.offset, handle.len as usize)?;
    let payload = frame::open(frame, handle.checksum).map_err(|f| damaged(f.to_string()))?;
    let properties = Properties::decode(&payload)
        .ok_or_else(|| damaged("the properties are malformed".to_owned()))?;
    let meta = properties.clone().into_meta(footer.ident, file_bytes, footer.checksum);
    Ok((meta, footer.ident, properties))
}

fn footer_of(file: &dyn VfsFile, path: &Path, file_bytes: u64) -> Result<Footer> {
    let at = file_bytes.checked_sub(FOOTER_LEN as u64).ok_or_else(|| {
        Error::corruption(path, 0, format!("{file_bytes} bytes are too few for an SST"))
    })?;
    let bytes = read_bytes(file, || path.to_owned(), at, FOOTER_LEN)?;
    parse_footer(&bytes, file_bytes).map_err(|fault| match fault {
        FooterFault::Version(found) => {
            Error::Version { path: path.to_owned(), found, supported: VERSION }
        }
        fault => Error::corruption(path, at, fault.to_string()),
    })
}

fn check_owner(footer: &Footer, path: &Path, db_id: [u8; 16]) -> Result<()> {
    if footer.ident.db_id == db_id {
        return Ok(());
    }
    let what = "its footer names another database id".to_owned();
    Err(Error::ForeignFile { path: path.to_owned(), what })
}

/// Reads exactly `len` bytes. A file that ends too early is damaged, not an I/O error.
fn read_bytes(
    file: &dyn VfsFile,
    path: impl Fn() -> PathBuf,
    offset: u64,
    len: usize,
) -> Result<Bytes> {
    let mut buf = vec![0; len];
    match file.read_exact_at(&mut buf, offset) {
        Ok(()) => Ok(Bytes::from(buf)),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Err(Error::corruption(
            &path(),
            offset,
            format!("the file ends inside these {len} bytes"),
        )),
        Err(e) => Err(Error::io("read", &path(), e)),
    }
}
