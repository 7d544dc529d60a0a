//! The heads of keys that were used lately, in memory: a key that is asked for again and again is
//! found by one hash, not by a way through the engine's trees.
//!
//! The engine stays the truth. What is kept here for a key is exactly what the engine has for it, or
//! that it has nothing; whoever looks a key up or writes it has it locked, so nobody sees one without
//! the other:
//! - What a lookup found in the engine is kept.
//! - What a commit has written to the engine takes the place of what was kept, before the keys are
//!   unlocked.
//!
//! Heads are kept by table, and a database that is emptied gets another table: what was kept for the
//! old one is never found again, and makes room like everything that is not used for long.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use hashbrown::DefaultHashBuilder;
use kstone_core::sync::Mutex;
use kstone_core::{TableId, prefetch};

/// Keys are spread over so many parts, each with its own lock.
const SHARDS: usize = 64;
/// What keeping a key costs beside its own bytes and its head's: its entry, its bucket, what an
/// allocation takes; each with the room for growth.
const ENTRY_BYTES: usize = 96;
/// Key and head together are kept up to this length: a copy of what is longer saves little.
const RECORD_LEN_MAX: usize = 4096;
/// A record that would take more than this part of a shard is not kept.
const LARGE: usize = 8;
/// So much of a record is asked for ahead of its use.
const SOON_LEN: usize = 192;

/// What is known of a key's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// The head as the engine has it; `None` if the engine has none.
    pub(crate) value: Option<Bytes>,
    pub(crate) expires_at_ms: Option<u64>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Heads {
    hasher: DefaultHashBuilder,
    shards: Vec<Mutex<Shard>>,
    bytes_max: AtomicUsize,
}

#[derive(Debug, Default)]
struct Shard {
    /// Where in `entries` each key is: half of its hash, and its place plus one, at the first free
    /// bucket from where the hash says. A power of two of them, or none; free ones are 0.
    buckets: Vec<u64>,
    entries: Vec<Entry>,
    /// Where the next one that makes room is looked for.
    hand: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// The key, and its head behind it.
    record: Box<[u8]>,
    /// 0 for never.
    expires_at_ms: u64,
    table: TableId,
    key_len: u32,
    /// The half of the hash that the bucket has.
    tag: u32,
    has_head: bool,
    /// Somebody asked for it since the hand passed.
    is_used: bool,
}

impl Entry {
    fn is(&self, table: TableId, key: &[u8]) -> bool {
        self.table == table
            && self.key_len as usize == key.len()
            && self.record.get(..key.len()) == Some(key)
    }

    fn bytes(&self) -> usize {
        self.record.len() + ENTRY_BYTES
    }
}

/// A key's hash: which shard, and which bucket in it.
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

impl Heads {
    /// With so much memory.
    pub(crate) fn new(bytes_max: usize) -> Heads {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let bytes_max = AtomicUsize::new(bytes_max);
        Heads { hasher: DefaultHashBuilder::default(), shards, bytes_max }
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
    fn hash(&self, table: TableId, key: &[u8]) -> Hash {
        Hash(self.hasher.hash_one((table.0, key)))
    }

    #[inline]
    fn shard(&self, hash: Hash) -> &Mutex<Shard> {
        #[expect(clippy::indexing_slicing, reason = "so many shards there are")]
        &self.shards[hash.shard()]
    }

    /// These keys are about to be asked for: fetches what is kept of them from memory, for all of
    /// them at once. Each is in four places that lie far apart, and each place says where the next
    /// one is; one key after the other would wait four times for each.
    pub(crate) fn warm<'k>(&self, table: TableId, keys: impl Iterator<Item = &'k [u8]>) {
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

    /// What is known of a key.
    pub(crate) fn get(&self, table: TableId, key: &[u8]) -> Option<Known> {
        let hash = self.hash(table, key);
        let mut shard = self.shard(hash).lock();
        let (_, at) = shard.find(hash.tag(), table, key)?;
        let entry = shard.entries.get_mut(at)?;
        entry.is_used = true;
        let head = entry.record.get(key.len()..).unwrap_or_default();
        Some(Known {
            value: entry.has_head.then(|| Bytes::copy_from_slice(head)),
            expires_at_ms: Some(entry.expires_at_ms).filter(|at_ms| *at_ms != 0),
        })
    }

    /// Keeps what the engine has for a key.
    pub(crate) fn keep(
        &self,
        table: TableId,
        key: &[u8],
        value: Option<&[u8]>,
        expires_at_ms: Option<u64>,
    ) {
        let bytes_max = self.bytes_max.load(Ordering::Relaxed) / SHARDS;
        let hash = self.hash(table, key);
        let head = value.unwrap_or_default();
        let len = key.len() + head.len();
        let mut shard = self.shard(hash).lock();
        let found = shard.find(hash.tag(), table, key);
        if len > RECORD_LEN_MAX || len + ENTRY_BYTES > bytes_max / LARGE {
            if let Some((bucket, at)) = found {
                shard.remove(bucket, at);
            }
            return;
        }
        let known = (value.is_some(), expires_at_ms.unwrap_or(0));
        match found {
            Some((_, at)) => shard.replace(at, key, head, known),
            None => {
                let (has_head, expires_at_ms) = known;
                let record = joined(key, head);
                let (tag, key_len, is_used) = (hash.tag(), key.len() as u32, false);
                shard.add(Entry { record, expires_at_ms, table, key_len, tag, has_head, is_used });
            }
        }
        if shard.bytes > bytes_max {
            shard.make_room(bytes_max);
        }
    }

    /// Nothing is known of a key any more.
    pub(crate) fn forget(&self, table: TableId, key: &[u8]) {
        let hash = self.hash(table, key);
        let mut shard = self.shard(hash).lock();
        if let Some((bucket, at)) = shard.find(hash.tag(), table, key) {
            shard.remove(bucket, at);
        }
    }
}

fn joined(key: &[u8], head: &[u8]) -> Box<[u8]> {
    let mut record = Vec::with_capacity(key.len() + head.len());
    record.extend_from_slice(key);
    record.extend_from_slice(head);
    record.into_boxed_slice()
}

impl Shard {
    /// The bucket where a key belongs.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        tag as usize & self.buckets.len().wrapping_sub(1)
    }

    /// The buckets from where a key belongs on, up to the first free one: where each is, its tag,
    /// and its entry's place.
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

    /// The entry that a key with this tag most likely has.
    fn likely(&self, tag: u32) -> Option<&Entry> {
        let (_, _, place) = self.chain(tag).find(|(_, have, _)| *have == tag)?;
        self.entries.get(place)
    }

    /// The key's bucket, and its entry's place.
    #[inline]
    fn find(&self, tag: u32, table: TableId, key: &[u8]) -> Option<(usize, usize)> {
        let mut alike = self.chain(tag).filter(|(_, have, _)| *have == tag);
        let is_it = |place: usize| self.entries.get(place).is_some_and(|entry| entry.is(table, key));
        alike.find(|(_, _, place)| is_it(*place)).map(|(bucket, _, place)| (bucket, place))
    }

    /// The bucket of the entry at a place.
    fn bucket_of(&self, tag: u32, place: usize) -> Option<usize> {
        self.chain(tag).find(|(.., have)| *have == place).map(|(bucket, ..)| bucket)
    }

    fn replace(&mut self, at: usize, key: &[u8], head: &[u8], known: (bool, u64)) {
        let Some(entry) = self.entries.get_mut(at) else { return };
        let before = entry.bytes();
        // A counter, or the head of a list, has the same length most of the time.
        match entry.record.get_mut(key.len()..) {
            Some(place) if place.len() == head.len() => place.copy_from_slice(head),
            _ => entry.record = joined(key, head),
        }
        (entry.has_head, entry.expires_at_ms) = known;
        entry.is_used = true;
        self.bytes = self.bytes + entry.bytes() - before;
    }

    fn add(&mut self, entry: Entry) {
        if self.buckets.len() * 3 <= self.entries.len() * 4 {
            self.grow();
        }
        self.bytes += entry.bytes();
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

    /// Lets those go that nobody asked for since the hand passed them last.
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
            let tag = entry.tag;
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

    fn known(value: &[u8]) -> Option<Known> {
        let value = Some(Bytes::copy_from_slice(value));
        Some(Known { value, expires_at_ms: None })
    }

    #[test]
    fn a_head_is_found_until_it_is_forgotten_or_replaced() {
        let heads = Heads::new(1 << 20);
        assert_eq!(heads.get(TABLE, b"a"), None);
        heads.keep(TABLE, b"a", Some(b"1"), None);
        assert_eq!(heads.get(TABLE, b"a"), known(b"1"));
        assert_eq!(heads.get(TableId(8), b"a"), None, "another table's key is another key");
        heads.keep(TABLE, b"a", Some(b"22"), Some(5));
        let value = Some(Bytes::from_static(b"22"));
        assert_eq!(heads.get(TABLE, b"a"), Some(Known { value, expires_at_ms: Some(5) }));
        heads.keep(TABLE, b"a", None, None);
        assert_eq!(heads.get(TABLE, b"a"), Some(Known { value: None, expires_at_ms: None }));
        heads.forget(TABLE, b"a");
        assert_eq!(heads.get(TABLE, b"a"), None);
        assert_eq!(heads.size(), (0, 0));
    }

    #[test]
    fn what_is_used_stays_and_what_is_not_makes_room() {
        let heads = Heads::new(SHARDS * 64 * 1024);
        heads.keep(TABLE, b"used", Some(&[1; 100]), None);
        for n in 0..100_000u32 {
            heads.keep(TABLE, &n.to_be_bytes(), Some(&[2; 100]), None);
            assert!(heads.get(TABLE, b"used").is_some(), "after {n} others");
        }
        let (count, bytes) = heads.size();
        assert!(bytes <= SHARDS * 64 * 1024 && count > 10_000, "{count} heads, {bytes} bytes");
        heads.set_bytes_max(0);
        for n in 0..1000u32 {
            heads.keep(TABLE, &n.to_be_bytes(), Some(b"3"), None);
            assert_eq!(heads.get(TABLE, &n.to_be_bytes()), None);
        }
    }

    #[test]
    fn a_head_too_large_to_be_kept_takes_the_one_before_it_along() {
        let heads = Heads::new(SHARDS * 64 * 1024);
        heads.keep(TABLE, b"a", Some(b"small"), None);
        heads.keep(TABLE, b"a", Some(&[0; 64 * 1024]), None);
        assert_eq!(heads.get(TABLE, b"a"), None);
    }

    proptest! {
        #[test]
        fn whatever_is_found_is_what_was_kept_last(
            steps in prop::collection::vec((any::<u8>(), 0usize..150, 0u8..8), 1..600),
        ) {
            let heads = Heads::new(SHARDS * 2048);
            let mut kept = 0;
            let mut model = HashMap::new();
            for (key, len, what) in steps {
                let key = [key];
                match what {
                    0 => {
                        heads.forget(TABLE, &key);
                        model.remove(&key);
                    }
                    1 => {
                        heads.keep(TABLE, &key, None, None);
                        model.insert(key, None);
                    }
                    _ => {
                        heads.keep(TABLE, &key, Some(&vec![what; len]), None);
                        model.insert(key, Some(vec![what; len]));
                    }
                }
                for (key, value) in &model {
                    if let Some(found) = heads.get(TABLE, key) {
                        kept += 1;
                        prop_assert_eq!(found.value.as_deref(), value.as_deref());
                    }
                }
                heads.warm(TABLE, model.keys().map(|key| key.as_slice()));
                let used = |shard: &Shard| shard.buckets.iter().filter(|b| **b != 0).count();
                let buckets: usize = heads.shards.iter().map(|shard| used(&shard.lock())).sum();
                prop_assert_eq!(buckets, heads.size().0);
            }
            prop_assert!(kept > 0 || model.is_empty());
        }
    }
}
