//! What an operation costs as the database grows, as a table and as a picture.

use super::child::{Job, Request, Run};
use super::engines::EngineName;
use super::workload::{Size, Workload};
use crate::figures::{self, thousands};
use crate::machine::Machine;
use crate::{Outcome, machine};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// One engine at one size.
#[derive(Serialize)]
struct Point {
    engine: EngineName,
    records: u32,
    run: Run,
}

/// All points, as they are saved.
#[derive(Serialize)]
struct Growth {
    started: String,
    machine: Machine,
    points: Vec<Point>,
}

/// The operations that are drawn, each with its colour and what it costs in a run.
const OPERATIONS: [(&str, &str, Speed); 3] = [
    ("random fill", "#c0392b", |run| run.measured.per_second),
    ("random read, hit", "#2471a3", |run| run.measured.reads_per_second),
    ("20 consecutive sort keys", "#1e8449", |run| run.measured.ranges_per_second),
];

type Speed = fn(&Run) -> Option<f64>;

impl Point {
    fn cost_us(&self, speed: Speed) -> Option<f64> {
        speed(&self.run).map(|per_second| 1e6 / per_second)
    }
}

/// Measures every engine at every size, prints the costs and draws them into `docs/growth.svg`.
pub fn measure(
    sizes: &[u32],
    engines: &[EngineName],
    size: Size,
    dir: &Path,
    save: bool,
) -> Outcome<()> {
    let machine = Machine::describe(dir)?;
    println!("{machine}");
    println!(
        "values of {} bytes, {} MiB for each engine; µs for one operation",
        size.value_len,
        size.memory_bytes >> 20
    );
    println!(
        "{:<12}{:>14}{:>14}{:>20}{:>28}",
        "engine", "records", "random fill", "random read, hit", "20 consecutive sort keys"
    );
    let mut growth = Growth { started: machine::timestamp(), machine, points: vec![] };
    for &records in sizes {
        for &engine in engines {
            let request = Request {
                engine,
                job: Job::Measure(vec![Workload::Large]),
                dir: dir.join("run"),
                size: size_at(records, size),
                seed: 1_000,
            };
            for run in request.run_in_child()? {
                let point = Point { engine, records, run };
                let [fill, read, range] = OPERATIONS.map(|(_, _, speed)| {
                    point.cost_us(speed).map_or("-".to_owned(), |cost| format!("{cost:.2}"))
                });
                let records = thousands(f64::from(records));
                println!("{:<12}{records:>14}{fill:>14}{read:>20}{range:>28}", engine.as_str());
                growth.points.push(point);
            }
        }
    }
    let path = docs_dir()?.join("growth.svg");
    std::fs::write(&path, growth.draw(size)?)?;
    eprintln!("drew {}", path.display());
    if save {
        figures::save(&growth, &growth.started, "engine", "growth")?;
    }
    println!("{}", growth.closing_line()?);
    Ok(())
}

/// Beyond what the large rows have, fewer reads: an engine that reads megabytes for each would take
/// hours for all of them.
fn size_at(records: u32, size: Size) -> Size {
    let (reads, ranges) = match records > super::LARGE_RECORDS {
        true => (size.reads / 10, size.ranges / 10),
        false => (size.reads, size.ranges),
    };
    Size { records, reads, ranges, ..size }
}

fn docs_dir() -> Outcome<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace around")?;
    Ok(workspace.join("docs"))
}

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 540.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 380.0;

/// Where a number lies between two others, on a logarithmic scale.
fn share(number: f64, from: f64, to: f64) -> f64 {
    (number / from).ln() / (to / from).ln()
}

impl Growth {
    fn closing_line(&self) -> Outcome<String> {
        #[derive(Serialize)]
        struct Cost {
            operation: &'static str,
            engine: EngineName,
            records: u32,
            us: Option<f64>,
        }
        #[derive(Serialize)]
        struct Closing {
            bench: &'static str,
            growth: Vec<Cost>,
        }
        let of = |point: &Point| {
            let Point { engine, records, .. } = *point;
            let cost = |(operation, _, speed): (&'static str, &str, Speed)| {
                let us = point.cost_us(speed).map(|us| (us * 1000.0).round() / 1000.0);
                Cost { operation, engine, records, us }
            };
            OPERATIONS.map(cost)
        };
        let growth = self.points.iter().flat_map(of).collect();
        Ok(serde_json::to_string(&Closing { bench: "engine", growth })?)
    }

    /// Records to the right, microseconds upwards, both logarithmic; colours tell operations apart
    /// and strokes tell engines apart.
    fn draw(&self, size: Size) -> Outcome<String> {
        let mut records: Vec<u32> = self.points.iter().map(|point| point.records).collect();
        records.sort_unstable();
        records.dedup();
        let first = records.first().copied().ok_or("nothing was measured")?;
        let last = records.last().copied().unwrap_or(first);
        // With one size, or one cost, there is still a scale.
        let to_records = f64::from(last).max(f64::from(first) * 10.0);
        let x = |records: u32| {
            LEFT + (RIGHT - LEFT) * share(f64::from(records), f64::from(first), to_records)
        };
        let costs = || {
            let of = |point: &Point| OPERATIONS.map(|(_, _, speed)| point.cost_us(speed));
            self.points.iter().flat_map(of).flatten()
        };
        let lowest = 10f64.powf(costs().fold(f64::INFINITY, f64::min).log10().floor());
        let highest = 10f64.powf(costs().fold(0.0, f64::max).log10().ceil()).max(lowest * 10.0);
        let y = |us: f64| BOTTOM - (BOTTOM - TOP) * share(us, lowest, highest);

        let mut svg = String::new();
        writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"24\" font-size=\"16\">Cost of one operation as the database \
             grows</text>\n\
             <text x=\"{LEFT}\" y=\"{}\">records of {} bytes, {} MiB of memory; {}</text>",
            HEIGHT - 14.0,
            size.value_len + super::dataset::JOINED_LEN,
            size.memory_bytes >> 20,
            self.started,
        )?;
        let mut tick = lowest;
        while tick <= highest * 1.001 {
            writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{0:.1}\" x2=\"{RIGHT}\" y2=\"{0:.1}\" stroke=\"#ddd\"/>\n\
                 <text x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{tick} µs</text>",
                y(tick),
                LEFT - 8.0,
                y(tick) + 4.0,
            )?;
            tick *= 10.0;
        }
        for &records in &records {
            writeln!(
                svg,
                "<line x1=\"{0:.1}\" y1=\"{TOP}\" x2=\"{0:.1}\" y2=\"{BOTTOM}\" stroke=\"#ddd\"/>\n\
                 <text x=\"{0:.1}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>",
                x(records),
                BOTTOM + 20.0,
                thousands(f64::from(records)),
            )?;
        }
        let mut engines: Vec<EngineName> = Vec::new();
        for point in &self.points {
            if !engines.contains(&point.engine) {
                engines.push(point.engine);
            }
        }
        let mut legend_y = TOP + 10.0;
        for (nth, &engine) in engines.iter().enumerate() {
            let dashes =
                8usize.checked_div(nth).map_or("none".to_owned(), |dash| format!("{dash} 4"));
            for (operation, colour, speed) in OPERATIONS {
                let mine = self.points.iter().filter(|point| point.engine == engine);
                let places: Vec<(f64, f64)> = mine
                    .filter_map(|point| Some((x(point.records), y(point.cost_us(speed)?))))
                    .collect();
                let path: Vec<String> =
                    places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                writeln!(
                    svg,
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
                     stroke-dasharray=\"{dashes}\"/>",
                    path.join(" "),
                )?;
                for (x, y) in places {
                    writeln!(
                        svg,
                        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>"
                    )?;
                }
                writeln!(
                    svg,
                    "<line x1=\"{0}\" y1=\"{legend_y}\" x2=\"{1}\" y2=\"{legend_y}\" \
                     stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\n\
                     <text x=\"{2}\" y=\"{3}\" font-size=\"11\">{4}, {operation}</text>",
                    RIGHT + 14.0,
                    RIGHT + 38.0,
                    RIGHT + 44.0,
                    legend_y + 4.0,
                    engine.as_str(),
                )?;
                legend_y += 20.0;
            }
        }
        svg += "</svg>\n";
        Ok(svg)
    }
}
