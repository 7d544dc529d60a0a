//! Purge: removes bytes from every file that can hold them.
//!
//! A delete hides a record; its bytes stay in the log, in files and in the manifest's bounds until
//! compaction happens to pass. Purge makes that happen now: it deletes, waits for (or ends) the
//! snapshots that still see the records, flushes, rewrites every stripe concerned without
//! tombstones, rewrites the manifest, overwrites the log, and does the same in the checkpoints
//! made from this database. It can be interrupted anywhere and asked for again.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Weak;
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
    /// What a record was before its newest version. That one stays, if there is one.
    Versions {
        /// The table.
        table: TableId,
        /// The key.
        key: Key,
    },
    /// Whatever was deleted or dropped in a stripe before this: for what moved about, and left
    /// copies under keys that nobody knows any more.
    Deleted {
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
        let named = targets.iter().filter_map(PurgeTarget::table);
        if let Some(id) = named.map(|table| table.0).find(|id| !tables.known.contains_key(id)) {
            return Err(Error::NoSuchTable { id });
        }
        self.inner().purge(self, targets, snapshots)
    }
}

impl PurgeTarget {
    fn table(&self) -> Option<TableId> {
        match self {
            PurgeTarget::Partition { table, .. }
            | PurgeTarget::Record { table, .. }
            | PurgeTarget::Versions { table, .. } => Some(*table),
            PurgeTarget::Deleted { .. } => None,
        }
    }

    fn stripe(&self) -> u8 {
        match self {
            PurgeTarget::Partition { pk, .. } => stripe_of(pk),
            PurgeTarget::Record { key, .. } | PurgeTarget::Versions { key, .. } => key.stripe(),
            PurgeTarget::Deleted { stripe } => *stripe,
        }
    }
}

/// The stored keys that targets delete.
#[derive(Debug, Default)]
struct Covered {
    records: HashSet<Vec<u8>>,
    /// The first bytes of partitions, as far as [`internal::partition_len`] says.
    partitions: HashSet<Vec<u8>>,
}

impl Covered {
    fn new(targets: &[PurgeTarget]) -> Self {
        let mut covered = Covered::default();
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
                PurgeTarget::Versions { .. } | PurgeTarget::Deleted { .. } => {}
            }
        }
        covered
    }

    fn contains(&self, stored: &[u8]) -> bool {
        let partition = internal::partition_len(stored).and_then(|len| stored.get(..len));
        self.records.contains(stored)
            || partition.is_some_and(|partition| self.partitions.contains(partition))
    }
}

impl Inner {
    fn purge(
        self: &Arc<Self>,
        engine: &Engine,
        targets: &[PurgeTarget],
        snapshots: PurgeSnapshots,
    ) -> Result<Purged> {
        let stripes: StripeSet = targets.iter().map(PurgeTarget::stripe).collect();
        let _purging = self.log.begin_purge();
        let seq = self.delete_targets(engine, targets, &stripes)?;
        match snapshots {
            PurgeSnapshots::Wait(timeout) => {
                match self.snapshots.wait_none_below(seq, timeout, &self.clock) {
                    0 => {}
                    count => return Err(Error::SnapshotsInTheWay { count }),
                }
            }
            PurgeSnapshots::End => self.snapshots.end_below(seq),
        }
        self.log.scrub()?;
        let (_, fresh_from) = self.log.live_range();
        // Everything, because old segments go only when no stripe needs them.
        self.wait_visible(self.log.appended())?;
        self.flush_all()?;
        let mut old_files = Vec::new();
        for stripe in stripes.iter() {
            old_files.extend(self.stripe(stripe).version().levels.files().map(Arc::downgrade));
        }
        let is_named = |target: &&PurgeTarget| target.table().is_some();
        let named: StripeSet = targets.iter().filter(is_named).map(PurgeTarget::stripe).collect();
        self.compact_whole(&named, true)?;
        // What was only deleted has left a tombstone, or is gone.
        self.compact_whole(&stripes.without(&named), false)?;
        self.wait_for_readers(&old_files);
        self.remove_old_files(&stripes)?;
        self.purge_manifest()?;
        self.release_log_before(fresh_from)?;
        self.log.scrub()?;
        let (checkpoints, missing) = self.purge_checkpoints(targets)?;
        Ok(Purged { stripes: stripes.len() as u64, checkpoints, missing })
    }

    /// Deletes the targets and their entries in the expiry index, whose keys hold their keys;
    /// answers the number from which on readers do not see them.
    fn delete_targets(
        self: &Arc<Self>,
        engine: &Engine,
        targets: &[PurgeTarget],
        stripes: &StripeSet,
    ) -> Result<Seq> {
        let mut batch = WriteBatch::new();
        let mut seq = 0;
        let mut commit = |batch: &mut WriteBatch| {
            let commit = engine.write(batch, Durability::Sync)?;
            seq = commit.seq();
            batch.clear();
            commit.wait()
        };
        let tables = self.tables();
        let is_there =
            |target: &&PurgeTarget| target.table().is_some_and(|table| tables.check(table).is_ok());
        for target in targets.iter().filter(is_there) {
            match target {
                PurgeTarget::Partition { table, pk } => batch.drop_partition(*table, pk)?,
                PurgeTarget::Record { table, key } => batch.delete(*table, key)?,
                PurgeTarget::Versions { .. } | PurgeTarget::Deleted { .. } => {}
            }
            if batch.encoded_len() > PART_BYTES {
                commit(&mut batch)?;
            }
        }
        let covered = Covered::new(targets);
        for stripe in stripes.iter() {
            let mut index = self.expiry_index(stripe)?;
            while let Some((at_ms, stored)) = index.next()? {
                if covered.contains(&stored) {
                    batch.unindex(stripe, at_ms, &stored)?;
                }
                if batch.encoded_len() > PART_BYTES {
                    commit(&mut batch)?;
                }
            }
        }
        commit(&mut batch)?;
        for stripe in stripes.iter() {
            self.remove_all_stale(stripe)?;
        }
        // What was deleted before must not be seen by anybody either.
        Ok(seq.max(self.log.appended()))
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

    fn purge_checkpoints(&self, targets: &[PurgeTarget]) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let _no_other = self.checkpoints.lock();
        let known = self.manifest.lock().state.checkpoints.clone();
        let (mut purged, mut missing, mut forget) = (Vec::new(), Vec::new(), Vec::new());
        for name in known {
            let path = PathBuf::from(&name);
            if self.remove_unfinished(&path)? {
                forget.push(name);
                continue;
            }
            let options = crate::Options { create_if_missing: false, ..self.options.clone() };
            match Engine::open_with(self.env.clone(), &path, options) {
                // The folder was used again for another database, which is none of our business.
                Ok(other) if other.id() != self.db_id => {
                    missing.push(path);
                    forget.push(name);
                }
                Ok(checkpoint) => {
                    checkpoint.inner().purge(&checkpoint, targets, PurgeSnapshots::End)?;
                    purged.push(path);
                }
                Err(Error::NotFound { .. }) => {
                    missing.push(path);
                    forget.push(name);
                }
                Err(error) => return Err(error),
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
