//! Loads the catalogues of a server and enforces them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kstone::Database;
use kstone_keyspace::{Governor, GovernorOptions, UnknownKeys};
use kstone_redis::Redis;
use tokio::runtime::Handle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::settings::Settings;
use crate::catalogues;
use crate::commands::count_anew;
use crate::output::{Output, count, counted};

/// What `--keyspace` says so that nothing is in force.
const NONE: &str = "none";
/// How often counts are kept.
const SAVED_EVERY: Duration = Duration::from_secs(1);
/// How many entries of the index of persons are looked at each time: a million in half an hour.
const SWEPT_AT_ONCE: u32 = 500;
/// How often, at most, a server speaks of keys that no pattern declares.
const WARNED_EVERY: Duration = Duration::from_secs(60);

/// Puts the keyspace in force that the settings name, or else the one that the database had, and
/// counts what is stored if that is due. Gives what is to be said about it, too.
pub fn begin(
    settings: &Settings,
    db: &Database,
    out: &mut Output,
) -> Result<(Option<Arc<Governor>>, Vec<String>)> {
    let mut lines = Vec::new();
    let mut names = settings.keyspace.clone();
    if names.is_empty() && settings.demo {
        names.push(catalogues::SHIPPED_NAME.to_owned());
    }
    if names.iter().any(|name| name == NONE) {
        if Governor::suspend(db)? {
            lines.push(
                "keyspace  none: what is written is neither checked, counted nor indexed"
                    .to_owned(),
            );
        }
        return Ok((None, lines));
    }
    let (keyspace, unknown_keys) = match names.is_empty() {
        false => (catalogues::read(&names)?, UnknownKeys::default()),
        true => match Governor::remembered(db)? {
            Some(remembered) => remembered,
            None => return Ok((None, lines)),
        },
    };
    let unknown_keys = settings.unknown_keys.unwrap_or(unknown_keys);
    let options = GovernorOptions { unknown_keys, ..GovernorOptions::default() };
    let governor = Governor::govern(db, Arc::new(keyspace), options)
        .context("cannot put the keyspace in force")?;
    if !governor.is_counted() {
        // Of a database that is new there is nothing to say.
        if let Some(said) = count_anew(&governor, db, out)? {
            lines.push(format!("keyspace  {said}"));
        }
    }
    governor.prune_if_due().context("cannot tidy the index of persons")?;
    lines.push(line(&governor, unknown_keys));
    Ok((Some(governor), lines))
}

fn line(governor: &Governor, unknown_keys: UnknownKeys) -> String {
    let keyspace = governor.keyspace();
    let applications: Vec<&str> = keyspace.catalogues().iter().map(|it| &*it.application).collect();
    format!(
        "keyspace  {} of {}, unknown keys: {unknown_keys}",
        counted(keyspace.patterns().len() as u64, "pattern", "patterns"),
        applications.join(", "),
    )
}

/// Keeps the counts and sweeps the index of persons now and then, for as long as the runtime runs.
pub fn keep_saved(governor: Arc<Governor>, redis: Option<Redis>, runtime: &Handle) {
    runtime.spawn(async move {
        let mut ticks = interval(SAVED_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut warned, mut warned_at) = (0, None::<Instant>);
        loop {
            ticks.tick().await;
            let (governor_too, redis) = (Arc::clone(&governor), redis.clone());
            // A database that is behind with its flushes may keep it waiting.
            let saved = tokio::task::spawn_blocking(move || {
                governor_too.save()?;
                redis.map(|redis| governor_too.sweep(&redis, SWEPT_AT_ONCE)).transpose()
            })
            .await;
            // An error here also occurs on the write path, which reports it.
            drop(saved);
            let seen = governor.unknown();
            let is_time = warned_at.is_none_or(|at| at.elapsed() >= WARNED_EVERY);
            if seen.writes > warned && is_time {
                let example = seen.examples.last().map_or("", String::as_str);
                eprintln!(
                    "kstone: {} writes to keys that no pattern declares, such as {example}",
                    count(seen.writes)
                );
                (warned, warned_at) = (seen.writes, Some(Instant::now()));
            }
        }
    });
}
