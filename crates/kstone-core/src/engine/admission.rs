//! Back-pressure: how much memory unflushed writes hold, and who waits for it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::engine::Inner;
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
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    pub(crate) fn grow(&self, bytes: usize) {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives memory back and wakes who waits for it.
    pub(crate) fn shrink(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.wake();
    }

    /// Lets waiting writers look again.
    pub(crate) fn wake(&self) {
        let _gate = self.gate.lock();
        self.freed.notify_all();
    }
}

impl Inner {
    /// Waits until there is room for `bytes` more, and until none of the stripes has too many
    /// files. Must be called before stripe locks are taken. Fails with what stops the background
    /// work, rather than waiting for a disk that stays full.
    pub(crate) fn admit(self: &Arc<Self>, bytes: usize, stripes: &StripeSet) -> Result<()> {
        self.check_writable()?;
        if self.has_room(bytes, stripes) {
            return Ok(());
        }
        let started = self.clock.monotonic();
        self.admission.waiting.fetch_add(1, Ordering::AcqRel);
        let result = self.wait_for_room(bytes, stripes);
        self.admission.waiting.fetch_sub(1, Ordering::AcqRel);
        let us = self.clock.monotonic().saturating_sub(started).as_micros() as u64;
        self.admission.stalls.fetch_add(1, Ordering::Relaxed);
        self.admission.stalled_us.fetch_add(us, Ordering::Relaxed);
        self.admission.longest_stall_us.fetch_max(us, Ordering::Relaxed);
        result
    }

    fn wait_for_room(self: &Arc<Self>, bytes: usize, stripes: &StripeSet) -> Result<()> {
        let failures = self.background.failures();
        loop {
            self.check_writable()?;
            if self.has_room(bytes, stripes) {
                return Ok(());
            }
            if self.env.threads.is_none() {
                self.make_room_inline(stripes)?;
                continue;
            }
            if let Some(error) = self.background.failed_since(failures) {
                return Err(error);
            }
            self.background.kick();
            let gate = self.admission.gate.lock();
            if !self.has_room(bytes, stripes) {
                // The timeout is for a wake-up that comes between the check and the wait of
                // another condition (a failure, the end); it is not what ends a normal wait.
                drop(self.admission.freed.wait_timeout(gate, Duration::from_millis(50)));
            }
        }
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

    /// A batch larger than the whole buffer is let in when the buffer is nearly empty.
    fn has_room(&self, bytes: usize, stripes: &StripeSet) -> bool {
        let used = self.admission.used_bytes();
        let limit = self.limits.write_buffer_bytes;
        let fits = used.saturating_add(bytes) <= limit || used <= limit / 4;
        fits && self
            .background
            .stopped_stripes()
            .is_none_or(|stopped| stripes.without(&stopped) == *stripes)
    }
}
