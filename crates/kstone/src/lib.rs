//! The embedded database of KeystoneDB: DynamoDB's data model as a Rust library.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod background;
mod cost;
mod database;
mod error;
pub mod expr;
mod handle;
#[doc(hidden)]
pub mod key;
pub mod ops;
pub mod partiql;
pub mod policy;
pub mod ports;
mod purging;
mod side;
mod staging;
pub mod stream;
pub mod table;
mod value;
mod write_policy;

pub use database::{Database, DatabaseOptions, Reply, ReplyFuture};
pub use error::{CancellationCode, CancellationReason, Error, Result};
pub use handle::{Entries, Entry, Query, Scan, Table, placeholders};
pub use kstone_core::{Durability, Key};
pub use side::ExpiredRecordHandler;
pub use value::{
    Attributes, Corrupt, DecimalText, EncodedValue, Item, ItemBuilder, ItemBytes, ItemRef,
    ListBuilder, ListRef, Number, NumberError, NumberRef, SetKind, SetRef, TextForm, Value,
    ValueRef,
};
