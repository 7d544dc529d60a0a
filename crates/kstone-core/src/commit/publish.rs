//! The *visible* watermark: up to which sequence number readers may look.
//!
//! Commits are applied to the memtables in any order, by the threads that made them. A reader must
//! not see a later commit without an earlier one, so the watermark moves over the contiguous run
//! of applied commits only. Called by `commit::Log`; calls nothing but the park shim and `spin`.

use super::park::{self, Thread};
use super::spin::Spin;
use crate::entry::Seq;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug)]
pub(crate) struct Publisher {
    /// Written under the lock, read without.
    visible: AtomicU64,
    state: Mutex<State>,
    spin: Spin,
}

#[derive(Debug, Default)]
struct State {
    /// Applied, but something before them is not: (first, last).
    early: BinaryHeap<Reverse<(Seq, Seq)>>,
    /// The lowest commit that will never be applied. The watermark stays before it for good.
    stopped_at: Option<Seq>,
    waiters: Vec<(Seq, Thread)>,
}

/// The watermark will never get there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

impl Publisher {
    pub(crate) fn new(visible: Seq) -> Self {
        Publisher {
            visible: AtomicU64::new(visible),
            state: Mutex::new(State::default()),
            spin: Spin::default(),
        }
    }

    #[inline]
    pub(crate) fn visible(&self) -> Seq {
        self.visible.load(Ordering::Acquire)
    }

    /// The commit with these sequence numbers is in the memtables.
    pub(crate) fn applied(&self, first: Seq, last: Seq) {
        let mut state = self.state.lock();
        let mut visible = self.visible.load(Ordering::Relaxed);
        if first != visible + 1 {
            state.early.push(Reverse((first, last)));
            return;
        }
        visible = last;
        while let Some(&Reverse((first, last))) = state.early.peek()
            && first == visible + 1
        {
            visible = last;
            state.early.pop();
        }
        self.visible.store(visible, Ordering::Release);
        if state.waiters.is_empty() {
            return;
        }
        let reached: Vec<_> = state.waiters.extract_if(.., |(seq, _)| *seq <= visible).collect();
        drop(state);
        for (_, thread) in reached {
            thread.unpark();
        }
    }

    /// The commit that starts here will never be applied.
    pub(crate) fn stop_at(&self, first: Seq) {
        let mut state = self.state.lock();
        state.stopped_at = Some(state.stopped_at.map_or(first, |at| at.min(first)));
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        // Those that wait for less go back to waiting.
        for (_, thread) in waiters {
            thread.unpark();
        }
    }

    /// Returns when `seq` is visible. Those before it have only to finish applying, so it mostly is
    /// within a microsecond or two.
    pub(crate) fn wait(&self, seq: Seq) -> Result<(), Stopped> {
        if self.spin.until(|| self.visible() >= seq) {
            return Ok(());
        }
        let me = park::current();
        loop {
            {
                let mut state = self.state.lock();
                if self.visible.load(Ordering::Relaxed) >= seq {
                    return Ok(());
                }
                if state.stopped_at.is_some_and(|at| at <= seq) {
                    return Err(Stopped);
                }
                if !state.waiters.iter().any(|(_, thread)| thread.id() == me.id()) {
                    state.waiters.push((seq, me.clone()));
                }
            }
            park::park();
        }
    }
}
