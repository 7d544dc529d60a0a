//! One run of one engine, in a process of its own.

use super::check;
use super::engines::{Engine, EngineName, Task};
use super::workload::{Measured, Size, Workload};
use crate::machine::{disk_bytes, peak_memory_bytes};
use crate::{Outcome, child};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

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
        let what = self.workload.map_or("the comparison with a map", Workload::as_str);
        child::run("engine", self, &self.dir)
            .map_err(|failure| format!("{}: {what}: {failure}", self.engine.as_str()).into())
    }

    /// Does the work in this process and prints the result.
    pub fn serve(self) -> Outcome<()> {
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
