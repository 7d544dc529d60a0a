//! A disk that can be made to take for ever to sync.

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use kstone_core::env::{MemoryVfs, OpenMode, Vfs, VfsFile, VfsLock};

/// Files in memory, and whether syncing them is held up.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    files: Arc<MemoryVfs>,
    stalled: Arc<(Mutex<bool>, Condvar)>,
}

/// Until this is dropped, nothing more becomes durable.
pub struct Stall<'a>(&'a Disk);

impl Disk {
    pub fn stall(&self) -> Stall<'_> {
        self.set(true);
        Stall(self)
    }

    fn set(&self, is_stalled: bool) {
        *self.stalled.0.lock().unwrap() = is_stalled;
        self.stalled.1.notify_all();
    }

    fn pass(&self) {
        let stalled = self.stalled.0.lock().unwrap();
        drop(self.stalled.1.wait_while(stalled, |is_stalled| *is_stalled).unwrap());
    }
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Vfs for Disk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.files.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.files.list(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let file = self.files.open(path, mode)?;
        Ok(Arc::new(File { file, disk: self.clone() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.files.exists(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.hard_link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.files.sync_dir(dir)
    }

    fn sync_files(&self, files: &[Arc<dyn VfsFile>]) -> io::Result<()> {
        self.pass();
        let own = |file: &Arc<dyn VfsFile>| {
            let file: &dyn Any = file.as_ref();
            Arc::clone(&file.downcast_ref::<File>().unwrap().file)
        };
        self.files.sync_files(&files.iter().map(own).collect::<Vec<_>>())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        self.files.lock(path)
    }
}

#[derive(Debug)]
struct File {
    file: Arc<dyn VfsFile>,
    disk: Disk,
}

impl VfsFile for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.pass();
        self.file.sync_data()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.file.allocate(len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
