//! Removes outdated entries from the index of persons.
//!
//! Where a value names the persons, and not the key, nobody says whom a key named that has gone: a
//! session that expires leaves its entry behind. Such entries do no harm, because every reader of the
//! index looks at the key; but they take room, and they say of a person what is long over. So the
//! index is gone through now and then, some entries at a time, and what is no longer true is removed,
//! under the lock of its key.
//!
//! A table that is dropped takes its items with it at once, and nobody says which they were. Their
//! entries are removed at the next start, when nobody can make a table of that name again.
//!
//! A key through which others are found (a session) may go before them. Then nothing but its entry
//! says whose they are. So its entry stays while any entry is left under its `via#`, and is swept
//! after them.
//!
//! What the key itself says of others is indexed when the key is made and removed when it goes; that
//! needs no sweeping while the database is open.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kstone::ops::{
    Condition, DeleteItem, KeyCondition, Placeholders, Query, Scan, TransactAction, TransactKind,
    TransactWrite,
};
use kstone::policy::{IndexEntry, SUBJECTS_TABLE};
use kstone::table::{KeyAttribute, KeyType};
use kstone::{Database, Durability, Error, Item, Result, Value, placeholders};
use kstone_core::sync::Mutex;
use kstone_redis::{Fault, KeyPresence, Redis};

use super::Governor;
use crate::index::{IndexEntryKey, Location, pk_via};
use crate::keyspace::{ItemKeyParts, KeyStore, WHOLE_KEY};
use crate::pattern::SubjectSource;

/// The result of one step of the sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Entries that were looked at.
    pub looked_at: u64,
    /// Those that were removed.
    pub removed: u64,
    /// Whether there is nothing to look at until more keys go.
    pub is_done: bool,
}

/// The progress of the sweep.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// How often something happened that may have left entries behind.
    left: AtomicU64,
    /// Whether a table was dropped since this was last noted in the database.
    is_table_dropped: AtomicBool,
    round: Mutex<SweepRound>,
}

#[derive(Debug, Default)]
struct SweepRound {
    /// Where it goes on; at the beginning if there is nothing.
    start: Option<Item>,
    /// What was left when this round began, and when the last one that is over did.
    left_at_start: Option<u64>,
    left_at_last: Option<u64>,
}

impl Sweep {
    /// Records that a table was dropped.
    pub(super) fn note_dropped(&self) {
        self.is_table_dropped.store(true, Ordering::Relaxed);
    }

    /// Whether a table was dropped since the last call.
    pub(super) fn take_dropped(&self) -> bool {
        self.is_table_dropped.swap(false, Ordering::Relaxed)
    }

    /// Records that entries may be outdated now.
    pub(super) fn note(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }
}

/// The entries that a key should have.
type Expected = HashMap<(u8, Vec<u8>), BTreeSet<IndexEntry>>;

impl Governor {
    /// Looks at some entries of the index of persons, and removes those about keys of Redis that are
    /// no longer true. To be called about once a second; costs nothing while nothing was left
    /// behind.
    pub fn sweep(&self, redis: &Redis, entries_max: u32) -> Result<SweepReport> {
        let mut round = self.sweep.round.lock();
        let left = self.sweep.left.load(Ordering::Relaxed);
        if round.left_at_start.is_none() && round.left_at_last == Some(left) {
            return Ok(SweepReport { is_done: true, ..SweepReport::default() });
        }
        round.left_at_start.get_or_insert(left);
        let scan = Scan {
            table: SUBJECTS_TABLE.to_owned(),
            start: round.start.take(),
            limit: Some(entries_max.max(1)),
            ..Scan::default()
        };
        let page = self.db.scan_items(&scan).wait()?;
        let (mut swept, mut expected) = (SweepReport::default(), Expected::new());
        for item in page.items.unwrap_or_default() {
            swept.looked_at += 1;
            let entry = entry_of(&item.decode()?);
            swept.removed += u64::from(self.sweep_entry(redis, &entry, &mut expected)?);
        }
        round.start = page.next;
        if round.start.is_none() {
            round.left_at_last = round.left_at_start.take();
        }
        Ok(swept)
    }

    /// Removes the entries about items of tables that are gone; answers how many there were. Only to
    /// be called while nobody makes tables, before the doors open: the entry of an item that is
    /// written meanwhile to a new table of an old name could be lost.
    pub fn prune(&self) -> Result<u64> {
        let (mut removed, mut start) = (0, None);
        let mut is_gone: HashMap<String, bool> = HashMap::new();
        loop {
            let scan = Scan { table: SUBJECTS_TABLE.to_owned(), start, ..Scan::default() };
            let page = self.db.scan_items(&scan).wait()?;
            for item in page.items.unwrap_or_default() {
                let entry = entry_of(&item.decode()?);
                let Some(Location::Item { table, .. }) =
                    IndexEntryKey::parse(&entry.sk).map(|indexed| indexed.location)
                else {
                    continue;
                };
                let look = |table: &String| self.db.describe_table(table).is_err();
                if *is_gone.entry(table).or_insert_with_key(look) {
                    remove(&self.db, &entry)?;
                    removed += 1;
                }
            }
            start = page.next;
            if start.is_none() {
                return Ok(removed);
            }
        }
    }

    /// Removes an entry that is no longer true; answers whether it was not.
    fn sweep_entry(
        &self,
        redis: &Redis,
        entry: &IndexEntry,
        expected: &mut Expected,
    ) -> Result<bool> {
        let Some(indexed) = IndexEntryKey::parse(&entry.sk) else { return Ok(false) };
        let via = pk_via(&indexed.location);
        let (db, key) = match indexed.location {
            Location::Key { db, key } | Location::Member { db, key, .. } => (db, key),
            Location::Item { table, pk, sk } => return self.sweep_item(entry, &via, table, pk, sk),
        };
        let Some(found) = self.keyspace.find(KeyStore::Redis, &key) else { return Ok(false) };
        let is_link_key = self.is_link_key(&found);
        if !is_link_key && matches!(found.pattern.subject, SubjectSource::Placeholder(_)) {
            return Ok(false);
        }
        // A collection of many persons is gone through once, not once for each of them: what was
        // true a moment ago may stay for another round.
        let known = expected.get(&(db, key.clone()));
        if known.is_some_and(|known| known.contains(entry)) {
            return Ok(false);
        }
        let now = RefCell::new(BTreeSet::new());
        let is_removed = redis
            .inspect_key(
                db,
                &key,
                &mut |key| {
                    let entries = self.entries_of_key(&key.write);
                    now.borrow_mut().extend(entries.into_iter().flat_map(|(_, entries)| entries));
                },
                // Of what has ended the bytes are still there, and have to be found: its entries go
                // once it is reclaimed. One that is there and names somebody else is no way to this
                // person's.
                |stored| {
                    let is_kept = || match is_link_key && stored != KeyPresence::Shown {
                        true => self.leads_to_any(&via).map_err(SweepError::Database),
                        false => Ok(false),
                    };
                    let is_true = stored == KeyPresence::Hidden || now.borrow().contains(entry);
                    if is_true || is_kept()? {
                        return Ok(false);
                    }
                    remove(&self.db, entry).map(|()| true).map_err(SweepError::Database)
                },
            )
            .map_err(failed)?;
        if is_removed && matches!(found.pattern.subject, SubjectSource::Through(_)) {
            self.sweep.note();
        }
        expected.insert((db, key), now.into_inner());
        Ok(is_removed)
    }

    /// The same for an item through which others were found. Entries of other items go with them.
    fn sweep_item(
        &self,
        entry: &IndexEntry,
        via: &str,
        table: String,
        pk: Vec<u8>,
        sk: Option<Vec<u8>>,
    ) -> Result<bool> {
        let parts = ItemKeyParts { pk: &pk, sk: sk.as_deref().unwrap_or(WHOLE_KEY) };
        let found = self.keyspace.find_item(&table, parts);
        if !found.is_some_and(|found| self.is_link_key(&found)) {
            return Ok(false);
        }
        // What is said of a table that was dropped is removed at the next start.
        let Ok(description) = self.db.describe_table(&table) else { return Ok(false) };
        let schema = &description.spec.key;
        let Some(hash) = schema.hash.first() else { return Ok(false) };
        let Some(mut item) = key_value(hash, &pk).map(|pk| Item::new().with(&*hash.name, pk))
        else {
            return Ok(false);
        };
        if let Some((range, sk)) = schema.range.first().zip(sk) {
            let Some(sk) = key_value(range, &sk) else { return Ok(false) };
            item = item.with(&*range.name, sk);
        }
        if self.leads_to_any(via)? {
            return Ok(false);
        }
        let check = TransactAction {
            table,
            kind: TransactKind::Check(item),
            condition: Some(Condition::Text("attribute_not_exists(#pk)".to_owned())),
            placeholders: Placeholders {
                names: Some(vec![("#pk".to_owned(), hash.name.clone())]),
                values: None,
            },
            return_on_failure: false,
        };
        let delete = TransactAction {
            table: SUBJECTS_TABLE.to_owned(),
            kind: TransactKind::Delete(item_of(entry)),
            condition: None,
            placeholders: Placeholders::default(),
            return_on_failure: false,
        };
        let actions = vec![check, delete];
        let request = TransactWrite { actions, ..TransactWrite::default() };
        match self.db.with_durability(Durability::Os).transact_write(&request).wait() {
            Ok(_) => Ok(true),
            Err(Error::TransactionCanceled { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether any entry is left of keys that belong to the owner of this one.
    fn leads_to_any(&self, via: &str) -> Result<bool> {
        let query = Query {
            table: SUBJECTS_TABLE.to_owned(),
            key_condition: Some(KeyCondition::Text("pk = :pk".to_owned())),
            placeholders: placeholders([(":pk", via)]),
            limit: Some(1),
            ..Query::default()
        };
        let page = self.db.query_items(&query).wait()?;
        Ok(page.items.is_some_and(|items| !items.is_empty()))
    }
}

/// A key attribute from the bytes that the index knows it by.
fn key_value(attribute: &KeyAttribute, bytes: &[u8]) -> Option<Value> {
    let text = || std::str::from_utf8(bytes).ok();
    match attribute.kind {
        KeyType::S => Some(Value::S(text()?.to_owned())),
        KeyType::B => Some(Value::B(bytes.to_vec().into())),
        KeyType::N => text()?.parse().ok().map(Value::N),
    }
}

fn entry_of(item: &Item) -> IndexEntry {
    let text = |name| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    IndexEntry { pk: text("pk"), sk: text("sk") }
}

fn item_of(entry: &IndexEntry) -> Item {
    Item::new().with("pk", entry.pk.as_str()).with("sk", entry.sk.as_str())
}

fn remove(db: &Database, entry: &IndexEntry) -> Result<()> {
    let key = item_of(entry);
    let delete = DeleteItem { table: SUBJECTS_TABLE.to_owned(), key, ..DeleteItem::default() };
    db.with_durability(Durability::Os).delete_item(&delete).wait().map(drop)
}

/// The error of reading a key or entry.
enum SweepError {
    Database(Error),
    Redis(Fault),
}

impl From<Fault> for SweepError {
    fn from(fault: Fault) -> Self {
        SweepError::Redis(fault)
    }
}

fn failed(stopped: SweepError) -> Error {
    match stopped {
        SweepError::Database(error) => error,
        SweepError::Redis(fault) => Error::validation(format!("a key cannot be read: {fault}")),
    }
}
