//! Filter and index of a file in parts, put together again in memory.
//!
//! Parts are for files of which little fits into memory: a get finds two of them, each with a lock and a
//! count of its own. Where all of them fit, that is a tenth of a point read and more. So when gets have
//! asked for as many parts as there are, all of them are joined and pinned, if the cache has memory to
//! give up for that. From then on the file is read as a small one is.
//!
//! Called by `reader` and `indexed` where they ask for a part.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use bytes::Bytes;

use super::block::Block;
use super::filter_parts::PiecedFilter;
use super::index::{Index, IndexBuilder};
use super::indexed::{IndexTop, PART_BLOCKS};
use super::reader::SstReader;
use super::slots::Slots;
use crate::error::Result;

/// So often at most it is tried less often.
const REFUSALS_MAX: u8 = 12;

/// How often parts were asked for since they were last about to be joined (or keys, whose
/// [shortcuts](super::shortcuts) would be made).
///
/// Counted by plain loads and stores: what two threads count at once may be one, and that does no harm.
#[derive(Debug, Default)]
pub(super) struct Asked {
    times: AtomicU32,
    /// How often that could not be done: each makes it half as often that it is tried.
    refusals: AtomicU8,
}

impl Asked {
    /// Counts once more; answers whether that makes `enough`, and begins anew if it does.
    #[inline]
    pub(super) fn is_now(&self, enough: usize) -> bool {
        let times = self.times.load(Relaxed).saturating_add(1);
        let enough = enough.saturating_mul(1 << self.refusals.load(Relaxed));
        let is_enough = times as usize >= enough;
        self.times.store(if is_enough { 0 } else { times }, Relaxed);
        is_enough
    }

    /// Counts once less.
    #[inline]
    pub(super) fn take_back(&self) {
        let times = self.times.load(Relaxed);
        // Nothing is written where there is nothing to take: other cores read what lies beside it.
        if times > 0 {
            self.times.store(times - 1, Relaxed);
        }
    }

    /// It could not be done.
    pub(super) fn refused(&self) {
        let refusals = self.refusals.load(Relaxed);
        self.refusals.store((refusals + 1).min(REFUSALS_MAX), Relaxed);
    }
}

impl SstReader {
    /// Joins the parts of the index, if there is memory for that; answers whether they are joined. A part
    /// that is damaged is for those to tell who need it.
    #[inline(never)]
    pub(super) fn join_index(&self, top: &IndexTop) -> bool {
        let handles = (0..top.count()).filter_map(|nth| top.handle(nth));
        let parts_bytes: usize = handles.map(|handle| handle.len as usize).sum();
        let about = parts_bytes + top.count() * PART_BLOCKS * Slots::<Block>::PLACE_BYTES;
        let make = || {
            let index = self.joined(top).ok()??;
            let bytes = index.weight();
            Some(self.with_places(index, bytes, 0, true))
        };
        if !self.held_index().pin_joined(self.cache(), about, make) {
            return false;
        }
        if let Some(joined) = self.held_index().pinned() {
            // What was found by the parts is found by all of them. The parts go when room is needed.
            for part in (0..top.count()).filter_map(|nth| Some((nth, top.kept_part(nth)?))) {
                let (first, part) = (part.0 * PART_BLOCKS, part.1);
                for nth in 0..part.count() {
                    if let Some(block) = part.blocks.peek(nth) {
                        joined.blocks.put(first + nth, &block);
                    }
                }
            }
        }
        true
    }

    /// `None` if the parts do not make an index.
    fn joined(&self, top: &IndexTop) -> Result<Option<Index>> {
        let mut joined = IndexBuilder::default();
        for nth in 0..top.count() {
            let kept = top.kept_part(nth);
            let read;
            let part: &Index = match &kept {
                Some(part) => part,
                None => {
                    let Some(handle) = top.handle(nth) else { return Ok(None) };
                    read = self.read_part(top, nth, handle)?;
                    &read
                }
            };
            if joined.add_all(part).is_none() {
                return Ok(None);
            }
        }
        Ok(Index::parse(Bytes::from(joined.encode())))
    }

    /// Joins the pieces of the filter, if there is memory for that; answers whether they are joined.
    #[inline(never)]
    pub(super) fn join_filter(&self, filter: &PiecedFilter) -> bool {
        self.held_filter()
            .pin_joined(self.cache(), filter.joined_bytes(), || self.joined_pieces(filter).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_is_counted_from_nothing_again_and_again() {
        let asked = Asked::default();
        for _ in 0..3 {
            assert_eq!([1, 2, 3].map(|_| asked.is_now(3)), [false, false, true]);
        }
        assert!(asked.is_now(1) && asked.is_now(0));
        asked.refused();
        assert_eq!([1, 2, 3, 4].map(|_| asked.is_now(2)), [false, false, false, true]);
    }
}
