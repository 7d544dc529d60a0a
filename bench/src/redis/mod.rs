//! The command `redis`: KeystoneDB's Redis door beside a real redis-server, driven by Redis's own
//! `redis-benchmark`.

mod large;
mod report;
mod server;
mod tool;

use crate::machine::{self, Machine};
use crate::{Outcome, figures, kstone};
use report::{Results, Row, Size};
use server::{Durability, Name, Server};
use std::path::{Path, PathBuf};
use tool::Test;

/// How the command is used.
pub const USAGE: &str = "\
kstone-bench redis [--quick] [options]: the Redis door beside redis-server

  --quick            3 rounds of fewer requests; without it, 5 rounds
  --rounds N         medians of N rounds
  --only TEXT        only workloads whose name contains TEXT
  --large            also what takes long: 10 million keys, and data ten times the memory
  --kstone PATH      a `kstone` to serve with (built from the sources around)
  --dir PATH         where the databases are made; not a RAM disk (beside the build)
  --no-save          keep nothing; without it, all samples are kept in runs/";

struct Plan {
    label: &'static str,
    rounds: usize,
    /// Divides the numbers of requests.
    hurry: u64,
    only: String,
    large: bool,
    kstone: Option<PathBuf>,
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
        label: "full",
        rounds: 5,
        hurry: 1,
        only: String::new(),
        large: false,
        kstone: None,
        dir: machine::build_dir()?.join("bench-data"),
        save: true,
    };
    let mut rounds = None;
    let mut parser = lexopt::Parser::from_env();
    parser.next()?;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("quick") => (plan.label, plan.rounds, plan.hurry) = ("quick", 3, 4),
            Long("rounds") => rounds = Some(parser.value()?.parse()?),
            Long("only") => plan.only = parser.value()?.string()?,
            Long("large") => plan.large = true,
            Long("kstone") => plan.kstone = Some(parser.value()?.into()),
            Long("dir") => plan.dir = parser.value()?.into(),
            Long("no-save") => plan.save = false,
            Long("help") | Short('h') => return Err(USAGE.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    plan.rounds = rounds.unwrap_or(plan.rounds);
    if plan.rounds == 0 {
        return Err("--rounds: at least 1".into());
    }
    Ok(plan)
}

fn run(plan: &Plan) -> Outcome<()> {
    let started = machine::timestamp();
    tool::check()?;
    let program = plan.kstone.clone().map_or_else(kstone::build, Ok)?;
    let dir = plan.dir.join(std::process::id().to_string());
    std::fs::create_dir_all(&dir)?;
    let machine = Machine::describe(&dir)?;
    println!("{machine}");
    println!(
        "{}; 50 connections, a million keys, values of 100 bytes, {} rounds; redis-benchmark and \
         server share the cores",
        server::redis_version()?,
        plan.rounds
    );
    let rows = speeds(plan, &program, &dir)?;
    let large = match plan.large {
        true => Some(large::measure(&program, &dir.join("large"))?),
        false => None,
    };
    std::fs::remove_dir_all(&dir)?;
    if rows.is_empty() && large.is_none() {
        return Err("nothing to do".into());
    }
    let size = Size { rounds: plan.rounds, connections: 50, keys: tool::KEYS };
    let results = Results { started, machine, size, rows, large };
    results.print();
    if plan.save {
        figures::save(&results, &results.started, "redis", plan.label)?;
    }
    println!("{}", results.closing_line()?);
    Ok(())
}

/// Every test, with and without pipeline, in both durabilities, on both servers in turn.
fn speeds(plan: &Plan, program: &Path, dir: &Path) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for durability in Durability::ALL {
        for pipeline in [1, 16] {
            for test in Test::ALL {
                let row = Row::new(test, durability, pipeline);
                if row.workload.contains(&plan.only) {
                    rows.push(row);
                }
            }
        }
    }
    for round in 0..plan.rounds {
        for durability in Durability::ALL {
            let mine: Vec<usize> =
                (0..rows.len()).filter(|&nth| rows[nth].durability == durability).collect();
            if mine.is_empty() {
                continue;
            }
            eprintln!("round {} of {}: {}", round + 1, plan.rounds, durability.ours());
            // Both servers are up for the whole round and take turns test by test, so that what
            // else happens on the machine happens to both.
            let start = |name: Name| Server::start(name, program, durability, dir, None);
            let mut servers = [start(Name::Keystone)?, start(Name::Redis)?];
            for nth in mine {
                let first = (round + nth) % 2;
                for turn in 0..2 {
                    let server = &mut servers[(first + turn) % 2];
                    let run = tool::run(server, &rows[nth], plan.hurry)?;
                    rows[nth].add(server.name, run);
                }
            }
        }
    }
    Ok(rows)
}
