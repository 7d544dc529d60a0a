//! A view of the database as of one moment.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::engine::Inner;
use crate::engine::snapshots::Registered;
use crate::entry::Seq;
use crate::error::{Error, Result};
use crate::key::KeyRef;
use crate::key::internal::StoredKey;
use crate::read::{PartitionKeys, PartitionQuery, Record, ScanCursor, ScanIter, record_from_hit};
use crate::sync::Arc;
use crate::table::TableId;
use crate::tree::stripe::Stripe;

/// The database as of a sequence number and a time. Cheap to take and to clone; while it lives,
/// flush and compaction keep what it sees, so do not keep one for long.
#[derive(Debug, Clone)]
pub struct Snapshot {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    inner: Arc<Inner>,
    registered: Registered,
    now_ms: u64,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.inner.snapshots.remove(&self.registered);
    }
}

impl Snapshot {
    pub(crate) fn take(inner: &Arc<Inner>) -> Snapshot {
        Snapshot::take_at(inner, inner.clock.now_ms())
    }

    /// One that sees what expires as if it were this time; at time 0 nothing has expired.
    pub(crate) fn take_at(inner: &Arc<Inner>, now_ms: u64) -> Snapshot {
        inner.make_all_visible();
        let registered = inner.snapshots.register(&inner.log);
        Snapshot { shared: Arc::new(Shared { inner: Arc::clone(inner), registered, now_ms }) }
    }

    /// The sequence number that it sees. A reply that shows its data on a door with `Sync`
    /// durability waits for this number: [`Engine::wait_durable`](crate::Engine::wait_durable).
    pub fn seq(&self) -> Seq {
        self.shared.registered.seq
    }

    /// Its one `now`: a record that is there once is there for as long as the snapshot lives.
    pub fn now_ms(&self) -> u64 {
        self.shared.now_ms
    }

    /// A record.
    pub fn get<'k>(&self, table: TableId, key: impl Into<KeyRef<'k>>) -> Result<Option<Record>> {
        let key = key.into();
        self.check(table)?;
        let stripe = self.inner().stripe(key.stripe());
        stripe.stats.gets.fetch_add(1, Ordering::Relaxed);
        let version = stripe.version_to_read(Stripe::GET);
        let stored = StoredKey::new(table, key);
        let hit = version.get(&stored, self.seq(), || self.now_ms())?;
        // Again: a purge that ended the snapshot meanwhile may have removed what it would have seen.
        self.check_live()?;
        Ok(hit.map(record_from_hit))
    }

    /// The records of one partition, in order of sort key.
    pub fn partition(&self, table: TableId, pk: impl Into<Bytes>) -> PartitionQuery {
        PartitionQuery::new(self.clone(), table, pk.into())
    }

    /// All records of a table, stripe by stripe, from `cursor` on.
    pub fn scan(&self, table: TableId, cursor: ScanCursor) -> ScanIter {
        ScanIter::new(self.clone(), table, cursor)
    }

    /// The table's partition keys that start with `prefix`, in byte order.
    pub fn partition_keys(&self, table: TableId, prefix: &[u8]) -> Result<PartitionKeys> {
        PartitionKeys::new(self.clone(), table, prefix)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.shared.inner
    }

    /// Fails if the snapshot was ended, or does not see the table.
    pub(crate) fn check(&self, table: TableId) -> Result<()> {
        self.check_live()?;
        if table != TableId::DEFAULT && !self.inner().tables().visible_at(table, self.seq()) {
            return Err(Error::NoSuchTable { id: table.0 });
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn check_live(&self) -> Result<()> {
        let shared = &*self.shared;
        if shared.inner.snapshots.is_ended(&shared.registered) {
            Err(Error::SnapshotEnded)
        } else {
            Ok(())
        }
    }
}
