//! The names of files: what the disk has, what callers see, and the changes in between.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::dice::Dice;

/// Which file a name stands for.
pub(crate) type InodeId = u64;

type Map = BTreeMap<PathBuf, InodeId>;

/// A change of names that its folder's sync has not made durable yet.
///
/// A change tells which file it was about, so that it is skipped where an earlier one on which it
/// depends did not survive.
#[derive(Debug, Clone)]
enum Change {
    /// Created or linked.
    Put {
        path: PathBuf,
        inode: InodeId,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
        inode: InodeId,
    },
    Remove {
        path: PathBuf,
        inode: InodeId,
    },
}

impl Change {
    /// The name that the change is about; its folder is the one whose sync makes it durable. (For
    /// a rename between folders: the new name's.)
    fn name(&self) -> &Path {
        match self {
            Change::Put { path, .. } | Change::Remove { path, .. } => path,
            Change::Rename { to, .. } => to,
        }
    }

    fn inode(&self) -> InodeId {
        match *self {
            Change::Put { inode, .. }
            | Change::Rename { inode, .. }
            | Change::Remove { inode, .. } => inode,
        }
    }

    fn apply(&self, map: &mut Map) {
        match self {
            Change::Put { path, inode } => {
                map.insert(path.clone(), *inode);
            }
            Change::Rename { from, to, inode } => {
                if map.get(from) == Some(inode) {
                    map.remove(from);
                    map.insert(to.clone(), *inode);
                }
            }
            Change::Remove { path, inode } => {
                if map.get(path) == Some(inode) {
                    map.remove(path);
                }
            }
        }
    }
}

#[derive(Debug, Clone)]
struct Pending {
    change: Change,
    /// A sync of the folder failed: later ones leave this change out.
    doubtful: bool,
}

/// All names of the disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    durable: Map,
    current: Map,
    pending: Vec<Pending>,
    dirs: BTreeSet<PathBuf>,
}

impl Names {
    /// Names that are durable, in these folders.
    pub(crate) fn settled(map: Map, dirs: BTreeSet<PathBuf>) -> Self {
        Names { durable: map.clone(), current: map, pending: Vec::new(), dirs }
    }

    pub(crate) fn current(&self) -> &Map {
        &self.current
    }

    pub(crate) fn durable(&self) -> &Map {
        &self.durable
    }

    pub(crate) fn dirs(&self) -> &BTreeSet<PathBuf> {
        &self.dirs
    }

    pub(crate) fn has_dir(&self, dir: &Path) -> bool {
        self.dirs.contains(dir)
    }

    pub(crate) fn make_dirs(&mut self, dir: &Path) {
        self.dirs.extend(dir.ancestors().map(Path::to_owned));
    }

    /// The files that anything, now or after a crash, can name.
    pub(crate) fn mentioned(&self) -> BTreeSet<InodeId> {
        let named = self.current.values().chain(self.durable.values()).copied();
        named.chain(self.pending.iter().map(|pending| pending.change.inode())).collect()
    }

    pub(crate) fn put(&mut self, path: &Path, inode: InodeId) {
        if let Some(dir) = path.parent() {
            self.make_dirs(dir);
        }
        self.change(Change::Put { path: path.to_owned(), inode });
    }

    /// The name is there already, also on the disk.
    pub(crate) fn put_durably(&mut self, path: &Path, inode: InodeId) {
        self.put(path, inode);
        self.pending.retain(|pending| pending.change.name() != path);
        self.durable.insert(path.to_owned(), inode);
    }

    pub(crate) fn rename(&mut self, from: &Path, to: &Path, inode: InodeId) {
        if let Some(dir) = to.parent() {
            self.make_dirs(dir);
        }
        self.change(Change::Rename { from: from.to_owned(), to: to.to_owned(), inode });
    }

    pub(crate) fn remove(&mut self, path: &Path, inode: InodeId) {
        self.change(Change::Remove { path: path.to_owned(), inode });
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.pending.push(Pending { change, doubtful: false });
    }

    pub(crate) fn sync(&mut self, dir: &Path) {
        let mut left = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            if pending.doubtful || pending.change.name().parent() != Some(dir) {
                left.push(pending);
                continue;
            }
            pending.change.apply(&mut self.durable);
            // The disk now says something newer about this name than a change in doubt.
            let name = pending.change.name();
            left.retain(|older: &Pending| !(older.doubtful && older.change.name() == name));
        }
        self.pending = left;
    }

    pub(crate) fn sync_failed(&mut self, dir: &Path) {
        for pending in &mut self.pending {
            if pending.change.name().parent() == Some(dir) {
                pending.doubtful = true;
            }
        }
    }

    /// The names after a power loss that took some of what was not synced.
    pub(crate) fn survivors(&self, dice: &mut Dice) -> Map {
        let survival_percent = dice.survival_percent();
        let mut map = self.durable.clone();
        for pending in &self.pending {
            if dice.chance(survival_percent) {
                pending.change.apply(&mut map);
            }
        }
        map
    }
}
