//! The disk as the engine sees it: every operation is counted, and may fail or lose the power.

use std::any::Any;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kstone_core::env::{OpenMode, Vfs, VfsFile, VfsLock};

use crate::disk::{SimDisk, State};
use crate::inode::{Inode, SECTOR_LEN};
use crate::names::InodeId;
use crate::plan::{Kind, OpOutcome, no_space};

/// Longer files are refused, so that a wild offset is an error here too.
const FILE_LEN_MAX: u64 = 1 << 40;

impl Vfs for SimDisk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.alive()?;
        if dir.ancestors().any(|folder| state.names.current().contains_key(folder)) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if state.names.has_dir(dir) {
            return Ok(());
        }
        state.perform(Kind::Growth, |state| state.names.make_dirs(dir))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        state.alive()?;
        if !state.names.has_dir(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = state.names.current().keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let mut state = self.state();
        state.alive()?;
        let inode = match mode {
            OpenMode::Read | OpenMode::ReadWrite => state.find(path)?,
            OpenMode::CreateNew => {
                state.is_free(path)?;
                state.perform(Kind::Growth, |state| create(state, path))?
            }
        };
        *state.open.entry(inode).or_default() += 1;
        let writable = mode != OpenMode::Read;
        Ok(Arc::new(SimFile { disk: self.clone(), inode, writable, path: path.to_owned() }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        state.alive()?;
        Ok(state.is_free(path).is_err())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.alive()?;
        let inode = state.find(path)?;
        state.perform(Kind::Change, |state| state.names.remove(path, inode))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.alive()?;
        let inode = state.find(from)?;
        if state.names.has_dir(to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        state.perform(Kind::Change, |state| state.names.rename(from, to, inode))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.alive()?;
        let inode = state.find(from)?;
        state.is_free(to)?;
        state.perform(Kind::Growth, |state| state.names.put(to, inode))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.alive()?;
        if !state.names.has_dir(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        match state.decide(Kind::Sync) {
            OpOutcome::Done => {}
            OpOutcome::Fails(error) => {
                state.names.sync_failed(dir);
                return Err(error);
            }
            OpOutcome::Stops => return state.lose_power(),
            OpOutcome::DoneThenStops => state.stopped = true,
        }
        state.names.sync(dir);
        state.collect();
        state.alive()
    }

    fn sync_files(&self, files: &[Arc<dyn VfsFile>]) -> io::Result<()> {
        let mut inodes = Vec::with_capacity(files.len());
        for file in files {
            let file: &dyn Any = file.as_ref();
            match file.downcast_ref::<SimFile>() {
                Some(file) if Arc::ptr_eq(&file.disk.state, &self.state) => inodes.push(file.inode),
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        sync(&mut self.state(), &inodes)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        let mut state = self.state();
        state.alive()?;
        if state.locked.contains(path) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if state.find(path).is_err() {
            state.perform(Kind::Growth, |state| create(state, path))?;
        }
        state.locked.insert(path.to_owned());
        Ok(Box::new(SimLock { disk: self.clone(), path: path.to_owned() }))
    }
}

fn create(state: &mut State, path: &Path) -> InodeId {
    let inode = state.new_inode(Inode::default());
    state.names.put(path, inode);
    inode
}

/// One sync of all these files.
fn sync(state: &mut State, files: &[InodeId]) -> io::Result<()> {
    state.alive()?;
    let fate = state.decide(Kind::Sync);
    let synced = match &fate {
        OpOutcome::Done | OpOutcome::DoneThenStops => files.len(),
        OpOutcome::Stops => return state.lose_power(),
        // Some were written before it failed, at least one was not.
        OpOutcome::Fails(_) => state.dice.below(files.len() as u64) as usize,
    };
    for (index, id) in files.iter().enumerate() {
        let Some(inode) = state.inodes.get_mut(id) else { continue };
        if index < synced {
            inode.sync();
        } else {
            inode.sync_failed();
        }
    }
    match fate {
        OpOutcome::Fails(error) => Err(error),
        OpOutcome::DoneThenStops => state.lose_power(),
        OpOutcome::Done | OpOutcome::Stops => Ok(()),
    }
}

#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl VfsLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.state().locked.remove(&self.path);
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: InodeId,
    writable: bool,
    /// The name it was opened by, for printing.
    #[expect(dead_code, reason = "read by Debug")]
    path: PathBuf,
}

impl SimFile {
    /// Finds the file for a change.
    fn change<T>(
        &self,
        end: Option<u64>,
        change: impl FnOnce(&mut State, u64) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.disk.state();
        state.alive()?;
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        match end {
            Some(end) if end <= FILE_LEN_MAX => change(&mut state, end),
            _ => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    fn inode<'a>(&self, state: &'a mut State) -> &'a mut Inode {
        state.inodes.entry(self.inode).or_default()
    }

    fn needs(&self, state: &mut State, bytes: &Range<u64>) -> (Kind, u64) {
        let inode = self.inode(state);
        let sectors = inode.sectors_needed(bytes);
        let grows = sectors > 0 || bytes.end > inode.len();
        (if grows { Kind::Growth } else { Kind::Change }, sectors)
    }

    /// Writes as far as some sector, but never past what fits.
    fn write_some(&self, state: &mut State, buf: &[u8], offset: u64) {
        let sectors = (offset + buf.len() as u64).div_ceil(SECTOR_LEN) - offset / SECTOR_LEN;
        let chosen = state.dice.below(sectors + 1);
        let end = ((offset / SECTOR_LEN + chosen) * SECTOR_LEN).saturating_sub(offset);
        let free = state.free_sectors();
        let inode = self.inode(state);
        let mut end = end.min(buf.len() as u64);
        while end > 0 && inode.sectors_needed(&(offset..offset + end)) > free {
            // Back to the start of the last sector.
            let last = (offset + end - 1) / SECTOR_LEN * SECTOR_LEN;
            end = last.saturating_sub(offset);
        }
        inode.write(&buf[..end as usize], offset);
    }

    fn allocate_some(&self, state: &mut State, len: u64) {
        let old = self.inode(state).len();
        let reached = old + state.dice.below(len.saturating_sub(old) + 1);
        if self.inode(state).sectors_needed(&(0..reached)) <= state.free_sectors() {
            self.inode(state).allocate(reached);
        }
    }
}

impl VfsFile for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.alive()?;
        state.perform(Kind::Read, |state| self.inode(state).read(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.change(offset.checked_add(buf.len() as u64), |state, end| {
            let (kind, sectors) = self.needs(state, &(offset..end));
            match state.decide(kind) {
                OpOutcome::Done | OpOutcome::DoneThenStops
                    if sectors > 0 && sectors > state.free_sectors() =>
                {
                    self.write_some(state, buf, offset);
                    Err(no_space())
                }
                OpOutcome::Done | OpOutcome::DoneThenStops => {
                    self.inode(state).write(buf, offset);
                    Ok(())
                }
                OpOutcome::Fails(error) => {
                    self.write_some(state, buf, offset);
                    Err(error)
                }
                OpOutcome::Stops => {
                    self.write_some(state, buf, offset);
                    state.lose_power()
                }
            }
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        sync(&mut self.disk.state(), &[self.inode])
    }

    /// A full disk leaves the file as it was; other errors may leave it longer.
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.change(Some(len), |state, len| {
            let (kind, sectors) = self.needs(state, &(0..len));
            match state.decide(kind) {
                OpOutcome::Done | OpOutcome::DoneThenStops
                    if sectors > 0 && sectors > state.free_sectors() =>
                {
                    Err(no_space())
                }
                OpOutcome::Done | OpOutcome::DoneThenStops => {
                    self.inode(state).allocate(len);
                    Ok(())
                }
                OpOutcome::Fails(error) => {
                    if error.kind() != io::ErrorKind::StorageFull {
                        self.allocate_some(state, len);
                    }
                    Err(error)
                }
                OpOutcome::Stops => {
                    self.allocate_some(state, len);
                    state.lose_power()
                }
            }
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Some(len), |state, len| {
            state.perform(Kind::Change, |state| self.inode(state).set_len(len))
        })
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        state.alive()?;
        Ok(self.inode(&mut state).len())
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        let count = state.open.entry(self.inode).or_default();
        *count = count.saturating_sub(1);
        if *count == 0 {
            state.open.remove(&self.inode);
            let named = state.names.mentioned().contains(&self.inode);
            if !named {
                state.inodes.remove(&self.inode);
            }
        }
    }
}
