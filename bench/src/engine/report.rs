//! The tables of `engine`, its closing line of JSON, and the samples that `--save` keeps.

use super::child::Run;
use super::engines::EngineName;
use super::workload::{Size, Workload};
use crate::Outcome;
use crate::figures::{self, median, thousands};
use crate::machine::Machine;
use serde::Serialize;

/// Every run of one workload on one engine.
#[derive(Serialize)]
pub struct Cell {
    /// The engine.
    pub engine: EngineName,
    /// One per round, in order.
    pub runs: Vec<Run>,
}

/// Every run of one workload.
#[derive(Serialize)]
pub struct Row {
    /// The workload.
    pub workload: Workload,
    /// One per engine.
    pub cells: Vec<Cell>,
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
}

/// A row of the closing line: ours beside the best peer. Higher is faster; a ratio above 1 means
/// that ours is.
#[derive(Serialize)]
struct Verdict {
    workload: &'static str,
    unit: &'static str,
    ours: Option<f64>,
    peer: Option<&'static str>,
    best: Option<f64>,
    ratio: Option<f64>,
}

impl Cell {
    fn median_of(&self, measure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        median(self.runs.iter().filter_map(measure).collect())
    }

    fn per_second(&self) -> Option<f64> {
        self.median_of(|run| Some(run.measured.per_second))
    }

    /// The distance from the slowest to the fastest round, as a share of the median.
    fn spread(&self) -> f64 {
        let speeds: Vec<f64> = self.runs.iter().map(|run| run.measured.per_second).collect();
        figures::spread(&speeds)
    }
}

impl Row {
    fn verdict(&self) -> Verdict {
        let ours = self.cells.iter().find(|cell| cell.engine.is_ours()).and_then(Cell::per_second);
        let best_peer = self
            .cells
            .iter()
            .filter(|cell| !cell.engine.is_ours())
            .filter_map(|cell| Some((cell.engine.as_str(), cell.per_second()?)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let best = best_peer.map(|(_, speed)| speed);
        Verdict {
            workload: self.workload.as_str(),
            unit: self.workload.unit(),
            ours: ours.map(f64::round),
            peer: best_peer.map(|(name, _)| name),
            best: best.map(f64::round),
            ratio: ours.zip(best).map(|(ours, best)| (ours / best * 1000.0).round() / 1000.0),
        }
    }
}

impl Results {
    /// The tables: speeds, then what they cost.
    pub fn print_tables(&self) {
        let engines: Vec<EngineName> =
            self.rows.first().map_or(vec![], |row| row.cells.iter().map(|c| c.engine).collect());
        let header = |label: &str| {
            let names = engines.iter().map(|engine| format!("{:>20}", engine.as_str()));
            format!("{label:<30}{}", names.collect::<String>())
        };

        println!("\n{}{:>10}", header("medians (spread)"), "ratio");
        for row in &self.rows {
            let mut line = format!("{:<30}", row.workload.as_str());
            for cell in &row.cells {
                let speed = cell.per_second().map_or("-".to_owned(), thousands);
                let text = format!("{speed} ({:.0}%)", cell.spread() * 100.0);
                line += &format!("{text:>20}");
            }
            let ratio = row.verdict().ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            println!("{line}{ratio:>10}  {}", row.workload.unit());
        }

        type Measure = fn(&Run) -> Option<f64>;
        let costs: [(&str, Measure); 4] = [
            ("p99, µs", |run| run.measured.p99_us),
            ("to rest afterwards, ms", |run| run.measured.settle_s.map(|s| s * 1e3)),
            ("on disk, KiB", |run| Some(run.disk_bytes as f64 / 1024.0)),
            ("peak memory, KiB", |run| Some(run.peak_memory_bytes as f64 / 1024.0)),
        ];
        for (label, measure) in costs {
            println!("\n{}", header(label));
            for row in &self.rows {
                let values: Vec<_> = row.cells.iter().map(|cell| cell.median_of(measure)).collect();
                if values.iter().all(Option::is_none) {
                    continue;
                }
                let columns = values
                    .iter()
                    .map(|value| format!("{:>20}", value.map_or("-".to_owned(), thousands)));
                println!("{:<30}{}", row.workload.as_str(), columns.collect::<String>());
            }
        }
    }

    /// The last line of output, for programs.
    pub fn closing_line(&self) -> Outcome<String> {
        let rows: Vec<Verdict> = self.rows.iter().map(Row::verdict).collect();
        #[derive(Serialize)]
        struct Closing {
            bench: &'static str,
            rows: Vec<Verdict>,
        }
        Ok(serde_json::to_string(&Closing { bench: "engine", rows })?)
    }
}
