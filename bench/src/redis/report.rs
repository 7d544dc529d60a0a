//! The tables of `redis`, its closing line of JSON, and the samples that are kept.

use super::large::Large;
use super::server::{Durability, Name};
use super::tool::Test;
use crate::Outcome;
use crate::figures::{median, spread, thousands};
use crate::machine::Machine;
use serde::Serialize;

/// One run of one workload on one server.
#[derive(Clone, Serialize)]
pub struct Run {
    /// Requests a second.
    pub per_second: f64,
    /// The median wait, in milliseconds.
    pub p50_ms: f64,
    /// All but one in a hundred waited no longer, in milliseconds.
    pub p99_ms: f64,
    /// The server's processor time for each request, in microseconds.
    pub server_cpu_us: f64,
}

/// How many times faster the first is.
pub fn ratio(runs: &[Run; 2]) -> f64 {
    runs[0].per_second / runs[1].per_second
}

/// How much of everything.
#[derive(Serialize)]
pub struct Size {
    /// Rounds.
    pub rounds: usize,
    /// Connections.
    pub connections: u32,
    /// Different keys.
    pub keys: u64,
}

/// Every run of one workload.
#[derive(Serialize)]
pub struct Row {
    /// Its name: test, durability, pipeline.
    pub workload: String,
    #[serde(skip)]
    pub test: Test,
    /// When a write is safe.
    pub durability: Durability,
    /// Commands under way on each connection.
    pub pipeline: u32,
    ours: Vec<Run>,
    theirs: Vec<Run>,
}

impl Row {
    /// A row without runs.
    pub fn new(test: Test, durability: Durability, pipeline: u32) -> Row {
        let workload =
            format!("{}, {}, -P {pipeline}", test.name.to_uppercase(), durability.ours());
        Row { workload, test, durability, pipeline, ours: vec![], theirs: vec![] }
    }

    /// Adds a run.
    pub fn add(&mut self, name: Name, run: Run) {
        match name {
            Name::Keystone => self.ours.push(run),
            Name::Redis => self.theirs.push(run),
        }
    }

    /// What we want of the ratio of speeds.
    fn bar(&self) -> f64 {
        match (self.durability, self.pipeline) {
            (Durability::Interval, 1) => 1.0,
            (Durability::Interval, _) => 0.9,
            (Durability::Sync, _) => 1.5,
        }
    }

    fn figures(&self) -> Option<Figures> {
        let of =
            |runs: &[Run], measure: fn(&Run) -> f64| median(runs.iter().map(measure).collect());
        let both = |measure| Some([of(&self.ours, measure)?, of(&self.theirs, measure)?]);
        let per_second: [f64; 2] = both(|run| run.per_second)?;
        let ratio = per_second[0] / per_second[1];
        let speeds =
            |runs: &[Run]| spread(&runs.iter().map(|run| run.per_second).collect::<Vec<_>>());
        Some(Figures {
            workload: self.workload.clone(),
            per_second,
            spread: [speeds(&self.ours), speeds(&self.theirs)],
            ratio,
            wanted: self.bar(),
            holds: ratio >= self.bar(),
            p99_ms: both(|run| run.p99_ms)?,
            server_cpu_us: both(|run| run.server_cpu_us)?,
        })
    }
}

/// The medians of a row: ours, theirs.
#[derive(Serialize)]
struct Figures {
    workload: String,
    per_second: [f64; 2],
    spread: [f64; 2],
    ratio: f64,
    wanted: f64,
    holds: bool,
    p99_ms: [f64; 2],
    server_cpu_us: [f64; 2],
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
    /// What takes long, if it was asked for.
    pub large: Option<Large>,
}

impl Results {
    /// The tables.
    pub fn print(&self) {
        println!(
            "\n{:<30}{:>20}{:>20}{:>8}{:>8}  {:<18}{:<18}",
            "medians (spread)",
            "ours/s",
            "redis/s",
            "ratio",
            "wanted",
            "  p99 ms",
            "  server µs/request"
        );
        for figures in self.rows.iter().filter_map(Row::figures) {
            let Figures { per_second, spread, p99_ms, server_cpu_us, .. } = &figures;
            let speed = |nth: usize| {
                format!("{} ({:.0}%)", thousands(per_second[nth]), spread[nth] * 100.0)
            };
            println!(
                "{:<30}{:>20}{:>20}{:>8.2}{:>8}  {:>7.2} {:>7.2}  {:>7.2} {:>7.2}  {}",
                figures.workload,
                speed(0),
                speed(1),
                figures.ratio,
                figures.wanted,
                p99_ms[0],
                p99_ms[1],
                server_cpu_us[0],
                server_cpu_us[1],
                if figures.holds { "holds" } else { "MISSED" },
            );
        }
        for (what, measured, wanted, holds) in self.large.iter().flat_map(Large::verdicts) {
            let sign = if holds { "holds " } else { "MISSED" };
            println!("{sign}  {what:<52}{measured:>10.2}  ({wanted})");
        }
    }

    /// The last line of output, for programs.
    pub fn closing_line(&self) -> Outcome<String> {
        #[derive(Serialize)]
        struct Bar {
            what: String,
            measured: f64,
            wanted: String,
            holds: bool,
        }
        #[derive(Serialize)]
        struct Closing {
            bench: &'static str,
            rows: Vec<Figures>,
            bars: Vec<Bar>,
        }
        let bars = self.large.iter().flat_map(Large::verdicts);
        let bars =
            bars.map(|(what, measured, wanted, holds)| Bar { what, measured, wanted, holds });
        Ok(serde_json::to_string(&Closing {
            bench: "redis",
            rows: self.rows.iter().filter_map(Row::figures).collect(),
            bars: bars.collect(),
        })?)
    }
}
