//! `kstone serve`: one process that has the database open and serves it at its doors.
//!
//! The order matters: sockets first (a port that is taken costs nothing), then the database, then
//! the doors; and back the same way, so that a write that was acknowledged is there after the restart.

pub mod backend;
mod console;
mod control;
mod dapr;
mod dapr_socket;
mod doors;
mod dynamodb;
mod file_limit;
mod keyspace;
mod platform;
mod process_status;
mod redis;
pub mod server_file;
pub mod settings;
pub mod signals;
mod sockets;

use std::time::Instant;

use anyhow::{Context, Result};
use kstone::Durability;
use tokio::runtime::Runtime;

use crate::Outcome;
use crate::args::Serve;
use crate::demo::Demo;
use crate::output::Output;
use backend::Backend;
use doors::Doors;
use settings::Settings;
use sockets::Sockets;

const THREADS: &str = "cannot start the threads of the server";

pub fn run(args: &Serve, out: &mut Output) -> Result<Outcome> {
    let started = Instant::now();
    let settings = Settings::of(args)?;
    settings.check_doors()?;
    let (ask_to_stop, stop) = signals::watch()?;
    let runtime = Runtime::new().context(THREADS)?;
    let sockets = Sockets::open(&settings, &runtime, out)?;
    let notice = sockets.notice();
    let backend = Backend::open(&settings, &sockets, &runtime, out)?;
    let demo = Demo::prepare(&settings, &backend, &notice, out)?;

    let (mut doors, threads) = (Doors::new(stop.clone()), runtime.handle());
    dynamodb::open(sockets.dynamodb, &settings, &backend, &mut doors, threads);
    let redis_threads = redis::open(sockets.redis, &settings, &backend, ask_to_stop, &mut doors);
    dapr::open(sockets.dapr, &settings, &backend, &mut doors, threads)?;
    console::open(sockets.console, &settings, &backend, &mut doors, threads)?;

    say(out, &headline(&settings));
    for line in doors.lines.iter().chain(&backend.lines) {
        say(out, line);
    }
    say(out, &format!("ready in {} ms", started.elapsed().as_millis()));
    demo.show(&settings, &notice, &backend, &stop, &runtime, out);

    let served = runtime.block_on(doors.closed());
    if *stop.borrow() {
        say(out, "stopping");
    }
    let closed = backend.close(runtime, redis_threads);
    served?;
    closed?;
    say(out, "stopped");
    Ok(Outcome::Done)
}

/// Prints a line. Nobody may be reading any more; the server goes on.
fn say(out: &mut Output, line: &str) {
    let _ = out.line(line);
    let _ = out.flush();
}

fn headline(settings: &Settings) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match &settings.dir {
        Some(dir) => format!("KeystoneDB {version}, data in {}", dir.display()),
        None => format!("KeystoneDB {version}, data in memory only"),
    }
}

fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Sync => "sync",
        Durability::Interval => "interval",
        Durability::Os => "os",
    }
}
