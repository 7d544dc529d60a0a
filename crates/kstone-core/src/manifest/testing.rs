//! Files in memory that remember what was synced: every change is counted, the n-th can be made
//! to fail, and a crash keeps any subset of the name changes that no sync has covered.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::env::{OpenMode, Vfs, VfsFile, VfsLock};
use crate::sync::{Arc, Mutex};

#[derive(Debug, Default)]
pub(super) struct TestVfs {
    names: Mutex<Names>,
    ops: Arc<Mutex<Ops>>,
}

#[derive(Debug, Default)]
struct Names {
    now: BTreeMap<PathBuf, Arc<TestFile>>,
    synced: BTreeMap<PathBuf, Arc<TestFile>>,
    /// Name changes since the last sync.
    pending: Vec<NameChange>,
}

#[derive(Debug)]
struct NameChange {
    removed: Option<PathBuf>,
    added: Option<(PathBuf, Arc<TestFile>)>,
}

#[derive(Debug, Default)]
struct Ops {
    log: Vec<String>,
    /// How many more changes succeed; `None` = all.
    left: Option<usize>,
}

#[derive(Debug, Default)]
struct TestFile {
    name: String,
    data: Mutex<Data>,
    ops: Arc<Mutex<Ops>>,
}

#[derive(Debug, Default)]
struct Data {
    now: Vec<u8>,
    synced: Vec<u8>,
}

fn change(ops: &Mutex<Ops>, what: String) -> io::Result<()> {
    let mut ops = ops.lock();
    match &mut ops.left {
        Some(0) => return Err(io::Error::other("made to fail")),
        Some(left) => *left -= 1,
        None => {}
    }
    ops.log.push(what);
    Ok(())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

impl TestVfs {
    /// From now on `count` changes succeed, then all fail.
    pub(super) fn fail_after(&self, count: usize) {
        self.ops.lock().left = Some(count);
    }

    /// Whether a change was refused since [`TestVfs::fail_after`], or the next one would be.
    pub(super) fn is_failing(&self) -> bool {
        self.ops.lock().left == Some(0)
    }

    /// The changes so far; starts a new list.
    pub(super) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.ops.lock().log)
    }

    pub(super) fn read(&self, path: &Path) -> Vec<u8> {
        self.names.lock().now[path].data.lock().now.clone()
    }

    pub(super) fn put(&self, path: &Path, bytes: &[u8]) {
        let file = Arc::new(TestFile {
            name: name_of(path),
            data: Mutex::new(Data { now: bytes.to_vec(), synced: bytes.to_vec() }),
            ops: Arc::clone(&self.ops),
        });
        let mut names = self.names.lock();
        names.now.insert(path.to_owned(), Arc::clone(&file));
        names.synced.insert(path.to_owned(), file);
    }

    /// Every disk that a crash now could leave behind, of those that keep all or none of the
    /// unsynced data.
    pub(super) fn crashes(&self) -> Vec<Arc<dyn Vfs>> {
        let names = self.names.lock();
        let mut disks: Vec<Arc<dyn Vfs>> = Vec::new();
        for kept in 0..1u32 << names.pending.len() {
            let mut files = names.synced.clone();
            for (n, NameChange { removed, added }) in names.pending.iter().enumerate() {
                if kept & (1 << n) != 0 {
                    removed.iter().for_each(|name| drop(files.remove(name)));
                    files.extend(added.clone());
                }
            }
            for keeps_data in [false, true] {
                let disk = TestVfs::default();
                for (path, file) in &files {
                    let data = file.data.lock();
                    disk.put(path, if keeps_data { &data.now } else { &data.synced });
                }
                disks.push(Arc::new(disk));
            }
        }
        disks
    }
}

impl Vfs for TestVfs {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = self.names.lock();
        Ok(names.now.keys().filter(|path| path.parent() == Some(dir)).map(|p| name_of(p)).collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let mut names = self.names.lock();
        let found = names.now.get(path).cloned();
        match (found, mode) {
            (Some(_), OpenMode::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => Ok(file),
            (None, OpenMode::CreateNew) => {
                change(&self.ops, format!("create {}", name_of(path)))?;
                let ops = Arc::clone(&self.ops);
                let file = TestFile { name: name_of(path), ops, ..TestFile::default() };
                let file = Arc::new(file);
                names.now.insert(path.to_owned(), Arc::clone(&file));
                let added = Some((path.to_owned(), Arc::clone(&file)));
                names.pending.push(NameChange { removed: None, added });
                Ok(file)
            }
            (None, _) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.names.lock().now.contains_key(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        if !names.now.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        change(&self.ops, format!("remove {}", name_of(path)))?;
        names.now.remove(path);
        names.pending.push(NameChange { removed: Some(path.to_owned()), added: None });
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        change(&self.ops, format!("rename {} {}", name_of(from), name_of(to)))?;
        let file = names.now.remove(from).unwrap();
        names.now.insert(to.to_owned(), Arc::clone(&file));
        let (removed, added) = (Some(from.to_owned()), Some((to.to_owned(), file)));
        names.pending.push(NameChange { removed, added });
        Ok(())
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        change(&self.ops, "sync folder".to_owned())?;
        let mut names = self.names.lock();
        names.synced = names.now.clone();
        names.pending.clear();
        Ok(())
    }

    fn sync_files(&self, _: &[Arc<dyn VfsFile>]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn VfsLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl VfsFile for TestFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let data = self.data.lock();
        let rest = data.now.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    /// A write that is made to fail leaves its first half behind.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let result = change(&self.ops, format!("write {}", self.name));
        let buf = if result.is_ok() { buf } else { &buf[..buf.len() / 2] };
        let mut data = self.data.lock();
        let (start, end) = (offset as usize, offset as usize + buf.len());
        if data.now.len() < end {
            data.now.resize(end, 0);
        }
        data.now[start..end].copy_from_slice(buf);
        result
    }

    fn sync_data(&self) -> io::Result<()> {
        change(&self.ops, format!("sync {}", self.name))?;
        let mut data = self.data.lock();
        data.synced = data.now.clone();
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut data = self.data.lock();
        let len = data.now.len().max(len as usize);
        data.now.resize(len, 0);
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.data.lock().now.len() as u64)
    }
}
