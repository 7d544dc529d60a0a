//! Files and folders, with just the operations whose durability the engine reasons about.

use std::any::Any;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// It must exist; it will only be read.
    Read,
    /// It must exist; it will be read and written in place.
    ReadWrite,
    /// It must not exist; it will be read and written.
    CreateNew,
}

/// A file system.
///
/// What is assumed of it: a write is durable only after [`VfsFile::sync_data`] (or
/// [`Vfs::sync_files`]) of that file; creating, linking, renaming and removing a name is durable
/// only after [`Vfs::sync_dir`] of its folder; before that, each unsynced block and each name
/// change may survive a crash or not, on its own and in any order. A rename is atomic.
pub trait Vfs: Send + Sync + Debug {
    /// The path as it is known from any working directory.
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
    /// Creates the folder and its parents, durably; fine if it is there. (The caller could not
    /// make it durable: it does not know which of the parents are new.) What it creates is for its owner
    /// alone, where the file system knows owners.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    /// The names (not paths) of the files in `dir`, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Opens a file, or creates one that only its owner can open.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>>;
    /// Whether the name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Removes the name. Open handles stay usable.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Renames, replacing `to` if it exists.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives the file a second name; where the file system cannot, it copies.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes name changes in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes the data and length of all these files durable, at the price of one sync where the
    /// system has a way.
    fn sync_files(&self, files: &[Arc<dyn VfsFile>]) -> io::Result<()>;
    /// Takes the exclusive lock of `path` (created if absent) for as long as the result lives.
    /// `ErrorKind::WouldBlock` when it is held already.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>>;
}

/// A held lock; dropping it releases.
pub trait VfsLock: Send + Sync + Debug {}

/// An open file. All offsets are absolute; handles carry no position.
///
/// `Any`, so that [`Vfs::sync_files`] can find its own files again behind the trait.
pub trait VfsFile: Any + Send + Sync + Debug {
    /// Reads up to `buf.len()` bytes; 0 at or past the end.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `buf`, growing the file if needed.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// As [`write_at`](VfsFile::write_at), over bytes that are [allocated](VfsFile::allocate), for callers
    /// that write often and sync seldom: where there is a way, without a system call.
    fn store_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(buf, offset)
    }
    /// A hint that another thread is about to sync, through another handle, what was
    /// [stored](VfsFile::store_at) here, while more is stored. An implementation may make that sync cheaper.
    fn expect_sync(&self) {}
    /// A hint that another thread will soon store more behind what was [stored](VfsFile::store_at) last. An
    /// implementation may make these stores cheaper.
    fn expect_stores(&self) {}
    /// Makes data and length durable (`fdatasync`), however they were written.
    fn sync_data(&self) -> io::Result<()>;
    /// The same for what lies before `end`, all of it or all but the last few pages. A thread that
    /// stores behind it meanwhile is held up less than by a sync of everything.
    fn sync_before(&self, _end: u64) -> io::Result<()> {
        self.sync_data()
    }
    /// Reserves the disk's blocks for the first `len` bytes, so that writing there later cannot
    /// run out of space; new bytes read as zero, and the length becomes at least `len`.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Cuts or extends (with zeros) to `len`.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// The current length.
    fn len(&self) -> io::Result<u64>;
    /// Whether the length is 0.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` or fails with `UnexpectedEof`.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buf = buf.get_mut(read..).unwrap_or_default();
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
