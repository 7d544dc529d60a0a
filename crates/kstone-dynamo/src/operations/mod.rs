//! The operations, one file each: from JSON to a request of the database, and from its answer to
//! JSON. What several of them read or write is in [`parameters`], [`legacy`], [`capacity`] and
//! [`description`].

mod batch_get_item;
mod batch_write_item;
mod capacity;
mod create_table;
mod delete_item;
mod description;
mod get_item;
mod legacy;
mod limits;
mod pace;
mod parameters;
mod put_item;
mod query;
mod scan;
mod statements;
mod streams;
mod tables;
mod tags;
mod time_to_live;
mod transact_get_items;
mod transact_write_items;
mod update_item;
mod update_table;

use std::sync::Arc;

use kstone::{Database, Reply};

use crate::error::Fault;
use crate::json::Json;
use crate::shape::{self, Input};
use crate::wire::Out;
use pace::Paces;

/// What an operation works with.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    database: Database,
    /// The region that ARNs name.
    region: Arc<str>,
    /// Where clients reach the door, as the one that asks sees it.
    host: Arc<str>,
    paces: Arc<Paces>,
}

impl Context {
    pub(crate) fn new(database: Database, region: String) -> Self {
        let host = format!("dynamodb.{region}.amazonaws.com").into();
        Context { database, region: region.into(), host, paces: Arc::new(Paces::new()) }
    }

    /// For a client that reached the door under this name.
    pub(crate) fn seen_at(&self, host: &str) -> Self {
        Context { host: host.into(), ..self.clone() }
    }

    /// What every write would be refused with, if so.
    pub(crate) fn check_writable(&self) -> Result<(), kstone_core::Error> {
        self.database.engine().check_writable()
    }
}

/// What an operation answers.
pub(crate) enum Answering {
    /// The body.
    Now(Vec<u8>),
    /// The body, to be sent when what it rests on is durable.
    Later(Reply<Result<Vec<u8>, Fault>>),
}

impl Answering {
    /// An answer that is written by `write` as soon as the database has it.
    fn later<T>(reply: Reply<T>, write: impl FnOnce(&mut Out, T)) -> Result<Answering, Fault> {
        Ok(Answering::Later(reply.map(|output| {
            let mut out = Out::new();
            out.object(|out| write(out, output));
            out.finish()
        })))
    }

    /// The answer to a write of one item.
    fn written(
        reply: Reply<kstone::ops::WriteOutput>,
        json: &Json<'_>,
    ) -> Result<Answering, Fault> {
        Answering::later(reply, |out, output| {
            if let Some(attributes) = &output.attributes {
                out.name("Attributes").item(attributes);
            }
            capacity::write(out, output.consumed.as_ref(), json);
            capacity::write_collection(out, output.collection.as_ref());
        })
    }

    /// Waits for what the answer rests on.
    pub(crate) async fn finish(self) -> Result<Vec<u8>, Fault> {
        match self {
            Answering::Now(body) => Ok(body),
            Answering::Later(reply) => reply.await?,
        }
    }

    /// An answer that rests on nothing that is still under way.
    fn now(write: impl FnOnce(&mut Out)) -> Result<Answering, Fault> {
        let mut out = Out::new();
        out.object(write);
        out.finish().map(Answering::Now)
    }
}

/// How an operation is done.
struct Procedure {
    input: &'static Input,
    start: fn(&Json<'_>, &Context) -> Result<Answering, Fault>,
    pace: Pace,
}

/// Where an operation may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// On the executor's thread, as long as it tends to be quick.
    Measured,
    /// The same, except while the engine makes writers wait.
    Writes,
    /// Beside the executor: it waits for the disk, and is rare.
    Slow,
}

impl Pace {
    /// Whether to do it on the executor's thread.
    fn is_inline(self, is_quick: bool, has_room: impl FnOnce() -> bool) -> bool {
        match self {
            Pace::Measured => is_quick,
            Pace::Writes => is_quick && has_room(),
            Pace::Slow => false,
        }
    }
}

macro_rules! operations {
    ($($target:literal => $name:ident, $input:ident, $start:path, $pace:ident;)*) => {
        /// What a client can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Operation {
            $($name,)*
        }

        impl Operation {
            /// All of them.
            pub(crate) const ALL: &[Operation] = &[$(Operation::$name),*];
            const COUNT: usize = Operation::ALL.len();

            /// The operation that the `X-Amz-Target` header names.
            pub(crate) fn from_target(target: &[u8]) -> Option<Operation> {
                let target = std::str::from_utf8(target).ok()?;
                match target {
                    $($target => Some(Operation::$name),)*
                    _ => None,
                }
            }

            fn procedure(self) -> Procedure {
                match self {
                    $(Operation::$name => Procedure {
                        input: &shape::$input,
                        start: $start,
                        pace: Pace::$pace,
                    },)*
                }
            }
        }
    };
}

operations! {
    "DynamoDB_20120810.GetItem" => GetItem, GET_ITEM, get_item::start, Measured;
    "DynamoDB_20120810.PutItem" => PutItem, PUT_ITEM, put_item::start, Writes;
    "DynamoDB_20120810.UpdateItem" => UpdateItem, UPDATE_ITEM, update_item::start, Writes;
    "DynamoDB_20120810.DeleteItem" => DeleteItem, DELETE_ITEM, delete_item::start, Writes;
    "DynamoDB_20120810.Query" => Query, QUERY, query::start, Measured;
    "DynamoDB_20120810.Scan" => Scan, SCAN, scan::start, Measured;
    "DynamoDB_20120810.BatchGetItem" =>
        BatchGetItem, BATCH_GET_ITEM, batch_get_item::start, Measured;
    "DynamoDB_20120810.BatchWriteItem" =>
        BatchWriteItem, BATCH_WRITE_ITEM, batch_write_item::start, Writes;
    "DynamoDB_20120810.TransactGetItems" =>
        TransactGetItems, TRANSACT_GET_ITEMS, transact_get_items::start, Measured;
    "DynamoDB_20120810.TransactWriteItems" =>
        TransactWriteItems, TRANSACT_WRITE_ITEMS, transact_write_items::start, Writes;
    "DynamoDB_20120810.ExecuteStatement" =>
        ExecuteStatement, EXECUTE_STATEMENT, statements::execute, Writes;
    "DynamoDB_20120810.BatchExecuteStatement" =>
        BatchExecuteStatement, BATCH_EXECUTE_STATEMENT, statements::batch, Writes;
    "DynamoDB_20120810.ExecuteTransaction" =>
        ExecuteTransaction, EXECUTE_TRANSACTION, statements::transaction, Writes;
    "DynamoDB_20120810.CreateTable" => CreateTable, CREATE_TABLE, create_table::start, Slow;
    "DynamoDB_20120810.UpdateTable" => UpdateTable, UPDATE_TABLE, update_table::start, Slow;
    "DynamoDB_20120810.DeleteTable" => DeleteTable, ONE_TABLE, tables::delete, Slow;
    "DynamoDB_20120810.DescribeTable" => DescribeTable, ONE_TABLE, tables::describe, Slow;
    "DynamoDB_20120810.ListTables" => ListTables, LIST_TABLES, tables::list, Measured;
    "DynamoDB_20120810.UpdateTimeToLive" =>
        UpdateTimeToLive, UPDATE_TIME_TO_LIVE, time_to_live::update, Slow;
    "DynamoDB_20120810.DescribeTimeToLive" =>
        DescribeTimeToLive, ONE_TABLE, time_to_live::describe, Slow;
    "DynamoDB_20120810.TagResource" => TagResource, TAG_RESOURCE, tags::add, Slow;
    "DynamoDB_20120810.UntagResource" => UntagResource, UNTAG_RESOURCE, tags::remove, Slow;
    "DynamoDB_20120810.ListTagsOfResource" =>
        ListTagsOfResource, LIST_TAGS_OF_RESOURCE, tags::list, Measured;
    "DynamoDB_20120810.DescribeLimits" => DescribeLimits, NOTHING, limits::describe, Measured;
    "DynamoDB_20120810.DescribeEndpoints" => DescribeEndpoints, NOTHING, limits::endpoints, Measured;
    "DynamoDBStreams_20120810.ListStreams" => ListStreams, LIST_STREAMS, streams::list, Slow;
    "DynamoDBStreams_20120810.DescribeStream" =>
        DescribeStream, DESCRIBE_STREAM, streams::describe, Slow;
    "DynamoDBStreams_20120810.GetShardIterator" =>
        GetShardIterator, GET_SHARD_ITERATOR, streams::shard_iterator, Measured;
    // Of a stream that was closed it waits for the last writes.
    "DynamoDBStreams_20120810.GetRecords" => GetRecords, GET_RECORDS, streams::records, Writes;
}

/// Does an operation whose body is not large, and gives the body of its answer.
pub(crate) async fn run(
    operation: Operation,
    body: &[u8],
    context: &Context,
) -> Result<Vec<u8>, Fault> {
    let has_room = || context.database.engine().has_room();
    let is_quick = context.paces.is_quick(operation);
    let answering = if operation.procedure().pace.is_inline(is_quick, has_room) {
        begin(operation, body, context)
    } else {
        let (body, context) = (body.to_vec(), context.clone());
        beside(move || begin(operation, &body, &context)).await?
    };
    answering?.finish().await
}

/// Does the work on a thread that may wait.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Fault::internal("The request could not be completed"))
}

/// Does an operation on this thread, up to what its answer has to wait for.
pub(crate) fn begin(
    operation: Operation,
    body: &[u8],
    context: &Context,
) -> Result<Answering, Fault> {
    context.paces.measure(operation, || start(&operation.procedure(), body, context))
}

/// Does an operation on this thread, however long it takes: for tests.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn run_here(
    operation: Operation,
    body: &[u8],
    context: &Context,
) -> Result<Vec<u8>, Fault> {
    match start(&operation.procedure(), body, context)? {
        Answering::Now(body) => Ok(body),
        Answering::Later(reply) => reply.wait()?,
    }
}

fn start(procedure: &Procedure, body: &[u8], context: &Context) -> Result<Answering, Fault> {
    let json = Json::parse(body).map_err(|_| Fault::malformed())?;
    shape::check(procedure.input, &json)?;
    let started = (procedure.start)(&json, context);
    started.map_err(|fault| shape::first_type_error(procedure.input, &json).unwrap_or(fault))
}

#[cfg(test)]
mod tests;
