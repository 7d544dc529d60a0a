//! Tables: which ones DynamoDB allows, how they change, and that they are there after a restart
//! and whole after a crash.

mod change;
mod create;
mod durable;
mod load;
mod support;
mod tags;
