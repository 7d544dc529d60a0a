//! CLIENT PAUSE: holds back some commands, or all, for some time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kstone_core::sync::Mutex;

use crate::server::clients::Peer;

/// Which commands wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paused {
    Nothing,
    Writes,
    Everything,
}

#[derive(Debug)]
struct Inner {
    paused: Paused,
    until_ms: u64,
    waiting: Vec<Arc<Peer>>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pause {
    /// Whether there may be a pause; read before the lock is taken.
    is_on: AtomicUsize,
    inner: Mutex<Inner>,
}

impl Default for Pause {
    fn default() -> Self {
        let inner = Inner { paused: Paused::Nothing, until_ms: 0, waiting: Vec::new() };
        Pause { is_on: AtomicUsize::new(0), inner: Mutex::new(inner) }
    }
}

impl Pause {
    /// Pauses until then. A pause that lasts longer or is stricter stays so.
    pub(crate) fn start(&self, paused: Paused, until_ms: u64, now_ms: u64) {
        let mut inner = self.inner.lock();
        let is_over = inner.until_ms <= now_ms;
        if is_over || inner.paused != Paused::Everything {
            inner.paused = paused;
        }
        inner.until_ms = if is_over { until_ms } else { inner.until_ms.max(until_ms) };
        self.is_on.store(1, Ordering::Release);
    }

    /// Ends the pause; clients that wait go on.
    pub(crate) fn end(&self) {
        let waiting = {
            let mut inner = self.inner.lock();
            inner.paused = Paused::Nothing;
            inner.until_ms = 0;
            self.is_on.store(0, Ordering::Release);
            std::mem::take(&mut inner.waiting)
        };
        waiting.iter().for_each(|peer| peer.wake());
    }

    /// What waits now, and until when.
    pub(crate) fn now(&self, now_ms: u64) -> (Paused, u64) {
        if self.is_on.load(Ordering::Acquire) == 0 {
            return (Paused::Nothing, 0);
        }
        let inner = self.inner.lock();
        if inner.until_ms <= now_ms {
            return (Paused::Nothing, 0);
        }
        (inner.paused, inner.until_ms)
    }

    /// A client begins to wait for the end.
    pub(crate) fn wait(&self, peer: &Arc<Peer>) {
        let mut inner = self.inner.lock();
        if !inner.waiting.iter().any(|have| have.id == peer.id) {
            inner.waiting.push(Arc::clone(peer));
        }
    }

    /// A client no longer waits.
    pub(crate) fn leave(&self, id: u64) {
        self.inner.lock().waiting.retain(|have| have.id != id);
    }

    /// How many clients wait.
    pub(crate) fn waiting(&self) -> usize {
        self.inner.lock().waiting.len()
    }

    /// Whether there may be a pause.
    pub(crate) fn is_possible(&self) -> bool {
        self.is_on.load(Ordering::Acquire) != 0
    }
}
