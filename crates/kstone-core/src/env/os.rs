//! Files of the operating system.
//!
//! The only module that calls `std::fs`. Called by the engine through [`Vfs`]; calls nothing of
//! the engine. One file has one writer at a time (the engine's rule); readers may be many.
//!
//! What is Linux-only here is speed or earlier errors, never durability: elsewhere a preallocation
//! is just the zeros, and a batch of files is synced one by one.
//!
//! On Unix, new folders have mode 0700 and new files 0600, or less where the umask says so: what is
//! in them is for the owner of the database alone. A folder that was there keeps its mode.

#![expect(clippy::disallowed_methods, reason = "this is the Vfs of the real machine")]

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(target_os = "linux")]
use super::mapped::{self, Mapped, UpcomingPages};
use super::{OpenMode, Vfs, VfsFile, VfsLock};
use crate::sync::Mutex;

/// Up to this many files are synced one by one. A `syncfs` also waits for what other programs
/// wrote to that file system, which is worth it only when it replaces a good number of flushes.
const SYNC_ONE_BY_ONE_MAX: usize = 4;

/// Zeros are written this much at a time. The system keeps what is written together in one piece of its
/// cache, and writes a piece to the disk whole, however little of it changes: with large ones, every
/// sync of a log would write hundreds of kilobytes again.
const ZEROS_LEN: u64 = 16 * 1024;

/// So many of them are on the disk before more are written, or a thirty-second of all, if that is more:
/// each time takes a sync. A sync of another file waits for what the disk has been given before it:
/// behind a whole segment, for a tenth of a second and more.
const ZEROS_AHEAD_MIN: u64 = 256 * 1024;
const ZEROS_SYNCS_MAX: u64 = 32;

/// The file system of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsVfs;

impl OsVfs {
    /// The file system of the machine.
    pub fn new() -> Self {
        OsVfs
    }
}

impl Vfs for OsVfs {
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        std::path::absolute(path)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let missing: Vec<&Path> =
            dir.ancestors().take_while(|folder| !is_here(folder) && !folder.is_dir()).collect();
        create_folders(dir)?;
        // The folder's own name is synced even if it was there: its creator may have been
        // killed before syncing it.
        let mut made = if missing.is_empty() { vec![dir] } else { missing };
        made.retain(|folder| !is_here(folder));
        for folder in made {
            let Some(parent) = folder.parent() else { continue };
            match sync_folder(parent) {
                // A parent that may be passed through but not read cannot be opened for a sync.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                result => result?,
            }
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(here_if_empty(dir))? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                continue;
            }
            // A name that is not UTF-8 was not given by us.
            if let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let mut options = private_options();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::ReadWrite => {
                options.write(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        Ok(Arc::new(OsFile { file: options.open(path)?, stores: Mutex::default() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        match fs::hard_link(from, to) {
            Err(error) if linking_is_impossible(&error) => copy_durably(from, to),
            result => result,
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        sync_folder(dir)
    }

    fn sync_files(&self, files: &[Arc<dyn VfsFile>]) -> io::Result<()> {
        if files.len() > SYNC_ONE_BY_ONE_MAX && whole::sync(files)? {
            return Ok(());
        }
        for file in files {
            file.sync_data()?;
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        let file =
            private_options().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(OsLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The lock belongs to the open file: closing it releases.
#[derive(Debug)]
struct OsLock {
    _file: File,
}

impl VfsLock for OsLock {}

#[derive(Debug)]
struct OsFile {
    file: File,
    stores: Mutex<Stores>,
}

/// How [`VfsFile::store_at`] stores.
#[derive(Debug, Default)]
enum Stores {
    #[default]
    Untried,
    #[cfg(target_os = "linux")]
    Mapped(Mapped),
    /// As a write.
    Written,
}

impl Stores {
    /// Whether the bytes are stored; `false` leaves it to the caller.
    #[cfg(target_os = "linux")]
    fn store(&mut self, file: &File, buf: &[u8], offset: u64) -> bool {
        if buf.len() >= mapped::WRITTEN_MIN {
            if let Stores::Mapped(mapped) = self {
                mapped.passed(offset, buf.len());
            }
            return false;
        }
        if let Stores::Untried = self {
            *self = Mapped::of(file).map_or(Stores::Written, Stores::Mapped);
        }
        let Stores::Mapped(mapped) = self else { return false };
        let stored = mapped.store(buf, offset);
        if !stored {
            // Whatever it is, a write will tell; and it is not worth trying at every store.
            *self = Stores::Written;
        }
        stored
    }

    #[cfg(not(target_os = "linux"))]
    fn store(&mut self, _file: &File, _buf: &[u8], _offset: u64) -> bool {
        *self = Stores::Written;
        false
    }
}

impl VfsFile for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match positioned::read(&self.file, buf, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        positioned::write_all(&self.file, buf, offset)
    }

    fn store_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        if self.stores.lock().store(&self.file, buf, offset) {
            return Ok(());
        }
        self.write_at(buf, offset)
    }

    fn expect_sync(&self) {
        #[cfg(target_os = "linux")]
        {
            let behind = match &mut *self.stores.lock() {
                Stores::Mapped(mapped) => mapped.take_finished(),
                _ => None,
            };
            // Without the lock: threads that store meanwhile do not wait.
            if let Some(behind) = behind {
                behind.give_up();
            }
        }
    }

    fn expect_stores(&self) {
        #[cfg(target_os = "linux")]
        {
            let next = match &*self.stores.lock() {
                Stores::Mapped(mapped) => mapped.next_pages(),
                _ => None,
            };
            // Without the lock, as above.
            if let Some(ready) = next.and_then(UpcomingPages::make_writable)
                && let Stores::Mapped(mapped) = &mut *self.stores.lock()
            {
                mapped.add(&ready);
            }
        }
    }

    fn sync_before(&self, end: u64) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if mapped::sync_before(&self.file, end)? {
            return Ok(());
        }
        self.sync_data()
    }

    fn sync_data(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if let Stores::Mapped(mapped) = &mut *self.stores.lock() {
            mapped.synced();
        }
        self.file.sync_data()
    }

    /// Blocks are first reserved, so that a full disk is met at once, then written with zeros:
    /// a reserved block that was never written is marked so in the file's metadata, and the first
    /// write there would make its sync commit the journal. Over written blocks a sync is the data
    /// and one flush.
    fn allocate(&self, len: u64) -> io::Result<()> {
        let written = self.file.metadata()?.len();
        let result = reserve(&self.file, len).and_then(|()| {
            let zeros = vec![0; len.saturating_sub(written).min(ZEROS_LEN) as usize];
            let (mut offset, mut synced) = (written, written);
            let ahead_max = (len.saturating_sub(written) / ZEROS_SYNCS_MAX).max(ZEROS_AHEAD_MIN);
            while offset < len {
                let step = (len - offset).min(zeros.len() as u64);
                self.write_at(zeros.get(..step as usize).unwrap_or_default(), offset)?;
                offset += step;
                if offset - synced >= ahead_max && offset < len {
                    self.file.sync_data()?;
                    synced = offset;
                }
            }
            Ok(())
        });
        if result.is_err() {
            // Gives back what was taken, so that a failure on a full disk does not leave it
            // fuller. The first error is the one to tell.
            let _ = self.file.set_len(written);
        }
        result
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        // What is mapped must not reach beyond the end of the file.
        *self.stores.lock() = Stores::Untried;
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

/// Makes the folder and those above it that are missing, for their owner alone.
fn create_folders(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    builder.mode(0o700);
    builder.recursive(true).create(dir)
}

/// A file that is created with these options is for its owner alone.
fn private_options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there is no mode to set"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    options.mode(0o600);
    options
}

/// The empty path is what `Path::parent` gives for a bare name: the current folder.
fn is_here(dir: &Path) -> bool {
    dir.as_os_str().is_empty()
}

fn here_if_empty(dir: &Path) -> &Path {
    if is_here(dir) { Path::new(".") } else { dir }
}

#[cfg(unix)]
fn sync_folder(dir: &Path) -> io::Result<()> {
    File::open(here_if_empty(dir))?.sync_all()
}

/// A folder cannot be synced here; the file system journals names in order by itself.
#[cfg(not(unix))]
fn sync_folder(dir: &Path) -> io::Result<()> {
    fs::metadata(here_if_empty(dir)).map(drop)
}

/// Another file system, one without links, or a file with as many links as it may have.
fn linking_is_impossible(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::CrossesDevices
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
            | io::ErrorKind::TooManyLinks
    )
}

/// A copy that takes the place of a link is synced like the file it stands for, whose data the
/// caller knows to be durable.
fn copy_durably(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = private_options().write(true).create_new(true).open(to)?;
    let result = io::copy(&mut source, &mut target).and_then(|_| target.sync_all());
    if result.is_err() {
        // Half a copy must not be taken for the file; the first error is the one to tell.
        let _ = fs::remove_file(to);
    }
    result
}

/// Reserves the blocks of the first `len` bytes, without moving the end of the file: the length
/// always says how far the zeros got.
#[cfg(target_os = "linux")]
fn reserve(file: &File, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    if len == 0 {
        return Ok(());
    }
    loop {
        match fallocate(file, FallocateFlags::KEEP_SIZE, 0, len) {
            Err(Errno::INTR) => {}
            // The zeros then reserve the blocks, and meet a full disk later.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(_file: &File, _len: u64) -> io::Result<()> {
    Ok(())
}

/// Reading and writing at an offset.
mod positioned {
    use std::fs::File;
    use std::io;

    #[cfg(unix)]
    use std::os::unix::fs::FileExt;
    #[cfg(windows)]
    use std::os::windows::fs::FileExt;

    #[cfg(unix)]
    pub(super) fn read(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(buf, offset)
    }

    #[cfg(unix)]
    pub(super) fn write_all(file: &File, buf: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(buf, offset)
    }

    #[cfg(windows)]
    pub(super) fn read(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        file.seek_read(buf, offset)
    }

    #[cfg(windows)]
    pub(super) fn write_all(file: &File, mut buf: &[u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match file.seek_write(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    buf = buf.get(written..).unwrap_or_default();
                    offset += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Syncing a whole file system at once, where that is known to do all that a sync per file does.
#[cfg(target_os = "linux")]
mod whole {
    use super::*;
    use rustix::fs::{fstatfs, syncfs};
    use rustix::io::Errno;
    use std::any::Any;
    use std::os::unix::fs::MetadataExt;
    use std::sync::OnceLock;

    /// `f_type` of the file systems whose `syncfs` writes everything and flushes the disk: ext2 to
    /// ext4, XFS, Btrfs, F2FS, tmpfs. Others answer `Ok` without having done it (FUSE, by
    /// default), or may forget an error on the way (layers over another file system).
    const TRUSTED: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

    /// Whether the files are durable now; `false` leaves all of it to the caller.
    pub(super) fn sync(files: &[Arc<dyn VfsFile>]) -> io::Result<bool> {
        if !errors_are_reported() {
            return Ok(false);
        }
        let mut one_per_device: Vec<(u64, &File)> = Vec::new();
        for file in files {
            let file: &dyn Any = file.as_ref();
            let Some(OsFile { file, .. }) = file.downcast_ref::<OsFile>() else { return Ok(false) };
            let device = file.metadata()?.dev();
            if one_per_device.iter().all(|&(seen, _)| seen != device) {
                if !TRUSTED.contains(&(fstatfs(file)?.f_type as u32)) {
                    return Ok(false);
                }
                one_per_device.push((device, file));
            }
        }
        // Called on a file that was open before the data was written: a handle is told only of
        // the write-back errors that came after it was opened.
        for (_, file) in one_per_device {
            match syncfs(file) {
                Ok(()) => {}
                Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Before 5.8, `syncfs` said nothing of data that could not be written.
    fn errors_are_reported() -> bool {
        static REPORTED: OnceLock<bool> = OnceLock::new();
        *REPORTED.get_or_init(|| {
            fs::read_to_string("/proc/sys/kernel/osrelease")
                .is_ok_and(|release| is_at_least_5_8(&release))
        })
    }

    pub(super) fn is_at_least_5_8(release: &str) -> bool {
        let mut parts = release.split(|c: char| !c.is_ascii_digit());
        let mut next = || parts.next().and_then(|part| part.parse::<u32>().ok());
        matches!((next(), next()), (Some(major), Some(minor)) if (major, minor) >= (5, 8))
    }
}

#[cfg(not(target_os = "linux"))]
mod whole {
    use super::*;

    pub(super) fn sync(_files: &[Arc<dyn VfsFile>]) -> io::Result<bool> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
