//! The commit pipeline: sequence numbers, group commit, and the watermarks that say what readers
//! may see and what a crash cannot take back.
//!
//! One write, from the engine's side:
//!
//! ```text
//! lock stripes ─ append ─────────▶ sequence numbers; the bytes are in the queue, in their order
//!                write memtables
//!                applied ────────▶ *visible* moves on, once everything before is applied too
//! unlock stripes
//!                wait_durable ───▶ somebody writes the queue and syncs it, once for all who wait
//! ```
//!
//! [`queue`] holds what is not yet written; [`group`] is the write-and-sync turn and how waiters
//! take it in turns to lead; [`publish`] is the visible watermark; [`background`] is what the log
//! thread does for commits that nobody waits for, and for futures.
//!
//! Invariants:
//! - The queue is in sequence order, chunks are written in queue order, and only the holder of the
//!   writer lock writes. So the log on disk is always a prefix of the commits, without a hole.
//! - `durable` ≤ `written` ≤ the last number given out, and `durable` moves only after the sync
//!   that covers it returned.
//! - The thread that held the writer lock calls `hand_over` after releasing it. A waiter registers, then
//!   tries the lock once more, then parks; so either it gets the lock, or the holder finds it.
//! - A registered waiter that has what it waited for wakes one more that has: covered threads are
//!   woken in a chain, and one that left without waking the next would break it.
//! - After a failed write or sync nothing is written any more: what the disk holds is unknown.
//!
//! Locks are taken in the order writer → queue → list of segments; the lists of waiters and the
//! log thread's signal are taken last, one at a time. The engine's stripe locks come before all.
//!
//! Calls `wal` and `env`. Called by the engine only.

mod background;
mod group;
mod park;
mod publish;
mod queue;
mod spin;
mod stats;
mod waiters;

#[cfg(all(test, kstone_shuttle))]
mod shuttle_tests;
#[cfg(all(test, not(kstone_shuttle)))]
mod tests;

pub(crate) use crate::wal::{LiveSegments, Recovered, RecoveryStart, ReplayedCommit};
pub(crate) use stats::LogStats;

use crate::entry::Seq;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::wal::format::commit_bytes;
use crate::wal::{self, DbId, Segments, SyncRequest};
use background::Signal;
use group::Writer;
use publish::Publisher;
use queue::Queue;
use spin::Spin;
use stats::Counters;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use waiters::{Level, Waiters};

/// A segment must at least take its header and a commit.
const SEGMENT_BYTES_MIN: u64 = 512;
/// The format counts the bytes of a chunk in 32 bits.
const OPS_BYTES_MAX: usize = u32::MAX as usize - 4096;
/// So much waiting to be written is worth a write call of its own. Smaller: more calls; larger:
/// a longer write in front of the next sync.
const PENDING_BYTES_GOOD: u64 = 256 << 10;
/// With so much waiting, the log thread does not keep up, and appenders write before they append.
const PENDING_BYTES_MAX: u64 = 8 << 20;

/// How the log is to behave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogOptions {
    /// The size of a segment file.
    pub(crate) segment_bytes: u64,
    /// Within what time an `Interval` commit is synced.
    pub(crate) interval: Duration,
}

/// The log of one database, shared by all its threads.
#[derive(Debug)]
pub(crate) struct Log {
    env: Env,
    interval: Duration,
    segments: Arc<Segments>,
    queue: Mutex<Queue>,
    /// Held while a segment is made for an appender, so that only one is made.
    preparing: Mutex<()>,
    writer: Mutex<Writer>,
    /// The threads that wait a moment for the writer lock.
    writer_spin: Spin,
    written: AtomicU64,
    durable: AtomicU64,
    publisher: Publisher,
    waiters: Mutex<Waiters>,
    /// Whether `waiters` gather a group, as it was when they were last changed. Who reads that they do
    /// looks again under their lock; who reads that they do not may lead, which is never wrong.
    gathers: AtomicBool,
    /// When the oldest `Interval` commit came that no sync has started for, in microseconds of
    /// the stopwatch plus one; 0 = there is none.
    interval_since: AtomicU64,
    signal: Signal,
    /// A file of the log that the log thread is to sync ahead.
    ahead: Mutex<Option<SyncRequest>>,
    /// A log thread leads for futures; otherwise they lead themselves.
    has_thread: AtomicBool,
    closed: AtomicBool,
    poisoned: AtomicBool,
    cause: Mutex<Option<Arc<str>>>,
    counters: Counters,
}

/// A commit that has its sequence numbers and is about to be applied. Give it to
/// [`Log::applied`]; if it is dropped instead (the thread panicked), the log is poisoned, because
/// readers must not see anything after a commit that is half there.
#[derive(Debug)]
#[must_use = "a commit that is not applied poisons the log"]
pub(crate) struct Ticket<'a> {
    log: &'a Log,
    pub(crate) first_seq: Seq,
    pub(crate) last_seq: Seq,
    applied: bool,
}

/// A purge under way: see [`Log::begin_purge`].
#[derive(Debug)]
pub(crate) struct Purging<'a> {
    segments: &'a Segments,
}

impl Drop for Purging<'_> {
    fn drop(&mut self) {
        self.segments.note_purge(false);
    }
}

impl Ticket<'_> {
    /// Gives the ticket up, for a commit that is applied later: its first and last number.
    pub(crate) fn defer(mut self) -> (Seq, Seq) {
        self.applied = true;
        (self.first_seq, self.last_seq)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.applied {
            // The cause first: a thread that learns that the watermark stopped asks for it.
            self.log.poison("a commit was given up between the log and the memtables");
            self.log.publisher.stop_at(self.first_seq);
        }
    }
}

impl Log {
    /// Reads the log back, handing every commit from `from.log_start` on to `replay`, and makes it
    /// ready for more. With threads in `env`, the owner has to call [`Log::run`] on one of them.
    pub(crate) fn open(
        env: &Env,
        dir: &Path,
        db_id: DbId,
        options: LogOptions,
        from: RecoveryStart,
        replay: &mut dyn FnMut(ReplayedCommit<'_>) -> Result<()>,
    ) -> Result<(Log, Recovered)> {
        let LogOptions { segment_bytes, interval } = options;
        if segment_bytes < SEGMENT_BYTES_MIN {
            return Err(Error::invalid(format!(
                "log segments of {segment_bytes} bytes are too small, {SEGMENT_BYTES_MIN} is the least"
            )));
        }
        let (writer, segments, recovered) =
            wal::recover(&env.vfs, dir, db_id, segment_bytes, from, replay)?;
        let last_seq = recovered.last_seq;
        let queue = Queue::new(last_seq, writer.room(), segments.usual_capacity());
        let log = Log {
            env: env.clone(),
            interval,
            segments,
            queue: Mutex::new(queue),
            preparing: Mutex::new(()),
            writer: Mutex::new(Writer::new(writer)),
            writer_spin: Spin::default(),
            written: AtomicU64::new(last_seq),
            durable: AtomicU64::new(last_seq),
            publisher: Publisher::new(last_seq),
            waiters: Mutex::new(Waiters::default()),
            gathers: AtomicBool::new(false),
            interval_since: AtomicU64::new(0),
            signal: Signal::default(),
            ahead: Mutex::new(None),
            has_thread: AtomicBool::new(env.threads.is_some()),
            closed: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
            cause: Mutex::new(None),
            counters: Counters::default(),
        };
        Ok((log, recovered))
    }

    /// Puts a commit into the log and gives it the next `seq_count` sequence numbers. The caller
    /// holds its stripe locks. On an error nothing was appended and no number was used; after
    /// `DiskFull` the call may be repeated.
    pub(crate) fn append(&self, ops: &[u8], seq_count: u32) -> Result<Ticket<'_>> {
        if ops.len() > OPS_BYTES_MAX {
            return Err(Error::BatchTooLarge { len: ops.len(), max: OPS_BYTES_MAX });
        }
        if seq_count == 0 {
            return Err(Error::invalid("a commit needs at least one sequence number"));
        }
        loop {
            let mut queue = self.queue.lock();
            // Under the queue's lock: what is appended before the log is closed is in the queue when
            // closing takes it for the last time, and nothing comes after.
            self.check_open()?;
            if queue.pending_bytes() > self.pending_bytes_max() {
                drop(queue);
                self.turn(self.writer.lock(), Level::Written, None);
                continue;
            }
            let Some(first_seq) = queue.append(ops, seq_count) else {
                drop(queue);
                self.make_room(commit_bytes(ops.len(), seq_count))?;
                continue;
            };
            let mut wake = std::mem::take(&mut queue.thread_sleeps);
            if queue.pending_bytes() > PENDING_BYTES_GOOD && !queue.thread_told {
                queue.thread_told = true;
                wake = true;
            }
            drop(queue);
            if wake {
                self.signal.raise();
            }
            let last_seq = first_seq + u64::from(seq_count) - 1;
            return Ok(Ticket { log: self, first_seq, last_seq, applied: false });
        }
    }

    /// Makes the segment that a commit of this length, header included, needs.
    fn make_room(&self, commit: u64) -> Result<()> {
        let _only_one = self.preparing.lock();
        if self.queue.lock().accepts(commit) {
            return Ok(());
        }
        let prepared = self.segments.prepare(queue::alone_bytes(commit))?;
        self.queue.lock().add_prepared(prepared);
        Ok(())
    }

    fn pending_bytes_max(&self) -> u64 {
        if self.has_thread.load(Ordering::Relaxed) { PENDING_BYTES_MAX } else { PENDING_BYTES_GOOD }
    }

    /// A commit whose ticket was given up ([`Ticket::defer`]), about to be applied after all.
    pub(crate) fn ticket(&self, first_seq: Seq, last_seq: Seq) -> Ticket<'_> {
        Ticket { log: self, first_seq, last_seq, applied: false }
    }

    /// The commit's records are in the memtables: readers may see it once everything before it is
    /// applied as well.
    pub(crate) fn applied(&self, mut ticket: Ticket<'_>) {
        debug_assert!(std::ptr::eq(self, ticket.log), "a ticket belongs to the log that gave it");
        ticket.applied = true;
        self.publisher.applied(ticket.first_seq, ticket.last_seq);
    }

    /// Up to which number readers may look.
    #[inline]
    pub(crate) fn visible(&self) -> Seq {
        self.publisher.visible()
    }

    /// Returns when `seq` is visible. Short: those before it have only to finish applying. An
    /// error if one of them never will.
    pub(crate) fn wait_visible(&self, seq: Seq) -> Result<()> {
        self.publisher.wait(seq).map_err(|publish::Stopped| self.refusal())
    }

    /// Up to which number everything survives a crash of the machine.
    #[inline]
    pub(crate) fn durable(&self) -> Seq {
        self.durable.load(Ordering::Acquire)
    }

    /// Up to which number everything survives a crash of the process.
    #[inline]
    pub(crate) fn written(&self) -> Seq {
        self.written.load(Ordering::Acquire)
    }

    /// The last number given out.
    pub(crate) fn appended(&self) -> Seq {
        self.queue.lock().last_seq()
    }

    /// Makes everything appended so far durable; returns up to which number that is.
    pub(crate) fn sync(&self) -> Result<Seq> {
        let seq = self.appended();
        self.wait_durable(seq)?;
        Ok(seq)
    }

    /// Seals the current segment, everything in it durable, and goes on in a fresh one.
    pub(crate) fn rotate(&self) -> Result<()> {
        self.check_healthy()?;
        let prepared = self.segments.prepare(0)?;
        self.queue.lock().begin_segment(prepared);
        self.turn(self.writer.lock(), Level::Durable, None);
        self.check_healthy()
    }

    /// The position from which the log must be kept when every number up to `upto` is durable
    /// elsewhere. For the manifest, together with a `last_seq` of at least `upto`.
    pub(crate) fn log_start(&self, upto: Seq) -> u64 {
        self.segments.log_start(upto)
    }

    /// Gives up everything before `log_start`, a value of [`Log::log_start`] that the manifest on
    /// disk names by now. By position, not by sequence number: a segment sealed since then may
    /// hold nothing newer and still be where the manifest says that the log begins.
    pub(crate) fn release(&self, log_start: u64) -> Result<()> {
        self.segments.release(log_start)
    }

    /// Keeps only few files to be used again, when nothing was written for long.
    pub(crate) fn keep_few_idle(&self) -> Result<()> {
        self.segments.keep_few_idle()
    }

    /// The segments with what is synced of them, for a copy. None is reused while the result lives.
    pub(crate) fn live_segments(&self) -> LiveSegments {
        self.segments.live()
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.segments.live_bytes()
    }

    #[cfg(test)]
    pub(crate) fn segment_count(&self) -> usize {
        self.segments.live_count()
    }

    /// Begins a purge: while the result lives, no segment that was used is used again. To purge:
    /// `begin_purge`, `scrub`, flush, write the manifest, `release` until the segments from before
    /// are gone, `scrub` again.
    pub(crate) fn begin_purge(&self) -> Purging<'_> {
        // A segment that is being prepared right now is in the queue when this returns.
        let _only_one = self.preparing.lock();
        self.segments.note_purge(true);
        Purging { segments: &self.segments }
    }

    /// Where the oldest live segment starts, and the newest.
    pub(crate) fn live_range(&self) -> (u64, u64) {
        self.segments.live_range()
    }

    /// Overwrites and removes every segment that waits for reuse, then goes on in a new file, so
    /// that no byte of a released segment is left.
    pub(crate) fn scrub(&self) -> Result<()> {
        let prepared = self.queue.lock().take_all_prepared();
        self.segments.scrub_idle(prepared)?;
        self.rotate()
    }

    pub(crate) fn stats(&self) -> LogStats {
        self.counters.snapshot()
    }

    /// Refuses all writes from now on; all waiting threads are told why. The first cause stays.
    pub(crate) fn poison(&self, cause: &str) {
        self.cause.lock().get_or_insert_with(|| Arc::from(cause));
        self.poisoned.store(true, Ordering::SeqCst);
        let everybody = self.waiters.lock().take_all();
        everybody.wake();
        self.signal.raise();
    }

    /// The error that writes meet, if the log is poisoned.
    pub(crate) fn poisoned(&self) -> Option<Error> {
        self.poisoned.load(Ordering::SeqCst).then(|| self.refusal())
    }

    fn refusal(&self) -> Error {
        let cause = self.cause.lock().clone();
        Error::Poisoned { cause: cause.unwrap_or_else(|| Arc::from("unknown")) }
    }

    fn check_healthy(&self) -> Result<()> {
        self.poisoned().map_or(Ok(()), Err)
    }

    fn check_open(&self) -> Result<()> {
        self.check_healthy()?;
        if self.closed.load(Ordering::SeqCst) { Err(Error::Closed) } else { Ok(()) }
    }
}
