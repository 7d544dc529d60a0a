//! Deferred inserts: commits that are in the log and not yet in the memtables.
//!
//! Inserting into a memtable takes longer than everything else about a small commit. A writer that
//! does not read what it wrote ([`Engine::write_later`](crate::Engine::write_later)) leaves that to
//! a thread, which does it some dozens of commits at a time, or to the first reader that needs it. No
//! caller can tell the difference:
//! - A thread that reads, or waits for a commit to become visible, first inserts all that waits here, and
//!   waits until the last of it is visible: others may be inserting what comes before it.
//! - A thread that locks a stripe does the same once it holds the lock. So a stripe's records are inserted
//!   in the order of their numbers: a flush that has one of them has all before it, and the newest
//!   version of a key is the one found first.
//! - They are inserted in the order in which they were appended. Each becomes visible as it would
//!   have been otherwise, and until then the log is kept (`Inner::log_floor`).
//!
//! Locks: `applying` comes after the stripe locks and before those of the log; `waiting` is taken
//! under it, or alone, for a moment.

use std::time::Duration;

use crate::engine::Inner;
use crate::engine::write::Prefetcher;
use crate::entry::Seq;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex};

/// With so many bytes waiting, the writer inserts them itself: the thread does not keep up.
const WAITING_BYTES_MAX: usize = 256 << 10;
/// How often the thread looks while there are such commits.
const TICK: Duration = Duration::from_millis(1);
/// After so many ticks without any, the thread sleeps until it is called.
const IDLE_TICKS_MAX: u32 = 50;

/// The commits that are not inserted yet, and the state of the thread that inserts them.
#[derive(Debug, Default)]
pub(crate) struct DeferredInserts {
    waiting: Mutex<Commits>,
    /// How many commits are not in the memtables yet: those that wait, and those that are being
    /// inserted. No lock is taken when there are none.
    count: AtomicUsize,
    /// The number of the last of them.
    last_seq: AtomicU64,
    /// Held by the thread that inserts.
    applying: Mutex<Commits>,
    /// How many wait for the visible watermark.
    watchers: AtomicUsize,
    wake: Condvar,
    has_thread: AtomicBool,
}

/// Commits in the order of their numbers.
#[derive(Debug, Default)]
struct Commits {
    ops: Vec<u8>,
    /// First and last number of each, and where its operations end.
    commits: Vec<(Seq, Seq, usize)>,
    /// The thread sleeps until it is called.
    thread_sleeps: bool,
}

impl Inner {
    /// Takes over a commit that was just appended. The caller holds its stripes' locks.
    pub(crate) fn defer_inserts(self: &Arc<Self>, ops: &[u8], (first, last): (Seq, Seq)) {
        let deferred = &self.deferred;
        let mut waiting = deferred.waiting.lock();
        waiting.ops.extend_from_slice(ops);
        let end = waiting.ops.len();
        waiting.commits.push((first, last, end));
        deferred.count.fetch_add(1, Ordering::SeqCst);
        deferred.last_seq.fetch_max(last, Ordering::SeqCst);
        let wake = std::mem::take(&mut waiting.thread_sleeps);
        drop(waiting);
        if wake {
            deferred.wake.notify_one();
        }
        if end > WAITING_BYTES_MAX || deferred.watchers.load(Ordering::SeqCst) > 0 {
            self.insert_deferred();
        } else if !deferred.has_thread.load(Ordering::Relaxed) {
            self.start_applier();
        }
    }

    /// What a reader does first: when this returns, whatever was committed before it was called is
    /// visible.
    #[inline]
    pub(crate) fn make_all_visible(&self) {
        let last_seq = self.deferred.last_seq.load(Ordering::SeqCst);
        if last_seq > self.log.visible() {
            // If one before it never comes, the log is poisoned, and this one never comes either.
            let _ = self.wait_visible(last_seq);
        }
    }

    /// Inserts everything that waits. When this returns, whatever was committed before it was called
    /// is in the memtables.
    #[inline]
    pub(crate) fn insert_deferred(&self) {
        if self.deferred.count.load(Ordering::SeqCst) > 0 {
            self.insert_waiting();
        }
    }

    fn insert_waiting(&self) {
        let deferred = &self.deferred;
        let mut batch = deferred.applying.lock();
        {
            let mut waiting = deferred.waiting.lock();
            let Commits { ops, commits, .. } = &mut *waiting;
            std::mem::swap(ops, &mut batch.ops);
            std::mem::swap(commits, &mut batch.commits);
        }
        let mut start = 0;
        let first_seq = batch.commits.first().map_or(0, |(first, ..)| *first);
        let mut prefetcher = Prefetcher::of(self, &batch.ops, first_seq);
        for &(first, last, end) in &batch.commits {
            // Dropped by a panic it poisons the log, as it would have in the writer's hands.
            let ticket = self.log.ticket(first, last);
            let ops = batch.ops.get(start..end).unwrap_or_default();
            if self.apply_behind(&mut prefetcher, ops, first).is_err() {
                break;
            }
            self.log.applied(ticket);
            start = end;
        }
        deferred.count.fetch_sub(batch.commits.len(), Ordering::SeqCst);
        batch.ops.clear();
        batch.commits.clear();
    }

    /// Returns when `seq` is visible, as [`Log::wait_visible`](crate::commit::Log::wait_visible),
    /// and does what has to be done for that.
    pub(crate) fn wait_visible(&self, seq: Seq) -> crate::Result<()> {
        if self.log.visible() >= seq {
            return Ok(());
        }
        // Either a thread that adds a commit from here on sees that somebody waits, or this sees it.
        self.deferred.watchers.fetch_add(1, Ordering::SeqCst);
        self.insert_deferred();
        let visible = self.log.wait_visible(seq);
        self.deferred.watchers.fetch_sub(1, Ordering::SeqCst);
        visible
    }

    /// The highest number that a reader which begins now will see.
    pub(crate) fn last_applied(&self) -> Seq {
        self.log.visible().max(self.deferred.last_seq.load(Ordering::SeqCst))
    }

    fn start_applier(self: &Arc<Self>) {
        let Some(threads) = &self.env.threads else { return };
        if self.deferred.has_thread.swap(true, Ordering::SeqCst) {
            return;
        }
        let inner = Arc::clone(self);
        // Without the thread, the first caller who needs them inserts them; so this may fail.
        if let Ok(handle) = threads.spawn("kstone-apply", Box::new(move || inner.run_applier())) {
            self.background.add_thread(handle);
        }
    }

    fn run_applier(&self) {
        let mut idle_ticks = 0;
        while !self.background.is_closed() {
            let is_idle = self.deferred.count.load(Ordering::SeqCst) == 0;
            self.insert_deferred();
            idle_ticks = if is_idle { idle_ticks + 1 } else { 0 };
            let mut waiting = self.deferred.waiting.lock();
            if idle_ticks <= IDLE_TICKS_MAX {
                drop(self.deferred.wake.wait_timeout(waiting, TICK));
            } else if waiting.commits.is_empty() && !self.background.is_closed() {
                waiting.thread_sleeps = true;
                drop(self.deferred.wake.wait(waiting));
                idle_ticks = 0;
            }
        }
    }

    /// Ends the thread, once the background is closed.
    pub(crate) fn stop_applier(&self) {
        let _waiting = self.deferred.waiting.lock();
        self.deferred.wake.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use crate::env::Env;
    use crate::{Durability, Engine, Key, Options, TableId, WriteBatch};

    fn put(key: &str, value: &str) -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.put(TableId::DEFAULT, &Key::new(key.to_owned()), value.as_bytes()).unwrap();
        batch
    }

    fn get(engine: &Engine, key: &str) -> Option<String> {
        let found = engine.get(TableId::DEFAULT, &Key::new(key.to_owned())).unwrap();
        found.map(|record| String::from_utf8(record.value.to_vec()).unwrap())
    }

    /// Without threads, so that nothing is inserted before somebody asks for it.
    fn engine() -> Engine {
        let env = Env { threads: None, ..Env::memory() };
        Engine::open_with(env, "memory", Options::default()).unwrap()
    }

    fn waiting(engine: &Engine) -> usize {
        engine.inner().deferred.count.load(std::sync::atomic::Ordering::SeqCst)
    }

    #[test]
    fn a_reader_sees_what_was_left_for_later() {
        let engine = engine();
        for n in 0..10 {
            drop(engine.write_later(&put("a", &n.to_string()), Durability::Os).unwrap());
        }
        assert_eq!(waiting(&engine), 10);
        assert_eq!(engine.applied_seq(), 10);
        assert_eq!(get(&engine, "a").as_deref(), Some("9"));
        assert_eq!(waiting(&engine), 0);
        drop(engine.write_later(&put("b", "1"), Durability::Os).unwrap());
        assert!(engine.snapshot().get(TableId::DEFAULT, &Key::new("b")).unwrap().is_some());
        drop(engine.write_later(&put("c", "1"), Durability::Os).unwrap());
        let locked = engine.lock([&Key::new("c")]).unwrap();
        assert!(locked.get(TableId::DEFAULT, &Key::new("c")).unwrap().is_some());
    }

    #[test]
    fn records_of_one_stripe_are_inserted_in_the_order_of_their_numbers() {
        let engine = engine();
        drop(engine.write_later(&put("a", "old"), Durability::Os).unwrap());
        drop(engine.write(&put("a", "new"), Durability::Os).unwrap());
        assert_eq!(waiting(&engine), 0);
        engine.flush().unwrap();
        assert_eq!(get(&engine, "a").as_deref(), Some("new"));
    }

    #[test]
    fn a_commit_to_another_stripe_becomes_visible_at_once() {
        let engine = engine();
        drop(engine.write_later(&put("a", "1"), Durability::Os).unwrap());
        assert_ne!(Key::new("a").stripe(), Key::new("b").stripe());
        drop(engine.write(&put("b", "1"), Durability::Os).unwrap());
        assert_eq!(get(&engine, "b").as_deref(), Some("1"));
        assert_eq!(get(&engine, "a").as_deref(), Some("1"));
    }

    #[test]
    fn a_flush_has_all_of_it() {
        let engine = engine();
        for n in 0..100 {
            drop(engine.write_later(&put(&format!("k{n}"), "1"), Durability::Os).unwrap());
        }
        engine.flush().unwrap();
        assert_eq!((waiting(&engine), engine.stats().total.memtable_bytes), (0, 0));
        assert!((0..100).all(|n| get(&engine, &format!("k{n}")).is_some()));
    }

    #[test]
    fn who_waits_for_rest_waits_for_it() {
        let engine = engine();
        drop(engine.write_later(&put("a", "1"), Durability::Os).unwrap());
        engine.wait_idle().unwrap();
        assert_eq!(waiting(&engine), 0);
        assert!(engine.inner().is_at_rest());
    }

    #[test]
    fn what_waits_has_a_bound() {
        let engine = engine();
        let value = "x".repeat(1000);
        let mut most = 0;
        for n in 0..2000 {
            drop(engine.write_later(&put(&format!("k{n}"), &value), Durability::Os).unwrap());
            most = most.max(waiting(&engine));
        }
        assert!((200..300).contains(&most), "{most}");
    }

    #[test]
    fn threads_that_write_and_read_see_each_other() {
        let engine = Engine::memory(Options::default()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let engine = &engine;
                scope.spawn(move || {
                    for n in 0..2000 {
                        let (key, value) = (format!("k{thread}-{}", n % 7), n.to_string());
                        let batch = put(&key, &value);
                        drop(match n % 3 {
                            0 => engine.write(&batch, Durability::Os).unwrap(),
                            _ => engine.write_later(&batch, Durability::Os).unwrap(),
                        });
                        if n % 5 == thread {
                            assert_eq!(get(engine, &key), Some(value));
                        }
                    }
                });
            }
        });
        assert_eq!(engine.applied_seq(), 8000);
        assert_eq!(engine.snapshot().seq(), 8000);
    }
}

/// Under schedules that shuttle picks: see `commit::shuttle_tests`.
#[cfg(all(test, kstone_shuttle))]
mod shuttle_tests {
    use crate::env::Env;
    use crate::{Durability, Engine, Key, Options, TableId, WriteBatch};
    use shuttle::thread;

    const ITERATIONS: usize = 100;

    /// Writes a key now or later, and reads it back.
    fn write_and_read(engine: &Engine, key: &'static str, is_later: bool) {
        let key = Key::new(key);
        for n in 0..2 {
            let mut batch = WriteBatch::new();
            batch.put(TableId::DEFAULT, &key, &[n]).unwrap();
            let written = match is_later {
                true => engine.write_later(&batch, Durability::Os),
                false => engine.write(&batch, Durability::Os),
            };
            drop(written.unwrap());
            let found = engine.get(TableId::DEFAULT, &key).unwrap();
            assert_eq!(found.map(|record| record.value.to_vec()), Some(vec![n]), "{key:?}");
        }
    }

    #[test]
    fn shuttle_a_writer_sees_what_it_left_for_later() {
        let test = || {
            let env = Env { threads: None, ..Env::memory() };
            let engine = Engine::open_with(env, "memory", Options::default()).unwrap();
            let threads: Vec<_> = [("a", true), ("b", false), ("c", true)]
                .into_iter()
                .map(|(key, is_later)| {
                    let engine = engine.clone();
                    thread::spawn(move || write_and_read(&engine, key, is_later))
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(engine.snapshot().seq(), 6);
        };
        shuttle::check_random(test, ITERATIONS);
        shuttle::check_pct(test, ITERATIONS, 3);
    }
}
