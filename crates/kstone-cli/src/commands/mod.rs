//! One file for each command: from its arguments to the engine, and the answer back.

mod delete;
mod demo;
mod get;
mod load;
mod maintain;
mod put;
mod query;
mod record;
mod scan;
mod stats;
mod verify;

use anyhow::Result;
use kstone_core::Engine;

use crate::Outcome;
use crate::args::Command;
use crate::database;
use crate::output::Output;

/// Opens what the command needs and runs it.
pub fn run(command: Command, out: &mut Output) -> Result<Outcome> {
    match &command {
        Command::Verify(args) => return verify::run(args, out),
        Command::Demo(args) => return demo::run(args, out),
        _ => {}
    }
    let engine = match &command {
        // Nothing is created for a record that is refused.
        Command::Put(args) => {
            put::check(args)?;
            database::open_or_create(&args.dir)?
        }
        Command::Load(args) => database::open_or_create(&args.dir)?,
        other => database::open(folder(other))?,
    };
    run_on(&engine, &command, out)
}

/// Runs a command on a database that is open.
fn run_on(engine: &Engine, command: &Command, out: &mut Output) -> Result<Outcome> {
    match command {
        Command::Put(args) => put::run(engine, args, out),
        Command::Get(args) => get::run(engine, args, out),
        Command::Delete(args) => delete::run(engine, args, out),
        Command::Load(args) => load::run(engine, args, out),
        Command::Query(args) => query::run(engine, args, out),
        Command::Scan(args) => scan::run(engine, args, out),
        Command::Stats(args) => stats::run(engine, args, out),
        Command::Compact(_) => maintain::compact(engine, out),
        Command::Checkpoint(args) => maintain::checkpoint(engine, args, out),
        Command::Verify(args) => verify::run(args, out),
        Command::Demo(args) => demo::run(args, out),
    }
}

fn folder(command: &Command) -> &std::path::Path {
    match command {
        Command::Put(args) => &args.dir,
        Command::Get(args) => &args.target.dir,
        Command::Delete(args) => &args.target.dir,
        Command::Load(args) => &args.dir,
        Command::Query(args) => &args.dir,
        Command::Scan(args) => &args.dir,
        Command::Stats(args) => &args.dir,
        Command::Verify(args) => &args.dir,
        Command::Compact(args) => &args.dir,
        Command::Checkpoint(args) => &args.dir,
        Command::Demo(args) => args.dir.as_deref().unwrap_or_else(|| ".".as_ref()),
    }
}
