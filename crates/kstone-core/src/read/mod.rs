//! Reads: point gets, snapshots, and iterators that hold no lock while the caller works.
//!
//! A reader sees the database as of a sequence number and a time. Point gets use the newest
//! version; everything that reads more than one key goes through a [`Snapshot`].

mod partition;
mod partitions;
mod scan;
mod snapshot;
pub(crate) mod walk;

pub use partition::{PartitionIter, PartitionQuery, RecordRef};
pub use partitions::PartitionKeys;
pub use scan::{ScanCursor, ScanIter, ScanRef};
pub use snapshot::Snapshot;

use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::engine::Engine;
use crate::entry::Seq;
use crate::error::{Error, Result};
use crate::key::internal::StoredKey;
use crate::key::{Key, KeyRef};
use crate::table::TableId;
use crate::tree::stripe::{Hit, Stripe};

/// A record as a reader finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The value.
    pub value: Bytes,
    /// From when on (milliseconds since 1970) the record counts as absent.
    pub expires_at_ms: Option<u64>,
    /// The sequence number of the write: grows with every write, so it serves as a version.
    pub version: Seq,
}

/// A record with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedRecord {
    /// The key.
    pub key: Key,
    /// The record.
    pub record: Record,
}

pub(crate) fn record_from_hit(hit: Hit) -> Record {
    Record { value: hit.value, expires_at_ms: expiry(hit.expires_at_ms), version: hit.seq }
}

pub(crate) fn expiry(expires_at_ms: u64) -> Option<u64> {
    (expires_at_ms != 0).then_some(expires_at_ms)
}

impl Engine {
    /// The newest version of a record.
    pub fn get<'k>(&self, table: TableId, key: impl Into<KeyRef<'k>>) -> Result<Option<Record>> {
        let inner = self.inner();
        self.get_at(table, key.into(), || inner.clock.now_ms())
    }

    fn get_at(
        &self,
        table: TableId,
        key: KeyRef<'_>,
        now_ms: impl FnOnce() -> u64,
    ) -> Result<Option<Record>> {
        let inner = self.inner();
        if table != TableId::DEFAULT && !inner.tables().visible_at(table, Seq::MAX) {
            return Err(Error::NoSuchTable { id: table.0 });
        }
        inner.make_all_visible();
        let stripe = inner.stripe(key.stripe());
        stripe.stats.gets.fetch_add(1, Ordering::Relaxed);
        // The version first, the watermark second: whatever a compaction left out of this version
        // was hidden at a watermark that is not above the one read here.
        let version = stripe.version_to_read(Stripe::GET);
        let seq = inner.log.visible();
        let stored = StoredKey::new(table, key);
        Ok(version.get(&stored, seq, now_ms)?.map(record_from_hit))
    }

    /// The newest version of a record, even if its time is over: for a layer that has to clean up
    /// after what expired before it writes the key anew.
    pub fn get_even_expired<'k>(
        &self,
        table: TableId,
        key: impl Into<KeyRef<'k>>,
    ) -> Result<Option<Record>> {
        self.get_at(table, key.into(), || 0)
    }

    /// Several records as of one moment, in the order asked for.
    pub fn multi_get(&self, table: TableId, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        let snapshot = self.snapshot();
        keys.iter().map(|key| snapshot.get(table, key)).collect()
    }

    /// The database as of now: what is committed later does not show in it.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.inner())
    }

    /// The same, with every record that has expired and was not reclaimed: for who counts what is
    /// stored.
    pub fn snapshot_even_expired(&self) -> Snapshot {
        Snapshot::take_at(self.inner(), 0)
    }

    /// The records of one partition, as of now.
    pub fn partition(&self, table: TableId, pk: impl Into<Bytes>) -> PartitionQuery {
        PartitionQuery::new(self.snapshot(), table, pk.into())
    }
}
