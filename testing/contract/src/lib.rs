//! The contract of the ports: what an implementation must do, as tests that any implementation runs.
//! This is the definition of the ports; their documentation says the same in prose.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's clock"
)]

pub mod items;
pub mod keys;
