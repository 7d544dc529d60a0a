//! Indexes: whatever is done to the items of a table, and whenever the machine fails, each index
//! holds exactly what the items imply, in order, and the stream tells exactly how they came about.
//!
//! `workload` draws random operations and keeps a model of the items; `agreement` compares a
//! database with what a scan of its own items implies. The other modules are the tests.

mod agreement;
mod backfill;
mod cost;
mod crash;
mod key_values;
mod queries;
mod random;
mod table;
mod workload;
