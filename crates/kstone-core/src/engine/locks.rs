//! Read-modify-write: stripe locks, taken in ascending order, and what can be done under them.

use std::sync::atomic::Ordering;

use crate::batch::WriteBatch;
use crate::engine::write::{Commit, Durability};
use crate::engine::{Engine, Inner};
use crate::entry::Seq;
use crate::error::{Error, Result};
use crate::key::internal::StoredKey;
use crate::key::{Key, KeyRef};
use crate::read::{Record, Snapshot, record_from_hit};
use crate::stripes::StripeSet;
use crate::sync::{Arc, MutexGuard};
use crate::table::TableId;
use crate::tree::stripe::Stripe;

/// The locks of some stripes. Taken in ascending order, here and nowhere else, so that no two
/// writers wait for each other in a circle.
#[derive(Debug)]
pub(crate) struct StripeGuards<'a> {
    _guards: Guards<'a>,
}

/// Nearly every commit locks one stripe; it should not allocate for that.
#[derive(Debug)]
enum Guards<'a> {
    None,
    One(#[expect(dead_code, reason = "held, not read")] MutexGuard<'a, ()>),
    Many(#[expect(dead_code, reason = "held, not read")] Vec<MutexGuard<'a, ()>>),
}

impl<'a> StripeGuards<'a> {
    /// Locks the stripes; every commit to them is in their memtables.
    pub(crate) fn lock(inner: &'a Inner, stripes: &StripeSet) -> Self {
        let guards = StripeGuards::lock_only(inner, stripes);
        inner.insert_deferred();
        guards
    }

    /// Locks the stripes. Commits to them may still be on their way into their memtables.
    pub(crate) fn lock_only(inner: &'a Inner, stripes: &StripeSet) -> Self {
        let mut ascending = stripes.iter();
        let guards = match (ascending.next(), ascending.next()) {
            (None, _) => Guards::None,
            (Some(only), None) => Guards::One(inner.stripe(only).lock()),
            _ => Guards::Many(stripes.iter().map(|stripe| inner.stripe(stripe).lock()).collect()),
        };
        StripeGuards { _guards: guards }
    }
}

/// Exclusive access to some stripes: what is read stays true until it is committed or dropped.
///
/// The base of conditional writes, counters and transactions.
///
/// ```
/// use kstone_core::{Durability, Engine, Key, Options, TableId, WriteBatch};
///
/// let engine = Engine::memory(Options::default())?;
/// let key = Key::new("counter");
/// for _ in 0..3 {
///     let locked = engine.lock([&key])?;
///     let count = locked.get(TableId::DEFAULT, &key)?.map_or(0, |r| r.value[0]);
///     let mut batch = WriteBatch::new();
///     batch.put(TableId::DEFAULT, &key, &[count + 1])?;
///     locked.commit(&batch, Durability::Sync)?.wait()?;
/// }
/// assert_eq!(&engine.get(TableId::DEFAULT, &key)?.unwrap().value[..], [3]);
/// # Ok::<(), kstone_core::Error>(())
/// ```
///
/// One thread must not hold two of these at a time: lock all stripes it needs in one call.
#[derive(Debug)]
pub struct Locked<'a> {
    inner: &'a Arc<Inner>,
    stripes: StripeSet,
    now_ms: u64,
    guards: StripeGuards<'a>,
}

impl Engine {
    /// Locks the stripes of these keys.
    pub fn lock<'k>(&self, keys: impl IntoIterator<Item = &'k Key>) -> Result<Locked<'_>> {
        self.lock_stripes(keys.into_iter().map(Key::stripe).collect())
    }

    /// Locks these stripes.
    pub fn lock_stripes(&self, stripes: StripeSet) -> Result<Locked<'_>> {
        let inner = self.inner();
        // Waiting for memory happens before locks are held: a flush must never wait for a writer
        // that waits for the flush.
        inner.admit(0, &stripes)?;
        let guards = StripeGuards::lock(inner, &stripes);
        Ok(Locked { inner, stripes, now_ms: inner.clock.now_ms(), guards })
    }
}

impl Engine {
    /// Waits until every stripe lock that is held at this moment was released. A caller that changes
    /// what writers look at under their locks knows afterwards that all of them see the change.
    pub fn fence(&self) {
        for stripe in 0..=255 {
            drop(self.inner().stripe(stripe).lock());
        }
    }
}

impl Locked<'_> {
    /// The record as it is now. The key's stripe must be locked.
    pub fn get<'k>(&self, table: TableId, key: impl Into<KeyRef<'k>>) -> Result<Option<Record>> {
        self.get_at(table, key.into(), self.now_ms)
    }

    fn get_at(&self, table: TableId, key: KeyRef<'_>, now_ms: u64) -> Result<Option<Record>> {
        let stripe = key.stripe();
        if !self.stripes.contains(stripe) {
            return Err(Error::StripeNotLocked { stripe });
        }
        if !self.inner.tables().visible_at(table, Seq::MAX) {
            return Err(Error::NoSuchTable { id: table.0 });
        }
        // Every commit to a locked stripe is applied in full, also one that waits for commits to
        // other stripes before it is published: so the newest version is the truth here.
        let stored = StoredKey::new(table, key);
        let tree = self.inner.stripe(stripe);
        tree.stats.gets.fetch_add(1, Ordering::Relaxed);
        let version = tree.version_to_read(Stripe::GET);
        let hit = version.get(&stored, Seq::MAX, || now_ms)?;
        // What is told here must not be ahead of what other readers see: the caller may act on it
        // without committing anything. What hides a record has a number that is not known here.
        let told = hit.as_ref().map_or_else(|| self.inner.log.appended(), |hit| hit.seq);
        self.inner.wait_visible(told)?;
        Ok(hit.map(record_from_hit))
    }

    /// The record as it is now, even if its time is over: for a layer that reclaims what
    /// [`Engine::expired`] found, to see that it is still the same version.
    pub fn get_even_expired<'k>(
        &self,
        table: TableId,
        key: impl Into<KeyRef<'k>>,
    ) -> Result<Option<Record>> {
        self.get_at(table, key.into(), 0)
    }

    /// A snapshot that sees every commit to the locked stripes, for reading more than one key at a
    /// time. Of the other stripes it sees what is visible.
    pub fn snapshot(&self) -> Result<Snapshot> {
        // A commit to a locked stripe may be applied and still wait, for others before it, to
        // become visible. They hold no lock of ours, so the wait is short.
        self.inner.wait_visible(self.inner.log.appended())?;
        Ok(Snapshot::take(self.inner))
    }

    /// The one `now` of everything that is read here.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The stripes that are locked.
    pub fn stripes(&self) -> StripeSet {
        self.stripes
    }

    /// Commits the batch and lets go of the locks. Every stripe that it touches must be locked.
    pub fn commit(self, batch: &WriteBatch, durability: Durability) -> Result<Commit> {
        if let Some(stripe) = batch.stripes().without(&self.stripes).iter().next() {
            return Err(Error::StripeNotLocked { stripe });
        }
        self.inner.check_batch(batch)?;
        self.inner.commit(batch, durability, self.guards)
    }
}
