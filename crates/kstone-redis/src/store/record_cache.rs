//! A cache of the records that were used lately: a key that is used again and again is found by one
//! hash instead of a walk through the engine's trees. One such cache has the heads of keys, another
//! the parts that are looked up by name: members of sets and fields of hashes.
//!
//! The engine stays the truth. What is kept here for a record is exactly what the engine has for
//! it, or that it has nothing; every reader and writer of a key has it locked, so nobody sees one
//! without the other:
//! - What was found in the engine is kept.
//! - What a commit has written to the engine takes the place of what was kept, before the keys are
//!   unlocked.
//! - A commit that drops all parts of a key makes those that are kept doubtful: they are found by
//!   name only, and there may be a million. What is doubtful counts as not known.
//!
//! Records are kept by table, and a database that is emptied gets another table: what was kept for
//! the old one is never found again, and makes room like everything that is not used for long.
//!
//! As long as nothing had to make room since a table was made, all its records are here: what is
//! not found here does not exist, and the engine is not asked.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bytes::Bytes;
use hashbrown::DefaultHashBuilder;
use kstone_core::sync::Mutex;
use kstone_core::{KeyRef, TableId, prefetch};

/// Shards that records are spread over, each with its own lock.
const SHARDS: usize = 64;
/// Keys share so many counters of how often all their parts were dropped.
const DROPS: usize = 4096;
/// What keeping a record costs beside its own bytes: its entry, its bucket, what an allocation
/// takes; each with the room for growth.
const ENTRY_BYTES: usize = 80;
/// Key and value together are kept up to this length: a copy of what is longer saves little.
const RECORD_LEN_MAX: usize = 4096;
/// Most tables that are known to be whole.
const WHOLE_MAX: usize = 16;
/// Bytes of a record that are prefetched.
const SOON_LEN: usize = 192;
/// What a record without a sort key has as its length.
const NO_SK: u32 = u32::MAX;

/// What is known of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownRecord {
    /// The value as the engine has it; `None` if the engine has none.
    pub(crate) value: Option<Bytes>,
    pub(crate) expires_at_ms: Option<u64>,
    /// What was noted with it; 0 if nothing was.
    pub(crate) mark: u32,
}

impl KnownRecord {
    const NOTHING: KnownRecord = KnownRecord { value: None, expires_at_ms: None, mark: 0 };
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RecordCache {
    hasher: DefaultHashBuilder,
    shards: Vec<Mutex<Shard>>,
    drops: Vec<AtomicU32>,
    bytes_max: AtomicUsize,
}

#[derive(Debug, Default)]
struct Shard {
    /// Where in `entries` each record is: half of its hash, and its place plus one, at the first
    /// free bucket from where the hash says. A power of two of them, or none; free ones are 0.
    buckets: Vec<u64>,
    entries: Vec<Entry>,
    /// Where the next one that makes room is looked for.
    hand: usize,
    bytes: usize,
    /// Tables all of whose records that belong here are here.
    whole: Vec<TableId>,
}

/// What an entry knows of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// This is its value.
    Value,
    /// There is none.
    Nothing,
    /// Nothing: the engine has to be asked.
    Unknown,
}

#[derive(Debug)]
struct Entry {
    /// Partition key, sort key, and the value behind them.
    record: Box<[u8]>,
    /// 0 for never.
    expires_at_ms: u64,
    table: TableId,
    pk_len: u32,
    sk_len: u32,
    /// The half of the hash that the bucket has.
    tag: u32,
    /// How often all parts of the key had been dropped.
    drops: u32,
    /// What the transaction that wrote it noted with it.
    mark: u32,
    presence: Presence,
    /// Somebody asked for it since the hand passed.
    is_used: bool,
}

impl Entry {
    fn is(&self, table: TableId, key: KeyRef<'_>) -> bool {
        self.table == table
            && self.pk_len as usize == key.pk.len()
            && self.sk_len == key.sk.map_or(NO_SK, |sk| sk.len() as u32)
            && self.record.starts_with(key.pk)
            && key.sk.is_none_or(|sk| {
                self.record.get(key.pk.len()..).is_some_and(|rest| rest.starts_with(sk))
            })
    }

    fn bytes(&self) -> usize {
        self.record.len() + ENTRY_BYTES
    }
}

/// A record's hash: which shard, and which bucket in it.
#[derive(Debug, Clone, Copy)]
struct Hash(u64);

impl Hash {
    fn shard(self) -> usize {
        (self.0 >> 32) as usize % SHARDS
    }

    fn tag(self) -> u32 {
        self.0 as u32
    }
}

fn key_len(key: KeyRef<'_>) -> usize {
    key.pk.len() + key.sk.map_or(0, <[u8]>::len)
}

impl RecordCache {
    /// With so much memory.
    pub(crate) fn new(bytes_max: usize) -> RecordCache {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let drops = (0..DROPS).map(|_| AtomicU32::new(0)).collect();
        let bytes_max = AtomicUsize::new(bytes_max);
        RecordCache { hasher: DefaultHashBuilder::default(), shards, drops, bytes_max }
    }

    /// From now on with so much memory. What is too much goes when something is kept next.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// How many are kept, and what memory they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        let sizes = self.shards.iter().map(|shard| {
            let shard = shard.lock();
            (shard.entries.len(), shard.bytes)
        });
        sizes.fold((0, 0), |(count, sum), (len, bytes)| (count + len, sum + bytes))
    }

    #[inline]
    fn hash(&self, table: TableId, key: KeyRef<'_>) -> Hash {
        Hash(self.hasher.hash_one((table.0, key.pk, key.sk)))
    }

    #[inline]
    fn shard(&self, hash: Hash) -> &Mutex<Shard> {
        #[expect(clippy::indexing_slicing, reason = "so many shards there are")]
        &self.shards[hash.shard()]
    }

    /// How often all parts of a key were dropped, or of another key that shares the counter.
    fn drops(&self, table: TableId, pk: &[u8]) -> &AtomicU32 {
        #[expect(clippy::indexing_slicing, reason = "so many counters there are")]
        &self.drops[self.hasher.hash_one((table.0, pk)) as usize % DROPS]
    }

    /// What a record of this key has to say to be believed.
    fn drops_so_far(&self, table: TableId, key: KeyRef<'_>) -> u32 {
        // The caller that drops a key's parts writes its head.
        key.sk.map_or(0, |_| self.drops(table, key.pk).load(Ordering::Acquire))
    }

    /// These records are about to be asked for: fetches what is kept of them from memory, for all
    /// of them at once. Each is in four places that lie far apart, and each place says where the
    /// next one is; one record after the other would wait four times for each.
    pub(crate) fn warm<'k>(&self, table: TableId, keys: impl Iterator<Item = KeyRef<'k>>) {
        let hashes: Vec<Hash> = keys.map(|key| self.hash(table, key)).collect();
        for hash in &hashes {
            let shard = self.shard(*hash).lock();
            if let Some(bucket) = shard.buckets.get(shard.home(hash.tag())) {
                prefetch::soon(bucket);
            }
        }
        for hash in &hashes {
            let shard = self.shard(*hash).lock();
            if let Some(entry) = shard.likely(hash.tag()) {
                prefetch::soon(entry);
            }
        }
        for hash in &hashes {
            let shard = self.shard(*hash).lock();
            if let Some(entry) = shard.likely(hash.tag()) {
                prefetch::bytes_soon(&entry.record, SOON_LEN);
            }
        }
    }

    /// A table was just made, and is empty.
    pub(crate) fn begin(&self, table: TableId) {
        for shard in &self.shards {
            shard.lock().begin(table);
        }
    }

    /// Records of a table may be written from now on that are not told here.
    pub(crate) fn lose_sight_of(&self, table: TableId) {
        for shard in &self.shards {
            shard.lock().is_not_whole(table);
        }
    }

    /// What is known of a record.
    pub(crate) fn get(&self, table: TableId, key: KeyRef<'_>) -> Option<KnownRecord> {
        let drops = self.drops_so_far(table, key);
        let hash = self.hash(table, key);
        let mut shard = self.shard(hash).lock();
        let Some((_, at)) = shard.find(hash.tag(), table, key) else {
            return shard.is_whole(table).then_some(KnownRecord::NOTHING);
        };
        let entry = shard.entries.get_mut(at)?;
        if entry.drops != drops {
            return None;
        }
        entry.is_used = true;
        match entry.presence {
            Presence::Nothing => Some(KnownRecord::NOTHING),
            Presence::Unknown => None,
            Presence::Value => {
                let value = entry.record.get(key_len(key)..).unwrap_or_default();
                Some(KnownRecord {
                    value: Some(Bytes::copy_from_slice(value)),
                    expires_at_ms: Some(entry.expires_at_ms).filter(|at_ms| *at_ms != 0),
                    mark: entry.mark,
                })
            }
        }
    }

    /// Keeps what the engine has for a record.
    pub(crate) fn keep(
        &self,
        table: TableId,
        key: KeyRef<'_>,
        value: Option<&[u8]>,
        expires_at_ms: Option<u64>,
    ) {
        self.keep_marked(table, key, value, expires_at_ms, 0);
    }

    /// The same, with a mark that a lookup of the record returns.
    pub(crate) fn keep_marked(
        &self,
        table: TableId,
        key: KeyRef<'_>,
        value: Option<&[u8]>,
        expires_at_ms: Option<u64>,
        mark: u32,
    ) {
        let presence = match value {
            None => Presence::Nothing,
            Some(value) if key_len(key) + value.len() > RECORD_LEN_MAX => Presence::Unknown,
            Some(_) => Presence::Value,
        };
        let value = value.filter(|_| presence == Presence::Value).unwrap_or_default();
        self.note(table, key, presence, value, expires_at_ms.unwrap_or(0), mark);
    }

    /// Nothing is known of a record any more.
    pub(crate) fn forget(&self, table: TableId, key: KeyRef<'_>) {
        self.note(table, key, Presence::Unknown, &[], 0, 0);
    }

    /// All parts of a key were dropped, or may have been.
    pub(crate) fn dropped(&self, table: TableId, pk: &[u8]) {
        self.drops(table, pk).fetch_add(1, Ordering::Release);
    }

    fn note(
        &self,
        table: TableId,
        key: KeyRef<'_>,
        presence: Presence,
        value: &[u8],
        expires_at_ms: u64,
        mark: u32,
    ) {
        let bytes_max = self.bytes_max.load(Ordering::Relaxed) / SHARDS;
        let drops = self.drops_so_far(table, key);
        let hash = self.hash(table, key);
        let mut shard = self.shard(hash).lock();
        let found = shard.find(hash.tag(), table, key);
        // What need not be said: that something is not there where all is that is there, and that
        // nothing is known where something may be known of what is not here.
        let is_said = match presence {
            Presence::Value => false,
            Presence::Nothing => shard.is_whole(table),
            Presence::Unknown => !shard.is_whole(table),
        };
        match found {
            Some((bucket, at)) if is_said => shard.remove(bucket, at),
            None if is_said => {}
            Some((_, at)) => {
                if let Some(entry) = shard.entries.get_mut(at) {
                    let before = entry.bytes();
                    entry.set_value(key_len(key), value);
                    (entry.presence, entry.expires_at_ms) = (presence, expires_at_ms);
                    (entry.drops, entry.mark, entry.is_used) = (drops, mark, true);
                    let after = entry.bytes();
                    shard.bytes = shard.bytes + after - before;
                }
            }
            None => {
                let (pk, sk) = (key.pk, key.sk.unwrap_or_default());
                let record = [pk, sk, value].concat().into_boxed_slice();
                let pk_len = pk.len() as u32;
                let sk_len = key.sk.map_or(NO_SK, |sk| sk.len() as u32);
                let (tag, is_used) = (hash.tag(), false);
                shard.add(Entry {
                    record,
                    expires_at_ms,
                    table,
                    pk_len,
                    sk_len,
                    tag,
                    drops,
                    mark,
                    presence,
                    is_used,
                });
            }
        }
        if shard.bytes > bytes_max {
            shard.make_room(bytes_max);
        }
    }
}

impl Entry {
    fn set_value(&mut self, key_len: usize, value: &[u8]) {
        // A counter, or the head of a list, has the same length most of the time.
        match self.record.get_mut(key_len..) {
            Some(place) if place.len() == value.len() => place.copy_from_slice(value),
            _ => {
                let key = self.record.get(..key_len).unwrap_or_default();
                self.record = [key, value].concat().into_boxed_slice();
            }
        }
    }
}

impl Shard {
    fn begin(&mut self, table: TableId) {
        // Of the tables before it, at most one for each database is still there.
        if self.whole.len() >= WHOLE_MAX {
            self.whole.remove(0);
        }
        self.whole.push(table);
    }

    #[inline]
    fn is_whole(&self, table: TableId) -> bool {
        self.whole.contains(&table)
    }

    fn is_not_whole(&mut self, table: TableId) {
        self.whole.retain(|whole| *whole != table);
    }

    /// The bucket where a record belongs.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        tag as usize & self.buckets.len().wrapping_sub(1)
    }

    /// The buckets from where a record belongs on, up to the first free one: where each is, its
    /// tag, and its entry's place.
    #[inline]
    fn chain(&self, tag: u32) -> impl Iterator<Item = (usize, u32, usize)> {
        let (mut at, mask) = (self.home(tag), self.buckets.len().wrapping_sub(1));
        std::iter::from_fn(move || {
            let here = at;
            let bucket = self.buckets.get(here).copied().filter(|bucket| *bucket != 0)?;
            at = (at + 1) & mask;
            Some((here, (bucket >> 32) as u32, (bucket as u32).wrapping_sub(1) as usize))
        })
    }

    /// The entry that a record with this tag most likely has.
    fn likely(&self, tag: u32) -> Option<&Entry> {
        let (_, _, place) = self.chain(tag).find(|(_, have, _)| *have == tag)?;
        self.entries.get(place)
    }

    /// A record's bucket, and its entry's place.
    #[inline]
    fn find(&self, tag: u32, table: TableId, key: KeyRef<'_>) -> Option<(usize, usize)> {
        let mut alike = self.chain(tag).filter(|(_, have, _)| *have == tag);
        let is_it =
            |place: usize| self.entries.get(place).is_some_and(|entry| entry.is(table, key));
        alike.find(|(_, _, place)| is_it(*place)).map(|(bucket, _, place)| (bucket, place))
    }

    /// The bucket of the entry at a place.
    fn bucket_of(&self, tag: u32, place: usize) -> Option<usize> {
        self.chain(tag).find(|(.., have)| *have == place).map(|(bucket, ..)| bucket)
    }

    fn add(&mut self, entry: Entry) {
        if self.buckets.len() * 3 <= self.entries.len() * 4 {
            self.grow();
        }
        self.bytes += entry.bytes();
        if self.entries.len() == self.entries.capacity() {
            // Not doubled: room that is not used counts, too.
            self.entries.reserve_exact((self.entries.len() / 4).max(8));
        }
        self.entries.push(entry);
        self.note(self.entries.len() - 1);
    }

    /// Puts the place of an entry into a free bucket.
    fn note(&mut self, place: usize) {
        let Some(tag) = self.entries.get(place).map(|entry| entry.tag) else { return };
        let (mut at, mask) = (self.home(tag), self.buckets.len().wrapping_sub(1));
        while let Some(bucket) = self.buckets.get_mut(at) {
            if *bucket == 0 {
                *bucket = u64::from(tag) << 32 | (place as u64 + 1);
                return;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let len = (2 * self.buckets.len()).max(16);
        self.buckets.clear();
        self.buckets.resize(len, 0);
        for place in 0..self.entries.len() {
            self.note(place);
        }
    }

    /// Removes an entry; the last one takes its place.
    fn remove(&mut self, bucket: usize, at: usize) {
        self.free(bucket);
        let last = self.entries.len().saturating_sub(1);
        if at != last {
            let tag = self.entries.last().map_or(0, |entry| entry.tag);
            let bucket = self.bucket_of(tag, last).and_then(|bucket| self.buckets.get_mut(bucket));
            if let Some(bucket) = bucket {
                *bucket = u64::from(tag) << 32 | (at as u64 + 1);
            }
        }
        if at <= last {
            let gone = self.entries.swap_remove(at);
            self.bytes -= gone.bytes();
        }
    }

    /// Frees a bucket, and closes the gap that it would be for those behind it.
    fn free(&mut self, bucket: usize) {
        let mask = self.buckets.len().wrapping_sub(1);
        let (mut gap, mut at) = (bucket, bucket);
        loop {
            at = (at + 1) & mask;
            let Some(next) = self.buckets.get(at).copied().filter(|next| *next != 0) else { break };
            let home = self.home((next >> 32) as u32);
            // It may move back if it belongs at the gap or before it.
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                if let Some(place) = self.buckets.get_mut(gap) {
                    *place = next;
                }
                gap = at;
            }
        }
        if let Some(place) = self.buckets.get_mut(gap) {
            *place = 0;
        }
    }

    /// Evicts records that were not used since the hand passed them last (the clock algorithm).
    fn make_room(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max && !self.entries.is_empty() {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let hand = self.hand;
            let Some(entry) = self.entries.get_mut(hand) else { return };
            if std::mem::take(&mut entry.is_used) {
                self.hand += 1;
                continue;
            }
            let (tag, table, presence) = (entry.tag, entry.table, entry.presence);
            if presence != Presence::Nothing {
                self.is_not_whole(table);
            }
            let Some(bucket) = self.bucket_of(tag, hand) else { return };
            self.remove(bucket, hand);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::HashMap;

    use super::*;

    const TABLE: TableId = TableId(7);
    const ROOM: usize = SHARDS * 64 * 1024;

    fn head(pk: &[u8]) -> KeyRef<'_> {
        KeyRef { pk, sk: None }
    }

    fn part<'k>(pk: &'k [u8], sk: &'k [u8]) -> KeyRef<'k> {
        KeyRef { pk, sk: Some(sk) }
    }

    fn known(value: &[u8]) -> Option<KnownRecord> {
        let value = Some(Bytes::copy_from_slice(value));
        Some(KnownRecord { value, expires_at_ms: None, mark: 0 })
    }

    #[test]
    fn a_record_is_found_until_it_is_forgotten_or_replaced() {
        let recent = RecordCache::new(1 << 20);
        assert_eq!(recent.get(TABLE, head(b"a")), None);
        recent.keep(TABLE, head(b"a"), Some(b"1"), None);
        assert_eq!(recent.get(TABLE, head(b"a")), known(b"1"));
        assert_eq!(recent.get(TableId(8), head(b"a")), None, "another table's is another record");
        recent.keep_marked(TABLE, head(b"a"), Some(b"22"), Some(5), 7);
        let value = Some(Bytes::from_static(b"22"));
        assert_eq!(
            recent.get(TABLE, head(b"a")),
            Some(KnownRecord { value, expires_at_ms: Some(5), mark: 7 })
        );
        recent.keep(TABLE, head(b"a"), None, None);
        assert_eq!(recent.get(TABLE, head(b"a")), Some(KnownRecord::NOTHING));
        recent.forget(TABLE, head(b"a"));
        assert_eq!(recent.get(TABLE, head(b"a")), None);
        assert_eq!(recent.size(), (0, 0));
    }

    #[test]
    fn records_whose_keys_begin_alike_are_different_records() {
        let recent = RecordCache::new(1 << 20);
        let keys = [head(b"ab"), part(b"ab", b""), part(b"a", b"b"), part(b"", b"ab"), head(b"a")];
        for (n, key) in keys.into_iter().enumerate() {
            recent.keep(TABLE, key, Some(&[n as u8]), None);
        }
        for (n, key) in keys.into_iter().enumerate() {
            assert_eq!(recent.get(TABLE, key), known(&[n as u8]), "{key:?}");
        }
    }

    #[test]
    fn what_is_kept_of_dropped_parts_is_not_believed() {
        for is_new in [true, false] {
            let recent = RecordCache::new(1 << 20);
            if is_new {
                recent.begin(TABLE);
            }
            recent.keep(TABLE, head(b"a"), Some(b"head"), None);
            recent.keep(TABLE, part(b"a", b"f"), Some(b"old"), None);
            recent.dropped(TABLE, b"a");
            assert_eq!(recent.get(TABLE, part(b"a", b"f")), None);
            assert_eq!(recent.get(TABLE, head(b"a")), known(b"head"));
            recent.keep(TABLE, part(b"a", b"f"), Some(b"new"), None);
            assert_eq!(recent.get(TABLE, part(b"a", b"f")), known(b"new"));
            recent.lose_sight_of(TABLE);
            assert_eq!(recent.get(TABLE, part(b"a", b"other")), None);
        }
    }

    #[test]
    fn of_a_new_table_everything_is_known_until_something_has_to_make_room() {
        let recent = RecordCache::new(ROOM);
        recent.begin(TABLE);
        assert_eq!(recent.get(TABLE, head(b"a")), Some(KnownRecord::NOTHING));
        assert_eq!(recent.get(TableId(8), head(b"a")), None);
        recent.keep(TABLE, head(b"a"), Some(b"1"), None);
        assert_eq!(recent.get(TABLE, head(b"a")), known(b"1"));
        recent.keep(TABLE, head(b"a"), None, None);
        assert_eq!(recent.get(TABLE, head(b"a")), Some(KnownRecord::NOTHING));
        // That it is not there need not be kept.
        recent.keep(TABLE, head(b"b"), None, None);
        assert_eq!(recent.get(TABLE, head(b"b")), Some(KnownRecord::NOTHING));
        assert_eq!(recent.size(), (0, 0));
        // What is too long, and what may or may not be there, is looked for in the engine.
        recent.keep(TABLE, head(b"long"), Some(&[0; RECORD_LEN_MAX]), None);
        recent.forget(TABLE, head(b"forgotten"));
        assert_eq!(recent.get(TABLE, head(b"long")), None);
        assert_eq!(recent.get(TABLE, head(b"forgotten")), None);
        assert_eq!(recent.get(TABLE, head(b"other")), Some(KnownRecord::NOTHING));
        for n in 0..100_000u32 {
            recent.keep(TABLE, head(&n.to_be_bytes()), Some(&[2; 100]), None);
        }
        assert_eq!(recent.get(TABLE, head(&0u32.to_be_bytes())), None, "it is there, not here");
        assert_eq!(recent.get(TABLE, head(b"a")), None);
    }

    #[test]
    fn what_is_used_stays_and_what_is_not_makes_room() {
        let recent = RecordCache::new(ROOM);
        recent.keep(TABLE, head(b"used"), Some(&[1; 100]), None);
        for n in 0..100_000u32 {
            recent.keep(TABLE, head(&n.to_be_bytes()), Some(&[2; 100]), None);
            assert!(recent.get(TABLE, head(b"used")).is_some(), "after {n} others");
        }
        let (count, bytes) = recent.size();
        assert!(bytes <= ROOM && count > 10_000, "{count} records, {bytes} bytes");
        recent.set_bytes_max(0);
        for n in 0..1000u32 {
            recent.keep(TABLE, head(&n.to_be_bytes()), Some(b"3"), None);
            assert_eq!(recent.get(TABLE, head(&n.to_be_bytes())), None);
        }
    }

    #[test]
    fn a_value_too_long_to_be_kept_takes_the_one_before_it_along() {
        let recent = RecordCache::new(ROOM);
        recent.keep(TABLE, head(b"a"), Some(b"small"), None);
        recent.keep(TABLE, head(b"a"), Some(&[0; 64 * 1024]), None);
        assert_eq!((recent.get(TABLE, head(b"a")), recent.size()), (None, (0, 0)));
    }

    proptest! {
        #[test]
        fn whatever_is_found_is_what_was_kept_last(
            is_new in any::<bool>(),
            steps in prop::collection::vec((any::<u8>(), 0usize..150, 0u8..8), 1..600),
        ) {
            let recent = RecordCache::new(SHARDS * 2048);
            let mut kept = 0;
            if is_new {
                recent.begin(TABLE);
            }
            let mut model: HashMap<[u8; 1], Option<Vec<u8>>> = HashMap::new();
            for (key, len, presence) in steps {
                let key = [key];
                match presence {
                    0 => {
                        recent.forget(TABLE, head(&key));
                        model.remove(&key);
                    }
                    1 => {
                        recent.keep(TABLE, head(&key), None, None);
                        model.insert(key, None);
                    }
                    _ => {
                        recent.keep(TABLE, head(&key), Some(&vec![presence; len]), None);
                        model.insert(key, Some(vec![presence; len]));
                    }
                }
                for (key, value) in &model {
                    if let Some(found) = recent.get(TABLE, head(key)) {
                        kept += usize::from(value.is_some());
                        prop_assert_eq!(found.value.as_deref(), value.as_deref());
                    }
                }
                recent.warm(TABLE, model.keys().map(|key| head(key)));
                let used = |shard: &Shard| shard.buckets.iter().filter(|b| **b != 0).count();
                let buckets: usize = recent.shards.iter().map(|shard| used(&shard.lock())).sum();
                prop_assert_eq!(buckets, recent.size().0);
            }
            prop_assert!(kept > 0 || model.values().all(Option::is_none));
        }
    }
}
