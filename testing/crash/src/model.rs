//! The model of a database's content: plain maps, and every change as a function on them.

use std::collections::BTreeMap;

use bytes::Bytes;
use kstone_core::{Key, TableId};

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its value.
    pub value: Bytes,
    /// From when on it counts as absent.
    pub expires_at_ms: Option<u64>,
}

/// One operation of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of WriteBatch")]
pub enum Change {
    Put { table: TableId, key: Key, stored: Stored },
    Delete { table: TableId, key: Key },
    DropPartition { table: TableId, pk: Bytes },
    DropTable { table: TableId },
}

/// What a reader sees: the tables and their records.
pub type Contents = BTreeMap<TableId, BTreeMap<Key, Stored>>;

/// The database after some commit, expired records included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    tables: Contents,
    next_table: u32,
}

impl Default for Model {
    fn default() -> Self {
        let tables = BTreeMap::from([(TableId::DEFAULT, BTreeMap::new())]);
        Model { tables, next_table: 1 }
    }
}

impl Model {
    /// The tables that exist.
    pub fn tables(&self) -> Vec<TableId> {
        self.tables.keys().copied().collect()
    }

    /// All records, expired ones included.
    pub fn records(&self) -> impl Iterator<Item = (TableId, &Key, &Stored)> {
        let tables = self.tables.iter();
        tables.flat_map(|(&table, records)| records.iter().map(move |(k, s)| (table, k, s)))
    }

    /// What a reader sees at that time.
    pub fn visible(&self, now_ms: u64) -> Contents {
        let mut visible = self.tables.clone();
        for records in visible.values_mut() {
            records.retain(|_, stored| stored.expires_at_ms.is_none_or(|at_ms| at_ms > now_ms));
        }
        visible
    }

    /// The records whose time is over.
    pub fn expired(&self, now_ms: u64) -> Vec<(TableId, Key)> {
        self.records()
            .filter(|(.., stored)| stored.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms))
            .map(|(table, key, _)| (table, key.clone()))
            .collect()
    }

    /// Makes the change. One in a table that is not there changes nothing.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Put { table, key, stored } => {
                if let Some(records) = self.tables.get_mut(table) {
                    records.insert(key.clone(), stored.clone());
                }
            }
            Change::Delete { table, key } => {
                if let Some(records) = self.tables.get_mut(table) {
                    records.remove(key);
                }
            }
            Change::DropPartition { table, pk } => {
                if let Some(records) = self.tables.get_mut(table) {
                    records.retain(|key, _| key.pk != *pk);
                }
            }
            Change::DropTable { table } => {
                self.tables.remove(table);
            }
        }
    }

    /// Creates a table and answers the id that the engine must give it.
    pub fn create_table(&mut self) -> TableId {
        let table = TableId(self.next_table);
        self.next_table += 1;
        self.tables.insert(table, BTreeMap::new());
        table
    }
}

/// Where two contents differ, for a message: the first few differences.
pub(crate) fn difference(found: &Contents, expected: &Contents) -> String {
    let mut told = Vec::new();
    let tables = |c: &Contents| c.keys().map(|t| t.0).collect::<Vec<_>>();
    if tables(found) != tables(expected) {
        told.push(format!("tables {:?}, expected {:?}", tables(found), tables(expected)));
    }
    for (table, wanted) in expected {
        let there = found.get(table);
        for (key, stored) in wanted {
            match there.and_then(|records| records.get(key)) {
                None => told.push(format!("{} {key:?} is missing", table.0)),
                Some(other) if other != stored => {
                    told.push(format!(
                        "{} {key:?} is {}, expected {}",
                        table.0,
                        brief(other),
                        brief(stored)
                    ));
                }
                Some(_) => {}
            }
        }
    }
    for (table, records) in found {
        for (key, stored) in records {
            if expected.get(table).is_none_or(|wanted| !wanted.contains_key(key)) {
                told.push(format!("{} {key:?} should not be there: {}", table.0, brief(stored)));
            }
        }
    }
    let more = told.len().saturating_sub(6);
    told.truncate(6);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", told.join("; "))
}

fn brief(stored: &Stored) -> String {
    let head = stored.value.get(..stored.value.len().min(8)).unwrap_or_default();
    let expiry = stored.expires_at_ms.map_or(String::new(), |at_ms| format!(" until {at_ms}"));
    format!("{:?}…({}){expiry}", Bytes::copy_from_slice(head), stored.value.len())
}
