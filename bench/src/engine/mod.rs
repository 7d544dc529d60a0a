//! The command `engine`: every workload on every storage engine, taking turns, each run in a fresh
//! process and a fresh folder.

mod check;
mod child;
mod dataset;
mod engines;
mod report;
mod workload;

pub use child::Request;

use crate::Outcome;
use crate::figures;
use crate::machine::{self, Machine};
use engines::EngineName;
use report::{Cell, Results, Row};
use std::path::PathBuf;
use workload::{Size, Workload};

/// How the command is used.
pub const USAGE: &str = "\
kstone-bench engine [--quick | --full] [options]: the storage engine beside RocksDB and fjall

  --quick            200 000 records, 3 rounds, 2 to 3 minutes (the default)
  --full             1 000 000 records, 5 rounds
  --rounds N         medians of N rounds
  --records N        records in the database
  --budget-mib N     memory for each engine (64)
  --only TEXT        only workloads whose name contains TEXT
  --engines A,B      only these engines
  --dir PATH         where the databases are made; not a RAM disk (beside the build)
  --save             keep the samples in runs/";

/// What the command line asks for.
struct Plan {
    label: &'static str,
    rounds: usize,
    size: Size,
    workloads: Vec<Workload>,
    engines: Vec<EngineName>,
    dir: PathBuf,
    save: bool,
}

/// Does what the command line asks.
pub fn main() -> Outcome<()> {
    run(&parse_plan()?)
}

fn parse_plan() -> Outcome<Plan> {
    use lexopt::prelude::*;

    let mut plan = Plan {
        label: "quick",
        rounds: 3,
        size: Size {
            records: 200_000,
            durable_ms: 1000,
            reads: 400_000,
            ranges: 60_000,
            scans: 3,
            memory_bytes: 64 << 20,
            background_threads: 2,
        },
        workloads: Workload::ALL.to_vec(),
        engines: EngineName::ALL.to_vec(),
        dir: machine::build_dir()?.join("bench-data"),
        save: false,
    };
    let mut parser = lexopt::Parser::from_env();
    parser.next()?;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("quick") => {}
            Long("full") => {
                plan.label = "full";
                plan.rounds = 5;
                plan.size.records = 1_000_000;
                plan.size.durable_ms = 5000;
                plan.size.reads = 2_000_000;
                plan.size.ranges = 300_000;
            }
            Long("rounds") => plan.rounds = parser.value()?.parse()?,
            Long("records") => plan.size.records = parser.value()?.parse()?,
            Long("budget-mib") => plan.size.memory_bytes = parser.value()?.parse::<usize>()? << 20,
            Long("only") => {
                let text = parser.value()?.string()?;
                plan.workloads.retain(|workload| workload.as_str().contains(&text));
            }
            Long("engines") => {
                let names = parser.value()?.string()?;
                let parse = |name| EngineName::parse(name).ok_or(format!("no engine {name}"));
                plan.engines = names.split(',').map(parse).collect::<Result<_, _>>()?;
            }
            Long("dir") => plan.dir = parser.value()?.into(),
            Long("save") => plan.save = true,
            Long("help") | Short('h') => return Err(USAGE.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    // Every partition is full, and 32 writers have at least a record each.
    if plan.size.records < 10_000 || !plan.size.records.is_multiple_of(dataset::POSTS_PER_USER) {
        return Err("--records: at least 10000, and a multiple of 100".into());
    }
    if plan.rounds == 0 || plan.workloads.is_empty() || plan.engines.is_empty() {
        return Err("nothing to do".into());
    }
    Ok(plan)
}

fn run(plan: &Plan) -> Outcome<()> {
    let started = machine::timestamp();
    // Named by the process, so that two benchmarks at once do not share a folder.
    let dir = plan.dir.join(std::process::id().to_string());
    std::fs::create_dir_all(&dir)?;
    let machine = Machine::describe(&dir)?;
    let Size { records, memory_bytes, .. } = plan.size;
    println!("{machine}");
    println!(
        "{records} records of 127 bytes, {} MiB for each engine, LZ4, {} rounds",
        memory_bytes >> 20,
        plan.rounds
    );

    let request = |engine, workload, round: usize| Request {
        engine,
        workload,
        dir: dir.join("run"),
        size: plan.size,
        seed: 1_000 * (round as u64 + 1),
    };
    for &engine in &plan.engines {
        eprintln!("checking {}", engine.as_str());
        request(engine, None, 0).run_in_child()?;
    }

    let empty_row = |&workload| Row {
        workload,
        cells: plan.engines.iter().map(|&engine| Cell { engine, runs: vec![] }).collect(),
    };
    let mut rows: Vec<Row> = plan.workloads.iter().map(empty_row).collect();
    for round in 0..plan.rounds {
        for (nth, row) in rows.iter_mut().enumerate() {
            eprintln!("round {} of {}: {}", round + 1, plan.rounds, row.workload.as_str());
            // Another engine goes first each time, so that none always follows the same one.
            let engines = row.cells.len();
            for turn in 0..engines {
                let cell = &mut row.cells[(turn + round + nth) % engines];
                cell.runs.push(request(cell.engine, Some(row.workload), round).run_in_child()?);
            }
        }
    }
    std::fs::remove_dir_all(&dir)?;

    let results = Results { started, machine, size: plan.size, rows };
    results.print_tables();
    if plan.save {
        figures::save(&results, &results.started, "engine", plan.label)?;
    }
    println!("{}", results.closing_line()?);
    Ok(())
}
