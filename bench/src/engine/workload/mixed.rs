//! Reads and updates of records that are drawn by popularity.

use super::{Measured, Size, expect_value, nanos, on_threads, quantile, read};
use crate::Outcome;
use crate::engine::dataset::{BenchKey, Values, Zipf, looks_like};
use crate::engine::engines::{Durability, Engine};
use crate::random::Rng;
use std::path::Path;
use std::time::{Duration, Instant};

/// Who is slow does fewer calls, and not for minutes.
const TIME_MAX: Duration = Duration::from_secs(10);

/// `threads` threads, of whose calls `updates_percent` in a hundred are puts.
///
/// A record is updated by one thread only, which so knows the version that a read of it has to
/// find; a read of another thread's record is checked for being that record.
pub fn run<E: Engine>(
    dir: &Path,
    size: Size,
    seed: u64,
    threads: u32,
    updates_percent: u32,
) -> Outcome<Measured> {
    let engine = read::loaded::<E>(dir, size, seed)?;
    let zipf = Zipf::new(size.records, seed + 2);
    let shares = vec![size.reads / threads; threads as usize];
    let (done, elapsed) = on_threads(&shares, |thread, &share| {
        let mut rng = Rng::new(seed + 3 + thread as u64);
        let mut values = Values::new(1, size.value_len);
        let mut versions = vec![0u32; size.records as usize];
        let mut latencies_ns = Vec::with_capacity(share as usize);
        let start = Instant::now();
        let mut last = start;
        for _ in 0..share {
            let id = zipf.draw(&mut rng);
            if rng.below(100) < updates_percent {
                let id = id - id % threads + thread as u32;
                versions[id as usize] += 1;
                engine.put(&values.record(id, versions[id as usize]), Durability::Os)?;
            } else {
                let version = (id % threads == thread as u32).then(|| versions[id as usize]);
                let right = engine.get(&BenchKey::of(id), |value| {
                    looks_like(value, id, size.value_len)
                        && version.is_none_or(|version| value[4..8] == version.to_le_bytes())
                })?;
                if right != Some(true) {
                    return Err(format!("record {id} is not at version {version:?}").into());
                }
            }
            let now = Instant::now();
            latencies_ns.push(nanos(now - last));
            last = now;
            if now - start > TIME_MAX {
                break;
            }
        }
        Ok((latencies_ns, versions))
    })?;
    for id in 0..size.records {
        let version = done[(id % threads) as usize].1[id as usize];
        expect_value(&engine, id, version, size.value_len)?;
    }
    engine.close()?;

    let mut all_ns: Vec<u32> =
        done.into_iter().flat_map(|(latencies_ns, _)| latencies_ns).collect();
    all_ns.sort_unstable();
    Ok(Measured {
        per_second: Some(all_ns.len() as f64 / elapsed.as_secs_f64()),
        p99_us: quantile(&all_ns, 0.99).map(|ns| ns / 1e3),
        p999_us: quantile(&all_ns, 0.999).map(|ns| ns / 1e3),
        ..Measured::default()
    })
}
