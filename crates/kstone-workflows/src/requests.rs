//! One function for each query of workflow items. Each builds a request and sends nothing.
//!
//! A query gives one page; where `next` of the answer is not `None`, send it again from there.
//! Ranges of time include both ends.

use std::ops::RangeInclusive;

use kstone::Value;
use kstone::ops::{GetItem, KeyCondition, Placeholders, Query};

use crate::{
    EntityType, ExecutionStatus, GSI1, GSI2, GSI3, Period, TaskStatus, WorkflowType, album_key,
    execution_key, metrics_key, task_key,
};
use kstone_base::time::{Date, Timestamp};

/// The execution with this id.
pub fn execution_by_id(table: &str, execution_id: &str) -> GetItem {
    get(table, execution_key(execution_id))
}

/// The executions of one engine, by status and time.
pub fn executions_by_type(table: &str, workflow_type: WorkflowType) -> Query {
    by_type(table, workflow_type, EntityType::Execution)
}

/// The executions of one engine with one status, by time.
pub fn executions_by_status(
    table: &str,
    workflow_type: WorkflowType,
    status: ExecutionStatus,
) -> Query {
    by_status(table, workflow_type, EntityType::Execution, status)
}

/// The executions of one engine that are running, by time.
pub fn running_executions(table: &str, workflow_type: WorkflowType) -> Query {
    executions_by_status(table, workflow_type, ExecutionStatus::Running)
}

/// The executions of one engine with one status that were made in a range of time.
pub fn executions_by_date_range(
    table: &str,
    workflow_type: WorkflowType,
    status: ExecutionStatus,
    range: RangeInclusive<Timestamp>,
) -> Query {
    by_date_range(table, workflow_type, EntityType::Execution, status, range)
}

/// An execution with its albums in the order of their places, its own record, and its tasks.
pub fn execution_context(table: &str, workflow_type: WorkflowType, execution_id: &str) -> Query {
    query(
        table,
        Some(GSI2),
        "workflowType = :workflow AND executionId = :execution",
        vec![(":workflow", workflow_type.into()), (":execution", execution_id.into())],
    )
}

/// An execution and its albums, as they are in the table: `album-10` comes before `album-2`.
pub fn execution_with_albums(table: &str, execution_id: &str) -> Query {
    query(table, None, "pk = :pk", vec![(":pk", execution_id.into())])
}

/// The album with this place in an execution.
pub fn album_by_index(table: &str, execution_id: &str, album_index: u32) -> GetItem {
    get(table, album_key(execution_id, album_index))
}

/// The albums of an execution, as they are in the table: `album-10` comes before `album-2`.
/// [`albums_in_context`] has them in the order of their places.
pub fn albums_by_prefix(table: &str, execution_id: &str) -> Query {
    by_prefix(table, execution_id, "album-")
}

/// The albums of an execution of this engine, in the order of their places.
pub fn albums_in_context(table: &str, workflow_type: WorkflowType, execution_id: &str) -> Query {
    in_context(table, workflow_type, execution_id, EntityType::Album)
}

/// The album with this place in an execution of this engine.
pub fn album_in_context(
    table: &str,
    workflow_type: WorkflowType,
    execution_id: &str,
    album_index: u32,
) -> Query {
    let albums = albums_in_context(table, workflow_type, execution_id);
    and(albums, "sortValue = :place", vec![(":place", album_index.into())])
}

/// The task with this id.
pub fn task_by_id(table: &str, task_id: &str) -> GetItem {
    get(table, task_key(task_id))
}

/// The tasks that wait for an answer, of both engines, the oldest first.
pub fn pending_tasks(table: &str) -> Query {
    let values = vec![(":entity", EntityType::Task.into())];
    and_status(query(table, Some(GSI3), "entityType = :entity", values), TaskStatus::Pending)
}

/// The tasks of one engine with one status, by time.
pub fn tasks_by_status(table: &str, workflow_type: WorkflowType, status: TaskStatus) -> Query {
    by_status(table, workflow_type, EntityType::Task, status)
}

/// The tasks of one engine with one status that were made in a range of time.
pub fn tasks_by_date_range(
    table: &str,
    workflow_type: WorkflowType,
    status: TaskStatus,
    range: RangeInclusive<Timestamp>,
) -> Query {
    by_date_range(table, workflow_type, EntityType::Task, status, range)
}

/// The tasks of an execution of this engine.
pub fn tasks_by_execution(table: &str, workflow_type: WorkflowType, execution_id: &str) -> Query {
    in_context(table, workflow_type, execution_id, EntityType::Task)
}

/// The metrics of one engine on one day.
pub fn metrics_of_day(table: &str, date: Date, workflow_type: WorkflowType) -> GetItem {
    get(table, metrics_key(date, workflow_type))
}

/// The metrics of both engines on one day.
pub fn metrics_to_compare(table: &str, date: Date) -> Query {
    by_prefix(table, &date.to_string(), "metrics-")
}

/// All metrics of one engine, by time.
pub fn metrics_by_type(table: &str, workflow_type: WorkflowType) -> Query {
    by_type(table, workflow_type, EntityType::Metrics)
}

/// The daily metrics of one engine that were made in a range of time.
pub fn metrics_by_date_range(
    table: &str,
    workflow_type: WorkflowType,
    range: RangeInclusive<Timestamp>,
) -> Query {
    by_date_range(table, workflow_type, EntityType::Metrics, Period::Daily, range)
}

fn get(table: &str, key: kstone::Item) -> GetItem {
    GetItem { table: table.to_owned(), key, ..GetItem::default() }
}

fn query(
    table: &str,
    index: Option<&str>,
    condition: &str,
    values: Vec<(&'static str, Value)>,
) -> Query {
    let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Query {
        table: table.to_owned(),
        index: index.map(str::to_owned),
        key_condition: Some(KeyCondition::Text(condition.to_owned())),
        placeholders: Placeholders { names: None, values: Some(values) },
        ..Query::default()
    }
}

/// The same query under one more condition.
fn and(mut request: Query, condition: &str, values: Vec<(&'static str, Value)>) -> Query {
    if let Some(KeyCondition::Text(text)) = &mut request.key_condition {
        text.push_str(" AND ");
        text.push_str(condition);
    }
    let values = values.into_iter().map(|(name, value)| (name.to_owned(), value));
    request.placeholders.values.get_or_insert_default().extend(values);
    request
}

/// `status` is a reserved word of DynamoDB's.
fn and_status(mut request: Query, status: impl Into<Value>) -> Query {
    request.placeholders.names = Some(vec![("#status".to_owned(), "status".to_owned())]);
    and(request, "#status = :status", vec![(":status", status.into())])
}

fn by_prefix(table: &str, pk: &str, prefix: &str) -> Query {
    let values = vec![(":pk", pk.into()), (":prefix", prefix.into())];
    query(table, None, "pk = :pk AND begins_with(sk, :prefix)", values)
}

fn by_type(table: &str, workflow_type: WorkflowType, entity_type: EntityType) -> Query {
    query(
        table,
        Some(GSI1),
        "workflowType = :workflow AND entityType = :entity",
        vec![(":workflow", workflow_type.into()), (":entity", entity_type.into())],
    )
}

fn by_status(
    table: &str,
    workflow_type: WorkflowType,
    entity_type: EntityType,
    status: impl Into<Value>,
) -> Query {
    and_status(by_type(table, workflow_type, entity_type), status)
}

fn by_date_range(
    table: &str,
    workflow_type: WorkflowType,
    entity_type: EntityType,
    status: impl Into<Value>,
    range: RangeInclusive<Timestamp>,
) -> Query {
    let (from, to) = range.into_inner();
    let with_status = by_status(table, workflow_type, entity_type, status);
    let values = vec![(":from", from.into()), (":to", to.into())];
    and(with_status, "createdAt BETWEEN :from AND :to", values)
}

fn in_context(
    table: &str,
    workflow_type: WorkflowType,
    execution_id: &str,
    entity_type: EntityType,
) -> Query {
    let context = execution_context(table, workflow_type, execution_id);
    and(context, "entityType = :entity", vec![(":entity", entity_type.into())])
}
