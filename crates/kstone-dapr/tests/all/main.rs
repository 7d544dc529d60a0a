//! The Dapr door over real sockets, by topic. The cases of Dapr's own conformance suite for state
//! stores are among them.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests panic where they fail")]

mod acceptance_000;
mod component;
mod concurrency;
mod conformance;
mod expiry;
mod governed;
mod grpc;
mod http;
mod key_prefix;
mod limits;
mod other_doors;
mod query;
mod server;
mod transactions;
