//! A file system in memory for this module's tests: no crashes, no faults, just bytes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::env::{OpenMode, Vfs, VfsFile, VfsLock};
use crate::sync::Mutex;

#[derive(Debug, Default)]
pub(super) struct TestVfs {
    files: Mutex<BTreeMap<PathBuf, Arc<TestFile>>>,
}

#[derive(Debug, Default)]
pub(super) struct TestFile {
    bytes: Mutex<Vec<u8>>,
}

impl TestVfs {
    pub(super) fn bytes_of(&self, path: &Path) -> Vec<u8> {
        self.files.lock()[path].bytes.lock().clone()
    }

    pub(super) fn replace(&self, path: &Path, bytes: Vec<u8>) {
        let file = self.files.lock().entry(path.to_owned()).or_default().clone();
        *file.bytes.lock() = bytes;
    }
}

impl Vfs for TestVfs {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let mut files = self.files.lock();
        match (files.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => Ok(file.clone()),
            (None, OpenMode::CreateNew) => {
                let file = Arc::new(TestFile::default());
                files.insert(path.to_owned(), file.clone());
                Ok(file)
            }
            (None, _) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.files.lock().contains_key(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.lock().remove(path).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_files(&self, _: &[Arc<dyn VfsFile>]) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn VfsLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl VfsFile for TestFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.bytes.lock();
        let from = bytes.get(offset as usize..).unwrap_or_default();
        let len = from.len().min(buf.len());
        buf[..len].copy_from_slice(&from[..len]);
        Ok(len)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.bytes.lock();
        let (start, end) = (offset as usize, offset as usize + buf.len());
        let len = bytes.len().max(end);
        bytes.resize(len, 0);
        bytes[start..end].copy_from_slice(buf);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.lock().resize(len as usize, 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }
}
