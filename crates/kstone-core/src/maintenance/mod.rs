//! The rarer operations: bulk ingest, checkpoints, verification, purge, statistics.
//!
//! They are built from the same parts as flush and compaction, and follow the same order: make
//! files, sync them, one manifest edit, then show them.

pub(crate) mod checkpoint;
pub(crate) mod ingest;
pub(crate) mod purge;
pub(crate) mod search;
pub(crate) mod stats;
pub(crate) mod verify;
