//! The common base of all systems of the learning platform. Storage is reached through the two
//! ports only; clocks and randomness are injected.
//!
//! | module | what it is |
//! |---|---|
//! | [`work`] | background jobs: durable queues, the outbox, workers, schedules, alerts |
//! | [`idempotency`] | a request with a key is carried out once, however often it is sent |
//! | [`rate_limits`] | so many requests a minute for each client, in a sliding window |
//! | [`audit`] | who did what to whose data |
//! | [`persons`] | everything about one person: listed, exported, erased |
//! | [`store`] | items of declared keys with JSON in them |
//! | [`page`] | long lists, a page at a time |
//! | [`field`] | items to fields and back; errors that name the field |
//! | [`time`] | days and moments as text that sorts by time |
//! | [`error`] | why something could not be done, the same for all systems |
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod audit;
pub mod error;
pub mod field;
pub mod idempotency;
pub mod page;
pub mod persons;
pub mod rate_limits;
pub mod store;
pub mod time;
pub mod work;

pub use error::{Error, Result};
