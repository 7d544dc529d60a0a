//! `kstone-torture`: long randomized tests of the engine. See `--help`.
#![allow(clippy::disallowed_methods, reason = "a test driver on the real machine")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use kstone_torture::command::{self, Failure, Flags};
use kstone_torture::kill9;
use kstone_torture::run::Mode;
use kstone_torture::sequence::{check, check_crowd};

const HELP: &str = "\
Long tests of the KeystoneDB engine.

  kstone-torture model [--sequences N] [--seed N] [--mode inline|threads|memory] [--jobs N]
      Random operations, options and reopenings, compared with a plain map. Sequence i has the
      seed N + i; a failure is shrunk and printed with the seed that repeats it.
      Defaults: 20000 sequences, seed 0, inline, one job a core.

  kstone-torture crowd [--crowds N] [--seed N] [--threads N] [--mode threads|memory]
      Several such sequences at the same time, each in tables of its own, on one engine.
      Defaults: 2000 crowds, seed 0, 4 threads, on a simulated disk.

  kstone-torture kill9 [--rounds N] [--seed N] [--dir DIR]
      Starts a process that writes to a database in DIR, kills it with SIGKILL after a random
      number of acknowledged commits, opens the database and compares. The database is carried
      over from round to round.
      Defaults: 200 rounds, seed 0, a new folder in the temporary folder.
";

fn main() -> ExitCode {
    command::main(HELP, carry_out)
}

fn carry_out(command: &str, rest: &[String]) -> Result<(), Failure> {
    match command {
        "model" => {
            let flags = Flags::parse(rest, &["sequences", "seed", "mode", "jobs"])?;
            let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
            let mode = mode(flags.text("mode").unwrap_or("inline"))?;
            let (sequences, seed) = (flags.number("sequences", 20_000)?, flags.number("seed", 0)?);
            Ok(model(sequences, seed, mode, flags.number("jobs", cores)?.max(1))?)
        }
        "crowd" => {
            let flags = Flags::parse(rest, &["crowds", "seed", "threads", "mode"])?;
            let (crowds, seed) = (flags.number("crowds", 2000)?, flags.number("seed", 0)?);
            let threads = flags.number("threads", 4)?;
            let mode = mode(flags.text("mode").unwrap_or("threads"))?;
            (seed..seed + crowds).try_for_each(|seed| check_crowd(seed, threads, mode))?;
            println!("{crowds} crowds of {threads} from seed {seed} agree with their models");
            Ok(())
        }
        "kill9" => {
            let flags = Flags::parse(rest, &["rounds", "seed", "dir"])?;
            let plan = kill9::Plan {
                rounds: flags.number("rounds", 200)?,
                seed: flags.number("seed", 0)?,
                dir: flags.text("dir").map(Into::into),
                acks_max: 3000,
            };
            let exe = std::env::current_exe().map_err(|e| format!("find this program: {e}"))?;
            let report = kill9::run(&plan, &exe)?;
            println!("{report}");
            Ok(())
        }
        // What `kill9` starts and kills.
        kill9::CHILD => Ok(kill9::child(rest)?),
        other => Err(Failure::no_command(other)),
    }
}

fn mode(name: &str) -> Result<Mode, Failure> {
    match name {
        "inline" => Ok(Mode::Inline),
        "threads" => Ok(Mode::Threads),
        "memory" => Ok(Mode::Memory),
        other => Err(Failure::Usage(format!("there is no mode {other}"))),
    }
}

fn model(sequences: u64, seed: u64, mode: Mode, jobs: u64) -> Result<(), String> {
    let started = Instant::now();
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = || {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= sequences || failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            if n > 0 && n.is_multiple_of(1000) {
                println!("{n} sequences, {:.0} s", started.elapsed().as_secs_f64());
            }
            if let Err(failure) = check(seed.wrapping_add(n), mode) {
                failed.store(true, Ordering::Relaxed);
                return Err(failure.to_string());
            }
        }
    };
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            handle.join().unwrap_or_else(|_| Err("a job panicked".to_owned()))
        };
        handles.into_iter().map(join).collect()
    });
    results.into_iter().collect::<Result<(), _>>()?;
    println!(
        "{sequences} sequences from seed {seed} agree with the model, {mode:?}, {:.0} s",
        started.elapsed().as_secs_f64()
    );
    Ok(())
}
