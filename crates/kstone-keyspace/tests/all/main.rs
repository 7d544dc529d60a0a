//! Catalogues, the rules that they put in force, and erasure: one file for each topic.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod acceptance;
mod erasure;
mod erasure_crash;
mod erasure_shapes;
mod erasure_speed;
mod erasure_stuck;
mod generated;
mod governed_items;
mod governed_keys;
mod governed_speed;
mod index_of_persons;
mod long_values;
mod matching;
mod people;
mod problems;
mod rules;
mod shipped;
mod speed;
mod support;
mod tenants_items;
mod tenants_keys;
mod typed_keys;
