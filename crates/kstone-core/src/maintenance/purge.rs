//! Purge: removes bytes from every file that can hold them.
//!
//! A delete hides a record; its bytes stay in the log, in files and in the manifest's bounds until
//! compaction happens to pass. Purge makes that happen now: it deletes, waits for (or ends) the
//! snapshots that still see the records, flushes, rewrites every stripe concerned without
//! tombstones, rewrites the manifest, overwrites the log, and does the same in the checkpoints
//! made from this database. It can be interrupted anywhere and asked for again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::batch::WriteBatch;
use crate::engine::write::Durability;
use crate::engine::{Engine, Inner};
use crate::error::{Error, Result};
use crate::key::{Key, internal, stripe_of};
use crate::manifest::Edit;
use crate::sst;
use crate::stripes::StripeSet;
use crate::sync::Arc;
use crate::table::TableId;

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
}

impl Engine {
    /// Deletes the targets and removes their bytes from every file of this database and of the
    /// checkpoints made from it. Other records are not touched.
    pub fn purge(&self, targets: &[PurgeTarget], snapshots: PurgeSnapshots) -> Result<Purged> {
        self.inner().purge(self, targets, snapshots)
    }
}

impl PurgeTarget {
    fn table(&self) -> TableId {
        match self {
            PurgeTarget::Partition { table, .. } | PurgeTarget::Record { table, .. } => *table,
        }
    }

    fn stripe(&self) -> u8 {
        match self {
            PurgeTarget::Partition { pk, .. } => stripe_of(pk),
            PurgeTarget::Record { key, .. } => key.stripe(),
        }
    }

    fn covers(&self, stored: &[u8]) -> bool {
        match self {
            PurgeTarget::Partition { table, pk } => {
                let mark = internal::partition_mark(*table, pk);
                mark.split_last()
                    .is_some_and(|(_, partition)| internal::is_in_partition(stored, partition))
            }
            PurgeTarget::Record { table, key } => internal::encode(*table, key) == stored,
        }
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
        let batch = self.purge_batch(targets, &stripes)?;
        let commit = engine.write(&batch, Durability::Sync)?;
        let seq = commit.seq();
        commit.wait()?;
        match snapshots {
            PurgeSnapshots::Wait(timeout) => match self.snapshots.wait_none_below(seq, timeout) {
                0 => {}
                count => return Err(Error::SnapshotsInTheWay { count }),
            },
            PurgeSnapshots::End => self.snapshots.end_below(seq),
        }
        self.log.scrub()?;
        // Everything, because old segments go only when no stripe needs them.
        self.flush_all()?;
        for stripe in stripes.iter() {
            self.compact_whole(stripe, true)?;
        }
        self.remove_old_files(&stripes)?;
        self.purge_manifest()?;
        self.release_log()?;
        self.log.scrub()?;
        let checkpoints = self.purge_checkpoints(targets)?;
        Ok(Purged { stripes: stripes.len() as u64, checkpoints })
    }

    /// The deletes, including those of the expiry index, whose keys hold the records' keys.
    fn purge_batch(&self, targets: &[PurgeTarget], stripes: &StripeSet) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for target in targets {
            match target {
                PurgeTarget::Partition { table, pk } => batch.drop_partition(*table, pk)?,
                PurgeTarget::Record { table, key } => batch.delete(*table, key)?,
            }
        }
        for stripe in stripes.iter() {
            let mut index = self.expiry_index(stripe)?;
            while let Some((at_ms, stored)) = index.next()? {
                if targets.iter().any(|target| target.covers(&stored)) {
                    batch.unindex(stripe, at_ms, &stored)?;
                }
            }
        }
        Ok(batch)
    }

    /// Removes every file of these stripes that is no longer part of the tree, even if a reader
    /// still holds it: readers of what was purged have been ended or waited for.
    fn remove_old_files(&self, stripes: &StripeSet) -> Result<()> {
        let names = self.env.vfs.list(&self.dir).map_err(|e| Error::io("list", &self.dir, e))?;
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
                match self.env.vfs.remove(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(Error::io("remove", &path, error));
                    }
                    _ => {}
                }
            }
        }
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
        self.env.vfs.sync_dir(&self.dir).map_err(|e| Error::io("sync", &self.dir, e))
    }

    fn purge_checkpoints(&self, targets: &[PurgeTarget]) -> Result<Vec<PathBuf>> {
        let known = self.manifest.lock().state.checkpoints.clone();
        let (mut purged, mut gone) = (Vec::new(), Vec::new());
        for name in known {
            let path = Path::new(&name);
            if self.remove_unfinished(path)? {
                gone.push(name);
                continue;
            }
            let options = crate::Options { create_if_missing: false, ..self.options.clone() };
            match Engine::open_with(self.env.clone(), path, options) {
                Ok(checkpoint) => {
                    // A table that is younger than the checkpoint has nothing in it.
                    let tables = checkpoint.tables();
                    let older = |target: &&PurgeTarget| tables.contains(&target.table());
                    let targets: Vec<_> = targets.iter().filter(older).cloned().collect();
                    if !targets.is_empty() {
                        checkpoint.purge(&targets, PurgeSnapshots::End)?;
                        purged.push(path.to_owned());
                    }
                }
                Err(Error::NotFound { .. }) => gone.push(name),
                Err(error) => return Err(error),
            }
        }
        if !gone.is_empty() {
            let mut keeper = self.manifest.lock();
            let mut edit = Edit { checkpoints_removed: gone, ..Edit::default() };
            self.append_edit(&mut keeper, &mut edit)?;
        }
        Ok(purged)
    }
}
