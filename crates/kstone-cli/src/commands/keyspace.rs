//! `kstone keyspace …`: checks, explains and counts declared keys.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use kstone::{Database, Durability};
use kstone_keyspace::{Governor, GovernorOptions, Keyspace, Metrics, PatternMetrics};
use kstone_redis::Redis;
use serde_json::{Value as Json, json};

use crate::Outcome;
use crate::args::keyspace as args;
use crate::json as items;
use crate::output::{Output, bytes, count, counted};
use crate::persons::{self, Call};
use crate::tables::{Tables, is_url};
use crate::{catalogues, database};

/// How many entries of the index of persons are looked at in one step.
const SWEPT_AT_ONCE: u32 = 1000;
/// Where a governor shows what there is.
const TABLE: &str = "kstone.keyspace";

pub fn run(args: &args::Keyspace, out: &mut Output) -> Result<Outcome> {
    match &args.command {
        args::KeyspaceCommand::Check(args) => check(args, out),
        args::KeyspaceCommand::Explain(args) => explain(args, out),
        args::KeyspaceCommand::Docs(args) => docs(args, out),
        args::KeyspaceCommand::Metrics(args) => metrics(args, out),
        args::KeyspaceCommand::Recount(args) => recount(args, out),
    }
}

fn check(args: &args::Check, out: &mut Output) -> Result<Outcome> {
    let files = catalogues::files(&args.files)?;
    let files: Vec<(&str, &str)> =
        files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let report = kstone_keyspace::check(&files);
    out.line(report.to_string())?;
    Ok(if report.is_usable() { Outcome::Done } else { Outcome::No })
}

fn explain(args: &args::Explain, out: &mut Output) -> Result<Outcome> {
    let (keyspace, _) = keyspace_of(&args.which)?;
    let explanation = keyspace.explain(&args.key);
    out.line(explanation.to_string().trim_end())?;
    Ok(if explanation.findings.is_empty() { Outcome::No } else { Outcome::Done })
}

fn docs(args: &args::Docs, out: &mut Output) -> Result<Outcome> {
    if args.which.keyspace.is_empty()
        && let Some(page) = asked(args.which.data.as_deref(), &Call::Docs)?
    {
        out.line(page.trim_end())?;
        return Ok(Outcome::Done);
    }
    let (keyspace, metrics) = keyspace_of(&args.which)?;
    let page = keyspace.docs(|pattern| metrics.as_ref()?.usage(&pattern.full_name()));
    out.line(page.trim_end())?;
    Ok(Outcome::Done)
}

/// What the server says that has this folder open; `None` if there is none.
fn asked(place: Option<&Path>, call: &Call) -> Result<Option<String>> {
    let Some(server) = place.and_then(persons::connect) else { return Ok(None) };
    let answer = server.ask(call, &mut |_| {})?;
    Ok(Some(answer.as_str().unwrap_or_default().to_owned()))
}

/// The keyspace that is meant, and its counts where a database is named.
fn keyspace_of(which: &args::Which) -> Result<(Keyspace, Option<Metrics>)> {
    let named = match which.keyspace.is_empty() {
        false => Some(catalogues::read(&which.keyspace)?),
        true => None,
    };
    let Some(place) = &which.data else {
        let shipped = || catalogues::read(&[catalogues::SHIPPED_NAME.to_owned()]);
        return Ok((named.map_or_else(shipped, Ok)?, None));
    };
    let db = database::open(place)?;
    let governor = Governor::resume(&db)?;
    let metrics = governor.as_ref().map(|governor| governor.metrics());
    let keyspace = match (named, Governor::remembered(&db)?) {
        (Some(keyspace), _) | (None, Some((keyspace, _))) => keyspace,
        (None, None) => bail!("{}", never_governed(&place.display().to_string())),
    };
    Ok((keyspace, metrics))
}

fn never_governed(place: &str) -> String {
    format!(
        "{place} was never governed by a keyspace: name one with --keyspace, or serve it with \
         kstone serve --keyspace"
    )
}

fn metrics(args: &args::Metrics, out: &mut Output) -> Result<Outcome> {
    let place = args.data.display().to_string();
    let found = match asked(Some(&args.data), &Call::Metrics)? {
        Some(item) => Some(Metrics::of_item(&items::item(&item)?)),
        None => stored(&args.data)?,
    };
    let Some(metrics) = found else { bail!("{}", never_governed(&place)) };
    show(&metrics, args, &place, out)
}

/// The stored metrics, of a folder that no process has open, or at a server's URL.
fn stored(place: &Path) -> Result<Option<Metrics>> {
    Ok(match Tables::open(place)? {
        // What is stored is of when it was closed: keys have come closer to their ends since.
        Tables::InFolder(governed, _) => governed.map(|governed| governed.0.metrics()),
        there => match there.get(TABLE, Governor::metrics_key()) {
            Ok(item) => item.as_ref().map(Metrics::of_item),
            Err(_) if !there.names()?.iter().any(|name| name == TABLE) => None,
            Err(error) => return Err(error),
        },
    })
}

fn show(metrics: &Metrics, args: &args::Metrics, place: &str, out: &mut Output) -> Result<Outcome> {
    if args.json {
        out.line(as_json(metrics).to_string())?;
        return Ok(Outcome::Done);
    }
    for line in table(metrics) {
        out.line(line)?;
    }
    match metrics.off_by_changes_max {
        0 => out.line("exact")?,
        off_by => {
            let how = match is_url(&args.data) {
                true => {
                    "stop the server and recount: kstone keyspace recount --data DIR".to_owned()
                }
                false => format!("kstone keyspace recount --data {place}"),
            };
            out.line(format!(
                "may be off by up to {}, which a crash took; to count anew: {how}",
                counted(off_by, "change", "changes")
            ))?;
        }
    }
    if metrics.unknown.writes > 0 {
        out.line(format!(
            "{} to keys that no pattern declares, such as {}",
            counted(metrics.unknown.writes, "write", "writes"),
            metrics.unknown.examples.join(", ")
        ))?;
    }
    Ok(Outcome::Done)
}

/// The patterns of which there is something, in columns.
fn table(metrics: &Metrics) -> Vec<String> {
    let titles = ["pattern", "place", "keys", "bytes", "ends in 1 h", "writes/s"];
    let mut rows = vec![titles.map(str::to_owned)];
    let used = metrics.patterns.iter().filter(|it| it.keys > 0 || it.writes > 0);
    rows.extend(used.map(|it| {
        let about = if it.bytes_are_estimated { "~" } else { "" };
        [
            it.pattern.clone(),
            it.place.clone(),
            count(it.keys),
            format!("{about}{}", bytes(it.bytes)),
            expiring(it),
            format!("{:.1}", it.writes_per_second),
        ]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..titles.len()).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &[String; 6]| {
        let cell = |at: usize| {
            let (text, width) = (&row[at], widths[at]);
            if at < 2 { format!("{text:width$}") } else { format!("{text:>width$}") }
        };
        (0..row.len()).map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// `12`, or `10–14` where the count is not exact.
fn expiring(it: &PatternMetrics) -> String {
    let hour = it.expiring_next_hour;
    match hour.at_least == hour.at_most {
        true => count(hour.likely),
        false => format!("{}–{}", count(hour.at_least), count(hour.at_most)),
    }
}

fn as_json(metrics: &Metrics) -> Json {
    let pattern = |it: &PatternMetrics| {
        json!({
            "pattern": it.pattern,
            "metric": it.metric,
            "place": it.place,
            "keys": it.keys,
            "bytes": it.bytes,
            "bytes_are_estimated": it.bytes_are_estimated,
            "members": it.members,
            "expiring_next_hour": {
                "at_least": it.expiring_next_hour.at_least,
                "likely": it.expiring_next_hour.likely,
                "at_most": it.expiring_next_hour.at_most,
            },
            "writes": it.writes,
            "writes_per_second": it.writes_per_second,
        })
    };
    json!({
        "at_ms": metrics.at_ms,
        "off_by_changes_max": metrics.off_by_changes_max,
        "keys_by_metric": metrics.keys_by_metric(),
        "patterns": metrics.patterns.iter().map(pattern).collect::<Vec<_>>(),
        "unknown": { "writes": metrics.unknown.writes, "examples": metrics.unknown.examples },
    })
}

fn recount(args: &args::Recount, out: &mut Output) -> Result<Outcome> {
    let db = database::open(&args.data)?;
    let governor = match args.keyspace.is_empty() {
        false => {
            let keyspace = Arc::new(catalogues::read(&args.keyspace)?);
            Governor::govern(&db, keyspace, GovernorOptions::default())?
        }
        true => match Governor::resume(&db)? {
            Some(governor) => governor,
            None => bail!("{}", never_governed(&args.data.display().to_string())),
        },
    };
    let said = count_anew(&governor, &db, out)?;
    out.line(said.unwrap_or_else(|| "there is nothing to count".to_owned()))?;
    let mut removed = governor.prune()?;
    if let Some(redis) = Redis::open_if_any(&db)? {
        loop {
            let swept = governor.sweep(&redis, SWEPT_AT_ONCE)?;
            removed += swept.removed;
            if swept.is_done {
                break;
            }
        }
    }
    if removed > 0 {
        let entries = counted(removed, "entry", "entries");
        out.line(format!("removed {entries} about what names others, or nobody, or is gone"))?;
    }
    governor.close()?;
    db.engine().sync()?;
    Ok(Outcome::Done)
}

/// Counts everything by the keyspace in force; says what there was, if there was anything.
pub fn count_anew(governor: &Governor, db: &Database, out: &mut Output) -> Result<Option<String>> {
    let redis = Redis::open_if_any(&db.with_durability(Durability::Os))?;
    let done = governor
        .recount(redis.as_ref(), &mut |done| {
            out.progress(&format!("counted {}", counted(done.items + done.keys, "key", "keys")));
        })
        .context("cannot count and index what is stored")?;
    out.end_progress();
    let is_empty = done.items + done.keys + done.unknown == 0;
    let too_long = match done.too_long {
        0 => String::new(),
        some => format!(
            "; {} too long for the index of persons",
            counted(some, "entry is", "entries are")
        ),
    };
    Ok((!is_empty).then(|| format!(
        "counted {} and {} of Redis by their patterns, with {} in the index of persons; {} outside \
         every pattern{too_long}",
        counted(done.items, "item", "items"),
        counted(done.keys, "key", "keys"),
        counted(done.entries, "entry", "entries"),
        count(done.unknown),
    )))
}
