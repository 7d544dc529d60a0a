//! The arguments of `kstone keyspace`: questions about declared keys.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `kstone keyspace`
#[derive(Debug, Args)]
pub struct Keyspace {
    /// What to do.
    #[command(subcommand)]
    pub command: KeyspaceCommand,
}

/// What can be asked.
#[derive(Debug, Subcommand)]
pub enum KeyspaceCommand {
    /// Read catalogues and report every problem with its line and column
    #[command(after_help = "\
Examples:
  kstone keyspace check orders.toml
  kstone keyspace check shipped orders.toml        beside those that ship with the product")]
    Check(Check),

    /// What is known of a key: its pattern, type, life, whose data it is
    #[command(after_help = "\
Examples:
  kstone keyspace explain student:s1:mastery:2026-01-14
  kstone keyspace explain --keyspace orders.toml order:7
  kstone keyspace explain --data mydb order:7          by what the database is governed by")]
    Explain(Explain),

    /// A page of the whole keyspace, as Markdown; with --data also what there is of each pattern
    #[command(after_help = "\
Examples:
  kstone keyspace docs > keyspace.md
  kstone keyspace docs --data mydb > keyspace.md")]
    Docs(Docs),

    /// Keys, bytes, expiries and writes of each pattern, as counted; nothing is scanned
    #[command(after_help = "\
The database must be, or have been, governed by a keyspace: kstone serve --keyspace.

Examples:
  kstone keyspace metrics --data mydb
  kstone keyspace metrics --data http://127.0.0.1:8000 --json")]
    Metrics(Metrics),

    /// Count and index everything anew, by reading it
    #[command(after_help = "\
Counts are kept with every write, and a server counts anew by itself when its catalogues have
changed. By hand it is of use after a crash, when metrics say that they may be off.

Examples:
  kstone keyspace recount --data mydb
  kstone keyspace recount --data mydb --keyspace shipped     governs it from now on")]
    Recount(Recount),
}

/// `kstone keyspace check`
#[derive(Debug, Args)]
pub struct Check {
    /// Catalogues; `shipped` are those that ship with the product
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
}

/// Which keyspace is meant.
#[derive(Debug, Args)]
pub struct Which {
    /// A catalogue, or `shipped`; may be given several times [default: what --data is governed by,
    /// or shipped]
    #[arg(long, value_name = "FILE")]
    pub keyspace: Vec<String>,
    /// Folder of the database
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// `kstone keyspace explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// The key
    pub key: String,
    #[command(flatten)]
    pub which: Which,
}

/// `kstone keyspace docs`
#[derive(Debug, Args)]
pub struct Docs {
    #[command(flatten)]
    pub which: Which,
}

/// `kstone keyspace metrics`
#[derive(Debug, Args)]
pub struct Metrics {
    /// Folder of the database, or a server's URL
    #[arg(long, value_name = "WHERE")]
    pub data: PathBuf,
    /// Everything as JSON
    #[arg(long)]
    pub json: bool,
}

/// `kstone keyspace recount`
#[derive(Debug, Args)]
pub struct Recount {
    /// Folder of the database
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// A catalogue, or `shipped`; may be given several times [default: what it is governed by]
    #[arg(long, value_name = "FILE")]
    pub keyspace: Vec<String>,
}
