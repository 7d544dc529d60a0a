//! Filter and index of a file in parts, put together again in memory.
//!
//! Parts are for files of which little fits into memory: a get finds two of them, each with a lock and a
//! count of its own. Where all of them fit, that is a tenth of a point read and more. So when gets have
//! asked for as many parts as there are, all of them are joined and pinned, if the cache has memory to
//! give up for that. From then on the file is read as a small one is. What was found by the parts until
//! then, a few blocks, is read anew.
//!
//! Called by `reader` and `indexed` where they ask for a part.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use bytes::Bytes;

use super::block::Block;
use super::filter_parts::PiecedFilter;
use super::index::{Index, IndexBuilder};
use super::indexed::{IndexTop, PART_BLOCKS};
use super::reader::SstReader;
use super::slots::Slots;
use crate::error::Result;

/// How often parts were asked for since that was last enough to join them.
///
/// Counted by plain loads and stores: what two threads count at once may be one, and that does no harm.
#[derive(Debug, Default)]
pub(super) struct Asked(AtomicU32);

impl Asked {
    /// Counts once more; answers whether that makes `enough`, and begins anew if it does.
    #[inline]
    pub(super) fn is_now(&self, enough: usize) -> bool {
        let asked = self.0.load(Relaxed).saturating_add(1);
        let is_enough = asked as usize >= enough;
        self.0.store(if is_enough { 0 } else { asked }, Relaxed);
        is_enough
    }
}

impl SstReader {
    /// Joins the parts of the index, if there is memory for that. A part that is damaged is for those to
    /// tell who need it.
    #[inline(never)]
    pub(super) fn join_index(&self, top: &IndexTop) {
        let handles = (0..top.count()).filter_map(|nth| top.handle(nth));
        let parts_bytes: usize = handles.map(|handle| handle.len as usize).sum();
        let about = parts_bytes + top.count() * PART_BLOCKS * Slots::<Block>::PLACE_BYTES;
        self.held_index().pin_made(self.cache(), about, || {
            let index = self.joined(top).ok()??;
            let bytes = index.weight();
            Some(Arc::new(self.with_places(index, bytes, 0, true)))
        });
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

    /// Joins the pieces of the filter, if there is memory for that.
    #[inline(never)]
    pub(super) fn join_filter(&self, filter: &PiecedFilter) {
        self.held_filter().pin_made(self.cache(), filter.joined_bytes(), || {
            self.joined_pieces(filter).ok().map(Arc::new)
        });
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
    }
}
