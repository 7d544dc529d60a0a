//! Finds blocks for a cursor, by their number in the file, whether the index is whole or in parts.
//!
//! The part that the cursor is in stays alive, whatever the cache does, and is not looked for again
//! before the cursor leaves it.

use std::sync::Arc;

use super::indexed::{AnyIndex, IndexTop, IndexWithSlots, PART_BLOCKS};
use super::read_ahead::ReadAhead;
use super::reader::SstReader;
use crate::entry::Seq;
use crate::error::Result;

#[derive(Debug)]
pub(super) struct IndexWalk {
    form: Form,
    /// `None` if parts go through the cache.
    ahead: Option<ReadAhead>,
}

#[derive(Debug)]
enum Form {
    Whole(Arc<IndexWithSlots>),
    InParts {
        top: Arc<IndexTop>,
        /// The part that was asked for last, and its number.
        current: Option<(usize, Arc<IndexWithSlots>)>,
    },
}

impl IndexWalk {
    /// Through the cache, or, without `fill_cache`, past it.
    pub(super) fn new(reader: &SstReader, fill_cache: bool) -> Result<Self> {
        let form = match reader.index(fill_cache)? {
            AnyIndex::Whole(index) => Form::Whole(index),
            AnyIndex::InParts(top) => Form::InParts { top, current: None },
        };
        let ahead = if fill_cache { None } else { Some(ReadAhead::default()) };
        Ok(IndexWalk { form, ahead })
    }

    /// The number of the block that `(key, seq)` belongs to; `None` if it is behind them all.
    pub(super) fn find(
        &mut self,
        reader: &SstReader,
        key: &[u8],
        seq: Seq,
    ) -> Result<Option<usize>> {
        let nth = match &self.form {
            Form::Whole(index) => return Ok(index.find(key, seq)),
            Form::InParts { top, .. } => top.find(key, seq),
        };
        let Some(nth) = nth else { return Ok(None) };
        let found = self.part(reader, nth)?.and_then(|part| part.find(key, seq));
        Ok(found.map(|place| nth * PART_BLOCKS + place))
    }

    /// The number of the last block.
    pub(super) fn last(&mut self, reader: &SstReader) -> Result<usize> {
        let nth = match &self.form {
            Form::Whole(index) => return Ok(index.count() - 1),
            Form::InParts { top, .. } => top.count() - 1,
        };
        let count = self.part(reader, nth)?.map_or(1, |part| part.count());
        Ok(nth * PART_BLOCKS + count - 1)
    }

    /// The index that has this block, and its place there; `None` if there is no such block.
    pub(super) fn locate(
        &mut self,
        reader: &SstReader,
        block: usize,
    ) -> Result<Option<(Arc<IndexWithSlots>, usize)>> {
        let (index, place) = match &self.form {
            Form::Whole(index) => (Some(Arc::clone(index)), block),
            Form::InParts { .. } => (self.part(reader, block / PART_BLOCKS)?, block % PART_BLOCKS),
        };
        Ok(index.filter(|index| place < index.count()).map(|index| (index, place)))
    }

    fn part(&mut self, reader: &SstReader, nth: usize) -> Result<Option<Arc<IndexWithSlots>>> {
        let Form::InParts { top, current } = &mut self.form else { return Ok(None) };
        if let Some((number, part)) = current
            && *number == nth
        {
            return Ok(Some(Arc::clone(part)));
        }
        let part = match &mut self.ahead {
            None => reader.part(top, nth)?,
            Some(ahead) => match ahead.frame(reader, top, nth, nth)? {
                Some((handle, frame)) => Some(reader.passing_part(top, nth, handle, frame)?),
                None => None,
            },
        };
        if let Some(part) = &part {
            *current = Some((nth, Arc::clone(part)));
        }
        Ok(part)
    }
}
