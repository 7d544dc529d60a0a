//! The default table: items under byte keys, with or without a sort key. Every database has it.
//! DynamoDB cannot express such a table, so that door does not show it.

use std::ops::{Bound, RangeBounds};

use kstone_core::{
    Durability, Key, KeyRef, PartitionIter, ScanCursor, ScanIter, TableId, WriteBatch,
};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::ops::encode_checked;
use crate::value::{Item, ItemBytes};

impl Database {
    /// Puts an item under a partition key alone, in place of the one that is there.
    ///
    /// ```
    /// # use kstone::{Database, Item};
    /// let db = Database::memory()?;
    /// db.put(b"user#12345", Item::new().with("name", "Ada"))?;
    /// assert_eq!(db.get(b"user#12345")?.unwrap().get("name").unwrap().as_str(), Some("Ada"));
    /// # Ok::<(), kstone::Error>(())
    /// ```
    pub fn put(&self, pk: impl AsRef<[u8]>, item: Item) -> Result<()> {
        self.put_at(KeyRef::new(pk.as_ref()), &item)
    }

    /// Puts an item under a partition key and a sort key.
    pub fn put_with_sk(
        &self,
        pk: impl AsRef<[u8]>,
        sk: impl AsRef<[u8]>,
        item: Item,
    ) -> Result<()> {
        self.put_at(sort_key(pk.as_ref(), sk.as_ref())?, &item)
    }

    /// The item under a partition key alone.
    pub fn get(&self, pk: impl AsRef<[u8]>) -> Result<Option<Item>> {
        self.get_at(KeyRef::new(pk.as_ref()))
    }

    /// The item under a partition key and a sort key.
    pub fn get_with_sk(&self, pk: impl AsRef<[u8]>, sk: impl AsRef<[u8]>) -> Result<Option<Item>> {
        self.get_at(sort_key(pk.as_ref(), sk.as_ref())?)
    }

    /// Deletes the item under a partition key alone, if there is one.
    pub fn delete(&self, pk: impl AsRef<[u8]>) -> Result<()> {
        self.delete_at(KeyRef::new(pk.as_ref()))
    }

    /// Deletes the item under a partition key and a sort key, if there is one.
    pub fn delete_with_sk(&self, pk: impl AsRef<[u8]>, sk: impl AsRef<[u8]>) -> Result<()> {
        self.delete_at(sort_key(pk.as_ref(), sk.as_ref())?)
    }

    /// The items of one partition, in the order of their sort keys.
    pub fn query(&self, query: Query) -> Result<Entries> {
        let snapshot = self.engine().snapshot();
        self.promise_durable(snapshot.seq())?;
        let mut partition = snapshot.partition(TableId::DEFAULT, query.pk);
        partition = match query.part {
            Part::Range(low, high) => partition.range((low, high)),
            Part::Prefix(prefix) => partition.prefix(prefix),
        };
        if !query.forward {
            partition = partition.reverse();
        }
        Ok(Entries { source: Source::Partition(partition.iter()?), left: query.limit })
    }

    /// Every item of the default table, stripe by stripe; in each, in the order of the keys.
    pub fn scan(&self, scan: Scan) -> Result<Entries> {
        let snapshot = self.engine().snapshot();
        self.promise_durable(snapshot.seq())?;
        let source = match ScanCursor::segment(scan.segment.0, scan.segment.1)? {
            Some(cursor) => Source::Scan(snapshot.scan(TableId::DEFAULT, cursor)),
            None => Source::Nothing,
        };
        Ok(Entries { source, left: scan.limit })
    }

    fn put_at(&self, key: KeyRef<'_>, item: &Item) -> Result<()> {
        let item = encode_checked(item)?;
        let mut batch = WriteBatch::new();
        batch.put(TableId::DEFAULT, key, item.as_slice())?;
        if self.policy().is_some() {
            return self.put_ruled(key, &item, &batch);
        }
        Ok(self.engine().write(&batch, self.durability())?.wait()?)
    }

    fn get_at(&self, key: KeyRef<'_>) -> Result<Option<Item>> {
        let record = self.engine().get(TableId::DEFAULT, key)?;
        // What hides an absent record was visible to the read, so it is below this number.
        let seq = record.as_ref().map_or_else(|| self.engine().applied_seq(), |r| r.version);
        self.promise_durable(seq)?;
        record.map(|record| Ok(ItemBytes::from_bytes(record.value)?.decode()?)).transpose()
    }

    fn delete_at(&self, key: KeyRef<'_>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete(TableId::DEFAULT, key)?;
        Ok(self.engine().write(&batch, self.durability())?.wait()?)
    }

    /// Waits until what was read is as durable as this handle promises.
    fn promise_durable(&self, seq: kstone_core::Seq) -> Result<()> {
        match self.durability() {
            Durability::Sync => Ok(self.engine().wait_durable(seq)?),
            Durability::Interval | Durability::Os => Ok(()),
        }
    }
}

fn sort_key<'a>(pk: &'a [u8], sk: &'a [u8]) -> Result<KeyRef<'a>> {
    if sk.is_empty() {
        return Err(Error::validation(
            "the sort key is empty; an item without a sort key is put with `put`",
        ));
    }
    Ok(KeyRef::with_sk(pk, sk))
}

/// A query of one partition of the default table.
///
/// ```
/// # use kstone::{Database, Item, Query};
/// # let db = Database::memory()?;
/// for version in ["v1", "v2", "v3"] {
///     db.put_with_sk(b"doc#readme", version, Item::new().with("text", version))?;
/// }
/// let latest = db.query(Query::new(b"doc#readme").forward(false).limit(1))?.next().unwrap()?;
/// assert_eq!(latest.key.sk.as_deref(), Some(&b"v3"[..]));
/// # Ok::<(), kstone::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Query {
    pk: Vec<u8>,
    part: Part,
    forward: bool,
    limit: Option<usize>,
}

#[derive(Debug, Clone)]
enum Part {
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Prefix(Vec<u8>),
}

impl Query {
    /// All items under this partition key, the one without a sort key first.
    pub fn new(pk: impl AsRef<[u8]>) -> Self {
        let part = Part::Range(Bound::Unbounded, Bound::Unbounded);
        Query { pk: pk.as_ref().to_vec(), part, forward: true, limit: None }
    }

    /// Only items whose sort key begins with these bytes.
    #[must_use]
    pub fn sk_begins_with(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.part = Part::Prefix(prefix.as_ref().to_vec());
        self
    }

    /// Only items whose sort key is in this range.
    #[must_use]
    pub fn sk_range<K: AsRef<[u8]>>(mut self, range: impl RangeBounds<K>) -> Self {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        self.part = Part::Range(owned(range.start_bound()), owned(range.end_bound()));
        self
    }

    /// Ascending (the default) or descending.
    #[must_use]
    pub fn forward(mut self, forward: bool) -> Self {
        self.forward = forward;
        self
    }

    /// At most so many items.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }
}

/// A scan of the default table, or of one part of it.
#[derive(Debug, Clone)]
pub struct Scan {
    segment: (u32, u32),
    limit: Option<usize>,
}

impl Scan {
    /// The whole table.
    pub fn new() -> Self {
        Scan { segment: (0, 1), limit: None }
    }

    /// One of `total` parts, counted from 0: so several threads read the table together.
    #[must_use]
    pub fn segment(mut self, index: u32, total: u32) -> Self {
        self.segment = (index, total);
        self
    }

    /// At most so many items.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }
}

impl Default for Scan {
    fn default() -> Self {
        Scan::new()
    }
}

/// An item of the default table with its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The item.
    pub item: Item,
}

/// Items of the default table, read as they are asked for. They are those of the moment at which
/// the query or scan began.
#[derive(Debug)]
pub struct Entries {
    source: Source,
    left: Option<usize>,
}

#[derive(Debug)]
enum Source {
    Partition(PartitionIter),
    Scan(ScanIter),
    Nothing,
}

impl Iterator for Entries {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.left {
            Some(0) => return None,
            Some(left) => *left -= 1,
            None => {}
        }
        let record = match &mut self.source {
            Source::Partition(partition) => partition.next()?,
            Source::Scan(scan) => scan.next()?,
            Source::Nothing => return None,
        };
        Some(record.map_err(Error::from).and_then(|record| {
            let item = ItemBytes::from_bytes(record.record.value)?.decode()?;
            Ok(Entry { key: record.key, item })
        }))
    }
}
