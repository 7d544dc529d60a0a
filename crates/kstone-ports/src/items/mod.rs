//! The port to items: DynamoDB's operations, independent of where the items are.
//!
//! Whoever holds an [`Items`] never asks whether it is the embedded database or a service far away.
//! What the port promises is what DynamoDB promises, and no more:
//! - An item may be read for a while after its time to live is over, unless the store has
//!   [`Capability::ExactExpiry`](crate::capabilities::Capability::ExactExpiry): up to days from
//!   Amazon's. A caller to which that matters looks at the attribute.
//! - A transaction has at most [`TRANSACTION_ACTIONS_MAX`] actions and 4 MB, and names no item twice.
//! - A query or scan answers in pages; go on with [`QueryOutput::next`] until there is none.
//! - A batch may leave something undone, and says what.
//! - After [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) a write was carried out or was
//!   not. A write with a condition or a token can be sent again and settles it.

mod purge;
mod read;
mod request;
mod table;
mod write;
mod write_together;

use std::fmt::Debug;

use crate::PortFuture;
use crate::capabilities::Capabilities;

pub use purge::{PurgeItems, PurgeReport, StreamImage, StreamImageFilter};
pub use read::{
    BatchGet, BatchGetOutput, BatchGetTable, GetItem, GetItemOutput, Query, QueryOutput, Scan,
    Segment, Select, TransactGet, TransactGetOutput, TransactGetRequest,
};
pub use request::{
    CapacityDetail, CapacityKind, CollectionMetrics, Condition, Consumed, KeyCondition,
    Placeholders, Projection, ReturnValues, Update, placeholders,
};
pub use table::*;
pub use write::{
    BatchWrite, BatchWriteOutput, DeleteItem, PutItem, TransactAction, TransactKind, TransactWrite,
    TransactWriteOutput, UpdateItem, WriteOutput, WriteRequest,
};
pub use write_together::write_together;

/// The actions of one transaction, and the items of one batch of reads.
pub const TRANSACTION_ACTIONS_MAX: usize = 100;
/// The writes of one batch.
pub const BATCH_WRITES_MAX: usize = 25;

/// Tables of items: the embedded database, or a service that speaks DynamoDB's protocol.
pub trait Items: Debug + Send + Sync {
    /// What this store can promise.
    fn capabilities(&self) -> Capabilities;

    /// What this store is called in messages and on pages: `this database`, or a URL.
    fn name(&self) -> String;

    /// Reads one item by its key.
    fn get<'a>(&'a self, request: &'a GetItem) -> PortFuture<'a, GetItemOutput>;

    /// Writes an item, if the one in its place meets the condition.
    fn put<'a>(&'a self, request: &'a PutItem) -> PortFuture<'a, WriteOutput>;

    /// Changes an item, or makes it, if it meets the condition.
    fn update<'a>(&'a self, request: &'a UpdateItem) -> PortFuture<'a, WriteOutput>;

    /// Deletes an item, if it meets the condition.
    fn delete<'a>(&'a self, request: &'a DeleteItem) -> PortFuture<'a, WriteOutput>;

    /// Reads one page of a partition.
    fn query<'a>(&'a self, request: &'a Query) -> PortFuture<'a, QueryOutput>;

    /// Reads one page of a whole table.
    fn scan<'a>(&'a self, request: &'a Scan) -> PortFuture<'a, QueryOutput>;

    /// Reads up to 100 items, each for itself.
    fn batch_get<'a>(&'a self, request: &'a BatchGet) -> PortFuture<'a, BatchGetOutput>;

    /// Puts and deletes up to 25 items, each for itself.
    fn batch_write<'a>(&'a self, request: &'a BatchWrite) -> PortFuture<'a, BatchWriteOutput>;

    /// Reads up to 100 items as of one moment.
    fn transact_get<'a>(&'a self, request: &'a TransactGet) -> PortFuture<'a, TransactGetOutput>;

    /// Up to 100 writes and checks, all or nothing.
    fn transact_write<'a>(
        &'a self,
        request: &'a TransactWrite,
    ) -> PortFuture<'a, TransactWriteOutput>;

    /// Makes sure that there is a table with this key, whose items expire by the attribute `ttl`.
    /// Makes it if it is missing; refuses one that is different, and changes nothing then.
    fn require_table<'a>(&'a self, spec: &'a TableSpec, ttl: Option<&'a str>)
    -> PortFuture<'a, ()>;

    /// The names of all tables, in order.
    fn tables(&self) -> PortFuture<'_, Vec<String>>;

    /// What a table is like.
    fn describe<'a>(&'a self, table: &'a str) -> PortFuture<'a, TableDescription>;

    /// Answers once every write that began before is committed. Who changes what a policy says and
    /// then settles knows that all writes from then on obey it.
    fn settle(&self) -> PortFuture<'_, ()>;

    /// Deletes items and removes their bytes from every file that can hold them: their index
    /// entries, the records that change streams keep of them, older versions, the log and the
    /// checkpoints included. Streams do not tell of it. Asked for again, also for what is gone
    /// already, it does again what is left to do.
    ///
    /// Only a store with [`Capability::Purge`](crate::capabilities::Capability::Purge) can do this.
    fn purge<'a>(&'a self, request: &'a PurgeItems) -> PortFuture<'a, PurgeReport>;
}
