//! The tables of `items`, its closing line of JSON, and the samples that are kept.

use super::footprint::Footprint;
use super::{Size, door, embedded};
use crate::Outcome;
use crate::figures::{median, spread, thousands};
use crate::machine::Machine;
use serde::Serialize;

/// Ours, in the columns.
pub const OURS: &str = "keystone";

/// One run of one workload on one database, or the part of a round that it was.
#[derive(Clone, Serialize)]
pub struct Run {
    per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_cpu_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_cpu_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_bytes: Option<u64>,
    peak_memory_bytes: u64,
}

impl From<embedded::Run> for Run {
    fn from(run: embedded::Run) -> Self {
        Run {
            per_second: run.per_second,
            p50_us: None,
            p99_us: None,
            server_cpu_us: None,
            client_cpu_us: None,
            start_ms: None,
            disk_bytes: Some(run.disk_bytes),
            peak_memory_bytes: run.peak_memory_bytes,
        }
    }
}

impl Run {
    /// One workload of a server's round.
    pub fn of(round: &door::Round, sample: &door::Sample) -> Self {
        Run {
            per_second: sample.per_second,
            p50_us: Some(sample.p50_us),
            p99_us: Some(sample.p99_us),
            server_cpu_us: Some(sample.server_cpu_us),
            client_cpu_us: Some(sample.client_cpu_us),
            start_ms: Some(round.start_ms),
            disk_bytes: None,
            peak_memory_bytes: round.peak_memory_bytes,
        }
    }
}

/// Every run of one workload on one database.
#[derive(Serialize)]
pub struct Cell {
    /// Which.
    pub database: &'static str,
    /// One per round.
    pub runs: Vec<Run>,
}

impl Cell {
    fn median_of(&self, measure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        median(self.runs.iter().filter_map(measure).collect())
    }

    fn per_second(&self) -> Option<f64> {
        self.median_of(|run| Some(run.per_second))
    }

    fn spread(&self) -> f64 {
        spread(&self.runs.iter().map(|run| run.per_second).collect::<Vec<_>>())
    }
}

/// Every run of one workload.
#[derive(Serialize)]
pub struct Row {
    /// Which.
    pub workload: &'static str,
    /// One per database.
    pub cells: Vec<Cell>,
}

impl Row {
    /// A row without runs.
    pub fn new(workload: &'static str) -> Self {
        Row { workload, cells: vec![] }
    }

    /// Adds a run of a database.
    pub fn add(&mut self, database: &'static str, run: Run) {
        match self.cells.iter_mut().find(|cell| cell.database == database) {
            Some(cell) => cell.runs.push(run),
            None => self.cells.push(Cell { database, runs: vec![run] }),
        }
    }

    fn cell(&self, database: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.database == database)
    }

    /// How many times faster ours is.
    fn ratio_to(&self, peer: &str) -> Option<f64> {
        let ours = self.cell(OURS)?.per_second()?;
        Some(ours / self.cell(peer)?.per_second()?)
    }
}

/// All results, as they are saved.
#[derive(Serialize)]
pub struct Results {
    /// When the benchmark started.
    pub started: String,
    /// Where.
    pub machine: Machine,
    /// How much of everything.
    pub size: Size,
    /// One per workload.
    pub rows: Vec<Row>,
    /// What is not a speed; not taken when only some workloads or databases were asked for.
    pub footprint: Option<Footprint>,
}

/// A ratio that the project wants to keep.
struct Bar {
    workload: &'static str,
    peer: &'static str,
    wanted: f64,
}

const BARS: &[Bar] = &[
    Bar { workload: "embedded get", peer: "dynoxide", wanted: 5.0 },
    Bar { workload: "embedded query of 20", peer: "dynoxide", wanted: 5.0 },
    Bar { workload: "embedded put, interval", peer: "dynoxide", wanted: 5.0 },
    Bar { workload: "GetItem", peer: "bare-hyper", wanted: 0.6 },
    Bar { workload: "GetItem, signature checked", peer: "bare-hyper", wanted: 0.5 },
    Bar { workload: "GetItem", peer: "dynoxide", wanted: 5.0 },
    Bar { workload: "GetItem", peer: "dynamodb-local", wanted: 10.0 },
    Bar { workload: "PutItem, sync", peer: "dynoxide", wanted: 5.0 },
    Bar { workload: "PutItem, sync", peer: "dynamodb-local", wanted: 10.0 },
];

/// A figure beside what is wanted of it, as the closing line has it.
#[derive(Serialize)]
struct Verdict {
    what: String,
    measured: f64,
    wanted: String,
    holds: bool,
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

impl Results {
    fn verdicts(&self) -> Vec<Verdict> {
        let of = |bar: &Bar| {
            let row = self.rows.iter().find(|row| row.workload == bar.workload)?;
            let measured = row.ratio_to(bar.peer)?;
            Some(Verdict {
                what: format!("{}, ours to {}", bar.workload, bar.peer),
                measured: rounded(measured),
                wanted: format!("at least {}", bar.wanted),
                holds: measured >= bar.wanted,
            })
        };
        let mut verdicts: Vec<Verdict> = BARS.iter().filter_map(of).collect();
        if let Some(footprint) = &self.footprint {
            let at_most = |what: &str, measured: f64, limit: f64| Verdict {
                what: what.to_owned(),
                measured: rounded(measured),
                wanted: format!("at most {limit}"),
                holds: measured <= limit,
            };
            let Footprint { binary_bytes, idle_memory_bytes, index_cost } = footprint;
            let mb = |bytes: &u64| *bytes as f64 / 1e6;
            verdicts.extend([
                at_most("index records per put, new item", index_cost.new, 1.0),
                at_most("index records per put, key kept", index_cost.kept, 1.0),
                at_most("index records per put, key moved", index_cost.moved, 2.0),
                at_most("idle memory, MB", mb(idle_memory_bytes), 20.0),
                at_most("release binary, MB", mb(binary_bytes), 25.0),
            ]);
        }
        verdicts
    }

    /// The tables: speeds, then what they cost, then what was wanted.
    pub fn print_tables(&self) {
        let mut columns: Vec<&str> = Vec::new();
        for cell in self.rows.iter().flat_map(|row| &row.cells) {
            if !columns.contains(&cell.database) {
                columns.push(cell.database);
            }
        }
        // Ours stands first whoever took the first turn.
        columns.sort_by_key(|&name| name != OURS);
        let header = |label: &str| {
            let names = columns.iter().map(|name| format!("{name:>20}"));
            format!("{label:<32}{}", names.collect::<String>())
        };

        println!("\n{}", header("requests/s: medians (spread)"));
        for row in &self.rows {
            let mut line = format!("{:<32}", row.workload);
            for &name in &columns {
                let text = row.cell(name).and_then(|cell| {
                    let speed = thousands(cell.per_second()?);
                    Some(format!("{speed} ({:.0}%)", cell.spread() * 100.0))
                });
                line += &format!("{:>20}", text.unwrap_or("-".into()));
            }
            println!("{line}");
        }

        println!("\n{}", header("ours / theirs"));
        for row in &self.rows {
            let ratio = |name: &&str| {
                let ratio = row.ratio_to(name).filter(|_| *name != OURS);
                format!("{:>20}", ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")))
            };
            println!("{:<32}{}", row.workload, columns.iter().map(ratio).collect::<String>());
        }

        type Measure = fn(&Run) -> Option<f64>;
        let costs: [(&str, Measure); 7] = [
            ("p50, µs", |run| run.p50_us),
            ("p99, µs", |run| run.p99_us),
            ("server's processor, µs/request", |run| run.server_cpu_us),
            ("client's processor, µs/request", |run| run.client_cpu_us),
            ("start to first answer, ms", |run| run.start_ms),
            ("on disk, KiB", |run| run.disk_bytes.map(|bytes| bytes as f64 / 1024.0)),
            ("peak memory, KiB", |run| Some(run.peak_memory_bytes as f64 / 1024.0)),
        ];
        for (label, measure) in costs {
            let value = |row: &Row, name: &str| row.cell(name)?.median_of(measure);
            if self.rows.iter().all(|row| columns.iter().all(|name| value(row, name).is_none())) {
                continue;
            }
            println!("\n{}", header(label));
            for row in &self.rows {
                let values: Vec<_> = columns.iter().map(|name| value(row, name)).collect();
                if values.iter().all(Option::is_none) {
                    continue;
                }
                let texts =
                    values.iter().map(|value| format!("{:>20}", value.map_or("-".into(), short)));
                println!("{:<32}{}", row.workload, texts.collect::<String>());
            }
        }

        let verdicts = self.verdicts();
        if !verdicts.is_empty() {
            println!();
        }
        for Verdict { what, measured, wanted, holds } in verdicts {
            let sign = if holds { "holds " } else { "MISSED" };
            println!("{sign}  {what:<52}{measured:>10.2}  ({wanted})");
        }
    }

    /// The last line of output, for programs.
    pub fn closing_line(&self) -> Outcome<String> {
        #[derive(Serialize)]
        struct Speed<'a> {
            workload: &'a str,
            per_second: serde_json::Map<String, serde_json::Value>,
        }
        #[derive(Serialize)]
        struct Closing<'a> {
            bench: &'static str,
            rows: Vec<Speed<'a>>,
            bars: Vec<Verdict>,
        }
        let speed = |row: &'_ Row| {
            let speeds = row.cells.iter().map(|cell| {
                let speed = cell.per_second().map_or(0.0, f64::round);
                (cell.database.to_owned(), speed.into())
            });
            speeds.collect()
        };
        let rows = self
            .rows
            .iter()
            .map(|row| Speed { workload: row.workload, per_second: speed(row) })
            .collect();
        Ok(serde_json::to_string(&Closing { bench: "items", rows, bars: self.verdicts() })?)
    }
}

/// Small numbers keep a digit after the point.
fn short(number: f64) -> String {
    if number < 100.0 { format!("{number:.1}") } else { thousands(number) }
}
