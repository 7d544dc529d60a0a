//! The contract of items on each store.

mod door;
mod dynamodb_local;
mod embedded;
mod faults;
mod proxy;
