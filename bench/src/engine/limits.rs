//! What the disk does with no engine in between: the limits that the engines are held against.
//! Measured in the same rounds as the rows that name them, because disks have moods.

use super::workload::{nanos, quantile};
use crate::Outcome;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK_LEN: usize = 4096;
const BLOCKS: u64 = 4096;
const CHUNK_LEN: usize = 1 << 20;

/// A loop that overwrites a block of a preallocated file and calls `fdatasync`.
#[derive(Clone, Copy, Serialize)]
pub struct BareSyncs {
    /// Blocks per second.
    pub per_second: f64,
    /// The median of one overwrite and its sync.
    pub p50_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
}

impl BareSyncs {
    /// Runs the loop for a fixed time in the folder `dir`.
    pub fn measure(dir: &Path, time_ms: u64) -> Outcome<BareSyncs> {
        let path = dir.join("bare-syncs");
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
        let block = [0x5a; BLOCK_LEN];
        for _ in 0..BLOCKS {
            file.write_all(&block)?;
        }
        file.sync_all()?;
        let mut times_ns = Vec::new();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(time_ms) {
            let before = Instant::now();
            let nth = times_ns.len() as u64 % BLOCKS;
            file.write_all_at(&block, nth * BLOCK_LEN as u64)?;
            file.sync_data()?;
            times_ns.push(nanos(before.elapsed()));
        }
        let elapsed = start.elapsed();
        fs::remove_file(&path)?;
        times_ns.sort_unstable();
        let quantile_us = |share| quantile(&times_ns, share).unwrap_or(0.0) / 1e3;
        Ok(BareSyncs {
            per_second: times_ns.len() as f64 / elapsed.as_secs_f64(),
            p50_us: quantile_us(0.5),
            p999_us: quantile_us(0.999),
        })
    }
}

/// Bytes per second that a plain loop writes to a new file, synced at its end.
pub fn sequential_bytes_per_second(dir: &Path, bytes: u64) -> Outcome<f64> {
    let path = dir.join("bare-writes");
    let start = Instant::now();
    let mut file = File::create(&path)?;
    let chunk = vec![0x5a; CHUNK_LEN];
    let chunks = (bytes / CHUNK_LEN as u64).max(1);
    for _ in 0..chunks {
        file.write_all(&chunk)?;
    }
    file.sync_all()?;
    let elapsed = start.elapsed();
    fs::remove_file(&path)?;
    Ok((chunks * CHUNK_LEN as u64) as f64 / elapsed.as_secs_f64())
}
