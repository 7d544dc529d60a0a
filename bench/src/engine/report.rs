//! The tables of `engine`, its closing line of JSON, and the samples that are kept.

use super::bars::{Bar, Figure, LINES, Line};
use super::child::Run;
use super::engines::EngineName;
use super::limits::{BareSyncs, HeldUp};
use super::workload::{Case, Size, Workload};
use crate::Outcome;
use crate::figures::{self, median, thousands};
use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// Every run of one workload on one engine.
#[derive(Serialize, Deserialize)]
pub struct Cell {
    /// The engine.
    pub engine: EngineName,
    /// One per round, in order.
    pub runs: Vec<Run>,
}

/// Every run of one workload.
#[derive(Serialize, Deserialize)]
pub struct Row {
    /// The name that is printed.
    pub name: String,
    /// The workload.
    #[serde(flatten)]
    pub case: Case,
    /// One per engine.
    pub cells: Vec<Cell>,
    /// The loop of bare syncs, once a round where the row is held against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bare_syncs: Vec<BareSyncs>,
    /// What a plain loop writes to a new file, once a round where the row is held against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bare_bytes_per_second: Vec<f64>,
    /// The loop that only reads the clock, once a round where the row has a p99.9 of calls without a disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_up: Vec<HeldUp>,
}

/// All results, as they are saved.
#[derive(Serialize, Deserialize)]
pub struct Results {
    /// When the benchmark started.
    pub started: String,
    /// Where.
    pub machine: Machine,
    /// How much of everything.
    pub size: Size,
    /// How much in the large rows.
    pub large_size: Size,
    /// One per workload.
    pub rows: Vec<Row>,
}

/// A row of the closing line: ours beside the best of the peers it is held beside.
#[derive(Serialize)]
struct Verdict {
    workload: String,
    unit: &'static str,
    ours: Option<f64>,
    peer: Option<&'static str>,
    best: Option<f64>,
    /// Ours to theirs: above 1 is good for a speed, below 1 for everything else.
    ratio: Option<f64>,
    wanted: Option<f64>,
    holds: Option<bool>,
}

/// A figure of ours that is held against the disk or a number.
#[derive(Serialize)]
struct Limit {
    what: String,
    measured: f64,
    wanted: String,
    holds: bool,
}

impl Cell {
    fn median_of(&self, measure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        median(self.runs.iter().filter_map(measure).collect())
    }

    fn spread_of(&self, measure: impl Fn(&Run) -> Option<f64>) -> f64 {
        figures::spread(&self.runs.iter().filter_map(measure).collect::<Vec<_>>())
    }
}

impl Row {
    /// A row without runs.
    pub fn new(name: String, case: Case, engines: &[EngineName]) -> Row {
        let cells = engines.iter().map(|&engine| Cell { engine, runs: vec![] }).collect();
        Row {
            name,
            case,
            cells,
            bare_syncs: vec![],
            bare_bytes_per_second: vec![],
            held_up: vec![],
        }
    }

    fn lines(&self) -> impl Iterator<Item = &'static Line> {
        LINES.iter().filter(|line| line.workload == self.case.workload)
    }

    fn ours(&self, measure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        self.cells.iter().find(|cell| cell.engine.is_ours())?.median_of(measure)
    }

    fn verdict(&self, figure: Figure, bar: &Bar) -> Verdict {
        let ours = self.ours(|run| figure.of(run));
        let better = |a: &(&str, f64), b: &(&str, f64)| match figure.more_is_better() {
            true => a.1.total_cmp(&b.1),
            false => b.1.total_cmp(&a.1),
        };
        let best_peer = self
            .cells
            .iter()
            .filter(|cell| !cell.engine.is_ours() && bar.against.includes(cell.engine))
            .filter_map(|cell| Some((cell.engine.as_str(), cell.median_of(|run| figure.of(run))?)))
            .max_by(better);
        let ratio = ours.zip(best_peer).map(|(ours, (_, best))| ours / best);
        let holds = ratio.zip(bar.wanted).map(|(ratio, wanted)| match figure.more_is_better() {
            true => ratio >= wanted,
            false => ratio <= wanted,
        });
        Verdict {
            workload: self.name.clone() + figure.suffix(),
            unit: figure.unit(self.case.workload),
            ours: ours.map(rounded),
            peer: best_peer.map(|(name, _)| name),
            best: best_peer.map(|(_, best)| rounded(best)),
            ratio: ratio.map(rounded),
            wanted: bar.wanted,
            holds,
        }
    }

    /// Ours against what the disk does, and against plain numbers.
    fn limits(&self) -> Vec<Limit> {
        let limit =
            |what: &str, measured: Option<f64>, wanted: String, holds: &dyn Fn(f64) -> bool| {
                let what = format!("{}: {what}", self.name);
                let measured = measured.filter(|measured| measured.is_finite())?;
                Some(Limit { what, measured: rounded(measured), wanted, holds: holds(measured) })
            };
        let at_least = |what: &str, measured: Option<f64>, least: f64| {
            limit(what, measured, format!("at least {least}"), &|measured| measured >= least)
        };
        let at_most = |what: &str, measured: Option<f64>, most: f64| {
            limit(what, measured, format!("at most {most}"), &|measured| measured <= most)
        };
        let bare =
            |measure: fn(&BareSyncs) -> f64| median(self.bare_syncs.iter().map(measure).collect());
        let over = |ours: Option<f64>, limit: Option<f64>| Some(ours? / limit?);
        let found = match self.case.workload {
            Workload::Durable1 => vec![at_least(
                "of the bare loop of overwrite and fdatasync",
                over(self.ours(|run| run.measured.per_second), bare(|bare| bare.per_second)),
                0.9,
            )],
            Workload::Durable64 => vec![
                at_least("commits a sync", self.ours(|run| run.measured.commits_per_sync), 20.0),
                at_most(
                    "p99 in bare syncs",
                    over(self.ours(|run| run.measured.p99_us), bare(|bare| bare.p50_us)),
                    4.0,
                ),
            ],
            Workload::ReadMiss => vec![at_least(
                "% without a block read",
                self.ours(|run| run.measured.blocks_per_miss).map(|share| 100.0 - share * 100.0),
                99.5,
            )],
            Workload::Idle => vec![at_most(
                "MB of an empty database",
                self.ours(|run| Figure::Memory.of(run)),
                10.0,
            )],
            Workload::Large => vec![
                at_most(
                    "longest stall in p99.9 syncs during the run",
                    self.ours(|run| {
                        Some(run.measured.longest_ms? * 1e3 / run.measured.disk_p999_us?)
                    }),
                    5.0,
                ),
                at_most(
                    "files",
                    self.ours(|run| run.measured.files.map(|files| files as f64)),
                    4000.0,
                ),
                at_most("ms to reopen", self.ours(|run| run.measured.reopen_ms), 50.0),
            ],
            Workload::Ingest => vec![at_least(
                "of what the disk writes",
                over(
                    self.ours(|run| run.measured.bytes_per_second),
                    median(self.bare_bytes_per_second.clone()),
                ),
                0.5,
            )],
            _ => vec![],
        };
        found.into_iter().flatten().collect()
    }
}

const NAME_WIDTH: usize = 42;
const COLUMN_WIDTH: usize = 19;

impl Results {
    /// The tables: figures beside what is wanted of them, then what they cost, then the limits.
    pub fn print_tables(&self) {
        let engines: Vec<EngineName> =
            self.rows.first().map_or(vec![], |row| row.cells.iter().map(|c| c.engine).collect());
        let header = |label: &str| {
            let names = engines.iter().map(|engine| format!("{:>COLUMN_WIDTH$}", engine.as_str()));
            format!("{label:<NAME_WIDTH$}{}", names.collect::<String>())
        };

        println!("\n{}  {:<16}{:>7}   wanted", header("medians (spread)"), "unit", "ratio");
        for row in &self.rows {
            for line in row.lines() {
                self.print_line(row, line, engines.len());
            }
        }

        type Measure = fn(&Run) -> Option<f64>;
        let costs: [(&str, Measure); 10] = [
            ("p99, µs", |run| run.measured.p99_us),
            ("p99.9, µs", |run| run.measured.p999_us),
            ("longest call, ms", |run| run.measured.longest_ms),
            ("p99.9 of a sync beside it, µs", |run| run.measured.disk_p999_us),
            ("to rest afterwards, ms", |run| run.measured.settle_s.map(|s| s * 1e3)),
            ("bytes written for a byte", |run| run.measured.write_amplification),
            ("files", |run| run.measured.files.map(|files| files as f64)),
            ("20 consecutive sort keys, ranges/s", |run| run.measured.ranges_per_second),
            ("on disk, MB", |run| Some(run.disk_bytes as f64 / 1e6)),
            ("peak memory, MB", |run| Some(run.peak_memory_bytes as f64 / 1e6)),
        ];
        for (label, measure) in costs {
            let medians = |row: &Row| -> Vec<Option<f64>> {
                row.cells.iter().map(|cell| cell.median_of(measure)).collect()
            };
            let rows: Vec<_> = self.rows.iter().map(|row| (row, medians(row))).collect();
            let measured = rows.iter().filter(|(_, values)| values.iter().any(Option::is_some));
            for (nth, (row, values)) in measured.enumerate() {
                if nth == 0 {
                    println!("\n{}", header(label));
                }
                let texts = values
                    .iter()
                    .map(|value| format!("{:>COLUMN_WIDTH$}", value.map_or("-".into(), short)));
                println!("{:<NAME_WIDTH$}{}", row.name, texts.collect::<String>());
            }
        }

        self.print_bare_loops();
        let limits: Vec<Limit> = self.rows.iter().flat_map(Row::limits).collect();
        if !limits.is_empty() {
            println!("\nagainst the limit");
        }
        for Limit { what, measured, wanted, holds } in limits {
            let sign = if holds { "holds " } else { "MISSED" };
            println!("{sign}  {what:<72}{measured:>10.2}  ({wanted})");
        }
    }

    fn print_line(&self, row: &Row, line: &Line, columns: usize) {
        let mut text = format!("{:<NAME_WIDTH$}", row.name.clone() + line.figure.suffix());
        for cell in &row.cells {
            let of = |run: &Run| line.figure.of(run);
            let value = cell.median_of(of).map(|value| match cell.runs.len() {
                1 => short(value),
                _ => format!("{} ({:.0}%)", short(value), cell.spread_of(of) * 100.0),
            });
            text += &format!("{:>COLUMN_WIDTH$}", value.unwrap_or("-".into()));
        }
        text += &format!("  {:<16}", line.figure.unit(row.case.workload));
        for (nth, bar) in line.bars.iter().enumerate() {
            let verdict = row.verdict(line.figure, bar);
            let (Some(ratio), Some(peer)) = (verdict.ratio, verdict.peer) else {
                if nth == 0 {
                    println!("{text}");
                }
                continue;
            };
            if nth > 0 {
                text = " ".repeat(NAME_WIDTH + columns * COLUMN_WIDTH + 18);
            }
            let sign = if line.figure.more_is_better() { "≥" } else { "≤" };
            let wanted =
                verdict.wanted.zip(verdict.holds).map_or(String::new(), |(wanted, holds)| {
                    format!("{sign} {wanted} {}", if holds { "holds" } else { "MISSED" })
                });
            println!("{text}{ratio:>7.2} × {peer:<9}{wanted}");
        }
    }

    fn print_bare_loops(&self) {
        let mut lines = Vec::new();
        for row in &self.rows {
            let of = |measure: fn(&BareSyncs) -> f64| {
                median(row.bare_syncs.iter().map(measure).collect())
            };
            if let (Some(per_second), Some(p50_us), Some(p999_us)) =
                (of(|bare| bare.per_second), of(|bare| bare.p50_us), of(|bare| bare.p999_us))
            {
                let per_second = thousands(per_second);
                let p99_us = median(row.bare_syncs.iter().filter_map(|bare| bare.p99_us).collect());
                let p99 = p99_us.map_or(String::new(), |p99_us| format!(" p99 {p99_us:.0} µs,"));
                let times = format!("median {p50_us:.0} µs,{p99} p99.9 {p999_us:.0} µs");
                lines.push((&row.name, format!("overwrite and fdatasync {per_second}/s, {times}")));
            }
            if let Some(speed) = median(row.bare_bytes_per_second.clone()) {
                lines.push((&row.name, format!("sequential write {:.0} MB/s", speed / 1e6)));
            }
            let often =
                |measure: fn(&HeldUp) -> f64| median(row.held_up.iter().map(measure).collect());
            if let (Some(over_60), Some(over_100), Some(over_200)) =
                (often(|of| of.over_60us), often(|of| of.over_100us), often(|of| of.over_200us))
            {
                let times = format!("60, 100, 200 µs {over_60:.0}, {over_100:.0}, {over_200:.0}");
                lines.push((&row.name, format!("a bare loop is held up for over {times} times/s")));
            }
        }
        for (nth, (name, text)) in lines.into_iter().enumerate() {
            if nth == 0 {
                println!("\nthe machine alone, in the same rounds");
            }
            println!("{name:<NAME_WIDTH$}{text}");
        }
    }

    /// The last line of output, for programs.
    pub fn closing_line(&self) -> Outcome<String> {
        #[derive(Serialize)]
        struct Closing {
            bench: &'static str,
            rows: Vec<Verdict>,
            limits: Vec<Limit>,
        }
        let of_line = |row: &Row, line: &'static Line| -> Vec<Verdict> {
            line.bars.iter().map(|bar| row.verdict(line.figure, bar)).collect()
        };
        let of_row = |row: &Row| -> Vec<Verdict> {
            row.lines().flat_map(|line| of_line(row, line)).collect()
        };
        Ok(serde_json::to_string(&Closing {
            bench: "engine",
            rows: self.rows.iter().flat_map(of_row).collect(),
            limits: self.rows.iter().flat_map(Row::limits).collect(),
        })?)
    }
}

fn rounded(number: f64) -> f64 {
    if number < 1000.0 { (number * 1000.0).round() / 1000.0 } else { number.round() }
}

/// Small numbers keep digits after the point.
fn short(number: f64) -> String {
    match number {
        ..10.0 => format!("{number:.2}"),
        ..1000.0 => format!("{number:.1}"),
        _ => thousands(number),
    }
}
