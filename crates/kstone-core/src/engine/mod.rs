//! The engine: 256 trees behind one log, one manifest and one memory budget.
//!
//! [`Engine`] is a cheap handle. Reading top to bottom: `open` recovers, `write` commits (large batches
//! by `by_stripe`, pipelines through `deferred`), `locks` is read-modify-write, `admission` makes writers wait, `background` decides what to do next,
//! `flush` and `compact` do it, `install` makes it durable. Reads are in `crate::read`, the rarer
//! operations (checkpoint, ingest, purge, …) in `crate::maintenance`.

pub(crate) mod admission;
pub(crate) mod background;
mod by_stripe;
pub(crate) mod clock;
pub(crate) mod compact;
mod deferred;
pub(crate) mod flush;
pub(crate) mod install;
pub(crate) mod locks;
mod open;
pub(crate) mod reclaim;
pub(crate) mod snapshots;
pub(crate) mod write;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use crate::commit::Log;
use crate::entry::Seq;
use crate::env::{Env, VfsLock};
use crate::error::{Error, Result};
use crate::expiry::NextExpiry;
use crate::maintenance::purge::PurgeGauge;
use crate::manifest::{Manifest, State, TableEdit};
use crate::memtable::ChunkPool;
use crate::options::{Limits, Options};
use crate::sst::{BlockCache, FileHandles, SstOptions};
use crate::sync::{Mutex, RwLock};
use crate::table::TableId;
use crate::tables::Tables;
use crate::tree::stripe::Stripe;

pub(crate) use open::{lock_folder, refuse_other_folder};

use admission::{Admission, RunLongWork};
use background::Background;
use clock::EngineClock;
use snapshots::Snapshots;

/// A database: open it once, clone the handle freely, share it between threads.
///
/// ```
/// use kstone_core::{Durability, Engine, Key, Options, TableId, WriteBatch};
///
/// let engine = Engine::memory(Options::default())?;
/// let key = Key::with_sk("user#1", "post#001");
/// let mut batch = WriteBatch::new();
/// batch.put(TableId::DEFAULT, &key, b"hello")?;
/// engine.write(&batch, Durability::Sync)?.wait()?;
/// assert_eq!(engine.get(TableId::DEFAULT, &key)?.map(|r| r.value), Some("hello".into()));
/// # Ok::<(), kstone_core::Error>(())
/// ```
///
/// Dropping the last handle flushes what is in memory, syncs, and ends the background threads. The
/// folder stays locked for as long as a [`Snapshot`](crate::Snapshot) or iterator of it lives.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Shared by all handles; the background threads hold `inner` alone, so that the last handle
    /// to go is noticed.
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    inner: Arc<Inner>,
}

/// What the handles and the background threads share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) limits: Limits,
    pub(crate) db_id: [u8; 16],
    pub(crate) clock: EngineClock,
    pub(crate) log: Log,
    pub(crate) stripes: Vec<Stripe>,
    pub(crate) tables: RwLock<Arc<Tables>>,
    /// Table changes that only the log holds so far: (seq, change). They go into the next manifest
    /// edit. A lock of its own, because a commit must not wait for the holder of the manifest.
    pub(crate) pending_tables: Mutex<Vec<(Seq, TableEdit)>>,
    /// Held while a checkpoint is made, and while a purge looks after those that were made: an
    /// unfinished one must not be taken for one that was given up.
    pub(crate) checkpoints: Mutex<()>,
    /// Serialises creating tables: the next id is read, logged, then applied.
    pub(crate) table_ids: Mutex<()>,
    pub(crate) snapshots: Snapshots,
    pub(crate) next_expiry: NextExpiry,
    pub(crate) admission: Admission,
    pub(crate) background: Background,
    /// The manifest and the state that it describes. Held while a change is made durable and
    /// installed, so that installs happen in manifest order.
    pub(crate) manifest: Mutex<ManifestKeeper>,
    pub(crate) next_file_id: AtomicU64,
    /// Files that are being written or wait for their manifest edit.
    pub(crate) unnamed_files: Mutex<HashSet<u64>>,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) handles: Arc<FileHandles>,
    pub(crate) counters: Counters,
    pub(crate) purge_gauge: PurgeGauge,
    /// See [`Engine::run_long_work_with`].
    pub(crate) run_long_work: OnceLock<RunLongWork>,
    /// Memory for memtables.
    pub(crate) chunk_pool: Arc<ChunkPool>,
    /// Commits on their way to the memtables.
    deferred: deferred::DeferredInserts,
    /// The stripe of the latest record that was inserted.
    latest_stripe: AtomicUsize,
    /// Held for as long as the database is open.
    _lock: Box<dyn VfsLock>,
}

/// The manifest file and what it says.
#[derive(Debug)]
pub(crate) struct ManifestKeeper {
    pub(crate) manifest: Manifest,
    pub(crate) state: State,
}

/// What happened since the database was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) user_bytes: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) flush_bytes: AtomicU64,
    pub(crate) compactions: AtomicU64,
    pub(crate) compaction_read_bytes: AtomicU64,
    pub(crate) compaction_write_bytes: AtomicU64,
    pub(crate) compaction_moves: AtomicU64,
    pub(crate) ingest_bytes: AtomicU64,
}

impl Engine {
    /// Opens the database in `dir` on the real machine.
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Engine> {
        Engine::open_with(Env::system(), dir, options)
    }

    /// A database that lives in memory and is gone with its last handle.
    pub fn memory(options: Options) -> Result<Engine> {
        Engine::open_with(Env::memory(), "memory", options)
    }

    /// Opens the database in `dir` with files, time, randomness and threads from `env`.
    pub fn open_with(env: Env, dir: impl AsRef<Path>, options: Options) -> Result<Engine> {
        let inner = Arc::new(open::open(env, dir.as_ref(), options)?);
        inner.resize_cache();
        // From here on, dropping the handle ends what was started.
        let engine = Engine { handle: Arc::new(Handle { inner }) };
        engine.inner().start_threads()?;
        engine.inner().run_inline()?;
        Ok(engine)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.inner().dir
    }

    /// The memory that it was given, in bytes: for a layer above that keeps something in memory too
    /// and has to be in proportion.
    pub fn memory_budget_bytes(&self) -> usize {
        self.inner().options.memory_budget_bytes
    }

    /// The 16 random bytes that tell this database from every other. A checkpoint shares them.
    pub fn id(&self) -> [u8; 16] {
        self.inner().db_id
    }

    /// The highest sequence number that readers see.
    pub fn applied_seq(&self) -> Seq {
        self.inner().last_applied()
    }

    /// The highest sequence number that no crash can take back.
    pub fn durable_seq(&self) -> Seq {
        self.inner().log.durable()
    }

    /// Milliseconds since 1970 as the engine sees them: never running backwards, not even across a
    /// restart.
    pub fn now_ms(&self) -> u64 {
        self.inner().clock.now_ms()
    }

    /// A stopwatch that never goes back.
    pub fn monotonic(&self) -> std::time::Duration {
        self.inner().clock.monotonic()
    }

    /// Waits until everything up to `seq` is durable: what a reply owes its reader when it shows
    /// data read at that number.
    pub fn wait_durable(&self, seq: Seq) -> Result<()> {
        self.inner().log.wait_durable(seq)
    }

    /// Creates a table and answers its id. Durable when this returns.
    pub fn create_table(&self) -> Result<TableId> {
        self.inner().create_table()
    }

    /// Drops a table and everything in it, in constant time. Durable when this returns.
    pub fn drop_table(&self, table: TableId) -> Result<()> {
        let mut batch = crate::batch::WriteBatch::new();
        batch.drop_table(table)?;
        self.write(&batch, write::Durability::Sync)?.wait()
    }

    /// The tables that exist, the default one included.
    pub fn tables(&self) -> Vec<TableId> {
        let tables = self.inner().tables();
        let live = tables.known.iter().filter(|(_, state)| state.dropped_seq.is_none());
        live.map(|(&id, _)| TableId(id)).collect()
    }

    /// Writes everything in memory to files.
    pub fn flush(&self) -> Result<()> {
        self.inner().flush_all()
    }

    /// Flushes, then merges every stripe into its last level: the smallest and quickest to read
    /// that the data can be.
    pub fn compact(&self) -> Result<()> {
        self.inner().flush_all()?;
        self.inner().compact_all()
    }

    /// Waits until no flush or compaction is due, those included that wait until nothing is written.
    pub fn wait_idle(&self) -> Result<()> {
        self.inner().wait_idle()
    }

    /// Syncs the log: everything committed so far is durable when this returns.
    pub fn sync(&self) -> Result<()> {
        self.inner().log.sync().map(drop)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.handle.inner
    }
}

impl Inner {
    pub(crate) fn tables(&self) -> Arc<Tables> {
        Arc::clone(&self.tables.read())
    }

    pub(crate) fn stripe(&self, stripe: u8) -> &Stripe {
        // There are 256, one for each value of a byte.
        #[expect(clippy::indexing_slicing, reason = "256 stripes, indexed by a byte")]
        &self.stripes[usize::from(stripe)]
    }

    /// The options for a file of `level`; the last level of a stripe compresses harder.
    pub(crate) fn sst_options(&self, is_bottom: bool) -> SstOptions {
        let tuning = &self.options.tuning;
        SstOptions {
            block_bytes: tuning.block_bytes,
            restart_interval: tuning.restart_interval,
            compression: if is_bottom {
                self.options.bottom_compression
            } else {
                self.options.compression
            },
            filter_bits_per_key: tuning.filter_bits_per_key,
            parts_beyond_bytes: tuning.parts_beyond_bytes,
        }
    }

    /// Refuses everything once the database is closed or poisoned.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.background.is_closed() {
            return Err(Error::Closed);
        }
        match self.log.poisoned() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.inner.close();
    }
}
