//! Opening the folder, with errors that say what to do next.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use kstone::{Database, DatabaseOptions, Error, Item, ItemBytes};
use kstone_core::env::Env;
use kstone_core::{Error as EngineError, Options, TableId};

use crate::serve::server_file::ServerFile;

/// Without `--table`, commands work on the table that every database has.
pub const TABLE: TableId = TableId::DEFAULT;

/// What DynamoDB allows an item to be, and the embedded database too.
const ITEM_BYTES_MAX: usize = 400 * 1024;

/// For commands that read: the database must be there.
pub fn open(dir: &Path) -> Result<Database> {
    try_open(dir, false).map_err(|error| explain(dir, error))
}

/// For commands that write: makes the database if the folder holds none.
pub fn open_or_create(dir: &Path) -> Result<Database> {
    try_open(dir, true).map_err(|error| explain(dir, error))
}

/// The same, with the error as it is.
pub fn try_open(dir: &Path, create_if_missing: bool) -> Result<Database, Error> {
    // A command is short-lived: a small budget means a small log, which is quick to create and to
    // replay.
    let engine = Options { create_if_missing, memory_budget_bytes: 64 << 20, ..Options::default() };
    let options = DatabaseOptions { engine, ..DatabaseOptions::default() };
    Database::open_with(Env::system(), dir, options)
}

/// Adds what a user of this command can do about it.
pub fn explain(dir: &Path, error: Error) -> anyhow::Error {
    match error {
        Error::Engine(error) => explain_engine(dir, error),
        other => other.into(),
    }
}

/// The same for what goes to the engine directly.
pub fn explain_engine(dir: &Path, error: EngineError) -> anyhow::Error {
    let shown = dir.display();
    match error {
        EngineError::NotFound { .. } => anyhow!(
            "{shown} holds no KeystoneDB database; check the path, or make one: \
             kstone put {shown} user#1 '{{\"name\":\"Ada\"}}'"
        ),
        EngineError::Locked { .. } => {
            match ServerFile::read(dir).and_then(|notice| notice.dynamodb) {
                Some(url) => anyhow!(
                    "{shown} is in use by the server at {url}: ask it for a named table (kstone tables \
                 {url}), or stop it first"
                ),
                None => EngineError::Locked { path: dir.to_owned() }.into(),
            }
        }
        other => other.into(),
    }
}

/// An item as the default table stores it.
pub fn encode(item: &Item) -> Result<ItemBytes> {
    let size = item.size();
    if size > ITEM_BYTES_MAX {
        bail!("the item has {size} bytes, over the limit of {ITEM_BYTES_MAX}");
    }
    Ok(ItemBytes::encode(item))
}

/// A stored item.
pub fn decode(stored: &bytes::Bytes) -> Result<Item> {
    let item = ItemBytes::from_bytes(stored.clone()).and_then(|item| item.decode());
    item.context("what is stored is no item: another version or program wrote it")
}

/// An absolute path, because the database remembers it.
pub fn absolute(path: &Path) -> Result<std::path::PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} is no usable path", path.display()))
}
