//! The workloads: what is done to an engine, what of it is timed, and how its answers are checked.
//!
//! Each runs in a process and a folder of its own ([`super::child`]), those that only read in one
//! together. A workload returns what it measured only after the answers were checked; a wrong one
//! ends the whole benchmark.

mod durable;
mod fill;
mod footprint;
mod large;
mod mixed;
mod read;

pub use footprint::write_until_killed;

use super::child::Request;
use super::dataset::{BenchKey, JOINED_LEN, LONG_VALUE_LEN, VALUE_LEN, Values};
use super::dataset::{fingerprint, value_of};
use super::engines::{Budget, Durability, Engine};
use crate::Outcome;
use crate::random::shuffled;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Records in one batch.
const BATCH_LEN: usize = 1000;

/// What is done to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// One put, synced before it returns; one writer.
    Durable1,
    /// The same with 8 writers.
    Durable8,
    /// The same with 32 writers.
    Durable32,
    /// The same with 64 writers.
    Durable64,
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
    Zipf1,
    /// The same with 2 threads.
    Zipf2,
    /// The same with 1 thread, one update in 20.
    ZipfReads,
    /// What all records take on the disk after a full compaction.
    Compacted,
    /// The memory of a process with an empty database.
    Idle,
    /// Opening a database whose process was killed with a full log.
    ReopenKilled,
    /// Many records in little memory: a fill, random reads and ranges, and opening it again.
    Large,
    /// As many, in key order, by the fastest way in.
    Ingest,
}

/// A workload and the length of the values it uses: one part of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// What is done.
    pub workload: Workload,
    /// With values of how many bytes.
    pub value_len: usize,
}

/// How much of everything.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Size {
    /// Records in the database.
    pub records: u32,
    /// Bytes of each value.
    pub value_len: usize,
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

/// What one run of a workload found; what a workload does not measure is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Measured {
    /// Records written, read or visited per second.
    pub per_second: Option<f64>,
    /// The 99th percentile of one call.
    pub p99_us: Option<f64>,
    /// The 99.9th percentile of one call.
    pub p999_us: Option<f64>,
    /// The longest call.
    pub longest_ms: Option<f64>,
    /// The 99.9th percentile of a small overwrite and its `fdatasync`, by somebody else on the same disk
    /// meanwhile.
    pub disk_p999_us: Option<f64>,
    /// How long the engine then worked on until at rest; what a fill left for later.
    pub settle_s: Option<f64>,
    /// Processor time of the whole process for a million records, until at rest.
    pub cpu_s_per_million: Option<f64>,
    /// Bytes that the process gave to the disk for each byte of keys and values.
    pub write_amplification: Option<f64>,
    /// Memory of the process at the end of the timed part, the benchmark's own lists taken off.
    pub memory_bytes: Option<u64>,
    /// Files in the folder.
    pub files: Option<u64>,
    /// Point reads per second that followed.
    pub reads_per_second: Option<f64>,
    /// Ranges per second that followed.
    pub ranges_per_second: Option<f64>,
    /// From opening the database to its first answer.
    pub reopen_ms: Option<f64>,
    /// Bytes on the disk at the end for each second of the timed part.
    pub bytes_per_second: Option<f64>,
    /// Commits for each sync of the log, as the engine counts them.
    pub commits_per_sync: Option<f64>,
    /// Blocks of records looked into for each key that is not there, as the engine counts them.
    pub blocks_per_miss: Option<f64>,
}

impl Workload {
    const ALL: &[Workload] = &[
        Workload::Durable1,
        Workload::Durable8,
        Workload::Durable32,
        Workload::Durable64,
        Workload::Fill1,
        Workload::Fill2,
        Workload::FillSoon,
        Workload::FillBatch,
        Workload::Read1,
        Workload::Read2,
        Workload::ReadMiss,
        Workload::Range20,
        Workload::Scan,
        Workload::Zipf1,
        Workload::Zipf2,
        Workload::ZipfReads,
        Workload::Compacted,
        Workload::Idle,
        Workload::ReopenKilled,
        Workload::Large,
        Workload::Ingest,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Workload::Durable1 => "durable commit, 1 writer",
            Workload::Durable8 => "durable commit, 8 writers",
            Workload::Durable32 => "durable commit, 32 writers",
            Workload::Durable64 => "durable commit, 64 writers",
            Workload::Fill1 => "random fill, 1 thread",
            Workload::Fill2 => "random fill, 2 threads",
            Workload::FillSoon => "random fill, log within ms",
            Workload::FillBatch => "random fill, batches of 1000",
            Workload::Read1 => "random read, hit, 1 thread",
            Workload::Read2 => "random read, hit, 2 threads",
            Workload::ReadMiss => "random read, miss",
            Workload::Range20 => "20 consecutive sort keys",
            Workload::Scan => "full scan",
            Workload::Zipf1 => "50/50 zipfian, 1 thread",
            Workload::Zipf2 => "50/50 zipfian, 2 threads",
            Workload::ZipfReads => "95/5 zipfian, 1 thread",
            Workload::Compacted => "compacted",
            Workload::Idle => "empty database",
            Workload::ReopenKilled => "killed with a full log",
            Workload::Large => "large fill",
            Workload::Ingest => "large ingest, sorted",
        }
    }

    /// What one unit of `per_second` is.
    pub fn unit(self) -> &'static str {
        match self {
            Workload::Durable1 | Workload::Durable8 | Workload::Durable32 | Workload::Durable64 => {
                "commits/s"
            }
            Workload::Range20 => "ranges/s",
            Workload::Read1 | Workload::Read2 | Workload::ReadMiss => "reads/s",
            Workload::Zipf1 | Workload::Zipf2 | Workload::ZipfReads => "ops/s",
            _ => "records/s",
        }
    }

    /// Whether it reads a database that was loaded before and leaves it as it is, so that several
    /// may follow one another on one.
    pub fn only_reads(self) -> bool {
        matches!(
            self,
            Workload::Read1
                | Workload::Read2
                | Workload::ReadMiss
                | Workload::Range20
                | Workload::Scan
        )
    }

    /// Whether it is about reads that find everything in memory, also while something else is written.
    pub fn is_warm(self) -> bool {
        self.only_reads() || self.is_mixed()
    }

    /// Whether it reads and updates.
    pub fn is_mixed(self) -> bool {
        matches!(self, Workload::Zipf1 | Workload::Zipf2 | Workload::ZipfReads)
    }

    /// Whether it has the size, the rounds and the switch of the large rows.
    pub fn is_large(self) -> bool {
        matches!(self, Workload::Large | Workload::Ingest)
    }

    /// Whether the bare loop of syncs is measured beside it.
    pub fn wants_bare_syncs(self) -> bool {
        matches!(self, Workload::Durable1 | Workload::Durable64 | Workload::Large)
    }

    /// Runs the workload in the request's empty folder.
    pub fn run<E: Engine>(self, request: &Request) -> Outcome<Measured> {
        let Request { dir, size, seed, .. } = request;
        let (size, seed) = (*size, *seed);
        match self {
            Workload::Durable1 => durable::run::<E>(dir, size, seed, 1),
            Workload::Durable8 => durable::run::<E>(dir, size, seed, 8),
            Workload::Durable32 => durable::run::<E>(dir, size, seed, 32),
            Workload::Durable64 => durable::run::<E>(dir, size, seed, 64),
            Workload::Fill1 => fill::run::<E>(dir, size, seed, 1, 1, Durability::Os),
            Workload::Fill2 => fill::run::<E>(dir, size, seed, 2, 1, Durability::Os),
            Workload::FillSoon => fill::run::<E>(dir, size, seed, 1, 1, Durability::Soon),
            Workload::FillBatch => fill::run::<E>(dir, size, seed, 1, BATCH_LEN, Durability::Os),
            Workload::Zipf1 => mixed::run::<E>(dir, size, seed, 1, 50),
            Workload::Zipf2 => mixed::run::<E>(dir, size, seed, 2, 50),
            Workload::ZipfReads => mixed::run::<E>(dir, size, seed, 1, 5),
            Workload::Compacted => footprint::compacted::<E>(dir, size, seed),
            Workload::Idle => footprint::idle::<E>(dir, size),
            Workload::ReopenKilled => footprint::reopen_killed::<E>(request),
            Workload::Large => large::fill_then_read::<E>(dir, size, seed),
            Workload::Ingest => large::ingest::<E>(dir, size),
            Workload::Read1
            | Workload::Read2
            | Workload::ReadMiss
            | Workload::Range20
            | Workload::Scan => self.read(&read::loaded::<E>(dir, size, seed)?, size, seed),
        }
    }

    /// Runs several workloads that only read on one database, which is loaded once.
    pub fn run_reads<E: Engine>(reads: &[Workload], request: &Request) -> Outcome<Vec<Measured>> {
        let engine = read::loaded::<E>(&request.dir, request.size, request.seed)?;
        let run = |workload: &Workload| workload.read(&engine, request.size, request.seed);
        let measured = reads.iter().map(run).collect::<Outcome<_>>()?;
        engine.close()?;
        Ok(measured)
    }

    fn read<E: Engine>(self, engine: &E, size: Size, seed: u64) -> Outcome<Measured> {
        match self {
            Workload::Read1 => read::points(engine, size, seed, 1, true),
            Workload::Read2 => read::points(engine, size, seed, 2, true),
            Workload::ReadMiss => read::points(engine, size, seed, 1, false),
            Workload::Range20 => read::ranges(engine, size, seed),
            Workload::Scan => read::scans(engine, size),
            other => Err(format!("{} is not a reading", other.as_str()).into()),
        }
    }
}

/// With long values, only what their length changes most.
const WITH_LONG_VALUES: &[Workload] = &[
    Workload::Durable1,
    Workload::Fill1,
    Workload::Read1,
    Workload::Range20,
    Workload::Scan,
    Workload::Zipf1,
];

impl Case {
    /// Everything, in the order in which it is printed.
    pub fn all() -> Vec<Case> {
        let short = Workload::ALL.iter().map(|&workload| Case { workload, value_len: VALUE_LEN });
        let long =
            WITH_LONG_VALUES.iter().map(|&workload| Case { workload, value_len: LONG_VALUE_LEN });
        short.chain(long).collect()
    }

    /// Every workload that a value's length matters to, at one length.
    pub fn all_of_length(value_len: usize) -> Vec<Case> {
        Workload::ALL.iter().map(|&workload| Case { workload, value_len }).collect()
    }

    /// The name that is printed and parsed.
    pub fn name(self) -> String {
        match self.value_len {
            VALUE_LEN => self.workload.as_str().to_owned(),
            LONG_VALUE_LEN => format!("{}, 1 KiB", self.workload.as_str()),
            other => format!("{}, {other} B", self.workload.as_str()),
        }
    }
}

impl Size {
    fn budget(self) -> Budget {
        Budget {
            memory_bytes: self.memory_bytes,
            background_threads: self.background_threads,
            every_write_syncs: false,
        }
    }

    /// Bytes of all keys and values.
    fn user_bytes(self) -> u64 {
        u64::from(self.records) * (JOINED_LEN + self.value_len) as u64
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

/// The value below which a share of a sorted list lies.
pub fn quantile(sorted: &[u32], share: f64) -> Option<f64> {
    let nth = (sorted.len() as f64 * share) as usize;
    sorted.get(nth.min(sorted.len().saturating_sub(1))).map(|&value| f64::from(value))
}

/// Nanoseconds, in the four bytes that a long list of them can afford: 4.3 seconds at most.
pub fn nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

/// Puts every record, in random order, in batches.
fn write_in_batches<E: Engine>(engine: &E, size: Size, seed: u64) -> Outcome<()> {
    let mut values = Values::new(BATCH_LEN, size.value_len);
    shuffled(size.records, seed)
        .chunks(BATCH_LEN)
        .try_for_each(|ids| engine.batch(&values.records(ids, 0), Durability::Os))
}

fn expect_value<E: Engine>(engine: &E, id: u32, version: u32, value_len: usize) -> Outcome<()> {
    let expected = value_of(id, version, value_len);
    match engine.get(&BenchKey::of(id), |value| *value == expected)? {
        Some(true) => Ok(()),
        Some(false) => Err(format!("record {id} has another value than version {version}").into()),
        None => Err(format!("record {id} is lost").into()),
    }
}

fn expect_scan<E: Engine>(engine: &E, records: u32, value_len: usize) -> Outcome<()> {
    let mut values = Values::new(1, value_len);
    let expected = (0..records).fold(0u64, |sum, id| {
        let record = values.record(id, 0);
        sum.wrapping_add(fingerprint(record.key.joined(), record.value))
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

/// How long it takes from opening a closed database to its first answer, in milliseconds.
fn reopen<E: Engine>(dir: &Path, size: Size) -> Outcome<(E, f64)> {
    let start = Instant::now();
    let engine = E::open(dir, size.budget())?;
    if engine.get(&BenchKey::of(size.records / 2), |_| ())?.is_none() {
        return Err("a record is lost after opening again".into());
    }
    Ok((engine, start.elapsed().as_secs_f64() * 1e3))
}
