//! The block cache: one memory budget for the data blocks, indexes and filters of all files.
//!
//! Parts are kept decoded, in [`Slots`](super::slots::Slots) beside what points to them: a hit costs
//! reading one place, nothing is hashed, searched, parsed or copied. This file decides what stays.
//!
//! New parts wait in a short queue (`small`). A part that comes to its end and was used again moves into the
//! long one (`main`), another is evicted: so a scan passes through a tenth of the places and leaves the rest
//! alone. At the end of the long queue, a part that was used since goes back to its beginning. What is loaded
//! again soon after it was evicted from the short queue (`ghosts` remembers that) starts in the long one. (That is S3-FIFO; see
//! docs/decisions/0028.)
//!
//! The parts are divided among shards by where they are in their files, each with its queues and its
//! share of the memory.
//!
//! Filters and indexes of live files (those of large ones: their directories and tops) are asked by every
//! get. Their readers hold them directly, up to
//! half of the budget ([`BlockCache::pin`]); what they hold is taken off what the cache may hold, so
//! the budget is still one. Beyond that half they are kept like blocks.
//!
//! Two threads that miss the same block both read it. Making one wait for the other would save a
//! read now and then, and hide a lock from shuttle behind every read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use super::FileId;
use super::block::Block;
use super::join::JoinRequests;
use super::slots::{AnySlots, Evicted, EvictedPart};
use super::stats::{ReadCounts, ReadStats};
use crate::sync::Mutex;

/// Parts that were joined, and shortcuts, may take so much of the least that the cache has: the fourth
/// share.
const JOINED_SHARE: u64 = 4;
/// What an item costs beside its bytes: its place in a queue and the allocation's header.
const ITEM_OVERHEAD: usize = 64;
/// A shard has at least so much, at the size that the cache is made for. A larger part is not kept.
const SHARD_BYTES: u64 = 8 << 20;
const SHARDS_MAX: u64 = 16;
/// For sizing only.
const ITEM_BYTES_TYPICAL: u64 = 4096;
/// The short queue has one in so many parts.
const SMALL_SHARE: usize = 10;
/// So many parts get another chance before one has to go in any case: however many are in use, a
/// miss does not look at them all.
const CHANCES: usize = 64;
/// The same of those by which other parts are found.
const CHANCES_OF_OWNERS: usize = 8 * CHANCES;
/// A queue that grew to this looks for places that are gone.
const QUEUE_LEN_MIN: usize = 1024;
/// So many blocks are kept to be read into: each miss takes one, and then lets one go.
const SPARES_MAX: usize = 8;
/// None that takes more: they are not part of the budget.
const SPARE_BYTES_MAX: usize = 16 << 10;
/// More hashes of evicted parts than these are not remembered, however large the cache.
const GHOSTS_MAX: u64 = 1 << 20;

/// The parts of files that are in memory, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct BlockCache {
    shards: Box<[Shard]>,
    /// What may be kept in each shard: its part of the budget less what is pinned.
    shard_bytes_max: AtomicU64,
    budget: Mutex<Budget>,
    stats: ReadStats,
    join_requests: JoinRequests,
}

#[derive(Debug)]
struct Shard {
    /// Taken by misses, and by changes of the budget.
    queues: Mutex<Queues>,
    /// Of all parts that are kept here.
    kept_bytes: AtomicU64,
}

/// Held while `shard_bytes_max` is set, so that the last change is the one that counts.
#[derive(Debug)]
struct Budget {
    /// Of the cache and the pinned parts together.
    bytes: u64,
    pinned_bytes: u64,
    /// Of the pinned ones, those of joined parts and shortcuts; and the most that these may take.
    joined_bytes: u64,
    joined_bytes_max: u64,
}

/// The slot of a part, which may be gone.
#[derive(Debug)]
struct SlotRef {
    places: Weak<dyn AnySlots>,
    nth: u32,
}

#[derive(Debug, Default)]
struct Queues {
    small: VecDeque<SlotRef>,
    main: VecDeque<SlotRef>,
    /// The parts that were evicted from `small` lately: a hash of each, where the hash says. Newer ones
    /// overwrite older ones; 0 is none. Empty until a part is evicted: a database that fits its memory, or
    /// has nothing in it, does not pay for the table.
    ghosts: Box<[u32]>,
    /// The length of `ghosts`, a power of two.
    ghosts_len: usize,
    /// Blocks that were let go and that nobody else holds, for the next to be read into: memory that
    /// is taken and given back all the time, by different threads, is not always found again.
    spares: Vec<Arc<Block>>,
    /// When it has grown to this, those that are gone are looked for.
    len_max: usize,
}

impl BlockCache {
    /// A cache of about `bytes` bytes, or more if it is given more later; 0 keeps nothing.
    pub(crate) fn new(bytes: u64) -> Self {
        let shards = (bytes / SHARD_BYTES).clamp(1, SHARDS_MAX);
        let shard = || Shard {
            queues: Mutex::new(Queues::new(bytes / shards)),
            kept_bytes: AtomicU64::new(0),
        };
        BlockCache {
            shards: std::iter::repeat_with(shard).take(shards as usize).collect(),
            shard_bytes_max: AtomicU64::new(bytes / shards),
            budget: Mutex::new(Budget {
                bytes,
                pinned_bytes: 0,
                joined_bytes: 0,
                joined_bytes_max: bytes / JOINED_SHARE,
            }),
            stats: ReadStats::default(),
            join_requests: JoinRequests::default(),
        }
    }

    /// The parts that are worth joining.
    pub(crate) fn join_requests(&self) -> &JoinRequests {
        &self.join_requests
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
        let kept: u64 = self.shards.iter().map(|shard| shard.kept_bytes.load(Relaxed)).sum();
        kept + self.budget.lock().pinned_bytes
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

    /// Whether [`pin_joined`](Self::pin_joined) would take so much now.
    pub(super) fn could_join(&self, bytes: usize) -> bool {
        let budget = self.budget.lock();
        budget.joined_bytes + item_bytes(bytes) <= budget.joined_bytes_max
            && budget.pinned_bytes + item_bytes(bytes) <= budget.bytes / 2
    }

    /// The same as [`pin`](Self::pin) for what could be kept in parts. Less of the memory is given up for
    /// that, because what of it is used least stays as long as what is used most; and it leaves room
    /// for what can only be pinned as a whole.
    pub(super) fn pin_joined(&self, bytes: usize) -> bool {
        if !self.could_join(bytes) || !self.pin(bytes) {
            return false;
        }
        self.budget.lock().joined_bytes += item_bytes(bytes);
        true
    }

    /// Gives back what [`pin_joined`](Self::pin_joined) took.
    pub(super) fn unpin_joined(&self, bytes: usize) {
        let mut budget = self.budget.lock();
        budget.joined_bytes = budget.joined_bytes.saturating_sub(item_bytes(bytes));
        drop(budget);
        self.unpin(bytes);
    }

    fn apply(&self, budget: &Budget) {
        let kept_bytes_max = budget.bytes.saturating_sub(budget.pinned_bytes);
        self.shard_bytes_max.store(kept_bytes_max / self.shards.len() as u64, Relaxed);
        for shard in &self.shards {
            // Memory that others want is not kept for the next miss.
            self.shrink(shard, false);
        }
    }

    /// Hits, misses, and what the filters were worth.
    pub(crate) fn stats(&self) -> ReadCounts {
        self.stats.counts()
    }

    /// Forgets everything of these files, for purge: nothing of them is found from here on. Looks at
    /// every kept part, so call it once for many files. (A file that compaction replaced needs
    /// no call: what is kept of it goes when its last reader does, pinned or not.)
    pub(crate) fn forget_files(&self, is_gone: impl Fn(FileId) -> bool) {
        for shard in &self.shards {
            let mut queues = shard.queues.lock();
            let mut taken = Vec::new();
            // Of whatever file they are: what is in them is not needed.
            queues.spares.clear();
            queues.retain(|places, nth| {
                if !is_gone(places.file()) {
                    return true;
                }
                taken.extend(places.take(nth));
                false
            });
            drop(queues);
            let bytes: u64 = taken.iter().map(|taken: &Evicted| item_bytes(taken.weight)).sum();
            shard.kept_bytes.fetch_sub(bytes, Relaxed);
        }
    }

    pub(super) fn counters(&self) -> &ReadStats {
        &self.stats
    }

    /// Whether a part of that size may be kept at all.
    pub(super) fn has_room_for(&self, weight: usize) -> bool {
        item_bytes(weight) <= self.shard_bytes_max.load(Relaxed)
    }

    /// A block that is needed no more, to read the next one into: nobody else has it, or is about to
    /// let it go.
    pub(super) fn spare(&self, file: FileId, number: u32) -> Option<Arc<Block>> {
        self.shard_of(file, number)?.queues.lock().spares.pop()
    }

    /// Blocks that are neighbours go to different shards, so that one large file fills them all.
    fn shard_of(&self, file: FileId, number: u32) -> Option<&Shard> {
        self.shards.get((file as usize).wrapping_add(number as usize) % self.shards.len())
    }

    /// A part has been put at a place that had none.
    pub(super) fn count_in(&self, places: &Arc<dyn AnySlots>, nth: u32, weight: usize) {
        let Some(shard) = self.shard_of(places.file(), places.number(nth)) else { return };
        shard.kept_bytes.fetch_add(item_bytes(weight), Relaxed);
        let place = SlotRef { places: Arc::downgrade(places), nth };
        shard.queues.lock().add(place, &**places);
        self.shrink(shard, true);
    }

    /// A part is gone, and its place with it.
    pub(super) fn count_out(&self, file: FileId, number: u32, weight: usize) {
        if let Some(shard) = self.shard_of(file, number) {
            shard.kept_bytes.fetch_sub(item_bytes(weight), Relaxed);
        }
    }

    /// Lets parts go until the rest of the shard is within its share.
    fn shrink(&self, shard: &Shard, keeps_spares: bool) {
        while shard.kept_bytes.load(Relaxed) > self.shard_bytes_max.load(Relaxed) {
            // A lock of its own for each: others that miss get in between. What is counted and not
            // yet in a queue goes when it comes. The part is dropped without the lock.
            let Some(taken) = shard.queues.lock().take_one(keeps_spares) else { return };
            shard.kept_bytes.fetch_sub(item_bytes(taken.weight), Relaxed);
        }
    }
}

impl SlotRef {
    /// Never 0.
    fn hash(&self, places: &dyn AnySlots) -> u32 {
        let mixed = (places.file() << 32 ^ u64::from(places.number(self.nth)))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as u32 | 1 << 31
    }
}

impl Queues {
    fn new(bytes: u64) -> Self {
        // Twice as many as fit, because the cache may grow to twice what it was made for.
        let ghosts = (2 * (bytes / ITEM_BYTES_TYPICAL)).min(GHOSTS_MAX).next_power_of_two();
        Queues { ghosts_len: ghosts as usize, ..Queues::default() }
    }

    fn add(&mut self, place: SlotRef, places: &dyn AnySlots) {
        let hash = place.hash(places);
        match self.ghost_at(hash) {
            Some(ghosts) if *ghosts == hash => {
                *ghosts = 0;
                self.main.push_back(place);
            }
            _ => self.small.push_back(place),
        }
        if self.len() >= self.len_max.max(QUEUE_LEN_MIN) {
            // Twice what was there at last: who is gone is looked for.
            self.retain(|_, _| true);
            self.len_max = 2 * self.len();
        }
    }

    /// Keeps a block to be read into, if it is one, of the usual size, and nobody else holds it.
    fn add_spare(&mut self, taken: &Evicted) {
        if self.spares.len() < SPARES_MAX
            && taken.weight <= SPARE_BYTES_MAX
            && let EvictedPart::Block(block) = &taken.part
            && Arc::strong_count(block) == 1
        {
            self.spares.push(Arc::clone(block));
        }
    }

    fn note_ghost(&mut self, hash: u32) {
        if self.ghosts.is_empty() {
            self.ghosts = vec![0; self.ghosts_len].into();
        }
        if let Some(ghosts) = self.ghost_at(hash) {
            *ghosts = hash;
        }
    }

    fn ghost_at(&mut self, hash: u32) -> Option<&mut u32> {
        let at = hash as usize & (self.ghosts.len().wrapping_sub(1));
        self.ghosts.get_mut(at)
    }

    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }

    /// Takes the next part out that has to go; `None` if there is none at all.
    fn take_one(&mut self, keeps_spares: bool) -> Option<Evicted> {
        let (mut chances, mut chances_of_owners) = (CHANCES, CHANCES_OF_OWNERS);
        loop {
            let is_new = self.small.len() * SMALL_SHARE >= self.len() || self.main.is_empty();
            let queue = if is_new { &mut self.small } else { &mut self.main };
            let place = queue.pop_front()?;
            let Some(places) = place.places.upgrade() else { continue };
            let Some(uses) = places.sample_uses(place.nth, is_new) else { continue };
            // With an index all its blocks go: as far as can be, not before it is needed no more.
            let left = if places.owns_parts() { &mut chances_of_owners } else { &mut chances };
            if uses > 0 && *left > 0 {
                *left -= 1;
                self.main.push_back(place);
                continue;
            }
            let Some(taken) = places.take(place.nth) else { continue };
            // What leaves the long queue and is needed again has to start anew.
            if is_new {
                self.note_ghost(place.hash(&*places));
            }
            if keeps_spares {
                self.add_spare(&taken);
            }
            return Some(taken);
        }
    }

    /// Keeps the places that are still there and of which `keep` says so.
    fn retain(&mut self, mut keep: impl FnMut(&dyn AnySlots, u32) -> bool) {
        for queue in [&mut self.small, &mut self.main] {
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
    use super::super::slots::{Part, Slots, Uses, plain_part};
    use super::*;

    const PAGE_BYTES: u64 = ITEM_BYTES_TYPICAL;

    #[derive(Debug, Default)]
    struct Page {
        uses: Uses,
    }

    impl Part for Page {
        fn weight(&self) -> usize {
            PAGE_BYTES as usize - ITEM_OVERHEAD
        }

        plain_part!();
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
        let cache = Arc::new(BlockCache::new(100 * PAGE_BYTES));
        let pages = Slots::<Page>::new(&cache, 1, 0, 10_000);
        for _ in 0..3 {
            hits(&pages, 0..50);
        }
        assert_eq!(hits(&pages, 1000..9000), 0);
        assert_eq!(cache.used_bytes(), 100 * PAGE_BYTES);
        assert_eq!(hits(&pages, 0..50), 50);
    }

    #[test]
    fn what_comes_back_soon_is_kept_though_it_was_never_used_twice_while_it_was_there() {
        let cache = Arc::new(BlockCache::new(100 * PAGE_BYTES));
        let pages = Slots::<Page>::new(&cache, 1, 0, 10_000);
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
        let cache = Arc::new(BlockCache::new(100 * PAGE_BYTES));
        let pages = Slots::<Page>::new(&cache, 1, 0, 10_000);
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
        let cache = Arc::new(BlockCache::new(1000 * PAGE_BYTES));
        for file in 0..100 {
            let pages = Slots::<Page>::new(&cache, file, 0, 100);
            hits(&pages, 0..100);
            assert_eq!(cache.used_bytes(), 100 * PAGE_BYTES);
        }
        assert_eq!(cache.used_bytes(), 0);
        let queued: usize = cache.shards.iter().map(|shard| shard.queues.lock().len()).sum();
        assert!(queued <= 2 * QUEUE_LEN_MIN, "{queued}");
    }

    #[test]
    fn threads_that_put_and_lose_the_same_pages_keep_the_books_right() {
        let cache = Arc::new(BlockCache::new(20 * PAGE_BYTES));
        let pages = Slots::<Page>::new(&cache, 1, 0, 64);
        std::thread::scope(|scope| {
            for seed in 0..4usize {
                let (cache, pages) = (&cache, &pages);
                scope.spawn(move || {
                    for step in 0..20_000usize {
                        read(pages, (step * (2 * seed + 1)) % 64);
                        if step % 1000 == seed {
                            cache.set_capacity(|| (5 + 5 * seed as u64) * PAGE_BYTES);
                        }
                        if step % 5000 == seed {
                            cache.forget_files(|_| true);
                        }
                    }
                });
            }
        });
        cache.set_capacity(|| 20 * PAGE_BYTES);
        assert!(cache.used_bytes() <= 20 * PAGE_BYTES);
        let kept = (0..64).filter(|&nth| pages.get(nth).is_some()).count();
        assert_eq!(cache.used_bytes(), kept as u64 * PAGE_BYTES);
        drop(pages);
        assert_eq!(cache.used_bytes(), 0);
    }

    #[test]
    fn every_shard_keeps_its_share_when_memory_is_taken_and_given_back() {
        let pages_max = SHARD_BYTES / PAGE_BYTES * 8;
        let cache = Arc::new(BlockCache::new(pages_max * PAGE_BYTES));
        assert_eq!(cache.shards.len(), 8);
        let pages = Slots::<Page>::new(&cache, 3, 0, 1 << 17);
        let hot = 0..pages_max as usize / 4;
        let all = 0..pages_max as usize;
        hits(&pages, all.clone());
        hits(&pages, hot.clone());
        // In many small steps, as memtables grow.
        for step in 0..32 {
            cache.set_capacity(|| (pages_max - step * pages_max / 64) * PAGE_BYTES);
        }
        assert!(cache.used_bytes() <= (pages_max / 2 + pages_max / 64) * PAGE_BYTES);
        // But for those that had to go after so many chances.
        assert!(hits(&pages, hot.clone()) >= hot.len() * 98 / 100, "what is used stays");
        let fewest = cache.shards.iter().map(|shard| shard.queues.lock().len()).min();
        assert!(fewest >= Some(pages_max as usize / 8 / 3), "{fewest:?}");
        cache.set_capacity(|| pages_max * PAGE_BYTES);
        hits(&pages, all.clone());
        assert!(hits(&pages, all) > pages_max as usize * 9 / 10, "and there is room again");
    }

    #[test]
    fn however_many_are_in_use_one_goes() {
        let cache = Arc::new(BlockCache::new(1000 * PAGE_BYTES));
        let pages = Slots::<Page>::new(&cache, 1, 0, 10_000);
        for _ in 0..4 {
            hits(&pages, 0..1000);
        }
        assert!(!read(&pages, 5000));
        assert!(cache.used_bytes() <= 1000 * PAGE_BYTES);
    }
}
