//! The Dapr door of KeystoneDB: Dapr's state API over HTTP and gRPC, so that its SDKs work without
//! a sidecar.
//!
//! A door translates: parse, call, encode. It uses only the port to items
//! ([`kstone_ports::items::Items`]), so it serves an embedded database and a remote DynamoDB alike.
//!
//! | module | what it does |
//! |---|---|
//! | `door` | the options of the door, and its entry points |
//! | `http` | the state API as paths and JSON |
//! | `grpc` | the same as messages of `dapr.proto.runtime.v1`; and a sidecar's pluggable component |
//! | `store` | a named store, and the prefix of its keys |
//! | `write` | writes as clients request them, in one form for both protocols |
//! | `lookup`, `state` | reads and writes of keys, as reads and writes of items |
//! | `plan` | merges several operations on one key into one write |
//! | `query` | filter, order and pages over all keys, or those with a prefix |
//! | `key`, `entry`, `etag`, `time_to_live`, `condition` | the parts of an item, as below |
//!
//! # How state is stored
//! As items of the table `state`, which the DynamoDB door shows too:
//!
//! | attribute | type | what it is |
//! |---|---|---|
//! | `pk` | S | the key up to where the catalogue says that its partition ends |
//! | `sk` | S | the rest of the key; `#` when there is none, or no pattern declares the key |
//! | `value` | S, or B if it is no UTF-8 | the value, byte for byte as the client sent it |
//! | `etag` | N | the version: a greater one with each write at this door. It is part of the ETag |
//! | `ttl` | N | the second since 1970 at which the item expires, if it does |
//!
//! So `student:s1:mastery:2026-01-14` is `{pk: "student:s1", sk: "mastery:2026-01-14", …}`, and all of
//! a learner's state is one partition. A sidecar, or the door if it is told to ([`KeyPrefix`]), puts
//! an application's name and `||` before each key; `pk` begins with them then.
//!
//! Items that other doors put there are read here as well: a `value` of another type as JSON, and an
//! item without `value` as the JSON object of its attributes. An ETag consists of the version and a
//! checksum of the item's content, so a write at another door changes it too, even if that door does
//! not maintain `etag`.
//!
//! The rules of a catalogue are applied by the database, for every door: the default time to live,
//! and the type, fields and sizes that a value may have. This crate uses a catalogue only to split
//! keys into `pk` and `sk`.
//!
//! ```no_run
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use kstone_dapr::{Door, DoorOptions, State};
//!
//! let database = kstone::Database::memory()?;
//! let keyspace = Arc::new(kstone_keyspace::shipped()?);
//! let clock = Arc::new(kstone_core::env::SystemClock::new());
//! let state = State::new(Arc::new(database), keyspace, clock);
//! let door = Door::new(state, DoorOptions::default());
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:3500").await?;
//! door.serve_http(listener, std::future::pending()).await;
//! # Ok(()) }
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod condition;
mod door;
mod entry;
mod error;
mod etag;
mod grpc;
mod http;
mod key;
mod lookup;
mod plan;
mod query;
mod state;
mod store;
mod time_to_live;
mod write;

pub use door::{Door, DoorOptions};
pub use entry::Entry;
pub use error::{Error, Result};
pub use etag::{Etag, InvalidEtag};
#[doc(hidden)]
pub use grpc::messages;
pub use key::TABLE;
pub use state::State;
pub use store::{InvalidKeyPrefix, KeyPrefix};
pub use write::{Expected, Operation};
