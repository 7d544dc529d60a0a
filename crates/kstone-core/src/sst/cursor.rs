//! Walks the entries of one SST in both directions.
//!
//! Called by the merging iterators above. A cursor keeps the index, or the part of it that
//! it is in, and its current block alive, whatever the cache does. After an error it is on no entry, and may be positioned again.

use std::sync::Arc;

use bytes::Bytes;

use super::block::{Block, Malformed, SEQ_MAX};
use super::block_cursor::{BlockCursor, Reached};
use super::index_walk::IndexWalk;
use super::read_ahead::ReadAhead;
use super::reader::SstReader;
use super::shortcuts::Shortcut;
use crate::entry::{EntryRef, Seq, View};
use crate::error::{Error, Result};

/// A position in a file: on an entry, or on none.
#[derive(Debug)]
pub(crate) struct SstCursor {
    reader: Arc<SstReader>,
    /// The number that all entries have in place of their own, if there is one.
    global_seq: Option<Seq>,
    /// Loaded when the cursor is first positioned.
    index: Option<IndexWalk>,
    block: Option<BlockCursor>,
    /// Which block `block` is, and where.
    slot: usize,
    offset: u64,
    /// Whether that was in the cache.
    was_kept: bool,
    /// `None` if blocks go through the cache.
    ahead: Option<ReadAhead>,
}

impl SstCursor {
    pub(super) fn new(reader: Arc<SstReader>, fill_cache: bool) -> Self {
        let ahead = if fill_cache { None } else { Some(ReadAhead::default()) };
        let global_seq = reader.meta().global_seq;
        SstCursor {
            reader,
            global_seq,
            index: None,
            block: None,
            slot: 0,
            offset: 0,
            was_kept: false,
            ahead,
        }
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

    /// The current value, a copy or, if it is large, a share in its block's memory; empty if there is no current
    /// entry.
    pub(crate) fn value_bytes(&self) -> Bytes {
        self.block.as_ref().map_or_else(Bytes::new, BlockCursor::value_bytes)
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        if self.load(0)? { self.walk(BlockCursor::seek_first) } else { Ok(()) }
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        let last = self.with_index(IndexWalk::last)?;
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
        if self.seek_by_shortcut(key, seq) {
            return Ok(());
        }
        let slot = self.with_index(|index, reader| index.find(reader, key, seq))?;
        let slot = slot.unwrap_or(usize::MAX);
        if !self.load(slot)? {
            return Ok(());
        }
        self.walk(|block| block.seek(key, seq))?;
        // Behind the block's last entry, though not behind its separator.
        if !self.valid() && self.load(slot + 1)? {
            self.walk(BlockCursor::seek_first)?;
        }
        if self.ahead.is_none()
            && self.is_on(key)
            && let Some(block) = &self.block
        {
            let found = Shortcut { block: self.slot, at: block.value_at() };
            self.reader.note_walk(key, found, self.was_kept);
        }
        Ok(())
    }

    /// The same in the block that a shortcut leads to; `false` if that does not have the key. What is wrong
    /// with that block is reported by a read that the index sends there.
    fn seek_by_shortcut(&mut self, key: &[u8], seq: Seq) -> bool {
        if self.ahead.is_some() {
            return false;
        }
        let Some(slot) = self.reader.block_by_shortcut(key) else { return false };
        matches!(self.load(slot), Ok(true))
            && self.walk(|block| block.seek(key, seq)).is_ok()
            && self.is_on(key)
    }

    /// [`seek_before`](Self::seek_before) by the sequence numbers that are in the file's bytes.
    fn seek_before_own(&mut self, key: &[u8], seq: Seq) -> Result<()> {
        let slot = self.with_index(|index, reader| index.find(reader, key, seq))?;
        let Some(slot) = slot else { return self.seek_last() };
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
        self.reader.malformed(self.offset)
    }

    /// Asks the index, which is loaded first if that has not been done. If that fails the cursor is on
    /// no entry.
    fn with_index<T>(
        &mut self,
        ask: impl FnOnce(&mut IndexWalk, &SstReader) -> Result<T>,
    ) -> Result<T> {
        let asked = match &mut self.index {
            Some(index) => ask(index, &self.reader),
            None => IndexWalk::new(&self.reader, self.ahead.is_none())
                .and_then(|index| ask(self.index.insert(index), &self.reader)),
        };
        if asked.is_err() {
            self.block = None;
        }
        asked
    }

    /// Block `slot`, and where it is; `None` if there is no such block.
    fn read_block(&mut self, slot: usize) -> Result<Option<(Arc<Block>, u64)>> {
        let found = self.with_index(|index, reader| index.locate(reader, slot))?;
        let Some((index, place)) = found else { return Ok(None) };
        let Some(ahead) = &mut self.ahead else {
            let offset = index.handle(place).unwrap_or_default().offset;
            let kept = self.reader.kept_block(&index, place);
            self.was_kept = kept.is_some();
            let block = match kept {
                None => self.reader.load_block(&index, place)?,
                kept => kept,
            };
            // Most walks go on to the next one, and it has come by then.
            index.blocks.prefetch(place + 1, Block::prefetch_for_walk);
            return Ok(block.map(|block| (block, offset)));
        };
        let Some((handle, frame)) = ahead.frame(&self.reader, &index, place, slot)? else {
            return Ok(None);
        };
        let block = self.reader.parse_block(handle, frame)?;
        Ok(Some((block, handle.offset)))
    }

    /// Makes block `slot` the current one, on no entry yet; `false` if there is no such block.
    fn load(&mut self, slot: usize) -> Result<bool> {
        if let Some(block) = &mut self.block
            && self.slot == slot
        {
            block.invalidate();
            return Ok(true);
        }
        let (block, offset) = match self.read_block(slot) {
            Ok(Some(loaded)) => loaded,
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
        self.offset = offset;
        Ok(true)
    }
}
