//! A memory-mapped file for writing: stored bytes reach the page cache without a system call.
//!
//! For files whose blocks are there already and that one thread at a time writes from the front to
//! the back: segments of the log. Never for reading. The danger of mapped files is that an error of
//! the disk is a signal and ends the process. Here it is an error again: before anything is stored to
//! a stretch of the file, the system is asked to make it writable (`MADV_POPULATE_WRITE`), which
//! reads, allocates and maps as a store would, and *answers* where a store would be killed. What is
//! left: when the system has written a page to the disk, the next store to it asks the file system
//! once more, unseen. One that overwrites in place has nothing to refuse then, unless it has given
//! up altogether, or has to read the page back and cannot. See docs/decisions/0027.
//!
//! Beside the one that writes, the log's thread gives up pages behind it, makes pages ready ahead of it and
//! syncs what lies before it; each of these is a call that takes no lock while the system is at it.
//!
//! Called by `os`. Linux only; elsewhere, and where anything is unusual, `os` writes as ever.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};
use rustix::fs::fstatfs;
use rustix::param::page_size;

/// So much is made writable at once; some pages, or one that is long. Less: more calls; more: a sync soon
/// afterwards writes pages that nothing was stored to. Where pages are longer still, nothing is stored: what lies
/// behind the stores is given up, and synced, by this length, and must be whole pages.
const STEP_BYTES: usize = 16 << 10;
/// So much behind the stores is taken out of the process's memory by the store itself (the page cache keeps
/// it), if no sync comes before, as it does where there is a thread for the log; a multiple of every
/// machine's pages. Each time interrupts the other cores, which took 30 µs, and 0.35 µs for a page. More:
/// that much more memory, and a longer call. Less: more interrupts.
const BEHIND_BYTES: usize = 4 << 20;

/// So much is made writable ahead of the stores where there is a thread for it. Less: stores catch up with
/// it while that thread syncs; more: more memory, and more that the next sync of everything writes in vain.
pub(super) const READY_BYTES: usize = 2 << 20;

/// What is as long as this is better written: one call, where storing it takes some, and no page of it
/// is ever mapped.
pub(super) const WRITTEN_MIN: usize = 32 << 10;

/// `f_type` of file systems that overwrite in place, so that a store to an allocated block needs no
/// new one: ext2 to ext4, tmpfs. Others (XFS too, once files share blocks) may find the disk full at
/// any store.
const IN_PLACE: [u32; 2] = [0xef53, 0x0102_1994];

/// A file that is mapped into memory.
#[derive(Debug)]
pub(super) struct Mapped {
    map: Arc<MmapRaw>,
    /// What was made writable and not given up yet.
    writable: Range<usize>,
    /// The end of what was stored or written last.
    stored_end: usize,
    /// How often everything that was writable was given up.
    times_given_up: u64,
}

/// Pages that are written to no more, to be unmapped.
#[must_use = "they stay in the process's memory"]
pub(super) struct FinishedPages {
    map: Arc<MmapRaw>,
    pages: Range<usize>,
}

impl FinishedPages {
    /// Takes them out of the process's memory: they have been stored, and the file has them. If that
    /// fails, they stay until the file is closed.
    pub(super) fn give_up(self) {
        let _ = give_up(&self.map, self.pages.start, self.pages.len());
    }
}

/// Pages that will be written to soon, to be made writable.
pub(super) struct UpcomingPages {
    map: Arc<MmapRaw>,
    pages: Range<usize>,
    times_given_up: u64,
}

impl UpcomingPages {
    /// Makes them writable, as a store would that comes to them; `None` if that is left to it.
    pub(super) fn make_writable(self) -> Option<UpcomingPages> {
        make_writable(&self.map, &self.pages).then_some(self)
    }
}

impl Mapped {
    /// Maps the file as long as it is now; `None` where that cannot be done, or not safely.
    pub(super) fn of(file: &File) -> Option<Mapped> {
        if !is_fit(file) {
            return None;
        }
        let len = usize::try_from(file.metadata().ok()?.len()).ok()?;
        if len == 0 {
            return None;
        }
        let map = MmapOptions::new().len(len).map_raw(file).ok()?;
        Some(Mapped { map: Arc::new(map), writable: 0..0, stored_end: 0, times_given_up: 0 })
    }

    /// Stores the bytes; `false` if they are to be written in another way.
    pub(super) fn store(&mut self, bytes: &[u8], offset: u64) -> bool {
        let Ok(start) = usize::try_from(offset) else { return false };
        let Some(end) = start.checked_add(bytes.len()).filter(|&end| end <= self.map.len()) else {
            return false;
        };
        if (start < self.writable.start || self.writable.end < end) && !self.prepare(start, end) {
            return false;
        }
        self.stored_end = end;
        copy_into(self.map.as_mut_ptr(), self.map.len(), start, bytes)
    }

    /// Something was written in another way.
    pub(super) fn passed(&mut self, offset: u64, len: usize) {
        self.stored_end = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(len);
    }

    /// The system is about to write to the disk what was stored, and nobody stores meanwhile: the next
    /// store asks again. All of it is taken out of the process's memory by one interrupt; for each page
    /// that a sync finds mapped there is one.
    pub(super) fn synced(&mut self) {
        self.give_up_all();
    }

    /// The same where somebody may store meanwhile: all but the few pages where stores go on, to be given
    /// up when nobody waits for it.
    pub(super) fn take_finished(&mut self) -> Option<FinishedPages> {
        let end = (self.stored_end / STEP_BYTES * STEP_BYTES).min(self.writable.end);
        let pages = self.writable.start..end;
        if pages.is_empty() {
            return None;
        }
        self.writable.start = end;
        Some(FinishedPages { map: Arc::clone(&self.map), pages })
    }

    /// Where the next bytes will be stored, to be made writable when nobody waits for it. Nothing if the
    /// last ones were not stored.
    pub(super) fn next_pages(&self) -> Option<UpcomingPages> {
        if self.writable.is_empty() || self.writable.end < self.stored_end {
            return None;
        }
        let times_given_up = self.times_given_up;
        let end = self.stored_end.saturating_add(READY_BYTES).min(self.map.len());
        let pages = self.writable.end..end / STEP_BYTES * STEP_BYTES;
        (!pages.is_empty()).then(|| UpcomingPages {
            map: Arc::clone(&self.map),
            pages,
            times_given_up,
        })
    }

    /// The pages are writable: stores need not ask. Not if they have been given up meanwhile.
    pub(super) fn add(&mut self, ready: &UpcomingPages) {
        let goes_on = (ready.pages.start..ready.pages.end).contains(&self.writable.end);
        if goes_on
            && self.times_given_up == ready.times_given_up
            && Arc::ptr_eq(&self.map, &ready.map)
        {
            self.writable.end = ready.pages.end;
        }
    }

    #[cfg(test)]
    pub(super) fn writable_end(&self) -> usize {
        self.writable.end
    }

    /// Makes the stretch writable, and a little more.
    fn prepare(&mut self, start: usize, end: usize) -> bool {
        let goes_on = self.writable.contains(&start) || self.writable.end == start;
        let first = start / STEP_BYTES * STEP_BYTES;
        if !goes_on {
            self.give_up_all();
            self.writable = first..first;
        } else if start - self.writable.start >= BEHIND_BYTES {
            self.give_up(start / BEHIND_BYTES * BEHIND_BYTES);
        }
        let from = self.writable.end;
        let to = end.next_multiple_of(STEP_BYTES).min(self.map.len());
        let prepared = make_writable(&self.map, &(from..to));
        if prepared {
            self.writable.end = to;
        }
        prepared
    }

    fn give_up_all(&mut self) {
        self.times_given_up += 1;
        self.give_up(self.writable.end);
    }

    /// Takes what lies before `end` out of the process's memory: it has been stored, and the file has
    /// it. If that fails, it stays a little longer.
    fn give_up(&mut self, end: usize) {
        let Range { start, .. } = self.writable;
        if start < end {
            let _ = give_up(&self.map, start, end - start);
            self.writable.start = end;
        }
    }
}

/// Syncs what lies before `end`, all but what shares its last few pages with what is stored behind it: a
/// sync makes each page that it writes read-only first, and the next store to it waits until the system has
/// made it writable again. `false` if that cannot be done here. An error is reported to this handle alone, as by
/// any other sync.
pub(super) fn sync_before(file: &File, end: u64) -> std::io::Result<bool> {
    let Some(end) = usize::try_from(end).ok().filter(|_| is_fit(file)) else {
        return Ok(false);
    };
    let len = end / STEP_BYTES * STEP_BYTES;
    let Ok(map) = MmapOptions::new().len(len.max(STEP_BYTES)).map_raw(file) else {
        return Ok(false);
    };
    // Of a mapped file that is an `fdatasync` of this range.
    map.flush_range(0, len)?;
    Ok(true)
}

/// Whether the machine and the file system are such that a file may be stored to.
fn is_fit(file: &File) -> bool {
    page_size() <= STEP_BYTES
        && fstatfs(file).is_ok_and(|found| IN_PLACE.contains(&(found.f_type as u32)))
}

/// Does what a store to each of the pages would do first, and answers whether that worked.
fn make_writable(map: &MmapRaw, pages: &Range<usize>) -> bool {
    map.advise_range(Advice::PopulateWrite, pages.start, pages.len()).is_ok()
}

/// Takes pages out of the process's memory.
#[allow(unsafe_code)]
fn give_up(map: &MmapRaw, offset: usize, len: usize) -> std::io::Result<()> {
    // SAFETY: of a shared mapping of a file, as `map_raw` makes it, this drops the process's view of
    // the pages and not what they hold: the next look, or a store that is under way, finds the file
    // again. Nobody has a reference into the mapping.
    unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, offset, len) }
}

/// Copies the bytes to `at` of the memory of `len` bytes at `memory`; `false`, and nothing is done, if
/// they do not lie in it.
#[allow(unsafe_code)]
fn copy_into(memory: *mut u8, len: usize, at: usize, bytes: &[u8]) -> bool {
    if at.checked_add(bytes.len()).is_none_or(|end| end > len) {
        return false;
    }
    // SAFETY: `memory` is the start of `len` bytes that may be written: a shared, writable mapping that
    // lives as long as the `Mapped` that is borrowed mutably here, so that no other thread of ours
    // writes to it; by the check above, all bytes land inside. They come from a reference to other
    // memory: nothing in the program has a reference into the mapping, so the two do not overlap.
    // Any byte is a valid `u8`, even if another process writes the file.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.add(at), bytes.len());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made so that miri can run it: `cargo +nightly miri test -p kstone-core --lib env::mapped`.
    #[test]
    fn bytes_are_copied_only_into_the_memory_that_is_there() {
        let mut memory = vec![0u8; 10];
        let (start, len) = (memory.as_mut_ptr(), memory.len());
        assert!(copy_into(start, len, 0, b"ab"));
        assert!(copy_into(start, len, 8, b"yz"));
        assert!(copy_into(start, len, 10, b""));
        assert!(!copy_into(start, len, 9, b"yz"));
        assert!(!copy_into(start, len, 11, b""));
        assert!(!copy_into(start, len, usize::MAX, b"a"));
        assert_eq!(memory, b"ab\0\0\0\0\0\0yz");
    }
}
