//! One run in a process of its own: the parent starts this same program with the request as JSON
//! in an argument and reads one line of JSON. A fresh process leaves no engine with another's
//! heap, threads or caches, and its peak memory is the engine's own.

use crate::check;
use crate::engines::{Engine, EngineName, Outcome, Task};
use crate::machine::{disk_bytes, peak_memory_bytes};
use crate::workload::{Measured, Size, Workload};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The hidden subcommand that a child is started with.
pub const SUBCOMMAND: &str = "child";

/// A run that takes longer than this hangs.
const RUN_MAX: Duration = Duration::from_secs(600);

/// What a child is asked to do.
#[derive(Serialize, Deserialize)]
pub struct Request {
    /// With which engine.
    pub engine: EngineName,
    /// Which workload; none: compare the engine with a map.
    pub workload: Option<Workload>,
    /// In which folder, which does not exist yet.
    pub dir: PathBuf,
    /// How much.
    pub size: Size,
    /// The same for all engines of a round.
    pub seed: u64,
}

/// What a child found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Its speed.
    #[serde(flatten)]
    pub measured: Measured,
    /// The size of the folder after the database was closed.
    pub disk_bytes: u64,
    /// The most memory the process had.
    pub peak_memory_bytes: u64,
}

impl Request {
    /// Starts a child, waits for it, and removes what it left.
    pub fn run_in_child(&self) -> Outcome<Run> {
        fs::create_dir_all(&self.dir)?;
        let output = Command::new(std::env::current_exe()?)
            .arg(SUBCOMMAND)
            .arg(serde_json::to_string(self)?)
            .stderr(Stdio::inherit())
            .output()?;
        fs::remove_dir_all(&self.dir)?;
        // What one run left in the page cache is not written out during the next.
        Command::new("sync").status()?;
        if !output.status.success() {
            let what = self.workload.map_or("the comparison with a map", Workload::as_str);
            return Err(format!("{}: {what}: {}", self.engine.as_str(), output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Does the work in this process and prints the result.
    pub fn serve(self) -> Outcome<()> {
        std::thread::spawn(|| {
            std::thread::sleep(RUN_MAX);
            eprintln!("the run did not end within {} s", RUN_MAX.as_secs());
            std::process::exit(3);
        });
        let dir = self.dir.clone();
        let measured = self.engine.dispatch(self)?;
        let run =
            Run { measured, disk_bytes: disk_bytes(&dir)?, peak_memory_bytes: peak_memory_bytes() };
        println!("{}", serde_json::to_string(&run)?);
        Ok(())
    }
}

impl Task for Request {
    type Output = Outcome<Measured>;

    fn run<E: Engine>(self) -> Outcome<Measured> {
        let dir: &Path = &self.dir;
        match self.workload {
            Some(workload) => workload.run::<E>(dir, self.size, self.seed),
            None => check::against_a_map::<E>(dir, self.seed).map(|()| Measured::default()),
        }
    }
}
