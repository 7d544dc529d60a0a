//! The command `items`: KeystoneDB beside databases with DynamoDB's data model, as a library and
//! through HTTP.

pub mod door;
pub mod embedded;
mod footprint;
mod index_cost;
mod posts;
mod report;

use crate::machine::{self, Machine};
use crate::{Outcome, figures};
use door::{DoorWorkload, ServerName, Setup, Timing};
use embedded::{EmbeddedName, EmbeddedWorkload};
use footprint::Footprint;
use report::{OURS, Results, Row, Run};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How the command is used.
pub const USAGE: &str = "\
kstone-bench items [--quick] [options]: the database beside Dynoxide and DynamoDB Local

  --quick            3 rounds of 1 s each; without it, 5 rounds of 2 s
  --rounds N         medians of N rounds
  --posts N          items in the table (10 000)
  --only TEXT        only workloads whose name contains TEXT
  --engines A,B      only databases whose name begins with A or B
  --kstone PATH      a `kstone` to serve with (built from the sources around)
  --dir PATH         where the databases are made; not a RAM disk (beside the build)
  --no-save          keep nothing; without it, all samples are kept in runs/";

/// How much of everything.
#[derive(Clone, Copy, Serialize)]
pub struct Size {
    rounds: usize,
    posts: u32,
    connections: u32,
    timed_ms: u64,
    warm_up_ms: u64,
}

/// What the command line asks for.
struct Plan {
    label: &'static str,
    size: Size,
    only: String,
    engines: Vec<String>,
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
        size: Size {
            rounds: 5,
            posts: 10_000,
            connections: door::CONNECTIONS,
            timed_ms: 2000,
            warm_up_ms: 1000,
        },
        only: String::new(),
        engines: vec![],
        kstone: None,
        dir: machine::build_dir()?.join("bench-data"),
        save: true,
    };
    let mut rounds = None;
    let mut parser = lexopt::Parser::from_env();
    parser.next()?;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("quick") => {
                plan.label = "quick";
                plan.size = Size { rounds: 3, timed_ms: 1000, ..plan.size };
            }
            Long("rounds") => rounds = Some(parser.value()?.parse()?),
            Long("posts") => plan.size.posts = parser.value()?.parse()?,
            Long("only") => plan.only = parser.value()?.string()?,
            Long("engines") => {
                plan.engines = parser.value()?.string()?.split(',').map(str::to_owned).collect();
            }
            Long("kstone") => plan.kstone = Some(parser.value()?.into()),
            Long("dir") => plan.dir = parser.value()?.into(),
            Long("no-save") => plan.save = false,
            Long("help") | Short('h') => return Err(USAGE.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    plan.size.rounds = rounds.unwrap_or(plan.size.rounds);
    // Every day of every user is full, and each connection has posts of its own.
    if plan.size.posts < 1000 || !plan.size.posts.is_multiple_of(posts::PER_USER) {
        return Err("--posts: at least 1000, and a multiple of 100".into());
    }
    if plan.size.rounds == 0 {
        return Err("--rounds: at least 1".into());
    }
    Ok(plan)
}

impl Plan {
    fn wants_workload(&self, name: &str) -> bool {
        name.contains(&self.only)
    }

    fn wants_engine(&self, name: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|wanted| name.starts_with(wanted))
    }

    fn seed(round: usize) -> u64 {
        1_000 * (round as u64 + 1)
    }
}

fn run(plan: &Plan) -> Outcome<()> {
    let started = machine::timestamp();
    // Named by the process, so that two benchmarks at once do not share a folder.
    let dir = plan.dir.join(std::process::id().to_string());
    std::fs::create_dir_all(&dir)?;
    let machine = Machine::describe(&dir)?;
    let Size { rounds, posts, connections, .. } = plan.size;
    println!("{machine}");
    println!(
        "{posts} items of {} bytes, {connections} connections, {rounds} rounds; load generator and \
         server share the cores",
        posts::ITEM_LEN
    );

    let mut rows = embedded_rows(plan, &dir)?;
    let (door_rows, footprint) = door(plan, &dir)?;
    rows.extend(door_rows);
    std::fs::remove_dir_all(&dir)?;
    if rows.is_empty() {
        return Err("nothing to do".into());
    }

    let results = Results { started, machine, size: plan.size, rows, footprint };
    results.print_tables();
    if plan.save {
        figures::save(&results, &results.started, "items", plan.label)?;
    }
    println!("{}", results.closing_line()?);
    Ok(())
}

fn embedded_rows(plan: &Plan, dir: &Path) -> Outcome<Vec<Row>> {
    let wanted = |workload: &&EmbeddedWorkload| plan.wants_workload(workload.as_str());
    let workloads: Vec<EmbeddedWorkload> =
        EmbeddedWorkload::ALL.iter().filter(wanted).copied().collect();
    let databases = |workload: EmbeddedWorkload| -> Vec<EmbeddedName> {
        let all = workload.databases().iter().copied();
        all.filter(|database| plan.wants_engine(database.as_str())).collect()
    };
    let mut rows: Vec<Row> = workloads.iter().map(|workload| Row::new(workload.as_str())).collect();
    for round in 0..plan.size.rounds {
        for (nth, (workload, row)) in workloads.iter().zip(&mut rows).enumerate() {
            eprintln!("round {} of {}: {}", round + 1, plan.size.rounds, workload.as_str());
            let databases = databases(*workload);
            // Another one goes first each time, so that none always follows the same one.
            for turn in 0..databases.len() {
                let database = databases[(turn + round + nth) % databases.len()];
                let request = embedded::Request {
                    database,
                    workload: *workload,
                    dir: dir.join("run"),
                    posts: plan.size.posts,
                    timed_ms: plan.size.timed_ms,
                    seed: Plan::seed(round),
                };
                row.add(database.as_str(), request.run_in_child()?.into());
            }
        }
    }
    rows.retain(|row| !row.cells.is_empty());
    Ok(rows)
}

/// The servers that were asked for and can be had, and what they need.
fn servers(plan: &Plan) -> Outcome<(Vec<ServerName>, Setup)> {
    let wanted = |name: &&ServerName| plan.wants_engine(name.as_str());
    let mut servers: Vec<ServerName> = ServerName::ALL.iter().filter(wanted).copied().collect();
    let mut setup = Setup::default();
    if servers.iter().any(|name| name.is_ours()) {
        setup.kstone = Some(plan.kstone.clone().map_or_else(crate::kstone::build, Ok)?);
    }
    if servers.contains(&ServerName::DynamodbLocal) {
        match door::find_dynamodb_local() {
            Ok(home) => setup.dynamodb_local = Some(home),
            Err(missing) => {
                println!("without DynamoDB Local: {missing}");
                servers.retain(|&name| name != ServerName::DynamodbLocal);
            }
        }
    }
    Ok((servers, setup))
}

fn door(plan: &Plan, dir: &Path) -> Outcome<(Vec<Row>, Option<Footprint>)> {
    let wanted = |workload: &&DoorWorkload| plan.wants_workload(workload.as_str());
    let workloads: Vec<DoorWorkload> = DoorWorkload::ALL.iter().filter(wanted).copied().collect();
    if workloads.is_empty() {
        return Ok((vec![], None));
    }
    let (mut servers, setup) = servers(plan)?;
    if !workloads.contains(&DoorWorkload::Get) {
        servers.retain(|&name| name != ServerName::KeystoneSigned);
    }
    let rows = door_rows(plan, &servers, &setup, &workloads, &dir.join("server"))?;
    let everything = plan.only.is_empty() && setup.kstone.is_some();
    let footprint =
        everything.then(|| footprint::measure(&setup, &dir.join("idle"))).transpose()?;
    Ok((rows, footprint))
}

fn door_rows(
    plan: &Plan,
    servers: &[ServerName],
    setup: &Setup,
    workloads: &[DoorWorkload],
    dir: &Path,
) -> Outcome<Vec<Row>> {
    let mut rows: Vec<Row> = workloads.iter().map(|workload| Row::new(workload.as_str())).collect();
    let mut signed = Row::new("GetItem, signature checked");
    let timing = Timing { warm_up_ms: plan.size.warm_up_ms, timed_ms: plan.size.timed_ms };
    for round in 0..plan.size.rounds {
        for turn in 0..servers.len() {
            let name = servers[(turn + round) % servers.len()];
            // Checking a signature costs the same whatever is asked: one workload shows it.
            let workloads = match name {
                ServerName::KeystoneSigned => &[DoorWorkload::Get][..],
                _ => workloads,
            };
            eprintln!("round {} of {}: {}", round + 1, plan.size.rounds, name.as_str());
            let seed = Plan::seed(round);
            let played = door::round(name, setup, workloads, dir, plan.size.posts, timing, seed)?;
            for sample in &played.samples {
                let run = Run::of(&played, sample);
                match (name, sample.workload) {
                    (ServerName::KeystoneSigned, _) => {
                        signed.add(OURS, run);
                        continue;
                    }
                    // The bare server checks nothing: its one speed is the measure of both rows.
                    (ServerName::Bare, DoorWorkload::Get) => {
                        signed.add(name.as_str(), run.clone());
                    }
                    _ => {}
                }
                let of_sample = |row: &&mut Row| row.workload == sample.workload.as_str();
                if let Some(row) = rows.iter_mut().find(of_sample) {
                    row.add(name.as_str(), run);
                }
            }
            // What one server left in the page cache is not written out during the next.
            std::process::Command::new("sync").status()?;
        }
    }
    if signed.cells.iter().any(|cell| cell.database == OURS) {
        rows.push(signed);
    }
    rows.retain(|row| !row.cells.is_empty());
    Ok(rows)
}
