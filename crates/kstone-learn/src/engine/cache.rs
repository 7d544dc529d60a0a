//! The current mastery in two levels of cache: this process's memory for 30 seconds, then Redis for
//! five minutes. Both are written through.
//!
//! Other processes hear of a change by a short stream of Redis: who writes adds a hash of the
//! learner's id (so that no entry names anybody who may have to be erased) and the version; who
//! reads looks at what was added, at most every 50 ms, before it believes its memory. A version that
//! the stream has told of is the least that is believed, from Redis too: so it does not matter in
//! which order two writers reach Redis.
//!
//! The truth is the item. If Redis cannot be asked, the item is read, and memory is not believed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kstone_core::env::Clock;
use kstone_core::sync::Mutex as SyncMutex;
use kstone_keyspace::keys::mastery::{MasteryCache, StudentId};
use kstone_keyspace::typed::TypedKey;
use kstone_redis::Value as Reply;
use kstone_redis::port::Keys;
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use crate::mastery::MasteryResult;

/// The stream by which processes tell each other.
const STREAM: &[u8] = b"cache:mastery:invalidations";
/// About how many entries the stream keeps.
const STREAM_LEN: usize = 10_000;
/// How long Redis keeps a cached mastery.
const REDIS_LIFE: Duration = Duration::from_secs(300);
/// Locks, so that what is newer is never replaced by what is older.
const LOCKS: usize = 16;

/// How the current mastery is cached.
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

/// How often the cache had what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// It was in memory.
    pub memory_hits: u64,
    /// It was in Redis.
    pub redis_hits: u64,
    /// The item had to be read.
    pub misses: u64,
    /// Redis could not be asked or told.
    pub failures: u64,
}

/// The two levels.
#[derive(Debug)]
pub(crate) struct Cached {
    keys: Arc<dyn Keys>,
    clock: Arc<dyn Clock>,
    options: CacheOptions,
    memory: Cache<u64, Remembered>,
    newer_only: Vec<SyncMutex<()>>,
    watch: Mutex<Watch>,
    /// Grows whenever entries of the stream may have been missed: what was remembered before is not
    /// believed any more, only that there is nothing older.
    epoch: AtomicU64,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    memory_hits: AtomicU64,
    redis_hits: AtomicU64,
    misses: AtomicU64,
    failures: AtomicU64,
}

#[derive(Debug, Clone)]
struct Remembered {
    /// Nothing older is believed.
    version: u64,
    /// `None` if only the version is known.
    mastery: Option<Arc<MasteryResult>>,
    at: Duration,
    epoch: u64,
}

/// What the cache knows.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// This.
    Found(Arc<MasteryResult>),
    /// Nothing that may be believed; Redis may have something older.
    Missing {
        /// Whether it has.
        is_outdated: bool,
    },
}

/// How far the stream has been read.
#[derive(Debug, Default)]
struct Watch {
    last: Option<Bytes>,
    looked_at: Option<Duration>,
}

impl Cached {
    pub(crate) fn new(keys: Arc<dyn Keys>, clock: Arc<dyn Clock>, options: CacheOptions) -> Cached {
        Cached {
            keys,
            clock,
            memory: Cache::new(options.memory_entries.max(1)),
            options,
            newer_only: (0..LOCKS).map(|_| SyncMutex::new(())).collect(),
            watch: Mutex::new(Watch::default()),
            epoch: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    /// What is cached of a learner.
    pub(crate) async fn get(&self, student: &StudentId) -> Lookup {
        let is_up_to_date = self.look().await;
        let place = place_of(student);
        let known = self.memory.get(&place);
        if is_up_to_date
            && let Some(mastery) = known.as_ref().and_then(|known| self.fresh(known, student))
        {
            self.counts.memory_hits.fetch_add(1, Ordering::Relaxed);
            return Lookup::Found(mastery);
        }
        let version_min = known.map_or(0, |known| self.version_min(&known));
        match self.in_redis(student).await {
            Some(found) if found.version >= version_min => {
                self.counts.redis_hits.fetch_add(1, Ordering::Relaxed);
                let found = Arc::new(found);
                self.remember(place, found.version, Some(Arc::clone(&found)));
                Lookup::Found(found)
            }
            outdated => {
                self.counts.misses.fetch_add(1, Ordering::Relaxed);
                Lookup::Missing { is_outdated: outdated.is_some() }
            }
        }
    }

    /// Remembers what was read from the item, unless something newer is known.
    pub(crate) async fn fill(
        &self,
        student: &StudentId,
        mastery: &Arc<MasteryResult>,
        is_outdated: bool,
    ) {
        self.remember(place_of(student), mastery.version, Some(Arc::clone(mastery)));
        // A writer may have been quicker with something newer: only where nothing is, or something
        // that nobody should believe.
        let set = self.set_command(student, mastery, !is_outdated);
        if let Some(set) = set {
            self.tell(&[set]).await;
        }
    }

    /// Believes nothing older than a version that is about to be written. If whoever writes it is
    /// cut off before it can say that it did, the item is read.
    pub(crate) fn expect(&self, student: &StudentId, version: u64) {
        self.remember(place_of(student), version, None);
    }

    /// What was about to be written was not.
    pub(crate) fn take_back(&self, student: &StudentId, version: u64) {
        let is_it = |known: &Remembered| known.version == version && known.mastery.is_none();
        self.memory.remove_if(&place_of(student), is_it);
    }

    /// Remembers what was written, and tells the other processes.
    pub(crate) async fn wrote(&self, student: &StudentId, mastery: &Arc<MasteryResult>) {
        let place = place_of(student);
        self.remember(place, mastery.version, Some(Arc::clone(mastery)));
        let mut commands = vec![invalidation(place, mastery.version)];
        commands.extend(self.set_command(student, mastery, false));
        self.tell(&commands).await;
    }

    /// Forgets a learner, here and everywhere.
    pub(crate) async fn forget(&self, student: &StudentId) {
        let place = place_of(student);
        self.remember(place, u64::MAX, None);
        let delete = vec![Bytes::from_static(b"DEL"), redis_key(student)];
        self.tell(&[delete, invalidation(place, u64::MAX)]).await;
    }

    /// Forgets everybody, in this process.
    pub(crate) fn forget_all(&self) {
        self.memory.clear();
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

    fn fresh(&self, known: &Remembered, student: &StudentId) -> Option<Arc<MasteryResult>> {
        let age = self.clock.monotonic().saturating_sub(known.at);
        let is_fresh = age < self.options.memory_life && known.epoch == self.epoch();
        let mastery = known.mastery.as_ref().filter(|_| is_fresh)?;
        // Two learners may have the same hash.
        (mastery.student_id == student.as_str()).then(|| Arc::clone(mastery))
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The least version to believe. What was said longer ago than Redis keeps anything is moot.
    fn version_min(&self, known: &Remembered) -> u64 {
        let age = self.clock.monotonic().saturating_sub(known.at);
        if age < REDIS_LIFE { known.version } else { 0 }
    }

    fn remember(&self, place: u64, version: u64, mastery: Option<Arc<MasteryResult>>) {
        if self.options.memory_entries == 0 {
            return;
        }
        let (at, epoch) = (self.clock.monotonic(), self.epoch());
        let lock = self.newer_only.get(place as usize % LOCKS);
        let _newer_only = lock.map(SyncMutex::lock);
        if let Some(known) = self.memory.peek(&place) {
            let version_min = self.version_min(&known);
            let says_less = version == version_min && mastery.is_none();
            if version < version_min || says_less {
                return;
            }
        }
        self.memory.insert(place, Remembered { version, mastery, at, epoch });
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

    async fn tell(&self, commands: &[Vec<Bytes>]) {
        let told = self.keys.pipeline(commands).await;
        if !told.is_ok_and(|replies| replies.iter().all(Result::is_ok)) {
            self.counts.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Hears what other processes changed. Answers whether memory may be believed.
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
                *watch = Watch::default();
                false
            }
        }
    }

    /// Believes nothing that was remembered before; answers with where the stream ends.
    async fn begin(&self) -> Option<Bytes> {
        let command = [&b"XREVRANGE"[..], STREAM, b"+", b"-", b"COUNT", b"1"];
        let reply = self.keys.command(&command.map(Bytes::from_static)).await.ok()?;
        // Only now: what is remembered from here on is behind that entry.
        self.epoch.fetch_add(1, Ordering::AcqRel);
        let newest = entries(&reply).into_iter().next();
        Some(newest.map_or(Bytes::from_static(b"0-0"), |(id, _)| id))
    }

    /// Hears what came after this entry; answers with the last that came.
    async fn read_after(&self, mut last: Bytes) -> Option<Bytes> {
        let mut heard = 0;
        loop {
            let command = [&b"XREAD"[..], b"COUNT", b"1000", b"STREAMS", STREAM];
            let mut command = command.map(Bytes::from_static).to_vec();
            command.push(last.clone());
            let reply = self.keys.command(&command).await.ok()?;
            let page = streams(&reply).map(entries).unwrap_or_default();
            for (id, told) in &page {
                if let Some((place, version)) = told {
                    self.remember(*place, *version, None);
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

/// Which learner an entry means, without naming them.
fn place_of(student: &StudentId) -> u64 {
    let digest = Sha256::digest(student.as_str().as_bytes());
    digest.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn redis_key(student: &StudentId) -> Bytes {
    MasteryCache { student_id: student.clone() }.key().into()
}

fn invalidation(place: u64, version: u64) -> Vec<Bytes> {
    let mut command = [&b"XADD"[..], STREAM, b"MAXLEN", b"~"].map(Bytes::from_static).to_vec();
    command.extend([STREAM_LEN.to_string(), "*".to_owned()].map(Bytes::from));
    command.extend(["l".to_owned(), format!("{place:016x}")].map(Bytes::from));
    command.extend(["v".to_owned(), version.to_string()].map(Bytes::from));
    command
}

/// The entries of the only stream that was asked for.
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

/// The ids of entries, and which learner in which version they tell of.
fn entries(reply: &Reply) -> Vec<(Bytes, Option<(u64, u64)>)> {
    let Reply::Array(entries) = reply else { return Vec::new() };
    let text = |reply: &Reply| match reply {
        Reply::Bulk(text) => String::from_utf8(text.clone()).ok(),
        _ => None,
    };
    let entry = |entry: &Reply| {
        let Reply::Array(parts) = entry else { return None };
        let id = Bytes::from(text(parts.first()?)?);
        let told = match parts.get(1) {
            Some(Reply::Array(fields)) => match fields.as_slice() {
                [_, place, _, version] => {
                    let place = text(place).and_then(|it| u64::from_str_radix(&it, 16).ok());
                    place.zip(text(version).and_then(|it| it.parse().ok()))
                }
                _ => None,
            },
            _ => None,
        };
        Some((id, told))
    };
    entries.iter().filter_map(entry).collect()
}
