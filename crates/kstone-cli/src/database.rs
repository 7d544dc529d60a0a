//! Opening the folder, with errors that say what to do next.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use kstone_core::{Engine, Error, Options, TableId};

/// The commands work on the table that every database has.
pub const TABLE: TableId = TableId::DEFAULT;

/// For commands that read: the database must be there.
pub fn open(dir: &Path) -> Result<Engine> {
    Engine::open(dir, options(false)).map_err(|error| explain(dir, error))
}

/// For commands that write: makes the database if the folder holds none.
pub fn open_or_create(dir: &Path) -> Result<Engine> {
    let engine = Engine::open(dir, options(true)).map_err(|error| explain(dir, error))?;
    Ok(engine)
}

/// A command is short-lived: a small budget means a small log, which is quick to create and to
/// replay.
fn options(create_if_missing: bool) -> Options {
    Options { create_if_missing, memory_budget_bytes: 64 << 20, ..Options::default() }
}

/// Adds what a user of this command can do about it.
pub fn explain(dir: &Path, error: Error) -> anyhow::Error {
    match error {
        Error::NotFound { .. } => {
            let dir = dir.display();
            anyhow!(
                "{dir} holds no KeystoneDB database; check the path, or make one: \
                 kstone put {dir} user#1 '{{\"name\":\"Ada\"}}'"
            )
        }
        other => other.into(),
    }
}

/// An absolute path, because the database remembers it.
pub fn absolute(path: &Path) -> Result<std::path::PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} is no usable path", path.display()))
}
