//! `kstone`: KeystoneDB from the command line.
//!
//! `args` says what can be typed, `commands` has one file for each command, `serve` is the server
//! and `demo` what it shows, `database` opens a folder, `catalogues`
//! reads declared keyspaces, `tables` are named tables in a folder or
//! behind a server, `keys`, `json` and `time` turn text into what the database takes and back,
//! `output` knows whether a person or a program is reading, `heatmap` draws the stripes.
#![allow(
    clippy::disallowed_methods,
    reason = "a command of the real machine: its clock and its files are meant"
)]

mod args;
mod catalogues;
mod commands;
mod database;
mod demo;
mod heatmap;
mod json;
mod keys;
mod output;
mod persons;
mod private_file;
mod serve;
mod tables;
mod time;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use output::Output;

/// A server allocates for every command; see docs/decisions/0001.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command that did its work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 1: the answer is "no" (a record that is not there, a database that is damaged).
    /// The command has said so itself.
    No,
}

fn main() -> ExitCode {
    // Ends the process with code 2 when what was typed makes no sense, 0 for help.
    let cli = Cli::parse();
    let mut out = Output::of_process();
    let outcome = commands::run(&cli.command, &mut out)
        .and_then(|outcome| out.flush().map(|()| outcome).map_err(Into::into));
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::No) => ExitCode::FAILURE,
        // The reader has seen enough: `kstone scan DIR | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out.complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
