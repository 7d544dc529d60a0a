//! The port to items on a service that speaks DynamoDB's protocol: Amazon DynamoDB, ScyllaDB
//! Alternator, DynamoDB Local, or another KeystoneDB.
//!
//! [`RemoteItems`] turns each call of [`Items`](kstone_ports::items::Items) into one request of the
//! AWS SDK, and says in [`Error`](kstone_ports::Error) what became of it. Three rules hold everywhere:
//! - **What is not known is said to be unknown.** A write that was sent and got no answer is
//!   [`Error::OutcomeUnknown`](kstone_ports::Error::OutcomeUnknown), and is never sent again blindly:
//!   the SDK's own repetitions are off, because they would turn a write that succeeded into a failed
//!   condition, and count an `ADD` twice.
//! - **What was certainly not carried out is tried again**, a few times, with growing pauses.
//! - **A transaction always has a token**, so that it can be sent again until its outcome is known.
//!
//! Called by whoever chooses the store when a program starts. Calls the AWS SDK, and of this project
//! only the ports and the source of randomness.
//!
//! | module | what it is |
//! |---|---|
//! | `options` | where the store is, and how patient to be |
//! | `attempts` | sending again what may be sent again |
//! | `failure` | what an error of the SDK says about the request |
//! | `value`, `parts` | values, expressions and capacity in the SDK's terms and back |
//! | `single`, `pages`, `batch`, `transact`, `table` | the operations |
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod attempts;
mod batch;
mod description;
mod failure;
mod options;
mod pages;
mod parts;
mod single;
mod store;
mod table;
mod transact;
mod value;

pub use options::{Login, RemoteItemsOptions};
pub use store::RemoteItems;
