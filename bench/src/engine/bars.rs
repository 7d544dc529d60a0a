//! What is wanted of the engine: which figure of which workload is printed, and beside whom it is
//! held.

use super::child::Run;
use super::engines::EngineName;
use super::workload::Workload;

/// Something measured in a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Operations a second.
    Speed,
    /// Point reads a second, after the fill of the large rows.
    ReadSpeed,
    /// The 99.9th percentile of one call.
    P999,
    /// Processor time of a fill, background included.
    Cpu,
    /// What the process gave to the disk, over what it was given.
    WriteAmplification,
    /// The folder's size.
    Disk,
    /// Memory.
    Memory,
    /// From opening to the first answer.
    Reopen,
}

impl Figure {
    /// Its value in a run.
    pub fn of(self, run: &Run) -> Option<f64> {
        let measured = &run.measured;
        match self {
            Figure::Speed => measured.per_second,
            Figure::ReadSpeed => measured.reads_per_second,
            Figure::P999 => measured.p999_us,
            Figure::Cpu => measured.cpu_s_per_million,
            Figure::WriteAmplification => measured.write_amplification,
            Figure::Disk => Some(run.disk_bytes as f64 / 1e6),
            Figure::Memory => measured.memory_bytes.map(|bytes| bytes as f64 / 1e6),
            Figure::Reopen => measured.reopen_ms,
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Figure::Speed | Figure::ReadSpeed)
    }

    /// What it counts.
    pub fn unit(self, workload: Workload) -> &'static str {
        match self {
            Figure::Speed => workload.unit(),
            Figure::ReadSpeed => "reads/s",
            Figure::P999 => "µs p99.9",
            Figure::Cpu => "CPU s/M records",
            Figure::WriteAmplification => "bytes/byte",
            Figure::Disk => "MB on disk",
            Figure::Memory => "MB memory",
            Figure::Reopen => "ms to open",
        }
    }

    /// What is put behind the workload's name where it is not the speed.
    pub fn suffix(self) -> &'static str {
        match self {
            Figure::Speed => "",
            Figure::ReadSpeed => ": random read",
            Figure::P999 => ": p99.9",
            Figure::Cpu => ": CPU time",
            Figure::WriteAmplification => ": write amplification",
            Figure::Disk => ": bytes on disk",
            Figure::Memory => ": memory",
            Figure::Reopen => ": reopen",
        }
    }
}

/// Whom a figure is held beside.
#[derive(Clone, Copy)]
pub enum Against {
    /// The best of all peers.
    Best,
    /// The best of those that are built as ours is.
    BestLsm,
    /// RocksDB.
    RocksDb,
    /// LMDB.
    Lmdb,
}

impl Against {
    /// Whether the peer is one of them.
    pub fn includes(self, peer: EngineName) -> bool {
        match self {
            Against::Best => true,
            Against::BestLsm => peer.is_lsm(),
            Against::RocksDb => peer.as_str() == "rocksdb",
            Against::Lmdb => peer.as_str() == "lmdb",
        }
    }
}

/// A ratio, ours to theirs, that is wanted: at least, or at most where less is better. Without a
/// number, the ratio is printed and nothing is wanted of it.
pub struct Bar {
    /// Whom to.
    pub against: Against,
    /// How much.
    pub wanted: Option<f64>,
}

/// One line of the table.
pub struct Line {
    /// Of which workload.
    pub workload: Workload,
    /// Which figure.
    pub figure: Figure,
    /// What is wanted of it; at least one entry.
    pub bars: &'static [Bar],
}

const fn bar(against: Against, wanted: f64) -> Bar {
    Bar { against, wanted: Some(wanted) }
}

const fn line(workload: Workload, figure: Figure, bars: &'static [Bar]) -> Line {
    Line { workload, figure, bars }
}

const ONLY_SHOWN: &[Bar] = &[Bar { against: Against::Best, wanted: None }];
const READ_HIT: &[Bar] = &[bar(Against::BestLsm, 2.0), bar(Against::Lmdb, 0.9)];
const GROUPED: &[Bar] = &[bar(Against::Best, 2.0)];
const FILL: &[Bar] = &[bar(Against::Best, 1.5)];
const CPU: &[Bar] = &[bar(Against::RocksDb, 0.8)];
const MIXED: &[Bar] = &[bar(Against::Best, 1.5)];
const NO_WORSE: &[Bar] = &[bar(Against::RocksDb, 1.0)];
const LITTLE_MORE: &[Bar] = &[bar(Against::RocksDb, 1.1)];

/// The table, in the order of its lines.
pub const LINES: &[Line] = &[
    line(Workload::Durable1, Figure::Speed, &[bar(Against::Best, 1.0)]),
    line(Workload::Durable8, Figure::Speed, GROUPED),
    line(Workload::Durable32, Figure::Speed, GROUPED),
    line(Workload::Durable64, Figure::Speed, GROUPED),
    line(Workload::Fill1, Figure::Speed, FILL),
    line(Workload::Fill1, Figure::Cpu, CPU),
    line(Workload::Fill1, Figure::Memory, LITTLE_MORE),
    line(Workload::Fill2, Figure::Speed, FILL),
    line(Workload::Fill2, Figure::Cpu, CPU),
    line(Workload::FillSoon, Figure::Speed, ONLY_SHOWN),
    line(Workload::FillBatch, Figure::Speed, &[bar(Against::Best, 1.3)]),
    line(Workload::FillBatch, Figure::Cpu, CPU),
    line(Workload::Read1, Figure::Speed, READ_HIT),
    line(Workload::Read2, Figure::Speed, READ_HIT),
    line(Workload::ReadMiss, Figure::Speed, &[bar(Against::Best, 1.0)]),
    line(Workload::Range20, Figure::Speed, &[bar(Against::BestLsm, 2.0), bar(Against::Lmdb, 0.7)]),
    line(Workload::Scan, Figure::Speed, &[bar(Against::BestLsm, 1.0), bar(Against::Lmdb, 0.5)]),
    line(Workload::Zipf1, Figure::Speed, MIXED),
    line(Workload::Zipf1, Figure::P999, NO_WORSE),
    line(Workload::Zipf2, Figure::Speed, MIXED),
    line(Workload::Zipf2, Figure::P999, NO_WORSE),
    line(Workload::ZipfReads, Figure::Speed, &[bar(Against::Best, 1.2)]),
    line(Workload::ZipfReads, Figure::P999, NO_WORSE),
    line(Workload::Compacted, Figure::Disk, LITTLE_MORE),
    line(Workload::Idle, Figure::Memory, LITTLE_MORE),
    line(Workload::ReopenKilled, Figure::Reopen, NO_WORSE),
    line(Workload::Large, Figure::Speed, &[bar(Against::Best, 1.2)]),
    line(Workload::Large, Figure::ReadSpeed, &[bar(Against::BestLsm, 1.0)]),
    line(Workload::Large, Figure::WriteAmplification, NO_WORSE),
    line(Workload::Large, Figure::Cpu, ONLY_SHOWN),
    line(Workload::Large, Figure::Memory, LITTLE_MORE),
    line(Workload::Large, Figure::Reopen, ONLY_SHOWN),
    line(Workload::Ingest, Figure::Speed, NO_WORSE),
];
