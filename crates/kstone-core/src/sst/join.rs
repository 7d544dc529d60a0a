//! Joins filter and index of a file in parts into whole ones, in memory.
//!
//! Parts are for files of which little fits into memory: a get finds two of them, each with a lock and a
//! count of its own. Where all of them fit, that is a tenth of a point read and more. So when gets have
//! asked for as many parts as there are, all of them are joined and pinned, if the cache has memory to
//! give up for that. From then on the file is read as a small one is.
//!
//! Joining takes as long as a hundred gets. Where there is a thread for it, a get leaves a [`JoinRequest`] and goes
//! on with the parts; else it does it itself.
//!
//! Called by `reader` and `indexed` where they ask for a part, and by the engine, which has the threads.

use std::collections::VecDeque;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use bytes::Bytes;

use super::FileId;
use super::block::Block;
use super::filter_parts::PiecedFilter;
use super::index::{Index, IndexBuilder};
use super::indexed::{IndexTop, PART_BLOCKS};
use super::reader::SstReader;
use super::slots::Slots;
use crate::error::Result;
use crate::sync::Mutex;

/// After so many refusals it is not tried less often still.
const REFUSALS_MAX: u8 = 12;
/// More requests than these are not kept: parts that are still in demand are requested again.
const JOIN_REQUESTS_MAX: usize = 256;

/// How often parts were asked for since they were last about to be joined (or keys, whose
/// [shortcuts](super::shortcuts) would be made).
///
/// Counted by plain loads and stores: what two threads count at once may be one, and that does no harm.
#[derive(Debug, Default)]
pub(super) struct RequestCounter {
    times: AtomicU32,
    /// How often that could not be done: each makes it half as often that it is tried.
    refusals: AtomicU8,
}

impl RequestCounter {
    /// Counts one more; answers whether that makes `enough`, and begins anew if it does.
    #[inline]
    pub(super) fn is_now(&self, enough: usize) -> bool {
        let times = self.times.load(Relaxed).saturating_add(1);
        let enough = enough.saturating_mul(1 << self.refusals.load(Relaxed));
        let is_enough = times as usize >= enough;
        self.times.store(if is_enough { 0 } else { times }, Relaxed);
        is_enough
    }

    /// Counts one less.
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

/// What has parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joinable {
    Index,
    Filter,
}

/// A request to join the parts of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JoinRequest {
    pub(crate) stripe: u8,
    pub(crate) file_id: FileId,
    pub(crate) what: Joinable,
}

/// The requests of gets, for a thread that joins.
#[derive(Default)]
pub(crate) struct JoinRequests {
    lists: Mutex<Lists>,
    /// Wakes that thread; answers whether it is still there.
    call: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}

#[derive(Debug, Default)]
struct Lists {
    /// Oldest first.
    waiting: VecDeque<JoinRequest>,
    under_way: Vec<JoinRequest>,
}

impl fmt::Debug for JoinRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinRequests").field("lists", &self.lists).finish_non_exhaustive()
    }
}

impl JoinRequests {
    /// From now on there is a thread that [runs](JoinRequests::run_next) requests when `call` wakes it.
    pub(crate) fn serve(&self, call: impl Fn() -> bool + Send + Sync + 'static) {
        // Once for a database: who served first stays.
        let _ = self.call.set(Box::new(call));
    }

    /// Runs the oldest request; answers whether there was one. Meanwhile the same is not requested again.
    pub(crate) fn run_next(&self, join: impl FnOnce(JoinRequest)) -> bool {
        let wish = {
            let mut lists = self.lists.lock();
            let Some(wish) = lists.waiting.pop_front() else { return false };
            lists.under_way.push(wish);
            wish
        };
        join(wish);
        self.lists.lock().under_way.retain(|other| *other != wish);
        true
    }

    /// Leaves a request; answers whether there is a thread for it.
    fn leave(&self, wish: JoinRequest) -> bool {
        let Some(call) = self.call.get() else { return false };
        {
            let Lists { waiting, under_way } = &mut *self.lists.lock();
            if under_way.contains(&wish)
                || waiting.contains(&wish)
                || waiting.len() >= JOIN_REQUESTS_MAX
            {
                return true;
            }
            waiting.push_back(wish);
        }
        let is_heard = call();
        if !is_heard {
            self.lists.lock().waiting.clear();
        }
        is_heard
    }
}

impl SstReader {
    /// Parts of the index were asked for often enough.
    #[inline(never)]
    pub(super) fn request_index_join(&self, top: &IndexTop) {
        self.request_join(
            Joinable::Index,
            joined_bytes(top),
            || self.join_index(top),
            || top.not_joined(),
        );
    }

    /// Pieces of the filter were.
    #[inline(never)]
    pub(super) fn request_filter_join(&self, filter: &PiecedFilter) {
        let join = || self.join_filter(filter);
        self.request_join(Joinable::Filter, filter.joined_bytes(), join, || filter.not_joined());
    }

    /// Has the thread join what takes about so many bytes, or joins it here. Where there is no memory for
    /// it, nothing is done.
    fn request_join(
        &self,
        what: Joinable,
        about: usize,
        join: impl FnOnce() -> bool,
        not_joined: impl FnOnce(),
    ) {
        let (stripe, file_id) = (self.meta().stripe, self.meta().file_id);
        let is_joined = self.cache().could_join(about)
            && (self.cache().join_requests().leave(JoinRequest { stripe, file_id, what })
                || join());
        if !is_joined {
            not_joined();
        }
    }

    /// Does what was requested. Where even what finds the parts is not in memory any more, nothing is done.
    pub(crate) fn join(&self, what: Joinable) {
        match what {
            Joinable::Index => {
                if let Some(top) = self.hot_top().get()
                    && !self.join_index(&top)
                {
                    top.not_joined();
                }
            }
            Joinable::Filter => {
                if let Some(filter) = self.hot_pieces().get()
                    && !self.join_filter(&filter)
                {
                    filter.not_joined();
                }
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn is_joined(&self) -> bool {
        self.hot_index().pinned().is_some() && self.hot_filter().pinned().is_some()
    }

    /// Joins the parts of the index, if there is memory for that; answers whether they are joined. A part
    /// that is damaged is reported by the read that needs it.
    fn join_index(&self, top: &IndexTop) -> bool {
        if self.hot_index().pinned().is_some() {
            return true;
        }
        let make = || {
            let index = self.joined(top).ok()??;
            let bytes = index.weight();
            Some(self.with_places(index, bytes, 0, true))
        };
        if !self.hot_index().pin_joined(self.cache(), joined_bytes(top), make) {
            return false;
        }
        if let Some(joined) = self.hot_index().pinned() {
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
    fn join_filter(&self, filter: &PiecedFilter) -> bool {
        self.hot_filter()
            .pin_joined(self.cache(), filter.joined_bytes(), || self.joined_pieces(filter).ok())
    }
}

/// What the parts take in memory when they are joined, about.
fn joined_bytes(top: &IndexTop) -> usize {
    let handles = (0..top.count()).filter_map(|nth| top.handle(nth));
    let parts_bytes: usize = handles.map(|handle| handle.len as usize).sum();
    parts_bytes + top.count() * PART_BLOCKS * Slots::<Block>::PLACE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_is_counted_from_nothing_again_and_again() {
        let asked = RequestCounter::default();
        for _ in 0..3 {
            assert_eq!([1, 2, 3].map(|_| asked.is_now(3)), [false, false, true]);
        }
        assert!(asked.is_now(1) && asked.is_now(0));
        asked.refused();
        assert_eq!([1, 2, 3, 4].map(|_| asked.is_now(2)), [false, false, false, true]);
    }
}
