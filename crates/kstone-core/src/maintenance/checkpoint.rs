//! A consistent copy of an open database: SST files hard-linked, the live log copied.

use std::path::{Path, PathBuf};

use crate::engine::{Engine, Inner};
use crate::entry::Seq;
use crate::env::{OpenMode, VfsFile};
use crate::error::{Error, Result};
use crate::manifest::{self, Edit, State};
use crate::sst;
use crate::sync::Arc;
use crate::wal;

/// What a checkpoint holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its folder: a database that can be opened.
    pub path: PathBuf,
    /// It holds every commit up to this number.
    pub seq: Seq,
    /// SST files linked.
    pub files: u64,
    /// Log bytes copied.
    pub log_bytes: u64,
}

impl Engine {
    /// Makes a checkpoint in `target`, which must not exist or be empty. Writers go on meanwhile;
    /// flushes and compactions wait. The database remembers the folder, because a purge must reach
    /// the checkpoints made from it.
    pub fn checkpoint(&self, target: impl AsRef<Path>) -> Result<Checkpoint> {
        self.inner().checkpoint(target.as_ref())
    }

    /// Opens a checkpoint that was made from this database, on the same machine and with the same
    /// options; `None` if it is not there any more, or the folder is of another database by now.
    /// The layer above can change in it what a [purge](Engine::purge) is then to remove.
    pub fn open_checkpoint(&self, path: impl AsRef<Path>) -> Result<Option<Engine>> {
        let inner = self.inner();
        let options = crate::Options { create_if_missing: false, ..inner.options.clone() };
        match Engine::open_with(inner.env.clone(), path, options) {
            Ok(other) => Ok(Some(other).filter(|other| other.id() == inner.db_id)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The folders of the checkpoints made from this database.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        let keeper = self.inner().manifest.lock();
        keeper.state.checkpoints.iter().map(PathBuf::from).collect()
    }
}

impl Inner {
    fn checkpoint(&self, target: &Path) -> Result<Checkpoint> {
        self.check_writable()?;
        let _only_one = self.checkpoints.lock();
        let vfs = &self.env.vfs;
        let target = &vfs.absolute(target).map_err(|e| Error::io("find", target, e))?;
        vfs.create_dir_all(target).map_err(|e| Error::io("create", target, e))?;
        let there = vfs.list(target).map_err(|e| Error::io("list", target, e))?;
        if !there.is_empty() {
            return Err(Error::invalid(format!("{} is not empty", target.display())));
        }
        let name = target
            .to_str()
            .ok_or_else(|| Error::invalid(format!("{} is not valid UTF-8", target.display())))?;
        // While it is held, no file is removed and no log segment released.
        let mut keeper = self.manifest.lock();
        // Remembered before there is anything to forget: a crash must not leave a copy that a
        // purge does not know of.
        let mut edit = Edit { checkpoints_added: vec![name.to_owned()], ..Edit::default() };
        self.append_edit(&mut keeper, &mut edit)?;
        let copied = self.copy_into(target, keeper.state.clone());
        if copied.is_err() {
            // What cannot be removed now is no database either, and a purge will find it.
            let _ = self.remove_unfinished(target);
        }
        copied
    }

    fn copy_into(&self, target: &Path, mut state: State) -> Result<Checkpoint> {
        let vfs = &self.env.vfs;
        let seq = self.log.sync()?;
        state.checkpoints.clear();
        let mut files = 0;
        for (_, meta) in state.files() {
            let name = sst::file_name(meta.stripe, meta.file_id);
            let (from, to) = (self.dir.join(&name), target.join(&name));
            vfs.hard_link(&from, &to).map_err(|e| Error::io("link", &to, e))?;
            files += 1;
        }
        let log_bytes = self.copy_log(target)?;
        vfs.sync_dir(target).map_err(|e| Error::io("sync", target, e))?;
        // Last, because CURRENT is what makes the folder a database.
        manifest::write_snapshot(&**vfs, target, &state)?;
        Ok(Checkpoint { path: target.to_owned(), seq, files, log_bytes })
    }

    /// Removes what is left of a checkpoint that was never finished. Answers whether it was one: a
    /// finished one has a `CURRENT`, and is not touched.
    pub(crate) fn remove_unfinished(&self, target: &Path) -> Result<bool> {
        let vfs = &self.env.vfs;
        let names = match vfs.list(target) {
            Ok(names) => names,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::io("list", target, error)),
        };
        if names.iter().any(|name| name == manifest::CURRENT) {
            return Ok(false);
        }
        let mut ours: Vec<_> = names
            .into_iter()
            .filter(|name| sst::parse_file_name(name).is_some() || wal::is_segment_name(name))
            .collect();
        // No number is that of a live manifest, because there is none.
        ours.extend(manifest::leftovers(&**vfs, target, u64::MAX)?);
        for name in &ours {
            let path = target.join(name);
            vfs.remove(&path).map_err(|e| Error::io("remove", &path, e))?;
        }
        vfs.sync_dir(target).map_err(|e| Error::io("sync", target, e))?;
        Ok(true)
    }

    /// Copies the synced part of the live segments.
    fn copy_log(&self, target: &Path) -> Result<u64> {
        let vfs = &self.env.vfs;
        let mut copied: Vec<Arc<dyn VfsFile>> = Vec::new();
        let mut total = 0;
        for segment in &self.log.live_segments().segments {
            let Some(name) = segment.path.file_name() else { continue };
            let to_path = target.join(name);
            let from = vfs
                .open(&segment.path, OpenMode::Read)
                .map_err(|e| Error::io("open", &segment.path, e))?;
            let to = vfs
                .open(&to_path, OpenMode::CreateNew)
                .map_err(|e| Error::io("create", &to_path, e))?;
            let mut buf = vec![0; 1 << 20];
            let mut offset = 0;
            while offset < segment.copy_len {
                let len = buf.len().min((segment.copy_len - offset) as usize);
                let part = buf.get_mut(..len).unwrap_or_default();
                from.read_exact_at(part, offset)
                    .map_err(|e| Error::io("read", &segment.path, e))?;
                to.write_at(part, offset).map_err(|e| Error::io("write", &to_path, e))?;
                offset += len as u64;
            }
            total += offset;
            copied.push(to);
        }
        vfs.sync_files(&copied).map_err(|e| Error::io("sync the log in", target, e))?;
        Ok(total)
    }
}
