//! The two ports: everything above the storage reaches it through [`Items`](items::Items), what
//! DynamoDB can do, and [`Keys`](keys::Keys), what one command, pipeline or transaction of Redis on
//! keys of one slot can do.
//!
//! The storage behind a port is this project's engine in the same process, or a service that speaks
//! DynamoDB's or Redis's protocol. This crate has the traits, their requests and answers, what can go
//! wrong ([`Error`]) and what a store can promise ([`capabilities`]). It knows no engine, no network
//! and no rules of a catalogue.
//!
//! | module | what it is |
//! |---|---|
//! | [`items`] | the port to items: requests, answers, descriptions of tables |
//! | [`keys`] | the port to keys: commands, replies, which commands it accepts |
//! | [`value`] | attribute values and items, as a tree and in the compact form that is stored |
//! | [`expr`] | DynamoDB's expressions: conditions, updates, projections, key conditions |
//! | [`capabilities`] | what a store can promise, to be asked before the start |
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod capabilities;
mod error;
pub mod expr;
pub mod items;
pub mod keys;
mod request_error;
pub mod value;

use std::future::Future;
use std::pin::Pin;

pub use error::{CancellationCode, CancellationReason, Error, Result, canceled_message};
pub use request_error::RequestError;

/// What every call of a port returns: a boxed future, because the store is chosen when the program
/// starts, so ports are used as trait objects. The price is one allocation a call.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;
