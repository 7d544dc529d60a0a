//! What KeystoneDB takes before it does anything, and what its indexes cost.

use super::door::{Server, ServerName, Setup};
use super::index_cost::{self, IndexCost};
use crate::Outcome;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// How long a server is left alone before it is looked at.
const QUIET: Duration = Duration::from_secs(2);

/// The figures that are not speeds.
#[derive(Serialize)]
pub struct Footprint {
    /// The release binary, as cargo leaves it.
    pub binary_bytes: u64,
    /// Memory of a server in memory that has answered once.
    pub idle_memory_bytes: u64,
    /// Records written for each index.
    pub index_cost: IndexCost,
}

/// Takes the figures; `dir` is a folder to make and remove.
pub fn measure(setup: &Setup, dir: &Path) -> Outcome<Footprint> {
    let binary = setup.kstone.as_ref().ok_or("there is no kstone")?;
    let binary_bytes = std::fs::metadata(binary)?.len();
    let server = Server::start(ServerName::KeystoneMemory, setup, dir)?;
    std::thread::sleep(QUIET);
    let idle_memory_bytes = server.memory_bytes();
    Ok(Footprint { binary_bytes, idle_memory_bytes, index_cost: index_cost::measure()? })
}
