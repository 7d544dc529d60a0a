//! Back-pressure: how much memory unflushed writes hold, the writers that wait for it, and how much of
//! the budget that leaves to the block cache.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::engine::{Engine, Inner};
use crate::error::{Error, Result};
use crate::stripes::StripeSet;
use crate::sync::{Arc, Condvar, Mutex};

/// Counts memtable memory and parks writers while there is too much of it.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    used_bytes: AtomicUsize,
    /// Writers that wait for memory: then a flush is due before the usual mark.
    waiting: AtomicUsize,
    gate: Mutex<()>,
    freed: Condvar,
    pub(crate) stalls: AtomicU64,
    pub(crate) stalled_us: AtomicU64,
    pub(crate) longest_stall_us: AtomicU64,
}

impl Admission {
    /// At the start, when what was replayed from the log is in memory.
    pub(crate) fn holding(bytes: usize) -> Self {
        Admission { used_bytes: AtomicUsize::new(bytes), ..Admission::default() }
    }

    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Lets waiting writers look again.
    pub(crate) fn wake(&self) {
        let _gate = self.gate.lock();
        self.freed.notify_all();
    }
}

impl Engine {
    /// Whether a write would be let in at once: a caller that must not wait asks before it locks or
    /// writes, and does it elsewhere if not. Takes no lock.
    ///
    /// An answer is about this moment, so "yes" leaves a margin for the writes of others that come
    /// between the question and the write.
    pub fn has_room(&self) -> bool {
        let inner = self.inner();
        let limit = inner.limits.write_buffer_bytes;
        let used = inner.admission.used_bytes();
        used.saturating_add(limit / ROOM_MARGIN_PARTS) <= limit
            && inner.background.stopped_stripes().is_none()
    }

    /// Sets how work that takes long is run: waiting for room in the write buffer, and purges. The
    /// executor of a server has its other tasks done on other threads meanwhile. The first function
    /// stays: all callers in a process run on the same executor.
    pub fn run_long_work_with(&self, run: RunLongWork) {
        let _ = self.inner().run_long_work.set(run);
    }

    /// Whether writes are accepted at all.
    ///
    /// # Errors
    /// What every write would be refused with: the log failed, so that only opening the database
    /// again can tell what is on disk.
    pub fn check_writable(&self) -> Result<()> {
        self.inner().check_writable()
    }
}

/// Runs the work that it is given once, on the thread that calls it.
pub type RunLongWork = fn(&mut dyn FnMut());

/// [`Engine::has_room`] says no when less than this part of the write buffer is left. A larger part
/// would have the last writes before each flush handed over for nothing.
const ROOM_MARGIN_PARTS: usize = 32;

/// The cache is resized when unflushed writes have grown or shrunk by this part of the budget.
/// Smaller: writers evict more often; larger: more of the budget is unused.
const RESIZE_PARTS: usize = 32;

impl Inner {
    /// A memtable held so much before, and now holds so much. What it gives back when it is flushed
    /// is the sum of these: a difference that is left out would stay in the count for good.
    pub(crate) fn recount_memtables(&self, before: usize, after: usize) {
        match after.checked_sub(before) {
            Some(more) => self.grow_memtables(more),
            None => {
                self.admission.used_bytes.fetch_sub(before - after, Ordering::Relaxed);
            }
        }
    }

    /// Unflushed writes hold this much more.
    pub(crate) fn grow_memtables(&self, bytes: usize) {
        let before = self.admission.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        let part = (self.options.memory_budget_bytes / RESIZE_PARTS).max(1);
        if before / part != (before + bytes) / part {
            self.resize_cache();
        }
    }

    /// Gives memory back and wakes the threads that wait for it.
    pub(crate) fn shrink_memtables(&self, bytes: usize) {
        self.admission.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.resize_cache();
        self.admission.wake();
    }

    /// Gives the cache what unflushed writes do not hold: all of the budget but for the part that
    /// is being filled and the memory that is ready for it, and never less than what a full write
    /// buffer leaves. Asked when a part is full and after a flush, so what is ready counts from then on.
    pub(crate) fn resize_cache(&self) {
        let budget = self.options.memory_budget_bytes;
        let part = (budget / RESIZE_PARTS).max(1);
        self.cache.set_capacity(|| {
            let held = (self.admission.used_bytes() / part + 1) * part + self.chunk_pool.bytes();
            budget.saturating_sub(held).max(self.limits.cache_bytes_min) as u64
        });
    }

    /// Waits until there is room for `bytes` more, and until none of the stripes has too many
    /// files. Must be called before stripe locks are taken. Fails with what stops the background
    /// work, rather than waiting for a disk that stays full.
    pub(crate) fn admit(self: &Arc<Self>, bytes: usize, stripes: &StripeSet) -> Result<()> {
        self.check_writable()?;
        if self.has_room(bytes, stripes) {
            return Ok(());
        }
        let started = self.clock.monotonic();
        let result = self.run_long_work(|| self.wait_for_room(bytes, stripes));
        let us = self.clock.monotonic().saturating_sub(started).as_micros() as u64;
        self.admission.stalls.fetch_add(1, Ordering::Relaxed);
        self.admission.stalled_us.fetch_add(us, Ordering::Relaxed);
        self.admission.longest_stall_us.fetch_max(us, Ordering::Relaxed);
        result
    }

    /// Runs what keeps this thread busy or waiting for long.
    pub(crate) fn run_long_work<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(run) = self.run_long_work.get() else { return work() };
        let (mut work, mut result) = (Some(work), None);
        run(&mut || result = work.take().map(|work| work()));
        result.unwrap_or_else(|| Err(Error::invalid("the executor did not run the engine's work")))
    }

    fn wait_for_room(self: &Arc<Self>, bytes: usize, stripes: &StripeSet) -> Result<()> {
        let failures = self.background.failures();
        loop {
            self.check_writable()?;
            if self.has_room(bytes, stripes) {
                return Ok(());
            }
            // Who waits for a stripe with too many files must not make memory seem short: flushes
            // before their time would only add files, and smaller ones.
            let is_memory = !self.fits(bytes);
            self.admission.waiting.fetch_add(usize::from(is_memory), Ordering::AcqRel);
            let waited = self.wait_once(bytes, stripes, failures);
            self.admission.waiting.fetch_sub(usize::from(is_memory), Ordering::AcqRel);
            waited?;
        }
    }

    /// Waits until something may have changed.
    fn wait_once(self: &Arc<Self>, bytes: usize, stripes: &StripeSet, failures: u64) -> Result<()> {
        if self.env.threads.is_none() {
            return self.make_room_inline(stripes);
        }
        if let Some(error) = self.background.failed_since(failures, stripes) {
            return Err(error);
        }
        self.background.kick();
        let gate = self.admission.gate.lock();
        if !self.has_room(bytes, stripes) {
            // The timeout is for a wake-up that comes between the check and the wait of
            // another condition (a failure, the end); it is not what ends a normal wait.
            drop(self.admission.freed.wait_timeout(gate, Duration::from_millis(50)));
        }
        Ok(())
    }

    fn make_room_inline(self: &Arc<Self>, stripes: &StripeSet) -> Result<()> {
        if self.background_step()? {
            return Ok(());
        }
        // Nothing is due by the usual rules, so memory is held by what cannot be flushed.
        self.flush_all()?;
        if self.has_room(0, stripes) {
            Ok(())
        } else {
            Err(Error::invalid("no room for the write"))
        }
    }

    fn has_room(&self, bytes: usize, stripes: &StripeSet) -> bool {
        let stopped = self.background.stopped_stripes();
        self.fits(bytes) && stopped.is_none_or(|stopped| stripes.without(&stopped) == *stripes)
    }

    /// A batch larger than the whole buffer is let in when the buffer is nearly empty.
    fn fits(&self, bytes: usize) -> bool {
        let used = self.admission.used_bytes();
        let limit = self.limits.write_buffer_bytes;
        used.saturating_add(bytes) <= limit || used <= limit / 4
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::{
        Durability, Engine, KeyRef, Options, PurgeSnapshots, PurgeTarget, TableId, WriteBatch,
    };

    /// How often work was run.
    static RUNS: AtomicUsize = AtomicUsize::new(0);

    fn run_and_count(work: &mut dyn FnMut()) {
        RUNS.fetch_add(1, Ordering::Relaxed);
        work();
    }

    #[test]
    fn waiting_for_room_and_purges_are_run_as_the_executor_wants() {
        let options = Options { memory_budget_bytes: 1 << 20, ..Options::default() };
        let engine = Engine::memory(options).unwrap();
        engine.run_long_work_with(run_and_count);
        let mut batch = WriteBatch::new();
        batch.put(TableId::DEFAULT, KeyRef::new(b"k"), &[7; 4000]).unwrap();
        for _ in 0..2000 {
            drop(engine.write(&batch, Durability::Os).unwrap());
        }
        let stalls = engine.inner().admission.stalls.load(Ordering::Relaxed) as usize;
        assert!(stalls > 0);
        assert_eq!(RUNS.load(Ordering::Relaxed), stalls);
        engine.purge(&[PurgeTarget::Remains], PurgeSnapshots::End).unwrap();
        assert_eq!(RUNS.load(Ordering::Relaxed), stalls + 1);
        assert!(engine.get(TableId::DEFAULT, KeyRef::new(b"k")).unwrap().is_some());
    }

    #[test]
    fn the_cache_has_what_unflushed_writes_leave_of_the_budget() {
        let budget = 8 << 20;
        let options = Options { memory_budget_bytes: budget, ..Options::default() };
        let engine = Engine::memory(options).unwrap();
        let inner = engine.inner();
        let cache_bytes = || inner.cache.capacity_bytes() as usize;
        let at_rest = cache_bytes();
        assert!(at_rest <= budget && at_rest >= budget - budget / 16, "{at_rest}");
        let mut least = at_rest;
        for n in 0..2000u32 {
            let mut batch = WriteBatch::new();
            let key = n.to_be_bytes();
            batch.put(TableId::DEFAULT, KeyRef::new(&key), &[7; 1000]).unwrap();
            drop(engine.write(&batch, Durability::Os).unwrap());
            let held = inner.admission.used_bytes();
            assert!(cache_bytes() + held <= budget, "{held} bytes of writes beside the cache");
            least = least.min(cache_bytes());
        }
        assert!(least <= at_rest - 2_000_000, "{least}");
        engine.flush().unwrap();
        assert_eq!(cache_bytes(), at_rest);
    }

    #[test]
    fn nothing_is_held_once_everything_is_flushed() {
        let engine = Engine::memory(Options::default()).unwrap();
        let at_first = engine.inner().admission.used_bytes();
        for round in 0..3u64 {
            // To one stripe after the other, so that records wait for their places in the memtables.
            for n in 0..60_000u64 {
                let mut batch = WriteBatch::new();
                let key = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round).to_be_bytes();
                batch.put(TableId::DEFAULT, KeyRef::new(&key), &[7; 20]).unwrap();
                drop(engine.write(&batch, Durability::Os).unwrap());
            }
            assert!(engine.inner().admission.used_bytes() > at_first);
            engine.flush().unwrap();
            assert_eq!(engine.inner().admission.used_bytes(), at_first, "round {round}");
        }
    }

    #[test]
    fn there_is_room_until_the_write_buffer_is_nearly_full_or_a_stripe_is_stopped() {
        let engine = Engine::memory(Options::default()).unwrap();
        let inner = engine.inner();
        assert!(engine.has_room());
        let limit = inner.limits.write_buffer_bytes;
        inner.grow_memtables(limit);
        assert!(!engine.has_room(), "the next writer would wait");
        inner.shrink_memtables(limit);
        assert!(engine.has_room());
        inner.background.set_stopped(7, true);
        assert!(!engine.has_room(), "a writer to this stripe would wait");
        inner.background.set_stopped(7, false);
        assert!(engine.has_room());
    }
}
