//! Acceptance, section 000: the keys of the mastery engine, its builders and its access patterns, at
//! the doors of one server. What Dapr writes, DynamoDB reads, and the other way round.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real sockets and threads are the point"
)]

mod doors;
mod keys;
mod patterns;
mod racing;
