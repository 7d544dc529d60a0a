//! Purge: removes bytes from every file that can hold them.
//!
//! A delete hides a record; its bytes stay in the log, in files and in the manifest's bounds until
//! compaction happens to pass. Purge makes that happen now: it deletes, waits for (or ends) the
//! snapshots that still see the records, flushes, rewrites every stripe concerned without
//! tombstones, rewrites the manifest, overwrites the log, and does the same in the checkpoints
//! made from this database. It can be interrupted anywhere and asked for again.
//!
//! [`PurgeTarget::Remains`] asks for more: bytes of records that were deleted or overwritten before
//! anybody asked for a purge, of which no list exists.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::batch::WriteBatch;
use crate::engine::write::Durability;
use crate::engine::{Engine, Inner};
use crate::entry::Seq;
use crate::error::{Error, Result};
use crate::key::{Key, internal, stripe_of};
use crate::manifest::{self, Edit};
use crate::sst;
use crate::stripes::StripeSet;
use crate::sync::Arc;
use crate::table::TableId;
use crate::tree::file::TreeFile;

/// How many stripes are rewritten between two looks at how far it is.
const STRIPES_A_STEP: usize = 16;

/// Deletes are committed in parts of about this size, well below the limit of a batch.
const PART_BYTES: usize = 8 << 20;

/// What to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeTarget {
    /// Every record of a partition.
    Partition {
        /// The table.
        table: TableId,
        /// The partition key.
        pk: bytes::Bytes,
    },
    /// One record.
    Record {
        /// The table.
        table: TableId,
        /// The key.
        key: Key,
    },
    /// Nothing that anybody can read, and every byte that nobody can: older versions and deleted
    /// records, of all owners. Rewrites every stripe.
    Remains,
    /// The same in one stripe.
    RemainsIn {
        /// The stripe.
        stripe: u8,
    },
}

/// What to do about snapshots that still see what is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeSnapshots {
    /// Wait for them, at most this long, then fail with [`Error::SnapshotsInTheWay`].
    Wait(Duration),
    /// End them: their readers get [`Error::SnapshotEnded`].
    End,
    /// Wait for them, at most this long, then end them.
    EndAfter(Duration),
}

/// What a purge did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Purged {
    /// Stripes rewritten.
    pub stripes: u64,
    /// Checkpoints purged.
    pub checkpoints: Vec<PathBuf>,
    /// Checkpoints that were made from this database and are not where they were made. They are
    /// forgotten now; if they were moved and not deleted, purge them where they are.
    pub missing: Vec<PathBuf>,
    /// The first commit of the purge. Readers at the last one do not see what was purged.
    pub first_seq: Seq,
    /// The last commit of the purge.
    pub last_seq: Seq,
    /// Bytes of files read to rewrite them, without the checkpoints'.
    pub read_bytes: u64,
    /// How long all of it took.
    pub took: Duration,
}

/// How far a purge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PurgeProgress {
    /// Stripes rewritten.
    pub stripes_done: u64,
    /// Stripes to rewrite.
    pub stripes: u64,
}

/// Where a purge says how far it is. Of several at a time, the latest to say something is heard.
#[derive(Debug, Default)]
pub(crate) struct PurgeGauge {
    done: AtomicU64,
    all: AtomicU64,
}

impl PurgeGauge {
    fn set(&self, done: usize, all: usize) {
        self.done.store(done as u64, Ordering::Relaxed);
        self.all.store(all as u64, Ordering::Relaxed);
    }
}

/// The targets in a form in which a stored key is quickly found.
#[derive(Debug)]
struct TargetSet {
    records: HashSet<Vec<u8>>,
    partitions: HashSet<Vec<u8>>,
}

impl TargetSet {
    fn of(targets: &[PurgeTarget]) -> TargetSet {
        let mut covered = TargetSet { records: HashSet::new(), partitions: HashSet::new() };
        for target in targets {
            match target {
                PurgeTarget::Partition { table, pk } => {
                    let mut partition = internal::partition_mark(*table, pk);
                    partition.pop();
                    covered.partitions.insert(partition);
                }
                PurgeTarget::Record { table, key } => {
                    covered.records.insert(internal::encode(*table, key));
                }
                PurgeTarget::Remains | PurgeTarget::RemainsIn { .. } => {}
            }
        }
        covered
    }

    fn has(&self, stored: &[u8]) -> bool {
        let partition = internal::partition_len(stored).and_then(|end| stored.get(..end));
        self.records.contains(stored) || partition.is_some_and(|it| self.partitions.contains(it))
    }
}

impl Engine {
    /// Deletes the targets and removes their bytes from every file of this database and of the
    /// checkpoints made from it. Other records are not touched.
    ///
    /// Readers that still work on the files from before have a second to finish; after that, their
    /// files are gone and they get an error.
    pub fn purge(&self, targets: &[PurgeTarget], snapshots: PurgeSnapshots) -> Result<Purged> {
        let tables = self.inner().tables();
        // A dropped table may be purged too: its bytes are there until compaction passes.
        let unknown = targets.iter().filter_map(|target| Some(target.table()?.0));
        if let Some(id) = unknown.into_iter().find(|id| !tables.known.contains_key(id)) {
            return Err(Error::NoSuchTable { id });
        }
        self.inner().run_long_work(|| self.inner().purge(self, targets, snapshots))
    }

    /// How far the purge is that is under way; that of a checkpoint when it has come to those.
    pub fn purge_progress(&self) -> PurgeProgress {
        let gauge = &self.inner().purge_gauge;
        let stripes = gauge.all.load(Ordering::Relaxed);
        PurgeProgress { stripes_done: gauge.done.load(Ordering::Relaxed).min(stripes), stripes }
    }
}

impl PurgeTarget {
    fn table(&self) -> Option<TableId> {
        match self {
            PurgeTarget::Partition { table, .. } | PurgeTarget::Record { table, .. } => {
                Some(*table)
            }
            PurgeTarget::Remains | PurgeTarget::RemainsIn { .. } => None,
        }
    }

    fn add_stripes(&self, stripes: &mut StripeSet) {
        match self {
            PurgeTarget::Partition { pk, .. } => stripes.insert(stripe_of(pk)),
            PurgeTarget::Record { key, .. } => stripes.insert(key.stripe()),
            PurgeTarget::Remains => *stripes = StripeSet::ALL,
            PurgeTarget::RemainsIn { stripe } => stripes.insert(*stripe),
        }
    }

    /// Whether it is about what was deleted or overwritten before.
    fn is_remains(&self) -> bool {
        matches!(self, PurgeTarget::Remains | PurgeTarget::RemainsIn { .. })
    }
}

impl Inner {
    fn purge(
        self: &Arc<Self>,
        engine: &Engine,
        targets: &[PurgeTarget],
        snapshots: PurgeSnapshots,
    ) -> Result<Purged> {
        let began = self.clock.monotonic();
        let mut stripes = StripeSet::default();
        targets.iter().for_each(|target| target.add_stripes(&mut stripes));
        let _purging = self.log.begin_purge();
        self.purge_gauge.set(0, stripes.len());
        let (first_seq, last_seq) = self.delete_targets(engine, targets)?;
        // Of what was overwritten, the newest commit tells who may still see it.
        let seq = match targets.iter().any(PurgeTarget::is_remains) {
            true => last_seq.max(self.log.appended()),
            false => last_seq,
        };
        match snapshots {
            PurgeSnapshots::Wait(timeout) => {
                match self.snapshots.wait_none_below(seq, timeout, &self.clock) {
                    0 => {}
                    count => return Err(Error::SnapshotsInTheWay { count }),
                }
            }
            PurgeSnapshots::End => self.snapshots.end_below(seq),
            PurgeSnapshots::EndAfter(timeout) => {
                self.snapshots.wait_none_below(seq, timeout, &self.clock);
                self.snapshots.end_below(seq);
            }
        }
        self.log.scrub()?;
        let (_, fresh_from) = self.log.live_range();
        // Everything, because old segments go only when no stripe needs them.
        self.wait_visible(self.log.appended())?;
        self.flush_all()?;
        let mut old_files = Vec::new();
        let mut read_bytes = 0;
        for stripe in stripes.iter() {
            let version = self.stripe(stripe).version();
            for file in version.levels.files() {
                read_bytes += file.meta().file_bytes;
                old_files.push(Arc::downgrade(file));
            }
        }
        let in_order: Vec<u8> = stripes.iter().collect();
        for (step, group) in in_order.chunks(STRIPES_A_STEP).enumerate() {
            self.compact_whole(&group.iter().copied().collect(), true)?;
            self.purge_gauge.set(step * STRIPES_A_STEP + group.len(), stripes.len());
        }
        self.wait_for_readers(&old_files);
        self.remove_old_files(&stripes)?;
        self.purge_manifest()?;
        self.release_log_before(fresh_from)?;
        self.log.scrub()?;
        let (checkpoints, missing) = self.purge_checkpoints(engine, targets)?;
        Ok(Purged {
            stripes: stripes.len() as u64,
            checkpoints,
            missing,
            first_seq,
            last_seq,
            read_bytes,
            took: self.clock.monotonic().saturating_sub(began),
        })
    }

    /// Deletes the targets and their entries in the expiry index, whose keys hold their keys;
    /// answers the first and the last commit; readers from the last one on do not see them.
    fn delete_targets(
        self: &Arc<Self>,
        engine: &Engine,
        targets: &[PurgeTarget],
    ) -> Result<(Seq, Seq)> {
        let mut batch = WriteBatch::new();
        let (mut first_seq, mut last_seq) = (Seq::MAX, 0);
        let mut commit = |batch: &mut WriteBatch| {
            let commit = engine.write(batch, Durability::Sync)?;
            first_seq = first_seq.min(commit.first_seq());
            last_seq = commit.seq();
            batch.clear();
            commit.wait()
        };
        let tables = self.tables();
        let here = |table: TableId| tables.check(table).is_ok();
        for target in targets.iter().filter(|target| target.table().is_some_and(here)) {
            match target {
                PurgeTarget::Partition { table, pk } => batch.drop_partition(*table, pk)?,
                PurgeTarget::Record { table, key } => batch.delete(*table, key)?,
                PurgeTarget::Remains | PurgeTarget::RemainsIn { .. } => {}
            }
            if batch.encoded_len() > PART_BYTES {
                commit(&mut batch)?;
            }
        }
        let covered = TargetSet::of(targets);
        let (mut with_targets, mut with_remains) = (StripeSet::default(), StripeSet::default());
        for target in targets {
            let stripes = if target.is_remains() { &mut with_remains } else { &mut with_targets };
            target.add_stripes(stripes);
        }
        for stripe in with_remains.iter() {
            self.remove_all_stale(stripe)?;
        }
        for stripe in with_targets.iter() {
            let mut index = self.expiry_index(stripe)?;
            while let Some((at_ms, stored)) = index.next()? {
                if covered.has(&stored) {
                    batch.unindex(stripe, at_ms, &stored)?;
                }
                if batch.encoded_len() > PART_BYTES {
                    commit(&mut batch)?;
                }
            }
        }
        commit(&mut batch)?;
        Ok((first_seq, last_seq))
    }

    /// Gives readers a moment to let go of files that are no longer part of the tree.
    fn wait_for_readers(&self, old_files: &[Weak<TreeFile>]) {
        let tries = if self.env.threads.is_some() { 200 } else { 0 };
        for _ in 0..tries {
            if old_files.iter().all(|file| file.strong_count() == 0) {
                return;
            }
            self.background.wait_for_step();
        }
    }

    /// Makes the log let go of everything before `position`.
    fn release_log_before(&self, position: u64) -> Result<()> {
        let tries = if self.env.threads.is_some() { 2000 } else { 2 };
        for _ in 0..tries {
            self.release_log()?;
            if self.log.live_range().0 >= position {
                return Ok(());
            }
            // A commit was on its way into a memtable, or a checkpoint copies the log.
            self.background.wait_for_step();
            self.flush_all()?;
        }
        Err(Error::invalid(
            "the log is held by a checkpoint under way; purge again when it is done",
        ))
    }

    /// Removes every file of these stripes that is no longer part of the tree, even if a reader
    /// still holds it: readers of what was purged have been ended or waited for.
    fn remove_old_files(&self, stripes: &StripeSet) -> Result<()> {
        let names = self.env.vfs.list(&self.dir).map_err(|e| Error::io("list", &self.dir, e))?;
        let mut gone = Vec::new();
        for name in names {
            let Some((stripe, file_id)) = sst::parse_file_name(&name) else { continue };
            if !stripes.contains(stripe) || self.unnamed_files.lock().contains(&file_id) {
                continue;
            }
            // Under the manifest's lock a file is either in the tree or not.
            let _keeper = self.manifest.lock();
            let version = self.stripe(stripe).version();
            if version.levels.files().all(|file| file.meta().file_id != file_id) {
                let path = self.dir.join(&name);
                self.handles.evict(file_id);
                gone.push(file_id);
                match self.env.vfs.remove(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(Error::io("remove", &path, error));
                    }
                    _ => {}
                }
            }
        }
        // Not for their bytes on disk, but nobody will ask for their blocks again.
        self.cache.forget_files(|file_id| gone.contains(&file_id));
        self.env.vfs.sync_dir(&self.dir).map_err(|e| Error::io("sync", &self.dir, e))
    }

    /// The bounds of removed files are keys: they go with the old manifest.
    fn purge_manifest(&self) -> Result<()> {
        let mut keeper = self.manifest.lock();
        let keeper = &mut *keeper;
        if let Err(error) = keeper.manifest.rewrite(&keeper.state) {
            if keeper.manifest.is_failed() {
                self.log.poison(&error.to_string());
            }
            return Err(error);
        }
        // An older manifest whose removal failed once holds bounds too.
        let number = keeper.manifest.number();
        for name in manifest::leftovers(&*self.env.vfs, &self.dir, number)? {
            let path = self.dir.join(name);
            self.env.vfs.remove(&path).map_err(|e| Error::io("remove", &path, e))?;
        }
        self.env.vfs.sync_dir(&self.dir).map_err(|e| Error::io("sync", &self.dir, e))
    }

    fn purge_checkpoints(
        &self,
        engine: &Engine,
        targets: &[PurgeTarget],
    ) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let _no_other = self.checkpoints.lock();
        let known = self.manifest.lock().state.checkpoints.clone();
        let (mut purged, mut missing, mut forget) = (Vec::new(), Vec::new(), Vec::new());
        for name in known {
            let path = PathBuf::from(&name);
            if self.remove_unfinished(&path)? {
                forget.push(name);
                continue;
            }
            match engine.open_checkpoint(&path)? {
                Some(checkpoint) => {
                    checkpoint.inner().purge(&checkpoint, targets, PurgeSnapshots::End)?;
                    purged.push(path);
                }
                // Or the folder was used again for another database, which is none of our business.
                None => {
                    missing.push(path);
                    forget.push(name);
                }
            }
        }
        if !forget.is_empty() {
            let mut keeper = self.manifest.lock();
            let mut edit = Edit { checkpoints_removed: forget, ..Edit::default() };
            self.append_edit(&mut keeper, &mut edit)?;
        }
        Ok((purged, missing))
    }
}
