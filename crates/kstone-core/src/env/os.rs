//! Files of the operating system.
use super::{OpenMode, Vfs, VfsFile, VfsLock};
use std::{io, path::Path, sync::Arc};
/// To come.
#[derive(Debug, Default)]
pub struct OsVfs;
impl OsVfs {
    /// Empty.
    pub fn new() -> Self {
        OsVfs
    }
}
impl Vfs for OsVfs {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn open(&self, _: &Path, _: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn exists(&self, _: &Path) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn sync_files(&self, _: &[Arc<dyn VfsFile>]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn lock(&self, _: &Path) -> io::Result<Box<dyn VfsLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
