//! Entries of the index of persons that have come to say too much.
//!
//! Where a value names the persons, and not the key, nobody says whom a key named that has gone: a
//! session that expires leaves its entry behind. Such entries do no harm, because whoever reads the
//! index looks at the key; but they take room, and they say of a person what is long over. So the
//! index is gone through now and then, some entries at a time, and what is no longer true is removed,
//! under the lock of its key.
//!
//! A table that is dropped takes its items with it at once, and nobody says which they were. Their
//! entries are removed at the next start, when nobody can make a table of that name again.
//!
//! What the key itself says is indexed when the key is made and removed when it goes; that needs no
//! sweeping while the database is open.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kstone::ops::{DeleteItem, Scan};
use kstone::policy::{IndexEntry, SUBJECTS_TABLE};
use kstone::{Database, Durability, Error, Item, Result, Value};
use kstone_core::sync::Mutex;
use kstone_redis::{Fault, Redis, Stored};

use super::Governor;
use crate::index::{Indexed, Location};
use crate::keyspace::Place;
use crate::pattern::SubjectSource;

/// What a step of the sweep came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Entries that were looked at.
    pub looked_at: u64,
    /// Those that were removed.
    pub removed: u64,
    /// Whether there is nothing to look at until more keys go.
    pub is_done: bool,
}

/// How far the sweep is.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// How often something happened that may have left entries behind.
    left: AtomicU64,
    /// Whether a table was dropped since this was last noted in the database.
    is_table_dropped: AtomicBool,
    round: Mutex<Round>,
}

#[derive(Debug, Default)]
struct Round {
    /// Where it goes on; at the beginning if there is nothing.
    start: Option<Item>,
    /// What was left when this round began, and when the last one that is over did.
    left_at_start: Option<u64>,
    left_at_last: Option<u64>,
}

impl Sweep {
    /// A table was dropped.
    pub(super) fn note_dropped(&self) {
        self.is_table_dropped.store(true, Ordering::Relaxed);
    }

    /// Whether one was since this was last asked.
    pub(super) fn take_dropped(&self) -> bool {
        self.is_table_dropped.swap(false, Ordering::Relaxed)
    }

    /// Something may have left entries behind.
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
    pub fn sweep(&self, redis: &Redis, entries_max: u32) -> Result<Swept> {
        let mut round = self.sweep.round.lock();
        let left = self.sweep.left.load(Ordering::Relaxed);
        if round.left_at_start.is_none() && round.left_at_last == Some(left) {
            return Ok(Swept { is_done: true, ..Swept::default() });
        }
        round.left_at_start.get_or_insert(left);
        let scan = Scan {
            table: SUBJECTS_TABLE.to_owned(),
            start: round.start.take(),
            limit: Some(entries_max.max(1)),
            ..Scan::default()
        };
        let page = self.db.scan_items(&scan).wait()?;
        let (mut swept, mut expected) = (Swept::default(), Expected::new());
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
                    Indexed::parse(&entry.sk).map(|indexed| indexed.location)
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
        let Some(indexed) = Indexed::parse(&entry.sk) else { return Ok(false) };
        let (Location::Key { db, key } | Location::Member { db, key, .. }) = indexed.location
        else {
            return Ok(false);
        };
        let found = self.keyspace.find(Place::Redis, &key);
        let is_loose = found.is_some_and(|found| {
            matches!(found.pattern.subject, SubjectSource::Field(_) | SubjectSource::Members)
        });
        if !is_loose {
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
            .look(
                db,
                &key,
                &mut |key| {
                    let entries = self.entries_of_key(&key.write);
                    now.borrow_mut().extend(entries.into_iter().flat_map(|(_, entries)| entries));
                },
                // Of what has ended the bytes are still there, and have to be found: its entries go
                // once it is reclaimed.
                |stored| match stored == Stored::Hidden || now.borrow().contains(entry) {
                    true => Ok(false),
                    false => remove(&self.db, entry).map(|()| true).map_err(Stopped::Database),
                },
            )
            .map_err(failed)?;
        expected.insert((db, key), now.into_inner());
        Ok(is_removed)
    }
}

fn entry_of(item: &Item) -> IndexEntry {
    let text = |name| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    IndexEntry { pk: text("pk"), sk: text("sk") }
}

fn remove(db: &Database, entry: &IndexEntry) -> Result<()> {
    let key = Item::new().with("pk", entry.pk.as_str()).with("sk", entry.sk.as_str());
    let delete = DeleteItem { table: SUBJECTS_TABLE.to_owned(), key, ..DeleteItem::default() };
    db.with_durability(Durability::Os).delete_item(&delete).wait().map(drop)
}

/// Why a key was not looked at.
enum Stopped {
    Database(Error),
    Redis(Fault),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Stopped::Redis(fault)
    }
}

fn failed(stopped: Stopped) -> Error {
    match stopped {
        Stopped::Database(error) => error,
        Stopped::Redis(fault) => Error::validation(format!("a key cannot be read: {fault}")),
    }
}
