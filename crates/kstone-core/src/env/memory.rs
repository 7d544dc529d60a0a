//! Files in memory, for tests and for databases that need not outlive the process.
//!
//! Called by the engine through [`Vfs`]; calls only `crate::sync`. Syncs do nothing: there is
//! nothing below to lose (crashes are the business of the `kstone-sim` crate).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::{OpenMode, Vfs, VfsFile, VfsLock};
use crate::sync::{Arc, Mutex, RwLock};

/// A file grows by chunks, so that growing never copies what is there. 64 KiB: a 4 KiB block
/// mostly lies in one chunk, and a table of chunks for a gigabyte is less than half a megabyte.
const CHUNK_LEN: usize = 64 * 1024;

/// Longer files are refused, so that a wild offset is an error and not the end of the process.
const FILE_LEN_MAX: u64 = 1 << 40;

/// A file system in memory. Clones are the same file system; it is gone with the last clone and
/// the last open file.
#[derive(Debug, Clone, Default)]
pub struct MemoryVfs {
    names: Arc<Mutex<Names>>,
}

#[derive(Debug, Default)]
struct Names {
    files: BTreeMap<PathBuf, Arc<Inode>>,
    dirs: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
}

impl Names {
    fn find(&self, path: &Path) -> io::Result<Arc<Inode>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// A file brings its folder with it.
    fn insert(&mut self, path: &Path, inode: Arc<Inode>) {
        if let Some(dir) = path.parent() {
            self.make_dirs(dir);
        }
        self.files.insert(path.to_owned(), inode);
    }

    fn make_dirs(&mut self, dir: &Path) {
        self.dirs.extend(dir.ancestors().map(Path::to_owned));
    }

    fn is_free(&self, path: &Path) -> io::Result<()> {
        if self.files.contains_key(path) || self.dirs.contains(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(())
    }
}

impl MemoryVfs {
    /// An empty file system.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Vfs for MemoryVfs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        if dir.ancestors().any(|folder| names.files.contains_key(folder)) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        names.make_dirs(dir);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = self.names.lock();
        if !names.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = names.files.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let mut names = self.names.lock();
        let inode = match mode {
            OpenMode::Read | OpenMode::ReadWrite => names.find(path)?,
            OpenMode::CreateNew => {
                names.is_free(path)?;
                let inode = Arc::new(Inode::default());
                names.insert(path, Arc::clone(&inode));
                inode
            }
        };
        Ok(Arc::new(MemoryFile { inode, writable: mode != OpenMode::Read }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.names.lock().is_free(path).is_err())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match self.names.lock().files.remove(path) {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        let inode = names.find(from)?;
        if names.dirs.contains(to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        names.files.remove(from);
        names.insert(to, inode);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        let inode = names.find(from)?;
        names.is_free(to)?;
        names.insert(to, inode);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if self.names.lock().dirs.contains(dir) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn sync_files(&self, _files: &[Arc<dyn VfsFile>]) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        let mut names = self.names.lock();
        if !names.locked.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if !names.files.contains_key(path) {
            names.insert(path, Arc::new(Inode::default()));
        }
        Ok(Box::new(MemoryLock { names: Arc::clone(&self.names), path: path.to_owned() }))
    }
}

#[derive(Debug)]
struct MemoryLock {
    names: Arc<Mutex<Names>>,
    path: PathBuf,
}

impl VfsLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.names.lock().locked.remove(&self.path);
    }
}

/// A file's content, apart from its names.
#[derive(Debug, Default)]
struct Inode {
    content: RwLock<Content>,
}

/// Invariant: no byte at or past `len` is stored, so a file that is cut and grown again reads as
/// zero there.
#[derive(Debug, Default)]
struct Content {
    len: u64,
    /// What a chunk, or the end of a chunk, does not store reads as zero: a preallocated file costs
    /// nothing until it is written, and a small file is no larger than its content.
    chunks: Vec<Vec<u8>>,
}

impl Content {
    fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let wanted = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut position = offset;
        let mut rest = buf.get_mut(..wanted).unwrap_or_default();
        while !rest.is_empty() {
            let (index, within) = locate(position);
            let (part, after) = rest.split_at_mut(rest.len().min(CHUNK_LEN - within));
            let stored = self.chunks.get(index).and_then(|chunk| chunk.get(within..));
            let stored = stored.unwrap_or_default();
            let (copied, zeroed) = part.split_at_mut(part.len().min(stored.len()));
            copied.copy_from_slice(stored.get(..copied.len()).unwrap_or_default());
            zeroed.fill(0);
            position += part.len() as u64;
            rest = after;
        }
        wanted
    }

    fn write(&mut self, buf: &[u8], offset: u64) -> io::Result<()> {
        let end = end_of(offset, buf.len() as u64)?;
        let mut position = offset;
        let mut rest = buf;
        while !rest.is_empty() {
            let (index, within) = locate(position);
            let (part, after) = rest.split_at(rest.len().min(CHUNK_LEN - within));
            if self.chunks.len() <= index {
                self.chunks.resize_with(index + 1, Vec::new);
            }
            if let Some(chunk) = self.chunks.get_mut(index) {
                if chunk.len() < within {
                    chunk.resize(within, 0);
                }
                let overwritten = part.len().min(chunk.len() - within);
                let (over, appended) = part.split_at(overwritten);
                if let Some(old) = chunk.get_mut(within..within + overwritten) {
                    old.copy_from_slice(over);
                }
                chunk.extend_from_slice(appended);
            }
            position += part.len() as u64;
            rest = after;
        }
        if !buf.is_empty() {
            self.len = self.len.max(end);
        }
        Ok(())
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        end_of(0, len)?;
        if len < self.len {
            let (index, within) = locate(len);
            self.chunks.truncate(index + 1);
            if let Some(last) = self.chunks.get_mut(index) {
                last.truncate(within);
                last.shrink_to_fit();
            }
        }
        self.len = len;
        Ok(())
    }
}

/// Which chunk, and where in it. Only for offsets within `FILE_LEN_MAX`.
fn locate(offset: u64) -> (usize, usize) {
    let chunk = CHUNK_LEN as u64;
    ((offset / chunk) as usize, (offset % chunk) as usize)
}

fn end_of(offset: u64, len: u64) -> io::Result<u64> {
    match offset.checked_add(len) {
        Some(end) if end <= FILE_LEN_MAX => Ok(end),
        _ => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

#[derive(Debug)]
struct MemoryFile {
    inode: Arc<Inode>,
    writable: bool,
}

impl MemoryFile {
    fn change<T>(&self, change: impl FnOnce(&mut Content) -> io::Result<T>) -> io::Result<T> {
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        change(&mut self.inode.content.write())
    }
}

impl VfsFile for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.inode.content.read().read(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.change(|content| content.write(buf, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.change(|content| content.set_len(content.len.max(len)))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|content| content.set_len(len))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.inode.content.read().len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn create(vfs: &MemoryVfs, path: &str) -> Arc<dyn VfsFile> {
        vfs.open(Path::new(path), OpenMode::CreateNew).unwrap()
    }

    fn content(file: &dyn VfsFile) -> Vec<u8> {
        let mut bytes = vec![0xff; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[derive(Debug, Clone)]
    enum Op {
        Write(Vec<u8>, u64),
        SetLen(u64),
        Allocate(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        let place = prop_oneof![0..100u64, 65_500..65_600u64, 0..200_000u64];
        prop_oneof![
            (proptest::collection::vec(any::<u8>(), 0..200), place.clone())
                .prop_map(|(bytes, offset)| Op::Write(bytes, offset)),
            (any::<u8>(), 0..70_000usize, place.clone())
                .prop_map(|(byte, len, offset)| Op::Write(vec![byte; len], offset)),
            place.clone().prop_map(Op::SetLen),
            place.prop_map(Op::Allocate),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_file_behaves_like_a_vector_of_bytes(ops in proptest::collection::vec(op(), 1..12)) {
            let file = create(&MemoryVfs::new(), "f");
            let mut model = Vec::new();
            for op in ops {
                match op {
                    Op::Write(bytes, offset) => {
                        file.write_at(&bytes, offset).unwrap();
                        let offset = offset as usize;
                        if !bytes.is_empty() {
                            model.resize(model.len().max(offset + bytes.len()), 0);
                            model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                        }
                    }
                    Op::SetLen(len) => {
                        file.set_len(len).unwrap();
                        model.resize(len as usize, 0);
                    }
                    Op::Allocate(len) => {
                        file.allocate(len).unwrap();
                        model.resize(model.len().max(len as usize), 0);
                    }
                }
                prop_assert!(content(file.as_ref()) == model);
            }
            let mut buf = [0; 10];
            prop_assert_eq!(file.read_at(&mut buf, model.len() as u64).unwrap(), 0);
        }
    }

    #[test]
    fn a_preallocated_file_costs_nothing_until_it_is_written() {
        let vfs = MemoryVfs::new();
        let file = create(&vfs, "log");
        file.allocate(1 << 39).unwrap();
        file.write_at(b"x", 0).unwrap();
        assert_eq!(file.len().unwrap(), 1 << 39);
        let mut buf = [1; 100];
        file.read_exact_at(&mut buf, 1 << 38).unwrap();
        assert_eq!(buf, [0; 100]);
        let inode = vfs.names.lock().find(Path::new("log")).unwrap();
        assert_eq!(inode.content.read().chunks.len(), 1);
    }

    #[test]
    fn a_wild_offset_is_an_error() {
        let file = create(&MemoryVfs::new(), "f");
        for offset in [FILE_LEN_MAX, u64::MAX] {
            let error = file.write_at(b"x", offset).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        }
        file.set_len(u64::MAX).unwrap_err();
        assert_eq!(file.len().unwrap(), 0);
        assert_eq!(file.read_at(&mut [0], u64::MAX).unwrap(), 0);
    }

    #[test]
    fn a_removed_file_stays_readable_through_its_handle() {
        let vfs = MemoryVfs::new();
        let file = create(&vfs, "db/a");
        file.write_at(b"still here", 0).unwrap();
        vfs.remove(Path::new("db/a")).unwrap();
        assert!(!vfs.exists(Path::new("db/a")).unwrap());
        assert_eq!(content(file.as_ref()), b"still here");
        let again = vfs.remove(Path::new("db/a")).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn hard_links_share_their_content_until_the_last_is_removed() {
        let vfs = MemoryVfs::new();
        let file = create(&vfs, "a");
        vfs.hard_link(Path::new("a"), Path::new("b")).unwrap();
        file.write_at(b"both", 0).unwrap();
        vfs.remove(Path::new("a")).unwrap();
        let linked = vfs.open(Path::new("b"), OpenMode::Read).unwrap();
        assert_eq!(content(linked.as_ref()), b"both");
        vfs.hard_link(Path::new("b"), Path::new("b")).unwrap_err();
    }

    #[test]
    fn a_rename_replaces_and_a_rename_to_itself_keeps() {
        let vfs = MemoryVfs::new();
        create(&vfs, "db/old").write_at(b"old", 0).unwrap();
        create(&vfs, "db/new").write_at(b"new", 0).unwrap();
        vfs.rename(Path::new("db/new"), Path::new("db/old")).unwrap();
        vfs.rename(Path::new("db/old"), Path::new("db/old")).unwrap();
        assert_eq!(vfs.list(Path::new("db")).unwrap(), ["old"]);
        let file = vfs.open(Path::new("db/old"), OpenMode::Read).unwrap();
        assert_eq!(content(file.as_ref()), b"new");
    }

    #[test]
    fn list_gives_only_the_files_of_that_folder() {
        let vfs = MemoryVfs::new();
        let missing = vfs.list(Path::new("/db")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        vfs.create_dir_all(Path::new("/db/backup")).unwrap();
        assert_eq!(vfs.list(Path::new("/db")).unwrap(), Vec::<String>::new());
        create(&vfs, "/db/b");
        create(&vfs, "/db/a");
        create(&vfs, "/db/backup/c");
        assert_eq!(vfs.list(Path::new("/db")).unwrap(), ["a", "b"]);
        vfs.sync_dir(Path::new("/db")).unwrap();
        vfs.sync_dir(Path::new("/nowhere")).unwrap_err();
    }

    #[test]
    fn a_file_opened_for_reading_cannot_be_written() {
        let vfs = MemoryVfs::new();
        create(&vfs, "a");
        let reader = vfs.open(Path::new("a"), OpenMode::Read).unwrap();
        assert_eq!(reader.write_at(b"x", 0).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        reader.set_len(1).unwrap_err();
        reader.allocate(1).unwrap_err();
        assert!(reader.is_empty().unwrap());
    }

    #[test]
    fn a_lock_excludes_clones_of_the_file_system_until_it_is_dropped() {
        let vfs = MemoryVfs::new();
        let held = vfs.lock(Path::new("db/LOCK")).unwrap();
        let refused = vfs.clone().lock(Path::new("db/LOCK")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(held);
        vfs.lock(Path::new("db/LOCK")).unwrap();
        assert!(vfs.exists(Path::new("db/LOCK")).unwrap());
    }
}
