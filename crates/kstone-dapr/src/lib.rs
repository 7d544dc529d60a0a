//! The Dapr door of KeystoneDB: Dapr's state API over HTTP and gRPC, so that its SDKs work without
//! a sidecar.
//!
//! A door translates: parse, call, encode. It uses only the port to items
//! ([`kstone::ports::Items`]), so it serves an embedded database and a DynamoDB far away alike.
//!
//! | module | what it does |
//! |---|---|
//! | `http` | the state API as paths and JSON |
//! | `grpc` | the same as messages of `dapr.proto.runtime.v1`; and the component that a sidecar plugs in |
//! | `store` | a store's name, and what stands before its keys |
//! | `write` | what is to be written, whichever protocol said so |
//! | `lookup`, `state` | from keys to items and back; reads, and writes |
//! | `plan` | several operations on one key as one write |
//! | `query` | filter, order and pages over all keys, or those with a prefix |
//! | `key`, `entry`, `etag`, `time_to_live`, `condition` | the form of an item, below |
//!
//! # Where state is
//! In items of the table `state`, which the DynamoDB door shows too:
//!
//! | attribute | type | what it is |
//! |---|---|---|
//! | `pk` | S | the key up to where the catalogue says that its partition ends |
//! | `sk` | S | the rest of the key; `#` when there is none, or no pattern declares the key |
//! | `value` | S, or B if it is no UTF-8 | the value, byte for byte as the client sent it |
//! | `etag` | N | the version: another, greater one with each write here. It is part of the ETag |
//! | `ttl` | N | the second since 1970 at which the item is gone, if it ends |
//!
//! So `student:s1:mastery:2026-01-14` is `{pk: "student:s1", sk: "mastery:2026-01-14", …}`, and all of
//! a learner's state is one partition. Before a key stands an application's name, with `||`
//! between, if a sidecar puts it there or the door is told to ([`KeyPrefix`]); it is before `pk` then.
//!
//! What other doors put there is read here as well: a `value` of another type as JSON, and an item
//! without `value` as the JSON object of its attributes. An ETag is made of the version and of a
//! checksum of what the item holds, so a change at another door changes it as well, whether or not
//! that door knows of `etag`.
//!
//! What a catalogue declares is the database's to apply, at every door: the time to live that a
//! write does not name, and the type, fields and sizes that it may have. Here it only says where a
//! key's item is.
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
//! door.serve_http(listener, std::future::pending()).await?;
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
pub use etag::{Etag, NoEtag};
pub use key::TABLE;
pub use state::State;
pub use store::{KeyPrefix, NoKeyPrefix};
pub use write::{Expected, Operation};
