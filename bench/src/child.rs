//! A run in a process of its own: the parent starts this same program with the request as JSON in
//! an argument and reads one line of JSON. A fresh process leaves nobody with another's heap,
//! threads or caches, and its peak memory is its own.

use crate::Outcome;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The hidden subcommand that a child is started with; then the command that it serves and the
/// request.
pub const SUBCOMMAND: &str = "child";

/// A run of the usual size that takes longer than this hangs.
pub const RUN_MAX: Duration = Duration::from_secs(600);

/// Starts a child that does `request` in the new folder `dir`, waits for it, and removes what it
/// left.
pub fn run<T: DeserializeOwned>(command: &str, request: &impl Serialize, dir: &Path) -> Outcome<T> {
    fs::create_dir_all(dir)?;
    let output = Command::new(std::env::current_exe()?)
        .args([SUBCOMMAND, command])
        .arg(serde_json::to_string(request)?)
        .stderr(Stdio::inherit())
        .output()?;
    fs::remove_dir_all(dir)?;
    // What one run left in the page cache is not written out during the next.
    Command::new("sync").status()?;
    if !output.status.success() {
        return Err(output.status.to_string().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Ends this process if it is still there when a run should long be over.
pub fn limit_run_time(run_max: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(run_max);
        eprintln!("the run did not end within {} s", run_max.as_secs());
        std::process::exit(3);
    });
}
