//! The embedded database, as its users call it: one file or folder for each topic.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod basics;
mod filters;
mod golden;
mod governed;
mod indexes;
mod key_design;
mod key_order;
mod partiql;
mod purge;
mod streams;
mod support;
mod tables;
mod ttl;
mod writes;
