//! The workloads: what is done to an engine, what of it is timed, and how its answers are checked.
//!
//! Each runs in a process and a folder of its own ([`super::child`]). A workload returns its speed
//! only after the answers were checked; a wrong one ends the whole benchmark.

use super::dataset::{BenchKey, POSTS_PER_USER, Record, Zipf, fingerprint, looks_like, value_of};
use super::engines::{Budget, Durability, Engine};
use crate::Outcome;
use crate::random::{Rng, shuffled};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Records in one batch.
const BATCH_LEN: usize = 1000;
/// Values read by one range query.
const RANGE_LEN: u32 = 20;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// One put, synced before it returns; one writer.
    Durable1,
    /// The same with 8 writers.
    Durable8,
    /// The same with 32 writers.
    Durable32,
    /// Every record once in random order, one put each, not synced.
    Fill1,
    /// The same, shared by 2 threads.
    Fill2,
    /// The same with one thread, the log written in the background where an engine can do that.
    FillSoon,
    /// Every record once in random order, in batches.
    FillBatch,
    /// Random reads of records that exist.
    Read1,
    /// The same with 2 threads.
    Read2,
    /// Random reads of keys that lie between two records.
    ReadMiss,
    /// Consecutive sort keys from a random start.
    Range20,
    /// Every record, once.
    Scan,
    /// Half reads, half updates, of records drawn by popularity.
    Zipf,
}

/// How much of everything.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Size {
    /// Records in the database.
    pub records: u32,
    /// How long durable writers write, in milliseconds.
    pub durable_ms: u64,
    /// Point reads of a read workload, over all its threads.
    pub reads: u32,
    /// Range queries.
    pub ranges: u32,
    /// Passes of the full scan.
    pub scans: u32,
    /// Memory budget, in bytes.
    pub memory_bytes: usize,
    /// Background threads.
    pub background_threads: usize,
}

/// What one run of a workload found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Records written, read or visited per second.
    pub per_second: f64,
    /// The 99th percentile of one call, where calls were timed one by one.
    pub p99_us: Option<f64>,
    /// How long the engine then worked on until at rest; what a fill left for later.
    pub settle_s: Option<f64>,
}

impl Workload {
    /// In the order in which they are printed.
    pub const ALL: &[Workload] = &[
        Workload::Durable1,
        Workload::Durable8,
        Workload::Durable32,
        Workload::Fill1,
        Workload::Fill2,
        Workload::FillSoon,
        Workload::FillBatch,
        Workload::Read1,
        Workload::Read2,
        Workload::ReadMiss,
        Workload::Range20,
        Workload::Scan,
        Workload::Zipf,
    ];

    /// The name that is printed and parsed.
    pub fn as_str(self) -> &'static str {
        match self {
            Workload::Durable1 => "durable commit, 1 writer",
            Workload::Durable8 => "durable commit, 8 writers",
            Workload::Durable32 => "durable commit, 32 writers",
            Workload::Fill1 => "random fill, 1 thread",
            Workload::Fill2 => "random fill, 2 threads",
            Workload::FillSoon => "random fill, log within ms",
            Workload::FillBatch => "random fill, batches of 1000",
            Workload::Read1 => "random read, hit, 1 thread",
            Workload::Read2 => "random read, hit, 2 threads",
            Workload::ReadMiss => "random read, miss",
            Workload::Range20 => "20 consecutive sort keys",
            Workload::Scan => "full scan",
            Workload::Zipf => "50/50 zipfian read/update",
        }
    }

    /// What one unit of `per_second` is.
    pub fn unit(self) -> &'static str {
        match self {
            Workload::Durable1 | Workload::Durable8 | Workload::Durable32 => "commits/s",
            Workload::Range20 => "ranges/s",
            Workload::Fill1 | Workload::Fill2 | Workload::FillSoon | Workload::FillBatch => {
                "records/s"
            }
            Workload::Scan => "records/s",
            Workload::Read1 | Workload::Read2 | Workload::ReadMiss => "reads/s",
            Workload::Zipf => "ops/s",
        }
    }

    /// Runs the workload in the empty folder `dir`.
    pub fn run<E: Engine>(self, dir: &Path, size: Size, seed: u64) -> Outcome<Measured> {
        match self {
            Workload::Durable1 => durable::<E>(dir, size, seed, 1),
            Workload::Durable8 => durable::<E>(dir, size, seed, 8),
            Workload::Durable32 => durable::<E>(dir, size, seed, 32),
            Workload::Fill1 => fill::<E>(dir, size, seed, 1, 1, Durability::Os),
            Workload::Fill2 => fill::<E>(dir, size, seed, 2, 1, Durability::Os),
            Workload::FillSoon => fill::<E>(dir, size, seed, 1, 1, Durability::Soon),
            Workload::FillBatch => fill::<E>(dir, size, seed, 1, BATCH_LEN, Durability::Os),
            Workload::Read1 => reads::<E>(dir, size, seed, 1, true),
            Workload::Read2 => reads::<E>(dir, size, seed, 2, true),
            Workload::ReadMiss => reads::<E>(dir, size, seed, 1, false),
            Workload::Range20 => ranges::<E>(dir, size, seed),
            Workload::Scan => scans::<E>(dir, size, seed),
            Workload::Zipf => zipf::<E>(dir, size, seed),
        }
    }
}

impl Size {
    fn budget(self) -> Budget {
        Budget { memory_bytes: self.memory_bytes, background_threads: self.background_threads }
    }
}

/// Runs `work` on each of `shares` in a thread of its own, all let go at once, and gives back
/// what they returned and the time from the first start to the last end.
fn on_threads<S: Sync, T: Send>(
    shares: &[S],
    work: impl Fn(usize, &S) -> Outcome<T> + Sync,
) -> Outcome<(Vec<T>, Duration)> {
    let start_line = Barrier::new(shares.len());
    let run = |nth: usize, share: &S| -> Outcome<(T, Instant, Instant)> {
        start_line.wait();
        let start = Instant::now();
        let result = work(nth, share)?;
        Ok((result, start, Instant::now()))
    };
    let runs: Vec<_> = std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = shares
            .iter()
            .enumerate()
            .map(|(nth, share)| scope.spawn(move || run(nth, share)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a worker panicked".into())))
            .collect()
    });
    let runs = runs.into_iter().collect::<Outcome<Vec<_>>>()?;
    let first_start = runs.iter().map(|(_, start, _)| *start).min();
    let last_end = runs.iter().map(|(_, _, end)| *end).max();
    let elapsed = last_end.zip(first_start).map(|(end, start)| end - start).unwrap_or_default();
    Ok((runs.into_iter().map(|(result, _, _)| result).collect(), elapsed))
}

fn durable<E: Engine>(dir: &Path, size: Size, seed: u64, writers: usize) -> Outcome<Measured> {
    let engine = E::open(dir, size.budget())?;
    let ids = shuffled(size.records, seed);
    let shares: Vec<&[u32]> = ids.chunks_exact(ids.len() / writers).take(writers).collect();

    let (latencies, elapsed) = on_threads(&shares, |_, share| {
        let deadline = Instant::now() + Duration::from_millis(size.durable_ms);
        let mut latencies_us = Vec::new();
        loop {
            let nth = latencies_us.len();
            let record = Record::new(share[nth % share.len()], (nth / share.len()) as u32);
            let start = Instant::now();
            engine.put(&record, Durability::Sync)?;
            latencies_us.push(start.elapsed().as_secs_f64() * 1e6);
            if Instant::now() >= deadline {
                return Ok(latencies_us);
            }
        }
    })?;

    // Every acknowledged write is there for who opens the database next.
    engine.close()?;
    let engine = E::open(dir, size.budget())?;
    for (share, acknowledged) in shares.iter().zip(&latencies) {
        let rounds = acknowledged.len() / share.len();
        for (nth, &id) in share.iter().enumerate().take(acknowledged.len()) {
            let last = if nth < acknowledged.len() % share.len() { rounds } else { rounds - 1 };
            expect_value(&engine, id, last as u32)?;
        }
    }
    engine.close()?;

    let mut all_us: Vec<f64> = latencies.into_iter().flatten().collect();
    all_us.sort_by(f64::total_cmp);
    Ok(Measured {
        per_second: all_us.len() as f64 / elapsed.as_secs_f64(),
        p99_us: all_us.get(all_us.len() * 99 / 100).copied(),
        settle_s: None,
    })
}

fn fill<E: Engine>(
    dir: &Path,
    size: Size,
    seed: u64,
    threads: usize,
    batch_len: usize,
    durability: Durability,
) -> Outcome<Measured> {
    let engine = E::open(dir, size.budget())?;
    let ids = shuffled(size.records, seed);
    let shares: Vec<&[u32]> = ids.chunks(ids.len().div_ceil(threads)).collect();

    let (_, elapsed) =
        on_threads(&shares, |_, share| write_all(&engine, share, batch_len, durability))?;
    let start = Instant::now();
    engine.settle()?;
    let settle_s = start.elapsed().as_secs_f64();

    expect_scan(&engine, size.records)?;
    engine.close()?;
    Ok(Measured {
        per_second: f64::from(size.records) / elapsed.as_secs_f64(),
        p99_us: None,
        settle_s: Some(settle_s),
    })
}

fn write_all<E: Engine>(
    engine: &E,
    ids: &[u32],
    batch_len: usize,
    durability: Durability,
) -> Outcome<()> {
    if batch_len == 1 {
        return ids.iter().try_for_each(|&id| engine.put(&Record::new(id, 0), durability));
    }
    let mut batch = Vec::with_capacity(batch_len);
    for chunk in ids.chunks(batch_len) {
        batch.clear();
        batch.extend(chunk.iter().map(|&id| Record::new(id, 0)));
        engine.batch(&batch, durability)?;
    }
    Ok(())
}

/// A database with every record, at rest, and visited once so that what the engine caches is
/// cached.
fn loaded<E: Engine>(dir: &Path, size: Size, seed: u64) -> Outcome<E> {
    let engine = E::open(dir, size.budget())?;
    write_all(&engine, &shuffled(size.records, seed), BATCH_LEN, Durability::Os)?;
    engine.settle()?;
    for id in shuffled(size.records, seed + 1) {
        expect_value(&engine, id, 0)?;
    }
    Ok(engine)
}

fn reads<E: Engine>(
    dir: &Path,
    size: Size,
    seed: u64,
    threads: u32,
    hit: bool,
) -> Outcome<Measured> {
    let engine = loaded::<E>(dir, size, seed)?;
    if !hit {
        // The filters and, on their false positives, the blocks that misses look into.
        read_some(&engine, size, seed + 2, size.reads / 4, false)?;
    }
    let shares = vec![size.reads / threads; threads as usize];
    let (_, elapsed) = on_threads(&shares, |nth, &share| {
        read_some(&engine, size, seed + 3 + nth as u64, share, hit)
    })?;
    engine.close()?;
    let done = f64::from(shares.iter().sum::<u32>());
    Ok(Measured { per_second: done / elapsed.as_secs_f64(), ..Measured::default() })
}

fn read_some<E: Engine>(engine: &E, size: Size, seed: u64, count: u32, hit: bool) -> Outcome<()> {
    let mut rng = Rng::new(seed);
    for _ in 0..count {
        let id = rng.below(size.records);
        let key = if hit { BenchKey::of(id) } else { BenchKey::absent(id) };
        let found = engine.get(&key, |value| looks_like(value, id))?;
        if found != hit.then_some(true) {
            return Err(format!("record {id}: expected a hit: {hit}, found {found:?}").into());
        }
    }
    Ok(())
}

fn ranges<E: Engine>(dir: &Path, size: Size, seed: u64) -> Outcome<Measured> {
    let engine = loaded::<E>(dir, size, seed)?;
    let mut rng = Rng::new(seed + 3);
    let start = Instant::now();
    for _ in 0..size.ranges {
        let user = rng.below(size.records / POSTS_PER_USER);
        let first = user * POSTS_PER_USER + rng.below(POSTS_PER_USER - RANGE_LEN + 1);
        let mut next = first;
        let mut in_order = true;
        engine.range(&BenchKey::of(first), RANGE_LEN as usize, |value| {
            in_order &= looks_like(value, next);
            next += 1;
        })?;
        if !in_order || next != first + RANGE_LEN {
            return Err(format!("the range from record {first} gave something else").into());
        }
    }
    let elapsed = start.elapsed();
    engine.close()?;
    Ok(Measured {
        per_second: f64::from(size.ranges) / elapsed.as_secs_f64(),
        ..Measured::default()
    })
}

fn scans<E: Engine>(dir: &Path, size: Size, seed: u64) -> Outcome<Measured> {
    let engine = loaded::<E>(dir, size, seed)?;
    expect_scan(&engine, size.records)?;
    let start = Instant::now();
    for _ in 0..size.scans {
        // As little as proves that every value was delivered and can be read; the check above,
        // untimed, compared every byte.
        let (mut visited, mut ids) = (0u64, 0u64);
        engine.scan(|key, value| {
            std::hint::black_box(key);
            visited += 1;
            ids += value.first_chunk().map_or(0, |id| u64::from(u32::from_le_bytes(*id)));
        })?;
        let records = u64::from(size.records);
        if visited != records || ids != records * (records - 1) / 2 {
            return Err(format!("a scan visited {visited} of {records} records, or others").into());
        }
    }
    let elapsed = start.elapsed();
    engine.close()?;
    Ok(Measured {
        per_second: f64::from(size.scans) * f64::from(size.records) / elapsed.as_secs_f64(),
        ..Measured::default()
    })
}

fn zipf<E: Engine>(dir: &Path, size: Size, seed: u64) -> Outcome<Measured> {
    let engine = loaded::<E>(dir, size, seed)?;
    let zipf = Zipf::new(size.records, seed + 2);
    let mut rng = Rng::new(seed + 3);
    let mut versions = vec![0u32; size.records as usize];
    let start = Instant::now();
    for _ in 0..size.reads {
        let id = zipf.draw(&mut rng);
        let version = &mut versions[id as usize];
        if rng.next().is_multiple_of(2) {
            *version += 1;
            engine.put(&Record::new(id, *version), Durability::Os)?;
        } else if engine.get(&BenchKey::of(id), |value| value[4..8] == version.to_le_bytes())?
            != Some(true)
        {
            return Err(format!("record {id} is not at version {version}").into());
        }
    }
    let elapsed = start.elapsed();
    for (id, &version) in versions.iter().enumerate() {
        expect_value(&engine, id as u32, version)?;
    }
    engine.close()?;
    Ok(Measured {
        per_second: f64::from(size.reads) / elapsed.as_secs_f64(),
        ..Measured::default()
    })
}

fn expect_value<E: Engine>(engine: &E, id: u32, version: u32) -> Outcome<()> {
    let expected = value_of(id, version);
    match engine.get(&BenchKey::of(id), |value| *value == expected)? {
        Some(true) => Ok(()),
        Some(false) => Err(format!("record {id} has another value than version {version}").into()),
        None => Err(format!("record {id} is lost").into()),
    }
}

fn expect_scan<E: Engine>(engine: &E, records: u32) -> Outcome<()> {
    let expected = (0..records).fold(0u64, |sum, id| {
        let record = Record::new(id, 0);
        sum.wrapping_add(fingerprint(record.key.joined(), &record.value))
    });
    let (mut found, mut visited) = (0u64, 0u32);
    engine.scan(|key, value| {
        found = found.wrapping_add(fingerprint(key, value));
        visited += 1;
    })?;
    if visited == records && found == expected {
        return Ok(());
    }
    Err(format!("a scan visited {visited} of {records} records, or other ones").into())
}
