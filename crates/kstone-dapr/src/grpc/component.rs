//! The store as a pluggable component of a Dapr sidecar: the services of
//! `dapr.proto.components.v1`. The sidecar has already prefixed each key with the application's
//! name.

use std::future::Future;

use ::http::{Request, Response};
use hyper::body::Incoming;
use prost::Message;
use tonic::Status;
use tonic::body::Body;

use super::call::unary;
use super::details;
use super::messages::components::{
    BulkDeleteRequest, BulkGetRequest, BulkGetResponse, BulkSetRequest, BulkStateItem,
    DeleteRequest, Etag, FeaturesResponse, GetRequest, GetResponse, MultiMaxSizeResponse,
    QueryItem, QueryRequest, QueryResponse, SetRequest, Sorting, StateOptions,
    TransactionalStateOperation, TransactionalStateRequest, sorting,
    transactional_state_operation::Request as Change,
};
use super::reflection;
use super::runtime::{expected, metadata};
use crate::door::{CAPABILITIES, Door};
use crate::entry::Entry;
use crate::error::{Error, RequestKind, Result};
use crate::query::{self, Query};
use crate::state::{BATCH_MAX, State};
use crate::write::{Expected, Operation};

/// The services that reflection lists to a sidecar.
const SERVICES: [&str; 4] = [
    "dapr.proto.components.v1.StateStore",
    "dapr.proto.components.v1.TransactionalStateStore",
    "dapr.proto.components.v1.QueriableStateStore",
    "dapr.proto.components.v1.TransactionalStoreMultiMaxSize",
];

/// Answers one call of a sidecar.
pub(crate) async fn answer(door: Door, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if reflection::PATHS.contains(&path.as_str()) {
        return reflection::answer(request, &SERVICES).await;
    }
    let method = path.strip_prefix("/dapr.proto.components.v1.").unwrap_or_default();
    match method {
        // The settings in Init, `keyPrefix` above all, are for the sidecar to apply.
        "StateStore/Init" | "StateStore/Ping" => {
            call(door, request, RequestKind::Get, no_operation).await
        }
        "StateStore/Features" => call(door, request, RequestKind::Get, features).await,
        "StateStore/Get" => call(door, request, RequestKind::Get, get).await,
        "StateStore/Set" => call(door, request, RequestKind::Save, set).await,
        "StateStore/Delete" => call(door, request, RequestKind::Delete, delete).await,
        "StateStore/BulkGet" => call(door, request, RequestKind::BulkGet, bulk_get).await,
        "StateStore/BulkSet" => call(door, request, RequestKind::Save, bulk_set).await,
        "StateStore/BulkDelete" => call(door, request, RequestKind::Delete, bulk_delete).await,
        "TransactionalStateStore/Transact" => {
            call(door, request, RequestKind::Transaction, transact).await
        }
        "QueriableStateStore/Query" => call(door, request, RequestKind::Query, query).await,
        "TransactionalStoreMultiMaxSize/MultiMaxSize" => {
            call(door, request, RequestKind::Get, multi_max_size).await
        }
        _ => {
            let what = format!("there is no {path}: this is a state store");
            Status::unimplemented(what).into_http()
        }
    }
}

async fn call<M, R, W, F>(
    door: Door,
    request: Request<Incoming>,
    kind: RequestKind,
    work: W,
) -> Response<Body>
where
    M: Message + Default + Send + 'static,
    R: Message + Send + 'static,
    W: Fn(State, M) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Result<R>> + Send + 'static,
{
    let state = door.state().clone();
    let work = move |message| {
        let done = work(state.clone(), message);
        async move { done.await.map_err(|error| details::status(&error, kind)) }
    };
    unary(request, door.bodies(), work).await
}

// The messages without a field that matters here, such as `SetResponse`, are all encoded as `()`.
async fn no_operation(_: State, (): ()) -> Result<()> {
    Ok(())
}

async fn features(_: State, (): ()) -> Result<FeaturesResponse> {
    Ok(FeaturesResponse { features: CAPABILITIES.map(str::to_owned).to_vec() })
}

async fn multi_max_size(_: State, (): ()) -> Result<MultiMaxSizeResponse> {
    Ok(MultiMaxSizeResponse { max_size: i64::try_from(BATCH_MAX).unwrap_or(i64::MAX) })
}

fn etag(entry: &Entry) -> Option<Etag> {
    Some(Etag { value: entry.etag.to_string() })
}

async fn get(state: State, request: GetRequest) -> Result<GetResponse> {
    let entry = state.get(&request.key).await?;
    Ok(entry.map_or_else(GetResponse::default, |entry| GetResponse {
        metadata: metadata(&entry),
        etag: etag(&entry),
        data: entry.value,
        ..Default::default()
    }))
}

async fn bulk_get(state: State, request: BulkGetRequest) -> Result<BulkGetResponse> {
    let keys: Vec<String> = request.items.into_iter().map(|item| item.key).collect();
    let entries = state.get_many(&keys).await?;
    let item = |(key, entry): (String, Option<Entry>)| match entry {
        Some(entry) => BulkStateItem {
            key,
            metadata: metadata(&entry),
            etag: etag(&entry),
            data: entry.value,
            ..Default::default()
        },
        None => BulkStateItem { key, ..Default::default() },
    };
    Ok(BulkGetResponse { items: keys.into_iter().zip(entries).map(item).collect() })
}

fn expectation(key: &str, etag: Option<Etag>, options: Option<StateOptions>) -> Result<Expected> {
    let concurrency = options.map(|options| options.concurrency);
    expected(key, etag.as_ref().map(|etag| etag.value.as_str()), concurrency)
}

fn to_set(request: SetRequest) -> Result<Operation> {
    let SetRequest { key, value, etag, metadata, options, .. } = request;
    let expected = expectation(&key, etag, options)?;
    Ok(Operation { key, value: Some(value), expected, metadata })
}

fn to_delete(request: DeleteRequest) -> Result<Operation> {
    let DeleteRequest { key, etag, metadata, options } = request;
    let expected = expectation(&key, etag, options)?.of_delete();
    Ok(Operation { key, value: None, expected, metadata })
}

async fn set(state: State, request: SetRequest) -> Result<()> {
    state.write(vec![to_set(request)?]).await?;
    Ok(())
}

async fn delete(state: State, request: DeleteRequest) -> Result<()> {
    state.write(vec![to_delete(request)?]).await?;
    Ok(())
}

async fn bulk_set(state: State, request: BulkSetRequest) -> Result<()> {
    state.write(request.items.into_iter().map(to_set).collect::<Result<_>>()?).await?;
    Ok(())
}

async fn bulk_delete(state: State, request: BulkDeleteRequest) -> Result<()> {
    state.write(request.items.into_iter().map(to_delete).collect::<Result<_>>()?).await?;
    Ok(())
}

async fn transact(state: State, request: TransactionalStateRequest) -> Result<()> {
    let operation = |operation: TransactionalStateOperation| {
        let operation = match operation.request {
            Some(Change::Set(set)) => to_set(set)?,
            Some(Change::Delete(delete)) => to_delete(delete)?,
            None => return Err(Error::UnsupportedOperation("unknown".to_owned())),
        };
        Ok(operation.with_default_metadata(&request.metadata))
    };
    let operations = request.operations.into_iter().map(operation);
    state.transact(operations.collect::<Result<_>>()?).await?;
    Ok(())
}

async fn query(state: State, request: QueryRequest) -> Result<QueryResponse> {
    let asked = request.query.unwrap_or_default();
    let filter = asked.filter.into_iter().map(|(operator, operand)| {
        let operand = serde_json::from_slice(&operand.value);
        operand.map(|operand| (operator, operand)).map_err(query::not_json)
    });
    let order = |sorting: Sorting| {
        let is_descending = sorting.order() == sorting::Order::Desc;
        (sorting.key, is_descending)
    };
    let page = asked.pagination.unwrap_or_default();
    let query = Query::new(
        filter.collect::<Result<_>>()?,
        asked.sort.into_iter().map(order).collect(),
        usize::try_from(page.limit).unwrap_or_default(),
        page.token,
        &request.metadata,
    )?;
    let found = state.query(&query).await?;
    let item = |(key, entry): (String, Entry)| QueryItem {
        key,
        etag: etag(&entry),
        data: entry.value,
        ..Default::default()
    };
    Ok(QueryResponse {
        items: found.entries.into_iter().map(item).collect(),
        token: found.token.unwrap_or_default(),
        ..Default::default()
    })
}
