//! Reads of a database at rest: points that are there and that are not, ranges, and scans.

use super::{Measured, Size, expect_scan, expect_value, on_threads, write_in_batches};
use crate::Outcome;
use crate::engine::dataset::{BenchKey, POSTS_PER_USER, looks_like};
use crate::engine::engines::Engine;
use crate::random::{Rng, shuffled};
use std::path::Path;
use std::time::Instant;

/// Values read by one range query.
const RANGE_LEN: u32 = 20;

/// A database with every record, at rest, and visited once so that what the engine caches is
/// cached.
pub fn loaded<E: Engine>(dir: &Path, size: Size, seed: u64) -> Outcome<E> {
    let engine = E::open(dir, size.budget())?;
    write_in_batches(&engine, size, seed)?;
    engine.settle()?;
    for id in shuffled(size.records, seed + 1) {
        expect_value(&engine, id, 0, size.value_len)?;
    }
    Ok(engine)
}

/// Random point reads by `threads` threads.
pub fn points<E: Engine>(
    engine: &E,
    size: Size,
    seed: u64,
    threads: u32,
    hit: bool,
) -> Outcome<Measured> {
    // For misses, the filters and, on their false positives, the blocks that are looked into; for
    // hits, what an earlier workload of this process pushed out of the cache.
    read_some(engine, size, seed + 2, size.reads / 4, hit)?;
    let shares = vec![size.reads / threads; threads as usize];
    let done = f64::from(shares.iter().sum::<u32>());
    let before = engine.counters();
    let (_, elapsed) = on_threads(&shares, |nth, &share| {
        read_some(engine, size, seed + 3 + nth as u64, share, hit)
    })?;
    let blocks_per_miss = before
        .zip(engine.counters())
        .filter(|_| !hit)
        .map(|(before, after)| (after.blocks - before.blocks) as f64 / done);
    Ok(Measured {
        per_second: Some(done / elapsed.as_secs_f64()),
        blocks_per_miss,
        ..Measured::default()
    })
}

fn read_some<E: Engine>(engine: &E, size: Size, seed: u64, count: u32, hit: bool) -> Outcome<()> {
    let mut rng = Rng::new(seed);
    for _ in 0..count {
        let id = rng.below(size.records);
        let key = if hit { BenchKey::of(id) } else { BenchKey::absent(id) };
        let found = engine.get(&key, |value| looks_like(value, id, size.value_len))?;
        if found != hit.then_some(true) {
            return Err(format!("record {id}: expected a hit: {hit}, found {found:?}").into());
        }
    }
    Ok(())
}

/// Ranges inside random partitions.
pub fn ranges<E: Engine>(engine: &E, size: Size, seed: u64) -> Outcome<Measured> {
    read_ranges(engine, size, seed + 2, size.ranges / 4)?;
    let start = Instant::now();
    read_ranges(engine, size, seed + 3, size.ranges)?;
    let elapsed = start.elapsed();
    Ok(Measured {
        per_second: Some(f64::from(size.ranges) / elapsed.as_secs_f64()),
        ..Measured::default()
    })
}

fn read_ranges<E: Engine>(engine: &E, size: Size, seed: u64, count: u32) -> Outcome<()> {
    let mut rng = Rng::new(seed);
    for _ in 0..count {
        let user = rng.below(size.records / POSTS_PER_USER);
        let first = user * POSTS_PER_USER + rng.below(POSTS_PER_USER - RANGE_LEN + 1);
        let mut next = first;
        let mut in_order = true;
        engine.range(&BenchKey::of(first), RANGE_LEN as usize, |value| {
            in_order &= looks_like(value, next, size.value_len);
            next += 1;
        })?;
        if !in_order || next != first + RANGE_LEN {
            return Err(format!("the range from record {first} gave something else").into());
        }
    }
    Ok(())
}

/// Everything, several times over.
pub fn scans<E: Engine>(engine: &E, size: Size) -> Outcome<Measured> {
    expect_scan(engine, size.records, size.value_len)?;
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
    Ok(Measured {
        per_second: Some(f64::from(size.scans) * f64::from(size.records) / elapsed.as_secs_f64()),
        ..Measured::default()
    })
}
