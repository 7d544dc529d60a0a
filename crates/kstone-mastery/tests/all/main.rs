//! The mastery engine on the embedded database: section 000 of the acceptance list, and its speed.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod engine_speed;
mod specification;
