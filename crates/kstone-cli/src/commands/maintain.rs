//! `kstone compact` and `kstone checkpoint`.

use anyhow::{Context, Result};
use kstone_core::{Durability, Engine, WriteBatch};

use crate::Outcome;
use crate::args::Checkpoint;
use crate::database;
use crate::output::{Output, bytes, counted};

pub fn compact(engine: &Engine, out: &mut Output) -> Result<Outcome> {
    let reclaimed = reclaim_expired(engine)?;
    engine.compact()?;
    let total = engine.stats().total;
    if reclaimed > 0 {
        out.line(format!("{} removed", counted(reclaimed, "expired record", "expired records")))?;
    }
    out.line(format!(
        "{} in {}, {} on disk",
        counted(total.records, "record", "records"),
        counted(total.files, "file", "files"),
        bytes(total.file_bytes),
    ))?;
    Ok(Outcome::Done)
}

/// Deletes what has expired: readers do not see it any more, and it still takes room.
fn reclaim_expired(engine: &Engine) -> Result<u64> {
    const AT_A_TIME: usize = 1000;
    let (mut from, mut reclaimed) = (Some(0), 0);
    while let Some(stripe) = from {
        let (expired, next) = engine.expired(stripe, AT_A_TIME)?;
        let locked = engine.lock(expired.iter().map(|record| &record.key))?;
        let mut batch = WriteBatch::new();
        for record in &expired {
            // A write since then may have replaced it.
            let now = locked.get_even_expired(record.table, &record.key)?;
            if now.is_some_and(|now| now.version == record.version) {
                batch.reclaim(record)?;
                reclaimed += 1;
            }
        }
        // A full page that cannot be reclaimed would be found again for ever.
        from = next.filter(|_| !batch.is_empty());
        locked.commit(&batch, Durability::Sync)?.wait()?;
    }
    Ok(reclaimed)
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
