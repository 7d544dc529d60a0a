//! A two-level cache of current mastery: 30 seconds in the memory of this process, then five
//! minutes in Redis. Both are written through.
//!
//! Other processes hear of a change by a short stream of Redis: who writes adds a hash of the
//! learner's id (so that no entry names anybody who may have to be erased) and the version; who
//! reads looks at what was added, at most every 50 ms, before it believes its memory. A version that
//! the stream has told of is the least that is believed, from Redis too: so it does not matter in
//! which order two writers reach Redis. Ids can be guessed, and so can what they hash to: the hash is
//! salted, with a salt of the store's own. An entry with another salt than the one that is known has
//! the reader begin anew, so it does not matter if the salt is lost.
//!
//! The truth is the item. Redis may be behind it by what it lost with the power, so it is believed
//! about a learner only by a process that has listened ever since it saw the learner's item or heard
//! of a version; any other reads the item. If Redis cannot be asked, neither it nor memory is
//! believed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kstone_core::env::{Clock, Random};
use kstone_core::sync::Mutex as SyncMutex;
use kstone_keyspace::keys::mastery::{MasteryCache, StudentId};
use kstone_keyspace::typed::TypedKey;
use kstone_ports::keys::Keys;
use kstone_ports::keys::Value as Reply;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::update_batcher::{CacheUpdate, UpdateBatcher};
use crate::domain::MasteryResult;

/// The stream by which processes tell each other.
const STREAM: &[u8] = b"cache:mastery:invalidations";
/// Where the salt of its hashes is kept.
const SALT: &[u8] = b"cache:mastery:salt";
/// About how many entries the stream keeps.
const STREAM_LEN: usize = 10_000;
/// How long Redis keeps a cached mastery.
const REDIS_LIFE: Duration = Duration::from_secs(300);
/// Locks, so that what is newer is never replaced by what is older.
const LOCKS: usize = 16;

/// Options of the mastery cache.
#[derive(Debug, Clone, Copy)]
pub struct CacheOptions {
    /// How many learners this process remembers; 0 for no cache in memory.
    pub memory_entries: usize,
    /// How long they are believed.
    pub memory_life: Duration,
    /// How long what other processes changed may go unnoticed.
    pub unnoticed_max: Duration,
}

impl Default for CacheOptions {
    /// 20,000 learners, about 8 MB, for 30 seconds; changes are noticed after 50 ms.
    fn default() -> Self {
        CacheOptions {
            memory_entries: 20_000,
            memory_life: Duration::from_secs(30),
            unnoticed_max: Duration::from_millis(50),
        }
    }
}

/// Hits, misses and failures of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// It was in memory.
    pub memory_hits: u64,
    /// It was in Redis.
    pub redis_hits: u64,
    /// The item had to be read.
    pub misses: u64,
    /// Redis could not be asked or invalidation.
    pub failures: u64,
}

/// The cache: a level in memory and one in Redis.
#[derive(Debug)]
pub(crate) struct TwoLevelCache {
    keys: Arc<dyn Keys>,
    batcher: UpdateBatcher,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    options: CacheOptions,
    /// `None` until it was read.
    salt: SyncMutex<Option<Arc<Salt>>>,
    memory: Cache<u64, MemoryEntry>,
    newer_only: Vec<SyncMutex<()>>,
    watch: Mutex<StreamReader>,
    /// Grows whenever entries of the stream may have been missed: what was remembered before is not
    /// believed any more, only that there is nothing older.
    epoch: AtomicU64,
    counts: CacheCounters,
}

#[derive(Debug, Default)]
struct CacheCounters {
    memory_hits: AtomicU64,
    redis_hits: AtomicU64,
    misses: AtomicU64,
    failures: AtomicU64,
}

#[derive(Debug, Clone)]
struct MemoryEntry {
    /// Nothing older is believed.
    version: u64,
    /// `None` if only the version is known.
    mastery: Option<Arc<MasteryResult>>,
    at: Duration,
    epoch: u64,
}

/// The result of a cache lookup.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// This.
    Found(Arc<MasteryResult>),
    /// Nothing that may be believed.
    Missing(CacheMiss),
}

/// A cache miss; to be passed to [`TwoLevelCache::fill`] with the item that is read then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheMiss {
    /// Whether Redis has something older.
    is_outdated: bool,
    epoch: u64,
}

/// The salt of hashed learner ids.
#[derive(Debug, PartialEq, Eq)]
struct Salt {
    text: Bytes,
    /// By which others see whether they have the same.
    id: u64,
}

/// An entry of the invalidation stream: older versions of a learner are outdated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Invalidation {
    salt: u64,
    place: u64,
    version: u64,
}

/// The position in the invalidation stream.
#[derive(Debug, Default)]
struct StreamReader {
    last: Option<Bytes>,
    looked_at: Option<Duration>,
}

impl TwoLevelCache {
    pub(crate) fn new(
        keys: Arc<dyn Keys>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        options: CacheOptions,
    ) -> TwoLevelCache {
        TwoLevelCache {
            batcher: UpdateBatcher::new(Arc::clone(&keys)),
            keys,
            clock,
            random,
            salt: SyncMutex::new(None),
            memory: Cache::new(options.memory_entries.max(1)),
            options,
            newer_only: (0..LOCKS).map(|_| SyncMutex::new(())).collect(),
            watch: Mutex::new(StreamReader::default()),
            epoch: AtomicU64::new(0),
            counts: CacheCounters::default(),
        }
    }

    /// Looks a learner up.
    pub(crate) async fn get(&self, student: &StudentId) -> Lookup {
        let is_up_to_date = self.look().await;
        let epoch = self.epoch();
        let place = self.place_of(student).filter(|_| is_up_to_date);
        let known = place.and_then(|place| self.memory.get(&place));
        if let Some(mastery) = known.as_ref().and_then(|known| self.fresh(known, student)) {
            self.counts.memory_hits.fetch_add(1, Ordering::Relaxed);
            return Lookup::Found(mastery);
        }
        let known = known.filter(|known| known.epoch == epoch && !self.is_moot(known));
        let in_redis = match &known {
            Some(_) => self.in_redis(student).await,
            None => None,
        };
        match (place, known, in_redis) {
            (Some(place), Some(known), Some(found)) if found.version >= known.version => {
                self.counts.redis_hits.fetch_add(1, Ordering::Relaxed);
                let found = Arc::new(found);
                self.remember(place, found.version, Some(Arc::clone(&found)), epoch);
                Lookup::Found(found)
            }
            (_, _, outdated) => {
                self.counts.misses.fetch_add(1, Ordering::Relaxed);
                Lookup::Missing(CacheMiss { is_outdated: outdated.is_some(), epoch })
            }
        }
    }

    /// Caches what was read from the item after a miss, unless something newer is known, or all
    /// entries were dropped meanwhile.
    pub(crate) async fn fill(
        &self,
        student: &StudentId,
        mastery: &Arc<MasteryResult>,
        unseen: CacheMiss,
    ) {
        let Some(place) = self.place_of(student) else { return };
        let version = mastery.version;
        if !self.remember(place, version, Some(Arc::clone(mastery)), unseen.epoch) {
            return;
        }
        // A writer may have been quicker with something newer: only where nothing is, or something
        // that nobody should believe.
        let set = self.set_command(student, mastery, !unseen.is_outdated);
        if set.is_some() {
            self.send(CacheUpdate { invalidation: None, command: set }).await;
        }
    }

    /// Announces a version that is about to be written: nothing older is used from now on. If the
    /// writer is interrupted, the item is read.
    pub(crate) fn begin_write(&self, student: &StudentId, version: u64) {
        // Without a salt nothing has been remembered, and so nothing is believed.
        if let Some(place) = self.place_of(student) {
            self.remember(place, version, None, self.epoch());
        }
    }

    /// Withdraws an announced version that was not written.
    pub(crate) fn cancel_write(&self, student: &StudentId, version: u64) {
        let is_it = |known: &MemoryEntry| known.version == version && known.mastery.is_none();
        if let Some(place) = self.place_of(student) {
            self.memory.remove_if(&place, is_it);
        }
    }

    /// Caches what was written, and invalidates it in other processes.
    pub(crate) async fn finish_write(&self, student: &StudentId, mastery: &Arc<MasteryResult>) {
        let version = mastery.version;
        let invalidation = self.note(student, version, Some(Arc::clone(mastery))).await;
        self.send(CacheUpdate { invalidation, command: self.set_command(student, mastery, false) })
            .await;
    }

    /// Drops a learner from all caches of all processes.
    pub(crate) async fn forget(&self, student: &StudentId) {
        let invalidation = self.note(student, u64::MAX, None).await;
        let delete = vec![Bytes::from_static(b"DEL"), redis_key(student)];
        self.send(CacheUpdate { invalidation, command: Some(delete) }).await;
    }

    /// Caches a version here; returns the invalidation for other processes.
    async fn note(
        &self,
        student: &StudentId,
        version: u64,
        mastery: Option<Arc<MasteryResult>>,
    ) -> Option<Invalidation> {
        self.prepare().await;
        let salt = self.salt()?;
        let place = salt.place_of(student);
        self.remember(place, version, mastery, self.epoch());
        Some(Invalidation { salt: salt.id, place, version })
    }

    /// Drops all learners in this process, also those that are being read just now.
    pub(crate) fn forget_all(&self) {
        let _nobody_remembers: Vec<_> = self.newer_only.iter().map(SyncMutex::lock).collect();
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.memory.clear();
    }

    /// Reads or creates the salt, unless it is known.
    pub(crate) async fn prepare(&self) {
        if self.salt().is_none() && self.read_salt().await.is_none() {
            self.counts.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        CacheStats {
            memory_hits: count(&self.counts.memory_hits),
            redis_hits: count(&self.counts.redis_hits),
            misses: count(&self.counts.misses),
            failures: count(&self.counts.failures),
        }
    }

    fn fresh(&self, known: &MemoryEntry, student: &StudentId) -> Option<Arc<MasteryResult>> {
        let age = self.clock.monotonic().saturating_sub(known.at);
        let is_fresh = age < self.options.memory_life && known.epoch == self.epoch();
        let mastery = known.mastery.as_ref().filter(|_| is_fresh)?;
        // Two learners may have the same hash.
        (mastery.student_id == student.as_str()).then(|| Arc::clone(mastery))
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    fn salt(&self) -> Option<Arc<Salt>> {
        self.salt.lock().clone()
    }

    /// The salted hash of a learner's id.
    fn place_of(&self, student: &StudentId) -> Option<u64> {
        self.salt().map(|salt| salt.place_of(student))
    }

    /// Whether a known version is older than Redis keeps entries, so that it says nothing about
    /// what Redis has.
    fn is_moot(&self, known: &MemoryEntry) -> bool {
        self.clock.monotonic().saturating_sub(known.at) >= REDIS_LIFE
    }

    /// Caches a version; returns whether it did: nothing newer is known, and no newer epoch has
    /// begun.
    fn remember(
        &self,
        place: u64,
        version: u64,
        mastery: Option<Arc<MasteryResult>>,
        epoch: u64,
    ) -> bool {
        if self.options.memory_entries == 0 {
            return true;
        }
        let at = self.clock.monotonic();
        let lock = self.newer_only.get(place as usize % LOCKS);
        let _newer_only = lock.map(SyncMutex::lock);
        if self.epoch() != epoch {
            return false;
        }
        if let Some(known) = self.memory.peek(&place).filter(|known| !self.is_moot(known)) {
            // After listening again, the cached entries have to be validated again.
            let says_less = version == known.version && mastery.is_none() && known.epoch == epoch;
            if version < known.version || says_less {
                return false;
            }
        }
        self.memory.insert(place, MemoryEntry { version, mastery, at, epoch });
        true
    }

    async fn in_redis(&self, student: &StudentId) -> Option<MasteryResult> {
        let get = [Bytes::from_static(b"GET"), redis_key(student)];
        match self.keys.command(&get).await {
            Ok(Reply::Bulk(text)) => serde_json::from_slice(&text).ok(),
            Ok(_) => None,
            Err(_) => {
                self.counts.failures.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    fn set_command(
        &self,
        student: &StudentId,
        mastery: &MasteryResult,
        only_if_absent: bool,
    ) -> Option<Vec<Bytes>> {
        let text = serde_json::to_vec(mastery).ok()?;
        let life = REDIS_LIFE.as_secs().to_string();
        let mut set = vec![Bytes::from_static(b"SET"), redis_key(student), text.into()];
        set.extend([Bytes::from_static(b"EX"), life.into()]);
        if only_if_absent {
            set.push(Bytes::from_static(b"NX"));
        }
        Some(set)
    }

    async fn send(&self, update: CacheUpdate) {
        if !self.batcher.send(update).await {
            self.counts.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reads new invalidations. Returns whether the memory level may be used.
    async fn look(&self) -> bool {
        let mut watch = self.watch.lock().await;
        let now = self.clock.monotonic();
        let since = watch.looked_at.map(|at| now.saturating_sub(at));
        if since.is_some_and(|since| since < self.options.unnoticed_max) {
            return true;
        }
        let read = match &watch.last {
            // Whatever was remembered before has expired meanwhile.
            Some(last) if since.is_some_and(|since| since < self.options.memory_life) => {
                self.read_after(last.clone()).await
            }
            _ => self.begin().await,
        };
        match read {
            Some(last) => {
                (watch.last, watch.looked_at) = (Some(last), Some(now));
                true
            }
            None => {
                self.counts.failures.fetch_add(1, Ordering::Relaxed);
                *watch = StreamReader::default();
                false
            }
        }
    }

    /// Reads the salt from Redis, or creates it.
    async fn read_salt(&self) -> Option<()> {
        let get = [&b"GET"[..], SALT].map(Bytes::from_static);
        let mut kept = self.keys.command(&get).await.ok()?;
        if matches!(kept, Reply::Null) {
            let new = format!("{:016x}{:016x}", self.random.next_u64(), self.random.next_u64());
            let [set, key, only_if_absent] = [&b"SET"[..], SALT, b"NX"].map(Bytes::from_static);
            self.keys.command(&[set, key, new.into(), only_if_absent]).await.ok()?;
            // Another process may have been quicker.
            kept = self.keys.command(&get).await.ok()?;
        }
        let Reply::Bulk(text) = kept else { return None };
        let salt = Some(Arc::new(Salt::new(text.into())));
        let before = std::mem::replace(&mut *self.salt.lock(), salt.clone());
        if before.is_some() && before != salt {
            self.forget_all();
        }
        Some(())
    }

    /// Starts a new epoch, in which nothing cached before is used; returns the end of the stream.
    async fn begin(&self) -> Option<Bytes> {
        self.read_salt().await?;
        let command = [&b"XREVRANGE"[..], STREAM, b"+", b"-", b"COUNT", b"1"];
        let reply = self.keys.command(&command.map(Bytes::from_static)).await.ok()?;
        // Only now: what is remembered from here on is behind that entry.
        self.epoch.fetch_add(1, Ordering::AcqRel);
        let newest = entries(&reply).into_iter().next();
        Some(newest.map_or(Bytes::from_static(b"0-0"), |(id, _)| id))
    }

    /// Applies the entries after this one; returns the last.
    async fn read_after(&self, mut last: Bytes) -> Option<Bytes> {
        let mut heard = 0;
        loop {
            let command = [&b"XREAD"[..], b"COUNT", b"1000", b"STREAMS", STREAM];
            let mut command = command.map(Bytes::from_static).to_vec();
            command.push(last.clone());
            let reply = self.keys.command(&command).await.ok()?;
            let page = streams(&reply).map(entries).unwrap_or_default();
            let salt = self.salt().map(|salt| salt.id);
            for (id, all) in &page {
                let are_clear =
                    |all: &&Vec<Invalidation>| all.iter().all(|it| Some(it.salt) == salt);
                // Whom it means cannot be invalidation.
                let Some(all) = all.as_ref().filter(are_clear) else { return self.begin().await };
                for invalidation in all {
                    self.remember(invalidation.place, invalidation.version, None, self.epoch());
                }
                last = id.clone();
            }
            heard += page.len();
            if heard >= STREAM_LEN * 9 / 10 {
                // So much came that some of it may have been cut off already.
                return self.begin().await;
            }
            if page.len() < 1000 {
                return Some(last);
            }
        }
    }
}

impl Salt {
    fn new(text: Bytes) -> Salt {
        let id = first_bytes(Sha256::new().chain_update(&text));
        Salt { text, id }
    }

    fn place_of(&self, student: &StudentId) -> u64 {
        first_bytes(Sha256::new().chain_update(&self.text).chain_update(student.as_str()))
    }
}

fn first_bytes(hasher: Sha256) -> u64 {
    let digest = hasher.finalize();
    digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn redis_key(student: &StudentId) -> Bytes {
    MasteryCache { student_id: student.clone() }.key().into()
}

/// The command that appends one stream entry with several invalidations: salt, learner and version
/// of each.
pub(super) fn invalidation_command(all: &[Invalidation]) -> Vec<Bytes> {
    let mut command = [&b"XADD"[..], STREAM, b"MAXLEN", b"~"].map(Bytes::from_static).to_vec();
    command.extend([STREAM_LEN.to_string(), "*".to_owned()].map(Bytes::from));
    for invalidation in all {
        let fields = [
            ("s", format!("{:016x}", invalidation.salt)),
            ("l", format!("{:016x}", invalidation.place)),
            ("v", invalidation.version.to_string()),
        ];
        for (name, value) in fields {
            command.extend([Bytes::from_static(name.as_bytes()), Bytes::from(value)]);
        }
    }
    command
}

/// The entries in the reply for the one stream that was read.
fn streams(reply: &Reply) -> Option<&Reply> {
    match reply {
        Reply::Map(streams) => streams.first().map(|(_, entries)| entries),
        Reply::Array(streams) => match streams.first()? {
            Reply::Array(pair) => pair.get(1),
            _ => None,
        },
        _ => None,
    }
}

/// The ids of entries with their invalidations.
fn entries(reply: &Reply) -> Vec<(Bytes, Option<Vec<Invalidation>>)> {
    let Reply::Array(entries) = reply else { return Vec::new() };
    let text = |reply: &Reply| match reply {
        Reply::Bulk(text) => String::from_utf8(text.clone()).ok(),
        _ => None,
    };
    let hex = |reply: &Reply| u64::from_str_radix(&text(reply)?, 16).ok();
    let invalidation = |salt: &Reply, place: &Reply, version: &Reply| {
        let version = text(version)?.parse().ok()?;
        Some(Invalidation { salt: hex(salt)?, place: hex(place)?, version })
    };
    let entry = |entry: &Reply| {
        let Reply::Array(parts) = entry else { return None };
        let id = Bytes::from(text(parts.first()?)?);
        let all = match parts.get(1) {
            Some(Reply::Array(fields)) => fields
                .chunks(6)
                .map(|fields| match fields {
                    [_, salt, _, place, _, version] => invalidation(salt, place, version),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        Some((id, all))
    };
    entries.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use kstone::{Database, DatabaseOptions};
    use kstone_core::env::{Env, ManualClock, SeededRandom};
    use kstone_redis::Redis;
    use kstone_sim::SimDisk;

    use super::*;
    use crate::domain::{Components, Level};
    use kstone_base::time::Moment;

    #[tokio::test]
    async fn what_was_read_before_everybody_was_forgotten_is_not_remembered_after() {
        let clock = Arc::new(ManualClock::at(1_768_386_600_000));
        let random = Arc::new(SeededRandom::new(1));
        let env = Env {
            vfs: Arc::new(SimDisk::new(1)),
            clock: Arc::clone(&clock) as _,
            random: Arc::clone(&random) as _,
            threads: None,
        };
        let db = Database::open_with(env, "db", DatabaseOptions::default()).unwrap();
        let keys = Arc::new(Redis::open(&db).unwrap().keys(0).unwrap());
        let cache = TwoLevelCache::new(keys, clock, random, CacheOptions::default());
        let student = StudentId::new("s").unwrap();
        let read = Arc::new(MasteryResult {
            student_id: "s".to_owned(),
            mastery_score: 0.0,
            level: Level::Beginner,
            components: Components::default(),
            timestamp: Moment::default(),
            version: 7,
            school_id: None,
        });
        for are_forgotten in [true, false] {
            let Lookup::Missing(unseen) = cache.get(&student).await else { panic!("unknown") };
            if are_forgotten {
                cache.forget_all();
            }
            cache.fill(&student, &read, unseen).await;
        }
        let Lookup::Found(found) = cache.get(&student).await else { panic!("known") };
        assert_eq!(found.version, 7);
    }
}
