//! A file system in memory that can lose power, run full and fail to sync. For the tests of the
//! log only; it knows just the operations that the log uses.

use crate::env::{Env, ManualClock, OpenMode, OsThreads, Random, SeededRandom, Threads};
use crate::env::{Vfs, VfsFile, VfsLock};
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// The disk keeps or drops unsynced bytes in pieces of this size.
const PIECE: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct TestVfs {
    disk: Arc<Disk>,
}

#[derive(Debug, Default)]
struct Disk {
    files: Mutex<BTreeMap<PathBuf, Arc<TestFile>>>,
    /// Name changes since the last `sync_dir`: what a crash may put back.
    unsynced_names: Mutex<Vec<(PathBuf, Option<Arc<TestFile>>)>>,
    full: AtomicBool,
    sync_fails: AtomicBool,
    sync_delay_us: AtomicU64,
    syncs: AtomicU64,
    /// The power goes off when this many operations were done; negative = never.
    operations_left: AtomicI64,
}

#[derive(Debug, Default)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Debug)]
struct TestFile {
    disk: Arc<Disk>,
    content: Mutex<Content>,
}

impl Disk {
    fn operation(&self) -> io::Result<()> {
        match self.operations_left.load(SeqCst) {
            0 => Err(io::Error::other("the power is off")),
            left if left > 0 => {
                self.operations_left.store(left - 1, SeqCst);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl TestVfs {
    pub(crate) fn new() -> Arc<TestVfs> {
        let vfs = TestVfs::default();
        vfs.disk.operations_left.store(-1, SeqCst);
        Arc::new(vfs)
    }

    pub(crate) fn set_full(&self, full: bool) {
        self.disk.full.store(full, SeqCst);
    }

    pub(crate) fn set_sync_fails(&self, fails: bool) {
        self.disk.sync_fails.store(fails, SeqCst);
    }

    pub(crate) fn set_sync_delay_us(&self, micros: u64) {
        self.disk.sync_delay_us.store(micros, SeqCst);
    }

    /// Every operation after the next `count` fails.
    pub(crate) fn power_off_after(&self, count: i64) {
        self.disk.operations_left.store(count, SeqCst);
    }

    /// Whether there was power for more than was done.
    pub(crate) fn has_power_left(&self) -> bool {
        self.disk.operations_left.load(SeqCst) != 0
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.disk.syncs.load(SeqCst)
    }

    /// The bytes of a file as a reader sees them.
    pub(crate) fn bytes(&self, path: &Path) -> Vec<u8> {
        self.disk.files.lock().get(path).unwrap().content.lock().now.clone()
    }

    /// Changes the bytes of a file behind everybody's back, synced.
    pub(crate) fn edit(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let file = Arc::clone(self.disk.files.lock().get(path).unwrap());
        let mut content = file.content.lock();
        change(&mut content.now);
        content.synced = content.now.clone();
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.disk.files.lock().keys().cloned().collect()
    }

    /// What another machine would find on the disk if the power went off now: each unsynced piece
    /// and name change is there or not, as `random` has it.
    pub(crate) fn crashed(&self, random: &SeededRandom) -> Arc<TestVfs> {
        let after = TestVfs::new();
        let coin = || random.next_u64().is_multiple_of(2);
        let mut names = self.disk.files.lock().clone();
        for (path, before) in self.disk.unsynced_names.lock().iter().rev() {
            if coin() {
                continue;
            }
            match before {
                Some(file) => names.insert(path.clone(), Arc::clone(file)),
                None => names.remove(path),
            };
        }
        let keep_all = random.next_u64().is_multiple_of(4);
        for (path, file) in names {
            let content = file.content.lock();
            let mut kept = content.synced.clone();
            if content.now.len() != kept.len() && coin() {
                kept.resize(content.now.len(), 0);
            }
            for (old, new) in kept.chunks_mut(PIECE).zip(content.now.chunks(PIECE)) {
                if old.len() == new.len() && old != new && (keep_all || coin()) {
                    old.copy_from_slice(new);
                }
            }
            let content = Mutex::new(Content { now: kept.clone(), synced: kept });
            let file = TestFile { disk: Arc::clone(&after.disk), content };
            after.disk.files.lock().insert(path, Arc::new(file));
        }
        after
    }

    /// An environment around these files; with threads or without.
    pub(crate) fn env(self: &Arc<Self>, threads: bool) -> Env {
        Env {
            vfs: Arc::clone(self) as Arc<dyn Vfs>,
            clock: Arc::new(ManualClock::at(1_000)),
            random: Arc::new(SeededRandom::new(1)),
            threads: threads.then(|| Arc::new(OsThreads) as Arc<dyn Threads>),
        }
    }
}

impl Vfs for TestVfs {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let files = self.disk.files.lock();
        let names = files.keys().filter_map(|path| path.strip_prefix(dir).ok()?.to_str());
        Ok(names.map(str::to_owned).collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        self.disk.operation()?;
        let mut files = self.disk.files.lock();
        match (files.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => Ok(Arc::clone(file) as Arc<dyn VfsFile>),
            (None, OpenMode::CreateNew) => {
                let disk = Arc::clone(&self.disk);
                let file = Arc::new(TestFile { disk, content: Mutex::default() });
                files.insert(path.to_owned(), Arc::clone(&file));
                self.disk.unsynced_names.lock().push((path.to_owned(), None));
                Ok(file)
            }
            (None, _) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.disk.files.lock().contains_key(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.operation()?;
        let removed = self.disk.files.lock().remove(path);
        let removed = removed.ok_or(io::ErrorKind::NotFound)?;
        self.disk.unsynced_names.lock().push((path.to_owned(), Some(removed)));
        Ok(())
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        self.disk.operation()?;
        self.disk.unsynced_names.lock().clear();
        Ok(())
    }

    fn sync_files(&self, files: &[Arc<dyn VfsFile>]) -> io::Result<()> {
        files.iter().try_for_each(|file| file.sync_data())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn VfsLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl VfsFile for TestFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.content.lock();
        let rest = content.now.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.disk.operation()?;
        let mut content = self.content.lock();
        let end = offset as usize + buf.len();
        if content.now.len() < end {
            content.now.resize(end, 0);
        }
        content.now[offset as usize..end].copy_from_slice(buf);
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "stands in for the time a disk takes")]
    fn sync_data(&self) -> io::Result<()> {
        self.disk.operation()?;
        if self.disk.sync_fails.load(SeqCst) {
            return Err(io::Error::other("the disk is on fire"));
        }
        let delay = self.disk.sync_delay_us.load(SeqCst);
        if delay > 0 {
            // A benchmark of the waiting, not of the disk: nothing is kept for a crash.
            std::thread::sleep(Duration::from_micros(delay));
        } else {
            let mut content = self.content.lock();
            content.synced = content.now.clone();
        }
        self.disk.syncs.fetch_add(1, SeqCst);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.disk.operation()?;
        if self.disk.full.load(SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut content = self.content.lock();
        if content.now.len() < len as usize {
            content.now.resize(len as usize, 0);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.operation()?;
        self.content.lock().now.resize(len as usize, 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().now.len() as u64)
    }
}
