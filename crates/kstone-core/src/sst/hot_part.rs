//! A file part that every get needs: pinned in memory if the cache budget allows, otherwise cached or
//! read again.

use std::sync::{Arc, OnceLock};

use super::FileId;
use super::cache::BlockCache;
use super::slots::{Part, Slots};

/// What a pinned part was made of.
#[derive(Debug, Clone, Copy)]
enum Pinned {
    /// It is one part in its file,
    Whole,
    /// or was put together from parts, or is not in the file at all.
    Joined,
}

#[derive(Debug)]
pub(super) struct HotPart<P: Part> {
    pinned: OnceLock<(Arc<P>, Pinned)>,
    /// Where it may be kept if it cannot be pinned; not made before that is known.
    kept: OnceLock<Arc<Slots<P>>>,
}

impl<P: Part> Default for HotPart<P> {
    fn default() -> Self {
        HotPart { pinned: OnceLock::new(), kept: OnceLock::new() }
    }
}

impl<P: Part> HotPart<P> {
    #[inline]
    pub(super) fn pinned(&self) -> Option<&Arc<P>> {
        self.pinned.get().map(|(part, _)| part)
    }

    /// The part, if it is in memory.
    pub(super) fn get(&self) -> Option<Arc<P>> {
        match self.pinned.get() {
            Some((part, _)) => Some(Arc::clone(part)),
            None => self.kept.get()?.get(0),
        }
    }

    /// Pins the part if the cache gives up the memory for it, else puts it where it may be kept.
    /// `number` is the part's in its file.
    pub(super) fn keep(&self, cache: &Arc<BlockCache>, file: FileId, number: usize, part: &Arc<P>) {
        let weight = part.weight();
        if !cache.pin(weight) {
            self.kept.get_or_init(|| Slots::new(cache, file, number, 1)).put(0, part);
        } else if self.pinned.set((Arc::clone(part), Pinned::Whole)).is_err() {
            // Another thread was first.
            cache.unpin(weight);
        }
    }

    /// Pins a part of about this weight that is still to be made of its parts, if the cache has memory to
    /// give up for it; answers whether one is pinned now. If not, nothing is changed.
    pub(super) fn pin_joined(
        &self,
        cache: &BlockCache,
        about: usize,
        make: impl FnOnce() -> Option<P>,
    ) -> bool {
        if self.pinned.get().is_some() {
            return true;
        }
        // What is in memory makes room when there is something to make room for.
        if !cache.could_join(about) {
            return false;
        }
        let Some(part) = make() else { return false };
        let weight = part.weight();
        if !cache.pin_joined(weight) {
            return false;
        }
        if self.pinned.set((Arc::new(part), Pinned::Joined)).is_err() {
            // Another thread was first.
            cache.unpin_joined(weight);
        }
        true
    }

    /// Gives back what the part took. Nobody asks for it from here on.
    pub(super) fn unpin(&self, cache: &BlockCache) {
        match self.pinned.get() {
            Some((part, Pinned::Whole)) => cache.unpin(part.weight()),
            Some((part, Pinned::Joined)) => cache.unpin_joined(part.weight()),
            None => {}
        }
    }
}
