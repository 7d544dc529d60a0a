//! Tables: how they are described, the catalogue that keeps the descriptions, and the form that
//! the operations use.

pub(crate) mod catalog;
mod constraint;
pub(crate) mod live;
mod operations;
mod raw;
pub(crate) mod record;
mod tags;
mod validate;
mod validate_change;

pub use kstone_ports::items::{
    IndexProjection, IndexSpec, IndexState, KeyAttribute, KeySchema, KeyType, Status, StreamView,
    TableDescription, TableSpec, Throughput, TtlState,
};
pub(crate) use operations::no_such_table;
pub use operations::{Billing, TableChange};
pub use raw::{
    BillingMode, KeyElement, KeyRole, ProjectionType, RawIndex, RawIndexChange, RawStream,
    RawTable, RawTableChange,
};
