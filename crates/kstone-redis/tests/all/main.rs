//! Redis's commands as a library: one file or folder for each topic.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod acknowledged;
mod basics;
mod bits;
mod blocking;
mod crash;
mod dump;
mod expiry;
mod failing;
mod functions;
mod geo;
mod golden;
mod governed;
mod hash_model;
mod hashes;
mod hyperloglog;
mod keys;
mod lists;
mod oversized_commits;
mod port;
mod pubsub;
mod purge;
mod scan;
mod scripting;
mod server;
mod sets;
mod sort;
mod sorted_sets;
mod streams;
mod streams_waiting;
mod strings;
mod support;
