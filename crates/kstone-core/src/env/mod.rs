//! Everything the engine takes from the machine: files, time, randomness, threads.
//!
//! The engine asks these traits and nothing else (clippy bans the raw calls), so a test can crash
//! it at any sync, fill its disk, stop its clock and replay the run from a seed.

mod clock;
#[cfg(target_os = "linux")]
mod mapped;
mod memory;
mod os;
mod random;
mod threads;
mod vfs;

pub use clock::{Clock, ManualClock, SystemClock};
pub use memory::MemoryVfs;
pub use os::OsVfs;
pub use random::{Random, SeededRandom, SystemRandom};
pub use threads::{JoinHandle, OsThreads, Threads};
pub use vfs::{OpenMode, Vfs, VfsFile, VfsLock};

use std::sync::Arc;

/// The machine as the engine sees it.
#[derive(Debug, Clone)]
pub struct Env {
    /// Files and folders.
    pub vfs: Arc<dyn Vfs>,
    /// Wall clock and stopwatch.
    pub clock: Arc<dyn Clock>,
    /// Randomness (the database's id; nothing that decides correctness).
    pub random: Arc<dyn Random>,
    /// Background threads; `None` runs background work inline, on the calling thread, in an order
    /// that depends on nothing but the calls: what the crash tests need.
    pub threads: Option<Arc<dyn Threads>>,
}

impl Env {
    /// The real machine.
    pub fn system() -> Self {
        Env {
            vfs: Arc::new(OsVfs::new()),
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(SystemRandom),
            threads: Some(Arc::new(OsThreads)),
        }
    }

    /// The real machine, except that files live in memory and are gone with the last handle.
    pub fn memory() -> Self {
        Env { vfs: Arc::new(MemoryVfs::new()), ..Env::system() }
    }
}
