//! One file's content: what is on the disk, what readers see, and every version in between.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::dice::Dice;
use crate::space::Space;

/// What a disk writes as a whole, when it writes at all.
pub(crate) const SECTOR_LEN: u64 = 512;

/// A sector; `None` is all zeros, so that preallocated files cost nothing.
type Sector = Option<Arc<[u8; SECTOR_LEN as usize]>>;

/// Bytes as sectors. Invariant: everything at or past `len` is zero.
#[derive(Debug, Clone, Default)]
struct Content {
    len: u64,
    sectors: BTreeMap<u64, Arc<[u8; SECTOR_LEN as usize]>>,
}

impl Content {
    fn get(&self, index: u64) -> Sector {
        self.sectors.get(&index).cloned()
    }

    fn put(&mut self, index: u64, sector: Sector) {
        match sector {
            Some(sector) => self.sectors.insert(index, sector),
            None => self.sectors.remove(&index),
        };
    }

    /// Sets the length and restores the invariant.
    fn cut(&mut self, len: u64) {
        self.len = len;
        self.sectors.split_off(&sectors_of(len));
        let kept = len % SECTOR_LEN;
        let partial = len / SECTOR_LEN;
        if kept != 0
            && let Some(last) = self.sectors.get_mut(&partial)
        {
            Arc::make_mut(last)[kept as usize..].fill(0);
        }
    }

    fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let wanted = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut done = 0;
        while done < wanted {
            let position = offset + done as u64;
            let within = (position % SECTOR_LEN) as usize;
            let step = (wanted - done).min(SECTOR_LEN as usize - within);
            let target = &mut buf[done..done + step];
            match self.sectors.get(&(position / SECTOR_LEN)) {
                Some(sector) => target.copy_from_slice(&sector[within..within + step]),
                None => target.fill(0),
            }
            done += step;
        }
        wanted
    }
}

/// What changed since some moment: the versions of each sector, oldest first, and the lengths.
#[derive(Debug, Clone, Default)]
struct Changes {
    sectors: BTreeMap<u64, Vec<Sector>>,
    lengths: Vec<u64>,
}

impl Changes {
    fn append(&mut self, later: Changes) {
        for (index, mut versions) in later.sectors {
            self.sectors.entry(index).or_default().append(&mut versions);
        }
        self.lengths.extend(later.lengths);
    }
}

/// A file, apart from its names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inode {
    durable: Content,
    current: Content,
    /// Not synced; the next sync makes it durable.
    unsynced: Changes,
    /// Was to be synced by a sync that failed: counts as clean, and is anybody's guess.
    doubtful: Changes,
    space: Space,
}

impl Inode {
    /// A file whose content is durable.
    pub(crate) fn with_content(bytes: &[u8]) -> Self {
        let mut inode = Inode::default();
        inode.write(bytes, 0);
        inode.sync();
        inode
    }

    pub(crate) fn len(&self) -> u64 {
        self.current.len
    }

    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        self.current.read(buf, offset)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.current.len as usize];
        self.current.read(&mut bytes, 0);
        bytes
    }

    /// The sectors that have room on the disk.
    pub(crate) fn used_sectors(&self) -> u64 {
        self.space.count()
    }

    /// How many more sectors these bytes need.
    pub(crate) fn sectors_needed(&self, bytes: &Range<u64>) -> u64 {
        self.space.missing(&sector_range(bytes))
    }

    pub(crate) fn write(&mut self, buf: &[u8], offset: u64) {
        let mut done = 0;
        while done < buf.len() {
            let position = offset + done as u64;
            let within = (position % SECTOR_LEN) as usize;
            let step = (buf.len() - done).min(SECTOR_LEN as usize - within);
            let index = position / SECTOR_LEN;
            let mut image = self.current.get(index).map_or([0; SECTOR_LEN as usize], |old| *old);
            image[within..within + step].copy_from_slice(&buf[done..done + step]);
            self.put(index, Some(Arc::new(image)));
            done += step;
        }
        if !buf.is_empty() {
            let end = offset + buf.len() as u64;
            self.space.insert(&sector_range(&(offset..end)));
            if end > self.current.len {
                self.current.len = end;
                self.unsynced.lengths.push(end);
            }
        }
    }

    /// Gives all of the first `len` bytes room, and the length at least `len`. The zeros need no
    /// versions: kept, lost or torn, they are zeros.
    pub(crate) fn allocate(&mut self, len: u64) {
        self.space.insert(&sector_range(&(0..len)));
        if len > self.current.len {
            self.current.len = len;
            self.unsynced.lengths.push(len);
        }
    }

    pub(crate) fn set_len(&mut self, len: u64) {
        if len < self.current.len {
            let before: Vec<(u64, Sector)> = self
                .current
                .sectors
                .range(len / SECTOR_LEN..)
                .map(|(&index, sector)| (index, Some(Arc::clone(sector))))
                .collect();
            self.current.cut(len);
            self.space.truncate(sectors_of(len));
            for (index, old) in before {
                let new = self.current.get(index);
                if new != old {
                    self.put(index, new);
                }
            }
        }
        self.current.len = len;
        self.unsynced.lengths.push(len);
    }

    /// Readers see the new version at once, and a crash may find it. The same bytes twice are one
    /// version, but the first write after a sync always counts, even of the same bytes: that is
    /// how a write after a failed sync gets its data to the disk.
    fn put(&mut self, index: u64, sector: Sector) {
        self.current.put(index, sector.clone());
        let versions = self.unsynced.sectors.entry(index).or_default();
        if versions.last() != Some(&sector) {
            versions.push(sector);
        }
    }

    pub(crate) fn sync(&mut self) {
        let synced = std::mem::take(&mut self.unsynced);
        if synced.lengths.is_empty() && synced.sectors.is_empty() {
            return;
        }
        // Synced data is reachable: its length comes with it, even one in doubt until now.
        self.doubtful.lengths.clear();
        self.durable.len = self.current.len;
        for (index, mut versions) in synced.sectors {
            self.doubtful.sectors.remove(&index);
            if let Some(last) = versions.pop() {
                self.durable.put(index, last);
            }
        }
        self.durable.cut(self.durable.len);
    }

    /// The sync failed. Readers go on seeing the data, later syncs do not write it.
    pub(crate) fn sync_failed(&mut self) {
        let failed = std::mem::take(&mut self.unsynced);
        self.doubtful.append(failed);
    }

    /// The file after a power loss that took everything not synced.
    pub(crate) fn without_unsynced(&self) -> Inode {
        self.settled(self.durable.clone())
    }

    /// The file after a power loss that took some of what was not synced.
    pub(crate) fn survivor(&self, dice: &mut Dice) -> Inode {
        let mut pending = self.doubtful.clone();
        pending.append(self.unsynced.clone());
        let survival_percent = dice.survival_percent();
        let mut found = self.durable.clone();
        for (index, mut versions) in pending.sectors {
            versions.insert(0, self.durable.get(index));
            found.put(index, choose_version(&versions, survival_percent, dice));
        }
        pending.lengths.push(self.durable.len);
        let len = dice.pick(&pending.lengths).copied().unwrap_or(self.durable.len);
        found.cut(len);
        self.settled(found)
    }

    fn settled(&self, content: Content) -> Inode {
        let mut space = self.space.clone();
        space.truncate(sectors_of(content.len));
        // A sector that was cut off, and that the crash brought back, has its room back too.
        for &index in content.sectors.keys() {
            space.insert(&(index..index + 1));
        }
        Inode { durable: content.clone(), current: content, space, ..Inode::default() }
    }

    /// Changes one byte behind everybody's back, in every version. `false` past the end.
    pub(crate) fn corrupt(&mut self, offset: u64, xor: u8) -> bool {
        let (index, within) = (offset / SECTOR_LEN, (offset % SECTOR_LEN) as usize);
        for content in [&mut self.durable, &mut self.current] {
            if offset < content.len {
                let sector = content.get(index);
                content.put(index, flipped(sector, within, xor));
            }
        }
        for changes in [&mut self.unsynced, &mut self.doubtful] {
            for version in changes.sectors.get_mut(&index).into_iter().flatten() {
                *version = flipped(version.take(), within, xor);
            }
        }
        offset < self.current.len
    }
}

/// The last version if it survives; else an earlier one, or the beginning of one before the rest of
/// an earlier one. `versions` starts with the durable one.
fn choose_version(versions: &[Sector], survival_percent: u64, dice: &mut Dice) -> Sector {
    let newest = versions.len().saturating_sub(1);
    if newest == 0 || dice.chance(survival_percent) {
        return versions.last().cloned().flatten();
    }
    let old = dice.below(newest as u64) as usize;
    if dice.chance(50) {
        return versions[old].clone();
    }
    let new = old + 1 + dice.below((newest - old) as u64) as usize;
    let cut = 1 + dice.below(SECTOR_LEN - 1) as usize;
    let mut torn = versions[old].as_ref().map_or([0; SECTOR_LEN as usize], |old| **old);
    match &versions[new] {
        Some(new) => torn[..cut].copy_from_slice(&new[..cut]),
        None => torn[..cut].fill(0),
    }
    Some(Arc::new(torn))
}

fn flipped(sector: Sector, within: usize, xor: u8) -> Sector {
    let mut bytes = sector.map_or([0; SECTOR_LEN as usize], |sector| *sector);
    bytes[within] ^= xor;
    Some(Arc::new(bytes))
}

/// How many sectors the first `len` bytes touch.
fn sectors_of(len: u64) -> u64 {
    len.div_ceil(SECTOR_LEN)
}

fn sector_range(bytes: &Range<u64>) -> Range<u64> {
    if bytes.is_empty() { 0..0 } else { bytes.start / SECTOR_LEN..sectors_of(bytes.end) }
}
