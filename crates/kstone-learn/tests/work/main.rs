//! Background work, alerts, idempotency keys and rate limits, on the embedded database with the
//! shipped catalogues in force: time stands still until a test moves it, and disks can be crashed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the webhook's other side is a real socket on a thread of its own"
)]

mod alerts;
mod asking;
mod erasing;
mod idempotency;
mod limits;
mod platform;
mod queues;
mod schedules;
mod support;
mod webhooks;
mod workers;
