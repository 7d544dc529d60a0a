//! The log thread: writes buffered commits without a waiter, performs syncs for futures and interval
//! commits, prepares the next segment, and syncs early.
//!
//! Without a thread (`Env::threads` is `None`) the owner calls [`Log::drive`] itself.

use super::Log;
use super::waiters::Level;
use crate::entry::Seq;
use crate::env::OpenMode;
use crate::error::Error;
use crate::sync::atomic::Ordering;
use crate::sync::{Condvar, Mutex};
use crate::wal::SyncRequest;
use std::time::Duration;

/// How long bytes may wait for a write call that nobody asked for. Longer: more is lost when the
/// process dies; shorter: more calls for less.
const TICK: Duration = Duration::from_millis(5);
/// After so many ticks without work the thread sleeps until it is called. Until then appenders
/// need not call it, which would cost each of them a system call.
const IDLE_TICKS_MAX: u32 = 20;

/// Wakes the log thread. A signal that is raised before the thread waits is not lost.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    pub(crate) fn raise(&self) {
        let mut raised = self.raised.lock();
        if !*raised {
            *raised = true;
            drop(raised);
            self.changed.notify_one();
        }
    }

    /// Whether it was raised, and not any more.
    #[cfg(test)]
    pub(crate) fn take(&self) -> bool {
        std::mem::take(&mut self.raised.lock())
    }

    /// Returns when the signal is raised, or after a while; spurious returns are fine.
    fn wait(&self, timeout: Option<Duration>) {
        let mut raised = self.raised.lock();
        if !*raised {
            raised = match timeout {
                Some(timeout) => self.changed.wait_timeout(raised, timeout),
                None => self.changed.wait(raised),
            };
        }
        *raised = false;
    }
}

impl Log {
    /// The log thread. Returns after [`Log::shutdown`], with everything synced.
    pub(crate) fn run(&self) {
        let mut idle_ticks = 0;
        while !self.closed.load(Ordering::SeqCst) {
            let timeout = {
                let mut queue = self.queue.lock();
                let idle = queue.pending_bytes() == 0
                    && self.interval_since.load(Ordering::SeqCst) == 0
                    && self.ahead.lock().is_none();
                idle_ticks = if idle { idle_ticks + 1 } else { 0 };
                queue.thread_sleeps = idle_ticks > IDLE_TICKS_MAX;
                (!queue.thread_sleeps).then_some(TICK)
            };
            self.signal.wait(timeout);
            if timeout.is_none() {
                // Where there was one commit there will be more: stay awake for a while, so that
                // not each of them has to ring.
                idle_ticks = 0;
            }
            self.drive();
        }
        // From here on futures lead themselves; the turn wakes those that are waiting already.
        self.has_thread.store(false, Ordering::SeqCst);
        self.turn(self.writer.lock(), Level::Durable, None);
    }

    /// Ends [`Log::run`] and refuses further commits.
    pub(crate) fn shutdown(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.signal.raise();
    }

    /// One round of the background duties.
    pub(crate) fn drive(&self) {
        let wanted = self.waiters.lock().futures_want();
        if wanted == Some(Level::Durable) || self.interval_is_due() {
            self.turn(self.writer.lock(), Level::Durable, None);
        } else if wanted == Some(Level::Written) {
            self.turn(self.writer.lock(), Level::Written, None);
        } else if self.queue.lock().pending_bytes() > 0
            && let Some(writer) = self.writer.try_lock()
        {
            // If somebody else has the lock, what is pending is in good hands.
            self.turn(writer, Level::Written, None);
        }
        if self.has_thread.load(Ordering::SeqCst) {
            // In this order: to make a segment may take longer than what is to be synced can wait.
            self.sync_ahead();
            self.prepare_ahead();
        }
    }

    /// Syncs what was written without a sync, beside the writer. Nothing becomes durable by it for others: only
    /// a thread with the writer lock moves that watermark.
    ///
    /// Through a handle of its own. The system tells each handle once of what it could not write; with
    /// the writer's, this could hear of a failure in the place of a sync that somebody waits for,
    /// which would then find nothing wrong and nothing left to do.
    fn sync_ahead(&self) {
        let Some(SyncRequest { path, stored, end, .. }) = self.ahead.lock().take() else { return };
        stored.expect_sync();
        // Before the sync, too: it takes as long as a quick writer needs for what was ready.
        stored.expect_stores();
        let synced = match self.env.vfs.open(&path, OpenMode::ReadWrite) {
            // Released and removed meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => Err(error),
            Ok(file) => file.sync_before(end),
        };
        match synced {
            Ok(()) => stored.expect_stores(),
            Err(error) => self.poison(&Error::io("sync", &path, error).to_string()),
        }
    }

    /// A commit with this number wants to be durable within the interval.
    pub(crate) fn request_interval(&self, seq: Seq) {
        // The first request since a sync began sets the time; the sync will cover the others.
        if seq <= self.durable() || self.interval_since.load(Ordering::SeqCst) != 0 {
            return;
        }
        let now = self.micros();
        let set = self.interval_since.compare_exchange(
            0,
            now.saturating_add(1),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if set.is_ok() && std::mem::take(&mut self.queue.lock().thread_sleeps) {
            self.signal.raise();
        }
    }

    fn interval_is_due(&self) -> bool {
        let since = self.interval_since.load(Ordering::SeqCst);
        let waited = (self.micros() + 1).saturating_sub(since);
        since != 0 && waited >= u64::try_from(self.interval.as_micros()).unwrap_or(u64::MAX)
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.env.clock.monotonic().as_micros()).unwrap_or(u64::MAX - 1)
    }

    /// Makes the next segment while there is still room in this one, so that no commit waits for
    /// it. A failure is left to the appender that will need the segment, and can tell its caller.
    fn prepare_ahead(&self) {
        if self.queue.lock().wants_prepared().is_none() || self.poisoned.load(Ordering::SeqCst) {
            return;
        }
        let _only_one = self.preparing.lock();
        let wanted = self.queue.lock().wants_prepared();
        if let Some(need) = wanted
            && let Ok(prepared) = self.segments.prepare(need)
        {
            self.queue.lock().add_prepared(prepared);
        }
    }
}
