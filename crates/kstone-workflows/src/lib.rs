//! Executions of two workflow engines, Step Functions and Durable Functions, over the same input,
//! kept side by side in one table so that they can be compared.
//!
//! The entities ([`Execution`], [`Album`], [`Task`], [`Metrics`]) are plain data: no clock, no
//! storage. [`Entity`] turns them into items and back, and refuses what is not valid by the name of
//! the field. [`requests`] has one function for each way in which they are found; each gives a
//! request, to be sent to whatever stores the table. [`read`] sends the ones that take more than one.
//!
//! Keys are natural: an execution and its albums share the partition of the execution's id, a task
//! has its own, and the metrics of a day share the day's. Three indexes, whose keys are attributes
//! that the entities have anyway, answer the rest; see [`table_spec`].

mod album;
mod entity;
mod execution;
mod keys;
mod metrics;
mod names;
pub mod read;
pub mod requests;
mod sample;
mod table;
mod task;

pub use album::{Album, ImageRegion};
pub use entity::{AnyEntity, Entity};
pub use execution::Execution;
pub use keys::{
    album_key, execution_key, generate_execution_id, gsi1_key, gsi2_key, gsi3_key, metrics_key,
    task_key,
};
pub use metrics::Metrics;
pub use names::{EntityType, ExecutionStatus, Period, TaskStatus, WorkflowType};
pub use sample::sample;
pub use table::{GSI1, GSI2, GSI3, TTL_ATTRIBUTE, create_table, table_spec};
pub use task::{Task, TaskAlbum, TokenHash};
