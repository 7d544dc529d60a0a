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

/// The version of a record that another thread updates meanwhile.
const ANY: u32 = u32::MAX;

/// One call, and what it writes or has to find.
///
/// All are drawn before the clock starts: to draw one from a million by popularity, and to know its version,
/// are a dozen misses of the processor's cache, which are no engine's business.
#[derive(Clone, Copy)]
struct Call {
    id: u32,
    version: u32,
    is_update: bool,
}

impl Call {
    fn run<E: Engine>(self, engine: &E, values: &mut Values, value_len: usize) -> Outcome<()> {
        let Call { id, version, is_update } = self;
        if is_update {
            return engine.put(&values.record(id, version), Durability::Os);
        }
        let right = engine.get(&BenchKey::of(id), |value| {
            looks_like(value, id, value_len)
                && (version == ANY || value[4..8] == version.to_le_bytes())
        })?;
        match (right, version) {
            (Some(true), _) => Ok(()),
            (_, ANY) => Err(format!("record {id} is not there").into()),
            _ => Err(format!("record {id} is not at version {version}").into()),
        }
    }
}

/// What a thread will do. A record is updated by one thread only, which so knows the version that a read of
/// it has to find; a read of another thread's record is checked for being that record.
fn plan(
    zipf: &Zipf,
    mut rng: Rng,
    size: Size,
    thread: u32,
    threads: u32,
    updates_percent: u32,
) -> Vec<Call> {
    let mut versions = vec![0u32; size.records as usize];
    let mut call = || {
        let id = zipf.draw(&mut rng);
        if rng.below(100) < updates_percent {
            let id = id - id % threads + thread;
            versions[id as usize] += 1;
            return Call { id, version: versions[id as usize], is_update: true };
        }
        let version = if id % threads == thread { versions[id as usize] } else { ANY };
        Call { id, version, is_update: false }
    };
    (0..size.reads / threads).map(|_| call()).collect()
}

/// `threads` threads, of whose calls `updates_percent` in a hundred are puts.
pub fn run<E: Engine>(
    dir: &Path,
    size: Size,
    seed: u64,
    threads: u32,
    updates_percent: u32,
) -> Outcome<Measured> {
    let zipf = Zipf::new(size.records, seed + 2);
    let plans: Vec<Vec<Call>> = (0..threads)
        .map(|thread| {
            let rng = Rng::new(seed + 3 + u64::from(thread));
            plan(&zipf, rng, size, thread, threads, updates_percent)
        })
        .collect();
    let engine = read::loaded::<E>(dir, size, seed)?;
    let (done, elapsed) = on_threads(&plans, |_, calls| {
        let mut values = Values::new(1, size.value_len);
        let mut latencies_ns = Vec::with_capacity(calls.len());
        let start = Instant::now();
        let mut last = start;
        for call in calls {
            call.run(&engine, &mut values, size.value_len)?;
            let now = Instant::now();
            latencies_ns.push(nanos(now - last));
            last = now;
            if now - start > TIME_MAX {
                break;
            }
        }
        Ok(latencies_ns)
    })?;
    let mut versions = vec![0; size.records as usize];
    for (calls, latencies_ns) in plans.iter().zip(&done) {
        for &Call { id, version, is_update } in &calls[..latencies_ns.len()] {
            if is_update {
                versions[id as usize] = version;
            }
        }
    }
    for (id, &version) in (0..).zip(&versions) {
        expect_value(&engine, id, version, size.value_len)?;
    }
    engine.close()?;

    let mut all_ns: Vec<u32> = done.into_iter().flatten().collect();
    all_ns.sort_unstable();
    Ok(Measured {
        per_second: Some(all_ns.len() as f64 / elapsed.as_secs_f64()),
        p99_us: quantile(&all_ns, 0.99).map(|ns| ns / 1e3),
        p999_us: quantile(&all_ns, 0.999).map(|ns| ns / 1e3),
        ..Measured::default()
    })
}
