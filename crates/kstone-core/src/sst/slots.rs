//! Cache slots: one for each cacheable part of a file, stored next to the reference to that part.
//!
//! A reader that looks a part up knows its number already, so there is nothing to hash and to search: the
//! slot is read, and the part if there is one. What may stay is for the [`BlockCache`] to say, which counts
//! all kept parts of all files and takes them out again.
//!
//! A slot has a lock of its own, held for as long as it takes to count a reference.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::FileId;
use super::block::Block;
use super::cache::BlockCache;
use crate::prefetch;
use crate::sync::Mutex;

/// More uses than that tell the cache nothing.
const USES_MAX: u8 = 2;

/// How often a part was used since the cache last asked.
///
/// Counted by plain loads and stores: two threads that count at once may count one use for two, and
/// none of them ever waits for the other. Once it is at its most it is not written to, so a part that
/// everybody reads stays in every core's cache.
#[derive(Debug, Default)]
pub(super) struct Uses(AtomicU8);

impl Uses {
    #[inline]
    fn add(&self) {
        let uses = self.0.load(Relaxed);
        if uses < USES_MAX {
            self.0.store(uses + 1, Relaxed);
        }
    }

    fn get(&self) -> u8 {
        self.0.load(Relaxed)
    }

    fn take_one(&self) {
        self.0.store(self.get().saturating_sub(1), Relaxed);
    }

    fn take_all(&self) {
        self.0.store(0, Relaxed);
    }
}

/// A part of a file that the cache can keep.
pub(super) trait Part: Send + Sync + std::fmt::Debug + 'static {
    /// Bytes of memory, the same for as long as it is kept.
    fn weight(&self) -> usize;

    fn uses(&self) -> &Uses;

    /// The cache keeps it no more.
    fn into_evicted(self: Arc<Self>) -> EvictedPart;

    /// Whether other parts are found by this one, and go with it.
    const OWNS_PARTS: bool = false;
}

/// The methods of a [`Part`] with a field `uses` that is only dropped when it is evicted.
macro_rules! plain_part {
    () => {
        #[inline]
        fn uses(&self) -> &Uses {
            &self.uses
        }

        fn into_evicted(self: Arc<Self>) -> EvictedPart {
            EvictedPart::Other(self)
        }
    };
}
pub(super) use plain_part;

/// The slots of a file's parts of one kind.
#[derive(Debug)]
pub(super) struct Slots<P: Part + ?Sized> {
    cache: Arc<BlockCache>,
    file: FileId,
    /// The number of the first part in its file; see [`numbers`].
    first: u32,
    slots: Box<[Slot<P>]>,
}

/// Where the parts of each kind begin to be numbered, so that no two parts of a file have the same
/// number: by file and number the cache divides parts among shards, and knows them again.
pub(super) mod numbers {
    pub(in super::super) const BLOCKS: usize = 0;
    pub(in super::super) const FILTER_PIECES: usize = 1 << 30;
    pub(in super::super) const INDEX_PARTS: usize = 2 << 30;
    pub(in super::super) const INDEX: usize = 3 << 30;
    pub(in super::super) const FILTER: usize = INDEX + 1;
}

type Slot<P> = Mutex<Option<Arc<P>>>;

/// What the cache knows of [`Slots`] of any kind.
pub(super) trait AnySlots: Send + Sync + std::fmt::Debug {
    fn file(&self) -> FileId;

    /// The number of a part in its file.
    fn number(&self, nth: u32) -> u32;

    /// How often the part was used; `None` if there is none. The count goes on from there less one,
    /// or from nothing.
    fn sample_uses(&self, nth: u32, forget_all: bool) -> Option<u8>;

    /// [`Part::OWNS_PARTS`] of its parts.
    fn owns_parts(&self) -> bool;

    /// Takes a part out. The caller drops it, without a lock, and has `weight` bytes fewer to count.
    fn take(&self, nth: u32) -> Option<Evicted>;
}

/// A part on its way out of memory.
pub(super) struct Evicted {
    pub(super) weight: usize,
    pub(super) part: EvictedPart,
}

/// The part itself.
pub(super) enum EvictedPart {
    /// A block, whose memory may serve for the next one.
    Block(Arc<Block>),
    /// Only to be dropped.
    Other(#[expect(dead_code, reason = "held until it is dropped")] Arc<dyn Send + Sync>),
}

impl<P: Part + ?Sized> Slots<P> {
    /// Bytes that a slot takes.
    pub(super) const PLACE_BYTES: usize = size_of::<Slot<P>>();

    /// Slots for `count` parts, numbered from `first` on.
    pub(super) fn new(
        cache: &Arc<BlockCache>,
        file: FileId,
        first: usize,
        count: usize,
    ) -> Arc<Self> {
        let slots = std::iter::repeat_with(|| Slot::new(None)).take(count).collect();
        Arc::new(Slots { cache: Arc::clone(cache), file, first: first as u32, slots })
    }

    /// The part, if it is kept.
    #[inline]
    pub(super) fn get(&self, nth: usize) -> Option<Arc<P>> {
        let part = self.slots.get(nth)?.lock().clone()?;
        part.uses().add();
        Some(part)
    }

    /// The same for a caller that will read more of it than its beginning. What `prefetch` asks for comes with
    /// that: else it would only come after it, because to count a reference is to wait for the beginning.
    #[inline]
    pub(super) fn get_prefetching(&self, nth: usize, prefetch: impl FnOnce(&P)) -> Option<Arc<P>> {
        let slot = self.slots.get(nth)?.lock();
        prefetch(slot.as_deref()?);
        let part = slot.clone()?;
        drop(slot);
        part.uses().add();
        Some(part)
    }

    /// Calls `prefetch` with the part, if it is kept, which does not count as a use.
    #[inline]
    pub(super) fn prefetch(&self, nth: usize, prefetch: impl FnOnce(&P)) {
        if let Some(slot) = self.slots.get(nth)
            && let Some(part) = slot.lock().as_deref()
        {
            prefetch(part);
        }
    }

    /// One of these slots will be read: asks for the first and the last of them.
    #[inline]
    pub(super) fn prefetch_slots(&self, first: usize, last: usize) {
        [first, last].iter().filter_map(|&nth| self.slots.get(nth)).for_each(prefetch::soon);
    }

    /// The part, without counting that as a use.
    pub(super) fn peek(&self, nth: usize) -> Option<Arc<P>> {
        self.slots.get(nth)?.lock().clone()
    }

    /// Keeps a part as long as the cache likes.
    pub(super) fn put(self: &Arc<Self>, nth: usize, part: &Arc<P>) {
        let (Some(slot), Ok(number)) = (self.slots.get(nth), u32::try_from(nth)) else { return };
        let weight = part.weight();
        if !self.cache.has_room_for(weight) {
            return;
        }
        {
            let mut slot = slot.lock();
            if slot.is_some() {
                // Another thread was first, with the same part.
                return;
            }
            *slot = Some(Arc::clone(part));
        }
        let places: Arc<dyn AnySlots> = Arc::<Self>::clone(self);
        self.cache.count_in(&places, number, weight);
    }
}

impl<P: Part + ?Sized> AnySlots for Slots<P> {
    fn file(&self) -> FileId {
        self.file
    }

    #[inline]
    fn number(&self, nth: u32) -> u32 {
        self.first.wrapping_add(nth)
    }

    fn sample_uses(&self, nth: u32, forget_all: bool) -> Option<u8> {
        let slot = self.slots.get(nth as usize)?.lock();
        let uses = slot.as_ref()?.uses();
        let count = uses.get();
        if forget_all {
            uses.take_all()
        } else {
            uses.take_one()
        }
        Some(count)
    }

    fn owns_parts(&self) -> bool {
        P::OWNS_PARTS
    }

    fn take(&self, nth: u32) -> Option<Evicted> {
        let part = self.slots.get(nth as usize)?.lock().take()?;
        Some(Evicted { weight: part.weight(), part: part.into_evicted() })
    }
}

impl<P: Part + ?Sized> Drop for Slots<P> {
    /// What was kept here goes with it, and the cache has it off its books at once. (It finds that
    /// the places are gone when it next comes to them.)
    fn drop(&mut self) {
        for (nth, slot) in self.slots.iter().enumerate() {
            if let Some(part) = slot.lock().take() {
                self.cache.count_out(self.file, self.number(nth as u32), part.weight());
            }
        }
    }
}
