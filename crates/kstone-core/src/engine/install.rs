//! Makes a change of the trees durable (one manifest edit), then shows it to readers.

use std::sync::atomic::Ordering;

use crate::bugs::{self, Bug};
use crate::engine::{Inner, ManifestKeeper};
use crate::entry::Seq;
use crate::error::{Error, Result};
use crate::manifest::Edit;
use crate::memtable::Memtable;
use crate::sst::{SstMeta, SstReader};
use crate::sync::{Arc, MutexGuard};
use crate::tree::file::TreeFile;

/// A change of one stripe's tree.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) stripe: u8,
    pub(crate) add: Vec<(u8, Added)>,
    pub(crate) remove: Vec<(u8, Arc<TreeFile>)>,
    /// Memtables that are now in files, and the sequence number through which they reach.
    pub(crate) flushed: Option<(Seq, Vec<Arc<Memtable>>)>,
}

/// A file that a change puts somewhere.
#[derive(Debug)]
pub(crate) enum Added {
    /// A new one, already synced.
    New(SstMeta),
    /// One that comes from another level as it is.
    Moved(Arc<TreeFile>),
}

impl Inner {
    /// Makes the changes durable and visible, all of them in one manifest edit. Their files have
    /// been synced. On an error nothing is visible; if the manifest may be half-written, the
    /// database is poisoned.
    pub(crate) fn install(&self, changes: Vec<Change>) -> Result<()> {
        self.install_locked(self.manifest.lock(), changes)
    }

    /// [`Inner::install`] for a caller that holds the manifest already.
    pub(crate) fn install_locked(
        &self,
        mut keeper: MutexGuard<'_, ManifestKeeper>,
        changes: Vec<Change>,
    ) -> Result<()> {
        let floor = self.log_floor(&changes);
        // What the manifest says about the log must be true of the log on disk.
        self.log.wait_durable(floor)?;
        let mut edit = self.edit_of(&changes, &keeper, floor);
        let result = self.append_edit(&mut keeper, &mut edit);
        if let Err(error) = result {
            self.forget_new_files(&changes);
            return Err(error);
        }
        let mut freed = 0;
        for change in &changes {
            freed += self.install_one(change);
        }
        let log_start = keeper.state.log_start;
        drop(keeper);
        self.shrink_memtables(freed);
        // New files may make a compaction due.
        if self.env.threads.is_some() {
            self.background.kick();
        }
        // The change is made. A segment that cannot be removed is no reason to say otherwise.
        if let Err(error) = self.log.release(log_start) {
            self.background.note_failure(error);
        }
        Ok(())
    }

    /// Releases the part of the log that is needed no more, without any other change.
    pub(crate) fn release_log(&self) -> Result<()> {
        let mut keeper = self.manifest.lock();
        let floor = self.log_floor(&[]);
        self.log.wait_durable(floor)?;
        let is_news = self.log.log_start(floor) > keeper.state.log_start;
        if is_news || !self.pending_tables.lock().is_empty() {
            let mut edit = self.edit_of(&[], &keeper, floor);
            self.append_edit(&mut keeper, &mut edit)?;
        }
        let log_start = keeper.state.log_start;
        drop(keeper);
        self.log.release(log_start)
    }

    /// Makes the time durable: what was expired when the database closed stays expired.
    pub(crate) fn note_clock(&self) -> Result<()> {
        let mut keeper = self.manifest.lock();
        let clock_ms = self.clock.now_ms();
        if clock_ms == keeper.state.clock_ms {
            return Ok(());
        }
        let mut edit = Edit { clock_ms: Some(clock_ms), ..Edit::default() };
        self.append_edit(&mut keeper, &mut edit)
    }

    /// Appends an edit, and with it the table changes that only the log holds so far.
    pub(crate) fn append_edit(&self, keeper: &mut ManifestKeeper, edit: &mut Edit) -> Result<()> {
        self.log.poisoned().map_or(Ok(()), Err)?;
        // A table change must not be on disk while a commit before it can still be lost.
        let pending = self.pending_tables.lock().clone();
        if let Some(seq) = pending.iter().map(|&(seq, _)| seq).max() {
            self.log.wait_durable(seq)?;
            edit.last_seq = edit.last_seq.max(Some(seq));
        }
        edit.tables = pending.iter().map(|(_, table)| *table).collect();
        // Before it is written: an edit that the state refuses would make the manifest unreadable.
        let mut state = keeper.state.clone();
        if let Err(what) = state.apply(edit) {
            let error = Error::invalid(format!("the manifest refuses its own edit: {what}"));
            self.log.poison(&error.to_string());
            return Err(error);
        }
        match keeper.manifest.append(edit) {
            Ok(()) => {}
            // The manifest reserves its room before it writes: nothing has changed.
            Err(error @ Error::DiskFull { .. }) if !keeper.manifest.is_failed() => {
                return Err(error);
            }
            Err(error) => {
                self.log.poison(&error.to_string());
                return Err(error);
            }
        }
        keeper.state = state;
        self.pending_tables.lock().drain(..pending.len());
        if keeper.manifest.needs_rewrite() {
            match keeper.manifest.rewrite(&keeper.state) {
                Ok(()) | Err(Error::DiskFull { .. }) => {}
                Err(error) => self.log.poison(&error.to_string()),
            }
        }
        Ok(())
    }

    fn edit_of(&self, changes: &[Change], keeper: &ManifestKeeper, floor: Seq) -> Edit {
        let mut edit = Edit {
            next_file_id: Some(self.next_file_id.load(Ordering::Relaxed)),
            clock_ms: Some(self.clock.now_ms()),
            log_start: Some(self.log.log_start(floor).max(keeper.state.log_start)),
            ..Edit::default()
        };
        let mut last_seq = keeper.state.last_seq.max(floor);
        for change in changes {
            for (level, added) in &change.add {
                let meta = match added {
                    Added::New(meta) => meta,
                    Added::Moved(file) => file.meta(),
                };
                last_seq = last_seq.max(meta.newest_seq());
                edit.add.push((*level, meta.clone()));
            }
            for (level, file) in &change.remove {
                edit.remove.push((change.stripe, *level, file.meta().file_id));
            }
            if let Some((through, _)) = &change.flushed {
                last_seq = last_seq.max(*through);
                let wrong = u64::from(bugs::on(Bug::FlushedSeqTooHigh));
                edit.flushed.push((change.stripe, through + wrong));
            }
        }
        edit.last_seq = Some(last_seq);
        edit
    }

    /// The highest sequence number that the log need not hold once the changes are durable.
    fn log_floor(&self, changes: &[Change]) -> Seq {
        // Read first: a commit that is in the log but not yet in a memtable is above it.
        let visible = self.log.visible();
        if bugs::on(Bug::LogReleasedTooEarly) {
            return visible;
        }
        let mut floor = visible;
        for stripe in 0..=255u8 {
            let version = self.stripe(stripe).version();
            let done = changes.iter().find(|c| c.stripe == stripe).and_then(|c| c.flushed.as_ref());
            let unflushed = std::iter::once(&version.active)
                .chain(&version.frozen)
                .filter(|table| {
                    !done.is_some_and(|(_, tables)| tables.iter().any(|t| Arc::ptr_eq(t, table)))
                })
                .filter_map(|table| table.min_seq())
                .min();
            if let Some(min_seq) = unflushed {
                floor = floor.min(min_seq.saturating_sub(1));
            }
        }
        floor
    }

    fn install_one(&self, change: &Change) -> usize {
        let stripe = self.stripe(change.stripe);
        let add: Vec<_> = change
            .add
            .iter()
            .map(|(level, added)| match added {
                Added::New(meta) => (*level, self.tree_file(meta.clone())),
                Added::Moved(file) => (*level, Arc::clone(file)),
            })
            .collect();
        let remove: Vec<_> = change.remove.iter().map(|(_, file)| file.meta().file_id).collect();
        let levels = stripe.version().levels.edited(&add, &remove);
        let l0_files = levels.level(0).len();
        let flushed = change.flushed.as_ref().map_or(&[][..], |(_, tables)| tables);
        stripe.install(levels, flushed);
        if !flushed.is_empty() {
            let now_ms = self.clock.monotonic().as_millis() as u64;
            stripe.touched_ms.store(now_ms, Ordering::Relaxed);
        }
        self.background.set_stopped(change.stripe, l0_files >= self.options.tuning.l0_stop_files);
        for (_, file) in &change.remove {
            let moved = |added: &Added| matches!(added, Added::Moved(f) if Arc::ptr_eq(f, file));
            if !change.add.iter().any(|(_, added)| moved(added)) {
                file.mark_obsolete();
            }
        }
        flushed.iter().map(|table| table.entry_bytes()).sum()
    }

    /// After a failed edit the new files are not removed when the manifest may name them after
    /// all; the next open removes them if it does not.
    fn forget_new_files(&self, changes: &[Change]) {
        if self.log.poisoned().is_some() {
            return;
        }
        for (_, added) in changes.iter().flat_map(|change| &change.add) {
            if let Added::New(meta) = added {
                let name = crate::sst::file_name(meta.stripe, meta.file_id);
                let _ = self.env.vfs.remove(&self.dir.join(name));
            }
        }
    }

    pub(crate) fn tree_file(&self, meta: SstMeta) -> Arc<TreeFile> {
        let path = self.dir.join(crate::sst::file_name(meta.stripe, meta.file_id));
        let reader = SstReader::open(
            Arc::new(meta),
            Arc::clone(&self.handles),
            Arc::clone(&self.cache),
            self.db_id,
        );
        Arc::new(TreeFile::new(reader, Arc::clone(&self.env.vfs), Arc::clone(&self.handles), path))
    }
}
