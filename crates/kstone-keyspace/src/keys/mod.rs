//! Generated Rust types for the keys of the five shipped catalogues; regenerate with `KSTONE_REWRITE=1`
//! and the test `generated`.

pub mod mastery;
pub mod platform;
pub mod practice;
pub mod reviews;
pub mod workflows;
