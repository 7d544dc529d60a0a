//! A stripe: its lock, and the version of its tree that readers see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::entry::{EntryRef, Kind, Seq, is_expired};
use crate::error::Result;
use crate::key::internal;
use crate::memtable::{ChunkPool, Memtable};
use crate::prefetch;
use crate::sst::key_hash;
use crate::sync::{Mutex, MutexGuard, RwLock};
use crate::tree::cursor::Cursor;
use crate::tree::levels::Levels;

/// One of the 256 trees.
#[derive(Debug)]
pub(crate) struct Stripe {
    /// The unit of atomic read-modify-write. Several are taken in ascending order of stripe, by
    /// `engine::locks`, and by nothing else.
    lock: Mutex<()>,
    version: RwLock<Arc<Version>>,
    /// Set while a compaction works on the stripe: there is at most one.
    pub(crate) compacting: AtomicBool,
    /// When it was last flushed or looked at for garbage, in milliseconds of the stopwatch.
    pub(crate) touched_ms: AtomicU64,
    pub(crate) stats: StripeCounters,
}

/// What happened to a stripe since it was opened.
#[derive(Debug, Default)]
pub(crate) struct StripeCounters {
    pub(crate) gets: AtomicU64,
    /// What it has cost readers that L0 is not merged, since it last was; in looks at a filter.
    pub(crate) extra_files: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) bytes_flushed: AtomicU64,
    pub(crate) bytes_compacted: AtomicU64,
}

/// The parts of a stripe's tree at one moment: newest first, the active memtable, those being
/// flushed, the files. Only the active memtable still changes, by additions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Version {
    pub(crate) active: Arc<Memtable>,
    pub(crate) frozen: Vec<Arc<Memtable>>,
    pub(crate) levels: Arc<Levels>,
}

/// The newest version of a key that a reader sees, tombstones included.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    pub(crate) seq: Seq,
    pub(crate) kind: Kind,
    pub(crate) expires_at_ms: u64,
    pub(crate) value: bytes::Bytes,
}

impl Stripe {
    /// What a file more costs a get: a look at its filter.
    pub(crate) const GET: u64 = 1;
    /// What it costs a walk: a search in its index and in a block, keys kept and compared at every
    /// step.
    pub(crate) const WALK: u64 = 24;
    /// What it costs a walk at each step.
    pub(crate) const STEP: u64 = 2;

    pub(crate) fn new(levels: Arc<Levels>) -> Self {
        let version = Version { active: Arc::default(), frozen: Vec::new(), levels };
        Stripe {
            lock: Mutex::new(()),
            version: RwLock::new(Arc::new(version)),
            compacting: AtomicBool::new(false),
            touched_ms: AtomicU64::new(0),
            stats: StripeCounters::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock()
    }

    pub(crate) fn version(&self) -> Arc<Version> {
        Arc::clone(&self.version.read())
    }

    /// The version for a reader to which each extra file costs `effort`.
    pub(crate) fn version_to_read(&self, effort: u64) -> Arc<Version> {
        let version = self.version();
        self.count_extra_files(&version, effort);
        version
    }

    /// Counts that a reader of this version spent `effort` on each extra file.
    pub(crate) fn count_extra_files(&self, version: &Version, effort: u64) {
        let extra_files = version.levels.extra_files();
        if extra_files > 0 {
            self.stats.extra_files.fetch_add(extra_files * effort, Ordering::Relaxed);
        }
    }

    /// Adds a record, and the entry of the expiry index that belongs to it, to the active memtable;
    /// `recount` is told how many bytes that held before and holds now, which may be less: what
    /// waits for its place is counted at what the place may take. `is_warm` says that the stripe was written to just
    /// now: see [`Memtable::insert`].
    pub(crate) fn insert(
        &self,
        entry: EntryRef<'_>,
        index: Option<EntryRef<'_>>,
        is_warm: bool,
        pool: &ChunkPool,
        recount: impl FnOnce(usize, usize),
    ) {
        // The read guard is held throughout, so that no freeze falls between: a record and its
        // index entry have one sequence number and must be flushed together, and what a flush
        // gives back must have been counted before.
        let version = self.version.read();
        let before = version.active.bytes();
        version.active.insert(entry, is_warm, pool);
        if let Some(index) = index {
            version.active.insert(index, is_warm, pool);
        }
        recount(before, version.active.bytes());
    }

    /// The same for records of one batch that have no such entry.
    pub(crate) fn insert_all(
        &self,
        entries: &[EntryRef<'_>],
        is_warm: bool,
        pool: &ChunkPool,
        recount: impl FnOnce(usize, usize),
    ) {
        let version = self.version.read();
        let before = version.active.bytes();
        version.active.insert_all(entries, is_warm, pool);
        recount(before, version.active.bytes());
    }

    /// Prefetches the memory that inserting records of so many bytes needs.
    pub(crate) fn prefetch_insert(&self, bytes: usize) {
        if prefetch::HELPS {
            self.version.read().active.prefetch_insert(bytes);
        }
    }

    /// Turns the active memtable into a frozen one, unless it is empty.
    pub(crate) fn freeze(&self) {
        let mut version = self.version.write();
        if version.active.is_empty() {
            return;
        }
        let mut frozen = Vec::with_capacity(version.frozen.len() + 1);
        frozen.push(Arc::clone(&version.active));
        frozen.extend(version.frozen.iter().cloned());
        let levels = Arc::clone(&version.levels);
        *version = Arc::new(Version { active: Arc::default(), frozen, levels });
    }

    /// Replaces the files, and lets go of the frozen memtables that are now in them.
    pub(crate) fn install(&self, levels: Levels, flushed: &[Arc<Memtable>]) {
        let mut version = self.version.write();
        let frozen = version
            .frozen
            .iter()
            .filter(|table| !flushed.iter().any(|done| Arc::ptr_eq(done, table)))
            .cloned()
            .collect();
        let active = Arc::clone(&version.active);
        *version = Arc::new(Version { active, frozen, levels: Arc::new(levels) });
    }
}

impl Version {
    fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }

    /// The newest version of `key` at or below `seq`, whatever it says.
    pub(crate) fn lookup(&self, key: &[u8], seq: Seq) -> Result<Option<Hit>> {
        for table in self.memtables() {
            if table.is_empty() {
                continue;
            }
            if let Some(hit) = table.get(key, seq) {
                let (seq, kind, expires_at_ms) = (hit.seq, hit.kind, hit.expires_at_ms);
                return Ok(Some(Hit { seq, kind, expires_at_ms, value: hit.value }));
            }
        }
        if self.levels.depth() == 0 {
            return Ok(None);
        }
        Ok(self.levels.get(key, key_hash(key), seq)?.map(|hit| {
            let (seq, kind, expires_at_ms) = (hit.seq, hit.kind, hit.expires_at_ms);
            Hit { seq, kind, expires_at_ms, value: hit.value }
        }))
    }

    /// The record that a reader at (`seq`, `now_ms`) finds under `key`. Few records expire, so the
    /// clock is only asked for those that do.
    pub(crate) fn get(
        &self,
        key: &[u8],
        seq: Seq,
        now_ms: impl FnOnce() -> u64,
    ) -> Result<Option<Hit>> {
        let Some(hit) = self.lookup(key, seq)? else { return Ok(None) };
        let expires = hit.expires_at_ms != 0;
        if hit.kind != Kind::Put || (expires && is_expired(hit.expires_at_ms, now_ms())) {
            return Ok(None);
        }
        if self.max_mark_seq() > hit.seq {
            let mut mark = Vec::with_capacity(key.len());
            if internal::mark_of_into(key, &mut mark).is_some()
                && self.lookup(&mark, seq)?.is_some_and(|mark| mark.seq > hit.seq)
            {
                return Ok(None);
            }
        }
        Ok(Some(hit))
    }

    /// The newest partition drop anywhere in the stripe; 0 when there is none.
    pub(crate) fn max_mark_seq(&self) -> Seq {
        let tables = self.memtables().map(|table| table.max_mark_seq()).max().unwrap_or(0);
        tables.max(self.levels.max_mark_seq())
    }

    /// The oldest sequence number that is only in memory.
    pub(crate) fn unflushed_min_seq(&self) -> Option<Seq> {
        self.memtables().filter_map(|table| table.min_seq()).min()
    }

    /// The cursor that [`cursors`](Self::cursors) would give, if it would give just one.
    pub(crate) fn only_cursor(&self, low: &[u8], high: Option<&[u8]>) -> Option<Cursor> {
        let mut tables = self.memtables().filter(|table| !table.is_empty());
        match tables.next() {
            None => self.levels.only_cursor(low, high),
            Some(table) if tables.next().is_none() && !self.levels.overlap(low, high) => {
                Some(Cursor::Mem(table.cursor()))
            }
            Some(_) => None,
        }
    }

    /// Cursors over everything that may hold a key of `[low, high)`, newest source first.
    pub(crate) fn cursors(&self, low: &[u8], high: Option<&[u8]>) -> Vec<Cursor> {
        let mut sources = Vec::new();
        for table in self.memtables().filter(|table| !table.is_empty()) {
            sources.push(Cursor::Mem(table.cursor()));
        }
        // An active memtable that is empty now may be written to while the caller iterates, but
        // only above the caller's sequence number.
        self.levels.cursors(low, high, &mut sources);
        sources
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.memtables().map(|table| table.entry_bytes()).sum()
    }
}
