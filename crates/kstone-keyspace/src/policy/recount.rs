//! Recounts and reindexes everything that is stored: counts it by the patterns in force, and writes
//! missing entries of the index of persons.
//!
//! Due when a database is first governed, when its patterns have changed, and after it was written
//! to without them. Best before the doors open: what is written meanwhile may be counted twice or
//! not at all, and the counts say by how many changes they may be off.

use std::collections::HashMap;

use kstone::ops::{BatchWrite, Scan, WriteRequest};
use kstone::policy::{Counted, IndexEntry, KeySize, PatternId, SUBJECTS_TABLE};
use kstone::table::TtlState;
use kstone::{Durability, Error, Item, ItemBytes, ItemRef, Result, ValueRef};
use kstone_core::KEY_LEN_MAX;
use kstone_redis::{Fault, Redis, SurveyedKey};

use super::Governor;
use super::counts::Tally;
use crate::keyspace::KeyStore;

/// The tables that no pattern is about.
const OWN_PREFIX: &str = "kstone.";
/// How many names of tables are asked for at a time.
const NAMES: usize = 100;
/// What DynamoDB takes at a time.
const BATCH: usize = 25;
/// What DynamoDB still takes for an expiry: one further back is none.
const FIVE_YEARS_S: u64 = 5 * 365 * 86_400;

/// The result of a recount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recount {
    /// Items of declared patterns.
    pub items: u64,
    /// Keys of Redis of declared patterns.
    pub keys: u64,
    /// Items and keys that no pattern declares.
    pub unknown: u64,
    /// Entries of the index of persons that belong to what was found.
    pub entries: u64,
    /// Entries that are not there because their keys are too long for the engine. Such keys are
    /// refused while the patterns are in force, so they are from before.
    pub too_long: u64,
    /// By how many changes the counts may be off, because they came meanwhile.
    pub off_by_changes_max: u64,
}

/// The state of a running recount.
struct RecountPass<'g> {
    governor: &'g Governor,
    tallies: HashMap<(PatternId, u8), Tally>,
    entries: Vec<IndexEntry>,
    done: Recount,
    progress: &'g mut dyn FnMut(&Recount),
}

impl Governor {
    /// Counts everything anew, and indexes it. `progress` hears how far it is, now and then.
    pub fn recount(
        &self,
        redis: Option<&Redis>,
        progress: &mut dyn FnMut(&Recount),
    ) -> Result<Recount> {
        let mut saving = self.saving.lock();
        // What has expired is removed first: readers do not see it, so that it would be missed here
        // and counted off when it goes.
        self.db.run_background()?;
        let before = self.counts.changes();
        let (tallies, entries, done) = Default::default();
        let mut pass = RecountPass { governor: self, tallies, entries, done, progress };
        pass.all_items()?;
        if let Some(redis) = redis {
            pass.all_keys(redis)?;
        }
        pass.write_entries(1)?;
        let mut done = pass.done;
        let mut found = pass.tallies;
        for id in self.counts.ids() {
            found.entry(id).or_default();
        }
        for ((id, db), tally) in found {
            self.counts.set(id, db, tally.figures, tally.expiries);
        }
        done.off_by_changes_max = self.counts.changes() - before;
        self.note_patterns(&mut saving, done.off_by_changes_max)?;
        Ok(done)
    }
}

impl RecountPass<'_> {
    fn all_items(&mut self) -> Result<()> {
        let mut after: Option<String> = None;
        loop {
            let (names, more) = self.governor.db.list_tables(after.as_deref(), NAMES);
            for name in names.iter().filter(|name| !name.starts_with(OWN_PREFIX)) {
                self.table(name)?;
            }
            after = names.last().cloned();
            if !more {
                return Ok(());
            }
        }
    }

    fn table(&mut self, name: &str) -> Result<()> {
        if !self.governor.keyspace.has_patterns_in(KeyStore::Table(name)) {
            return Ok(());
        }
        let description = self.governor.db.describe_table(name)?;
        let attribute = |at: &[kstone::table::KeyAttribute]| at.first().map(|it| it.name.clone());
        let Some(hash) = attribute(&description.spec.key.hash) else { return Ok(()) };
        let range = attribute(&description.spec.key.range);
        let ttl = match description.ttl {
            TtlState::On(attribute) | TtlState::Enabling(attribute) => Some(attribute),
            _ => None,
        };
        let mut start = None;
        loop {
            let scan = Scan { table: name.to_owned(), start, ..Scan::default() };
            let page = self.governor.db.scan_items(&scan).wait()?;
            for item in page.items.unwrap_or_default() {
                let names = Names { hash: &hash, range: range.as_deref(), ttl: ttl.as_deref() };
                self.item(name, names, &item)?;
            }
            start = page.next;
            if start.is_none() {
                return Ok(());
            }
        }
    }

    fn item(&mut self, table: &str, names: Names<'_>, item: &ItemBytes) -> Result<()> {
        let whole = item.as_ref();
        let Some((pk, pk_len)) = whole.get(names.hash).and_then(key_part) else { return Ok(()) };
        let sk = names.range.and_then(|name| whole.get(name)).and_then(key_part);
        let (sk, sk_len) = sk.map_or((None, 0), |(sk, length)| (Some(sk), length));
        let found = self.governor.entries_of(table, &pk, sk.as_deref(), whole);
        let Some((id, entries)) = found else {
            self.done.unknown += 1;
            return Ok(());
        };
        let bytes = (pk_len + sk_len + item.as_slice().len()) as u64;
        let now_ms = self.governor.db.engine().now_ms();
        let expires_at_ms = names.ttl.and_then(|name| expiry_ms(whole, name, now_ms));
        self.add(id, 0, Some(KeySize { bytes, members: 0, expires_at_ms }), (0, 0));
        self.done.items += 1;
        self.index(entries)
    }

    fn all_keys(&mut self, redis: &Redis) -> Result<()> {
        redis.survey(|key| self.key(key).map_err(WalkError::Database)).map_err(
            |failed| match failed {
                WalkError::Database(error) => error,
                WalkError::Redis(fault) => {
                    Error::validation(format!("the keys of Redis cannot be read: {fault}"))
                }
            },
        )
    }

    fn key(&mut self, key: &SurveyedKey<'_>) -> Result<()> {
        let Some((id, entries)) = self.governor.entries_of_key(&key.write) else {
            self.done.unknown += u64::from(key.key_size.is_some());
            return Ok(());
        };
        let (db, members) = (key.write.db, (key.members, key.member_bytes));
        match key.key_size {
            Some(key_size) => {
                self.done.keys += 1;
                self.add(id, db, Some(key_size), members);
            }
            None => self.add(id, db, None, members),
        }
        self.index(entries)
    }

    /// Counts a key, or (without a size) more members of the last one.
    fn add(&mut self, pattern: PatternId, db: u8, after: Option<KeySize>, members: (u32, u64)) {
        let (members_written, member_bytes_written) = members;
        self.tallies.entry((pattern, db)).or_default().add(&Counted {
            pattern,
            db,
            before: None,
            after,
            members_written,
            member_bytes_written,
            is_write: false,
        });
    }

    fn index(&mut self, entries: Vec<IndexEntry>) -> Result<()> {
        let fits = |entry: &IndexEntry| entry.pk.len() + entry.sk.len() <= KEY_LEN_MAX;
        let (fitting, long): (Vec<_>, Vec<_>) = entries.into_iter().partition(fits);
        self.done.entries += fitting.len() as u64;
        self.done.too_long += long.len() as u64;
        self.entries.extend(fitting);
        if (self.done.items + self.done.keys).is_multiple_of(1000) {
            (self.progress)(&self.done);
        }
        self.write_entries(BATCH)
    }

    /// Writes entries once there are so many.
    fn write_entries(&mut self, enough: usize) -> Result<()> {
        while !self.entries.is_empty() && self.entries.len() >= enough {
            let rest = self.entries.split_off(self.entries.len().min(BATCH));
            let mut batch = std::mem::replace(&mut self.entries, rest);
            batch.sort();
            batch.dedup();
            let item = |it: IndexEntry| Item::new().with("pk", it.pk).with("sk", it.sk);
            let puts = batch.into_iter().map(|it| WriteRequest::Put(item(it))).collect();
            let tables = vec![(SUBJECTS_TABLE.to_owned(), puts)];
            let request = BatchWrite { tables, ..BatchWrite::default() };
            self.governor.db.with_durability(Durability::Os).batch_write(&request).wait()?;
        }
        Ok(())
    }
}

/// The error of a walk over Redis keys.
enum WalkError {
    Database(Error),
    Redis(Fault),
}

impl From<Fault> for WalkError {
    fn from(fault: Fault) -> Self {
        WalkError::Redis(fault)
    }
}

/// The attributes of a table with a special meaning: key and TTL.
#[derive(Clone, Copy)]
struct Names<'n> {
    hash: &'n str,
    range: Option<&'n str>,
    ttl: Option<&'n str>,
}

/// A key attribute as a policy reads it, and how many bytes it takes in the engine's key.
fn key_part(value: ValueRef<'_>) -> Option<(Vec<u8>, usize)> {
    match value {
        ValueRef::S(text) => Some((text.as_bytes().to_vec(), text.len())),
        ValueRef::B(bytes) => Some((bytes.to_vec(), bytes.len())),
        ValueRef::N(number) => Some((number.decimal().as_bytes().to_vec(), number.ordered().len())),
        _ => None,
    }
}

/// When an item ends, as its table sees it.
fn expiry_ms(item: ItemRef<'_>, attribute: &str, now_ms: u64) -> Option<u64> {
    let ValueRef::N(second) = item.get(attribute)? else { return None };
    let second = match second.to_i64() {
        Some(second) => u64::try_from(second).ok()?,
        None => second.to_number().to_f64() as u64,
    };
    (second > 0 && second.saturating_add(FIVE_YEARS_S) >= now_ms / 1000)
        .then(|| second.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_its_digits_and_takes_what_the_engine_takes() {
        let number = kstone::Number::from(42);
        let (digits, bytes) = key_part(ValueRef::N(number.as_number_ref())).unwrap();
        assert_eq!(digits, b"42");
        assert_eq!(bytes, number.ordered().len());
        assert_eq!(key_part(ValueRef::Null), None);
    }
}
