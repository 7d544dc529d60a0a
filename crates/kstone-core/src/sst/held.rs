//! A part that its reader would like to have at hand, because every get asks for it.
//!
//! Pinned as long as the cache gives up memory for that, else kept like any other part. It is read
//! again when it is neither.

use std::sync::{Arc, OnceLock};

use super::FileId;
use super::cache::BlockCache;
use super::slots::{Part, Slots};

#[derive(Debug)]
pub(super) struct Held<P: Part> {
    pinned: OnceLock<Arc<P>>,
    /// Where it may be kept if it cannot be pinned; not made before that is known.
    kept: OnceLock<Arc<Slots<P>>>,
}

impl<P: Part> Default for Held<P> {
    fn default() -> Self {
        Held { pinned: OnceLock::new(), kept: OnceLock::new() }
    }
}

impl<P: Part> Held<P> {
    #[inline]
    pub(super) fn pinned(&self) -> Option<&Arc<P>> {
        self.pinned.get()
    }

    /// The part, if it is in memory.
    pub(super) fn get(&self) -> Option<Arc<P>> {
        match self.pinned.get() {
            Some(part) => Some(Arc::clone(part)),
            None => self.kept.get()?.get(0),
        }
    }

    /// Pins the part if the cache gives up the memory for it, else puts it where it may be kept.
    /// `number` is the part's in its file.
    pub(super) fn keep(&self, cache: &Arc<BlockCache>, file: FileId, number: usize, part: &Arc<P>) {
        let weight = part.weight();
        if !cache.pin(weight) {
            self.kept.get_or_init(|| Slots::new(cache, file, number, 1)).put(0, part);
        } else if self.pinned.set(Arc::clone(part)).is_err() {
            // Another thread was first.
            cache.unpin(weight);
        }
    }

    /// Pins a part of about this weight that is still to be made, if the cache gives up the memory for
    /// it and none is pinned yet. If it cannot be made, nothing is changed.
    pub(super) fn pin_made(
        &self,
        cache: &BlockCache,
        about: usize,
        make: impl FnOnce() -> Option<Arc<P>>,
    ) {
        if self.pinned.get().is_some() || !cache.pin_joined(about) {
            return;
        }
        let made = make();
        cache.unpin(about);
        if let Some(part) = made
            && cache.pin_joined(part.weight())
        {
            let weight = part.weight();
            if self.pinned.set(part).is_err() {
                cache.unpin(weight);
            }
        }
    }

    /// Gives back what the part took. Nobody asks for it from here on.
    pub(super) fn unpin(&self, cache: &BlockCache) {
        if let Some(part) = self.pinned.get() {
            cache.unpin(part.weight());
        }
    }
}
