//! Doors with clients that are silent, slow or many, on real sockets.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail"
)]

mod connections;
mod http2;
mod support;
