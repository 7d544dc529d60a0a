//! Fills: every record once in random order, what that costs, and what it leaves for later.

use super::{Measured, Size, expect_scan, on_threads};
use crate::Outcome;
use crate::engine::dataset::Values;
use crate::engine::engines::{Durability, Engine};
use crate::machine;
use crate::random::shuffled;
use std::path::Path;
use std::time::Instant;

/// Writes every record, shared by `threads` threads, alone or in batches.
pub fn run<E: Engine>(
    dir: &Path,
    size: Size,
    seed: u64,
    threads: usize,
    batch_len: usize,
    durability: Durability,
) -> Outcome<Measured> {
    let ids = shuffled(size.records, seed);
    let shares: Vec<&[u32]> = ids.chunks(ids.len().div_ceil(threads)).collect();
    let engine = E::open(dir, size.budget())?;
    let cost = Cost::begin()?;

    let (_, elapsed) = on_threads(&shares, |_, share| {
        let mut values = Values::new(batch_len, size.value_len);
        if batch_len == 1 {
            return share.iter().try_for_each(|&id| engine.put(&values.record(id, 0), durability));
        }
        share
            .chunks(batch_len)
            .try_for_each(|ids| engine.batch(&values.records(ids, 0), durability))
    })?;
    let memory_bytes = memory_without_lists(size);
    let start = Instant::now();
    engine.settle()?;
    let settle_s = start.elapsed().as_secs_f64();
    let measured = cost.of(size)?;

    expect_scan(&engine, size.records, size.value_len)?;
    engine.close()?;
    Ok(Measured {
        per_second: Some(f64::from(size.records) / elapsed.as_secs_f64()),
        settle_s: Some(settle_s),
        memory_bytes: Some(memory_bytes),
        ..measured
    })
}

/// The process's memory now, less the list of record numbers that the benchmark keeps.
pub fn memory_without_lists(size: Size) -> u64 {
    machine::memory_bytes("self", "VmRSS:").saturating_sub(4 * u64::from(size.records))
}

/// What a process has used up when a fill begins: it is counted until the engine is at rest, so
/// that work left to background threads counts as much as work done at once.
pub struct Cost {
    cpu_s: f64,
    written_bytes: u64,
}

impl Cost {
    /// Where the process stands now.
    pub fn begin() -> Outcome<Cost> {
        Ok(Cost {
            cpu_s: machine::cpu_time("self")?.as_secs_f64(),
            written_bytes: machine::written_bytes()?,
        })
    }

    /// What was used since then for the records of a fill.
    pub fn of(self, size: Size) -> Outcome<Measured> {
        let now = Cost::begin()?;
        let written = now.written_bytes - self.written_bytes;
        Ok(Measured {
            cpu_s_per_million: Some((now.cpu_s - self.cpu_s) * 1e6 / f64::from(size.records)),
            write_amplification: Some(written as f64 / size.user_bytes() as f64),
            ..Measured::default()
        })
    }
}
