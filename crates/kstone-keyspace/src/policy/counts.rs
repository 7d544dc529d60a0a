//! Counts keys, bytes and writes of each pattern with each commit, so that metrics need no scan.
//!
//! What is counted together is one pattern in one database of Redis, or in one table: so a database
//! that is emptied and a table that is dropped take their counts with them. Each such tally has a
//! lock of its own, held for some additions. A write that leaves a key as large as it was, to end in
//! the same five minutes, is only one more write: that is added beside the lock, and taken in by
//! whoever has it next.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kstone::policy::{Counted, KeySize, PatternId};
use kstone_core::sync::{Mutex, MutexGuard, RwLock};

use super::expiring::{Expiries, bucket_of};
use super::metrics::PatternMetrics;
use crate::keyspace::Keyspace;
use crate::pattern::Store;
use crate::segment::Segment;

/// How long a burst of writes is felt in [`PatternMetrics::writes_per_second`].
const RATE_OVER_MS: f64 = 60_000.0;

/// The counts of one pattern in one Redis database or table.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) figures: Figures,
    pub(super) expiries: Expiries,
    rate: Rate,
    pub(super) is_changed: bool,
    /// How many changes were counted here since the start.
    changes: u64,
}

/// The counters of a tally.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) keys: i64,
    pub(super) bytes: i64,
    pub(super) members: i64,
    pub(super) members_written: u64,
    pub(super) member_bytes_written: u64,
    pub(super) writes: u64,
}

/// An exponential moving average, updated when it is read.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    per_second: f64,
    writes: u64,
    at_ms: u64,
}

/// The tallies of one pattern.
#[derive(Debug)]
struct Slot {
    pattern: u32,
    /// The table, of a pattern of items.
    table: Option<String>,
    /// Of items, or of the first database of Redis.
    first: Mutex<Tally>,
    /// Writes that belong to the first and changed no other figure.
    same: AtomicU64,
    /// Of the other databases of Redis.
    others: Mutex<BTreeMap<u8, Tally>>,
}

/// Tallies by table, for patterns whose table names have a placeholder. Each is made when its table
/// is first written to.
#[derive(Debug, Default)]
struct TalliesByTable {
    slots: Vec<Arc<Slot>>,
    ids: HashMap<String, Vec<(u32, u32)>>,
}

/// All tallies.
#[derive(Debug)]
pub(super) struct Counts {
    slots: Vec<Slot>,
    /// Whether a pattern's tables have a placeholder in their names.
    is_varied: Vec<bool>,
    varied: RwLock<TalliesByTable>,
    started_ms: u64,
}

impl Slot {
    fn new(pattern: u32, table: Option<String>, now_ms: u64) -> Slot {
        let first = Mutex::new(Tally::new(now_ms));
        Slot { pattern, table, first, same: AtomicU64::new(0), others: Mutex::default() }
    }

    fn first(&self) -> MutexGuard<'_, Tally> {
        let mut first = self.first.lock();
        if self.same.load(Ordering::Relaxed) > 0 {
            first.add_same(self.same.swap(0, Ordering::Relaxed));
        }
        first
    }

    fn add(&self, change: &Counted, now_ms: u64) {
        match change.db == 0 && is_same(change) {
            true => drop(self.same.fetch_add(1, Ordering::Relaxed)),
            false => self.on(change.db, now_ms, |tally| tally.add(change)),
        }
    }

    fn on<T>(&self, db: u8, now_ms: u64, work: impl FnOnce(&mut Tally) -> T) -> T {
        match db {
            0 => work(&mut self.first()),
            db => work(self.others.lock().entry(db).or_insert_with(|| Tally::new(now_ms))),
        }
    }
}

impl Counts {
    pub(super) fn new(keyspace: &Keyspace, now_ms: u64) -> Counts {
        let mut is_varied = Vec::new();
        let mut slots = Vec::new();
        for (index, pattern) in (0..).zip(keyspace.patterns()) {
            let table = match &pattern.store {
                Store::Redis => None,
                Store::Table(name) => Some(name),
            };
            is_varied.push(matches!(table, Some(Segment::Slot(_))));
            slots.push(Slot::new(index, table.map(ToString::to_string), now_ms));
        }
        Counts { slots, is_varied, varied: RwLock::default(), started_ms: now_ms }
    }

    /// Under which number an item of a pattern is counted.
    pub(super) fn id_of_item(&self, pattern: u32, table: &str) -> PatternId {
        if !self.is_varied.get(pattern as usize).is_some_and(|it| *it) {
            return PatternId(pattern);
        }
        let known = |ids: &HashMap<String, Vec<(u32, u32)>>| {
            let of_table = ids.get(table)?;
            of_table.iter().find(|(it, _)| *it == pattern).map(|(_, id)| PatternId(*id))
        };
        if let Some(id) = known(&self.varied.read().ids) {
            return id;
        }
        let mut varied = self.varied.write();
        if let Some(id) = known(&varied.ids) {
            return id;
        }
        let id = (self.slots.len() + varied.slots.len()) as u32;
        let slot = Slot::new(pattern, Some(table.to_owned()), self.started_ms);
        varied.slots.push(Arc::new(slot));
        varied.ids.entry(table.to_owned()).or_default().push((pattern, id));
        PatternId(id)
    }

    fn slot<T>(&self, id: PatternId, work: impl FnOnce(&Slot) -> T) -> Option<T> {
        let at = id.0 as usize;
        match self.slots.get(at) {
            Some(slot) => Some(work(slot)),
            None => self.varied.read().slots.get(at - self.slots.len()).map(|slot| work(slot)),
        }
    }

    fn on<T>(&self, id: PatternId, db: u8, work: impl FnOnce(&mut Tally) -> T) -> Option<T> {
        self.slot(id, |slot| slot.on(db, self.started_ms, work))
    }

    pub(super) fn add(&self, changes: &[Counted]) {
        for change in changes {
            self.slot(change.pattern, |slot| slot.add(change, self.started_ms));
        }
    }

    /// How many changes were counted since the start. Each tally counts its own: a single shared
    /// counter would be contended by every write.
    pub(super) fn changes(&self) -> u64 {
        let varied = self.varied.read();
        let all = self.slots.iter().chain(varied.slots.iter().map(|slot| &**slot));
        let of_others = |slot: &Slot| slot.others.lock().values().map(|it| it.changes).sum::<u64>();
        all.map(|slot| slot.first().changes + of_others(slot)).sum()
    }

    /// All tallies that there are.
    pub(super) fn ids(&self) -> Vec<(PatternId, u8)> {
        let varied = self.varied.read();
        let all = self.slots.iter().chain(varied.slots.iter().map(|slot| &**slot));
        let mut ids = Vec::new();
        for (id, slot) in (0..).map(PatternId).zip(all) {
            ids.push((id, 0));
            ids.extend(slot.others.lock().keys().map(|db| (id, *db)));
        }
        ids
    }

    /// Sets a tally to what was found by counting anew, or to what was kept.
    pub(super) fn set(&self, id: PatternId, db: u8, figures: Figures, expiries: Expiries) {
        self.on(id, db, |tally| {
            let is_nothing =
                |figures: &Figures| Figures { writes: 0, ..*figures } == Figures::default();
            if is_nothing(&figures) && is_nothing(&tally.figures) {
                return;
            }
            let old = std::mem::replace(&mut tally.expiries, expiries);
            tally.expiries.touch();
            tally.expiries.forget(&old);
            // How often they were written cannot be seen in what is there.
            tally.figures = Figures { writes: tally.figures.writes, ..figures };
            tally.is_changed = true;
        });
    }

    /// Restores a tally from its stored counts.
    pub(super) fn load(&self, id: PatternId, db: u8, work: impl FnOnce(&mut Tally)) {
        self.on(id, db, |tally| {
            work(tally);
            tally.rate.writes = tally.figures.writes;
            tally.is_changed = false;
        });
    }

    pub(super) fn clear_db(&self, db: u8) {
        for slot in self.slots.iter().filter(|slot| slot.table.is_none()) {
            slot.on(db, self.started_ms, Tally::clear);
        }
    }

    pub(super) fn swap_dbs(&self, one: u8, other: u8) {
        if one == other {
            return;
        }
        for slot in self.slots.iter().filter(|slot| slot.table.is_none()) {
            let mut first = slot.first();
            let mut others = slot.others.lock();
            let mut take = |db: u8| match db {
                0 => std::mem::replace(&mut *first, Tally::new(self.started_ms)),
                db => others.remove(&db).unwrap_or_else(|| Tally::new(self.started_ms)),
            };
            let (mut a, mut b) = (take(one), take(other));
            // What was kept of the one is not right for the other.
            let (days_a, days_b) = (a.expiries.clone(), b.expiries.clone());
            a.expiries.touch();
            b.expiries.touch();
            a.expiries.forget(&days_b);
            b.expiries.forget(&days_a);
            (a.is_changed, b.is_changed) = (true, true);
            for (db, tally) in [(one, b), (other, a)] {
                match db {
                    0 => *first = tally,
                    db => drop(others.insert(db, tally)),
                }
            }
        }
    }

    pub(super) fn clear_table(&self, table: &str, is_of: impl Fn(u32) -> bool) {
        for slot in self.slots.iter().filter(|slot| is_of(slot.pattern)) {
            if slot.table.as_deref() == Some(table) {
                slot.on(0, self.started_ms, Tally::clear);
            }
        }
        for slot in self.varied.read().slots.iter() {
            if slot.table.as_deref() == Some(table) {
                slot.on(0, self.started_ms, Tally::clear);
            }
        }
    }

    /// Calls `show` with every tally, its pattern and its scope.
    pub(super) fn each(&self, mut show: impl FnMut(u32, TallyScope<'_>, &mut Tally)) {
        let varied = self.varied.read();
        // A pattern whose tables are many is counted in each of them.
        let single = self.slots.iter().zip(&self.is_varied).filter(|(_, is_varied)| !**is_varied);
        let all = single.map(|(slot, _)| slot).chain(varied.slots.iter().map(|slot| &**slot));
        for slot in all {
            match &slot.table {
                Some(table) => {
                    show(slot.pattern, TallyScope::Table(table), &mut slot.first());
                }
                None => {
                    show(slot.pattern, TallyScope::Db(0), &mut slot.first());
                    for (db, tally) in slot.others.lock().iter_mut() {
                        show(slot.pattern, TallyScope::Db(*db), tally);
                    }
                }
            }
        }
    }

    /// What there is.
    pub(super) fn metrics(&self, keyspace: &Keyspace, now_ms: u64) -> Vec<PatternMetrics> {
        let mut metrics = Vec::new();
        self.each(|pattern, place, tally| {
            let is_idle = tally.figures == Figures::default();
            if matches!(place, TallyScope::Db(1..)) && is_idle {
                return;
            }
            let Some(pattern) = keyspace.patterns().get(pattern as usize) else { return };
            let positive = |number: i64| u64::try_from(number).unwrap_or(0);
            let Figures { keys, bytes, members, members_written, member_bytes_written, writes } =
                tally.figures;
            let member_bytes = match members_written {
                0 => 0,
                written => {
                    u128::from(positive(members)) * u128::from(member_bytes_written)
                        / u128::from(written)
                }
            };
            metrics.push(PatternMetrics {
                pattern: pattern.full_name(),
                metric: pattern.metric.clone(),
                place: place.to_string(),
                keys: positive(keys).saturating_sub(tally.expiries.over(now_ms)),
                bytes: positive(bytes) + u64::try_from(member_bytes).unwrap_or(u64::MAX),
                bytes_are_estimated: pattern.value_type.has_members(),
                members: positive(members),
                expiring_next_hour: tally.expiries.next_hour(now_ms),
                writes,
                writes_per_second: tally.rate.at(now_ms, writes),
            });
        });
        metrics
    }
}

/// The Redis database or table that a tally counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TallyScope<'w> {
    Db(u8),
    Table(&'w str),
}

impl std::fmt::Display for TallyScope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TallyScope::Db(db) => write!(f, "db {db}"),
            TallyScope::Table(table) => write!(f, "table {table}"),
        }
    }
}

impl Tally {
    fn new(now_ms: u64) -> Tally {
        Tally { rate: Rate { at_ms: now_ms, ..Rate::default() }, ..Tally::default() }
    }

    pub(super) fn add(&mut self, change: &Counted) {
        let Counted { before, after, members_written, member_bytes_written, .. } = *change;
        let figures = &mut self.figures;
        figures.keys += i64::from(after.is_some()) - i64::from(before.is_some());
        let of = |it: Option<KeySize>, figure: fn(KeySize) -> u64| it.map_or(0, figure) as i64;
        figures.bytes += of(after, |it| it.bytes) - of(before, |it| it.bytes);
        figures.members += of(after, |it| it.members) - of(before, |it| it.members);
        figures.members_written += u64::from(members_written);
        figures.member_bytes_written += member_bytes_written;
        figures.writes += u64::from(change.is_write);
        let end = |it: Option<KeySize>| it.and_then(|it| it.expires_at_ms);
        if end(before) != end(after) {
            if let Some(at_ms) = end(before) {
                self.expiries.add(at_ms, -1);
            }
            if let Some(at_ms) = end(after) {
                self.expiries.add(at_ms, 1);
            }
        }
        self.is_changed = true;
        self.changes += 1;
    }

    /// Adds writes that changed no other counter.
    fn add_same(&mut self, writes: u64) {
        self.figures.writes += writes;
        self.changes += writes;
        self.is_changed = true;
    }

    /// Resets the counts of keys, but not those of writes.
    fn clear(&mut self) {
        let writes = self.figures.writes;
        self.figures = Figures { writes, ..Figures::default() };
        let old = std::mem::take(&mut self.expiries);
        self.expiries.forget(&old);
        self.is_changed = true;
    }
}

/// Whether a change only counts as a write and changes no other counter.
fn is_same(change: &Counted) -> bool {
    let Counted { before: Some(before), after: Some(after), is_write: true, .. } = change else {
        return false;
    };
    before.bytes == after.bytes
        && before.members == after.members
        && change.members_written == 0
        && change.member_bytes_written == 0
        && before.expires_at_ms.map(bucket_of) == after.expires_at_ms.map(bucket_of)
}

impl Rate {
    /// The mean up to now.
    fn at(&mut self, now_ms: u64, writes: u64) -> f64 {
        let passed_ms = now_ms.saturating_sub(self.at_ms) as f64;
        if passed_ms > 0.0 {
            let since = writes.saturating_sub(self.writes) as f64 / passed_ms * 1000.0;
            let weight = 1.0 - (-passed_ms / RATE_OVER_MS).exp();
            self.per_second += (since - self.per_second) * weight;
            (self.writes, self.at_ms) = (writes, now_ms);
        }
        self.per_second
    }
}

impl Tally {
    /// Brings the mean up to date, so that it does not take in too long a time at once.
    pub(super) fn tick(&mut self, now_ms: u64) {
        self.rate.at(now_ms, self.figures.writes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_size(bytes: u64, expires_at_ms: Option<u64>) -> Option<KeySize> {
        Some(KeySize { bytes, members: 0, expires_at_ms })
    }

    fn change(before: Option<KeySize>, after: Option<KeySize>) -> Counted {
        Counted {
            pattern: PatternId(0),
            db: 0,
            before,
            after,
            members_written: 0,
            member_bytes_written: 0,
            is_write: true,
        }
    }

    #[test]
    fn a_key_is_counted_once_however_often_it_is_written() {
        let mut tally = Tally::new(0);
        tally.add(&change(None, key_size(10, Some(5))));
        tally.add(&change(key_size(10, Some(5)), key_size(30, Some(900_000))));
        assert_eq!((tally.figures.keys, tally.figures.bytes, tally.figures.writes), (1, 30, 2));
        assert_eq!(tally.expiries.next_hour(0).at_least, 1);
        tally.add(&change(key_size(30, Some(900_000)), None));
        assert_eq!((tally.figures.keys, tally.figures.bytes), (0, 0));
        assert_eq!(tally.expiries.next_hour(0).at_most, 0);
    }

    #[test]
    fn a_write_that_changes_no_figure_is_counted_like_any_other() {
        let slot = Slot::new(0, None, 0);
        let end = |minutes: u64| Some(minutes * 60_000);
        slot.add(&change(None, key_size(10, end(6))), 0);
        let changes = [
            change(key_size(10, end(6)), key_size(10, end(9))),
            change(key_size(10, end(9)), key_size(11, end(9))),
            change(key_size(11, end(9)), key_size(11, end(11))),
            change(key_size(11, end(11)), key_size(11, None)),
            change(key_size(11, None), key_size(11, None)),
        ];
        let quick: Vec<bool> = changes.iter().map(is_same).collect();
        assert_eq!(quick, [true, false, false, false, true]);
        for (n, change) in (2..).zip(&changes) {
            slot.add(change, 0);
            let tally = slot.first();
            assert_eq!((tally.figures.keys, tally.figures.writes, tally.changes), (1, n, n));
        }
        let tally = slot.first();
        assert_eq!(tally.figures.bytes, 11);
        assert_eq!(tally.expiries.next_hour(0), super::super::expiring::Expiring::default());
        let ended = Counted { is_write: false, ..change(key_size(1, None), key_size(1, None)) };
        assert!(!is_same(&ended));
        let member = Counted { members_written: 1, ..change(key_size(1, None), key_size(1, None)) };
        assert!(!is_same(&member));
    }

    #[test]
    fn the_mean_of_writes_follows_within_minutes() {
        let mut rate = Rate::default();
        let mut writes = 0;
        for second in 1..=300_u64 {
            writes += 50;
            rate.at(second * 1000, writes);
        }
        assert!((rate.per_second - 50.0).abs() < 1.0, "{}", rate.per_second);
        assert!(rate.at(600_000, writes) < 1.0);
    }
}
