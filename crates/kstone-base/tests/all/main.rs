//! Background work, alerts, idempotency keys and rate limits, on the embedded database with the
//! shipped catalogues in force: time stands still until a test moves it, and disks can be crashed.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod alerts;
mod enqueue;
mod erasing;
mod idempotency;
mod limits;
mod queues;
mod schedules;
mod support;
mod webhooks;
mod workers;
