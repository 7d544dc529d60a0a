//! A pool of memory chunks for records, which a thread touches before a writer needs them.
//!
//! The first store to a page of new memory stops in the system, which looks for a page and clears it: a
//! microsecond or three, and where the machine itself is a guest, to whom its host gives memory as it is
//! touched, some twenty. With values of 1 KiB that was a quarter of a writer's time. So a thread touches
//! what is needed next, and a writer who finds nothing ready does as it would without.
//!
//! What is kept ready is little, of the lengths that were asked for lately, and goes when hardly anybody
//! asks. Memtables begin with chunks of the least length, for which nobody is called: who writes a little
//! now and then does without.
//!
//! Calls `sync`; called by the arena, and by the engine, which has the thread.

use std::time::Duration;

use super::arena::{CHUNK_LEN_MAX, CHUNK_LEN_MIN};
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex};

/// Enough for what quick writers fill while the thread sleeps, wakes and works.
const READY_BYTES_MAX: usize = 2 << 20;
/// Enough for what the quickest ones do on the quickest machine seen, where there is memory for that: values of a
/// kilobyte come at 350 MB/s there.
const LARGE_READY_BYTES_MAX: usize = 8 << 20;
/// The least that is worth a thread: what is ready is of several lengths.
const READY_BYTES_MIN: usize = 8 * CHUNK_LEN_MAX;
/// How often the thread looks while chunks are taken. It wakes by itself: to wake it takes a writer some
/// microseconds, and dozens on a machine that is a guest. And not often: where all processors are busy,
/// it takes one from somebody each time.
const TICK: Duration = Duration::from_millis(8);
/// After so many ticks with hardly any, nothing is kept ready, and the thread sleeps until it is called.
const IDLE_TICKS_MAX: u32 = 100;
/// Every page is stored to, wherever pages are as long as this or longer.
const PAGE_LEN: usize = 4096;

/// One for each power of two that a chunk may be long.
const LENGTHS: usize = (CHUNK_LEN_MAX / CHUNK_LEN_MIN).ilog2() as usize + 1;

/// Chunks that are ready to be written to, for all memtables of a database.
#[derive(Debug)]
pub(crate) struct ChunkPool {
    /// How much is kept ready; 0 is none, and no thread.
    ready_bytes_max: usize,
    state: Mutex<PoolState>,
    wake: Condvar,
    has_thread: AtomicBool,
    wants_thread: AtomicBool,
    /// Whether any chunk may be ready.
    may_have_chunks: AtomicBool,
}

#[derive(Debug, Default)]
struct PoolState {
    /// By length. All are [prefaulted].
    ready: [Vec<Vec<u8>>; LENGTHS],
    /// How many of each length were asked for lately.
    taken: [usize; LENGTHS],
    taken_bytes: usize,
    /// Chunks were taken since the thread last looked.
    was_asked: bool,
    thread_sleeps: bool,
    is_closed: bool,
}

impl ChunkPool {
    /// For a database whose memtables hold so much.
    pub(crate) fn new(write_buffer_bytes: usize) -> Self {
        let large_share = (write_buffer_bytes / 128).min(LARGE_READY_BYTES_MAX);
        let share = (write_buffer_bytes / 32).min(READY_BYTES_MAX).max(large_share);
        ChunkPool {
            ready_bytes_max: if share < READY_BYTES_MIN { 0 } else { share },
            state: Mutex::default(),
            wake: Condvar::default(),
            has_thread: AtomicBool::new(false),
            wants_thread: AtomicBool::new(false),
            may_have_chunks: AtomicBool::new(false),
        }
    }

    /// Nothing is kept ready: for a database without threads, and while the log is replayed.
    pub(crate) fn none() -> Self {
        ChunkPool::new(0)
    }

    /// What it may hold now.
    pub(crate) fn bytes(&self) -> usize {
        if self.may_have_chunks.load(Relaxed) { self.ready_bytes_max } else { 0 }
    }

    /// An empty chunk with room for `len` bytes, which is a power of two that a chunk may be long.
    pub(super) fn take(&self, len: usize) -> Vec<u8> {
        self.take_ready(len).unwrap_or_else(|| Vec::with_capacity(len))
    }

    fn take_ready(&self, len: usize) -> Option<Vec<u8>> {
        if self.ready_bytes_max == 0 {
            return None;
        }
        let nth = nth_length(len);
        // Not to wait: the thread may have lost its processor in there.
        let mut state = self.state.try_lock()?;
        let taken = state.taken.get_mut(nth)?;
        *taken = taken.saturating_add(1);
        state.taken_bytes = state.taken_bytes.saturating_add(len);
        state.was_asked = true;
        let chunk = state.ready.get_mut(nth)?.pop();
        if len > CHUNK_LEN_MIN && state.taken_bytes >= self.enough_bytes() {
            if !self.has_thread.load(Relaxed) {
                self.wants_thread.store(true, Relaxed);
            } else if std::mem::take(&mut state.thread_sleeps) {
                drop(state);
                self.wake.notify_one();
            }
        }
        chunk
    }

    /// Having taken so much, a writer is worth a thread, and shows which lengths are wanted.
    fn enough_bytes(&self) -> usize {
        self.ready_bytes_max.min(READY_BYTES_MAX) / 4
    }

    /// Whether there should be a thread that [runs](ChunkPool::run) this. Says so once.
    #[inline]
    pub(crate) fn wants_thread(&self) -> bool {
        self.wants_thread.load(Relaxed)
            && self.wants_thread.swap(false, Relaxed)
            && !self.has_thread.swap(true, Relaxed)
    }

    /// The thread: makes chunks ready until the pool is closed.
    pub(crate) fn run(&self) {
        let mut idle_ticks = 0;
        let mut state = self.state.lock();
        while !state.is_closed {
            if std::mem::take(&mut state.was_asked) {
                if state.taken_bytes >= self.enough_bytes() {
                    idle_ticks = 0;
                }
                self.may_have_chunks.store(true, Relaxed);
                let missing = state.plan(self.ready_bytes_max, self.enough_bytes());
                drop(state);
                for (nth, &count) in missing.iter().enumerate() {
                    self.make_ready(nth, count);
                }
                state = self.state.lock();
                if state.is_closed {
                    break;
                }
            }
            idle_ticks += 1;
            if idle_ticks <= IDLE_TICKS_MAX {
                state = self.wake.wait_timeout(state, TICK);
            } else {
                state.clear();
                self.may_have_chunks.store(false, Relaxed);
                state.thread_sleeps = true;
                state = self.wake.wait(state);
                state.thread_sleeps = false;
            }
        }
        state.clear();
        self.may_have_chunks.store(false, Relaxed);
    }

    /// Makes so many chunks of one length, if there is room for them.
    fn make_ready(&self, nth: usize, count: usize) {
        let len = CHUNK_LEN_MIN << nth;
        for _ in 0..count {
            if !self.takes(&self.state.lock(), len) {
                return;
            }
            let chunk = prefaulted(len);
            let mut state = self.state.lock();
            if !self.takes(&state, len) {
                return;
            }
            state.ready[nth].push(chunk);
        }
    }

    fn takes(&self, state: &PoolState, len: usize) -> bool {
        !state.is_closed && state.ready_bytes() + len <= self.ready_bytes_max
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.wake.notify_one();
    }
}

impl PoolState {
    fn clear(&mut self) {
        *self = PoolState { is_closed: self.is_closed, ..PoolState::default() };
    }

    fn ready_bytes(&self) -> usize {
        bytes_of(&std::array::from_fn(|nth| self.ready[nth].len()))
    }

    /// How many of each length are missing: of each its share of what was taken lately should be ready.
    fn plan(&mut self, bytes_max: usize, enough_bytes: usize) -> [usize; LENGTHS] {
        let share = |taken: usize| taken as u64 * bytes_max as u64 / self.taken_bytes.max(1) as u64;
        let wanted = self.taken.map(|taken| share(taken) as usize);
        if self.taken_bytes >= enough_bytes {
            // What was taken long ago says less, and what nobody takes any more goes.
            self.taken = self.taken.map(|taken| taken / 2);
            self.taken_bytes = bytes_of(&self.taken);
            self.ready.iter_mut().zip(wanted).for_each(|(ready, wanted)| ready.truncate(wanted));
        }
        std::array::from_fn(|nth| wanted[nth].saturating_sub(self.ready[nth].len()))
    }
}

fn bytes_of(counts: &[usize; LENGTHS]) -> usize {
    counts.iter().enumerate().map(|(nth, count)| count * (CHUNK_LEN_MIN << nth)).sum()
}

fn nth_length(len: usize) -> usize {
    (len / CHUNK_LEN_MIN).max(1).ilog2() as usize
}

/// An empty chunk whose pages have been stored to.
fn prefaulted(len: usize) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(len);
    for page in chunk.spare_capacity_mut().chunks_mut(PAGE_LEN) {
        // At both ends, because a chunk may begin anywhere in a page. The compiler would leave out a store
        // that nobody reads, if it could see that.
        if let [first, .., last] = std::hint::black_box(page) {
            first.write(0);
            last.write(0);
        }
    }
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: usize = 64 << 20;

    fn ready_bytes(pool: &ChunkPool) -> usize {
        pool.state.lock().ready_bytes()
    }

    /// What the thread does when it wakes; answers what was missing.
    fn plan_and_make(pool: &ChunkPool) -> [usize; LENGTHS] {
        let missing = pool.state.lock().plan(pool.ready_bytes_max, pool.enough_bytes());
        missing.iter().enumerate().for_each(|(nth, &count)| pool.make_ready(nth, count));
        assert!(ready_bytes(pool) <= pool.ready_bytes_max);
        missing
    }

    #[test]
    fn what_is_ready_is_in_proportion_to_what_was_taken() {
        let pool = ChunkPool::new(BUFFER);
        let max = pool.ready_bytes_max;
        for _ in 0..64 {
            pool.take(16 << 10);
            pool.take(16 << 10);
            pool.take(32 << 10);
        }
        let made = plan_and_make(&pool);
        assert_eq!(made, [0, 0, max / 2 / (16 << 10), max / 2 / (32 << 10), 0]);
        assert_eq!(ready_bytes(&pool), max);
        let chunk = pool.take(32 << 10);
        assert_eq!((chunk.len(), chunk.capacity()), (0, 32 << 10));
        assert_eq!(ready_bytes(&pool), max - (32 << 10));
    }

    /// Else they would keep others out for ever.
    #[test]
    fn lengths_that_nobody_takes_any_more_go() {
        let pool = ChunkPool::new(BUFFER);
        let max = pool.ready_bytes_max;
        let take_and_make = |len: usize| {
            for _ in 0..max / len {
                pool.take(len);
            }
            plan_and_make(&pool);
        };
        take_and_make(4 << 10);
        for _ in 0..16 {
            take_and_make(64 << 10);
        }
        let state = pool.state.lock();
        assert_eq!(state.ready[0].len(), 0);
        assert_eq!(state.ready[LENGTHS - 1].len(), max / (64 << 10));
    }

    /// With few taken, one more of another length changes the shares by much.
    #[test]
    fn there_is_never_more_than_was_allowed() {
        let pool = ChunkPool::new(READY_BYTES_MIN * 32);
        for nth in (0..LENGTHS).chain((0..LENGTHS).rev()).cycle().take(100) {
            pool.take(CHUNK_LEN_MIN << nth);
            plan_and_make(&pool);
        }
    }

    #[test]
    fn a_small_database_keeps_nothing_ready() {
        let pool = ChunkPool::new(READY_BYTES_MIN * 32 - 32);
        for _ in 0..1000 {
            assert_eq!(pool.take(CHUNK_LEN_MAX).capacity(), CHUNK_LEN_MAX);
        }
        assert!(!pool.wants_thread());
    }

    #[test]
    fn the_more_memory_the_more_is_ready_up_to_a_bound() {
        const MIB: usize = 1 << 20;
        let ready = [32, 64, 128, 256, 512, 1024, 8192]
            .map(|mib| ChunkPool::new(mib * MIB).ready_bytes_max);
        assert_eq!(ready, [MIB, 2 * MIB, 2 * MIB, 2 * MIB, 4 * MIB, 8 * MIB, 8 * MIB]);
    }

    /// The thread starts once, has chunks ready, and leaves none behind.
    #[test]
    fn a_thread_makes_them_and_ends() {
        let pool = ChunkPool::new(BUFFER);
        pool.take(CHUNK_LEN_MAX);
        assert!(!pool.wants_thread(), "a few chunks are not worth a thread");
        for _ in 0..pool.ready_bytes_max / CHUNK_LEN_MAX {
            pool.take(CHUNK_LEN_MAX);
        }
        assert!(pool.wants_thread());
        pool.take(CHUNK_LEN_MAX);
        assert!(!pool.wants_thread());

        std::thread::scope(|scope| {
            scope.spawn(|| pool.run());
            while ready_bytes(&pool) < pool.ready_bytes_max {
                // Once it has put all away because nobody asked, it has to be asked again.
                if ready_bytes(&pool) == 0 {
                    pool.take(CHUNK_LEN_MAX);
                }
                std::thread::yield_now();
            }
            pool.close();
        });
        assert_eq!(ready_bytes(&pool), 0);
    }
}
