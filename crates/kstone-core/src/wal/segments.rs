//! The files of which the log consists: makes them, takes them into use, gives them up.
//!
//! A segment file goes round: *prepared* (allocated and synced, so that writing to it cannot run
//! out of space) → *live* (its header says which stretch of the log it holds; the newest live one
//! is the one being written) → released, once the manifest no longer needs its stretch → *idle*,
//! waiting to be used again under a higher generation, or removed. A log that is closed keeps no
//! idle ones.
//!
//! Called by the log writer (take into use), by appenders (prepare) and by flushes (release); the
//! lock inside is held for list operations only, never across file operations.

use super::DbId;
use super::format::{SEGMENT_HEADER_LEN, SegmentHeader, SegmentIdentity, UNUSED, VERSION};
use crate::bugs::{self, Bug};
use crate::entry::Seq;
use crate::env::{OpenMode, Vfs, VfsFile};
use crate::error::{Error, Result};
use crate::sync::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// So many files that are not needed wait to be used again in any case, which saves writing their zeros.
const IDLE_MIN: usize = 4;
/// And so many at most, however long the log has been: they take up disk.
const IDLE_MAX: usize = 16;

/// The first file after opening is no larger than this, so that making one takes milliseconds:
/// writing the zeros of a file of the usual size can take a tenth of a second. Each that is made after
/// it is twice as long or longer, up to the usual size: a database that writes little does not share the disk with zeros for
/// much, and one that writes much does not wait for all of them at the end of the first file. Nor does a
/// closed database keep a larger one, if nothing in it is needed.
pub(crate) const FIRST_BYTES: u64 = 1 << 20;

/// A segment file, whatever its state.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    pub(crate) slot: u32,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn VfsFile>,
    /// Its allocated length, header included.
    pub(crate) len: u64,
}

/// A file that is ready to be taken into use: allocated, synced, its name durable.
#[derive(Debug)]
pub(crate) struct Prepared(SegmentFile);

impl Prepared {
    /// How many bytes of chunks it can take.
    pub(crate) fn capacity(&self) -> u64 {
        capacity_of(self.0.len)
    }
}

/// A segment that the log (or what is left of it) still consists of.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) file: SegmentFile,
    pub(crate) start_pos: u64,
    /// The end of what was written; final once a newer segment exists.
    pub(crate) end_pos: u64,
    /// Up to where it was synced.
    pub(crate) durable_pos: u64,
    /// The last sequence number written to the log up to `end_pos`.
    pub(crate) last_seq: Seq,
}

/// A live segment as seen from outside, for copies.
#[derive(Debug, Clone)]
pub(crate) struct SegmentInfo {
    pub(crate) path: PathBuf,
    /// How many bytes from the front of the file make a complete copy of what is synced.
    pub(crate) copy_len: u64,
    #[cfg(test)]
    pub(crate) start_pos: u64,
    /// The end of what is synced.
    #[cfg(test)]
    pub(crate) end_pos: u64,
}

/// The live segments, oldest first. While this exists none of them is reused or removed.
#[derive(Debug)]
pub(crate) struct LiveSegments {
    pub(crate) segments: Vec<SegmentInfo>,
    _hold: Arc<()>,
}

/// What the writer needs to know of the segment it has just taken into use.
#[derive(Debug)]
pub(crate) struct Activated {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn VfsFile>,
    pub(crate) identity: SegmentIdentity,
    pub(crate) capacity: u64,
}

/// What recovery found, for [`Segments::new`].
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    /// Oldest first.
    pub(crate) live: Vec<Live>,
    /// Fit to be used again at once.
    pub(crate) idle: Vec<SegmentFile>,
    pub(crate) slots: BTreeSet<u32>,
    pub(crate) next_generation: u64,
    /// Where the manifest says that the log begins.
    pub(crate) log_start: u64,
}

/// All segment files of one log.
#[derive(Debug)]
pub(crate) struct Segments {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    db_id: DbId,
    segment_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Oldest first; the last one is being written.
    live: VecDeque<Live>,
    idle: Vec<SegmentFile>,
    /// How many files the log consisted of at most; one less each time that it became shorter since. It will
    /// be as long again before the next flush.
    live_most: usize,
    /// Slots whose name is taken, or may be.
    slots: BTreeSet<u32>,
    next_generation: u64,
    /// How long the next file is that is made, unless a commit needs a longer one.
    next_len: u64,
    /// What the manifest on disk names as the log's start, or less.
    log_start: u64,
    /// Purges under way. Meanwhile nothing that a released segment holds may come back into use.
    purges: usize,
    /// Cloned by readers under which files must not change.
    hold: Arc<()>,
}

impl Segments {
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        db_id: DbId,
        segment_bytes: u64,
        found: Inventory,
    ) -> Self {
        Segments {
            vfs,
            dir: dir.to_owned(),
            db_id,
            segment_bytes,
            state: Mutex::new(State {
                live: found.live.into(),
                idle: found.idle,
                live_most: 0,
                slots: found.slots,
                next_generation: found.next_generation,
                next_len: segment_bytes.min(FIRST_BYTES),
                log_start: found.log_start,
                purges: 0,
                hold: Arc::new(()),
            }),
        }
    }

    pub(crate) fn db_id(&self) -> &DbId {
        &self.db_id
    }

    /// How many bytes of chunks a segment of the usual size takes; the first ones take less.
    pub(crate) fn usual_capacity(&self) -> u64 {
        capacity_of(self.segment_bytes)
    }

    /// Makes a file ready that takes at least `need` bytes of chunks: an idle one of the usual
    /// size, else a new one. A full disk shows here, before anything was promised; the half-made
    /// file is removed and the call may be repeated.
    pub(crate) fn prepare(&self, need: u64) -> Result<Prepared> {
        let len = need
            .checked_add(SEGMENT_HEADER_LEN as u64)
            .ok_or_else(|| Error::invalid("the commit is larger than any file can be"))?;
        if need > self.usual_capacity() {
            return self.make(len);
        }
        if let Some(idle) = self.take_idle() {
            return Ok(idle);
        }
        let len = len.max(self.state.lock().next_len);
        let made = self.make(len)?;
        let mut state = self.state.lock();
        state.next_len = state.next_len.max(len.saturating_mul(2).min(self.segment_bytes));
        Ok(made)
    }

    /// Makes a file that takes no chunk: its header alone, to say where a closed log ends.
    pub(crate) fn prepare_last(&self) -> Result<Prepared> {
        self.make(SEGMENT_HEADER_LEN as u64)
    }

    fn take_idle(&self) -> Option<Prepared> {
        let mut state = self.state.lock();
        if state.purges > 0 {
            return None;
        }
        let at = state.idle.iter().rposition(|file| file.len == self.segment_bytes)?;
        Some(Prepared(state.idle.swap_remove(at)))
    }

    fn make(&self, len: u64) -> Result<Prepared> {
        let slot = {
            let mut state = self.state.lock();
            let slot = (0..=u32::MAX).find(|slot| !state.slots.contains(slot)).unwrap_or(u32::MAX);
            state.slots.insert(slot);
            slot
        };
        let path = self.dir.join(file_name(slot));
        let opened = self.vfs.open(&path, OpenMode::CreateNew);
        // On failure the slot stays taken: the name may exist, and the next attempt uses another.
        let file = opened.map_err(|e| Error::io("create", &path, e))?;
        if let Err(error) = self.fill(&path, &file, len) {
            if self.vfs.remove(&path).is_ok() {
                self.state.lock().slots.remove(&slot);
            }
            return Err(error);
        }
        Ok(Prepared(SegmentFile { slot, path, file, len }))
    }

    fn fill(&self, path: &Path, file: &Arc<dyn VfsFile>, len: u64) -> Result<()> {
        file.allocate(len).map_err(|e| Error::io("allocate", path, e))?;
        file.sync_data().map_err(|e| Error::io("sync", path, e))?;
        if !bugs::on(Bug::SegmentDirSyncSkipped) {
            self.vfs.sync_dir(&self.dir).map_err(|e| Error::io("sync", &self.dir, e))?;
        }
        // Last, because it tells a recovery that all of the above is done and the file can be
        // used. It need not be durable itself.
        let unused = self.header(UNUSED, 0);
        file.write_at(&unused.encode(), 0).map_err(|e| Error::io("write", path, e))
    }

    /// The header of a segment whose start is synced up to.
    fn header(&self, generation: u64, start_pos: u64) -> SegmentHeader {
        SegmentHeader {
            version: VERSION,
            db_id: self.db_id,
            generation,
            start_pos,
            durable_pos: start_pos,
        }
    }

    /// Takes a prepared file into use as the newest segment. Everything before `start_pos` must be
    /// synced. On return the header is durable.
    pub(crate) fn activate(
        &self,
        prepared: Prepared,
        start_pos: u64,
        last_seq: Seq,
    ) -> Result<Activated> {
        let Prepared(segment) = prepared;
        let generation = {
            let mut state = self.state.lock();
            let generation = state.next_generation;
            state.next_generation += 1;
            generation
        };
        let header = self.header(generation, start_pos);
        let path = &segment.path;
        segment.file.write_at(&header.encode(), 0).map_err(|e| Error::io("write", path, e))?;
        segment.file.sync_data().map_err(|e| Error::io("sync", path, e))?;
        let activated = Activated {
            path: path.clone(),
            file: Arc::clone(&segment.file),
            identity: header.identity(),
            capacity: capacity_of(segment.len),
        };
        self.state.lock().live.push_back(Live {
            file: segment,
            start_pos,
            end_pos: start_pos,
            durable_pos: start_pos,
            last_seq,
        });
        Ok(activated)
    }

    /// The writer's account of the newest segment.
    pub(crate) fn progress(&self, end_pos: u64, durable_pos: u64, last_seq: Seq) {
        if let Some(newest) = self.state.lock().live.back_mut() {
            newest.end_pos = end_pos;
            newest.durable_pos = durable_pos;
            newest.last_seq = last_seq;
        }
    }

    /// The position from which a recovery must read to see every sequence number above `upto`.
    pub(crate) fn log_start(&self, upto: Seq) -> u64 {
        let state = self.state.lock();
        let needed = state.live.iter().find(|segment| segment.last_seq > upto);
        match (needed, state.live.back()) {
            (Some(segment), _) => segment.start_pos,
            (None, Some(newest)) => newest.end_pos,
            (None, None) => 0,
        }
    }

    /// Gives up the segments that end at or before `log_start`, which the manifest on disk must
    /// already name as the log's start. Does nothing while somebody holds [`LiveSegments`].
    pub(crate) fn release(&self, log_start: u64) -> Result<()> {
        let mut unneeded = Vec::new();
        {
            let mut state = self.state.lock();
            state.log_start = state.log_start.max(log_start);
            if Arc::strong_count(&state.hold) > 1 {
                return Ok(());
            }
            let live_before = state.live.len();
            while state.live.len() > 1
                && let Some(oldest) = state.live.front()
                && oldest.end_pos <= log_start
                && let Some(oldest) = state.live.pop_front()
            {
                state.live_most = state.live_most.max(live_before);
                // For a purge, all of them wait to be overwritten.
                if self.is_worth_keeping(&state, &oldest.file) || state.purges > 0 {
                    state.idle.push(oldest.file);
                } else {
                    unneeded.push(oldest.file);
                }
            }
            if state.live.len() < live_before {
                state.live_most = live_before.max(state.live_most.saturating_sub(1));
            }
        }
        self.remove(unneeded)
    }

    /// Whether a file that is not needed any more should wait to be used again.
    fn is_worth_keeping(&self, state: &State, file: &SegmentFile) -> bool {
        let wanted = state.live_most.saturating_sub(state.live.len());
        let is_usual = file.len == self.segment_bytes;
        is_usual && state.idle.len() < wanted.clamp(IDLE_MIN, IDLE_MAX)
    }

    /// Nobody has written for long, and the log need not be as long again soon: removes what waits for that.
    pub(crate) fn keep_few_idle(&self) -> Result<()> {
        let unneeded = {
            let mut state = self.state.lock();
            // A purge is to overwrite them.
            if state.purges > 0 {
                return Ok(());
            }
            state.live_most = 0;
            let kept = state.idle.len().min(IDLE_MIN);
            state.idle.split_off(kept)
        };
        self.remove(unneeded)
    }

    /// Begins or ends a purge.
    pub(crate) fn note_purge(&self, begins: bool) {
        let purges = &mut self.state.lock().purges;
        *purges = if begins { *purges + 1 } else { purges.saturating_sub(1) };
    }

    /// Where the oldest live segment starts, and the newest.
    pub(crate) fn live_range(&self) -> (u64, u64) {
        let state = self.state.lock();
        let start = |live: Option<&Live>| live.map_or(0, |live| live.start_pos);
        (start(state.live.front()), start(state.live.back()))
    }

    /// Overwrites what idle files (and `also`) hold with zeros and removes them. What a live
    /// segment holds stays until it is released.
    pub(crate) fn scrub_idle(&self, also: Vec<Prepared>) -> Result<()> {
        let mut files = std::mem::take(&mut self.state.lock().idle);
        files.extend(also.into_iter().map(|prepared| prepared.0));
        if files.is_empty() {
            return Ok(());
        }
        if let Err(error) = files.iter().try_for_each(|segment| self.zero(segment)) {
            // Kept, so that the next attempt finds them.
            self.state.lock().idle.append(&mut files);
            return Err(error);
        }
        self.remove(files)?;
        self.vfs.sync_dir(&self.dir).map_err(|e| Error::io("sync", &self.dir, e))
    }

    /// Whether the manifest on disk needs nothing of the log before this position.
    pub(crate) fn needs_nothing_before(&self, pos: u64) -> bool {
        self.state.lock().log_start >= pos
    }

    /// A purge has its own plans for files that are not needed any more.
    pub(crate) fn is_purging(&self) -> bool {
        self.state.lock().purges > 0
    }

    /// Removes all files that the log does not consist of, `also` among them: a database that nobody
    /// has open need not hold room for what may be written some day.
    pub(crate) fn remove_unneeded(&self, also: Vec<Prepared>) -> Result<()> {
        let log_start = {
            let mut state = self.state.lock();
            state.idle.extend(also.into_iter().map(|prepared| prepared.0));
            state.log_start
        };
        self.release(log_start)?;
        if self.is_purging() {
            return Ok(());
        }
        let files = std::mem::take(&mut self.state.lock().idle);
        self.remove(files)
    }

    fn zero(&self, segment: &SegmentFile) -> Result<()> {
        let zeros = vec![0; 1 << 16];
        let mut at = 0;
        while at < segment.len {
            let len = (segment.len - at).min(zeros.len() as u64);
            let block = zeros.get(..len as usize).unwrap_or_default();
            segment
                .file
                .write_at(block, at)
                .map_err(|e| Error::io("overwrite", &segment.path, e))?;
            at += len;
        }
        segment.file.sync_data().map_err(|e| Error::io("sync", &segment.path, e))
    }

    /// A file that comes back after a crash because its removal was not synced is harmless: its
    /// stretch of the log is before the log's start. So there is no `sync_dir` here.
    fn remove(&self, files: Vec<SegmentFile>) -> Result<()> {
        let mut outcome = Ok(());
        for segment in files {
            match self.vfs.remove(&segment.path) {
                Ok(()) => {
                    self.state.lock().slots.remove(&segment.slot);
                }
                // It waits with the others: to be used again if it has the usual size, and to be
                // overwritten by the next purge.
                Err(error) => {
                    outcome = Err(Error::io("remove", &segment.path, error));
                    self.state.lock().idle.push(segment);
                }
            }
        }
        outcome
    }

    /// Adds files that recovery could not hand over before the new segment's header was durable,
    /// and removes those that cannot be used again.
    pub(crate) fn adopt(&self, files: Vec<SegmentFile>, unusable: Vec<SegmentFile>) -> Result<()> {
        let mut unneeded = unusable;
        {
            let mut state = self.state.lock();
            for file in files {
                if self.is_worth_keeping(&state, &file) {
                    state.idle.push(file);
                } else {
                    unneeded.push(file);
                }
            }
        }
        self.remove(unneeded)
    }

    /// The live segments, protected from reuse for as long as the result lives.
    pub(crate) fn live(&self) -> LiveSegments {
        let state = self.state.lock();
        let segments = state
            .live
            .iter()
            .map(|segment| SegmentInfo {
                path: segment.file.path.clone(),
                #[cfg(test)]
                start_pos: segment.start_pos,
                #[cfg(test)]
                end_pos: segment.durable_pos,
                copy_len: SEGMENT_HEADER_LEN as u64 + (segment.durable_pos - segment.start_pos),
            })
            .collect();
        LiveSegments { segments, _hold: Arc::clone(&state.hold) }
    }

    /// How many bytes of the log are still held.
    pub(crate) fn live_bytes(&self) -> u64 {
        let state = self.state.lock();
        match (state.live.front(), state.live.back()) {
            (Some(oldest), Some(newest)) => newest.end_pos.saturating_sub(oldest.start_pos),
            _ => 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn live_count(&self) -> usize {
        self.state.lock().live.len()
    }
}

/// Chunks start at multiples of 8, so a ragged end is of no use.
fn capacity_of(file_len: u64) -> u64 {
    file_len.saturating_sub(SEGMENT_HEADER_LEN as u64) & !7
}

pub(crate) fn file_name(slot: u32) -> String {
    format!("wal-{slot:06}.log")
}

/// The slot that a file name stands for, if it is a segment's.
pub(crate) fn parse_file_name(name: &str) -> Option<u32> {
    let slot = name.strip_prefix("wal-")?.strip_suffix(".log")?.parse().ok()?;
    (file_name(slot) == name).then_some(slot)
}
