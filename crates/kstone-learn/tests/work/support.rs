//! A store that a test can crash, and the work on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kstone::{Database, DatabaseOptions, Durability};
use kstone_core::Options;
use kstone_core::env::{Clock, Env, ManualClock, Random, SeededRandom};
use kstone_keyspace::erasure::{Eraser, ReceiptKey};
use kstone_keyspace::{Governor, GovernorOptions, shipped};
use kstone_learn::work::{
    Job, JobError, NewJob, Outbox, Queues, Workers, WorkersOptions, require_table,
};
use kstone_redis::Redis;
use kstone_redis::port::LocalKeys;
use kstone_sim::{CrashPolicy, SimDisk};
use serde_json::json;

/// A Wednesday morning.
pub const START_MS: u64 = 1_768_386_600_000;

/// A database with everything in force.
pub struct Place {
    pub db: Database,
    pub redis: Redis,
    pub keys: LocalKeys,
    pub governor: Arc<Governor>,
    pub clock: Arc<ManualClock>,
    pub disk: SimDisk,
}

/// What one process has of the work.
pub struct Process {
    pub outbox: Outbox,
    pub queues: Queues,
    pub workers: Workers,
}

impl Place {
    pub async fn new() -> Place {
        let place = Place::open(SimDisk::new(1), START_MS);
        require_table(&place.db).await.unwrap();
        place
    }

    fn open(disk: SimDisk, now_ms: u64) -> Place {
        let clock = Arc::new(ManualClock::at(now_ms));
        let random: Arc<dyn Random> = Arc::new(SeededRandom::new(1));
        let env = Env {
            vfs: Arc::new(disk.clone()),
            clock: Arc::clone(&clock) as _,
            random: Arc::clone(&random),
            threads: None,
        };
        let options = DatabaseOptions { engine: Options::default(), durability: Durability::Sync };
        let db = Database::open_with(env, "db", options).unwrap();
        let redis = Redis::open(&db).unwrap();
        let options = GovernorOptions { random, ..GovernorOptions::default() };
        let governor = Governor::govern(&db, Arc::new(shipped().unwrap()), options).unwrap();
        let keys = redis.keys(0).unwrap();
        Place { db, redis, keys, governor, clock, disk }
    }

    /// The power is lost: what is found on the disk afterwards, some time later.
    pub fn after_a_crash(&self, later_ms: u64) -> Place {
        Place::open(self.disk.crash(CrashPolicy::LoseAll), self.clock.now_ms() + later_ms)
    }

    pub fn eraser(&self) -> Eraser {
        let random: Arc<dyn Random> = Arc::new(SeededRandom::new(7));
        let key = ReceiptKey::from_secret(&[9; 32]);
        Eraser::embedded(&self.db, &self.redis, Arc::clone(&self.governor), key, random).unwrap()
    }

    pub fn process(&self, seed: u64) -> Process {
        self.process_with(seed, Arc::clone(&self.clock) as _, WorkersOptions::default())
    }

    pub fn process_with(
        &self,
        seed: u64,
        clock: Arc<dyn Clock>,
        options: WorkersOptions,
    ) -> Process {
        let random: Arc<dyn Random> = Arc::new(SeededRandom::new(seed));
        let items: Arc<Database> = Arc::new(self.db.clone());
        let outbox = Outbox::new(items.clone() as _, Arc::clone(&clock), Arc::clone(&random));
        let queues = Queues::new(items as _, Arc::clone(&clock), outbox.clone());
        let workers = Workers::new(queues.clone(), outbox.clone(), clock, random, options);
        Process { outbox, queues, workers }
    }
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
