//! Who may touch which keys when.
//!
//! A command on a few keys takes the gate together with others and the locks of its keys' stripes,
//! in ascending order. What works with the whole keyspace (MULTI, scripts, FLUSHALL, and whoever
//! serves blocked clients) has the gate for itself and needs no other lock. These are Redis's locks
//! and nobody else's: the engine's own are taken only inside a commit, so that a long script never
//! holds up the other doors.
//!
//! The gate is awaited, never waited for on a thread: an executor's threads stay free while a
//! script runs. The locks of stripes are waited for on the thread: nearly always for microseconds,
//! and otherwise the thread makes way first.

use kstone_core::sync::{Mutex, MutexGuard};
use kstone_core::{StripeSet, stripe_of};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::server::way::Way;

/// How often a lock is asked for before the thread makes way, which takes longer than most commands
/// keep a lock: together some dozens of microseconds.
const ASKED_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Locks {
    gate: RwLock<()>,
    stripes: Vec<Mutex<()>>,
}

/// The gate, together with others.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    _gate: RwLockReadGuard<'a, ()>,
}

/// The gate alone.
#[derive(Debug)]
pub(crate) struct Exclusive<'a> {
    _gate: RwLockWriteGuard<'a, ()>,
}

/// The locks of some stripes.
#[derive(Debug)]
pub(crate) enum Stripes<'a> {
    None,
    One(#[expect(dead_code, reason = "held, not read")] MutexGuard<'a, ()>),
    Many(#[expect(dead_code, reason = "held, not read")] Vec<MutexGuard<'a, ()>>),
}

impl Locks {
    pub(crate) fn new() -> Self {
        Locks { gate: RwLock::new(()), stripes: (0..256).map(|_| Mutex::new(())).collect() }
    }

    /// The gate together with others, if nobody has it or waits for it alone.
    pub(crate) fn try_share(&self) -> Option<Shared<'_>> {
        self.gate.try_read().ok().map(|gate| Shared { _gate: gate })
    }

    pub(crate) async fn share(&self) -> Shared<'_> {
        Shared { _gate: self.gate.read().await }
    }

    /// The gate alone, if nobody has it.
    pub(crate) fn try_exclude(&self) -> Option<Exclusive<'_>> {
        self.gate.try_write().ok().map(|gate| Exclusive { _gate: gate })
    }

    pub(crate) async fn exclude(&self) -> Exclusive<'_> {
        Exclusive { _gate: self.gate.write().await }
    }

    /// The locks of these keys' stripes. The caller holds the gate.
    pub(crate) fn keys<'a, 'k>(
        &'a self,
        _gate: &Shared<'_>,
        way: &Way,
        mut keys: impl Iterator<Item = &'k [u8]>,
    ) -> Stripes<'a> {
        let Some(first) = keys.next() else { return Stripes::None };
        let first = stripe_of(first);
        let Some(second) = keys.next() else { return Stripes::One(self.lock(first, way)) };
        let mut stripes: StripeSet = [first, stripe_of(second)].into_iter().collect();
        for key in keys {
            stripes.insert(stripe_of(key));
        }
        Stripes::Many(stripes.iter().map(|stripe| self.lock(stripe, way)).collect())
    }

    fn lock(&self, stripe: u8, way: &Way) -> MutexGuard<'_, ()> {
        #[expect(clippy::indexing_slicing, reason = "256 locks, indexed by a byte")]
        let lock = &self.stripes[usize::from(stripe)];
        if let Some(guard) = lock.try_lock() {
            return guard;
        }
        for _ in 0..ASKED_MAX {
            std::thread::yield_now();
            if let Some(guard) = lock.try_lock() {
                return guard;
            }
        }
        way.make();
        lock.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::iter::once;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn who_waits_long_for_a_key_makes_way_first() {
        static MADE: AtomicBool = AtomicBool::new(false);
        let (locks, way) = (Locks::new(), Way::default());
        way.make_with(|| MADE.store(true, Ordering::Release));
        let take = || {
            let gate = locks.try_share().unwrap();
            locks.keys(&gate, &way, once(&b"a"[..]))
        };
        let held = take();
        assert!(!MADE.load(Ordering::Acquire));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(take()));
            while !MADE.load(Ordering::Acquire) {
                thread::yield_now();
            }
            assert!(!waiter.is_finished());
            drop(held);
        });
    }
}
