//! A live SST file of a tree, which removes itself once nobody needs it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::env::Vfs;
use crate::sst::{FileHandles, SstMeta, SstReader};

/// An SST file that some version of a stripe refers to.
///
/// Readers keep files alive by holding the version they started with. A file that the manifest no
/// longer names is marked obsolete and is removed from the disk when its last reader lets go.
#[derive(Debug)]
pub(crate) struct TreeFile {
    pub(crate) reader: Arc<SstReader>,
    obsolete: AtomicBool,
    vfs: Arc<dyn Vfs>,
    handles: Arc<FileHandles>,
    path: PathBuf,
}

impl TreeFile {
    pub(crate) fn new(
        reader: SstReader,
        vfs: Arc<dyn Vfs>,
        handles: Arc<FileHandles>,
        path: PathBuf,
    ) -> Self {
        let obsolete = AtomicBool::new(false);
        TreeFile { reader: Arc::new(reader), obsolete, vfs, handles, path }
    }

    pub(crate) fn meta(&self) -> &SstMeta {
        self.reader.meta()
    }

    /// Whether some key of `[low, high)` may be inside; `high` = `None` has no end.
    pub(crate) fn overlaps(&self, low: &[u8], high: Option<&[u8]>) -> bool {
        let meta = self.meta();
        meta.largest.as_slice() >= low && high.is_none_or(|high| meta.smallest.as_slice() < high)
    }

    /// The manifest no longer names the file: remove it when the last reader lets go.
    pub(crate) fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for TreeFile {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            self.handles.evict(self.meta().file_id);
            // A file that cannot be removed is an orphan, and the next open removes it.
            let _ = self.vfs.remove(&self.path);
        }
    }
}
