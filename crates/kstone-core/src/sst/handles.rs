//! Open files, bounded: a database may have far more SSTs than the process may have descriptors.

use std::path::PathBuf;
use std::sync::Arc;

use quick_cache::sync::Cache;

use super::{FileId, file_name};
use crate::env::{OpenMode, Vfs, VfsFile};
use crate::error::{Error, Result};

/// The files of a database folder, opened when first read and kept open while there is room.
#[derive(Debug)]
pub(crate) struct FileHandles {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    open: Cache<FileId, Arc<dyn VfsFile>>,
}

impl FileHandles {
    /// Keeps at most `max_open` files open, and each file that is being read just now.
    pub(crate) fn new(vfs: Arc<dyn Vfs>, dir: PathBuf, max_open: usize) -> Self {
        FileHandles { vfs, dir, open: Cache::new(max_open.max(1)) }
    }

    /// The file, for reading.
    pub(crate) fn get(&self, stripe: u8, file_id: FileId) -> Result<Arc<dyn VfsFile>> {
        if let Some(file) = self.open.get(&file_id) {
            return Ok(file);
        }
        let path = self.path(stripe, file_id);
        let file = self.vfs.open(&path, OpenMode::Read).map_err(|e| Error::io("open", &path, e))?;
        self.open.insert(file_id, file.clone());
        Ok(file)
    }

    /// Closes the file (when its last reader is done). Call it when the file is removed: an open
    /// handle keeps a removed file's blocks on the disk.
    pub(crate) fn evict(&self, file_id: FileId) {
        self.open.remove(&file_id);
    }

    /// How many files are kept open.
    #[cfg(test)]
    pub(crate) fn open_files(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn path(&self, stripe: u8, file_id: FileId) -> PathBuf {
        self.dir.join(file_name(stripe, file_id))
    }
}
