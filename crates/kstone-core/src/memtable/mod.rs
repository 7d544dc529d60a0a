//! The memtable of one stripe: its newest records, in memory and in order, every version of them.
//!
//! An arena holds the records (`arena`), in memory that was touched before (`chunk_pool`); a B+tree
//! orders them (`tree`, `node`), cursors walk them (`cursor`). Records are only added: to the arena
//! at once, and to the tree some dozens together, or before somebody looks. The write-ahead log makes them durable and a flush writes
//! them to an SST; neither is this module's business.
//!
//! May call `entry` and `sync`. Called by the stripe: its commit path inserts (one writer at a
//! time, under the stripe's lock), its read path gets and walks, its flush walks. Any number of
//! readers run beside the writer; the lock in here is held for one search or for a few copies at a time.
//!
//! Rejected: a lock-free skip list. It needs `unsafe`, touches a cache line per level, and saves
//! a lock that is hardly ever contended because each of the 256 stripes has its own.

mod arena;
mod chunk_pool;
mod cursor;
mod node;
mod tree;

#[cfg(test)]
mod tests;

use bytes::Bytes;

use self::arena::Record;
pub(crate) use self::chunk_pool::ChunkPool;
pub(crate) use self::cursor::MemCursor;
use self::tree::Tree;
use crate::entry::{EntryRef, Kind, Seq};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::sync::{Arc, RwLock, RwLockReadGuard};

/// The records of one stripe that are not in an SST yet.
///
/// The figures are written under the lock and read without it. A reader that knows that a sequence
/// number is applied sees figures that count it: that hand-over orders the memory, so relaxed
/// loads are enough here.
#[derive(Debug)]
pub(crate) struct Memtable {
    /// Created by the first insert: most of 256 stripes may be empty at any time.
    tree: RwLock<Option<Box<Tree>>>,
    /// How many records are not in the tree yet.
    arrivals: AtomicUsize,
    bytes: AtomicUsize,
    min_seq: AtomicU64,
    max_seq: AtomicU64,
    max_mark_seq: AtomicU64,
    puts: AtomicU64,
    deletes: AtomicU64,
    marks: AtomicU64,
    expiring: AtomicU64,
    key_bytes: AtomicU64,
    value_bytes: AtomicU64,
}

/// The version of a key that a get found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemHit {
    pub(crate) seq: Seq,
    pub(crate) kind: Kind,
    pub(crate) expires_at_ms: u64,
    pub(crate) value: Bytes,
}

impl Memtable {
    /// What the entries hold: [`Memtable::bytes`] without the empty table's own.
    pub(crate) fn entry_bytes(&self) -> usize {
        self.bytes().saturating_sub(size_of::<Self>())
    }
}

impl Default for Memtable {
    fn default() -> Self {
        Self::new()
    }
}

impl Memtable {
    pub(crate) fn new() -> Self {
        Memtable {
            tree: RwLock::new(None),
            arrivals: AtomicUsize::new(0),
            bytes: AtomicUsize::new(size_of::<Self>()),
            min_seq: AtomicU64::new(Seq::MAX),
            max_seq: AtomicU64::new(0),
            max_mark_seq: AtomicU64::new(0),
            puts: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            marks: AtomicU64::new(0),
            expiring: AtomicU64::new(0),
            key_bytes: AtomicU64::new(0),
            value_bytes: AtomicU64::new(0),
        }
    }

    /// Adds an entry. One with the same key and sequence number takes the place of the earlier
    /// one, so that recovery may replay a record twice.
    ///
    /// It gets its place in the tree with some dozens of others, or before the next read, unless
    /// the tree `is_warm`: then the nodes are in the processor's cache already, and waiting costs
    /// more than it saves.
    pub(crate) fn insert(&self, entry: EntryRef<'_>, is_warm: bool, pool: &ChunkPool) {
        self.insert_all(&[entry], is_warm, pool);
    }

    /// The same for some entries at once: the lock is taken, and its memory waited for, once.
    pub(crate) fn insert_all(&self, entries: &[EntryRef<'_>], is_warm: bool, pool: &ChunkPool) {
        let mut guard = self.tree.write();
        let tree = guard.get_or_insert_with(|| Box::new(Tree::new()));
        for &entry in entries {
            // Counted first: a reader without the lock may see one entry too many, never one too few.
            self.count(entry);
            let arrivals = tree.add(entry, is_warm, pool, |old| self.uncount(old));
            self.arrivals.store(arrivals, Relaxed);
            self.min_seq.store(self.min_seq.load(Relaxed).min(entry.seq), Relaxed);
            self.max_seq.store(self.max_seq.load(Relaxed).max(entry.seq), Relaxed);
        }
        self.bytes.store(size_of::<Self>() + size_of::<Tree>() + tree.bytes(), Relaxed);
    }

    /// The tree, in which everything is that was inserted before this was called.
    fn settled(&self) -> RwLockReadGuard<'_, Option<Box<Tree>>> {
        if self.arrivals.load(Relaxed) > 0
            && let Some(tree) = self.tree.write().as_deref_mut()
        {
            tree.settle(|old| self.uncount(old));
            // The next insert reports what it takes: the memory count learns of it from inserts.
            self.arrivals.store(0, Relaxed);
        }
        self.tree.read()
    }

    /// Prefetches the memory that inserting records of so many bytes needs.
    pub(crate) fn prefetch_insert(&self, bytes: usize) {
        if let Some(tree) = self.tree.read().as_deref() {
            tree.prefetch_insert(bytes);
        }
    }

    /// The newest version of `key` whose sequence number is at most `max_seq`.
    pub(crate) fn get(&self, key: &[u8], max_seq: Seq) -> Option<MemHit> {
        let guard = self.settled();
        let tree = guard.as_deref()?;
        let record = tree.record(tree.at_or_after(key, max_seq)?);
        (record.key == key).then(|| MemHit {
            seq: record.seq,
            kind: record.kind,
            expires_at_ms: record.expires_at_ms,
            value: record.value.to_bytes(),
        })
    }

    /// A cursor that is not on an entry yet: seek first.
    pub(crate) fn cursor(self: &Arc<Self>) -> MemCursor {
        MemCursor::new(Arc::clone(self))
    }

    /// The memory that this memtable holds, unused ends of buffers included.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// How many entries there are; each version of a key is one.
    pub(crate) fn len(&self) -> u64 {
        self.puts() + self.deletes() + self.marks()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn min_seq(&self) -> Option<Seq> {
        let seq = self.min_seq.load(Relaxed);
        (seq != Seq::MAX).then_some(seq)
    }

    pub(crate) fn max_seq(&self) -> Option<Seq> {
        let seq = self.max_seq.load(Relaxed);
        (seq != 0).then_some(seq)
    }

    pub(crate) fn puts(&self) -> u64 {
        self.puts.load(Relaxed)
    }

    pub(crate) fn deletes(&self) -> u64 {
        self.deletes.load(Relaxed)
    }

    /// How many partition drops there are. A read looks for the mark of its partition only if
    /// there are any.
    pub(crate) fn marks(&self) -> u64 {
        self.marks.load(Relaxed)
    }

    /// The newest partition drop; 0 if there is none.
    pub(crate) fn max_mark_seq(&self) -> Seq {
        self.max_mark_seq.load(Relaxed)
    }

    /// How many entries carry an expiry.
    pub(crate) fn expiring(&self) -> u64 {
        self.expiring.load(Relaxed)
    }

    /// The length of all keys together: about what a flush will write, with [`Self::value_bytes`].
    pub(crate) fn key_bytes(&self) -> u64 {
        self.key_bytes.load(Relaxed)
    }

    /// The length of all values together.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.value_bytes.load(Relaxed)
    }

    fn count(&self, entry: EntryRef<'_>) {
        add(self.kind_count(entry.kind), 1);
        add(&self.expiring, u64::from(entry.expires_at_ms != 0));
        add(&self.key_bytes, entry.key.len() as u64);
        add(&self.value_bytes, entry.value.len() as u64);
        if entry.kind == Kind::DropPartition {
            self.max_mark_seq.store(self.max_mark_seq().max(entry.seq), Relaxed);
        }
    }

    fn uncount(&self, old: Record<'_>) {
        subtract(self.kind_count(old.kind), 1);
        subtract(&self.expiring, u64::from(old.expires_at_ms != 0));
        subtract(&self.key_bytes, old.key.len() as u64);
        subtract(&self.value_bytes, old.value.len() as u64);
    }

    fn kind_count(&self, kind: Kind) -> &AtomicU64 {
        match kind {
            Kind::Put => &self.puts,
            Kind::Delete => &self.deletes,
            Kind::DropPartition => &self.marks,
        }
    }
}

// Only the holder of the write lock changes a figure, so a load and a store do what a locked
// instruction would, for less.

#[inline]
fn add(figure: &AtomicU64, by: u64) {
    figure.store(figure.load(Relaxed) + by, Relaxed);
}

#[inline]
fn subtract(figure: &AtomicU64, by: u64) {
    figure.store(figure.load(Relaxed) - by, Relaxed);
}
