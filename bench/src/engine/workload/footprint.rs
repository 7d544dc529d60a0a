//! What is not a speed: the disk after a compaction, the memory of an empty database, and how
//! long opening takes after a crash.

use super::{Measured, Size, expect_scan, reopen, write_in_batches};
use crate::engine::child::{Job, Request};
use crate::engine::dataset::{JOINED_LEN, Values};
use crate::engine::engines::{Durability, Engine};
use crate::random::shuffled;
use crate::{Outcome, child, machine};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long an empty database is left alone before its memory is looked at.
const QUIET: Duration = Duration::from_millis(300);

/// Every record in random order, then a full compaction; the folder's size is taken afterwards.
pub fn compacted<E: Engine>(dir: &Path, size: Size, seed: u64) -> Outcome<Measured> {
    let engine = E::open(dir, size.budget())?;
    write_in_batches(&engine, size, seed)?;
    engine.compact()?;
    let engine = E::open(dir, size.budget())?;
    expect_scan(&engine, size.records, size.value_len)?;
    engine.close()?;
    Ok(Measured::default())
}

/// An empty database that nobody asks anything: what the process has more than before it was
/// opened. The process itself, with five engines linked into it, is nobody's.
pub fn idle<E: Engine>(dir: &Path, size: Size) -> Outcome<Measured> {
    let before_bytes = machine::memory_bytes("self", "VmRSS:");
    let engine = E::open(dir, size.budget())?;
    std::thread::sleep(QUIET);
    let memory_bytes = machine::memory_bytes("self", "VmRSS:").saturating_sub(before_bytes);
    engine.close()?;
    Ok(Measured { memory_bytes: Some(memory_bytes), ..Measured::default() })
}

/// Opens a database that another process filled with half the memory budget before it was killed.
pub fn reopen_killed<E: Engine>(request: &Request) -> Outcome<Measured> {
    let records = (request.size.memory_bytes / 2 / (JOINED_LEN + request.size.value_len)) as u32;
    let size = Size { records, ..request.size };
    let victim = Request { job: Job::WriteUntilKilled, size, ..request.clone() };
    let mut process = Command::new(std::env::current_exe()?)
        .args([child::SUBCOMMAND, "engine"])
        .arg(serde_json::to_string(&victim)?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let output = process.stdout.take().ok_or("the victim has no output")?;
    BufReader::new(output).read_line(&mut line)?;
    process.kill()?;
    process.wait()?;
    if line.trim() != WRITTEN {
        return Err("the process that was to be killed did not write its records".into());
    }
    let (engine, reopen_ms) = reopen::<E>(&request.dir, size)?;
    expect_scan(&engine, size.records, size.value_len)?;
    engine.close()?;
    Ok(Measured { reopen_ms: Some(reopen_ms), ..Measured::default() })
}

const WRITTEN: &str = "written";

/// The process that is killed: writes every record, says so, and waits.
pub fn write_until_killed<E: Engine>(request: &Request) -> Outcome<()> {
    let Request { dir, size, seed, .. } = request;
    let engine = E::open(dir, size.budget())?;
    let mut values = Values::new(1, size.value_len);
    let ids = shuffled(size.records, *seed);
    for (nth, &id) in ids.iter().enumerate() {
        // The last one is synced, without which redb would keep none of them.
        let durability = if nth + 1 < ids.len() { Durability::Os } else { Durability::Sync };
        engine.put(&values.record(id, 0), durability)?;
    }
    println!("{WRITTEN}");
    std::io::stdout().flush()?;
    // Nothing comes; it ends with its parent, if nobody kills it before.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    engine.close()
}
