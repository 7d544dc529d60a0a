//! The storage engine of KeystoneDB.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod codec;
mod commit;
mod entry;
pub mod env;
mod error;
mod key;
mod manifest;
mod memtable;
mod sst;
mod sync;
mod table;
mod wal;

pub use entry::Seq;
pub use error::{Error, Result};
pub use key::{KEY_LEN_MAX, Key, STRIPES, stripe_of};
pub use table::TableId;
