//! A disk for tests: it remembers what was synced and what was not, stops at a chosen moment, and
//! gives back what a machine could find after the power came back.
//!
//! ```
//! use kstone_core::env::{OpenMode, Vfs};
//! use kstone_sim::{CrashPolicy, SimDisk};
//! use std::path::Path;
//!
//! let disk = SimDisk::new(1);
//! let file = disk.open(Path::new("db/a"), OpenMode::CreateNew)?;
//! file.write_at(b"kept", 0)?;
//! file.sync_data()?;
//! disk.sync_dir(Path::new("db"))?;
//! file.write_at(b"LOST", 0)?;
//!
//! let found = disk.crash(CrashPolicy::LoseAll);
//! assert_eq!(found.read_file(Path::new("db/a"))?, b"kept");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The model is the contract of [`kstone_core::env::Vfs`] taken at its word, and no kinder:
//!
//! - **Data** reaches the disk by sectors of 512 bytes. A sector written since its file's last
//!   sync is, after a crash, any of the versions it had, or the beginning of one and the rest of
//!   an earlier one. The length is any that the file had since that sync.
//! - **Names** are durable by a sync of their folder, not of the file. Each change of a name since
//!   then survives or not on its own; a rename happened or did not. Folders themselves are durable
//!   when made.
//! - **A failed sync** loses the right to be repeated: what it should have written counts as clean,
//!   so a later sync succeeds without writing it.
//! - **Space** given to a file, by a write or by `allocate`, is never asked for again.
//!
//! A run depends on nothing but the seeds and the order of the calls, so a single thread replays
//! exactly. The tests of the engine use this crate; it uses only `kstone_core::env`.
//!
//! Read in this order: [`SimDisk`] (`disk.rs`), `inode.rs` (data), `names.rs` (names), `plan.rs`
//! (when to stop, what to fail).
#![allow(clippy::disallowed_types, reason = "the simulator stands outside the engine's schedule")]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod dice;
mod disk;
mod inode;
mod names;
mod plan;
mod space;
#[cfg(test)]
mod tests;
mod vfs;

pub use disk::{CrashPolicy, SimDisk};
pub use plan::{Fault, FaultPlan, Trigger};
