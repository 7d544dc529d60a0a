//! The database as a plain ordered map: too simple to be wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use bytes::Bytes;
use kstone_core::{Key, KeyedRecord, Record, Seq, TableId, stripe_of};

use crate::ops::{Read, Sk, Slot};

/// What a question is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To gets.
    Found(Vec<Option<Record>>),
    /// To queries and scans.
    Records(Vec<KeyedRecord>),
    /// To scans in segments.
    Parts(Vec<Vec<KeyedRecord>>),
    /// To listings of partition keys.
    PartitionKeys(Vec<Bytes>),
}

impl Answer {
    /// The answer less what may depend on options: the versions.
    pub fn without_versions(mut self) -> Self {
        match &mut self {
            Answer::Found(records) => records.iter_mut().flatten().for_each(|r| r.version = 0),
            Answer::Records(records) => records.iter_mut().for_each(|r| r.record.version = 0),
            Answer::Parts(parts) => parts.iter_mut().flatten().for_each(|r| r.record.version = 0),
            Answer::PartitionKeys(_) => {}
        }
        self
    }
}

/// An error that a caller provoked, and that is the right answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The table was dropped, or never was.
    NoSuchTable,
    /// A purge ended the snapshot.
    SnapshotEnded,
    /// A purge met so many snapshots.
    SnapshotsInTheWay(usize),
    /// A key was written that was not locked.
    StripeNotLocked,
    /// The argument makes no sense.
    Invalid,
}

/// The id that slots stand for before any table was created.
const NO_TABLE: TableId = TableId(7777);

/// Every record, expired ones included until they are reclaimed.
#[derive(Debug, Clone)]
pub struct Model {
    /// What slot 0 stands for.
    home: TableId,
    records: BTreeMap<(TableId, Key), Record>,
    created: Vec<TableId>,
    dropped: BTreeSet<TableId>,
}

impl Model {
    /// An empty database, of which slot 0 is that table.
    pub fn at_home(home: TableId) -> Self {
        let (records, created, dropped) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        Model { home, records, created, dropped }
    }

    /// The table that a slot stands for.
    pub fn table(&self, slot: Slot) -> TableId {
        match usize::from(slot) {
            0 => self.home,
            n if self.created.is_empty() => TableId(NO_TABLE.0 + n as u32),
            // Counted from the newest, because dropped ones are found soon enough.
            n => self
                .created
                .iter()
                .rev()
                .nth((n - 1) % self.created.len())
                .copied()
                .unwrap_or(NO_TABLE),
        }
    }

    /// Whether the table can be read and written.
    pub fn has_table(&self, table: TableId) -> bool {
        table == self.home || self.created.contains(&table) && !self.dropped.contains(&table)
    }

    /// Whether there ever was such a table.
    pub fn had_table(&self, table: TableId) -> bool {
        table == self.home || self.created.contains(&table)
    }

    /// The tables that exist, in order.
    pub fn tables(&self) -> Vec<TableId> {
        let mut tables: Vec<_> =
            self.created.iter().copied().filter(|table| self.has_table(*table)).collect();
        tables.push(self.home);
        tables.sort();
        tables
    }

    /// Creates a table. Answers whether the id is new.
    pub fn create_table(&mut self, table: TableId) -> bool {
        let is_new = !self.created.contains(&table) && table != self.home;
        self.created.push(table);
        is_new
    }

    /// Drops a table.
    pub fn drop_table(&mut self, table: TableId) {
        self.dropped.insert(table);
        self.records.retain(|(of, _), _| *of != table);
    }

    /// Sets a record.
    pub fn put(&mut self, table: TableId, key: Key, record: Record) {
        self.records.insert((table, key), record);
    }

    /// Removes a record.
    pub fn delete(&mut self, table: TableId, key: &Key) {
        self.records.remove(&(table, key.clone()));
    }

    /// Removes a partition.
    pub fn drop_partition(&mut self, table: TableId, pk: &[u8]) {
        self.records.retain(|(of, key), _| *of != table || key.pk != pk);
    }

    /// The record, if it has not expired.
    pub fn get(&self, table: TableId, key: &Key, now_ms: u64) -> Option<Record> {
        self.records.get(&(table, key.clone())).filter(|r| is_live(r, now_ms)).cloned()
    }

    /// Every record that has expired and not been reclaimed.
    pub fn expired(&self, now_ms: u64) -> BTreeMap<(TableId, Key), Record> {
        self.records
            .iter()
            .filter(|(_, record)| !is_live(record, now_ms))
            .map(|(key, record)| (key.clone(), record.clone()))
            .collect()
    }

    /// When the first record expires.
    pub fn next_expiry_ms(&self) -> Option<u64> {
        self.records.values().filter_map(|record| record.expires_at_ms).min()
    }

    /// The records of a table in the order of a scan: by stripe, then by key.
    pub fn scan(&self, table: TableId, now_ms: u64) -> Vec<KeyedRecord> {
        let mut records = self.of_table(table, now_ms);
        // Stable, so keys stay in order within a stripe.
        records.sort_by_key(|r| stripe_of(&r.key.pk));
        records
    }

    fn of_table(&self, table: TableId, now_ms: u64) -> Vec<KeyedRecord> {
        self.records
            .iter()
            .filter(|((of, _), record)| *of == table && is_live(record, now_ms))
            .map(|((_, key), record)| KeyedRecord { key: key.clone(), record: record.clone() })
            .collect()
    }

    /// What a reader at this moment should be told.
    pub fn read(&self, read: &Read, now_ms: u64) -> Result<Answer, Refusal> {
        let check = |slot: Slot| {
            let table = self.table(slot);
            if self.has_table(table) { Ok(table) } else { Err(Refusal::NoSuchTable) }
        };
        Ok(match read {
            Read::Get(slot, key) => {
                Answer::Found(vec![self.get(check(*slot)?, &key.key(), now_ms)])
            }
            // Asked for nothing, nobody looks for the table.
            Read::MultiGet(_, keys) if keys.is_empty() => Answer::Found(Vec::new()),
            Read::MultiGet(slot, keys) => {
                let table = check(*slot)?;
                Answer::Found(keys.iter().map(|key| self.get(table, &key.key(), now_ms)).collect())
            }
            Read::Query { table, pk, prefix, low, high, reverse, limit } => {
                let pk = pk.bytes();
                let mut records = self.of_table(check(*table)?, now_ms);
                records.retain(|r| r.key.pk == pk && is_wanted(&r.key, *prefix, *low, *high));
                if *reverse {
                    records.reverse();
                }
                records.truncate(*limit);
                Answer::Records(records)
            }
            Read::Scan(slot, _) => Answer::Records(self.scan(check(*slot)?, now_ms)),
            Read::Segments(slot, total) => {
                let records = self.scan(check(*slot)?, now_ms);
                let part = |n: u32| {
                    let edge = |n: u32| n * 256 / total;
                    let stripes = edge(n)..edge(n + 1);
                    let is_in = |r: &&KeyedRecord| stripes.contains(&u32::from(r.key.stripe()));
                    records.iter().filter(is_in).cloned().collect()
                };
                Answer::Parts((0..*total).map(part).collect())
            }
            Read::PartitionKeys(slot, prefix) => {
                let records = self.of_table(check(*slot)?, now_ms);
                let mut pks: Vec<Bytes> = records.into_iter().map(|r| r.key.pk).collect();
                pks.dedup();
                pks.retain(|pk| pk.starts_with(&prefix.bytes()));
                Answer::PartitionKeys(pks)
            }
        })
    }
}

/// A record as the model keeps it.
pub fn record(value: Vec<u8>, expires_at_ms: Option<u64>, version: Seq) -> Record {
    Record { value: value.into(), expires_at_ms, version }
}

fn is_live(record: &Record, now_ms: u64) -> bool {
    record.expires_at_ms.is_none_or(|at_ms| now_ms < at_ms)
}

fn is_wanted(key: &Key, prefix: Option<Sk>, low: Bound<Sk>, high: Bound<Sk>) -> bool {
    let Some(sk) = &key.sk else {
        return prefix.is_none() && matches!(low, Bound::Unbounded);
    };
    let above = match low {
        Bound::Unbounded => true,
        Bound::Included(low) => *sk >= low.bytes(),
        Bound::Excluded(low) => *sk > low.bytes(),
    };
    let below = match high {
        Bound::Unbounded => true,
        Bound::Included(high) => *sk <= high.bytes(),
        Bound::Excluded(high) => *sk < high.bytes(),
    };
    above && below && prefix.is_none_or(|prefix| sk.starts_with(&prefix.bytes()))
}
