//! Group commit: the write-and-sync turn, and how the threads that wait for it take turns to lead.
//!
//! There is no dedicated writer between committers and the disk: the first waiter that gets the
//! writer lock leads. It writes and syncs everything pending, wakes one thread that was not
//! covered, which starts the next turn at once, and only then the first of those it did cover, who
//! wake each other: their wake-ups, and the commits they go on to append, overlap with the next
//! sync and make up the group after it. Where it covered few, these come first, and the next turn
//! begins when all of them are awake (`waiters`). (A hand-over through a dedicated thread was rejected: it costs two more context
//! switches per sync on the path that callers wait for.)

use super::park::Thread;
use super::queue::Item;
use super::waiters::{Gathering, Level, LogProgress, Waiters, Wake};
use super::{Log, park};
use crate::entry::Seq;
use crate::error::{Error, Result};
use crate::sync::MutexGuard;
use crate::sync::atomic::Ordering;
use crate::wal::{AfterChunk, LogWriter};
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long the next turn waits for the threads that the last one covered. They need microseconds, unless
/// other programs want the processors; then it should not be much more than a few syncs.
const GATHERING_MAX: Duration = Duration::from_micros(500);

/// What the writer lock protects.
#[derive(Debug)]
pub(crate) struct Writer {
    log: LogWriter,
    /// Buffers that are written, on their way back to the queue.
    done: Vec<Vec<u8>>,
    /// The mark of a clean shutdown is written.
    marked: bool,
}

impl Writer {
    pub(crate) fn new(log: LogWriter) -> Self {
        Writer { log, done: Vec::new(), marked: false }
    }
}

impl Log {
    /// Returns when `seq` is durable, after leading a turn if no other thread does.
    pub(crate) fn wait_durable(&self, seq: Seq) -> Result<()> {
        self.wait(Level::Durable, seq)
    }

    /// Returns when `seq` is handed to the operating system.
    pub(crate) fn wait_written(&self, seq: Seq) -> Result<()> {
        self.wait(Level::Written, seq)
    }

    /// Ready when `seq` is durable. The log thread leads; without one, this call does.
    pub(crate) fn poll_durable(&self, seq: Seq, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll(Level::Durable, seq, cx)
    }

    /// Ready when `seq` is handed to the operating system.
    pub(crate) fn poll_written(&self, seq: Seq, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll(Level::Written, seq, cx)
    }

    pub(super) fn reached(&self) -> LogProgress {
        // In this order, because `durable` follows `written`.
        let durable = self.durable();
        LogProgress { written: self.written(), durable }
    }

    fn wait(&self, level: Level, seq: Seq) -> Result<()> {
        if self.reached().satisfies(level, seq) {
            return Ok(());
        }
        self.check_given_out(seq)?;
        if level == Level::Written && self.write_soon(seq) {
            return Ok(());
        }
        let me = park::current();
        let (mut registered, mut was_registered) = (false, false);
        loop {
            if self.reached().satisfies(level, seq) {
                if was_registered {
                    let next = self.with_waiters(|waiters| waiters.leave(seq, &me));
                    if let Some(next) = next {
                        next.unpark();
                    }
                }
                return Ok(());
            }
            self.check_healthy()?;
            if level == Level::Durable && !registered && self.gathers.load(Ordering::Acquire) {
                let joined = self.with_waiters(|waiters| {
                    // Who has got it may not be in the list: see `Waiters`.
                    let is_covered = self.reached().satisfies(level, seq);
                    (!is_covered).then(|| waiters.join_gathering(level, seq, &me)).flatten()
                });
                if let Some(place) = joined {
                    was_registered = true;
                    self.wait_for_gathering(place, seq, &me);
                    continue;
                }
            }
            if let Some(writer) = self.writer.try_lock() {
                if was_registered {
                    self.waiters.lock().remove_thread(seq, &me);
                    registered = false;
                }
                self.turn(writer, level, Some(seq));
            } else if registered {
                park::park();
                registered = false;
            } else {
                // Then once more around: the lock may have been released before the holder could
                // see this entry.
                let mut waiters = self.waiters.lock();
                if !self.reached().satisfies(level, seq) {
                    waiters.add_thread(level, seq, &me);
                    (registered, was_registered) = (true, true);
                }
            }
        }
    }

    /// Sleeps until a turn has covered the caller, or it is the one to lead, or too long.
    fn wait_for_gathering(&self, place: Gathering, seq: Seq, me: &Thread) {
        if place == Gathering::Other {
            return park::park();
        }
        let began = self.env.clock.monotonic();
        if park::park_timeout(GATHERING_MAX)
            || self.env.clock.monotonic().saturating_sub(began) >= GATHERING_MAX
        {
            self.with_waiters(|waiters| waiters.give_up_gathering(seq, me));
        }
    }

    /// For everything that may begin or end a gathering.
    fn with_waiters<R>(&self, change: impl FnOnce(&mut Waiters) -> R) -> R {
        let mut waiters = self.waiters.lock();
        let answer = change(&mut waiters);
        self.gathers.store(waiters.is_gathering(), Ordering::Release);
        answer
    }

    /// Waits a moment for somebody's write to end, and writes if nobody does; answers whether that
    /// was enough. A write takes microseconds, and to sleep and be woken several times that.
    fn write_soon(&self, seq: Seq) -> bool {
        let is_written = || self.reached().satisfies(Level::Written, seq);
        let mut writer = None;
        let is_over = self.writer_spin.until(|| {
            if is_written() {
                return true;
            }
            writer = self.writer.try_lock();
            writer.is_some()
        });
        if let Some(writer) = writer {
            self.turn(writer, Level::Written, Some(seq));
            return is_written();
        }
        is_over
    }

    fn poll(&self, level: Level, seq: Seq, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.reached().satisfies(level, seq) {
            return Poll::Ready(Ok(()));
        }
        if let Err(error) = self.check_healthy().and_then(|()| self.check_given_out(seq)) {
            return Poll::Ready(Err(error));
        }
        if self.has_thread.load(Ordering::SeqCst) {
            self.waiters.lock().add_future(level, seq, cx.waker());
            // A turn (or a failure, or the end of the log thread) that missed this entry was over
            // before it, so it shows now.
            if self.reached().satisfies(level, seq) {
                return Poll::Ready(Ok(()));
            }
            self.check_healthy()?;
            if self.has_thread.load(Ordering::SeqCst) {
                self.signal.raise();
                return Poll::Pending;
            }
        }
        Poll::Ready(self.wait(level, seq))
    }

    /// A number that was never given out would be waited for until the end of time.
    fn check_given_out(&self, seq: Seq) -> Result<()> {
        let last = self.appended();
        if seq <= last {
            return Ok(());
        }
        Err(Error::invalid(format!("sequence number {seq} was not given out yet, {last} was")))
    }

    /// Writes everything pending, syncs if asked to, and wakes the threads that waited for that. Nothing is
    /// done if `goal` was reached while the caller waited for the lock.
    pub(super) fn turn(&self, mut writer: MutexGuard<'_, Writer>, level: Level, goal: Option<Seq>) {
        let unwinding = PoisonOnUnwind { log: self };
        let reached = goal.is_some_and(|seq| self.reached().satisfies(level, seq));
        let outcome = if reached || self.poisoned.load(Ordering::SeqCst) {
            Ok(())
        } else {
            self.write_pending(&mut writer, level)
        };
        std::mem::forget(unwinding);
        drop(writer);
        match outcome {
            Ok(()) => self.hand_over(),
            Err(error) => self.poison(&error.to_string()),
        }
    }

    fn write_pending(&self, writer: &mut Writer, level: Level) -> Result<()> {
        if level == Level::Durable {
            // Before the queue is taken: a request that comes later finds 0 and asks again.
            self.interval_since.store(0, Ordering::SeqCst);
        }
        let batch = self.queue.lock().take(&mut writer.done);
        let clock_ms = self.env.clock.now_ms();
        let next = if level == Level::Durable { AfterChunk::Sync } else { AfterChunk::More };
        for item in batch.items {
            match item {
                Item::Chunk(mut chunk) => {
                    writer.log.write_chunk(&mut chunk.buf, chunk.last_seq, clock_ms, next)?;
                    self.counters.chunks.fetch_add(1, Relaxed);
                    self.counters.commits.fetch_add(chunk.commits, Relaxed);
                    self.counters.bytes.fetch_add(chunk.buf.len() as u64, Relaxed);
                    chunk.buf.clear();
                    writer.done.push(chunk.buf);
                }
                Item::Rotate(prepared) => {
                    writer.log.rotate(prepared)?;
                    self.counters.rotations.fetch_add(1, Relaxed);
                    // Sealing a segment synced it.
                    self.written.store(writer.log.last_seq(), Ordering::Release);
                    self.durable.store(writer.log.last_seq(), Ordering::Release);
                }
            }
        }
        debug_assert_eq!(
            batch.last_seq,
            writer.log.last_seq(),
            "all that was given out is written"
        );
        self.written.store(batch.last_seq, Ordering::Release);
        if level == Level::Durable {
            if writer.log.is_dirty() {
                let began = self.env.clock.monotonic();
                writer.log.sync()?;
                self.counters.synced(self.env.clock.monotonic().saturating_sub(began));
            }
            self.durable.store(batch.last_seq, Ordering::Release);
        } else if self.has_thread.load(Relaxed)
            && let Some(ahead) = writer.log.next_to_sync()
        {
            let is_urgent = ahead.is_urgent;
            *self.ahead.lock() = Some(ahead);
            // Else a tick finds it soon enough: to wake a thread takes longer than a commit.
            if std::mem::take(&mut self.queue.lock().thread_sleeps) || is_urgent {
                self.signal.raise();
            }
        }
        writer.log.report_progress();
        Ok(())
    }

    /// To be called by every thread that held the writer lock, after releasing it.
    fn hand_over(&self) {
        if self.poisoned.load(Ordering::SeqCst) {
            // No turn will ever satisfy those who came since; they are to look for themselves.
            let everybody = self.waiters.lock().take_all();
            return everybody.wake();
        }
        let wake = self.with_waiters(|waiters| waiters.take_satisfied(self.reached()));
        if wake.next_leader.is_none() && wake.futures_left {
            self.signal.raise();
        }
        wake.wake();
    }

    /// For a clean shutdown, after [`Log::run`] has returned: makes everything durable, leaves the
    /// mark that says so, and gives up the files that are needed no more. May be repeated.
    pub(crate) fn close(&self) -> Result<()> {
        self.shutdown();
        self.sync()?;
        self.check_healthy()?;
        let mut writer = self.writer.lock();
        // An append that was under way when the log was closed may have come after the sync.
        let outcome = self.write_pending(&mut writer, Level::Durable).and_then(|()| {
            if writer.marked {
                return Ok(());
            }
            writer.marked = true;
            writer.log.finish(self.env.clock.now_ms())
        });
        drop(writer);
        match &outcome {
            Ok(()) => {
                self.hand_over();
                let prepared = self.queue.lock().take_all_prepared();
                // What cannot be removed is found, and used again, at the next open.
                let _ = self.segments.remove_unneeded(prepared);
            }
            Err(error) => self.poison(&error.to_string()),
        }
        outcome
    }
}

impl Wake {
    /// The next leader first: its sync then overlaps with the other wake-ups.
    pub(super) fn wake(self) {
        if let Some(leader) = self.next_leader {
            leader.unpark();
        }
        for thread in self.threads {
            thread.unpark();
        }
        for waker in self.futures {
            waker.wake();
        }
    }
}

/// A panic half-way through a write leaves the file as unknown as a failed one.
struct PoisonOnUnwind<'a> {
    log: &'a Log,
}

impl Drop for PoisonOnUnwind<'_> {
    fn drop(&mut self) {
        self.log.poison("a thread panicked while it wrote the log");
    }
}
