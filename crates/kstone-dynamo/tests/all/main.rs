//! Tests of the door over real sockets, with valid and invalid HTTP.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod framing;
mod http;
mod limits;
mod operations;
mod server;
mod signatures;
