//! What one process has of the background work, on a store that a test can crash.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kstone::Database;
use kstone_base::work::{
    Job, JobError, NewJob, Outbox, Queues, Workers, WorkersOptions, require_table,
};
use kstone_core::env::{Clock, Random, SeededRandom};
use kstone_fixture::Store;
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub use kstone_fixture::START_MS;

/// What one process has of the work.
pub struct Process {
    pub outbox: Outbox,
    pub queues: Queues,
    pub workers: Workers,
}

/// A store with the table of the platform.
pub async fn empty_store() -> Store {
    let store = Store::new();
    require_table(&store.db).await.unwrap();
    store
}

/// A process that shares the store.
pub fn process_of(store: &Store, seed: u64) -> Process {
    process_with(store, seed, Arc::clone(&store.clock) as _, WorkersOptions::default())
}

/// An empty store, and a process that uses it.
pub async fn store_and_process() -> (Store, Process) {
    let store = empty_store().await;
    let process = process_of(&store, 2);
    (store, process)
}

/// The same with a clock and options of its own.
pub fn process_with(
    store: &Store,
    seed: u64,
    clock: Arc<dyn Clock>,
    options: WorkersOptions,
) -> Process {
    let random: Arc<dyn Random> = Arc::new(SeededRandom::new(seed));
    let items: Arc<Database> = Arc::new(store.db.clone());
    let outbox = Outbox::new(items.clone() as _, Arc::clone(&clock), Arc::clone(&random));
    let queues = Queues::new(items as _, Arc::clone(&clock), outbox.clone());
    let workers = Workers::new(queues.clone(), outbox.clone(), clock, random, options);
    Process { outbox, queues, workers }
}

impl Process {
    /// Has the jobs of the queue `q` counted, and fail as long as `outcome` says so.
    pub fn count(
        &self,
        outcome: impl Fn(u64) -> Result<(), JobError> + Send + Sync + 'static,
    ) -> Arc<AtomicU64> {
        let runs = Arc::new(AtomicU64::new(0));
        let (counted, outcome) = (Arc::clone(&runs), Arc::new(outcome));
        self.workers.register("q", "count", move |_: Job| {
            let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
            let outcome = Arc::clone(&outcome);
            async move { outcome(run) }
        });
        runs
    }

    /// Has the jobs of the queue `q` begin, tell so, and never end.
    pub fn hang(&self) -> Arc<Notify> {
        let begun = Arc::new(Notify::new());
        let told = Arc::clone(&begun);
        self.workers.register("q", "count", move |_| {
            told.notify_one();
            pending()
        });
        begun
    }

    /// Runs due jobs beside the test.
    pub fn spawn_run_due(&self) -> JoinHandle<kstone_base::error::Result<u64>> {
        let workers = self.workers.clone();
        tokio::spawn(async move { workers.run_due().await })
    }

    /// Ready, delayed, running, dead.
    pub async fn depth(&self) -> (u64, u64, u64, u64) {
        let depth = self.queues.depth("q").await.unwrap();
        (depth.ready, depth.delayed, depth.running, depth.dead)
    }
}

pub fn job() -> NewJob {
    NewJob::new("q", "count", json!({ "n": 1 }))
}

pub fn runs(of: &Arc<AtomicU64>) -> u64 {
    of.load(Ordering::SeqCst)
}
