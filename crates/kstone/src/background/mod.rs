//! Background work: reclaiming what has expired, filling new indexes, stamping items
//! when time to live is switched, dropping streams that were closed a day ago.
//!
//! One thread does it, in small steps, each an ordinary commit under ordinary locks. Without
//! threads (a simulated machine), [`Database::run_background`] does it on the calling thread.

mod backfill;
mod reclaim;
mod retire;
mod stamp;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kstone_core::Durability;
use kstone_core::TableId;
use kstone_core::env::JoinHandle;
use kstone_core::sync::{Condvar, Mutex};

use crate::database::{Database, Inner};
use crate::error::Result;

/// How long the thread sleeps when there is nothing to do. What it finds late by this much still
/// counts as absent on time: expiry is exact on read.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it looks for what has expired when another layer is there: its clients are told of
/// what goes, and expect to be told soon. Looking costs next to nothing while nothing is due.
const SHORT_PAUSE: Duration = Duration::from_millis(50);

/// Wakes and stops the background thread, and keeps how far its long jobs have got.
#[derive(Debug, Default)]
pub(crate) struct Background {
    state: Mutex<WakeState>,
    wake: Condvar,
    /// Items looked at, by table, by index that is being filled.
    progress: Mutex<HashMap<TableId, HashMap<u32, u64>>>,
}

#[derive(Debug, Default)]
struct WakeState {
    work: bool,
    stop: bool,
}

/// Why the thread woke up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WakeReason {
    ByTime,
    ToWork,
    ToStop,
}

/// Whether there is more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    Idle,
}

impl Background {
    /// How many items have been looked at for each index of this table that is being filled.
    pub fn progress(&self, table: TableId) -> HashMap<u32, u64> {
        self.progress.lock().get(&table).cloned().unwrap_or_default()
    }

    pub fn wake(&self) {
        self.state.lock().work = true;
        self.wake.notify_one();
    }

    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.wake.notify_one();
    }

    /// Sleeps for a while or until woken.
    fn pause(&self, pause: Duration) -> WakeReason {
        let mut state = self.state.lock();
        if !state.work && !state.stop {
            state = self.wake.wait_timeout(state, pause);
        }
        let work = std::mem::take(&mut state.work);
        match (state.stop, work) {
            (true, _) => WakeReason::ToStop,
            (false, true) => WakeReason::ToWork,
            (false, false) => WakeReason::ByTime,
        }
    }

    fn stopping(&self) -> bool {
        self.state.lock().stop
    }
}

/// Starts the thread, where there are threads.
pub(crate) fn start(inner: &Arc<Inner>) -> Result<Option<JoinHandle>> {
    let Some(threads) = inner.env.threads.clone() else { return Ok(None) };
    let inner = Arc::clone(inner);
    let work = move || {
        let db = Database::background(inner);
        let mut paused = Duration::ZERO;
        loop {
            let is_short = db.inner().sides.any();
            let pause = if is_short { SHORT_PAUSE } else { PAUSE };
            let pause = pause.max(db.reclaim_pause());
            let wakened = db.inner().background.pause(pause);
            if wakened == WakeReason::ToStop {
                break;
            }
            paused += pause;
            let is_full_round = wakened == WakeReason::ToWork || paused >= PAUSE;
            if is_full_round {
                paused = Duration::ZERO;
            }
            let step = || {
                if is_full_round { db.background_step() } else { db.reclaim_expired() }
            };
            // An error here also occurs in operations on the same data, which report it;
            // the next round tries again.
            while let Ok(Step::More) = step() {
                if db.inner().background.stopping() {
                    break;
                }
            }
        }
    };
    let handle = threads.spawn("kstone-background", Box::new(work)).map_err(|error| {
        kstone_core::Error::Io {
            op: "start a thread for",
            path: "the background".into(),
            source: Arc::new(error),
        }
    })?;
    Ok(Some(handle))
}

impl Database {
    /// Does all background work that is due, on the calling thread. Only needed without threads,
    /// and in tests that want to know when it is done.
    pub fn run_background(&self) -> Result<()> {
        let db = self.with_durability(Durability::Os);
        while db.background_step()? == Step::More {}
        Ok(())
    }

    pub(crate) fn wake_background(&self) {
        self.inner().background.wake();
    }

    fn background_step(&self) -> Result<Step> {
        // Each has its turn, whatever becomes of the others.
        let jobs = [
            self.fill_indexes(),
            self.stamp_tables(),
            self.reclaim_expired(),
            self.retire_streams().map(|()| Step::Idle),
            self.inner().sides.tidy().map(|more| if more { Step::More } else { Step::Idle }),
        ];
        let (mut step, mut failure) = (Step::Idle, None);
        for job in jobs {
            match job {
                Ok(Step::More) => step = Step::More,
                Ok(Step::Idle) => {}
                Err(error) => failure = Some(error),
            }
        }
        // A job that fails keeps no other waiting; its error is returned when it alone is left.
        match (step, failure) {
            (Step::Idle, Some(error)) => Err(error),
            (step, _) => Ok(step),
        }
    }
}
