//! Writes under a policy: every way to write is shown to it, what it says becomes part of the same
//! commit, and what it hears is exactly what happened.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod counts;
mod crash;
mod own_tables;
mod refusals;
mod support;
mod time_to_live;
