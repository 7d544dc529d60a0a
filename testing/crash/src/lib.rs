//! Tests whether the engine keeps its promises when the power goes, the disk fills up, or a bit flips.
//!
//! A [`Workload`] is a list of steps drawn from a seed: commits of every durability, tables,
//! expiry, snapshots, flushes, compactions, ingests, checkpoints, purges and reopenings, under
//! options so small that files, levels and log segments turn over all the time. A [`Run`] carries
//! it out on a simulated disk, on one thread, and keeps a [`Model`] of the contents after *every*
//! commit. Three kinds of trouble:
//!
//! - [`crash`]: at every sync and at sampled other operations, copies of the disk are taken as
//!   power losses and kills would leave it; each is opened again and checked.
//! - [`fault`]: one call fails (no space, an I/O error), for every call there is.
//! - [`damage`]: one byte of a file is changed, for every n-th byte of every file.
//!
//! What is checked is always the same: the contents are those after some commit in the history,
//! never a mixture; every commit that was promised to survive did; numbers and clock never run
//! backwards; errors are typed; and the database can be used afterwards.
//!
//! A violation is told as a sentence with the seed and the place; the same seed finds it again.
//! `cargo run --release -p kstone-crash` does this for as many seeds as one likes.
#![allow(clippy::disallowed_types, reason = "the harness stands outside the engine's schedule")]

pub mod crash;
pub mod damage;
mod dice;
pub mod fault;
mod image;
mod model;
mod recording_disk;
mod run;
mod workload;

pub use dice::Dice;
pub use model::{Change, Contents, Model, Stored};
pub use run::{Failure, Run};
pub use workload::{Step, Workload};

/// What is wrong with the engine, in a sentence.
pub type Violation = String;
