//! Tests of the Dapr door over real sockets, by topic. They include the cases of Dapr's own
//! conformance suite for state stores.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests panic where they fail")]

mod component;
mod concurrency;
mod conformance;
mod expiry;
mod governed;
mod grpc;
mod http;
mod key_prefix;
mod limits;
mod mastery_keys;
mod other_doors;
mod query;
mod server;
mod transactions;
