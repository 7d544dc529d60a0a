//! A disk that records crash images of itself: what a crash at each moment would leave.
//!
//! Wraps a [`SimDisk`]. Before every sync, and before every n-th other change, it keeps images of
//! the disk under several crash policies, together with what had been promised by then. So one run
//! of a workload is crashed at all of its moments, instead of being run once for each.
//!
//! Before a sync is where most is at stake: everything since the last one is unsynced. A crash right
//! *after* a sync leaves the same disk as one before the next change.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kstone_core::Seq;
use kstone_core::env::{OpenMode, Vfs, VfsFile, VfsLock};
use kstone_sim::{CrashPolicy, SimDisk};

use crate::model::Model;

/// What the engine has promised so far. Commits are counted by their place in the history.
#[derive(Debug, Clone, Default)]
pub(crate) struct Promises {
    /// The last commit that no power loss may take.
    pub(crate) durable: usize,
    /// The last commit that a kill of the process may not take.
    pub(crate) written: usize,
    /// The last commit that was begun, whatever became of it.
    pub(crate) begun: usize,
    pub(crate) durable_seq: Seq,
    /// The engine's time when the last durable commit was made.
    pub(crate) clock_ms: u64,
    pub(crate) checkpoints: Vec<CheckpointPromise>,
}

/// A checkpoint that was begun.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointPromise {
    pub(crate) path: PathBuf,
    /// Whether it must be there.
    pub(crate) done: bool,
    /// What it may hold.
    pub(crate) may_hold: Vec<Model>,
}

/// A disk as a crash left it, and what must be on it.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) moment: String,
    pub(crate) policy: CrashPolicy,
    pub(crate) disk: SimDisk,
    pub(crate) promises: Promises,
}

/// When to take images, and how many.
#[derive(Debug, Clone, Copy)]
pub struct ImageDensity {
    /// At each chosen moment, so many random outcomes beside "all lost" and "all kept".
    pub randoms: u64,
    /// Of the syncs, every n-th.
    pub sync_stride: u64,
    /// Of the other changes of the disk, every n-th; 0 = none.
    pub op_stride: u64,
}

/// The disk and its pictures. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct RecordingDisk {
    disk: SimDisk,
    album: Arc<Mutex<ImageCollector>>,
}

#[derive(Debug)]
struct ImageCollector {
    density: ImageDensity,
    seed: u64,
    syncs: u64,
    ops: u64,
    images: Vec<Image>,
    promises: Promises,
}

impl RecordingDisk {
    pub(crate) fn new(disk: SimDisk, density: ImageDensity, seed: u64) -> Self {
        let album = ImageCollector {
            density,
            seed,
            syncs: 0,
            ops: 0,
            images: Vec::new(),
            promises: Promises::default(),
        };
        RecordingDisk { disk, album: Arc::new(Mutex::new(album)) }
    }

    pub(crate) fn promises(&self) -> Promises {
        self.album().promises.clone()
    }

    pub(crate) fn promise(&self, change: impl FnOnce(&mut Promises)) {
        change(&mut self.album().promises);
    }

    /// The images since the last call.
    pub(crate) fn take_images(&self) -> Vec<Image> {
        std::mem::take(&mut self.album().images)
    }

    /// Takes one image now.
    pub(crate) fn take_image(&self, moment: &str, policy: CrashPolicy) {
        self.album().keep(&self.disk, moment.to_owned(), policy);
    }

    fn album(&self) -> MutexGuard<'_, ImageCollector> {
        self.album.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn before_sync(&self, of: &str) {
        let mut album = self.album();
        let n = album.syncs;
        album.syncs += 1;
        if n.is_multiple_of(album.density.sync_stride.max(1)) {
            let moment = format!("before sync {n} ({of})");
            album.keep(&self.disk, moment.clone(), CrashPolicy::LoseAll);
            album.keep(&self.disk, moment.clone(), CrashPolicy::KeepAll);
            for _ in 0..album.density.randoms {
                album.keep_random(&self.disk, moment.clone());
            }
        }
    }

    fn before_op(&self, of: &str, path: &Path) {
        let mut album = self.album();
        let n = album.ops;
        album.ops += 1;
        let stride = album.density.op_stride;
        if stride != 0 && n.is_multiple_of(stride) {
            let moment = format!("before change {n} ({of} {})", path.display());
            album.keep(&self.disk, moment.clone(), CrashPolicy::KeepAll);
            album.keep_random(&self.disk, moment);
        }
    }
}

impl ImageCollector {
    fn keep(&mut self, disk: &SimDisk, moment: String, policy: CrashPolicy) {
        let (disk, promises) = (disk.crash(policy), self.promises.clone());
        self.images.push(Image { moment, policy, disk, promises });
    }

    fn keep_random(&mut self, disk: &SimDisk, moment: String) {
        self.seed = self.seed.wrapping_add(1);
        self.keep(disk, moment, CrashPolicy::Random(self.seed));
    }
}

impl Vfs for RecordingDisk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        if mode == OpenMode::CreateNew {
            self.before_op("create", path);
        }
        let file = self.disk.open(path, mode)?;
        Ok(Arc::new(RecordingFile { file, path: path.to_owned(), watched: self.clone() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.before_op("remove", path);
        self.disk.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before_op("rename to", to);
        self.disk.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before_op("link", to);
        self.disk.hard_link(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.before_sync(&format!("folder {}", dir.display()));
        self.disk.sync_dir(dir)
    }

    fn sync_files(&self, files: &[Arc<dyn VfsFile>]) -> io::Result<()> {
        self.before_sync(&format!("{} files", files.len()));
        let mut inner = Vec::with_capacity(files.len());
        for file in files {
            let file: &dyn Any = file.as_ref();
            let file = file.downcast_ref::<RecordingFile>().ok_or(io::ErrorKind::InvalidInput)?;
            inner.push(Arc::clone(&file.file));
        }
        self.disk.sync_files(&inner)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        self.disk.lock(path)
    }
}

#[derive(Debug)]
struct RecordingFile {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    watched: RecordingDisk,
}

impl VfsFile for RecordingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.watched.before_op("write", &self.path);
        self.file.write_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.watched.before_sync(&self.path.display().to_string());
        self.file.sync_data()
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.watched.before_op("allocate", &self.path);
        self.file.allocate(len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.watched.before_op("set the length of", &self.path);
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
