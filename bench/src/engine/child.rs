//! One run of one engine, in a process of its own.

use super::check;
use super::engines::{Engine, EngineName, Task};
use super::workload::{Measured, Size, Workload, write_until_killed};
use crate::machine::{disk_bytes, peak_memory_bytes};
use crate::{Outcome, child};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What a child does with its engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Job {
    /// Compare it with a map.
    Check,
    /// One workload, or several that only read.
    Measure(Vec<Workload>),
    /// Fill it and wait to be killed, for the parent to open what is left.
    WriteUntilKilled,
}

/// What a child is asked to do.
#[derive(Clone, Serialize, Deserialize)]
pub struct Request {
    /// With which engine.
    pub engine: EngineName,
    /// What.
    pub job: Job,
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
    /// By its own measurement.
    #[serde(flatten)]
    pub measured: Measured,
    /// The size of the folder after the database was closed.
    pub disk_bytes: u64,
    /// The most memory the process had.
    pub peak_memory_bytes: u64,
}

impl Request {
    /// Starts a child, waits for it, and removes what it left. Gives back a run for each workload.
    pub fn run_in_child(&self) -> Outcome<Vec<Run>> {
        child::run("engine", self, &self.dir).map_err(|failure| {
            format!("{}: {:?}: {failure}", self.engine.as_str(), self.job).into()
        })
    }

    /// A run that takes longer hangs.
    pub fn run_max(&self) -> Duration {
        // A quarter of a millisecond a record: several times what the slowest engine needs.
        child::RUN_MAX + Duration::from_millis(u64::from(self.size.records) / 4)
    }

    /// Does the work in this process and prints the result.
    pub fn serve(self) -> Outcome<()> {
        let dir = self.dir.clone();
        let measured = self.engine.dispatch(self)?;
        let (disk_bytes, peak_memory_bytes) = (disk_bytes(&dir)?, peak_memory_bytes());
        let runs: Vec<Run> = measured
            .into_iter()
            .map(|measured| Run { measured, disk_bytes, peak_memory_bytes })
            .collect();
        println!("{}", serde_json::to_string(&runs)?);
        Ok(())
    }
}

impl Task for Request {
    type Output = Outcome<Vec<Measured>>;

    fn run<E: Engine>(self) -> Outcome<Vec<Measured>> {
        match &self.job {
            Job::Check => check::against_a_map::<E>(&self.dir, self.seed).map(|()| vec![]),
            Job::Measure(workloads) => match workloads.as_slice() {
                [workload] if !workload.only_reads() => Ok(vec![workload.run::<E>(&self)?]),
                reads => Workload::run_reads::<E>(reads, &self),
            },
            Job::WriteUntilKilled => write_until_killed::<E>(&self).map(|()| vec![]),
        }
    }
}
