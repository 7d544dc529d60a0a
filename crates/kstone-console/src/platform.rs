//! The learning platform.

use kstone_learn::engine::MasteryEngine;
use kstone_learn::guard::{Idempotency, RateLimits};
use kstone_learn::work::{Alerts, Queues, Schedules, Workers};

/// The learning platform.
#[derive(Debug)]
pub struct Platform {
    /// Mastery.
    pub engine: MasteryEngine,
    /// Work that waits.
    pub queues: Queues,
    /// Who does it.
    pub workers: Workers,
    /// What is done by the clock.
    pub schedules: Schedules,
    /// Alerts.
    pub alerts: Alerts,
    /// Requests that came before.
    pub idempotency: Idempotency,
    /// How often clients may ask.
    pub limits: RateLimits,
}
