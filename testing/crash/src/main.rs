//! `kstone-crash`: the long version of the crash, fault and damage tests.
//!
//! Prints one line a seed, every violation, and ends with failure if there was one.

use std::collections::BTreeMap;
use std::process::ExitCode;

use kstone_crash::crash::{self, Plan, Report};
use kstone_crash::damage::Files;
use kstone_crash::{Violation, Workload, fault};
use kstone_sim::Fault;

const HELP: &str = "\
kstone-crash: breaks databases on a simulated disk and checks what is left of them

usage: kstone-crash [--from SEED] [--seeds N] [--steps N] [crash] [fault] [full] [damage]

  crash    the power goes, or the process dies, at every operation of a workload
  fault    one call fails, for every call: no space, I/O error, read error
  full     the disk is too small, for many sizes
  damage   one byte changes, for every 5th byte of every file

Without a kind: all of them. --from 0, --seeds 10, --steps 100. A violation names its seed;
`--from SEED --seeds 1` with the same --steps finds it again.";

struct Arguments {
    from: u64,
    seeds: u64,
    steps: usize,
    kinds: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(what) => {
            eprintln!("{what}\n\n{HELP}");
            return ExitCode::FAILURE;
        }
    };
    let mut violations = 0u64;
    for seed in arguments.from..arguments.from.saturating_add(arguments.seeds) {
        for kind in &arguments.kinds {
            let mut found = Vec::new();
            let told = match kind.as_str() {
                "crash" => crash_seed(seed, arguments.steps, &mut found),
                "fault" => fault_seed(seed, arguments.steps, &mut found),
                "full" => full_seed(seed, arguments.steps, &mut found),
                _ => damage_seed(seed, arguments.steps, &mut found),
            };
            println!("{kind} {seed}: {told}");
            violations += found.len() as u64;
            for violation in found {
                println!("VIOLATION {violation}");
            }
        }
    }
    println!("{violations} violations");
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn arguments() -> Result<Option<Arguments>, String> {
    let mut parsed = Arguments { from: 0, seeds: 10, steps: 100, kinds: Vec::new() };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        let mut number = || {
            let value = given.next().ok_or_else(|| format!("{argument} needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("{argument} needs a number, not {value}"))
        };
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--from" => parsed.from = number()?,
            "--seeds" => parsed.seeds = number()?,
            "--steps" => parsed.steps = number()? as usize,
            "crash" | "fault" | "full" | "damage" => parsed.kinds.push(argument),
            other => return Err(format!("what is {other}?")),
        }
    }
    if parsed.kinds.is_empty() {
        parsed.kinds = ["crash", "fault", "full", "damage"].map(str::to_owned).to_vec();
    }
    Ok(Some(parsed))
}

fn crash_seed(seed: u64, steps: usize, found: &mut Vec<Violation>) -> String {
    let explored = crash::explore(&Workload::draw(seed, steps), &Plan::FULL);
    let Report { commits, images, recoveries } = explored.unwrap_or_else(|violation| {
        found.push(violation);
        Report::default()
    });
    format!("{commits} commits, {images} crashes, {recoveries} recoveries")
}

fn fault_seed(seed: u64, steps: usize, found: &mut Vec<Violation>) -> String {
    // The workload is run again for every call, so its length counts twice.
    let workload = Workload::draw(seed, steps / 2);
    let calls = match fault::count(&workload) {
        Ok(calls) => calls,
        Err(violation) => {
            found.push(violation);
            return String::new();
        }
    };
    let mut seen = BTreeMap::<String, u64>::new();
    let plans =
        [(Fault::NoSpace, calls.ops), (Fault::OpError, calls.ops), (Fault::ReadError, calls.reads)];
    for (kind, count) in plans {
        for at in 0..count {
            match fault::explore(&workload, kind, at) {
                Ok(outcome) => *seen.entry(format!("{kind:?} {outcome:?}")).or_default() += 1,
                Err(violation) => found.push(violation),
            }
        }
    }
    format!("{seen:?}")
}

fn full_seed(seed: u64, steps: usize, found: &mut Vec<Violation>) -> String {
    let workload = Workload::draw(seed, steps);
    let mut failed = 0;
    for capacity_bytes in (0..200_000).step_by(1_500) {
        match fault::fill(&workload, capacity_bytes) {
            Ok(steps) => failed += steps,
            Err(violation) => found.push(violation),
        }
    }
    format!("{failed} steps failed on a full disk and succeeded with room")
}

fn damage_seed(seed: u64, steps: usize, found: &mut Vec<Violation>) -> String {
    let mut seen = BTreeMap::<String, u64>::new();
    let closed = Files::closed(Workload::draw(seed, steps)).map(|files| (files, false));
    let killed = Files::killed(Workload::draw(seed, steps)).map(|files| (files, true));
    for files in [closed, killed] {
        let (files, only_log) = match files {
            Ok(files) => files,
            Err(violation) => {
                found.push(violation);
                continue;
            }
        };
        for (path, len) in files.list() {
            if only_log && path.extension().is_none_or(|ext| ext != "log") {
                continue;
            }
            for offset in (0..len).step_by(5) {
                match files.flip(&path, offset, 1 << (offset % 8)) {
                    Ok(noticed) => *seen.entry(format!("{noticed:?}")).or_default() += 1,
                    Err(violation) => found.push(violation),
                }
            }
        }
    }
    format!("{seen:?}")
}
