//! Reads entities from an embedded database: whole lists, over all pages.

use kstone::ops::{GetItem, Query};
use kstone::{Database, Item, Value};

use crate::entity::Entity;
use crate::requests::{
    albums_in_context, execution_with_albums, metrics_to_compare, running_executions,
};
use crate::{Album, AnyEntity, Execution, Metrics, WorkflowType};
use kstone_base::field::Invalid;
use kstone_base::time::Date;

/// Why entities could not be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The database refused or failed; its message says what to do.
    #[error(transparent)]
    Database(#[from] kstone::Error),

    /// A stored item is not a valid entity. Somebody else wrote it, or changed it: correct it.
    #[error("item {pk} / {sk}: {invalid}")]
    Stored {
        /// The item's partition key.
        pk: String,
        /// The item's sort key.
        sk: String,
        /// What is wrong with it.
        invalid: Invalid,
    },
}

/// An execution with its albums, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionWithAlbums {
    /// The execution.
    pub execution: Execution,
    /// Its albums.
    pub albums: Vec<Album>,
}

/// What the two engines came to on one day; `None` for one that has no metrics of that day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Step Functions.
    pub step_functions: Option<Metrics>,
    /// Durable Functions.
    pub durable_functions: Option<Metrics>,
}

/// An execution and its albums; `None` if there is no such execution. They are of one moment as
/// long as they fit one page of 1 MB, which is some thousand albums.
pub fn get_execution_with_albums(
    db: &Database,
    table: &str,
    execution_id: &str,
) -> Result<Option<ExecutionWithAlbums>, ReadError> {
    let (mut execution, mut albums) = (None, Vec::new());
    for item in every_item(db, execution_with_albums(table, execution_id))? {
        match decoded(&item, AnyEntity::from_item)? {
            AnyEntity::Execution(found) => execution = Some(found),
            AnyEntity::Album(found) => albums.push(found),
            AnyEntity::Task(_) | AnyEntity::Metrics(_) => {}
        }
    }
    albums.sort_by_key(|album| album.album_index);
    Ok(execution.map(|execution| ExecutionWithAlbums { execution, albums }))
}

/// The executions of one engine that are running, the oldest first.
pub fn get_running_executions(
    db: &Database,
    table: &str,
    workflow_type: WorkflowType,
) -> Result<Vec<Execution>, ReadError> {
    all(db, running_executions(table, workflow_type))
}

/// The albums of an execution of this engine, in the order of their places.
pub fn get_albums_by_execution(
    db: &Database,
    table: &str,
    workflow_type: WorkflowType,
    execution_id: &str,
) -> Result<Vec<Album>, ReadError> {
    all(db, albums_in_context(table, workflow_type, execution_id))
}

/// What the two engines came to on one day.
pub fn compare_metrics(db: &Database, table: &str, date: Date) -> Result<Comparison, ReadError> {
    let mut comparison = Comparison::default();
    for metrics in all::<Metrics>(db, metrics_to_compare(table, date))? {
        match metrics.workflow_type {
            WorkflowType::StepFunctions => comparison.step_functions = Some(metrics),
            WorkflowType::DurableFunctions => comparison.durable_functions = Some(metrics),
        }
    }
    Ok(comparison)
}

/// The entity that a request finds, if there is one.
pub fn one<E: Entity>(db: &Database, request: &GetItem) -> Result<Option<E>, ReadError> {
    let Some(item) = db.get_item(request).wait()?.item else { return Ok(None) };
    let item = item.decode().map_err(kstone::Error::from)?;
    decoded(&item, E::from_item).map(Some)
}

/// All entities that a query finds, which must be of one kind.
pub fn all<E: Entity>(db: &Database, request: Query) -> Result<Vec<E>, ReadError> {
    every_item(db, request)?.iter().map(|item| decoded(item, E::from_item)).collect()
}

/// All entities that a query finds, of whatever kind.
pub fn all_of_any_kind(db: &Database, request: Query) -> Result<Vec<AnyEntity>, ReadError> {
    every_item(db, request)?.iter().map(|item| decoded(item, AnyEntity::from_item)).collect()
}

fn every_item(db: &Database, mut request: Query) -> Result<Vec<Item>, ReadError> {
    let mut items = Vec::new();
    loop {
        let page = db.query_items(&request).wait()?;
        for item in page.items.into_iter().flatten() {
            items.push(item.decode().map_err(kstone::Error::from)?);
        }
        match page.next {
            Some(next) => request.start = Some(next),
            None => return Ok(items),
        }
    }
}

fn decoded<E>(
    item: &Item,
    decode: impl FnOnce(&Item) -> Result<E, Invalid>,
) -> Result<E, ReadError> {
    decode(item).map_err(|invalid| {
        let text = |name| item.get(name).and_then(Value::as_str).unwrap_or("?").to_owned();
        ReadError::Stored { pk: text("pk"), sk: text("sk"), invalid }
    })
}
