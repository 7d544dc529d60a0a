//! Commits that are on the disk before they return.

use super::{Measured, Size, expect_value, nanos, on_threads, quantile};
use crate::Outcome;
use crate::engine::dataset::Values;
use crate::engine::engines::{Budget, Durability, Engine};
use crate::random::shuffled;
use std::path::Path;
use std::time::{Duration, Instant};

/// Single puts by `writers` threads, each with records of its own, for a fixed time.
pub fn run<E: Engine>(dir: &Path, size: Size, seed: u64, writers: usize) -> Outcome<Measured> {
    let budget = Budget { every_write_syncs: true, ..size.budget() };
    let engine = E::open(dir, budget)?;
    let ids = shuffled(size.records, seed);
    let shares: Vec<&[u32]> = ids.chunks_exact(ids.len() / writers).take(writers).collect();

    let before = engine.counters();
    let (latencies, elapsed) = on_threads(&shares, |_, share| {
        let deadline = Instant::now() + Duration::from_millis(size.durable_ms);
        let mut values = Values::new(1, size.value_len);
        let mut latencies_ns = Vec::new();
        loop {
            let nth = latencies_ns.len();
            let record = values.record(share[nth % share.len()], (nth / share.len()) as u32);
            let start = Instant::now();
            engine.put(&record, Durability::Sync)?;
            latencies_ns.push(nanos(start.elapsed()));
            if Instant::now() >= deadline {
                return Ok(latencies_ns);
            }
        }
    })?;
    let commits_per_sync = before.zip(engine.counters()).map(|(before, after)| {
        (after.commits - before.commits) as f64 / (after.syncs - before.syncs).max(1) as f64
    });

    // Every acknowledged write is there for who opens the database next.
    engine.close()?;
    let engine = E::open(dir, budget)?;
    for (share, acknowledged) in shares.iter().zip(&latencies) {
        let rounds = acknowledged.len() / share.len();
        for (nth, &id) in share.iter().enumerate().take(acknowledged.len()) {
            let last = if nth < acknowledged.len() % share.len() { rounds } else { rounds - 1 };
            expect_value(&engine, id, last as u32, size.value_len)?;
        }
    }
    engine.close()?;

    let mut all_ns: Vec<u32> = latencies.into_iter().flatten().collect();
    all_ns.sort_unstable();
    Ok(Measured {
        per_second: Some(all_ns.len() as f64 / elapsed.as_secs_f64()),
        p99_us: quantile(&all_ns, 0.99).map(|ns| ns / 1e3),
        p999_us: quantile(&all_ns, 0.999).map(|ns| ns / 1e3),
        commits_per_sync,
        ..Measured::default()
    })
}
