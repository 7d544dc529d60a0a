//! Assembles the learning platform: builds, starts and stops the mastery engine, workers, schedules and
//! alerts.
//!
//! Called by the process that serves, the demo, and tests. Several platforms, in one process or in
//! many, may share a store.

use std::sync::Arc;

use kstone_core::env::{Clock, Random};
use kstone_ports::items::Items;
use kstone_ports::keys::Keys;

use kstone_base::Result;
use kstone_base::audit::AuditLog;
use kstone_base::idempotency::Idempotency;
use kstone_base::persons::{KeyCounts, Persons};
use kstone_base::rate_limits::RateLimits;
use kstone_base::work::{
    AlertSink, Alerts, Outbox, Queues, Schedules, Webhook, Workers, WorkersOptions,
};
use kstone_mastery::engine::{CacheOptions, EngineParts, MasteryEngine};
use kstone_mastery::jobs::{self, JobParts};

/// The parts that a platform is built from.
#[derive(Debug, Clone)]
pub struct PlatformParts {
    /// Where everything is that must not be lost.
    pub items: Arc<dyn Items>,
    /// Caches and windows of requests.
    pub keys: Arc<dyn Keys>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ids, and the waits between attempts.
    pub random: Arc<dyn Random>,
    /// Everything about one person, for export and erasure. Without it those are refused.
    pub persons: Option<Arc<dyn Persons>>,
    /// How many keys there are. Without it metrics are refused.
    pub counts: Option<Arc<dyn KeyCounts>>,
    /// How the current mastery is cached.
    pub cache: CacheOptions,
    /// How workers go about it.
    pub workers: WorkersOptions,
    /// Receives alerts at once, such as a log.
    pub sinks: Vec<Arc<dyn AlertSink>>,
    /// Where alerts are sent to.
    pub webhook: Option<Webhook>,
}

impl PlatformParts {
    /// The required parts; the others have defaults.
    pub fn new(
        items: Arc<dyn Items>,
        keys: Arc<dyn Keys>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> PlatformParts {
        PlatformParts {
            items,
            keys,
            clock,
            random,
            persons: None,
            counts: None,
            cache: CacheOptions::default(),
            workers: WorkersOptions::default(),
            sinks: Vec::new(),
            webhook: None,
        }
    }
}

/// The learning platform of one process.
#[derive(Debug)]
pub struct Platform {
    /// The mastery engine.
    pub mastery: MasteryEngine,
    /// The audit log.
    pub audit: AuditLog,
    /// Enqueues jobs.
    pub outbox: Outbox,
    /// Jobs that wait, run or were given up.
    pub queues: Queues,
    /// The job workers.
    pub workers: Workers,
    /// Recurring jobs.
    pub schedules: Schedules,
    /// Alerts for people.
    pub alerts: Alerts,
    /// Idempotency records.
    pub idempotency: Idempotency,
    /// Rate limits of clients.
    pub limits: RateLimits,
}

impl Platform {
    /// Makes the tables if they are missing, and everything else. Nothing runs in the background:
    /// that is for [`Platform::start`], or goes by [turns](Platform::turn).
    ///
    /// # Errors
    /// If the tables cannot be made.
    pub async fn prepare(parts: PlatformParts) -> Result<Arc<Platform>> {
        let PlatformParts { items, keys, clock, random, sinks, webhook, .. } = parts;
        let outbox = Outbox::new(Arc::clone(&items), Arc::clone(&clock), Arc::clone(&random));
        let mastery = MasteryEngine::new(EngineParts {
            items: Arc::clone(&items),
            keys: Arc::clone(&keys),
            clock: Arc::clone(&clock),
            random: Arc::clone(&random),
            work: Some(outbox.clone()),
            persons: parts.persons,
            counts: parts.counts,
            cache: parts.cache,
        });
        mastery.prepare().await?;
        let queues = Queues::new(Arc::clone(&items), Arc::clone(&clock), outbox.clone());
        let workers = Workers::new(
            queues.clone(),
            outbox.clone(),
            Arc::clone(&clock),
            Arc::clone(&random),
            parts.workers,
        );
        let schedules = Schedules::new(Arc::clone(&items), Arc::clone(&clock), outbox.clone());
        let alerts = Alerts::new(
            Arc::clone(&items),
            Arc::clone(&clock),
            outbox.clone(),
            sinks,
            webhook.is_some(),
        );
        if let Some(webhook) = &webhook {
            webhook.register(&workers);
        }
        jobs::register(JobParts {
            engine: &mastery,
            items: &items,
            outbox: &outbox,
            workers: &workers,
            schedules: &schedules,
            alerts: &alerts,
        })?;
        Ok(Arc::new(Platform {
            mastery,
            audit: AuditLog::new(Arc::clone(&items), Arc::clone(&random)),
            outbox,
            queues,
            workers,
            schedules,
            alerts,
            idempotency: Idempotency::new(items, Arc::clone(&clock), random),
            limits: RateLimits::new(keys, clock),
        }))
    }

    /// The same, and works in the background from now on. To be called within a runtime.
    ///
    /// # Errors
    /// If the tables cannot be made.
    pub async fn start(parts: PlatformParts) -> Result<Arc<Platform>> {
        let platform = Platform::prepare(parts).await?;
        platform.workers.start();
        platform.schedules.start();
        Ok(platform)
    }

    /// Runs all due schedules and jobs once; returns how many jobs were tried. For tests and for
    /// programs that work in turns.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn turn(&self) -> Result<u64> {
        self.schedules.tick().await?;
        self.workers.run_due().await
    }

    /// Stops all background work, and returns when nothing runs any more.
    pub async fn stop(&self) {
        self.schedules.stop().await;
        self.workers.stop().await;
    }
}
