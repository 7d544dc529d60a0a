//! The storage engine of KeystoneDB: 256 LSM trees ("stripes") behind one log.
//!
//! [`Engine`] is the way in; [`Key`] names a record; [`WriteBatch`] changes several at once;
//! [`Snapshot`] reads them as of one moment.
//!
//! ```
//! use kstone_core::{Durability, Engine, Key, Options, TableId, WriteBatch};
//!
//! let engine = Engine::memory(Options::default())?;
//! let mut batch = WriteBatch::new();
//! for n in 1..=3 {
//!     let key = Key::with_sk("user#1", format!("post#{n:03}"));
//!     batch.put(TableId::DEFAULT, &key, format!("post number {n}").as_bytes())?;
//! }
//! engine.write(&batch, Durability::Sync)?.wait()?;
//!
//! let posts: Vec<_> = engine
//!     .partition(TableId::DEFAULT, "user#1")
//!     .prefix("post#")
//!     .reverse()
//!     .iter()?
//!     .collect::<Result<_, _>>()?;
//! assert_eq!(posts[0].record.value, "post number 3");
//! # Ok::<(), kstone_core::Error>(())
//! ```
//!
//! Where things are, from the caller down: `engine` (open, commit, flush, compact), `read`
//! (snapshots and iterators), `maintenance` (checkpoint, ingest, purge, verify, statistics),
//! `tree` (one stripe), `memtable` and `sst` (its parts), `commit` and `wal` (the log),
//! `manifest` (what is live), [`mod@env`] (files, time, randomness, threads). Each module's
//! documentation says what it may call.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod batch;
#[cfg(feature = "deliberate-bugs")]
pub mod bugs;
#[cfg(not(feature = "deliberate-bugs"))]
mod bugs;
mod codec;
mod commit;
mod engine;
mod entry;
pub mod env;
mod error;
mod expiry;
#[doc(hidden)]
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod key;
mod maintenance;
mod manifest;
mod memtable;
pub mod meter;
mod options;
#[doc(hidden)]
pub mod prefetch;
mod read;
mod sst;
mod stripes;
#[doc(hidden)]
pub mod sync;
mod table;
mod tables;
mod tree;
mod wal;

pub use batch::{BATCH_LEN_MAX, VALUE_LEN_MAX, WriteBatch};
pub use engine::Engine;
pub use engine::admission::RunLongWork;
pub use engine::locks::Locked;
pub use engine::write::{Commit, Durability, Durable, Written};
pub use entry::Seq;
pub use error::{Error, Result};
pub use expiry::Expired;
pub use key::design as key_design;
pub use key::{KEY_LEN_MAX, Key, KeyRef, STRIPES, stripe_of};
pub use maintenance::checkpoint::Checkpoint;
pub use maintenance::ingest::{IngestRecord, Ingested, Ingester};
pub use maintenance::purge::{PurgeProgress, PurgeSnapshots, PurgeTarget, Purged};
pub use maintenance::search::{ByteMatch, find_bytes};
pub use maintenance::stats::{Stats, StripeStats};
pub use maintenance::verify::{Fault, VerifyReport, verify};
pub use options::{Options, Tuning};
pub use read::{
    KeyedRecord, PartitionIter, PartitionKeys, PartitionQuery, Record, RecordRef, ScanCursor,
    ScanIter, ScanRef, Snapshot,
};
pub use sst::Compression;
pub use stripes::StripeSet;
pub use table::TableId;
