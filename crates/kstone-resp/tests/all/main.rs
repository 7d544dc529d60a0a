//! The Redis door over real sockets: one file for each topic.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod busy;
mod limits;
mod migrate;
mod pipelines;
mod support;
mod waiting;
