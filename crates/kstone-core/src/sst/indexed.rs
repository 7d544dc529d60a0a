//! An index in memory, whole or in parts, with a cache slot for each block or part that it points to.
//!
//! The index of a large file is in parts. Each is the index of 64 consecutive data blocks (the last,
//! of what is left), so block n is in part n / 64. The *top* is an index too, and points to the parts:
//! its separators are the last ones of theirs. A get searches the top and one part, and reads no more
//! of the index than that part.
//!
//! Called by reader, cursor (through `index_walk`) and `verify`.

use std::ops::{Deref, Range};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::block::Block;
use super::frame;
use super::index::{Handle, Index};
use super::join::RequestCounter;
use super::reader::SstReader;
use super::slots::{EvictedPart, Part, Slots, Uses, numbers, plain_part};
use super::stats::Count;
use crate::entry::Seq;
use crate::error::{Error, Result};

/// How many blocks a part of an index has. Then it is about as long as a block.
pub(super) const PART_BLOCKS: usize = 64;

/// An index of data blocks, of all of a file or of a part of them, and a slot for each block.
#[derive(Debug)]
pub(super) struct IndexWithSlots {
    index: Index,
    pub(super) blocks: Arc<Slots<Block>>,
    weight: usize,
    uses: Uses,
}

impl IndexWithSlots {
    /// [`Index::narrow`], and asks for what comes next: the rest of the search, and the places of the
    /// blocks.
    #[inline]
    pub(super) fn narrow_prefetching(&self, key: &[u8]) -> Range<usize> {
        self.index.prefetch();
        let among = self.index.narrow(key);
        self.index.prefetch_among(&among);
        self.blocks.prefetch_slots(among.start, among.end);
        among
    }
}

impl Deref for IndexWithSlots {
    type Target = Index;

    #[inline]
    fn deref(&self) -> &Index {
        &self.index
    }
}

impl Part for IndexWithSlots {
    const OWNS_PARTS: bool = true;

    fn weight(&self) -> usize {
        self.weight
    }

    plain_part!();
}

/// The top of an index in parts, and a place for each part.
#[derive(Debug)]
pub(super) struct IndexTop {
    index: Index,
    parts: Arc<Slots<IndexWithSlots>>,
    uses: Uses,
    requests: RequestCounter,
}

impl IndexTop {
    /// A part, if it is in memory.
    pub(super) fn kept_part(&self, nth: usize) -> Option<Arc<IndexWithSlots>> {
        self.parts.peek(nth)
    }

    /// They could not be joined.
    pub(super) fn not_joined(&self) {
        self.requests.refused();
    }
}

impl Deref for IndexTop {
    type Target = Index;

    #[inline]
    fn deref(&self) -> &Index {
        &self.index
    }
}

impl Part for IndexTop {
    const OWNS_PARTS: bool = true;

    fn weight(&self) -> usize {
        self.index.weight() + self.index.count() * Slots::<IndexWithSlots>::PLACE_BYTES
    }

    plain_part!();
}

/// The index of a file.
#[derive(Debug)]
pub(super) enum AnyIndex {
    Whole(Arc<IndexWithSlots>),
    InParts(Arc<IndexTop>),
}

impl SstReader {
    /// The index; cached unless the caller is only passing through, which then finds no slots for what it
    /// points to.
    pub(super) fn index(&self, fill_cache: bool) -> Result<AnyIndex> {
        let (cache, file) = (self.cache(), self.meta().file_id);
        if let Some(index) = self.hot_index().get() {
            cache.counters().count(Count::IndexHit);
            return Ok(AnyIndex::Whole(index));
        }
        if let Some(top) = self.hot_top().get() {
            return Ok(AnyIndex::InParts(top));
        }
        cache.counters().count(Count::IndexMiss);
        let is_in_parts = self.footer()?.is_in_parts();
        let index = self.read_index()?;
        let places = if fill_cache { index.count() } else { 0 };
        if is_in_parts {
            let parts = Slots::new(cache, file, numbers::INDEX_PARTS, places);
            let (uses, requests) = (Uses::default(), RequestCounter::default());
            let top = Arc::new(IndexTop { index, parts, uses, requests });
            if fill_cache {
                self.hot_top().keep(cache, file, numbers::INDEX, &top);
            }
            return Ok(AnyIndex::InParts(top));
        }
        let bytes = index.weight();
        let index = Arc::new(self.with_places(index, bytes, 0, fill_cache));
        if fill_cache {
            self.hot_index().keep(cache, file, numbers::INDEX, &index);
        }
        Ok(AnyIndex::Whole(index))
    }

    /// The index, or that part of it, in which `(key, seq)` is to be looked for; `None` if it is behind
    /// all that the file has. For gets that find no whole index pinned.
    #[inline(never)]
    pub(super) fn index_for(&self, key: &[u8], seq: Seq) -> Result<Option<Arc<IndexWithSlots>>> {
        if let Some(top) = self.hot_top().pinned() {
            return self.part_for(top, key, seq);
        }
        match self.index(true)? {
            AnyIndex::Whole(index) => Ok(Some(index)),
            AnyIndex::InParts(top) => self.part_for(&top, key, seq),
        }
    }

    fn part_for(
        &self,
        top: &IndexTop,
        key: &[u8],
        seq: Seq,
    ) -> Result<Option<Arc<IndexWithSlots>>> {
        let Some(nth) = top.find(key, seq) else { return Ok(None) };
        // Gets only: a scan asks for each part once, and may never come back.
        if top.requests.is_now(top.count()) {
            self.request_index_join(top);
        }
        self.part(top, nth)
    }

    /// Part `nth`, from the cache or into it; `None` if there is no such part.
    pub(super) fn part(&self, top: &IndexTop, nth: usize) -> Result<Option<Arc<IndexWithSlots>>> {
        if let Some(part) = top.parts.get(nth) {
            self.cache().counters().count(Count::IndexHit);
            return Ok(Some(part));
        }
        let Some(handle) = top.handle(nth) else { return Ok(None) };
        self.cache().counters().count(Count::IndexMiss);
        let index = self.read_part(top, nth, handle)?;
        let bytes = frame::padded_len(index.weight());
        let part = Arc::new(self.with_places(index, bytes, nth, true));
        top.parts.put(nth, &part);
        Ok(Some(part))
    }

    /// A part that is not kept, made of its frame, which has been read.
    pub(super) fn passing_part(
        &self,
        top: &Index,
        nth: usize,
        handle: Handle,
        frame: Bytes,
    ) -> Result<Arc<IndexWithSlots>> {
        let index = self.check_part(top, nth, handle, self.open_frame(handle, frame)?)?;
        let bytes = index.weight();
        Ok(Arc::new(self.with_places(index, bytes, nth, false)))
    }

    /// Reads part `nth` of an index from the file, past the cache.
    pub(super) fn read_part(&self, top: &Index, nth: usize, handle: Handle) -> Result<Index> {
        self.check_handle(handle)?;
        // In a buffer of one of a few lengths: parts come and go.
        let (bytes, len) = self.read_small(handle, |frame| {
            frame::open_padded(frame, handle.checksum, BytesMut::zeroed)
        })?;
        self.check_part(top, nth, handle, bytes.freeze().slice(..len))
    }

    /// Blocks are counted by the part that they are in, so a part has as many as it must; and it ends
    /// where the top says, so that a search that was sent there finds a block.
    fn check_part(&self, top: &Index, nth: usize, handle: Handle, payload: Bytes) -> Result<Index> {
        let damage = |what| Error::corruption(&self.path(), handle.offset, what);
        let part = Index::parse(payload).ok_or_else(|| damage("the index's part is malformed"))?;
        let is_last = nth + 1 == top.count();
        if part.count() > PART_BLOCKS || (part.count() < PART_BLOCKS && !is_last) {
            return Err(damage("the index's part does not have as many blocks as it should"));
        }
        if !part.has_separator_of(part.count() - 1, top, nth) {
            return Err(damage("the index's part does not end where its top says"));
        }
        Ok(part)
    }

    /// `bytes` is what the index takes in memory, `nth` which part it is, or 0 if it is whole.
    pub(super) fn with_places(
        &self,
        index: Index,
        bytes: usize,
        nth: usize,
        fill_cache: bool,
    ) -> IndexWithSlots {
        let places = if fill_cache { index.count() } else { 0 };
        let first = numbers::BLOCKS + nth * PART_BLOCKS;
        let blocks = Slots::new(self.cache(), self.meta().file_id, first, places);
        let weight = bytes + places * Slots::<Block>::PLACE_BYTES;
        IndexWithSlots { index, blocks, weight, uses: Uses::default() }
    }
}
