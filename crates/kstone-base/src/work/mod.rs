//! Durable background jobs: queue, outbox, schedules, alerts, stored as items; any number of processes
//! may share it. The outbox puts a job into the transaction of its cause, and everything works wherever
//! the [`Items`] port does.
//!
//! | module | what it is |
//! |---|---|
//! | `job` | a job and its errors |
//! | [`outbox`] | enqueues a job, alone or within the caller's own transaction |
//! | [`queue`] | what is waiting, running, dead; claims with a lease |
//! | [`workers`] | run the handlers, retry, give up |
//! | [`schedule`] | recurring jobs: every minute, every night, every week |
//! | [`alert`], [`webhook`] | what a person should look at: kept, logged, sent |
//! | `table`, `request` | the table `platform`, which holds all of these, and short forms of requests to it |
//!
//! A job has a fixed key, and one attribute (`due`) that says whether it waits or runs and until
//! when. A local index by `due` finds what may be begun. To claim is one conditional update that
//! moves `due` into the future by a lease: of racing workers one wins, and what a killed one held
//! is found again when the lease is over. So a job runs at least once, never twice at the same time
//! while its worker is alive and keeps up the lease, and its effects must not mind a repetition.

pub mod alert;
mod job;
pub mod outbox;
pub mod queue;
pub(crate) mod request;
pub mod schedule;
pub(crate) mod table;
pub mod webhook;
pub mod workers;

pub use alert::{Alert, AlertSink, Alerts, Severity};
pub use job::{Job, JobError, NewJob, short_hash};
pub use outbox::Outbox;
pub use queue::{DeadJob, QueueDepth, Queues};
pub use schedule::{Cadence, ScheduleState, Schedules};
pub use table::require_table;
pub use webhook::Webhook;
pub use workers::{Workers, WorkersOptions};

#[cfg(doc)]
use kstone_ports::items::Items;
