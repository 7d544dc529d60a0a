//! The operations, one file each: they convert JSON to a request of the database, and its output to
//! JSON. Parameters and output that several of them share are in [`parameters`], [`legacy`],
//! [`capacity`] and [`description`]; [`durations`] decides on which thread one runs.

mod batch_get_item;
mod batch_write_item;
mod capacity;
mod create_table;
mod delete_item;
mod describe_limits;
mod description;
mod durations;
mod get_item;
mod legacy;
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
use crate::input_schema::{self, Input};
use crate::json::Json;
use crate::wire::JsonWriter;
use durations::TypicalDurations;

/// What every operation has access to.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    database: Database,
    /// The region that ARNs name.
    region: Arc<str>,
    /// The address of the server, as the client knows it.
    host: Arc<str>,
    durations: Arc<TypicalDurations>,
}

impl Context {
    pub(crate) fn new(database: Database, region: String) -> Self {
        let host = format!("dynamodb.{region}.amazonaws.com").into();
        Context {
            database,
            region: region.into(),
            host,
            durations: Arc::new(TypicalDurations::new()),
        }
    }

    /// The context for a client that knows the server under this address.
    pub(crate) fn seen_at(&self, host: &str) -> Self {
        Context { host: host.into(), ..self.clone() }
    }

    /// The error with which every write is refused at the moment, if there is one.
    pub(crate) fn check_writable(&self) -> Result<(), kstone_core::Error> {
        self.database.engine().check_writable()
    }
}

/// The response of an operation: a JSON body.
pub(crate) enum Response {
    /// A body that can be sent at once.
    Ready(Vec<u8>),
    /// A body that can be sent when every write that it depends on is durable.
    WhenDurable(Reply<Result<Vec<u8>, Fault>>),
}

impl Response {
    /// A body that `write` writes from the output of the database, to be sent when that is durable.
    fn when_durable<T>(
        reply: Reply<T>,
        write: impl FnOnce(&mut JsonWriter, T),
    ) -> Result<Response, Fault> {
        Ok(Response::WhenDurable(reply.map(|output| {
            let mut out = JsonWriter::new();
            out.object(|out| write(out, output));
            out.finish()
        })))
    }

    /// The response to a write of one item.
    fn of_write(
        reply: Reply<kstone::ops::WriteOutput>,
        json: &Json<'_>,
    ) -> Result<Response, Fault> {
        Response::when_durable(reply, |out, output| {
            if let Some(attributes) = &output.attributes {
                out.name("Attributes").item(attributes);
            }
            capacity::write(out, output.consumed.as_ref(), json);
            capacity::write_collection(out, output.collection.as_ref());
        })
    }

    /// Waits until the body can be sent.
    pub(crate) async fn finish(self) -> Result<Vec<u8>, Fault> {
        match self {
            Response::Ready(body) => Ok(body),
            Response::WhenDurable(reply) => reply.await?,
        }
    }

    /// A body that depends on no write, so that it can be sent at once.
    fn ready(write: impl FnOnce(&mut JsonWriter)) -> Result<Response, Fault> {
        let mut out = JsonWriter::new();
        out.object(write);
        out.finish().map(Response::Ready)
    }
}

/// The input and the implementation of an operation.
struct OperationSpec {
    input: &'static Input,
    start: fn(&Json<'_>, &Context) -> Result<Response, Fault>,
    execution: Execution,
}

/// On which thread an operation may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Execution {
    /// On the executor's thread, as long as it has been quick.
    Measured,
    /// The same, but not while the engine makes writers wait.
    MeasuredWrite,
    /// On a thread for blocking work: it waits for the disk, and is rare.
    Blocking,
}

impl Execution {
    /// Whether to run it on the executor's thread.
    fn is_inline(self, is_quick: bool, has_room: impl FnOnce() -> bool) -> bool {
        match self {
            Execution::Measured => is_quick,
            Execution::MeasuredWrite => is_quick && has_room(),
            Execution::Blocking => false,
        }
    }
}

macro_rules! operations {
    ($($target:literal => $name:ident, $input:ident, $start:path, $execution:ident;)*) => {
        /// The operations of the API.
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

            fn spec(self) -> OperationSpec {
                match self {
                    $(Operation::$name => OperationSpec {
                        input: &input_schema::$input,
                        start: $start,
                        execution: Execution::$execution,
                    },)*
                }
            }
        }
    };
}

operations! {
    "DynamoDB_20120810.GetItem" => GetItem, GET_ITEM, get_item::start, Measured;
    "DynamoDB_20120810.PutItem" => PutItem, PUT_ITEM, put_item::start, MeasuredWrite;
    "DynamoDB_20120810.UpdateItem" => UpdateItem, UPDATE_ITEM, update_item::start, MeasuredWrite;
    "DynamoDB_20120810.DeleteItem" => DeleteItem, DELETE_ITEM, delete_item::start, MeasuredWrite;
    "DynamoDB_20120810.Query" => Query, QUERY, query::start, Measured;
    "DynamoDB_20120810.Scan" => Scan, SCAN, scan::start, Measured;
    "DynamoDB_20120810.BatchGetItem" =>
        BatchGetItem, BATCH_GET_ITEM, batch_get_item::start, Measured;
    "DynamoDB_20120810.BatchWriteItem" =>
        BatchWriteItem, BATCH_WRITE_ITEM, batch_write_item::start, MeasuredWrite;
    "DynamoDB_20120810.TransactGetItems" =>
        TransactGetItems, TRANSACT_GET_ITEMS, transact_get_items::start, Measured;
    "DynamoDB_20120810.TransactWriteItems" =>
        TransactWriteItems, TRANSACT_WRITE_ITEMS, transact_write_items::start, MeasuredWrite;
    "DynamoDB_20120810.ExecuteStatement" =>
        ExecuteStatement, EXECUTE_STATEMENT, statements::execute, MeasuredWrite;
    "DynamoDB_20120810.BatchExecuteStatement" =>
        BatchExecuteStatement, BATCH_EXECUTE_STATEMENT, statements::batch, MeasuredWrite;
    "DynamoDB_20120810.ExecuteTransaction" =>
        ExecuteTransaction, EXECUTE_TRANSACTION, statements::transaction, MeasuredWrite;
    "DynamoDB_20120810.CreateTable" => CreateTable, CREATE_TABLE, create_table::start, Blocking;
    "DynamoDB_20120810.UpdateTable" => UpdateTable, UPDATE_TABLE, update_table::start, Blocking;
    "DynamoDB_20120810.DeleteTable" => DeleteTable, ONE_TABLE, tables::delete, Blocking;
    "DynamoDB_20120810.DescribeTable" => DescribeTable, ONE_TABLE, tables::describe, Blocking;
    "DynamoDB_20120810.ListTables" => ListTables, LIST_TABLES, tables::list, Measured;
    "DynamoDB_20120810.UpdateTimeToLive" =>
        UpdateTimeToLive, UPDATE_TIME_TO_LIVE, time_to_live::update, Blocking;
    "DynamoDB_20120810.DescribeTimeToLive" =>
        DescribeTimeToLive, ONE_TABLE, time_to_live::describe, Blocking;
    "DynamoDB_20120810.TagResource" => TagResource, TAG_RESOURCE, tags::add, Blocking;
    "DynamoDB_20120810.UntagResource" => UntagResource, UNTAG_RESOURCE, tags::remove, Blocking;
    "DynamoDB_20120810.ListTagsOfResource" =>
        ListTagsOfResource, LIST_TAGS_OF_RESOURCE, tags::list, Measured;
    "DynamoDB_20120810.DescribeLimits" => DescribeLimits, NOTHING, describe_limits::describe, Measured;
    "DynamoDB_20120810.DescribeEndpoints" => DescribeEndpoints, NOTHING, describe_limits::endpoints, Measured;
    "DynamoDBStreams_20120810.ListStreams" => ListStreams, LIST_STREAMS, streams::list, Blocking;
    "DynamoDBStreams_20120810.DescribeStream" =>
        DescribeStream, DESCRIBE_STREAM, streams::describe, Blocking;
    "DynamoDBStreams_20120810.GetShardIterator" =>
        GetShardIterator, GET_SHARD_ITERATOR, streams::shard_iterator, Measured;
    // For a stream that was closed it waits for the last writes.
    "DynamoDBStreams_20120810.GetRecords" => GetRecords, GET_RECORDS, streams::records, MeasuredWrite;
}

/// Runs an operation with a small body, and returns the body of the response.
pub(crate) async fn run(
    operation: Operation,
    body: &[u8],
    context: &Context,
) -> Result<Vec<u8>, Fault> {
    let has_room = || context.database.engine().has_room();
    let is_quick = context.durations.is_quick(operation);
    let response = if operation.spec().execution.is_inline(is_quick, has_room) {
        begin(operation, body, context)
    } else {
        let (body, context) = (body.to_vec(), context.clone());
        run_blocking(move || begin(operation, &body, &context)).await?
    };
    response?.finish().await
}

/// Runs blocking work on a thread for it.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Fault::internal("The request could not be completed"))
}

/// Runs an operation on this thread, except for waiting until its response can be sent.
pub(crate) fn begin(
    operation: Operation,
    body: &[u8],
    context: &Context,
) -> Result<Response, Fault> {
    context.durations.measure(operation, || start(&operation.spec(), body, context))
}

/// Runs an operation on this thread, including the wait: for tests.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn run_here(
    operation: Operation,
    body: &[u8],
    context: &Context,
) -> Result<Vec<u8>, Fault> {
    match start(&operation.spec(), body, context)? {
        Response::Ready(body) => Ok(body),
        Response::WhenDurable(reply) => reply.wait()?,
    }
}

fn start(spec: &OperationSpec, body: &[u8], context: &Context) -> Result<Response, Fault> {
    let json = Json::parse(body).map_err(|_| Fault::malformed())?;
    input_schema::check(spec.input, &json)?;
    let started = (spec.start)(&json, context);
    started.map_err(|fault| input_schema::first_type_error(spec.input, &json).unwrap_or(fault))
}

#[cfg(test)]
mod tests;
