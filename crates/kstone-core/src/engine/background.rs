//! Background work: which flush or compaction comes next, and how threads are woken for it.
//!
//! One step is one flush or one compaction. Threads take steps until none is due, then sleep until
//! a writer kicks them. Without threads (`Env::threads` = `None`), writers take the steps
//! themselves, so that a run depends on nothing but its calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::engine::Inner;
use crate::entry::Seq;
use crate::env::JoinHandle;
use crate::error::{Error, Result};
use crate::key::STRIPES;
use crate::sst::JoinRequest;
use crate::stripes::StripeSet;
use crate::sync::{Arc, Condvar, Mutex};
use crate::tree::picker;

/// How long a stripe whose compaction failed is left alone. Shorter: a damaged file costs more of
/// the disk; longer: a disk that has room again is noticed later.
const RETRY_MS: u64 = 1000;
/// What nobody waits for is left alone for twice as long after each failure, up to so many times: seventeen
/// minutes. A damaged file stays damaged, and a database at rest has nothing else to do than to try.
const DOUBLINGS_MAX: u32 = 10;
/// A thread that has had nothing to do for so long looks again; if nobody has written meanwhile either, the
/// database is at rest. Shorter: a writer's pauses are taken for its end; longer: who reads what was just
/// loaded waits for it to be merged.
const REST: Duration = Duration::from_secs(1);
/// After so long without a commit, disk that is held for the next ones is given back. Shorter: who writes by the
/// minute has files of the log made anew each time.
const LONG_REST: Duration = Duration::from_secs(60);

/// The state of the background work.
#[derive(Debug, Default)]
pub(crate) struct Background {
    state: Mutex<State>,
    wake: Condvar,
    /// The threads were asked to look for work, and none has begun to: what keeps every commit of
    /// a busy writer from ringing again.
    kicked: AtomicBool,
    closed: AtomicBool,
    /// Stripes with too many L0 files: writers to them wait.
    stopped: SharedStripeSet,
    /// Stripes to flush whatever their size (`stripe_records_max`).
    flush_requested: SharedStripeSet,
    /// Held by the one flush that may run at a time, which keeps a stripe's flushes in order.
    pub(crate) flushing: Mutex<()>,
    /// A thread flushes, and will look afterwards whether more is due.
    flush_runs: AtomicBool,
    /// A table was dropped since the threads were last told.
    pub(crate) table_dropped: AtomicBool,
    /// The last commit when nobody had written for a while, or somebody began to wait for rest: for as
    /// long as it is the last, the database is at rest.
    rest_seq: AtomicU64,
    compactions_running: AtomicUsize,
    steps_running: AtomicUsize,
    steps_begun: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    failures: u64,
    last_failure: Option<Error>,
    /// Stripes whose compaction failed. They are left alone for a while, so that one damaged file does not
    /// keep all other stripes waiting.
    failed_stripes: BTreeMap<u8, Failed>,
    threads: Vec<JoinHandle>,
}

/// A compaction that failed, each time it was tried.
#[derive(Debug)]
struct Failed {
    error: Error,
    tries: u32,
    /// When it was last tried, in milliseconds of the stopwatch.
    tried_ms: u64,
}

/// A set of stripes that threads share.
#[derive(Debug, Default)]
struct SharedStripeSet {
    words: [AtomicU64; 4],
    /// Whether it may hold anything: what nearly every look needs.
    any: AtomicBool,
}

impl SharedStripeSet {
    fn load(&self) -> Option<StripeSet> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let words: [u64; 4] = std::array::from_fn(|i| self.words[i].load(Ordering::Acquire));
        let all = (0..=255u8).filter(|s| words[usize::from(s >> 6)] & (1 << (s & 63)) != 0);
        Some(all.collect()).filter(|set: &StripeSet| !set.is_empty())
    }

    fn set(&self, stripe: u8, on: bool) {
        let (word, bit) = (&self.words[usize::from(stripe >> 6)], 1 << (stripe & 63));
        if on {
            word.fetch_or(bit, Ordering::AcqRel);
            self.any.store(true, Ordering::Release);
        } else if self.any.load(Ordering::Acquire) {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }
}

impl Background {
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Wakes the threads.
    pub(crate) fn kick(&self) {
        if !self.kicked.swap(true, Ordering::AcqRel) {
            // Under the lock, so that it does not fall between a thread's last look and its sleep.
            let _state = self.state.lock();
            self.wake.notify_all();
        }
    }

    pub(crate) fn failures(&self) -> u64 {
        self.state.lock().failures
    }

    /// What a writer to `stripes` waits for in vain: a failure after `failures` of them, or that of
    /// the compaction that one of its stripes needs.
    pub(crate) fn failed_since(&self, failures: u64, stripes: &StripeSet) -> Option<Error> {
        let state = self.state.lock();
        if state.failures > failures {
            return state.last_failure.clone();
        }
        let stopped = self.stopped.load()?;
        let waits_for = |stripe: &u8| stopped.contains(*stripe) && stripes.contains(*stripe);
        state
            .failed_stripes
            .iter()
            .find(|(stripe, _)| waits_for(stripe))
            .map(|(_, f)| f.error.clone())
    }

    /// Waits for a step to end, or a moment.
    pub(crate) fn wait_for_step(&self) {
        let state = self.state.lock();
        drop(self.wake.wait_timeout(state, Duration::from_millis(5)));
    }

    pub(crate) fn last_failure(&self) -> Option<Error> {
        let state = self.state.lock();
        let of_stripe = state.failed_stripes.values().next().map(|failed| failed.error.clone());
        state.last_failure.clone().or(of_stripe)
    }

    pub(crate) fn stopped_stripes(&self) -> Option<StripeSet> {
        self.stopped.load()
    }

    pub(crate) fn set_stopped(&self, stripe: u8, stopped: bool) {
        self.stopped.set(stripe, stopped);
    }

    pub(crate) fn request_flush(&self, stripe: u8) {
        self.flush_requested.set(stripe, true);
    }

    pub(crate) fn flush_done(&self, stripe: u8) {
        self.flush_requested.set(stripe, false);
    }

    pub(crate) fn note_failure(&self, error: Error) {
        let mut state = self.state.lock();
        state.failures += 1;
        state.last_failure = Some(error);
    }

    /// A thread that ends when the background is closed.
    pub(crate) fn add_thread(&self, thread: JoinHandle) {
        self.state.lock().threads.push(thread);
    }

    fn note_success(&self) {
        self.state.lock().last_failure = None;
    }
}

/// Measures since when nothing was written, as one thread has seen it, however often that thread is woken
/// meanwhile for other reasons.
struct QuietTimer {
    /// The last commit,
    seq: Seq,
    /// and when it was first seen to be the last.
    since: Duration,
}

impl QuietTimer {
    /// Looks again; answers the last commit if nothing was written for long enough.
    fn look(&mut self, seq: Seq, now: Duration) -> Option<Seq> {
        if seq != self.seq {
            *self = QuietTimer { seq, since: now };
        }
        (now.saturating_sub(self.since) >= REST).then_some(seq)
    }

    /// Whether nothing was written for so long that it is more than a pause.
    fn is_long(&self, now: Duration) -> bool {
        now.saturating_sub(self.since) >= LONG_REST
    }
}

impl Inner {
    pub(crate) fn start_threads(self: &Arc<Self>) -> Result<()> {
        let Some(threads) = &self.env.threads else { return Ok(()) };
        let failed = |error| Error::io("start a background thread for", &self.dir, error);
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| -> Result<()> {
            let handle = threads.spawn(name, work).map_err(failed)?;
            self.background.state.lock().threads.push(handle);
            Ok(())
        };
        let weak = Arc::downgrade(self);
        self.cache.join_requests().serve(move || {
            let inner = weak.upgrade().filter(|inner| !inner.background.is_closed());
            inner.as_ref().inspect(|inner| inner.background.kick()).is_some()
        });
        let inner = Arc::clone(self);
        start("kstone-log", Box::new(move || inner.log.run()))?;
        for n in 0..self.options.background_threads {
            let inner = Arc::clone(self);
            start(&format!("kstone-work-{n}"), Box::new(move || inner.work()))?;
        }
        Ok(())
    }

    /// Starts the thread that has memory ready for writers. They do without if it cannot be had.
    fn start_chunk_thread(&self) {
        let Some(threads) = &self.env.threads else { return };
        let chunk_pool = Arc::clone(&self.chunk_pool);
        if let Ok(handle) = threads.spawn("kstone-memory", Box::new(move || chunk_pool.run())) {
            self.background.add_thread(handle);
        }
    }

    /// Flushes, syncs and ends the threads. What fails here is no loss: the log has it, or the
    /// caller was told.
    pub(crate) fn close(&self) {
        if self.background.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.log.poisoned().is_none() {
            let _ = self.flush_all();
            let _ = self.note_clock();
        }
        self.log.shutdown();
        self.admission.wake();
        self.background.kick();
        self.stop_applier();
        self.chunk_pool.close();
        let threads = std::mem::take(&mut self.background.state.lock().threads);
        for thread in threads {
            thread.join();
        }
        let _ = self.log.close();
    }

    /// The loop of a background thread.
    fn work(&self) {
        let background = &self.background;
        let mut quiet = QuietTimer { seq: self.log.visible(), since: self.clock.monotonic() };
        while !background.is_closed() {
            background.kicked.swap(false, Ordering::AcqRel);
            // One at a time: a flush that somebody waits for comes after it.
            let has_joined = self.join_wanted();
            match self.background_step() {
                Ok(true) => continue,
                Ok(false) if has_joined => continue,
                Ok(false) => {}
                Err(Error::Closed) => break,
                Err(error) => {
                    background.note_failure(error);
                    self.admission.wake();
                }
            }
            quiet.look(self.log.visible(), self.clock.monotonic());
            let state = background.state.lock();
            if !background.kicked.load(Ordering::Acquire) && !background.is_closed() {
                // Every second, also without a kick: a full disk may have room again.
                drop(background.wake.wait_timeout(state, REST));
                if let Some(seq) = quiet.look(self.log.visible(), self.clock.monotonic()) {
                    self.rest_since(seq);
                }
                if quiet.is_long(self.clock.monotonic()) {
                    // What cannot be removed is tried again in a second.
                    let _ = self.log.keep_few_idle();
                }
            }
        }
    }

    /// Joins what a get has found worth it; answers whether there was such a wish. A file that is gone meanwhile
    /// needs it no more.
    fn join_wanted(&self) -> bool {
        self.cache.join_requests().run_next(|JoinRequest { stripe, file_id, what }| {
            let levels = Arc::clone(&self.stripe(stripe).version().levels);
            if let Some(file) = levels.files().find(|file| file.meta().file_id == file_id) {
                file.reader.join(what);
            }
        })
    }

    /// Called by a writer after its commit: tells the threads, or does their work.
    pub(crate) fn after_commit(&self, stripes: &StripeSet) -> Result<()> {
        if let Some(max) = self.options.stripe_records_max {
            for stripe in stripes.iter() {
                if self.stripe(stripe).version().active.len() >= max {
                    self.background.request_flush(stripe);
                }
            }
        }
        if self.chunk_pool.wants_thread() {
            self.start_chunk_thread();
        }
        let dropped = self.background.table_dropped.swap(false, Ordering::AcqRel);
        if !self.flush_is_due() && !dropped {
            return Ok(());
        }
        if self.env.threads.is_some() {
            // Memory stays short until the flush is done. If every commit meanwhile called for one
            // more, another thread would wake thousands of times, look at all stripes, find the
            // flush under way and go back to sleep; on the cores that writers want.
            if dropped || !self.background.flush_runs.load(Ordering::SeqCst) {
                self.background.kick();
            }
            return Ok(());
        }
        // The commit has succeeded; what fails now is noted, and met again by the next writer
        // that needs the room.
        let _ = self.run_inline();
        Ok(())
    }

    /// Without threads: does all that is due.
    pub(crate) fn run_inline(&self) -> Result<()> {
        if self.env.threads.is_some() {
            self.background.kick();
            return Ok(());
        }
        while self.background_step()? {}
        Ok(())
    }

    /// Marks the database as at rest, unless there was a commit after this one.
    fn rest_since(&self, seq: Seq) {
        // The thread that slept longest may come last, with an older number.
        self.background.rest_seq.fetch_max(seq, Ordering::AcqRel);
    }

    /// Whether nothing was written for a while: what was left until then is due.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.background.rest_seq.load(Ordering::Acquire) == self.log.visible()
    }

    pub(crate) fn wait_idle(&self) -> Result<()> {
        self.make_all_visible();
        self.rest_since(self.log.visible());
        self.run_inline()?;
        if self.env.threads.is_none() {
            return Ok(());
        }
        loop {
            self.check_writable()?;
            let steps_begun = || self.background.steps_begun.load(Ordering::Acquire);
            let begun_before = steps_begun();
            let busy = self.background.steps_running.load(Ordering::Acquire) > 0;
            // A log that is long because of one large commit stays long: nothing can be flushed.
            let flush_is_due = self.flush_is_due() && !self.flush_victims().is_empty();
            if !busy
                && !flush_is_due
                && self.most_due_stripe().is_none()
                && !self.has_merges_for_readers()
                // What a step has begun with is not due any more, and not done either.
                && steps_begun() == begun_before
            {
                return Ok(());
            }
            if let Some(error) = self.background.last_failure() {
                return Err(error);
            }
            if !busy {
                // Who was called may have looked a moment too early.
                self.background.kick();
            }
            self.background.wait_for_step();
        }
    }

    /// Does one piece of work, if any is due; answers whether it did.
    pub(crate) fn background_step(&self) -> Result<bool> {
        self.background.steps_running.fetch_add(1, Ordering::AcqRel);
        self.background.steps_begun.fetch_add(1, Ordering::AcqRel);
        let result = self.take_step();
        self.background.steps_running.fetch_sub(1, Ordering::AcqRel);
        if let Ok(true) = result {
            self.background.note_success();
            self.background.wake.notify_all();
        }
        result
    }

    fn take_step(&self) -> Result<bool> {
        if self.flush_is_due() {
            let victims = self.flush_victims();
            if !victims.is_empty()
                && let Some(flushing) = self.background.flushing.try_lock()
            {
                let _runs = FlushRuns::begin(&self.background.flush_runs);
                self.flush_stripes(&victims, &flushing)?;
                return Ok(true);
            }
        }
        self.compact_step()
    }

    /// Compacts the stripe that needs it most.
    fn compact_step(&self) -> Result<bool> {
        // One thread stays free for the flush that writers may be waiting for.
        let running = &self.background.compactions_running;
        let most = self.options.background_threads.saturating_sub(1).max(1);
        if running.fetch_add(1, Ordering::AcqRel) >= most {
            running.fetch_sub(1, Ordering::AcqRel);
            return Ok(false);
        }
        let result = match self.most_due_stripe() {
            Some(stripe) => self.compact_or_put_off(stripe),
            None => self
                .reclaim_step()
                .and_then(|did| Ok(did || self.settle_step()? || self.compact_for_readers()?)),
        };
        running.fetch_sub(1, Ordering::AcqRel);
        result
    }

    /// Compacts a stripe, or puts it off.
    fn compact_or_put_off(&self, stripe: u8) -> Result<bool> {
        self.put_off_if_failed(stripe, self.compact_due(stripe))
    }

    /// With threads, a failure puts the stripe off for a while and lets the others go on; without,
    /// the caller is to hear of it.
    pub(crate) fn put_off_if_failed(&self, stripe: u8, result: Result<bool>) -> Result<bool> {
        let state = &self.background.state;
        match result {
            Ok(_) => {
                state.lock().failed_stripes.remove(&stripe);
                result
            }
            Err(error) if self.ends_work(&error) => Err(error),
            Err(error) => {
                let tried_ms = self.clock.monotonic().as_millis() as u64;
                let mut state = state.lock();
                let tries = state.failed_stripes.get(&stripe).map_or(0, |failed| failed.tries);
                let failed = Failed { error, tries: tries.saturating_add(1), tried_ms };
                state.failed_stripes.insert(stripe, failed);
                drop(state);
                self.admission.wake();
                Ok(true)
            }
        }
    }

    /// Whether a failure is not one stripe's: the end of the database, or one that the caller who runs
    /// the background is to hear of.
    pub(crate) fn ends_work(&self, error: &Error) -> bool {
        matches!(error, Error::Closed)
            || self.env.threads.is_none()
            || self.log.poisoned().is_some()
    }

    /// Stripes whose compaction failed a moment ago.
    pub(crate) fn put_off_stripes(&self) -> StripeSet {
        self.put_off(|_| RETRY_MS)
    }

    /// Stripes for which nobody waits, and whose compaction failed; the more often, the longer ago that may
    /// have been.
    pub(crate) fn put_off_stripes_at_rest(&self) -> StripeSet {
        self.put_off(|failed| RETRY_MS << failed.tries.saturating_sub(1).min(DOUBLINGS_MAX))
    }

    fn put_off(&self, for_ms: impl Fn(&Failed) -> u64) -> StripeSet {
        let now_ms = self.clock.monotonic().as_millis() as u64;
        let state = self.background.state.lock();
        let waits = |failed: &Failed| now_ms < failed.tried_ms + for_ms(failed);
        let stripes = state.failed_stripes.iter().filter(|(_, failed)| waits(failed));
        stripes.map(|(&stripe, _)| stripe).collect()
    }

    fn most_due_stripe(&self) -> Option<u8> {
        let tuning = &self.options.tuning;
        let put_off = self.put_off_stripes();
        (0..STRIPES)
            .filter(|&s| !put_off.contains(s as u8))
            .filter(|&s| !self.stripe(s as u8).compacting.load(Ordering::Acquire))
            .map(|s| (picker::score(&self.stripe(s as u8).version().levels, tuning), s as u8))
            .filter(|&(score, _)| score >= 1.0)
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
            .map(|(_, stripe)| stripe)
    }

    fn flush_is_due(&self) -> bool {
        self.memory_is_short()
            || self.background.flush_requested.any.load(Ordering::Acquire)
            || self.log.live_bytes() > self.limits.log_bytes_max
    }

    /// Whether memtables have reached the usual mark, or a writer waits for what they hold.
    fn memory_is_short(&self) -> bool {
        let used = self.admission.used_bytes();
        used >= self.limits.flush_at_bytes
            || (self.admission.is_waited_for() && used > self.limits.write_buffer_bytes / 4)
    }

    /// Which stripes to flush: those asked for or left over from a failed flush; when memory is
    /// short, the largest; when the log is long, those that pin it.
    fn flush_victims(&self) -> StripeSet {
        let mut victims = self.background.flush_requested.load().unwrap_or_default();
        if victims.is_empty() {
            self.background.flush_requested.any.store(false, Ordering::Release);
            // A request may have come between the load and the store.
            victims = self.background.flush_requested.reload();
        }
        let mut sizes = Vec::with_capacity(STRIPES);
        for stripe in 0..=255u8 {
            let version = self.stripe(stripe).version();
            if !version.frozen.is_empty() {
                victims.insert(stripe);
            }
            if let Some(min_seq) = version.unflushed_min_seq() {
                sizes.push((version.memory_bytes(), min_seq, stripe));
            }
        }
        let used: usize = sizes.iter().map(|&(bytes, ..)| bytes).sum();
        if self.memory_is_short() {
            sizes.sort_by(|a, b| b.0.cmp(&a.0).then(a.2.cmp(&b.2)));
            let mut taken = 0;
            for &(bytes, _, stripe) in &sizes {
                // A quarter at a time: enough files to share one sync, and memory comes back
                // before writers have filled the rest.
                if taken >= used / 4 {
                    break;
                }
                victims.insert(stripe);
                taken += bytes;
            }
        }
        if self.log.live_bytes() > self.limits.log_bytes_max {
            let oldest = sizes.iter().map(|&(_, seq, _)| seq).min().unwrap_or(0);
            let newest = self.log.visible().max(oldest);
            let horizon = oldest + (newest - oldest) / 2;
            victims.extend_with(
                &sizes.iter().filter(|(_, seq, _)| *seq <= horizon).map(|&(.., s)| s).collect(),
            );
        }
        victims
    }
}

impl SharedStripeSet {
    /// Looks again, and remembers if there is something after all.
    fn reload(&self) -> StripeSet {
        self.any.store(true, Ordering::SeqCst);
        if let Some(set) = self.load() {
            return set;
        }
        self.any.store(false, Ordering::SeqCst);
        // A request may have come between that look and the store.
        if self.words.iter().any(|word| word.load(Ordering::SeqCst) != 0) {
            self.any.store(true, Ordering::SeqCst);
        }
        self.load().unwrap_or_default()
    }
}

/// Says that a thread flushes, for as long as it does, however that ends.
struct FlushRuns<'a>(&'a AtomicBool);

impl<'a> FlushRuns<'a> {
    fn begin(runs: &'a AtomicBool) -> Self {
        runs.store(true, Ordering::SeqCst);
        FlushRuns(runs)
    }
}

impl Drop for FlushRuns<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Env, ManualClock, OsThreads, Threads};
    use crate::{Durability, Engine, Key, Options, TableId, WriteBatch};

    /// Threads that never get a processor, so that what they are told stays to be seen.
    #[derive(Debug)]
    struct NeverRun;

    impl Threads for NeverRun {
        fn spawn(&self, _: &str, _: Box<dyn FnOnce() + Send>) -> std::io::Result<JoinHandle> {
            Ok(JoinHandle::new(|| {}))
        }
    }

    /// The system's threads, and what they were called.
    #[derive(Debug, Default)]
    struct Named(crate::sync::Mutex<Vec<String>>);

    impl Threads for Named {
        fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> std::io::Result<JoinHandle> {
            self.0.lock().push(name.to_owned());
            OsThreads.spawn(name, work)
        }
    }

    /// It ends with the database, too: or this would never end.
    #[test]
    fn a_thread_for_memory_is_started_once_by_who_writes_much() {
        let named = Arc::new(Named::default());
        let env = Env { threads: Some(named.clone()), ..Env::memory() };
        let engine = Engine::open_with(env, "memory", Options::default()).unwrap();
        let count = || named.0.lock().iter().filter(|name| *name == "kstone-memory").count();
        let write = |nth: usize| {
            let mut batch = WriteBatch::new();
            batch.put(TableId::DEFAULT, &Key::new("one"), &[nth as u8; 1024]).unwrap();
            engine.write(&batch, Durability::Os).unwrap().wait().unwrap();
        };
        write(0);
        assert_eq!(count(), 0);
        (0..8 << 10).for_each(write);
        assert_eq!(count(), 1);
        drop(engine);
    }

    #[test]
    fn a_merge_that_nobody_waits_for_is_tried_less_often_each_time_it_fails() {
        let clock = Arc::new(ManualClock::at(0));
        let threads: Arc<dyn Threads> = Arc::new(NeverRun);
        let env = Env { threads: Some(threads), clock: clock.clone(), ..Env::memory() };
        let engine = Engine::open_with(env, "memory", Options::default()).unwrap();
        let inner = engine.inner();
        let fail = || inner.put_off_if_failed(3, Err(Error::invalid("a test"))).unwrap();
        let is_put_off = || inner.put_off_stripes().contains(3);
        let is_put_off_at_rest = || inner.put_off_stripes_at_rest().contains(3);
        for tries in 0..14 {
            fail();
            clock.advance(RETRY_MS - 1);
            assert!(is_put_off() && is_put_off_at_rest());
            clock.advance(1);
            assert!(!is_put_off(), "who waits for it is not kept waiting longer");
            let longer_ms = (RETRY_MS << tries.min(10)) - RETRY_MS;
            if longer_ms > 0 {
                clock.advance(longer_ms - 1);
                assert!(is_put_off_at_rest());
                clock.advance(1);
            }
            assert!(!is_put_off_at_rest());
        }
        inner.put_off_if_failed(3, Ok(true)).unwrap();
        fail();
        clock.advance(RETRY_MS);
        assert!(!is_put_off_at_rest(), "what has succeeded begins anew");
    }

    #[test]
    fn a_stripe_that_was_merged_for_readers_has_failed_no_more() {
        let clock = Arc::new(ManualClock::at(0));
        let threads: Arc<dyn Threads> = Arc::new(NeverRun);
        let env = Env { threads: Some(threads), clock: clock.clone(), ..Env::memory() };
        let engine = Engine::open_with(env, "memory", Options::default()).unwrap();
        let (inner, key) = (engine.inner(), Key::new("a"));
        for _ in 0..2 {
            let mut batch = WriteBatch::new();
            batch.put(TableId::DEFAULT, &key, b"1").unwrap();
            drop(engine.write(&batch, Durability::Os).unwrap());
            engine.flush().unwrap();
        }
        let failed = Err(Error::invalid("a test"));
        inner.put_off_if_failed(key.stripe(), failed).unwrap();
        inner.rest_since(inner.log.visible());
        assert!(!inner.background_step().unwrap(), "it is put off");
        assert!(inner.background.last_failure().is_some());
        clock.advance(RETRY_MS);
        assert!(inner.background_step().unwrap());
        assert!(inner.background.last_failure().is_none());
    }

    #[test]
    fn it_is_quiet_when_nobody_has_written_for_long_enough_however_often_one_looks() {
        let ms = Duration::from_millis;
        let mut quiet = QuietTimer { seq: 5, since: ms(0) };
        let looks =
            [(5, 400), (5, 900), (6, 999), (6, 1500), (6, 1998), (6, 1999), (6, 2100), (7, 2200)];
        let seen = looks.map(|(seq, now)| quiet.look(seq, ms(now)));
        assert_eq!(seen, [None, None, None, None, None, Some(6), Some(6), None]);
        assert!(!quiet.is_long(ms(2_199 + 60_000)));
        assert!(quiet.is_long(ms(2_200 + 60_000)), "not a pause any more");
    }

    #[test]
    fn what_gets_request_is_joined_by_a_thread_or_at_once_where_there_is_none() {
        let never_run: Arc<dyn Threads> = Arc::new(NeverRun);
        for threads in [Some(never_run), None] {
            let has_threads = threads.is_some();
            let env = Env { threads, ..Env::memory() };
            let engine = Engine::open_with(env, "memory", Options::default()).unwrap();
            let inner = engine.inner();
            let mut batch = WriteBatch::new();
            // Enough for a filter in pieces.
            let keys: Vec<Key> =
                (0..40_000).map(|n| Key::with_sk("a", format!("{n:05}"))).collect();
            for key in &keys {
                batch.put(TableId::DEFAULT, key, b"1").unwrap();
            }
            let write_and_get = || {
                drop(engine.write(&batch, Durability::Os).unwrap());
                engine.flush().unwrap();
                inner.background.kicked.store(false, Ordering::SeqCst);
                for key in &keys {
                    assert!(engine.get(TableId::DEFAULT, key).unwrap().is_some());
                }
                assert_eq!(inner.background.kicked.load(Ordering::SeqCst), has_threads);
            };
            write_and_get();
            let levels = Arc::clone(&inner.stripe(keys[0].stripe()).version().levels);
            let file = levels.files().next().unwrap();
            assert_eq!(file.reader.is_joined(), !has_threads);
            while inner.join_wanted() {}
            assert!(file.reader.is_joined());

            // What was wished for a file that is gone is of no use, and does no harm.
            write_and_get();
            engine.compact().unwrap();
            assert_eq!(inner.join_wanted(), has_threads);
            while inner.join_wanted() {}
            assert!(engine.get(TableId::DEFAULT, &keys[0]).unwrap().is_some());
        }
    }

    #[test]
    fn rest_does_not_go_back_to_an_older_commit() {
        let env = Env { threads: Some(Arc::new(NeverRun)), ..Env::memory() };
        let engine = Engine::open_with(env, "memory", Options::default()).unwrap();
        let inner = engine.inner();
        let write = || {
            let mut batch = WriteBatch::new();
            batch.put(TableId::DEFAULT, &Key::new("a"), b"1").unwrap();
            drop(engine.write(&batch, Durability::Os).unwrap());
            inner.log.visible()
        };
        let (first, second) = (write(), write());
        assert!(!inner.is_at_rest());
        inner.rest_since(second);
        inner.rest_since(first);
        assert!(inner.is_at_rest());
        write();
        assert!(!inner.is_at_rest());
    }

    #[test]
    fn a_commit_calls_for_no_flush_while_one_is_under_way() {
        let env = Env { threads: Some(Arc::new(NeverRun)), ..Env::memory() };
        let engine = Engine::open_with(env, "memory", Options::default()).unwrap();
        let background = &engine.inner().background;
        let is_called_by_a_commit = || {
            background.kicked.store(false, Ordering::SeqCst);
            let mut batch = WriteBatch::new();
            batch.put(TableId::DEFAULT, &Key::new("a"), b"1").unwrap();
            drop(engine.write(&batch, Durability::Os).unwrap());
            background.kicked.load(Ordering::SeqCst)
        };
        assert!(!is_called_by_a_commit(), "no flush is due");
        background.request_flush(7);
        assert!(is_called_by_a_commit());
        background.flush_runs.store(true, Ordering::SeqCst);
        assert!(!is_called_by_a_commit(), "the flushing thread will look again");
        background.flush_runs.store(false, Ordering::SeqCst);
        assert!(is_called_by_a_commit());
    }
}
