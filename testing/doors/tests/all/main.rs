//! Short runs of the long tests of the doors, and what several doors show of the same data.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod decoders;
mod linearizable;
mod mastery;
mod redis_abuse;
mod redis_crash;
mod redis_model;
