//! One file for each command: from its arguments to the database, and the answer back.
//!
//! A command on items works on the default table of a folder, through the engine, which knows
//! versions and expiry; or, in `table`, on a named table of a folder or of a server.

mod delete;
mod get;
mod keyspace;
mod learn;
mod load;
mod maintain;
mod person;
mod put;
mod query;
mod record;
mod scan;
mod stats;
mod table;
mod verify;

pub use keyspace::count_anew;
pub use table::query as query_table;

use std::path::Path;

use anyhow::{Result, bail};

use crate::Outcome;
use crate::args::Command;
use crate::output::Output;
use crate::{database, serve, tables};

/// Opens what the command needs and runs it.
pub fn run(command: &Command, out: &mut Output) -> Result<Outcome> {
    match command {
        Command::Serve(args) => serve::run(args, out),
        Command::Keyspace(args) => keyspace::run(args, out),
        Command::Tables(args) => table::list(args, out),
        Command::Put(args) if args.table.is_some() => table::put(args, out),
        Command::Put(args) => {
            // Nothing is created for an item that is refused.
            put::check(args)?;
            put::run(database::open_or_create(folder(&args.place)?)?.engine(), args, out)
        }
        Command::Get(args) if args.target.table.is_some() => table::get(args, out),
        Command::Get(args) => {
            get::run(database::open(folder(&args.target.place)?)?.engine(), args, out)
        }
        Command::Delete(args) if args.target.table.is_some() => table::delete(args, out),
        Command::Delete(args) => {
            delete::run(database::open(folder(&args.target.place)?)?.engine(), args, out)
        }
        Command::Load(args) if args.table.is_some() => table::load(args, out),
        Command::Load(args) => {
            load::run(database::open_or_create(folder(&args.place)?)?.engine(), args, out)
        }
        Command::Query(args) if table::is_asked(args) => table::query(args, out),
        Command::Query(args) => {
            query::run(database::open(folder(&args.place)?)?.engine(), args, out)
        }
        Command::Scan(args) if args.table.is_some() => table::scan(args, out),
        Command::Scan(args) => scan::run(database::open(folder(&args.place)?)?.engine(), args, out),
        Command::Subject(args) => person::subject(args, out),
        Command::Erase(args) => person::erase(args, out),
        Command::Learn(args) => learn::run(args, out),
        Command::Stats(args) => stats::run(database::open(&args.dir)?.engine(), args, out),
        Command::Verify(args) => verify::run(args, out),
        Command::Compact(args) => maintain::compact(&database::open(&args.dir)?, out),
        Command::Checkpoint(args) => {
            maintain::checkpoint(database::open(&args.dir)?.engine(), args, out)
        }
    }
}

/// The default table is nowhere but in a folder.
fn folder(place: &Path) -> Result<&Path> {
    if tables::is_url(place) {
        let url = place.display();
        bail!("which table? a server has named ones: --table TABLE (kstone tables {url})");
    }
    Ok(place)
}
