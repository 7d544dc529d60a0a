//! The records of one partition, in order of sort key.

use std::ops::RangeBounds;

use bytes::Bytes;

use crate::error::Result;
use crate::key::internal::{self, PartitionBounds};
use crate::key::{Key, stripe_of};
use crate::read::snapshot::Snapshot;
use crate::read::walk::Walk;
use crate::read::{KeyedRecord, Record, expiry};
use crate::table::TableId;

/// Which records of a partition to read, and in which direction.
///
/// ```
/// use kstone_core::{Durability, Engine, Key, Options, TableId, WriteBatch};
///
/// let engine = Engine::memory(Options::default())?;
/// let mut batch = WriteBatch::new();
/// for day in ["01", "02", "03"] {
///     batch.put(TableId::DEFAULT, &Key::with_sk("log", format!("2024-01-{day}")), b"entry")?;
/// }
/// engine.write(&batch, Durability::Sync)?.wait()?;
/// let latest = engine.partition(TableId::DEFAULT, "log").prefix("2024-").reverse().iter()?.next();
/// assert_eq!(latest.unwrap()?.key.sk.unwrap(), "2024-01-03");
/// # Ok::<(), kstone_core::Error>(())
/// ```
#[derive(Debug)]
pub struct PartitionQuery {
    snapshot: Snapshot,
    table: TableId,
    pk: Bytes,
    prefix: Option<Bytes>,
    bounds: PartitionBounds,
    forward: bool,
}

impl PartitionQuery {
    pub(crate) fn new(snapshot: Snapshot, table: TableId, pk: Bytes) -> Self {
        let bounds = PartitionBounds::new(table, &pk);
        PartitionQuery { snapshot, table, pk, prefix: None, bounds, forward: true }
    }

    /// Only sort keys that start with `prefix`.
    pub fn prefix(mut self, prefix: impl Into<Bytes>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Only sort keys in the range; together with a prefix, those that satisfy both.
    pub fn range<K: AsRef<[u8]>>(mut self, range: impl RangeBounds<K>) -> Self {
        let (low, high) = (range.start_bound(), range.end_bound());
        self.bounds.set(low.map(K::as_ref), high.map(K::as_ref));
        self
    }

    /// Highest sort key first.
    pub fn reverse(mut self) -> Self {
        self.forward = false;
        self
    }

    /// Starts reading. Without prefix or lower bound, the record without sort key is included.
    pub fn iter(self) -> Result<PartitionIter> {
        self.snapshot.check(self.table)?;
        let sk_at = self.bounds.sk_at();
        let (low, high) = self.bounds.finish(self.prefix.as_deref());
        let walk = Walk::new(self.snapshot, stripe_of(&self.pk), low, Some(high), self.forward);
        Ok(PartitionIter { walk, pk: self.pk, sk_at, done: false })
    }
}

/// Reads the records of a partition, one at a time, holding no lock in between.
#[derive(Debug)]
pub struct PartitionIter {
    walk: Walk,
    pk: Bytes,
    /// Where the sort key starts in a stored key.
    sk_at: usize,
    done: bool,
}

/// A record of a partition, borrowed from its iterator: what a caller that copies nothing reads.
#[derive(Debug, Clone, Copy)]
pub struct RecordRef<'a> {
    /// The sort key, if the record has one.
    pub sk: Option<&'a [u8]>,
    /// The value.
    pub value: &'a [u8],
    /// From when on (milliseconds since 1970) the record counts as absent.
    pub expires_at_ms: Option<u64>,
    /// The sequence number of the write.
    pub version: u64,
}

impl PartitionIter {
    /// The next record, without copying it.
    #[inline]
    pub fn next_ref(&mut self) -> Result<Option<RecordRef<'_>>> {
        if self.done {
            return Ok(None);
        }
        let sk_at = self.sk_at;
        match self.walk.next() {
            Ok(Some(found)) => Ok(Some(RecordRef {
                // A key without sort key is as long as one with an empty one; the byte before
                // tells them apart.
                sk: internal::has_sk(found.key, sk_at)
                    .then(|| found.key.get(sk_at..).unwrap_or_default()),
                value: found.value,
                expires_at_ms: expiry(found.expires_at_ms),
                version: found.seq,
            })),
            Ok(None) => {
                self.done = true;
                Ok(None)
            }
            Err(error) => {
                self.done = true;
                Err(error)
            }
        }
    }
}

impl Iterator for PartitionIter {
    type Item = Result<KeyedRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        let (sk, expires_at_ms, version) = match self.next_ref() {
            Ok(Some(found)) => {
                (found.sk.map(Bytes::copy_from_slice), found.expires_at_ms, found.version)
            }
            Ok(None) => return None,
            Err(error) => return Some(Err(error)),
        };
        let record = Record { value: self.walk.value_bytes(), expires_at_ms, version };
        Some(Ok(KeyedRecord { key: Key { pk: self.pk.clone(), sk }, record }))
    }
}
