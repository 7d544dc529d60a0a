//! The door over real sockets: HTTP as clients send it, and as they should not.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real sockets and real time are the point"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod framing;
mod http;
mod limits;
mod operations;
mod server;
mod signatures;
