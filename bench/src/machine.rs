//! What the benchmark asks the machine: the date, what it runs on, memory, disk space, and how
//! long a sync takes with no engine in between.

use crate::clock;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a reader of the results needs to know about where they come from.
#[derive(Serialize, Deserialize)]
pub struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
    /// The median of an append of 4 KiB and an `fdatasync`, in microseconds: the floor under a
    /// durable commit of one writer.
    pub sync_us: f64,
    /// How long it takes to read the clock, in nanoseconds: part of every call that is timed by itself.
    /// Runs of older builds have none.
    #[serde(default)]
    clock_ns: Option<f64>,
}

impl Machine {
    /// Looks around; `dir` is on the disk to be measured. Fails where the clock cannot be believed.
    pub fn describe(dir: &Path) -> io::Result<Self> {
        let clock_ns = clock::read_ns()?;
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name"));
        Ok(Machine {
            cpu: cpu.map_or("unknown", |name| name.trim_start_matches(['\t', ' ', ':'])).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| "unknown".to_owned(), |release| release.trim().to_owned()),
            sync_us: sync_us(dir)?,
            clock_ns: Some(clock_ns),
        })
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Machine { cpu, cores, kernel, sync_us, clock_ns } = self;
        write!(f, "{cpu}, {cores} cores, Linux {kernel}; append and fdatasync: {sync_us:.0} µs")?;
        match clock_ns {
            Some(clock_ns) => write!(f, "; reading the clock: {clock_ns:.0} ns"),
            None => Ok(()),
        }
    }
}

fn sync_us(dir: &Path) -> io::Result<f64> {
    let path = dir.join("sync-probe");
    let mut file = File::create(&path)?;
    let mut times_us = Vec::new();
    for _ in 0..101 {
        let start = Instant::now();
        file.write_all(&[0x5a; 4096])?;
        file.sync_data()?;
        times_us.push(start.elapsed().as_secs_f64() * 1e6);
    }
    fs::remove_file(&path)?;
    times_us.sort_by(f64::total_cmp);
    Ok(times_us[times_us.len() / 2])
}

/// The folder of everything that is built: `target/release/kstone-bench` keeps what it makes in
/// `target`, on the disk that holds the sources and never committed.
pub fn build_dir() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let dir = program.ancestors().nth(2);
    Ok(dir.ok_or_else(|| io::Error::other("the program has no folder"))?.to_owned())
}

/// The most memory this process has had in RAM, in bytes; zero where the kernel does not say.
pub fn peak_memory_bytes() -> u64 {
    memory_bytes("self", "VmHWM:")
}

/// A line of a process's status that counts memory, in bytes; zero where the kernel does not say.
pub fn memory_bytes(process: &str, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|found| found.strip_prefix(line))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The processor time that a process has used, all its threads together, to the hundredth of a
/// second.
pub fn cpu_time(process: &str) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is a name in brackets that may hold anything; user and system time are
    // fields 14 and 15, in hundredths on every Linux.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}

/// The bytes that this process has caused to be written to the disk: what it wrote to files in the
/// page cache counts when it makes a page dirty, so bytes written over while they wait count once.
pub fn written_bytes() -> io::Result<u64> {
    let counts = fs::read_to_string("/proc/self/io")?;
    let count = counts.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    count
        .and_then(|count| count.parse().ok())
        .ok_or_else(|| io::Error::other("/proc/self/io does not say what was written"))
}

/// The files in a folder and those below it.
pub fn file_count(dir: &Path) -> io::Result<u64> {
    let mut count = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        count += match entry.file_type()?.is_dir() {
            true => file_count(&entry.path())?,
            false => 1,
        };
    }
    Ok(count)
}

/// What a folder takes on the disk, in bytes: allocated blocks, so that a file's reserved but
/// unwritten length does not count.
pub fn disk_bytes(dir: &Path) -> io::Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += match metadata.is_dir() {
            true => disk_bytes(&entry.path())?,
            false => metadata.blocks() * 512,
        };
    }
    Ok(total)
}

/// Now, in UTC, as `2026-01-31T2359Z`: sorts by time and may be part of a file's name.
pub fn timestamp() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H%MZ").to_string()
}
