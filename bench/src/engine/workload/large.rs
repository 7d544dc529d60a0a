//! Many records: filled in random order with little memory, or in key order by the fastest way.

use super::fill::{Cost, memory_without_lists};
use super::{Measured, Size, expect_scan, nanos, quantile, read, reopen};
use crate::Outcome;
use crate::engine::dataset::Values;
use crate::engine::engines::{Durability, Engine};
use crate::engine::limits::SyncProbe;
use crate::machine;
use crate::random::shuffled;
use std::path::Path;
use std::time::{Duration, Instant};

/// A fill by single puts, random reads and ranges of what it left, and opening it again.
pub fn fill_then_read<E: Engine>(dir: &Path, size: Size, seed: u64) -> Outcome<Measured> {
    let ids = shuffled(size.records, seed);
    let engine = E::open(dir, size.budget())?;
    let cost = Cost::begin()?;

    let mut values = Values::new(1, size.value_len);
    let mut latencies_ns = Vec::with_capacity(ids.len());
    let probe = SyncProbe::start(dir.with_extension("probe"))?;
    let start = Instant::now();
    let (mut last, mut longest) = (start, Duration::ZERO);
    for &id in &ids {
        engine.put(&values.record(id, 0), Durability::Os)?;
        let now = Instant::now();
        latencies_ns.push(nanos(now - last));
        longest = longest.max(now - last);
        last = now;
    }
    let elapsed = start.elapsed();
    let disk_p999_us = probe.finish()?;
    // The list of times is as long as that of the records.
    let memory_bytes = memory_without_lists(size).saturating_sub(4 * u64::from(size.records));
    latencies_ns.sort_unstable();
    let start = Instant::now();
    engine.settle()?;
    let settle_s = start.elapsed().as_secs_f64();
    let measured = cost.of(size)?;
    let files = machine::file_count(dir)?;

    let reads = read::points(&engine, size, seed, 1, true)?;
    let ranges = read::ranges(&engine, size, seed)?;
    engine.close()?;
    let (engine, reopen_ms) = reopen::<E>(dir, size)?;
    expect_scan(&engine, size.records, size.value_len)?;
    engine.close()?;
    Ok(Measured {
        per_second: Some(f64::from(size.records) / elapsed.as_secs_f64()),
        p999_us: quantile(&latencies_ns, 0.999).map(|ns| ns / 1e3),
        longest_ms: Some(longest.as_secs_f64() * 1e3),
        disk_p999_us,
        settle_s: Some(settle_s),
        memory_bytes: Some(memory_bytes),
        files: Some(files),
        reads_per_second: reads.per_second,
        ranges_per_second: ranges.per_second,
        reopen_ms: Some(reopen_ms),
        ..measured
    })
}

/// Records that come in key order.
pub fn ingest<E: Engine>(dir: &Path, size: Size) -> Outcome<Measured> {
    let engine = E::open(dir, size.budget())?;
    let cost = Cost::begin()?;
    let start = Instant::now();
    engine.ingest(size.records, size.value_len)?;
    let elapsed = start.elapsed();
    let measured = cost.of(size)?;
    let bytes = machine::disk_bytes(dir)?;
    expect_scan(&engine, size.records, size.value_len)?;
    engine.close()?;
    Ok(Measured {
        per_second: Some(f64::from(size.records) / elapsed.as_secs_f64()),
        bytes_per_second: Some(bytes as f64 / elapsed.as_secs_f64()),
        ..measured
    })
}
