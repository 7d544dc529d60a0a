//! The learning platform of a server: on where its catalogues are in force.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use kstone::Database;
use kstone_base::persons::LocalPersons;
use kstone_base::work::{Alert, AlertSink, Severity, Webhook};
use kstone_core::env::{SystemClock, SystemRandom};
use kstone_keyspace::Governor;
use kstone_keyspace::erasure::Eraser;
use kstone_platform::{Platform, PlatformParts};
use kstone_redis::Redis;
use tokio::runtime::Runtime;

use super::settings::Settings;

/// The catalogues without which it has no keys.
const CATALOGUES: [&str; 2] = ["mastery", "platform"];

/// Starts it, if its catalogues are in force.
pub fn start(
    settings: &Settings,
    db: &Database,
    redis: &Redis,
    governor: &Arc<Governor>,
    eraser: Option<&Arc<Eraser>>,
    runtime: &Runtime,
) -> Result<Option<Arc<Platform>>> {
    let catalogues = governor.keyspace().catalogues();
    let is_in_force = |name: &&str| catalogues.iter().any(|it| &*it.application == *name);
    let webhook = settings.alert_webhook.as_deref().map(Webhook::new).transpose();
    let webhook = webhook.map_err(|error| anyhow!("--alert-webhook: {error}"))?;
    if !CATALOGUES.iter().all(is_in_force) {
        return Ok(None);
    }
    let keys = redis.keys(0).context("Redis has no databases")?;
    let persons = eraser.map(|eraser| {
        let (eraser, governor) = (Arc::clone(eraser), Arc::clone(governor));
        Arc::new(LocalPersons { eraser, governor }) as _
    });
    let parts = PlatformParts {
        persons,
        counts: Some(Arc::clone(governor) as _),
        sinks: vec![Arc::new(ErrorLog)],
        webhook,
        ..PlatformParts::new(
            Arc::new(db.with_durability(settings.console_durability)),
            Arc::new(keys),
            Arc::new(SystemClock::new()),
            Arc::new(SystemRandom),
        )
    };
    let platform = runtime.block_on(Platform::start(parts));
    platform.map(Some).context("cannot start the learning platform")
}

/// Alerts, where the server writes what went wrong.
#[derive(Debug)]
struct ErrorLog;

impl AlertSink for ErrorLog {
    fn raised(&self, alert: &Alert) {
        let severity = match alert.severity {
            Severity::Info => "for information",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        };
        eprintln!("kstone: {severity}: {}", alert.title);
    }
}
