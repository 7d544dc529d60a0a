//! Reads one SST: point lookups, and the loading of parts for cursor and `verify`.
//!
//! A reader is made for every live file when the database opens, so making one opens nothing and
//! reads nothing. Footer, index, filter and blocks are read when first needed and checked then;
//! all but the footer (a few dozen bytes) count against the cache's budget for as long as they are
//! kept. Index and filter, or what finds their parts, are kept here as long as the cache lets them be
//! pinned, else in the cache.
//!
//! Called by the levels of a stripe, which have hashed the key already.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::block::{Block, Found, Malformed, SEQ_MAX};
use super::block_buffer::BlockBuffer;
use super::cache::BlockCache;
use super::cursor::SstCursor;
use super::filter::Filter;
use super::filter_parts::PiecedFilter;
use super::footer::{FOOTER_LEN, Footer, FooterFault, Properties, VERSION_IN_PARTS, parse_footer};
use super::frame::{self, FrameFault, TRAILER_LEN};
use super::handles::FileHandles;
use super::hot_part::HotPart;
use super::index::{Handle, Index};
use super::indexed::{IndexTop, IndexWithSlots};
use super::shortcuts::{Shortcut, Shortcuts};
use super::slots::{AnySlots, numbers};
use super::stats::Count;
use super::{FileIdent, SstMeta};
use crate::entry::{Kind, Seq};
use crate::env::{OpenMode, Vfs, VfsFile};
use crate::error::{Error, Result};

/// A longer frame is read into a buffer of its own.
const FRAME_LEN_MAX: usize = 64 << 10;

thread_local! {
    /// What a block is read into before it is unpacked: made once per thread, not once per block.
    static FRAME: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The version of a key that a lookup found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SstHit {
    pub(crate) seq: Seq,
    pub(crate) kind: Kind,
    /// 0 = never.
    pub(crate) expires_at_ms: u64,
    /// A copy, or, if it is large, a share in its block's memory.
    pub(crate) value: Bytes,
}

/// One live file.
///
/// In this order: what every get asks for is at the beginning, so that it waits for little memory.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SstReader {
    /// As in `meta`.
    global_seq: Option<Seq>,
    denials: Denials,
    cache: Arc<BlockCache>,
    /// Of a small file, or of a large one once their parts are joined.
    filter: HotPart<Filter>,
    index: HotPart<IndexWithSlots>,
    /// Beside a whole index of many blocks.
    shortcuts: Shortcuts,
    meta: Arc<SstMeta>,
    /// Of a large file, which has filter and index in parts.
    pieces: HotPart<PiecedFilter>,
    top: HotPart<IndexTop>,
    handles: Arc<FileHandles>,
    db_id: [u8; 16],
    /// Read and checked once. Threads that race read it twice and agree.
    footer: OnceLock<Footer>,
}

/// What was learnt of a key before the file is searched for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyCheck {
    /// It is not between the file's first key and its last, or too old.
    Outside,
    /// The filter says that it is not there,
    FilteredOut,
    /// or that it may be.
    MayContain,
    NoFilter,
}

impl KeyCheck {
    #[inline]
    fn of(may_contain: bool) -> Self {
        if may_contain { KeyCheck::MayContain } else { KeyCheck::FilteredOut }
    }
}

/// Whether the filter has lately told a get that its key is not in the file.
///
/// Read and written without a lock, and seldom written to: it lies beside what every get of every core
/// reads.
#[derive(Debug, Default)]
struct Denials(AtomicBool);

impl Denials {
    /// Of the keys that the filter lets pass, one in so many tells that denials are rare.
    const FORGOTTEN_BY: u64 = 8;

    #[inline]
    fn are_rare(&self) -> bool {
        !self.0.load(Relaxed)
    }

    /// What the filter has said of the key with this hash.
    #[inline]
    fn note(&self, may_contain: bool, hash: u64) {
        let are_rare = self.are_rare();
        if !may_contain && are_rare {
            self.0.store(true, Relaxed);
        } else if may_contain && !are_rare && hash.is_multiple_of(Self::FORGOTTEN_BY) {
            self.0.store(false, Relaxed);
        }
    }
}

impl Drop for SstReader {
    fn drop(&mut self) {
        self.index.unpin(&self.cache);
        self.filter.unpin(&self.cache);
        self.top.unpin(&self.cache);
        self.pieces.unpin(&self.cache);
        self.shortcuts.unpin(&self.cache);
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
            global_seq: meta.global_seq,
            denials: Denials::default(),
            meta,
            handles,
            cache,
            db_id,
            footer: OnceLock::new(),
            index: HotPart::default(),
            filter: HotPart::default(),
            top: HotPart::default(),
            pieces: HotPart::default(),
            shortcuts: Shortcuts::default(),
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
        let own_seq_max = match self.global_seq {
            None => max_seq,
            Some(seq) if seq <= max_seq => SEQ_MAX,
            Some(_) => return Ok(None),
        };
        // What a shortcut leads to needs no filter.
        if let Some(hit) = self.search_by_shortcut(key, hash, own_seq_max) {
            return Ok(Some(hit));
        }
        // A filter at hand is one look; the bounds are two keys that lie somewhere else. While its memory
        // comes, the index is searched as far as heads go: who is there needs both.
        let mut narrowed = None;
        let asked = match self.filter.pinned() {
            Some(filter) => {
                if self.denials.are_rare() {
                    filter.prefetch(hash);
                    narrowed =
                        self.index.pinned().map(|index| (index, index.narrow_prefetching(key)));
                }
                self.cache.counters().count(Count::FilterHit);
                let may_contain = filter.may_contain(hash);
                self.denials.note(may_contain, hash);
                KeyCheck::of(may_contain)
            }
            None => self.check_filter(key, hash, max_seq)?,
        };
        match asked {
            KeyCheck::MayContain | KeyCheck::NoFilter => {}
            KeyCheck::FilteredOut => {
                self.cache.counters().count(Count::FilterUseful);
                return Ok(None);
            }
            KeyCheck::Outside => return Ok(None),
        }
        let hit = self.search(key, hash, own_seq_max, narrowed)?;
        if hit.is_none() && asked == KeyCheck::MayContain && self.meta.newest_seq() <= max_seq {
            self.cache.counters().count(Count::FilterFalsePositive);
        }
        Ok(hit)
    }

    fn is_outside(&self, key: &[u8], max_seq: Seq) -> bool {
        let meta = &*self.meta;
        max_seq < meta.global_seq.unwrap_or(meta.min_seq)
            || key < meta.smallest.as_slice()
            || key > meta.largest.as_slice()
    }

    /// Looks the key up by the sequence numbers that are in the file's bytes. `narrowed` is the
    /// pinned index with what its [`narrow`](Index::narrow) has answered, if that was asked.
    fn search(
        &self,
        key: &[u8],
        hash: u64,
        own_seq_max: Seq,
        narrowed: Option<(&Arc<IndexWithSlots>, Range<usize>)>,
    ) -> Result<Option<SstHit>> {
        let cached;
        let narrow = || self.index.pinned().map(|index| (index, index.narrow(key)));
        let (index, among, is_whole) = match narrowed.or_else(narrow) {
            Some((pinned, among)) => {
                self.cache.counters().count(Count::IndexHit);
                (pinned, among, true)
            }
            None => {
                let Some(found) = self.index_for(key, own_seq_max)? else { return Ok(None) };
                cached = found;
                (&cached, cached.narrow(key), false)
            }
        };
        let Some(nth) = index.find_among(among, key, own_seq_max) else { return Ok(None) };
        let malformed = |Malformed| self.malformed(index.handle(nth).unwrap_or_default().offset);
        if let Some(block) = index.blocks.get_prefetching(nth, Block::prefetch) {
            self.cache.counters().count(Count::DataHit);
            let found = block.get_again(key, hash, own_seq_max).map_err(malformed)?;
            if is_whole && let Some(found) = &found {
                self.note_shortcut(index, Shortcut { block: nth, at: found.value.start }, hash);
            }
            return Ok(found.map(|found| self.hit(&block, found)));
        }
        let Some(block) = self.load_block(index, nth)? else { return Ok(None) };
        self.note_block_read(hash);
        let found = block.get(key, own_seq_max).map_err(malformed)?;
        Ok(found.map(|found| self.hit(&block, found)))
    }

    /// The same, only in the block that a shortcut leads to, and only if that is in memory. What is wrong
    /// with that block is reported by a read that the index sends there.
    #[inline]
    pub(super) fn search_by_shortcut(
        &self,
        key: &[u8],
        hash: u64,
        own_seq_max: Seq,
    ) -> Option<SstHit> {
        let Shortcut { block: nth, at } = self.shortcuts.find(hash)?;
        let index = self.index.pinned()?;
        let block = index.blocks.get_prefetching(nth, |block| block.prefetch_at(at))?;
        let found = block.get_again(key, hash, own_seq_max).ok()??;
        self.cache.counters().count(Count::DataHit);
        Some(self.hit(&block, found))
    }

    #[inline]
    fn hit(&self, block: &Block, found: Found) -> SstHit {
        SstHit {
            seq: self.global_seq.unwrap_or(found.seq),
            kind: found.kind,
            expires_at_ms: found.expires_at_ms,
            value: block.piece(found.value),
        }
    }

    /// A cursor on no entry yet. Without `fill_cache` it reads past the cache, in large reads: for
    /// compaction and other one-time scans.
    pub(crate) fn cursor(self: &Arc<Self>, fill_cache: bool) -> SstCursor {
        SstCursor::new(self.clone(), fill_cache)
    }

    /// Asks a filter that is not pinned as a whole.
    #[inline(never)]
    fn check_filter(&self, key: &[u8], hash: u64, max_seq: Seq) -> Result<KeyCheck> {
        if let Some(pieces) = self.pieces.pinned()
            && let Some(said) = pieces.check_cached(hash)
        {
            self.cache.counters().count(Count::FilterHit);
            if pieces.is_worth_joining() {
                self.request_filter_join(pieces);
            }
            return Ok(KeyCheck::of(said));
        }
        // Before a filter is read, or the file for want of one, it is seen whether it can be of use.
        if self.is_outside(key, max_seq) {
            return Ok(KeyCheck::Outside);
        }
        let footer = self.footer()?;
        if footer.filter.len == 0 {
            return Ok(KeyCheck::NoFilter);
        }
        if footer.is_in_parts() {
            return self.check_piece(hash).map(KeyCheck::of);
        }
        if let Some(filter) = self.filter.get() {
            self.cache.counters().count(Count::FilterHit);
            return Ok(KeyCheck::of(filter.may_contain(hash)));
        }
        self.cache.counters().count(Count::FilterMiss);
        let filter = Arc::new(self.read_filter()?);
        self.filter.keep(&self.cache, self.meta.file_id, numbers::FILTER, &filter);
        Ok(KeyCheck::of(filter.may_contain(hash)))
    }

    pub(super) fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    pub(super) fn hot_index(&self) -> &HotPart<IndexWithSlots> {
        &self.index
    }

    pub(super) fn hot_filter(&self) -> &HotPart<Filter> {
        &self.filter
    }

    pub(super) fn hot_top(&self) -> &HotPart<IndexTop> {
        &self.top
    }

    pub(super) fn shortcuts(&self) -> &Shortcuts {
        &self.shortcuts
    }

    pub(super) fn hot_pieces(&self) -> &HotPart<PiecedFilter> {
        &self.pieces
    }

    /// Block `nth`, if it is in the cache.
    #[inline]
    pub(super) fn kept_block(&self, index: &IndexWithSlots, nth: usize) -> Option<Arc<Block>> {
        let block = index.blocks.get(nth)?;
        self.cache.counters().count(Count::DataHit);
        Some(block)
    }

    /// Reads a data block into the cache; `None` if there is no such block.
    pub(super) fn load_block(
        &self,
        index: &IndexWithSlots,
        nth: usize,
    ) -> Result<Option<Arc<Block>>> {
        let Some(handle) = index.handle(nth) else { return Ok(None) };
        self.cache.counters().count(Count::DataMiss);
        let number = index.blocks.number(nth as u32);
        let block = self.read_kept_block(handle, self.cache.spare(self.meta.file_id, number))?;
        index.blocks.put(nth, &block);
        Ok(Some(block))
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

    /// The index, or the top of one in parts.
    pub(super) fn read_index(&self) -> Result<Index> {
        let handle = self.footer()?.index;
        Index::parse(self.read_frame(handle)?)
            .ok_or_else(|| Error::corruption(&self.path(), handle.offset, "the index is malformed"))
    }

    /// The filter of a file that has one, and has it whole.
    pub(super) fn read_filter(&self) -> Result<Filter> {
        let handle = self.footer()?.filter;
        let filter = Filter::decode(&self.read_frame(handle)?);
        let malformed =
            || Error::corruption(&self.path(), handle.offset, "the filter is malformed");
        filter.ok_or_else(malformed)
    }

    pub(super) fn read_properties(&self) -> Result<Properties> {
        let handle = self.footer()?.properties;
        let properties = Properties::decode(&self.read_frame(handle)?);
        properties.ok_or_else(|| {
            Error::corruption(&self.path(), handle.offset, "the properties are malformed")
        })
    }

    /// Reads a data block from the file, past the cache.
    pub(super) fn read_block(&self, handle: Handle) -> Result<Arc<Block>> {
        self.read_kept_block(handle, None)
    }

    /// The same, into one that is needed no more if it has the right length.
    fn read_kept_block(&self, handle: Handle, spare: Option<Arc<Block>>) -> Result<Arc<Block>> {
        self.check_handle(handle)?;
        let len = handle.len as usize;
        if len > FRAME_LEN_MAX {
            return self.parse_block(handle, self.read(handle.offset, len)?);
        }
        let open = |frame: &[u8]| {
            frame::open_padded(frame, handle.checksum, |len| BlockBuffer::new(len, spare))
        };
        let (blank, len) = self.read_small(handle, open)?;
        blank.finish(len).map_err(|_| self.malformed(handle.offset))
    }

    /// Reads a frame that will be copied when it is opened, so its own memory can be used again.
    pub(super) fn read_small<T>(
        &self,
        handle: Handle,
        open: impl FnOnce(&[u8]) -> Result<T, FrameFault>,
    ) -> Result<T> {
        let len = handle.len as usize;
        // Taken, not borrowed: nothing is held while the file is read.
        let mut buf = FRAME.take();
        if buf.len() < len {
            buf.resize(len, 0);
        }
        let frame = buf.get_mut(..len).unwrap_or_default();
        let read = self.read_into(frame, handle.offset);
        let opened =
            read.and_then(|()| open(frame).map_err(|fault| self.damaged(handle.offset, fault)));
        // A long one is not kept.
        buf.truncate(FRAME_LEN_MAX);
        buf.shrink_to(FRAME_LEN_MAX);
        FRAME.set(buf);
        opened
    }

    /// Makes a block of its frame, which has been read.
    pub(super) fn parse_block(&self, handle: Handle, frame: Bytes) -> Result<Arc<Block>> {
        let payload = self.open_frame(handle, frame)?;
        Block::parse(payload).map_err(|_| self.malformed(handle.offset))
    }

    /// Refuses a handle of the index that points outside of the blocks and parts, before anything is
    /// allocated.
    pub(super) fn check_handle(&self, handle: Handle) -> Result<()> {
        let blocks_end = self.footer()?.blocks_end();
        if handle.end().is_some_and(|end| end <= blocks_end) && handle.len as usize > TRAILER_LEN {
            return Ok(());
        }
        let what = "the index points to a block outside of the data";
        Err(Error::corruption(&self.path(), handle.offset, what))
    }

    /// Bytes of the file, past the cache.
    pub(super) fn read(&self, offset: u64, len: usize) -> Result<Bytes> {
        let mut buf = vec![0; len];
        self.read_into(&mut buf, offset)?;
        Ok(Bytes::from(buf))
    }

    fn read_into(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.cache.counters().count(Count::FileReads);
        self.cache.counters().add(Count::FileReadBytes, buf.len() as u64);
        read_exact(&*self.file()?, || self.path(), offset, buf)
    }

    pub(super) fn malformed(&self, offset: u64) -> Error {
        Error::corruption(&self.path(), offset, "the block is intact but its entries are malformed")
    }

    /// A part that the footer points to (whose layout was checked against the file's length).
    pub(super) fn read_frame(&self, handle: Handle) -> Result<Bytes> {
        self.open_frame(handle, self.read(handle.offset, handle.len as usize)?)
    }

    pub(super) fn open_frame(&self, handle: Handle, frame: Bytes) -> Result<Bytes> {
        frame::open(frame, handle.checksum).map_err(|fault| self.damaged(handle.offset, fault))
    }

    fn damaged(&self, offset: u64, fault: FrameFault) -> Error {
        Error::corruption(&self.path(), offset, fault.to_string())
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
            Error::Version { path: path.to_owned(), found, supported: VERSION_IN_PARTS }
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

fn read_bytes(
    file: &dyn VfsFile,
    path: impl Fn() -> PathBuf,
    offset: u64,
    len: usize,
) -> Result<Bytes> {
    let mut buf = vec![0; len];
    read_exact(file, path, offset, &mut buf)?;
    Ok(Bytes::from(buf))
}

/// Fills the buffer. A file that ends too early is damaged, not an I/O error.
fn read_exact(
    file: &dyn VfsFile,
    path: impl Fn() -> PathBuf,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    file.read_exact_at(buf, offset).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            let what = format!("the file ends inside these {} bytes", buf.len());
            Error::corruption(&path(), offset, what)
        }
        _ => Error::io("read", &path(), e),
    })
}

#[cfg(test)]
mod tests {
    use super::Denials;

    #[test]
    fn denials_are_rare_again_after_some_gets_that_were_let_pass() {
        let denials = Denials::default();
        assert!(denials.are_rare());
        for _ in 0..3 {
            denials.note(true, 1);
            assert!(denials.are_rare());
            denials.note(false, Denials::FORGOTTEN_BY);
            for hash in 1..Denials::FORGOTTEN_BY {
                denials.note(true, hash);
                assert!(!denials.are_rare(), "not by every key");
            }
            denials.note(true, Denials::FORGOTTEN_BY);
            assert!(denials.are_rare());
        }
    }
}
