//! Opens a database: takes the lock, reads the manifest, finds the files that it names, replays the log.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::batch::{Op, Ops};
use crate::bugs::{self, Bug};
use crate::commit::{Log, LogOptions, RecoveryStart};
use crate::engine::admission::Admission;
use crate::engine::background::Background;
use crate::engine::clock::EngineClock;
use crate::engine::snapshots::Snapshots;
use crate::engine::{Counters, Inner, ManifestKeeper};
use crate::entry::{EntryRef, Seq};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::expiry;
use crate::key::STRIPES;
use crate::maintenance::purge::PurgeGauge;
use crate::manifest::{self, Edit, Manifest, State, TableEdit, TableState};
use crate::memtable::ChunkPool;
use crate::options::Options;
use crate::sst::{self, BlockCache, FileHandles, SstReader};
use crate::sync::{Arc, Mutex, RwLock};
use crate::table::TableId;
use crate::tables::Tables;
use crate::tree::file::TreeFile;
use crate::tree::levels::Levels;
use crate::tree::stripe::Stripe;

pub(crate) const LOCK_FILE: &str = "LOCK";

pub(crate) fn open(env: Env, dir: &Path, options: Options) -> Result<Inner> {
    let limits = options.limits()?;
    if options.create_if_missing {
        env.vfs.create_dir_all(dir).map_err(|e| Error::io("create", dir, e))?;
    } else {
        refuse_other_folder(&env, dir)?;
    }
    let lock = lock_folder(&env, dir)?;
    let (mut manifest, mut state) = open_manifest(&env, dir, &options)?;
    let cache = Arc::new(BlockCache::new(limits.cache_bytes_min as u64));
    let handles =
        Arc::new(FileHandles::new(Arc::clone(&env.vfs), dir.to_owned(), options.open_files_max));

    remove_orphans(&env, dir, &state, &manifest)?;
    let stripes = build_stripes(&env, dir, &state, &handles, &cache);
    let mut tables = Tables { next: state.next_table, known: state.tables.clone() };
    // What is replayed says nothing of what is written from now on.
    let replay_pool = ChunkPool::none();
    let chunk_pool = Arc::new(match env.threads {
        Some(_) => ChunkPool::new(limits.write_buffer_bytes),
        None => ChunkPool::none(),
    });
    let mut replay = Replay {
        stripes: &stripes,
        tables: &mut tables,
        state: &state,
        pool: &replay_pool,
        held: 0,
        pending: Vec::new(),
    };
    let log_options =
        LogOptions { segment_bytes: limits.log_segment_bytes, interval: options.sync_interval };
    let last_seq = if bugs::on(Bug::SequenceRestarts) { 0 } else { state.last_seq };
    let from = RecoveryStart { log_start: state.log_start, last_seq, expect_log: state.has_log() };
    let (log, recovered) = Log::open(&env, dir, state.db_id, log_options, from, &mut |commit| {
        replay
            .commit(commit.first_seq, commit.ops)
            .map_err(|at| Error::corruption(dir, at as u64, "a commit in the log does not decode"))
    })?;
    let (held, pending_tables) = (replay.held, replay.pending);
    let admission = Admission::holding(held);
    let clock = EngineClock::new(Arc::clone(&env.clock), state.clock_ms.max(recovered.clock_ms));
    if !state.has_log() {
        note_log(&mut manifest, &mut state, clock.now_ms())?;
    }
    let inner = Inner {
        db_id: state.db_id,
        next_file_id: AtomicU64::new(state.next_file_id),
        unnamed_files: Mutex::default(),
        checkpoints: Mutex::new(()),
        env,
        dir: dir.to_owned(),
        options,
        limits,
        clock,
        log,
        stripes,
        tables: RwLock::new(Arc::new(tables)),
        table_ids: Mutex::new(()),
        snapshots: Snapshots::default(),
        next_expiry: expiry::NextExpiry::unknown(),
        admission,
        background: Background::default(),
        manifest: Mutex::new(ManifestKeeper { manifest, state }),
        pending_tables: Mutex::new(pending_tables),
        cache,
        handles,
        counters: Counters::default(),
        purge_gauge: PurgeGauge::default(),
        run_long_work: OnceLock::new(),
        chunk_pool,
        deferred: Default::default(),
        latest_stripe: Default::default(),
        _lock: lock,
    };
    let now_ms = inner.clock.monotonic().as_millis() as u64;
    for stripe in 0..=255u8 {
        inner.stripe(stripe).touched_ms.store(now_ms, Ordering::Relaxed);
        let l0_files = inner.stripe(stripe).version().levels.level(0).len();
        inner.background.set_stopped(stripe, l0_files >= inner.options.tuning.l0_stop_files);
    }
    Ok(inner)
}

/// A folder that was never a database is left as it is: not even a lock file is made in it.
pub(crate) fn refuse_other_folder(env: &Env, dir: &Path) -> Result<()> {
    let names = env.vfs.list(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound { path: dir.to_owned() },
        _ => Error::io("list", dir, error),
    })?;
    let is_ours = |name: &String| {
        name == LOCK_FILE || manifest::is_file_name(name) || sst::parse_file_name(name).is_some()
    };
    match names.iter().any(is_ours) {
        true => Ok(()),
        false => Err(Error::NotFound { path: dir.to_owned() }),
    }
}

/// Takes the folder's lock.
pub(crate) fn lock_folder(env: &Env, dir: &Path) -> Result<Box<dyn crate::env::VfsLock>> {
    let path = dir.join(LOCK_FILE);
    env.vfs.lock(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { path: dir.to_owned() },
        std::io::ErrorKind::NotFound => Error::NotFound { path: dir.to_owned() },
        _ => Error::io("lock", &path, error),
    })
}

fn open_manifest(env: &Env, dir: &Path, options: &Options) -> Result<(Manifest, State)> {
    match Manifest::open(&env.vfs, dir)? {
        Some((mut manifest, state, opened)) => {
            // Go on in a fresh file, before anything is removed on the word of this one. It may end
            // in a torn record; and after a failed sync of an earlier process, what was read may
            // never reach the disk, although a sync now succeeds.
            match manifest.rewrite(&state) {
                Err(Error::DiskFull { .. }) if !opened.torn && !manifest.is_failed() => {}
                other => other?,
            }
            Ok((manifest, state))
        }
        None if options.create_if_missing => {
            let mut db_id = [0; 16];
            for half in db_id.chunks_exact_mut(8) {
                half.copy_from_slice(&env.random.next_u64().to_le_bytes());
            }
            Manifest::create(&env.vfs, dir, db_id)
        }
        None => Err(Error::NotFound { path: dir.to_owned() }),
    }
}

/// A new database has its log now: from here on, finding none is damage. Until here it is what a
/// crash during creation leaves, and there is nothing to lose.
fn note_log(manifest: &mut Manifest, state: &mut State, now_ms: u64) -> Result<()> {
    let edit = Edit { clock_ms: Some(now_ms.max(1)), ..Edit::default() };
    manifest.append(&edit)?;
    state.apply(&edit).map_err(Error::invalid)
}

/// Removes what an interrupted flush, compaction or rewrite left behind, and makes sure that every
/// file the manifest names is there.
fn remove_orphans(env: &Env, dir: &Path, state: &State, manifest: &Manifest) -> Result<()> {
    let names = env.vfs.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let mut missing: std::collections::HashSet<(u8, u64)> = state
        .stripes
        .iter()
        .flat_map(|stripe| stripe.levels.iter().flatten())
        .map(|meta| (meta.stripe, meta.file_id))
        .collect();
    for name in &names {
        if let Some(file) = sst::parse_file_name(name)
            && !missing.remove(&file)
        {
            let path = dir.join(name);
            env.vfs.remove(&path).map_err(|e| Error::io("remove", &path, e))?;
        }
    }
    if let Some(&(stripe, file_id)) = missing.iter().min() {
        let path = dir.join(sst::file_name(stripe, file_id));
        return Err(Error::corruption(&path, 0, "the manifest names this file and it is missing"));
    }
    for name in manifest::leftovers(&*env.vfs, dir, manifest.number())? {
        let path = dir.join(name);
        env.vfs.remove(&path).map_err(|e| Error::io("remove", &path, e))?;
    }
    Ok(())
}

fn build_stripes(
    env: &Env,
    dir: &Path,
    state: &State,
    handles: &Arc<FileHandles>,
    cache: &Arc<BlockCache>,
) -> Vec<Stripe> {
    // One for all stripes that have no files.
    let none = Arc::new(Levels::default());
    let build = |index: usize| {
        let mut add = Vec::new();
        for (level, files) in
            state.stripes.get(index).into_iter().flat_map(|s| s.levels.iter().enumerate())
        {
            for meta in files {
                let path = dir.join(sst::file_name(meta.stripe, meta.file_id));
                let reader = SstReader::open(
                    Arc::clone(meta),
                    Arc::clone(handles),
                    Arc::clone(cache),
                    state.db_id,
                );
                let file = TreeFile::new(reader, Arc::clone(&env.vfs), Arc::clone(handles), path);
                add.push((level as u8, Arc::new(file)));
            }
        }
        if add.is_empty() {
            return Stripe::new(Arc::clone(&none));
        }
        Stripe::new(Arc::new(none.edited(&add, &[])))
    };
    (0..STRIPES).map(build).collect()
}

/// Applies the log's commits to the memtables.
struct Replay<'a> {
    stripes: &'a [Stripe],
    tables: &'a mut Tables,
    state: &'a State,
    pool: &'a ChunkPool,
    held: usize,
    pending: Vec<(Seq, TableEdit)>,
}

impl Replay<'_> {
    fn commit(&mut self, first_seq: Seq, ops: &[u8]) -> Result<(), usize> {
        let mut decoder = Ops::new(ops, first_seq);
        while let Some((seq, op)) = decoder.next()? {
            match op {
                // Not for callers to write: the manifest would refuse it, once it is too late.
                Op::CreateTable(TableId::EXPIRY) | Op::DropTable(TableId::DEFAULT) => {
                    return Err(decoder.position());
                }
                Op::Entry { stripe, entry } => self.entry(stripe, entry),
                Op::CreateTable(TableId(id)) => {
                    let state = TableState { created_seq: seq, dropped_seq: None };
                    // A table that was created, dropped and forgotten has an id below `next`.
                    if id >= self.tables.next {
                        self.tables.known.entry(id).or_insert(state);
                        self.tables.next = self.tables.next.max(id.saturating_add(1));
                        self.pending.push((seq, TableEdit::Created { id, seq }));
                    }
                }
                Op::DropTable(TableId(id)) => {
                    if let Some(table) = self.tables.known.get_mut(&id)
                        && table.dropped_seq.is_none()
                    {
                        table.dropped_seq = Some(seq);
                        self.pending.push((seq, TableEdit::Dropped { id, seq }));
                    }
                }
                Op::Nop => {}
            }
        }
        Ok(())
    }

    fn entry(&mut self, stripe: u8, entry: EntryRef<'_>) {
        let index = usize::from(stripe);
        let flushed_seq = self.state.stripes.get(index).map_or(0, |s| s.flushed_seq);
        if entry.seq <= flushed_seq {
            return;
        }
        let Some(tree) = self.stripes.get(index) else { return };
        let index_key = expiry::index_key_of(&entry);
        let index = index_key.as_deref().map(|key| expiry::index_entry(&entry, key));
        tree.insert(entry, index, false, self.pool, |before, after| {
            self.held = self.held + after - before;
        });
    }
}
