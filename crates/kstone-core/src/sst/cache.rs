//! The block cache: one memory budget for the data blocks, indexes and filters of all files.
//!
//! Parts are kept decoded, in [`Slots`] beside what points to them: a hit costs reading one place,
//! nothing is hashed, locked, parsed or copied. This file decides what stays.
//!
//! New parts wait in a short queue. Who comes to its end and was used again moves into the long one,
//! who was not is let go: so a scan passes through a tenth of the memory and leaves the rest alone. At
//! the end of the long queue, who was used since goes back to its beginning. What is loaded again soon
//! after it was let go starts in the long queue. (That is S3-FIFO; see docs/decisions/0028.)
//!
//! Filters and indexes of live files are asked by every get. Their readers hold them directly, up to
//! half of the budget ([`BlockCache::pin`]); what they hold is taken off what the cache may hold, so
//! the budget is still one. Beyond that half they are kept like blocks.
//!
//! Two threads that miss the same block both read it. Making one wait for the other would save a
//! read now and then, and hide a lock from shuttle behind every read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use super::FileId;
use super::slots::{Places, Taken};
use super::stats::{ReadCounts, ReadStats};
use crate::sync::Mutex;

/// What an item costs beside its bytes: its place in a queue and the allocation's header.
const ITEM_OVERHEAD: usize = 64;
/// So much memory has a lock of its own. Only misses take it.
const SHARD_BYTES: u64 = 8 << 20;
const SHARDS_MAX: u64 = 16;
/// The short queue has one in so many parts.
const NEW_SHARE: usize = 10;
/// So many parts get another chance before one has to go in any case: however many are in use, a
/// miss takes bounded time.
const CHANCES: usize = 64;
/// A queue that grew to this looks for places that are gone.
const QUEUE_LEN_MIN: usize = 1024;

/// Which parts of files are in memory, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct BlockCache {
    shards: Box<[Mutex<Queues>]>,
    /// Of all kept parts, without the pinned ones.
    kept_bytes: AtomicU64,
    /// What `kept_bytes` may be: the budget less what is pinned.
    kept_bytes_max: AtomicU64,
    /// How many parts were let go, from 1 on; it may start anew.
    losses: AtomicU32,
    budget: Mutex<Budget>,
    stats: ReadStats,
}

/// Held while `kept_bytes_max` is set, so that the last change is the one that counts.
#[derive(Debug)]
struct Budget {
    /// Of the cache and the pinned parts together.
    bytes: u64,
    pinned_bytes: u64,
}

/// Where a part is, or was.
#[derive(Debug)]
struct Place {
    places: Weak<dyn Places>,
    nth: u32,
}

#[derive(Debug, Default)]
struct Queues {
    new: VecDeque<Place>,
    proven: VecDeque<Place>,
    /// When it has grown to this, those that are gone are looked for.
    len_max: usize,
}

impl BlockCache {
    /// A cache of about `bytes` bytes; 0 keeps nothing.
    pub(crate) fn new(bytes: u64) -> Self {
        let shards = (bytes / SHARD_BYTES).clamp(1, SHARDS_MAX);
        BlockCache {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            kept_bytes: AtomicU64::new(0),
            kept_bytes_max: AtomicU64::new(bytes),
            losses: AtomicU32::new(1),
            budget: Mutex::new(Budget { bytes, pinned_bytes: 0 }),
            stats: ReadStats::default(),
        }
    }

    /// Changes the budget; what is over it is dropped at once, except for what is pinned. The size is
    /// asked for under the lock, so that of two callers the later one has the last word.
    pub(crate) fn set_capacity(&self, bytes: impl FnOnce() -> u64) {
        let mut budget = self.budget.lock();
        budget.bytes = bytes();
        self.apply(&budget);
    }

    #[cfg(test)]
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.budget.lock().bytes
    }

    /// Bytes in use, the pinned ones included.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.kept_bytes.load(Relaxed) + self.budget.lock().pinned_bytes
    }

    /// Takes `bytes` off the cache for a part that its reader wants to hold itself. `false` if half
    /// of the budget is held that way already.
    pub(super) fn pin(&self, bytes: usize) -> bool {
        let mut budget = self.budget.lock();
        let pinned_bytes = budget.pinned_bytes + item_bytes(bytes);
        if pinned_bytes > budget.bytes / 2 {
            return false;
        }
        budget.pinned_bytes = pinned_bytes;
        self.apply(&budget);
        true
    }

    /// Gives back what [`pin`](Self::pin) took.
    pub(super) fn unpin(&self, bytes: usize) {
        let mut budget = self.budget.lock();
        debug_assert!(budget.pinned_bytes >= item_bytes(bytes), "unpinned twice");
        budget.pinned_bytes = budget.pinned_bytes.saturating_sub(item_bytes(bytes));
        self.apply(&budget);
    }

    fn apply(&self, budget: &Budget) {
        self.kept_bytes_max.store(budget.bytes.saturating_sub(budget.pinned_bytes), Relaxed);
        self.shrink(0);
    }

    /// Hits, misses, and what the filters were worth.
    pub(crate) fn stats(&self) -> ReadCounts {
        self.stats.counts()
    }

    /// Forgets everything of these files, for purge: nothing of them may stay in memory. Looks at
    /// every kept part, so call it once for many files. (A file that compaction replaced needs
    /// no call: what is kept of it goes when its last reader does, pinned or not.)
    pub(crate) fn forget_files(&self, is_gone: impl Fn(FileId) -> bool) {
        for shard in &self.shards {
            let mut queues = shard.lock();
            let mut taken = Vec::new();
            queues.retain(|places, nth| {
                if !is_gone(places.file()) {
                    return true;
                }
                taken.extend(places.take(nth, 0));
                false
            });
            drop(queues);
            taken.into_iter().for_each(|taken| self.let_go(taken));
        }
    }

    pub(super) fn counters(&self) -> &ReadStats {
        &self.stats
    }

    /// Whether a part of that size may be kept at all.
    pub(super) fn has_room_for(&self, weight: usize) -> bool {
        item_bytes(weight) <= self.kept_bytes_max.load(Relaxed)
    }

    /// A part has been put at a place that had none, and was let go there at `lost_at` (0 if never).
    pub(super) fn count_in(&self, places: &Arc<dyn Places>, nth: u32, weight: usize, lost_at: u32) {
        self.kept_bytes.fetch_add(item_bytes(weight), Relaxed);
        // Blocks that are neighbours go to different shards, so that one large file fills them all.
        let nth_shard = (places.file() as usize).wrapping_add(nth as usize) % self.shards.len();
        let place = Place { places: Arc::downgrade(places), nth };
        if let Some(shard) = self.shards.get(nth_shard) {
            let mut queues = shard.lock();
            let losses_since = self.losses.load(Relaxed).wrapping_sub(lost_at) as usize;
            let is_back = lost_at != 0 && losses_since < queues.proven.len() * self.shards.len();
            if is_back {
                queues.proven.push_back(place)
            } else {
                queues.new.push_back(place)
            }
            queues.tidy();
        }
        self.shrink(nth_shard);
    }

    /// Parts of that weight are gone, and their places with them.
    pub(super) fn count_out(&self, weights: impl Iterator<Item = usize>) {
        self.kept_bytes.fetch_sub(weights.map(item_bytes).sum(), Relaxed);
    }

    /// Lets parts go until the rest is within the budget, from this shard on.
    fn shrink(&self, from_shard: usize) {
        let mut empty = 0;
        for shard in self.shards.iter().cycle().skip(from_shard) {
            while self.kept_bytes.load(Relaxed) > self.kept_bytes_max.load(Relaxed) {
                // The next loss has the next number, none has 0.
                let lost_at = self.losses.fetch_add(1, Relaxed).max(1);
                // A lock of its own for each: others that miss get in between.
                let taken = shard.lock().take_one(lost_at);
                match taken {
                    Some(taken) => self.let_go(taken),
                    None => break,
                }
            }
            // Once round: what is counted and not yet in a queue goes when it comes.
            empty += 1;
            if empty == self.shards.len()
                || self.kept_bytes.load(Relaxed) <= self.kept_bytes_max.load(Relaxed)
            {
                return;
            }
        }
    }

    fn let_go(&self, taken: Taken) {
        self.kept_bytes.fetch_sub(item_bytes(taken.weight), Relaxed);
    }
}

impl Queues {
    fn len(&self) -> usize {
        self.new.len() + self.proven.len()
    }

    /// Takes the next part out that has to go; `None` if there is none at all.
    fn take_one(&mut self, lost_at: u32) -> Option<Taken> {
        let mut chances = CHANCES;
        loop {
            let is_new = self.new.len() * NEW_SHARE >= self.len() || self.proven.is_empty();
            let queue = if is_new { &mut self.new } else { &mut self.proven };
            let place = queue.pop_front()?;
            let Some(places) = place.places.upgrade() else { continue };
            let Some(uses) = places.ask_uses(place.nth, is_new) else { continue };
            if uses > 0 && chances > 0 {
                chances -= 1;
                self.proven.push_back(place);
                continue;
            }
            // Who was proven once and is not needed any more has to start anew.
            if let Some(taken) = places.take(place.nth, if is_new { lost_at } else { 0 }) {
                return Some(taken);
            }
        }
    }

    /// Looks for places that are gone if the queues have grown to twice what was there at last.
    fn tidy(&mut self) {
        if self.len() >= self.len_max.max(QUEUE_LEN_MIN) {
            self.retain(|_, _| true);
            self.len_max = 2 * self.len();
        }
    }

    /// Keeps the places that are still there and of which `keep` says so.
    fn retain(&mut self, mut keep: impl FnMut(&dyn Places, u32) -> bool) {
        for queue in [&mut self.new, &mut self.proven] {
            queue.retain(|place| {
                place.places.upgrade().is_some_and(|places| keep(&*places, place.nth))
            });
        }
    }
}

fn item_bytes(weight: usize) -> u64 {
    (weight + ITEM_OVERHEAD) as u64
}

#[cfg(test)]
mod tests {
    use super::super::slots::{Part, Slots, Uses};
    use super::*;

    #[derive(Debug, Default)]
    struct Page {
        uses: Uses,
    }

    impl Part for Page {
        fn weight(&self) -> usize {
            1000 - ITEM_OVERHEAD
        }

        fn uses(&self) -> &Uses {
            &self.uses
        }
    }

    /// What a reader does: asks, and puts what was not there. Whether it was.
    fn read(pages: &Arc<Slots<Page>>, nth: usize) -> bool {
        let is_there = pages.get(nth).is_some();
        if !is_there {
            pages.put(nth, &Arc::default());
        }
        is_there
    }

    fn hits(pages: &Arc<Slots<Page>>, which: impl IntoIterator<Item = usize>) -> usize {
        which.into_iter().filter(|&nth| read(pages, nth)).count()
    }

    #[test]
    fn what_is_used_again_survives_a_scan() {
        let cache = Arc::new(BlockCache::new(100_000));
        let pages = Slots::<Page>::new(&cache, 1, 10_000);
        for _ in 0..3 {
            hits(&pages, 0..50);
        }
        assert_eq!(hits(&pages, 1000..9000), 0);
        assert_eq!(cache.used_bytes(), 100_000);
        assert_eq!(hits(&pages, 0..50), 50);
    }

    #[test]
    fn what_comes_back_soon_is_kept_though_it_was_never_used_twice_while_it_was_there() {
        let cache = Arc::new(BlockCache::new(100_000));
        let pages = Slots::<Page>::new(&cache, 1, 10_000);
        // A hot set fills the long queue, so a newcomer has only the short one to prove itself in.
        for _ in 0..3 {
            hits(&pages, 0..90);
        }
        hits(&pages, 100..140);
        assert_eq!(hits(&pages, 100..105), 0, "they passed through the short queue");
        assert_eq!(hits(&pages, 200..260), 0);
        assert_eq!(hits(&pages, 100..105), 5, "and the second time they were let in");
    }

    #[test]
    fn what_is_not_used_any_more_makes_room() {
        let cache = Arc::new(BlockCache::new(100_000));
        let pages = Slots::<Page>::new(&cache, 1, 10_000);
        for _ in 0..3 {
            hits(&pages, 0..90);
        }
        for _ in 0..20 {
            hits(&pages, 500..580);
        }
        assert_eq!(hits(&pages, 500..580), 80);
    }

    #[test]
    fn what_goes_with_its_file_is_not_counted_and_its_places_are_forgotten() {
        let cache = Arc::new(BlockCache::new(1_000_000));
        for file in 0..100 {
            let pages = Slots::<Page>::new(&cache, file, 100);
            hits(&pages, 0..100);
            assert_eq!(cache.used_bytes(), 100_000);
        }
        assert_eq!(cache.used_bytes(), 0);
        let queued: usize = cache.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!(queued <= 2 * QUEUE_LEN_MIN, "{queued}");
    }

    #[test]
    fn threads_that_put_and_lose_the_same_pages_keep_the_books_right() {
        let cache = Arc::new(BlockCache::new(20_000));
        let pages = Slots::<Page>::new(&cache, 1, 64);
        std::thread::scope(|scope| {
            for seed in 0..4usize {
                let (cache, pages) = (&cache, &pages);
                scope.spawn(move || {
                    for step in 0..20_000usize {
                        read(pages, (step * (2 * seed + 1)) % 64);
                        if step % 1000 == seed {
                            cache.set_capacity(|| 5_000 + 5_000 * seed as u64);
                        }
                        if step % 5000 == seed {
                            cache.forget_files(|_| true);
                        }
                    }
                });
            }
        });
        cache.set_capacity(|| 20_000);
        assert!(cache.used_bytes() <= 20_000);
        let kept = (0..64).filter(|&nth| pages.get(nth).is_some()).count();
        assert_eq!(cache.used_bytes(), kept as u64 * 1000);
        drop(pages);
        assert_eq!(cache.used_bytes(), 0);
    }

    #[test]
    fn however_many_are_in_use_one_goes() {
        let cache = Arc::new(BlockCache::new(1_000_000));
        let pages = Slots::<Page>::new(&cache, 1, 10_000);
        for _ in 0..4 {
            hits(&pages, 0..1000);
        }
        assert!(!read(&pages, 5000));
        assert!(cache.used_bytes() <= 1_000_000);
    }
}
