//! The Dapr door over real sockets, by topic. The cases of Dapr's own conformance suite for state
//! stores are among them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod acceptance_000;
mod component;
mod concurrency;
mod conformance;
mod expiry;
mod governed;
mod grpc;
mod http;
mod key_prefix;
mod other_doors;
mod query;
mod server;
mod transactions;
