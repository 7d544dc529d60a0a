//! Flush: writes memtables to L0 files.
//!
//! One flush writes one file for each of its stripes, syncs them together, and makes one manifest
//! edit of them. **No hole**: the log is synced through the flushed records first, so a record can
//! never be on disk while an older one is lost.

use std::ops::Deref;
use std::sync::atomic::Ordering;

use crate::bugs::{self, Bug};
use crate::engine::Inner;
use crate::engine::install::{Added, Change};
use crate::entry::Seq;
use crate::env::VfsFile;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::sst::{FileIdent, SstMeta, SstWriter};
use crate::stripes::StripeSet;
use crate::sync::{Arc, MutexGuard};
use crate::tree::cursor::Cursor;
use crate::tree::merge::Merge;
use crate::tree::retain::{Retain, Verdict};

impl Inner {
    /// Flushes everything.
    pub(crate) fn flush_all(&self) -> Result<()> {
        let flushing = self.background.flushing.lock();
        self.insert_deferred();
        self.flush_stripes(&StripeSet::ALL, &flushing)
    }

    /// Flushes these stripes. The guard shows that no other flush runs.
    pub(crate) fn flush_stripes(
        &self,
        victims: &StripeSet,
        _flushing: &MutexGuard<'_, ()>,
    ) -> Result<()> {
        let mut jobs = Vec::new();
        for stripe in victims.iter() {
            let tree = self.stripe(stripe);
            tree.freeze();
            let frozen = tree.version().frozen.clone();
            if !frozen.is_empty() {
                jobs.push((stripe, frozen));
            }
            self.background.flush_done(stripe);
        }
        if jobs.is_empty() {
            return self.release_log();
        }
        let last_seq = jobs.iter().flat_map(|(_, tables)| tables).filter_map(|t| t.max_seq()).max();
        if !bugs::on(Bug::FlushAheadOfLog) {
            self.log.wait_durable(last_seq.unwrap_or(0))?;
        }
        let mut written = Written::new(self);
        let result = self.write_l0(&jobs, &mut written);
        match result {
            Ok(changes) => self.install(changes),
            Err(error) => {
                written.remove_all();
                Err(error)
            }
        }
    }

    fn write_l0(
        &self,
        jobs: &[(u8, Vec<Arc<Memtable>>)],
        written: &mut Written<&Inner>,
    ) -> Result<Vec<Change>> {
        // Taken after freezing: every reader below is registered, every later one reads at or
        // above the watermark.
        let boundaries = self.snapshots.boundaries(&self.log);
        let tables = self.tables();
        let mut changes = Vec::with_capacity(jobs.len());
        for (stripe, memtables) in jobs {
            let sources = memtables.iter().map(|table| Cursor::Mem(table.cursor())).collect();
            let mut merge = Merge::new(sources);
            merge.seek(&[], Seq::MAX)?;
            let mut retain = Retain::new(boundaries.clone(), &tables);
            let mut writer = None;
            while let Some(entry) = merge.entry() {
                if retain.judge(&entry, |_| false) == Verdict::Keep {
                    let writer = match &mut writer {
                        Some(writer) => writer,
                        none => none.insert(self.new_sst(*stripe, false, written)?),
                    };
                    writer.add(entry)?;
                }
                merge.next()?;
            }
            let mut add = Vec::new();
            if let Some(writer) = writer {
                let meta = written.finish(writer)?;
                self.counters.flush_bytes.fetch_add(meta.file_bytes, Ordering::Relaxed);
                let stats = &self.stripe(*stripe).stats;
                stats.bytes_flushed.fetch_add(meta.file_bytes, Ordering::Relaxed);
                add.push((0, Added::New(meta)));
            }
            let through = memtables.iter().filter_map(|table| table.max_seq()).max().unwrap_or(0);
            let flushed = Some((through, memtables.clone()));
            changes.push(Change { stripe: *stripe, add, remove: Vec::new(), flushed });
        }
        if !bugs::on(Bug::ManifestBeforeSst) {
            written.sync()?;
        }
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        Ok(changes)
    }

    /// Starts a new SST file, which `written` will remove if the work fails.
    pub(crate) fn new_sst(
        &self,
        stripe: u8,
        is_bottom: bool,
        written: &mut Written<impl Deref<Target = Inner>>,
    ) -> Result<SstWriter> {
        let ident = written.begin(stripe);
        SstWriter::create(&*self.env.vfs, &self.dir, ident, self.sst_options(is_bottom))
    }
}

/// The files that a flush, compaction or ingest has made and the manifest does not name yet. Made
/// by several threads, it owns a share of the engine.
#[derive(Debug)]
pub(crate) struct Written<I: Deref<Target = Inner>> {
    inner: I,
    begun: Vec<(u8, u64)>,
    files: Vec<Arc<dyn VfsFile>>,
}

impl<I: Deref<Target = Inner>> Written<I> {
    pub(crate) fn new(inner: I) -> Self {
        Written { inner, begun: Vec::new(), files: Vec::new() }
    }

    /// Names a file that will be made now.
    pub(crate) fn begin(&mut self, stripe: u8) -> FileIdent {
        let file_id = self.inner.next_file_id.fetch_add(1, Ordering::Relaxed);
        self.inner.unnamed_files.lock().insert(file_id);
        self.begun.push((stripe, file_id));
        FileIdent { db_id: self.inner.db_id, stripe, file_id }
    }

    /// Takes a file that is to be synced with the others.
    pub(crate) fn add(&mut self, file: Arc<dyn VfsFile>) {
        self.files.push(file);
    }

    /// The files to sync, as far as they are known.
    pub(crate) fn files(&self) -> &[Arc<dyn VfsFile>] {
        &self.files
    }

    pub(crate) fn finish(&mut self, writer: SstWriter) -> Result<SstMeta> {
        let (meta, file) = writer.finish()?;
        self.add(file);
        Ok(meta)
    }

    /// Makes data and names durable, with one sync for all files where the system has a way.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        let (vfs, dir) = (&self.inner.env.vfs, &self.inner.dir);
        if !bugs::on(Bug::SstSyncSkipped) {
            vfs.sync_files(&self.files).map_err(|e| Error::io("sync SST files in", dir, e))?;
        }
        if !bugs::on(Bug::SstDirSyncSkipped) {
            vfs.sync_dir(dir).map_err(|e| Error::io("sync", dir, e))?;
        }
        Ok(())
    }

    /// Removes what was made; what cannot be removed is an orphan that the next open removes.
    pub(crate) fn remove_all(&self) {
        for &(stripe, file_id) in &self.begun {
            let path = self.inner.dir.join(crate::sst::file_name(stripe, file_id));
            let _ = self.inner.env.vfs.remove(&path);
        }
    }
}

impl<I: Deref<Target = Inner>> Drop for Written<I> {
    fn drop(&mut self) {
        let mut unnamed = self.inner.unnamed_files.lock();
        for (_, file_id) in &self.begun {
            unnamed.remove(file_id);
        }
    }
}
