//! Values and expressions, as the ports' users and implementations call them: one file or folder for
//! each topic.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod expressions;
mod item_encoding;
mod numbers;
