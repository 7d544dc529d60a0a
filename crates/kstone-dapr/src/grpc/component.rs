//! The store as a component that a Dapr sidecar plugs in: the services of
//! `dapr.proto.components.v1`. The sidecar has put an application's name before each key already.

use std::future::Future;

use ::http::{Request, Response};
use hyper::body::Incoming;
use prost::Message;
use tonic::Status;
use tonic::body::Body;

use super::call::unary;
use super::details;
use super::messages::component::{
    BulkDeleteRequest, BulkGetRequest, BulkGetResponse, BulkSetRequest, BulkStateItem,
    DeleteRequest, Etag, FeaturesResponse, GetRequest, GetResponse, MultiMaxSizeResponse, Nothing,
    QueryItem, QueryRequest, QueryResponse, Request as Operations, SetRequest, Sorting,
    TransactionalStateRequest,
};
use super::reflection;
use super::runtime::{expected, metadata};
use crate::door::{CAPABILITIES, Door};
use crate::entry::Entry;
use crate::error::{Doing, Error, Result};
use crate::query::{self, Query};
use crate::state::{BATCH_MAX, State};
use crate::write::Operation;

/// What a sidecar is told when it asks which services there are.
const SERVICES: [&str; 4] = [
    "dapr.proto.components.v1.StateStore",
    "dapr.proto.components.v1.TransactionalStateStore",
    "dapr.proto.components.v1.QueriableStateStore",
    "dapr.proto.components.v1.TransactionalStoreMultiMaxSize",
];

/// The answer to a call of a sidecar.
pub(crate) async fn answer(door: Door, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if reflection::PATHS.contains(&path.as_str()) {
        return reflection::answer(request, &SERVICES).await;
    }
    let method = path.strip_prefix("/dapr.proto.components.v1.").unwrap_or_default();
    match method {
        // What a component's definition says is the sidecar's business, its `keyPrefix` above all.
        "StateStore/Init" | "StateStore/Ping" => call(door, request, Doing::Get, nothing).await,
        "StateStore/Features" => call(door, request, Doing::Get, features).await,
        "StateStore/Get" => call(door, request, Doing::Get, get).await,
        "StateStore/Set" => call(door, request, Doing::Save, set).await,
        "StateStore/Delete" => call(door, request, Doing::Delete, delete).await,
        "StateStore/BulkGet" => call(door, request, Doing::BulkGet, bulk_get).await,
        "StateStore/BulkSet" => call(door, request, Doing::Save, bulk_set).await,
        "StateStore/BulkDelete" => call(door, request, Doing::Delete, bulk_delete).await,
        "TransactionalStateStore/Transact" => {
            call(door, request, Doing::Transaction, transact).await
        }
        "QueriableStateStore/Query" => call(door, request, Doing::Query, query).await,
        "TransactionalStoreMultiMaxSize/MultiMaxSize" => {
            call(door, request, Doing::Get, multi_max_size).await
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
    doing: Doing,
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
        async move { done.await.map_err(|error| details::status(&error, doing)) }
    };
    unary(request, door.bodies(), work).await
}

async fn nothing(_: State, _: Nothing) -> Result<Nothing> {
    Ok(Nothing {})
}

async fn features(_: State, _: Nothing) -> Result<FeaturesResponse> {
    Ok(FeaturesResponse { features: CAPABILITIES.map(str::to_owned).to_vec() })
}

async fn multi_max_size(_: State, _: Nothing) -> Result<MultiMaxSizeResponse> {
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
    }))
}

async fn bulk_get(state: State, request: BulkGetRequest) -> Result<BulkGetResponse> {
    let keys: Vec<String> = request.items.into_iter().map(|item| item.key).collect();
    let entries = state.get_many(&keys).await?;
    let item = |(key, entry): (String, Option<Entry>)| match entry {
        Some(entry) => {
            BulkStateItem { key, metadata: metadata(&entry), etag: etag(&entry), data: entry.value }
        }
        None => BulkStateItem { key, ..BulkStateItem::default() },
    };
    Ok(BulkGetResponse { items: keys.into_iter().zip(entries).map(item).collect() })
}

fn to_set(request: SetRequest) -> Result<Operation> {
    let SetRequest { key, value, etag, metadata, options } = request;
    let expected = expected(&key, etag.as_ref(), options)?;
    Ok(Operation { key, value: Some(value), expected, metadata })
}

fn to_delete(request: DeleteRequest) -> Result<Operation> {
    let DeleteRequest { key, etag, metadata, options } = request;
    let expected = expected(&key, etag.as_ref(), options)?.of_delete();
    Ok(Operation { key, value: None, expected, metadata })
}

async fn set(state: State, request: SetRequest) -> Result<Nothing> {
    state.write(vec![to_set(request)?]).await?;
    Ok(Nothing {})
}

async fn delete(state: State, request: DeleteRequest) -> Result<Nothing> {
    state.write(vec![to_delete(request)?]).await?;
    Ok(Nothing {})
}

async fn bulk_set(state: State, request: BulkSetRequest) -> Result<Nothing> {
    state.write(request.items.into_iter().map(to_set).collect::<Result<_>>()?).await?;
    Ok(Nothing {})
}

async fn bulk_delete(state: State, request: BulkDeleteRequest) -> Result<Nothing> {
    state.write(request.items.into_iter().map(to_delete).collect::<Result<_>>()?).await?;
    Ok(Nothing {})
}

async fn transact(state: State, request: TransactionalStateRequest) -> Result<Nothing> {
    let of_all = request.metadata;
    let operation = |operation: Option<Operations>| {
        let mut operation = match operation {
            Some(Operations::Set(set)) => to_set(set)?,
            Some(Operations::Delete(delete)) => to_delete(delete)?,
            None => return Err(Error::UnsupportedOperation("unknown".to_owned())),
        };
        // What is said about one operation counts more than what is said about all.
        for (name, value) in &of_all {
            operation.metadata.entry(name.clone()).or_insert_with(|| value.clone());
        }
        Ok(operation)
    };
    let operations = request.operations.into_iter().map(|it| operation(it.request));
    state.transact(operations.collect::<Result<_>>()?).await?;
    Ok(Nothing {})
}

async fn query(state: State, request: QueryRequest) -> Result<QueryResponse> {
    let asked = request.query.unwrap_or_default();
    let filter = asked.filter.into_iter().map(|(operator, operand)| {
        let operand = serde_json::from_slice(&operand.value);
        operand.map(|operand| (operator, operand)).map_err(query::not_json)
    });
    let order = |Sorting { key, order }: Sorting| (key, order == 1);
    let page = asked.pagination.unwrap_or_default();
    let query = Query::new(
        filter.collect::<Result<_>>()?,
        asked.sort.into_iter().map(order).collect(),
        usize::try_from(page.limit).unwrap_or_default(),
        page.token,
        &request.metadata,
    )?;
    let found = state.query(&query).await?;
    let item =
        |(key, entry): (String, Entry)| QueryItem { key, etag: etag(&entry), data: entry.value };
    let items = found.entries.into_iter().map(item).collect();
    Ok(QueryResponse { items, token: found.token.unwrap_or_default() })
}
