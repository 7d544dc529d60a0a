//! What the disk does with no engine in between: the limits that the engines are held against. And how
//! often a processor is away from who has nothing to wait for, which is part of every engine's p99.9.
//! Measured in the same rounds as the rows that name them, because disks have moods, and neighbours do.

use super::workload::{nanos, quantile};
use crate::Outcome;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const BLOCK_LEN: usize = 4096;
const BLOCKS: u64 = 4096;
const CHUNK_LEN: usize = 1 << 20;
/// Often enough for a percentile, seldom enough to be no load.
const PROBE_EVERY: Duration = Duration::from_millis(5);

/// How long the loop of [`HeldUp`] goes on.
const HELD_UP_TIME: Duration = Duration::from_secs(1);

/// A loop that only reads the clock, and how often a second it was held up for so long: by the system, or
/// by the host of a virtual machine.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct HeldUp {
    /// More than 60 µs.
    pub over_60us: f64,
    /// More than 100 µs.
    pub over_100us: f64,
    /// More than 200 µs.
    pub over_200us: f64,
}

impl HeldUp {
    /// Runs the loop.
    pub fn measure() -> HeldUp {
        let start = Instant::now();
        let mut last = start;
        let mut gaps_ns = Vec::new();
        while last - start < HELD_UP_TIME {
            let now = Instant::now();
            let gap_ns = nanos(now - last);
            // Only these: a list of all would grow, and to move it would hold up the loop.
            if gap_ns > 60_000 {
                gaps_ns.push(gap_ns);
            }
            last = now;
        }
        HeldUp::of(&gaps_ns, last - start)
    }

    fn of(gaps_ns: &[u32], time: Duration) -> HeldUp {
        let per_second = |least_ns: u32| {
            gaps_ns.iter().filter(|&&gap_ns| gap_ns > least_ns).count() as f64 / time.as_secs_f64()
        };
        HeldUp {
            over_60us: per_second(60_000),
            over_100us: per_second(100_000),
            over_200us: per_second(200_000),
        }
    }
}

/// A loop that overwrites a block of a preallocated file and calls `fdatasync`.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct BareSyncs {
    /// Blocks per second.
    pub per_second: f64,
    /// The median of one overwrite and its sync.
    pub p50_us: f64,
    /// The 99th percentile; kept runs of older builds have none.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// The 99.9th percentile.
    pub p999_us: f64,
}

impl BareSyncs {
    /// Runs the loop for a fixed time in the folder `dir`.
    pub fn measure(dir: &Path, time_ms: u64) -> Outcome<BareSyncs> {
        let path = dir.join("bare-syncs");
        let file = preallocated(&path)?;
        let mut times_ns = Vec::new();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(time_ms) {
            times_ns.push(overwrite_and_sync(&file, times_ns.len() as u64)?);
        }
        let elapsed = start.elapsed();
        fs::remove_file(&path)?;
        times_ns.sort_unstable();
        let quantile_us = |share| quantile(&times_ns, share).unwrap_or(0.0) / 1e3;
        Ok(BareSyncs {
            per_second: times_ns.len() as f64 / elapsed.as_secs_f64(),
            p50_us: quantile_us(0.5),
            p99_us: Some(quantile_us(0.99)),
            p999_us: quantile_us(0.999),
        })
    }
}

fn preallocated(path: &Path) -> Outcome<File> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    for _ in 0..BLOCKS {
        file.write_all(&[0x5a; BLOCK_LEN])?;
    }
    file.sync_all()?;
    Ok(file)
}

/// How long that took, in nanoseconds.
fn overwrite_and_sync(file: &File, nth: u64) -> std::io::Result<u32> {
    let before = Instant::now();
    file.write_all_at(&[0x5a; BLOCK_LEN], nth % BLOCKS * BLOCK_LEN as u64)?;
    file.sync_data()?;
    Ok(nanos(before.elapsed()))
}

/// The same, done now and then while an engine is at work: what a sync takes on the disk as it is then.
pub struct SyncProbe {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<Vec<u32>>>>,
}

impl Drop for SyncProbe {
    /// Also of a run that failed: nothing is left behind.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}

impl SyncProbe {
    /// Begins, on a thread of its own, with a file of its own.
    pub fn start(path: PathBuf) -> Outcome<SyncProbe> {
        let file = preallocated(&path)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut times_ns = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                times_ns.push(overwrite_and_sync(&file, times_ns.len() as u64)?);
                std::thread::sleep(PROBE_EVERY);
            }
            Ok(times_ns)
        });
        Ok(SyncProbe { path, is_over, thread: Some(thread) })
    }

    /// Ends; answers the 99.9th percentile, in microseconds.
    pub fn finish(mut self) -> Outcome<Option<f64>> {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or("the probe has ended")?;
        let mut times_ns = thread.join().map_err(|_| "the probe panicked")??;
        times_ns.sort_unstable();
        Ok(quantile(&times_ns, 0.999).map(|ns| ns / 1e3))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_held_up_for_longer_is_held_up_for_as_long() {
        let held_up = HeldUp::of(&[40, 60_000, 60_001, 150_000, 900_000], Duration::from_secs(2));
        let HeldUp { over_60us, over_100us, over_200us } = held_up;
        assert_eq!((over_60us, over_100us, over_200us), (1.5, 1.0, 0.5));
    }
}
