//! The doors through clients that people use: the AWS SDK for Rust and the `redis` crate.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod redis_crate;
mod rust_sdk;
