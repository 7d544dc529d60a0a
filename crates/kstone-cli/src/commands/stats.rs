//! `kstone stats`: what the database holds, and what this process did to it.

use anyhow::Result;
use kstone_core::{Engine, StripeStats};
use serde_json::{Value, json};

use crate::Outcome;
use crate::args::{Measure, Stats};
use crate::heatmap;
use crate::output::{Output, bytes, count, counted, micros};

pub fn run(engine: &Engine, args: &Stats, out: &mut Output) -> Result<Outcome> {
    let stats = engine.stats();
    if args.json {
        out.line(as_json(engine, &stats)?.to_string())?;
        return Ok(Outcome::Done);
    }
    section(out, "holds", &holds(engine, &stats)?)?;
    let mut done = activity(&stats);
    if done.iter().all(|(_, value)| value == NOTHING) {
        done = vec![("nothing yet", "these counters start when a process opens it".to_owned())];
    }
    section(out, "since it was opened", &done)?;
    let (title, unit, show): (_, _, fn(u64) -> String) = match args.by {
        Measure::Bytes => ("bytes in each of the 256 stripes", "a stripe", bytes),
        Measure::Records => ("records in each of the 256 stripes", "records", count),
        Measure::Files => ("files of each of the 256 stripes", "files", count),
        Measure::Gets => ("gets from each of the 256 stripes", "gets", count),
        Measure::Writes => ("writes to each of the 256 stripes", "writes", count),
    };
    let values: Vec<u64> = stats.stripes.iter().map(|stripe| measured(stripe, args.by)).collect();
    out.line(out.bold(title))?;
    for line in heatmap::lines(&values, unit, show, out) {
        out.line(line.trim_end())?;
    }
    if args.stripes {
        out.line("")?;
        list(&stats.stripes, out)?;
    }
    Ok(Outcome::Done)
}

fn measured(stripe: &StripeStats, by: Measure) -> u64 {
    match by {
        Measure::Bytes => stripe.data_bytes,
        Measure::Records => stripe.records,
        Measure::Files => stripe.files,
        Measure::Gets => stripe.gets,
        Measure::Writes => stripe.writes,
    }
}

type Rows = Vec<(&'static str, String)>;

fn section(out: &mut Output, title: &str, rows: &Rows) -> Result<()> {
    out.line(out.bold(title))?;
    for (name, value) in rows {
        let name = out.faint(&format!("  {name:<22}"));
        out.line(format!("{name}{value}"))?;
    }
    out.line("")?;
    Ok(())
}

fn holds(engine: &Engine, stats: &kstone_core::Stats) -> Result<Rows> {
    let total = &stats.total;
    let used = stats.stripes.iter().filter(|stripe| stripe.entries > 0).count() as u64;
    let space = match total.data_bytes {
        0 => String::new(),
        data => format!(" ({:.0} % of the data)", (total.file_bytes as f64 / data as f64) * 100.0),
    };
    let mut rows = vec![
        ("records", format!("{} in {}", count(total.records), counted(used, "stripe", "stripes"))),
        ("keys and values", bytes(total.data_bytes)),
        (
            "in files",
            format!(
                "{} in {}{}",
                bytes(total.file_bytes),
                counted(total.files, "file", "files"),
                if total.files > 0 { space.as_str() } else { "" }
            ),
        ),
        (
            "levels",
            format!(
                "{}; {} in level 0; a get asks at most {} sources",
                total.levels,
                counted(total.l0_files, "file", "files"),
                stats.read_amplification_max(),
            ),
        ),
        ("memtables, log", format!("{}, {}", bytes(stats.memtable_bytes), bytes(stats.log_bytes))),
    ];
    if let Some(at_ms) = engine.next_expiry_ms()? {
        rows.push(("next expiry", crate::time::moment(at_ms)));
    }
    Ok(rows)
}

const NOTHING: &str = "–";

fn activity(stats: &kstone_core::Stats) -> Rows {
    let or_nothing =
        |happened: bool, text: String| if happened { text } else { NOTHING.to_owned() };
    let total = &stats.total;
    let cache_reads = stats.cache_hits + stats.cache_misses;
    let filter_answers = stats.filter_useful + stats.filter_false_positives;
    let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
    vec![
        (
            "written",
            or_nothing(
                stats.commits > 0,
                format!(
                    "{} in {}, {}",
                    counted(total.writes, "record", "records"),
                    counted(stats.commits, "commit", "commits"),
                    bytes(stats.user_bytes)
                ),
            ),
        ),
        (
            "write amplification",
            or_nothing(
                stats.user_bytes > 0,
                format!(
                    "{:.1} (log {}, flush {}, compaction {})",
                    stats.write_amplification(),
                    bytes(stats.log_bytes_written),
                    bytes(stats.flush_bytes),
                    bytes(stats.compaction_write_bytes)
                ),
            ),
        ),
        (
            "syncs",
            or_nothing(
                stats.syncs > 0,
                format!(
                    "{}; {:.1} commits each; half under {}, 99 % under {}",
                    count(stats.syncs),
                    stats.commits_per_sync(),
                    micros(stats.sync_us_quantile(0.5)),
                    micros(stats.sync_us_quantile(0.99))
                ),
            ),
        ),
        (
            "flush, compaction",
            or_nothing(
                stats.flushes + stats.compactions + stats.compaction_moves > 0,
                format!(
                    "{}, {} and {}",
                    counted(stats.flushes, "flush", "flushes"),
                    counted(stats.compactions, "compaction", "compactions"),
                    counted(stats.compaction_moves, "move", "moves")
                ),
            ),
        ),
        (
            "stalls",
            or_nothing(
                stats.stalls > 0,
                format!(
                    "{}, {} in all, the longest {}",
                    count(stats.stalls),
                    micros(stats.stalled_us),
                    micros(stats.longest_stall_us)
                ),
            ),
        ),
        ("gets", or_nothing(total.gets > 0, count(total.gets))),
        (
            "block cache",
            or_nothing(
                cache_reads > 0,
                format!(
                    "{:.1} % of {} found in it; holds {}",
                    percent(stats.cache_hits, cache_reads),
                    counted(cache_reads, "read", "reads"),
                    bytes(stats.cache_bytes)
                ),
            ),
        ),
        (
            "filters",
            or_nothing(
                filter_answers > 0,
                format!(
                    "{:.1} % of {} for absent keys answered without a read",
                    percent(stats.filter_useful, filter_answers),
                    counted(filter_answers, "question", "questions")
                ),
            ),
        ),
    ]
}

fn list(stripes: &[StripeStats], out: &mut Output) -> Result<()> {
    let title = format!(
        "{:>6} {:>10} {:>10} {:>10} {:>6} {:>4} {:>7} {:>10}",
        "stripe", "records", "data", "on disk", "files", "L0", "levels", "in memory"
    );
    out.line(out.bold(&title))?;
    for (stripe, s) in stripes.iter().enumerate().filter(|(_, s)| s.entries > 0) {
        out.line(format!(
            "{stripe:>6} {:>10} {:>10} {:>10} {:>6} {:>4} {:>7} {:>10}",
            count(s.records),
            bytes(s.data_bytes),
            bytes(s.file_bytes),
            s.files,
            s.l0_files,
            s.levels,
            bytes(s.memtable_bytes),
        ))?;
    }
    Ok(())
}

fn as_json(engine: &Engine, stats: &kstone_core::Stats) -> Result<Value> {
    let id = hex::encode(engine.id());
    let stripes: Vec<Value> = stats.stripes.iter().map(stripe_json).collect();
    Ok(json!({
        "path": engine.path().to_string_lossy(),
        "id": id,
        "version": engine.applied_seq(),
        "next_expiry": engine.next_expiry_ms()?.map(crate::time::moment),
        "total": stripe_json(&stats.total),
        "stripes": stripes,
        "read_amplification_max": stats.read_amplification_max(),
        "log_bytes": stats.log_bytes,
        "since_open": {
            "user_bytes": stats.user_bytes,
            "log_bytes_written": stats.log_bytes_written,
            "write_amplification": (stats.user_bytes > 0).then(|| stats.write_amplification()),
            "commits": stats.commits,
            "syncs": stats.syncs,
            "sync_us_p50": stats.sync_us_quantile(0.5),
            "sync_us_p99": stats.sync_us_quantile(0.99),
            "flushes": stats.flushes,
            "flush_bytes": stats.flush_bytes,
            "compactions": stats.compactions,
            "compaction_moves": stats.compaction_moves,
            "compaction_read_bytes": stats.compaction_read_bytes,
            "compaction_write_bytes": stats.compaction_write_bytes,
            "ingest_bytes": stats.ingest_bytes,
            "file_read_bytes": stats.file_read_bytes,
            "cache_hits": stats.cache_hits,
            "cache_misses": stats.cache_misses,
            "cache_bytes": stats.cache_bytes,
            "filter_useful": stats.filter_useful,
            "filter_false_positives": stats.filter_false_positives,
            "stalls": stats.stalls,
            "stalled_us": stats.stalled_us,
            "longest_stall_us": stats.longest_stall_us,
        },
    }))
}

fn stripe_json(s: &StripeStats) -> Value {
    json!({
        "records": s.records,
        "entries": s.entries,
        "data_bytes": s.data_bytes,
        "file_bytes": s.file_bytes,
        "files": s.files,
        "l0_files": s.l0_files,
        "levels": s.levels,
        "memtable_bytes": s.memtable_bytes,
        "gets": s.gets,
        "writes": s.writes,
        "bytes_written": s.bytes_written,
        "bytes_rewritten": s.bytes_rewritten,
    })
}
