//! `kstone compact` and `kstone checkpoint`.

use anyhow::{Context, Result};
use kstone::Database;
use kstone_core::Engine;

use crate::Outcome;
use crate::args::Checkpoint;
use crate::database;
use crate::output::{Output, bytes, counted};

pub fn compact(db: &Database, out: &mut Output) -> Result<Outcome> {
    // Readers do not see what has expired any more, and it still takes room.
    db.run_background()?;
    let engine = db.engine();
    engine.compact()?;
    let total = engine.stats().total;
    out.line(format!(
        "{} in {}, {} on disk",
        counted(total.records, "record", "records"),
        counted(total.files, "file", "files"),
        bytes(total.file_bytes),
    ))?;
    Ok(Outcome::Done)
}

pub fn checkpoint(engine: &Engine, args: &Checkpoint, out: &mut Output) -> Result<Outcome> {
    let target = database::absolute(&args.target)?;
    let made = engine.checkpoint(&target).context("no checkpoint was made")?;
    out.line(format!(
        "{} holds everything up to version {}: {} linked, {} of log copied",
        args.target.display(),
        made.seq,
        counted(made.files, "file", "files"),
        bytes(made.log_bytes),
    ))?;
    Ok(Outcome::Done)
}
