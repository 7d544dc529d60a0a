//! The command `engine`: every workload on every storage engine, taking turns, each run in a fresh
//! process and a fresh folder.

mod bars;
mod check;
mod child;
mod dataset;
mod engines;
mod growth;
mod limits;
mod report;
mod workload;

pub use child::Request;

use crate::Outcome;
use crate::figures;
use crate::machine::{self, Machine};
use child::Job;
use engines::EngineName;
use limits::{BareSyncs, HeldUp};
use report::{Results, Row};
use std::path::{Path, PathBuf};
use workload::{Case, Size, Workload};

/// How the command is used.
pub const USAGE: &str = "\
kstone-bench engine [--quick] [options]: the storage engine beside RocksDB, fjall, redb and LMDB

  --quick            100 000 records in 32 MiB (half as many with longer values), 1 round, the
                     large rows at a twentieth and of LSM trees only: a rough answer in two
                     minutes; without it, 1 000 000 records in 256 MiB, 5 rounds, no large rows
  --large            also what takes long: 10 000 000 records in 64 MiB of memory, 3 rounds
  --growth [N,...]   instead of all that, what an operation costs at these sizes (1M,10M), drawn
                     into docs/growth.svg; ours and RocksDB unless --engines says otherwise
  --rounds N         medians of N rounds
  --records N        records in the database, the large rows excepted
  --value-len N      values of N bytes in all rows (100, and 1024 in some)
  --budget-mib N     memory for each engine (256, 2048 where 1 KiB values are read, and 64 for the
                     large rows)
  --only TEXT        only workloads whose name contains TEXT, or one of several: A|B
  --engines A,B      only these engines
  --dir PATH         where the databases are made; not a RAM disk (beside the build)
  --no-save          keep nothing; without it, all samples are kept in runs/ after each round
  --show FILE        measure nothing: print the tables of samples that were kept";

const LARGE_RECORDS: u32 = 10_000_000;
/// Enough for all records of 100 bytes, however an engine keeps them: reads are to be warm.
const MEMORY_BYTES: usize = 256 << 20;
/// So many times that for records with longer values, where they are read.
const LONG_VALUE_MEMORY: usize = 8;
/// What the large rows are about: little memory.
const LARGE_MEMORY_BYTES: usize = 64 << 20;

/// What the command line asks for.
struct Plan {
    label: &'static str,
    is_quick: bool,
    /// Rows with longer values have this part of the records. All of the memory: with half of it our fill,
    /// which divides it among 256 stripes, was a third slower, and that says nothing of the full size.
    long_part: u32,
    rounds: usize,
    large_rounds: usize,
    size: Size,
    large_size: Size,
    cases: Vec<Case>,
    /// The command line says how much memory there is.
    has_own_budget: bool,
    growth: Option<Vec<u32>>,
    engines: Option<Vec<EngineName>>,
    dir: PathBuf,
    save: bool,
    /// Measure nothing, and print what was kept here.
    show: Option<PathBuf>,
}

/// Does what the command line asks.
pub fn main() -> Outcome<()> {
    let plan = parse_plan()?;
    if let Some(kept) = &plan.show {
        return show(&serde_json::from_slice(&std::fs::read(kept)?)?);
    }
    // Named by the process, so that two benchmarks at once do not share a folder.
    let dir = plan.dir.join(std::process::id().to_string());
    std::fs::create_dir_all(&dir)?;
    let outcome = match &plan.growth {
        Some(sizes) => {
            let engines = plan.engines.clone().unwrap_or_else(|| {
                let drawn =
                    |engine: &EngineName| ["keystone", "rocksdb"].contains(&engine.as_str());
                EngineName::ALL.iter().copied().filter(drawn).collect()
            });
            growth::measure(sizes, &engines, plan.large_size, &dir, plan.save)
        }
        None => run(&plan, &dir),
    };
    std::fs::remove_dir_all(&dir)?;
    outcome
}

fn parse_plan() -> Outcome<Plan> {
    use lexopt::prelude::*;

    let size = Size {
        records: 1_000_000,
        value_len: dataset::VALUE_LEN,
        durable_ms: 2000,
        reads: 2_000_000,
        ranges: 300_000,
        scans: 3,
        memory_bytes: MEMORY_BYTES,
        background_threads: 2,
    };
    let mut plan = Plan {
        label: "full",
        is_quick: false,
        long_part: 1,
        rounds: 5,
        large_rounds: 3,
        size,
        large_size: Size { records: LARGE_RECORDS, memory_bytes: LARGE_MEMORY_BYTES, ..size },
        cases: Case::all(),
        has_own_budget: false,
        growth: None,
        engines: None,
        dir: machine::build_dir()?.join("bench-data"),
        save: true,
        show: None,
    };
    let (mut large, mut only, mut rounds, mut records) = (false, None, None, None);
    let mut has_own_length = false;
    let mut parser = lexopt::Parser::from_env();
    parser.next()?;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("quick") => {
                (plan.label, plan.is_quick) = ("quick", true);
                (plan.rounds, plan.large_rounds, large) = (1, 1, true);
                for size in [&mut plan.size, &mut plan.large_size] {
                    (size.durable_ms, size.reads, size.ranges) = (300, 100_000, 15_000);
                }
                // Memory is scaled too, so that fills still flush and the large rows do not fit.
                (plan.size.records, plan.size.memory_bytes) = (100_000, 32 << 20);
                plan.large_size.records = LARGE_RECORDS / 20;
                plan.large_size.memory_bytes = 16 << 20;
            }
            Long("large") => large = true,
            Long("growth") => {
                let is_sizes = |arg: &std::ffi::OsStr| {
                    arg.to_str().is_some_and(|arg| arg.starts_with(|c: char| c.is_ascii_digit()))
                };
                let sizes = parser.try_raw_args().and_then(|mut args| args.next_if(is_sizes));
                let sizes = sizes.map_or(Ok("1M,10M".to_owned()), |sizes| sizes.string())?;
                plan.growth = Some(sizes.split(',').map(parse_count).collect::<Outcome<_>>()?);
            }
            Long("rounds") => rounds = Some(parser.value()?.parse()?),
            Long("records") => records = Some(parse_count(&parser.value()?.string()?)?),
            Long("value-len") => {
                let value_len: usize = parser.value()?.parse()?;
                if value_len < 16 {
                    return Err("--value-len: at least 16".into());
                }
                plan.large_size.value_len = value_len;
                plan.cases = Case::all_of_length(value_len);
                has_own_length = true;
            }
            Long("budget-mib") => {
                plan.size.memory_bytes = parser.value()?.parse::<usize>()? << 20;
                plan.large_size.memory_bytes = plan.size.memory_bytes;
                plan.has_own_budget = true;
            }
            Long("only") => only = Some(parser.value()?.string()?),
            Long("engines") => {
                let names = parser.value()?.string()?;
                let parse = |name| EngineName::parse(name).ok_or(format!("no engine {name}"));
                plan.engines = Some(names.split(',').map(parse).collect::<Result<_, _>>()?);
            }
            Long("dir") => plan.dir = parser.value()?.into(),
            Long("no-save") => plan.save = false,
            Long("show") => plan.show = Some(parser.value()?.into()),
            Long("help") | Short('h') => return Err(USAGE.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    if let Some(rounds) = rounds {
        (plan.rounds, plan.large_rounds) = (rounds, rounds);
    }
    if plan.is_quick && records.is_none() && !plan.has_own_budget && !has_own_length {
        plan.long_part = 2;
    }
    plan.size.records = records.unwrap_or(plan.size.records);
    plan.cases.retain(|case| {
        let has_one_of = |texts: &String| texts.split('|').any(|text| case.name().contains(text));
        let named = only.as_ref().is_none_or(has_one_of);
        named && (large || !case.workload.is_large())
    });
    // Every partition is full, and 64 writers have at least a record each.
    let odd = |records: u32| records < 10_000 || !records.is_multiple_of(dataset::POSTS_PER_USER);
    if odd(plan.size.records) || plan.growth.iter().flatten().any(|&records| odd(records)) {
        return Err("a number of records is at least 10000, and a multiple of 100".into());
    }
    if plan.rounds == 0 || plan.cases.is_empty() {
        return Err("nothing to do".into());
    }
    Ok(plan)
}

/// A number of records: `250000`, `250k` or `10M`.
fn parse_count(text: &str) -> Outcome<u32> {
    let (digits, unit) = match (text.strip_suffix(['k', 'K']), text.strip_suffix('M')) {
        (Some(digits), _) => (digits, 1_000),
        (_, Some(digits)) => (digits, 1_000_000),
        _ => (text, 1),
    };
    let count = digits.parse::<u32>().ok().and_then(|count| count.checked_mul(unit));
    count.ok_or_else(|| format!("{text} is no number of records").into())
}

impl Plan {
    fn size_of(&self, case: Case) -> Size {
        if case.workload.is_large() {
            return Size { value_len: case.value_len, ..self.large_size };
        }
        let is_long = case.value_len > dataset::VALUE_LEN;
        let times = match is_long && case.workload.is_warm() && !self.has_own_budget {
            true => LONG_VALUE_MEMORY,
            false => 1,
        };
        let part = if is_long { self.long_part } else { 1 };
        let partitions = self.size.records / dataset::POSTS_PER_USER / part;
        Size {
            records: partitions * dataset::POSTS_PER_USER,
            value_len: case.value_len,
            memory_bytes: self.size.memory_bytes * times,
            ..self.size
        }
    }

    /// Whether the engine is measured in this row. The large ones are where B-trees take longest, and what
    /// is wanted there is held beside LSM trees, or beside the best fill, which is never a B-tree's.
    fn measures(&self, engine: EngineName, case: Case) -> bool {
        let is_slow = case.workload.is_large() && !engine.is_lsm();
        !(self.is_quick && is_slow && self.engines.is_none())
    }

    fn rounds_of(&self, case: Case) -> usize {
        if case.workload.is_large() { self.large_rounds } else { self.rounds }
    }

    fn empty_row(&self, case: Case, engines: &[EngineName]) -> Row {
        let records = self.size_of(case).records;
        let name = match case.workload.is_large() || records != self.size.records {
            true => format!("{}, {} M", case.name(), f64::from(records) / 1e6),
            false => case.name(),
        };
        Row::new(name, case, engines)
    }
}

fn run(plan: &Plan, dir: &Path) -> Outcome<()> {
    let started = machine::timestamp();
    let machine = Machine::describe(dir)?;
    let engines = plan.engines.clone().unwrap_or_else(|| EngineName::ALL.to_vec());
    let Size { records, memory_bytes, .. } = plan.size;
    let long_reads = Case { workload: Workload::Read1, value_len: dataset::LONG_VALUE_LEN };
    println!("{machine}");
    println!(
        "{} records, keys of {} bytes, values of 100 or as named, {} MiB for each engine ({} where \
         longer values are read), LZ4 where there is compression; rounds: {}",
        figures::thousands(f64::from(records)),
        dataset::JOINED_LEN,
        memory_bytes >> 20,
        plan.size_of(long_reads).memory_bytes >> 20,
        plan.rounds
    );

    for &engine in &engines {
        eprintln!("checking {}", engine.as_str());
        let (dir, size) = (dir.join("run"), plan.size);
        Request { engine, job: Job::Check, dir, size, seed: 0 }.run_in_child()?;
    }

    let rows = plan.cases.iter().map(|&case| plan.empty_row(case, &engines)).collect();
    let (size, large_size) = (plan.size, plan.large_size);
    let mut results = Results { started, machine, size, large_size, rows };
    for round in 0..plan.rounds.max(plan.large_rounds) {
        for (nth, turn) in turns(&mut results.rows).enumerate() {
            let case = turn[0].case;
            if round < plan.rounds_of(case) {
                eprintln!("round {} of {}: {}", round + 1, plan.rounds_of(case), turn[0].name);
                take_turns(plan, dir, turn, round, nth)?;
            }
        }
        // After each round: who has to end it early has those that are complete.
        if plan.save {
            figures::save(&results, &results.started, "engine", plan.label)?;
        }
    }
    show(&results)
}

fn show(results: &Results) -> Outcome<()> {
    results.print_tables();
    println!("{}", results.closing_line()?);
    Ok(())
}

/// The rows that are measured together: those that only read, on one database.
fn turns(rows: &mut [Row]) -> impl Iterator<Item = &mut [Row]> {
    rows.chunk_by_mut(|a, b| {
        let one_database = a.case.value_len == b.case.value_len;
        one_database && a.case.workload.only_reads() && b.case.workload.only_reads()
    })
}

/// Who comes when in a round. In as many rounds as there are engines each has each place once; in twice as many, each
/// comes after each other one as often: it matters what was in memory and on the disk before.
fn order(engines: usize, round: usize) -> impl Iterator<Item = usize> {
    let is_mirrored = (round / engines.max(1)) % 2 == 1;
    (0..engines).map(move |turn| {
        // 0, 1, -1, 2, -2 and so on: no two steps are the same.
        let step = turn.div_ceil(2);
        let is_ahead = (turn % 2 == 1) != is_mirrored;
        (round + if is_ahead { step } else { engines - step }) % engines
    })
}

/// One round of some rows: every engine once, and the machine alone where a row is held against it.
fn take_turns(plan: &Plan, dir: &Path, rows: &mut [Row], round: usize, nth: usize) -> Outcome<()> {
    let size = plan.size_of(rows[0].case);
    let workloads: Vec<Workload> = rows.iter().map(|row| row.case.workload).collect();
    for row in rows.iter_mut() {
        if row.case.workload.wants_bare_syncs() {
            row.bare_syncs.push(BareSyncs::measure(dir, size.durable_ms)?);
        }
        if row.case.workload.is_mixed() {
            row.held_up.push(HeldUp::measure());
        }
        if row.case.workload == Workload::Ingest {
            let bytes = u64::from(size.records) * size.value_len as u64;
            row.bare_bytes_per_second.push(limits::sequential_bytes_per_second(dir, bytes)?);
        }
    }
    for column in order(rows[0].cells.len(), round + nth) {
        let engine = rows[0].cells[column].engine;
        if !plan.measures(engine, rows[0].case) {
            continue;
        }
        let request = Request {
            engine,
            job: Job::Measure(workloads.clone()),
            dir: dir.join("run"),
            size,
            seed: 1_000 * (round as u64 + 1),
        };
        for (row, run) in rows.iter_mut().zip(request.run_in_child()?) {
            row.cells[column].runs.push(run);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_records_may_be_written_in_thousands_or_millions() {
        let counted = ["250000", "250k", "10M"].map(|text| parse_count(text).ok());
        assert_eq!(counted, [Some(250_000), Some(250_000), Some(10_000_000)]);
        assert!(parse_count("5000M").is_err() && parse_count("M").is_err());
    }

    #[test]
    fn rows_that_only_read_values_of_one_length_are_measured_together() {
        let mut rows: Vec<Row> =
            Case::all().into_iter().map(|case| Row::new(case.name(), case, &[])).collect();
        let together: Vec<usize> =
            turns(&mut rows).map(|turn| turn.len()).filter(|&len| len > 1).collect();
        assert_eq!(together, [5, 3]);
    }

    #[test]
    fn each_engine_has_each_place_and_comes_after_each_other_one_as_often() {
        for engines in 1..=6 {
            let rounds: Vec<Vec<usize>> =
                (0..2 * engines).map(|round| order(engines, round).collect()).collect();
            for place in 0..engines {
                for half in rounds.chunks(engines) {
                    let mut there: Vec<usize> = half.iter().map(|round| round[place]).collect();
                    there.sort_unstable();
                    assert!(there.into_iter().eq(0..engines), "{half:?}");
                }
            }
            let pairs = || rounds.iter().flat_map(|round| round.windows(2));
            for pair in pairs() {
                assert_eq!(pairs().filter(|other| *other == pair).count(), 2, "{rounds:?}");
            }
        }
    }

    #[test]
    fn every_workload_has_a_line_in_the_table() {
        for case in Case::all() {
            assert!(bars::LINES.iter().any(|line| line.workload == case.workload));
        }
    }
}
