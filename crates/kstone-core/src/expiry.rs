//! The expiry index: what expires, ordered by when.
//!
//! Every record with an expiry has an index entry in the same stripe, in a table of its own:
//! `EXPIRY table (4) | expires_at_ms (8, big-endian) | stored key`. It is written with the record
//! and is not logged, because replaying the record writes it again. An overwritten or deleted
//! record leaves its old index entry behind, which the scan for expired records removes.
//!
//! Expiry is exact on read whatever this index says. The index only finds what to reclaim, and
//! reclaiming is a normal delete by the layer above, so that its indexes, counters and streams see
//! it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::batch::WriteBatch;
use crate::engine::locks::StripeGuards;
use crate::engine::write::Durability;
use crate::engine::{Engine, Inner};
use crate::entry::is_expired;
use crate::entry::{EntryRef, Kind, Seq};
use crate::error::Result;
use crate::key::Key;
use crate::key::internal::{self, Decoded};
use crate::stripes::StripeSet;
use crate::sync::{Arc, Mutex};
use crate::table::TableId;
use crate::tree::merge::Merge;

/// So many index entries that point at nothing are removed at a time.
const STALE_MAX: usize = 10_000;

/// A record whose time is over and that still takes room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    /// The table.
    pub table: TableId,
    /// The key.
    pub key: Key,
    /// When it expired.
    pub expires_at_ms: u64,
    /// Its version: the sequence number of the write.
    pub version: Seq,
}

/// When the next record expires, so that who looks when nothing is due need not walk 256 indexes.
///
/// A walk and a write that it does not see meet in the order of the changes to `at_ms`: the walk
/// sets it to "never" before it reads, the write lowers it after it is in the memtable. If the
/// write lowered it first, the walk sees the record; else the lower value is there after the walk.
#[derive(Debug)]
pub(crate) struct NextExpiry {
    /// No record expires earlier; 0 is not known.
    at_ms: AtomicU64,
    /// Held by who walks, and by who asks: during a walk, `at_ms` says nothing.
    walking: Mutex<()>,
}

impl NextExpiry {
    pub(crate) fn unknown() -> Self {
        NextExpiry { at_ms: AtomicU64::new(0), walking: Mutex::new(()) }
    }

    /// There is a record with this expiry now.
    pub(crate) fn lower(&self, at_ms: u64) {
        self.at_ms.fetch_min(at_ms, Ordering::AcqRel);
    }

    /// There may be records with any expiry now.
    pub(crate) fn forget(&self) {
        self.lower(0);
    }
}

impl Engine {
    /// Up to `limit` records that have expired and not been reclaimed, oldest expiry first within
    /// a stripe, starting at stripe `from`; with the stripe to go on with, `None` when the round
    /// is done.
    ///
    /// The layer above reclaims each under [`Engine::lock`] with [`WriteBatch::reclaim`], after
    /// checking with [`Locked::get_even_expired`](crate::Locked::get_even_expired) that it is still
    /// the same version.
    ///
    /// A round that begins at stripe 0 when nothing is due costs next to nothing.
    pub fn expired(&self, from: u8, limit: usize) -> Result<(Vec<Expired>, Option<u8>)> {
        let inner = self.inner();
        inner.make_all_visible();
        let next = &inner.next_expiry;
        let _walking = next.walking.lock();
        if from == 0 && next.at_ms.load(Ordering::Acquire) > inner.clock.now_ms() {
            return Ok((Vec::new(), None));
        }
        next.at_ms.swap(u64::MAX, Ordering::AcqRel);
        let walked = self.walk_expired(from, limit);
        match &walked {
            Ok((_, None, next_ms)) if from == 0 => next.lower(*next_ms),
            _ => next.forget(),
        }
        walked.map(|(found, stripe, _)| (found, stripe))
    }

    /// What [`Engine::expired`] answers, and when the next record of these stripes expires.
    fn walk_expired(&self, from: u8, limit: usize) -> Result<(Vec<Expired>, Option<u8>, u64)> {
        let mut found = Vec::new();
        let mut next_ms = u64::MAX;
        for stripe in from..=255 {
            let left = limit.saturating_sub(found.len());
            next_ms = next_ms.min(self.inner().expired_in(stripe, left, &mut found)?);
            if found.len() >= limit {
                return Ok((found, Some(stripe), next_ms));
            }
        }
        Ok((found, None, next_ms))
    }

    /// When to look for expired records next: no record that is not reclaimed expires earlier. (An
    /// overwritten record counts until [`Engine::expired`] has passed it.)
    pub fn next_expiry_ms(&self) -> Result<Option<u64>> {
        let mut next = None;
        self.inner().make_all_visible();
        for stripe in 0..=255 {
            let mut index = self.inner().expiry_index(stripe)?;
            if let Some((at_ms, _)) = index.next()? {
                next = Some(next.map_or(at_ms, |n: u64| n.min(at_ms)));
            }
        }
        Ok(next)
    }
}

impl WriteBatch {
    /// Deletes an expired record together with its index entry.
    pub fn reclaim(&mut self, expired: &Expired) -> Result<()> {
        self.delete(expired.table, &expired.key)?;
        let stored = internal::encode(expired.table, &expired.key);
        self.unindex(expired.key.stripe(), expired.expires_at_ms, &stored)
    }

    /// Deletes an index entry.
    pub(crate) fn unindex(&mut self, stripe: u8, expires_at_ms: u64, stored: &[u8]) -> Result<()> {
        // The index is no table that a caller may name, so there is none to check: any one will do.
        self.push_delete(stripe, TableId::DEFAULT, &index_key(expires_at_ms, stored))
    }
}

/// The key of a record's index entry.
pub(crate) fn index_key(expires_at_ms: u64, stored: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(12 + stored.len());
    key.extend_from_slice(&TableId::EXPIRY.0.to_be_bytes());
    key.extend_from_slice(&expires_at_ms.to_be_bytes());
    key.extend_from_slice(stored);
    key
}

/// The key of the index entry that goes with an entry, if one does.
pub(crate) fn index_key_of(entry: &EntryRef<'_>) -> Option<Vec<u8>> {
    (entry.kind == Kind::Put && entry.expires_at_ms != 0)
        .then(|| index_key(entry.expires_at_ms, entry.key))
}

/// The index entry that goes with an entry.
pub(crate) fn index_entry<'a>(entry: &EntryRef<'_>, index_key: &'a [u8]) -> EntryRef<'a> {
    let (seq, kind) = (entry.seq, entry.kind);
    EntryRef { key: index_key, seq, kind, expires_at_ms: 0, value: b"" }
}

/// Takes the key of an index entry apart.
pub(crate) fn parse_index_key(key: &[u8]) -> Option<(u64, &[u8])> {
    let (at_ms, stored) = key.get(internal::TABLE_LEN..)?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*at_ms), stored))
}

/// Walks a stripe's index entries in order of expiry, as of now.
pub(crate) struct ExpiryIndex {
    merge: Merge,
    last: Vec<u8>,
}

impl ExpiryIndex {
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        while let Some(entry) = self.merge.entry() {
            let is_newest = entry.key != self.last.as_slice();
            let live = is_newest && entry.kind == Kind::Put;
            self.last.clear();
            self.last.extend_from_slice(entry.key);
            self.merge.next()?;
            if live && let Some((at_ms, stored)) = parse_index_key(&self.last) {
                return Ok(Some((at_ms, stored.to_vec())));
            }
        }
        Ok(None)
    }
}

impl Inner {
    pub(crate) fn expiry_index(&self, stripe: u8) -> Result<ExpiryIndex> {
        let low = internal::table_start(TableId::EXPIRY);
        let mut merge = Merge::new(self.stripe(stripe).version().cursors(&low, None));
        merge.seek(&low, Seq::MAX)?;
        Ok(ExpiryIndex { merge, last: Vec::new() })
    }

    /// Collects expired records of a stripe and removes index entries that point at nothing.
    /// Answers when the next record expires: at once, if one was found or may have been left.
    fn expired_in(
        self: &Arc<Self>,
        stripe: u8,
        limit: usize,
        found: &mut Vec<Expired>,
    ) -> Result<u64> {
        let now_ms = self.clock.now_ms();
        let (mut stale, wanted) = (Vec::new(), found.len() + limit);
        let mut index = self.expiry_index(stripe)?;
        let mut next_ms = u64::MAX;
        while found.len() < wanted && stale.len() < STALE_MAX {
            let Some((at_ms, stored)) = index.next()? else { break };
            next_ms = next_ms.min(at_ms);
            if !is_expired(at_ms, now_ms) {
                break;
            }
            match self.indexed_record(stripe, at_ms, &stored)? {
                Some((table, key, version)) => {
                    found.push(Expired { table, key, expires_at_ms: at_ms, version });
                }
                None => stale.push((at_ms, stored)),
            }
        }
        self.remove_stale(stripe, &stale)?;
        Ok(next_ms)
    }

    /// Removes every index entry of a stripe that points at nothing, whenever that would have
    /// expired: its key holds the key of what was deleted.
    pub(crate) fn remove_all_stale(self: &Arc<Self>, stripe: u8) -> Result<()> {
        self.make_all_visible();
        let mut stale = Vec::new();
        let mut index = self.expiry_index(stripe)?;
        while let Some((at_ms, stored)) = index.next()? {
            if self.indexed_record(stripe, at_ms, &stored)?.is_none() {
                stale.push((at_ms, stored));
            }
            if stale.len() >= STALE_MAX {
                self.remove_stale(stripe, &stale)?;
                stale.clear();
            }
        }
        self.remove_stale(stripe, &stale)
    }

    /// The record that an index entry points at, if it still has that expiry.
    fn indexed_record(
        &self,
        stripe: u8,
        at_ms: u64,
        stored: &[u8],
    ) -> Result<Option<(TableId, Key, Seq)>> {
        let Some((table, Decoded::Record(key))) = internal::decode(stored) else { return Ok(None) };
        if !self.tables().visible_at(table, Seq::MAX) {
            return Ok(None);
        }
        // At time 0 nothing has expired: this asks for the record itself.
        let hit = self.stripe(stripe).version().get(stored, Seq::MAX, || 0)?;
        Ok(hit.filter(|hit| hit.expires_at_ms == at_ms).map(|hit| (table, key, hit.seq)))
    }

    /// Removes index entries that point at nothing, after looking again under the stripe's lock: a
    /// write may just have given the record this very expiry.
    fn remove_stale(self: &Arc<Self>, stripe: u8, stale: &[(u64, Vec<u8>)]) -> Result<()> {
        if stale.is_empty() {
            return Ok(());
        }
        let stripes: StripeSet = [stripe].into_iter().collect();
        self.admit(0, &stripes)?;
        let guards = StripeGuards::lock(self, &stripes);
        let mut batch = WriteBatch::new();
        let mut left = stale;
        while let [(at_ms, stored), rest @ ..] = left
            && batch.encoded_len() <= 8 << 20
        {
            if self.indexed_record(stripe, *at_ms, stored)?.is_none() {
                batch.unindex(stripe, *at_ms, stored)?;
            }
            left = rest;
        }
        self.commit(&batch, Durability::Os, guards)?.wait()?;
        // Keys may be so long that a commit holds only some of them.
        self.remove_stale(stripe, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Env, ManualClock};
    use crate::maintenance::ingest::IngestRecord;
    use crate::options::Options;
    use std::collections::BTreeMap;

    const T: TableId = TableId::DEFAULT;

    struct Fixture {
        engine: Engine,
        clock: Arc<ManualClock>,
    }

    impl Fixture {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::at(1_000));
            let env = Env { clock: Arc::clone(&clock) as _, threads: None, ..Env::memory() };
            Fixture { engine: Engine::open_with(env, "db", Options::default()).unwrap(), clock }
        }

        fn put(&self, key: &str, expires_at_ms: Option<u64>) {
            let (mut batch, key) = (WriteBatch::new(), Key::new(key.to_owned()));
            match expires_at_ms {
                Some(at_ms) => batch.put_expiring(T, &key, b"v", at_ms).unwrap(),
                None => batch.put(T, &key, b"v").unwrap(),
            }
            self.engine.write(&batch, Durability::Os).unwrap().wait().unwrap();
        }

        fn expired(&self) -> Vec<(String, u64)> {
            let (found, next) = self.engine.expired(0, 1000).unwrap();
            assert_eq!(next, None);
            let name = |key: &Key| String::from_utf8(key.pk.to_vec()).unwrap();
            let mut found: Vec<_> = found.iter().map(|e| (name(&e.key), e.expires_at_ms)).collect();
            found.sort_unstable();
            found
        }

        fn reclaim(&self) {
            for expired in self.engine.expired(0, 1000).unwrap().0 {
                let locked = self.engine.lock([&expired.key]).unwrap();
                let mut batch = WriteBatch::new();
                batch.reclaim(&expired).unwrap();
                locked.commit(&batch, Durability::Os).unwrap().wait().unwrap();
            }
        }
    }

    #[test]
    fn who_counts_what_is_stored_sees_what_has_expired_until_it_is_reclaimed() {
        let world = Fixture::new();
        world.put("a", None);
        world.put("b", Some(2_000));
        world.clock.advance(1_000);
        let count =
            |snapshot: crate::Snapshot| snapshot.scan(T, crate::ScanCursor::start()).count();
        assert_eq!(count(world.engine.snapshot()), 1);
        assert_eq!(count(world.engine.snapshot_even_expired()), 2);
        world.reclaim();
        assert_eq!(count(world.engine.snapshot_even_expired()), 1);
    }

    #[test]
    fn a_look_when_nothing_is_due_reads_nothing() {
        let world = Fixture::new();
        for n in 0..500 {
            world.put(&format!("{n}"), Some(9_000 + n));
        }
        world.engine.flush().unwrap();
        let reads = || {
            let stats = world.engine.stats();
            stats.cache_hits + stats.cache_misses
        };
        let before_first = reads();
        assert_eq!(world.expired(), []);
        let after_first = reads();
        assert!(after_first > before_first, "the first look walks the index");
        assert_eq!(world.expired(), []);
        assert_eq!(reads(), after_first);
        world.clock.set(9_000);
        assert_eq!(world.expired(), [("0".to_owned(), 9_000)]);
        assert_eq!(world.expired().len(), 1, "it is found until it is reclaimed");
        world.reclaim();
        assert_eq!(world.expired(), []);
    }

    #[test]
    fn what_expires_sooner_than_everything_before_it_is_found_on_time() {
        let world = Fixture::new();
        world.put("late", Some(50_000));
        assert_eq!(world.expired(), []);
        world.put("soon", Some(2_000));
        let record = IngestRecord {
            table: T,
            key: Key::new("ingested"),
            value: "v".into(),
            expires_at_ms: Some(3_000),
        };
        world.clock.set(2_000);
        assert_eq!(world.expired(), [("soon".to_owned(), 2_000)]);
        world.reclaim();
        assert_eq!(world.expired(), []);
        world.engine.ingest([Ok(record)]).unwrap();
        world.clock.set(3_000);
        assert_eq!(world.expired(), [("ingested".to_owned(), 3_000)]);
    }

    #[test]
    fn every_look_finds_exactly_what_has_expired_whatever_was_written_between() {
        let world = Fixture::new();
        let mut model: BTreeMap<String, Option<u64>> = BTreeMap::new();
        let mut dice = 7_u64;
        let mut roll = |sides: u64| {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        let mut now_ms = 1_000;
        for _ in 0..3_000 {
            let key = format!("{}", roll(40));
            match roll(8) {
                0..4 => {
                    let at_ms = (roll(4) > 0).then(|| now_ms + roll(60));
                    world.put(&key, at_ms);
                    model.insert(key, at_ms);
                }
                4 | 5 => {
                    now_ms += roll(20);
                    world.clock.set(now_ms);
                }
                6 => {
                    world.reclaim();
                    model.retain(|_, at_ms| at_ms.is_none_or(|at_ms| at_ms > now_ms));
                }
                _ => {
                    let due =
                        model.iter().filter_map(|(key, at_ms)| Some((key.clone(), (*at_ms)?)));
                    let due: Vec<_> = due.filter(|(_, at_ms)| *at_ms <= now_ms).collect();
                    assert_eq!(world.expired(), due);
                }
            }
        }
    }
}
