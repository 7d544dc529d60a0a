//! A cache of keys in a form that answers quickly what the engine's records answer slowly: the rank
//! of a member, the element in the middle.
//!
//! The engine stays the truth. A form is a function of a key's *parts* as they were last committed,
//! and is never newer or older than they are:
//! - A transaction takes it out of here (its keys are locked, so nobody else asks for it), keeps it
//!   in step with every part it writes, and gives it back when its commit has succeeded.
//! - The transaction counts the writes to each key's parts. The code that keeps the form in step says how
//!   many writes a step stands for; if the numbers ever differ, because something else wrote the
//!   key, replaced it or deleted it, the form is thrown away. So no other command has to know.
//! - A commit that changes the parts of a key whose form it does not hold throws that form away.
//!
//! A form costs memory and has to be loaded. It is loaded when reading the records in its place has
//! cost as much as loading would, and the least recently used ones make room for others.

use std::any::Any;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::{Equivalent, HashMap};
use kstone_core::Engine;
use kstone_core::sync::Mutex;

/// The cache may take this part of the engine's memory budget, on top of it. A million
/// members of a sorted set take 70 MB: with less than half of the usual 256 MiB one large
/// leaderboard would not be kept, and with more the engine's own caches should rather grow.
const SHARE_OF_ENGINE: usize = 2;
/// Most keys that are remembered with what reading their records has cost.
const READS_MAX: usize = 4096;
/// How many forms are compared to find one that was not used for long.
const SAMPLE: usize = 8;

/// A key's form in memory. It depends on the key's parts and on nothing else.
pub(crate) trait Resident: Any + Send + Debug {
    /// How much memory it takes.
    fn bytes(&self) -> usize;
}

/// Which key: slot and name.
type SlotKey = (u8, Vec<u8>);

/// The same, borrowed.
#[derive(Hash)]
struct SlotKeyRef<'k>(u8, &'k [u8]);

impl Equivalent<SlotKey> for SlotKeyRef<'_> {
    fn equivalent(&self, at: &SlotKey) -> bool {
        self.0 == at.0 && self.1 == at.1
    }
}

/// The cache. See the module.
#[derive(Debug)]
pub(crate) struct HotKeys {
    bytes_max: AtomicUsize,
    /// Read before the lock is taken, which is not needed if this is 0.
    len: AtomicUsize,
    kept: Mutex<Forms>,
}

#[derive(Debug, Default)]
struct Forms {
    residents: HashMap<SlotKey, CachedForm>,
    bytes: usize,
    /// Counts the uses.
    now: u64,
    /// What reading the records of a key that is not here has cost so far.
    reads: HashMap<SlotKey, usize>,
}

#[derive(Debug)]
struct CachedForm {
    resident: Box<dyn Resident>,
    bytes: usize,
    used: u64,
}

impl HotKeys {
    /// With a part of what the engine was given to use.
    pub(crate) fn for_engine(engine: &Engine) -> Self {
        HotKeys::new(HotKeys::share_of(engine))
    }

    /// What they may take beside this engine.
    pub(crate) fn share_of(engine: &Engine) -> usize {
        engine.memory_budget_bytes() / SHARE_OF_ENGINE
    }

    /// From now on with so much memory. What is too much goes when something is kept next.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    fn new(bytes_max: usize) -> Self {
        let bytes_max = AtomicUsize::new(bytes_max);
        HotKeys { bytes_max, len: AtomicUsize::new(0), kept: Mutex::new(Forms::default()) }
    }

    /// Records of this key were read, so many, for want of its in-memory form.
    pub(crate) fn note_read(&self, slot: u8, key: &[u8], records: usize) {
        let mut kept = self.kept.lock();
        if let Some(read) = kept.reads.get_mut(&SlotKeyRef(slot, key)) {
            *read = read.saturating_add(records);
            return;
        }
        if kept.reads.len() >= READS_MAX {
            kept.reads.clear();
        }
        kept.reads.insert((slot, key.to_vec()), records);
    }

    /// Whether the in-memory form of a key is to be loaded, which means reading `records` of them
    /// and takes about so much memory: if as many were read in its place.
    pub(crate) fn is_due(&self, slot: u8, key: &[u8], records: usize, bytes: usize) -> bool {
        if bytes > self.bytes_max.load(Ordering::Relaxed) {
            return false;
        }
        let mut kept = self.kept.lock();
        if kept.reads.get(&SlotKeyRef(slot, key)).is_none_or(|read| *read < records) {
            return false;
        }
        kept.reads.remove(&SlotKeyRef(slot, key));
        true
    }

    /// How many keys are kept, and what memory they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        let kept = self.kept.lock();
        (kept.residents.len(), kept.bytes)
    }

    fn take(&self, slot: u8, key: &[u8]) -> Option<(SlotKey, Box<dyn Resident>)> {
        if self.len.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut kept = self.kept.lock();
        let (at, place) = kept.residents.remove_entry(&SlotKeyRef(slot, key))?;
        kept.bytes -= place.bytes;
        self.len.store(kept.residents.len(), Ordering::Release);
        Some((at, place.resident))
    }

    fn give_back(&self, at: SlotKey, resident: Box<dyn Resident>) {
        let bytes = resident.bytes() + at.1.len();
        // Dropped after the lock is released: a large one takes its time.
        let mut evicted = Vec::new();
        let bytes_max = self.bytes_max.load(Ordering::Relaxed);
        let mut kept = self.kept.lock();
        kept.now += 1;
        let used = kept.now;
        while kept.bytes + bytes > bytes_max {
            let oldest = kept.residents.iter().take(SAMPLE).min_by_key(|(_, place)| place.used);
            let Some(oldest) = oldest.map(|(at, _)| at.clone()) else { break };
            if let Some(place) = kept.residents.remove(&oldest) {
                kept.bytes -= place.bytes;
                evicted.push(place);
            }
        }
        let place = CachedForm { resident, bytes, used };
        if bytes <= bytes_max {
            kept.bytes += bytes;
            if let Some(old) = kept.residents.insert(at, place) {
                kept.bytes -= old.bytes;
                evicted.push(old);
            }
        } else {
            evicted.push(place);
        }
        self.len.store(kept.residents.len(), Ordering::Release);
        drop(kept);
    }

    /// Throws away the form of a key.
    pub(crate) fn forget(&self, slot: u8, key: &[u8]) {
        drop(self.take(slot, key));
    }

    /// Throws away the forms of all keys of a slot.
    fn forget_slot(&self, slot: u8) {
        let mut kept = self.kept.lock();
        let gone: Vec<_> = kept.residents.extract_if(|at, _| at.0 == slot).collect();
        kept.bytes -= gone.iter().map(|(_, place)| place.bytes).sum::<usize>();
        self.len.store(kept.residents.len(), Ordering::Release);
        drop(kept);
    }
}

/// The forms that one transaction has taken out. Those that it has not stepped forward go back when
/// it ends in whatever way; the others only after its commit.
#[derive(Debug)]
pub(crate) struct HeldForms<'s> {
    hot: &'s HotKeys,
    held: Vec<HeldForm>,
}

#[derive(Debug)]
struct HeldForm {
    at: SlotKey,
    resident: Box<dyn Resident>,
    /// How many of the transaction's writes to the key's parts it has seen.
    seen: u64,
}

impl<'s> HeldForms<'s> {
    pub(crate) fn new(hot: &'s HotKeys) -> HeldForms<'s> {
        HeldForms { hot, held: Vec::new() }
    }

    pub(crate) fn hot(&self) -> &'s HotKeys {
        self.hot
    }

    fn find(&mut self, slot: u8, key: &[u8]) -> Option<usize> {
        let held = self.held.iter().position(|one| one.at.0 == slot && one.at.1 == key);
        if held.is_some() {
            return held;
        }
        let (at, resident) = self.hot.take(slot, key)?;
        self.held.push(HeldForm { at, resident, seen: 0 });
        Some(self.held.len() - 1)
    }

    /// The form of a key, if it is here and of this type and has seen all `writes` to the key's
    /// parts; otherwise it is thrown away.
    pub(crate) fn get<T: Resident>(&mut self, slot: u8, key: &[u8], writes: u64) -> Option<&mut T> {
        let at = self.find(slot, key)?;
        let is_right = self.held.get(at).is_some_and(|one| {
            let any: &dyn Any = &*one.resident;
            one.seen == writes && any.is::<T>()
        });
        if !is_right {
            self.held.swap_remove(at);
            return None;
        }
        let any: &mut dyn Any = &mut *self.held.get_mut(at)?.resident;
        any.downcast_mut()
    }

    /// Steps the form of a key forward by the last `step` of its `writes`.
    pub(crate) fn step<T: Resident>(
        &mut self,
        slot: u8,
        key: &[u8],
        writes: u64,
        step: u64,
        take_step: impl FnOnce(&mut T),
    ) {
        let Some(resident) = self.get::<T>(slot, key, writes.wrapping_sub(step)) else { return };
        take_step(resident);
        if let Some(one) = self.held.iter_mut().find(|one| one.at.0 == slot && one.at.1 == key) {
            one.seen = writes;
        }
    }

    /// A form that was just loaded, `writes` of this transaction included.
    pub(crate) fn admit(&mut self, slot: u8, key: &[u8], writes: u64, resident: Box<dyn Resident>) {
        self.held.retain(|one| one.at.0 != slot || one.at.1 != key);
        self.hot.forget(slot, key);
        self.held.push(HeldForm { at: (slot, key.to_vec()), resident, seen: writes });
    }

    /// All keys of a slot are gone.
    pub(crate) fn forget_slot(&mut self, slot: u8) {
        self.held.retain(|one| one.at.0 != slot);
        self.hot.forget_slot(slot);
    }

    /// Throws away what is out of step. `writes` says how often the parts of a key were written.
    pub(crate) fn before_commit(&mut self, writes: impl Fn(u8, &[u8]) -> u64) {
        self.held.retain(|one| one.seen == writes(one.at.0, &one.at.1));
    }

    /// Throws away the form of a key that is about to change, unless it is held here, in step.
    pub(crate) fn forget_unless_held(&self, slot: u8, key: &[u8]) {
        if !self.held.iter().any(|one| one.at.0 == slot && one.at.1 == key) {
            self.hot.forget(slot, key);
        }
    }

    /// The commit has succeeded: everything goes back.
    pub(crate) fn committed(&mut self) {
        for one in self.held.drain(..) {
            self.hot.give_back(one.at, one.resident);
        }
    }
}

impl Drop for HeldForms<'_> {
    fn drop(&mut self) {
        self.held.retain(|one| one.seen == 0);
        self.committed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Sized(usize);

    impl Resident for Sized {
        fn bytes(&self) -> usize {
            self.0
        }
    }

    fn admit(hot: &HotKeys, key: &[u8], bytes: usize) {
        let mut held = HeldForms::new(hot);
        held.admit(0, key, 0, Box::new(Sized(bytes)));
        held.committed();
    }

    #[test]
    fn the_least_recently_used_makes_room() {
        let hot = HotKeys::new(100);
        admit(&hot, b"a", 39);
        admit(&hot, b"b", 39);
        assert!(HeldForms::new(&hot).get::<Sized>(0, b"a", 0).is_some());
        admit(&hot, b"c", 39);
        assert_eq!(hot.size(), (2, 80));
        assert!(HeldForms::new(&hot).get::<Sized>(0, b"b", 0).is_none());
        assert!(HeldForms::new(&hot).get::<Sized>(0, b"a", 0).is_some());
        admit(&hot, b"d", 200);
        assert!(HeldForms::new(&hot).get::<Sized>(0, b"d", 0).is_none());
    }

    #[test]
    fn a_write_that_nobody_accounted_for_throws_the_form_away() {
        let hot = HotKeys::new(100);
        admit(&hot, b"a", 10);
        let mut held = HeldForms::new(&hot);
        held.step::<Sized>(0, b"a", 2, 2, |form| form.0 = 20);
        assert!(held.get::<Sized>(0, b"a", 2).is_some());
        held.step::<Sized>(0, b"a", 5, 2, |form| form.0 = 30);
        assert!(held.get::<Sized>(0, b"a", 5).is_none());
        drop(held);
        assert_eq!(hot.size(), (0, 0));
    }

    #[test]
    fn a_form_that_was_stepped_forward_goes_back_only_by_a_commit() {
        let hot = HotKeys::new(100);
        admit(&hot, b"a", 10);
        let mut held = HeldForms::new(&hot);
        held.step::<Sized>(0, b"a", 1, 1, |form| form.0 = 20);
        drop(held);
        assert_eq!(hot.size(), (0, 0));
    }

    #[test]
    fn a_key_is_due_when_reading_it_has_cost_as_much_as_loading_it() {
        let hot = HotKeys::new(1000);
        assert!(!hot.is_due(0, b"a", 100, 10));
        hot.note_read(0, b"a", 60);
        assert!(!hot.is_due(0, b"a", 100, 10));
        hot.note_read(0, b"a", 60);
        assert!(!hot.is_due(0, b"a", 100, 1001), "too large to be kept");
        assert!(hot.is_due(0, b"a", 100, 10));
        assert!(!hot.is_due(0, b"a", 100, 10), "it begins anew");
    }
}
