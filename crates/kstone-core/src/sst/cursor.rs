//! Walks the entries of one SST in both directions.
//!
//! Called by the merging iterators above. A cursor keeps the index and its current block alive,
//! whatever the cache does. After an error it is on no entry, and may be positioned again.

use std::sync::Arc;

use bytes::Bytes;

use super::block::{Block, Malformed, SEQ_MAX};
use super::block_cursor::{BlockCursor, Reached};
use super::index::{Handle, Index};
use super::reader::{Indexed, SstReader};
use crate::entry::{EntryRef, Seq, View};
use crate::error::{Error, Result};

/// The most that one read-ahead reads. Past this a disk is busy with moving bytes, not with us.
const READ_AHEAD_BYTES_MAX: usize = 256 << 10;
/// How far the first read of a sequential scan reaches; doubled with each read from there.
const READ_AHEAD_BYTES_MIN: usize = 32 << 10;

/// A position in a file: on an entry, or on none.
#[derive(Debug)]
pub(crate) struct SstCursor {
    reader: Arc<SstReader>,
    /// The number that all entries have in place of their own, if there is one.
    global_seq: Option<Seq>,
    /// Loaded when the cursor is first positioned.
    index: Option<Arc<Indexed>>,
    block: Option<BlockCursor>,
    /// Which block `block` is.
    slot: usize,
    /// `None` if blocks go through the cache.
    ahead: Option<ReadAhead>,
}

/// Bytes of the file that were read in one go because their turn will come.
#[derive(Debug, Default)]
struct ReadAhead {
    offset: u64,
    bytes: Bytes,
    /// The block whose turn comes next if the scan is sequential.
    next_slot: usize,
    window: usize,
}

impl SstCursor {
    pub(super) fn new(reader: Arc<SstReader>, fill_cache: bool) -> Self {
        let ahead = if fill_cache { None } else { Some(ReadAhead::default()) };
        let global_seq = reader.meta().global_seq;
        SstCursor { reader, global_seq, index: None, block: None, slot: 0, ahead }
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.block.as_ref().is_some_and(BlockCursor::valid)
    }

    /// The current entry.
    #[inline]
    pub(crate) fn entry(&self) -> Option<EntryRef<'_>> {
        let mut entry = self.block.as_ref()?.entry()?;
        if let Some(seq) = self.global_seq {
            entry.seq = seq;
        }
        Some(entry)
    }

    /// The current value, sharing its block's memory; empty if there is no current entry.
    pub(crate) fn value_bytes(&self) -> Bytes {
        self.block.as_ref().map_or_else(Bytes::new, BlockCursor::value_bytes)
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        if self.load(0)? { self.walk(BlockCursor::seek_first) } else { Ok(()) }
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        let last = self.index()?.count().wrapping_sub(1);
        if self.load(last)? { self.walk(BlockCursor::seek_last) } else { Ok(()) }
    }

    /// To the first entry that is not in front of `(key, seq)`; to none if there is none.
    pub(crate) fn seek(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        match self.global_seq {
            None => self.seek_own(key, seq),
            Some(global) => {
                self.seek_own(key, SEQ_MAX)?;
                if global > seq && self.is_on(key) { self.next() } else { Ok(()) }
            }
        }
    }

    /// To the last entry that is in front of `(key, seq)`; to none if there is none.
    pub(crate) fn seek_before(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        match self.global_seq {
            None => self.seek_before_own(key, seq),
            Some(global) if global > seq => {
                // The entry of `key` itself, if there is one, is in front.
                self.seek_own(key, SEQ_MAX)?;
                match self.valid() {
                    true if self.is_on(key) => Ok(()),
                    true => self.prev(),
                    false => self.seek_last(),
                }
            }
            Some(_) => self.seek_before_own(key, SEQ_MAX),
        }
    }

    /// To the next entry; to none behind the last, or from none.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        if !self.valid() {
            return Ok(());
        }
        self.walk(BlockCursor::next)?;
        if !self.valid() && self.load(self.slot + 1)? {
            self.walk(BlockCursor::seek_first)?;
        }
        Ok(())
    }

    /// To the next entry with another key; to none behind the last.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Result<()> {
        loop {
            self.next()?;
            if self.block.as_ref().is_none_or(|block| !block.valid() || block.is_new()) {
                return Ok(());
            }
        }
    }

    /// [`next_visible`](Self::next_visible) where the next entry is in the same block, and as most are:
    /// the step that a walk makes most often, with no call in it. Else `None`: nothing was done. The
    /// cursor is on an entry that shows.
    #[inline(always)]
    pub(crate) fn next_plain(&mut self, view: &View<'_>) -> Option<bool> {
        let view = View { seq: self.own_seq(view)?, ..*view };
        Some(self.block.as_mut()?.next_plain(&view)? == Reached::Visible)
    }

    /// To the next key that the view shows; `false` if there is none. The key that the cursor is on,
    /// if it is on one, has been dealt with; else it goes on where the last block ended.
    pub(crate) fn next_visible(&mut self, view: &View<'_>) -> Result<bool> {
        let Some(seq) = self.own_seq(view) else { return Ok(false) };
        let view = View { seq, ..*view };
        while let Some(block) = &mut self.block {
            match block.next_visible(&view) {
                Reached::Visible => return Ok(true),
                Reached::WalkEnd => return Ok(false),
                Reached::BlockEnd => {
                    if !self.begin_next()? {
                        return Ok(false);
                    }
                }
                Reached::Damage => return Err(self.damaged()),
            }
        }
        Ok(false)
    }

    /// The view's sequence number by the numbers that are in the file's bytes; `None` if none of them
    /// shows.
    #[inline(always)]
    fn own_seq(&self, view: &View<'_>) -> Option<Seq> {
        match self.global_seq {
            None => Some(view.seq),
            Some(global) => (global <= view.seq).then_some(SEQ_MAX),
        }
    }

    /// In front of the file's first entry, for [`next_visible`](Self::next_visible).
    pub(crate) fn begin_first(&mut self) -> Result<bool> {
        let is_there = self.load(0)?;
        if let Some(block) = self.block.as_mut().filter(|_| is_there) {
            block.begin_anew();
        }
        Ok(is_there)
    }

    fn begin_next(&mut self) -> Result<bool> {
        let is_there = self.load(self.slot + 1)?;
        if let Some(block) = self.block.as_mut().filter(|_| is_there) {
            block.begin();
        }
        Ok(is_there)
    }

    /// To the previous entry; to none in front of the first, or from none.
    pub(crate) fn prev(&mut self) -> Result<()> {
        if !self.valid() {
            return Ok(());
        }
        self.walk(BlockCursor::prev)?;
        if !self.valid() { self.last_of_previous_block() } else { Ok(()) }
    }

    fn is_on(&self, key: &[u8]) -> bool {
        self.block.as_ref().is_some_and(|block| block.valid() && block.key() == key)
    }

    /// [`seek`](Self::seek) by the sequence numbers that are in the file's bytes.
    fn seek_own(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        let slot = self.index()?.find(key, seq).unwrap_or(usize::MAX);
        if !self.load(slot)? {
            return Ok(());
        }
        self.walk(|block| block.seek(key, seq))?;
        // Behind the block's last entry, though not behind its separator.
        if !self.valid() && self.load(slot + 1)? {
            self.walk(BlockCursor::seek_first)?;
        }
        Ok(())
    }

    /// [`seek_before`](Self::seek_before) by the sequence numbers that are in the file's bytes.
    fn seek_before_own(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        let Some(slot) = self.index()?.find(key, seq) else { return self.seek_last() };
        if !self.load(slot)? {
            return Ok(());
        }
        self.walk(|block| block.seek(key, seq))?;
        if self.valid() { self.prev() } else { self.walk(BlockCursor::seek_last) }
    }

    fn last_of_previous_block(&mut self) -> Result<()> {
        match self.slot.checked_sub(1) {
            Some(slot) if self.load(slot)? => self.walk(BlockCursor::seek_last),
            _ => Ok(()),
        }
    }

    fn index(&mut self) -> Result<Arc<Indexed>> {
        if let Some(index) = &self.index {
            return Ok(index.clone());
        }
        let index = self.reader.index(self.ahead.is_none())?;
        self.index = Some(index.clone());
        Ok(index)
    }

    /// Moves inside the current block.
    #[inline]
    fn walk(&mut self, how: impl FnOnce(&mut BlockCursor) -> Result<(), Malformed>) -> Result<()> {
        match self.block.as_mut().map(how) {
            Some(Err(Malformed)) => Err(self.damaged()),
            Some(Ok(())) | None => Ok(()),
        }
    }

    #[cold]
    fn damaged(&mut self) -> Error {
        self.block = None;
        let handle = self.index.as_ref().and_then(|index| index.handle(self.slot));
        self.reader.malformed(handle.unwrap_or_default().offset)
    }

    /// Makes block `slot` the current one, on no entry yet; `false` if there is no such block.
    fn load(&mut self, slot: usize) -> Result<bool> {
        if let Some(block) = &mut self.block
            && self.slot == slot
        {
            block.invalidate();
            return Ok(true);
        }
        let index = self.index()?;
        let loaded = match &mut self.ahead {
            None => self.reader.block(&index, slot),
            Some(ahead) => ahead.block(&self.reader, &index, slot),
        };
        let block = match loaded {
            Ok(Some(block)) => block,
            Ok(None) => {
                if let Some(block) = &mut self.block {
                    block.invalidate();
                }
                return Ok(false);
            }
            Err(error) => {
                self.block = None;
                return Err(error);
            }
        };
        match &mut self.block {
            Some(cursor) => cursor.reset(block),
            None => self.block = Some(BlockCursor::new(block)),
        }
        self.slot = slot;
        Ok(true)
    }
}

impl ReadAhead {
    /// Block `slot`, from what was read already, or from a read that reaches the further the
    /// longer the scan has been sequential. A single seek reads a single block.
    fn block(
        &mut self,
        reader: &SstReader,
        index: &Index,
        slot: usize,
    ) -> Result<Option<Arc<Block>>> {
        let Some(handle) = index.handle(slot) else { return Ok(None) };
        reader.check_data_handle(handle)?;
        if self.get(handle).is_none() {
            self.window = if slot == self.next_slot {
                (self.window * 2).clamp(READ_AHEAD_BYTES_MIN, READ_AHEAD_BYTES_MAX)
            } else {
                0
            };
            let mut end = handle;
            for next in (slot + 1..).map_while(|slot| index.handle(slot)) {
                let len = next.end().and_then(|end| end.checked_sub(handle.offset));
                if Some(next.offset) != end.end() || len.is_none_or(|len| len > self.window as u64)
                {
                    break;
                }
                reader.check_data_handle(next)?;
                end = next;
            }
            let len = end.end().and_then(|end| end.checked_sub(handle.offset)).unwrap_or(0);
            self.bytes = reader.read(handle.offset, len as usize)?;
            self.offset = handle.offset;
        }
        self.next_slot = slot + 1;
        let frame = self.get(handle).ok_or_else(|| reader.malformed(handle.offset))?;
        Ok(Some(Arc::new(reader.parse_block(handle, frame)?)))
    }

    fn get(&self, handle: Handle) -> Option<Bytes> {
        let start = usize::try_from(handle.offset.checked_sub(self.offset)?).ok()?;
        let end = start.checked_add(handle.len as usize)?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }
}
