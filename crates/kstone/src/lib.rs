//! The embedded database of KeystoneDB: DynamoDB's data model as a Rust library.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod background;
mod cost;
mod database;
mod error;
mod handle;
#[doc(hidden)]
pub mod key;
pub mod ops;
pub mod partiql;
pub mod policy;
mod ports;
mod purging;
mod side;
mod staging;
pub mod stream;
pub mod table;
mod write_policy;

pub use database::{Database, DatabaseOptions, Reply, ReplyFuture};
pub use error::{CancellationCode, CancellationReason, Error, Result};
pub use handle::{Entries, Entry, Query, Scan, Table};
pub use kstone_core::{Durability, Key};
pub(crate) use kstone_ports::value;
pub use kstone_ports::{
    RequestError, expr,
    items::placeholders,
    value::{
        Attributes, Corrupt, DecimalText, EncodedValue, Item, ItemBuilder, ItemBytes, ItemRef,
        ListBuilder, ListRef, Number, NumberError, NumberRef, SetKind, SetRef, TextForm, Value,
        ValueRef,
    },
};
pub use side::ExpiredRecordHandler;
