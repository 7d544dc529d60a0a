//! Dapr's gRPC API for state: from a call to its answer.

use std::collections::HashMap;
use std::future::Future;

use ::http::{Request, Response};
use hyper::body::Incoming;
use prost::Message;
use tonic::body::Body;
use tonic::{Code, Status};

use super::call;
use super::messages::runtime::{
    BulkStateItem, DeleteStateRequest, Etag, ExecuteStateTransactionRequest, GetBulkStateRequest,
    GetBulkStateResponse, GetMetadataResponse, GetStateRequest, GetStateResponse, QueryStateItem,
    QueryStateRequest, QueryStateResponse, RegisteredComponent, StateItem, StateOptions,
    StatesRequest,
};
use crate::door::{API_TOKEN, CAPABILITIES, COMPONENT_TYPE, Door, VERSION};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::query::Query;
use crate::time_to_live;
use crate::write::{Concurrency, Expected, Operation};

/// The service, as a path begins with it.
const SERVICE: &str = "/dapr.proto.runtime.v1.Dapr/";

/// The answer to a call.
pub(crate) async fn answer(door: Door, request: Request<Incoming>) -> Response<Body> {
    let token = request.headers().get(API_TOKEN).map(|token| token.as_bytes());
    if !door.admits(token) {
        let what = "invalid api token: send it as dapr-api-token in the metadata";
        return Status::unauthenticated(what).into_http();
    }
    let method = request.uri().path().strip_prefix(SERVICE).unwrap_or_default().to_owned();
    match method.as_str() {
        "GetState" => unary(door, request, get_state).await,
        "GetBulkState" => unary(door, request, get_bulk_state).await,
        "SaveState" => unary(door, request, save_state).await,
        "DeleteState" => unary(door, request, delete_state).await,
        "DeleteBulkState" => unary(door, request, delete_bulk_state).await,
        "ExecuteStateTransaction" => unary(door, request, transact).await,
        "QueryStateAlpha1" => unary(door, request, query).await,
        "GetMetadata" => unary(door, request, get_metadata).await,
        _ => {
            let path = request.uri().path();
            let what = format!("there is no {path}: this server has Dapr's state API");
            Status::unimplemented(what).into_http()
        }
    }
}

/// Reads the one message of a call, and answers with one.
async fn unary<M, R, W, F>(door: Door, request: Request<Incoming>, work: W) -> Response<Body>
where
    M: Message + Default + Send + 'static,
    R: Message + Send + 'static,
    W: Fn(Door, M) -> F + Send + 'static,
    F: Future<Output = Result<R>> + Send + 'static,
{
    let asked = door.clone();
    let work = move |message| {
        let done = work(asked.clone(), message);
        async move { done.await.map_err(status) }
    };
    call::unary(request, door.bodies(), work).await
}

fn status(error: Error) -> Status {
    let code = match &error {
        Error::EtagMismatch { .. } => Code::Aborted,
        Error::TooLarge(_) => Code::ResourceExhausted,
        Error::Unavailable(_) => Code::Unavailable,
        error if error.is_servers_fault() => Code::Internal,
        _ => Code::InvalidArgument,
    };
    Status::new(code, error.to_string())
}

/// What is told about a value beside it.
pub(super) fn metadata(entry: &Entry) -> HashMap<String, String> {
    let expires = entry.expires_at_s.map(time_to_live::rfc3339);
    expires.map(|expires| ("ttlExpireTime".to_owned(), expires)).into_iter().collect()
}

pub(super) fn expected(
    key: &str,
    etag: Option<&Etag>,
    options: Option<StateOptions>,
) -> Result<Expected> {
    let concurrency = match options.unwrap_or_default().concurrency {
        1 => Concurrency::First,
        _ => Concurrency::Last,
    };
    Expected::new(key, etag.map(|etag| etag.value.as_str()), concurrency)
}

fn upsert(state: StateItem) -> Result<Operation> {
    let expected = expected(&state.key, state.etag.as_ref(), state.options)?;
    let StateItem { key, value, metadata, .. } = state;
    Ok(Operation { key, value: Some(value), expected, metadata })
}

fn delete(state: StateItem) -> Result<Operation> {
    let expected = expected(&state.key, state.etag.as_ref(), state.options)?.of_delete();
    Ok(Operation { key: state.key, value: None, expected, metadata: state.metadata })
}

async fn get_state(door: Door, request: GetStateRequest) -> Result<GetStateResponse> {
    let entry = door.store(&request.store_name)?.get(&request.key).await?;
    Ok(entry.map_or_else(GetStateResponse::default, |entry| GetStateResponse {
        metadata: metadata(&entry),
        etag: entry.etag.to_string(),
        data: entry.value,
    }))
}

async fn get_bulk_state(door: Door, request: GetBulkStateRequest) -> Result<GetBulkStateResponse> {
    let entries = door.store(&request.store_name)?.get_many(&request.keys).await?;
    let item = |(key, entry): (String, Option<Entry>)| match entry {
        Some(entry) => BulkStateItem {
            key,
            metadata: metadata(&entry),
            etag: entry.etag.to_string(),
            data: entry.value,
        },
        None => BulkStateItem { key, ..BulkStateItem::default() },
    };
    Ok(GetBulkStateResponse { items: request.keys.into_iter().zip(entries).map(item).collect() })
}

async fn save_state(door: Door, request: StatesRequest) -> Result<()> {
    let state = door.store(&request.store_name)?;
    let operations = request.states.into_iter().map(upsert).collect::<Result<_>>()?;
    state.write(operations).await
}

async fn delete_bulk_state(door: Door, request: StatesRequest) -> Result<()> {
    let state = door.store(&request.store_name)?;
    let operations = request.states.into_iter().map(delete).collect::<Result<_>>()?;
    state.write(operations).await
}

async fn delete_state(door: Door, request: DeleteStateRequest) -> Result<()> {
    let DeleteStateRequest { store_name, key, etag, options, metadata } = request;
    let state = door.store(&store_name)?;
    let item = StateItem { key, etag, options, metadata, ..StateItem::default() };
    state.write(vec![delete(item)?]).await
}

async fn transact(door: Door, request: ExecuteStateTransactionRequest) -> Result<()> {
    let state = door.store(&request.store_name)?;
    let mut operations = Vec::with_capacity(request.operations.len());
    for operation in request.operations {
        let mut item = operation.request.unwrap_or_default();
        // What is said about one operation counts more than what is said about all.
        for (name, value) in &request.metadata {
            item.metadata.entry(name.clone()).or_insert_with(|| value.clone());
        }
        operations.push(match operation.operation_type.as_str() {
            "upsert" => upsert(item)?,
            "delete" => delete(item)?,
            _ => return Err(Error::UnsupportedOperation(operation.operation_type)),
        });
    }
    state.transact(operations).await
}

async fn query(door: Door, request: QueryStateRequest) -> Result<QueryStateResponse> {
    let state = door.store(&request.store_name)?;
    let query = Query::parse(request.query.as_bytes(), &request.metadata)?;
    let found = state.query(query).await?;
    let item = |(key, entry): (String, Entry)| QueryStateItem {
        key,
        etag: entry.etag.to_string(),
        data: entry.value,
    };
    let results = found.entries.into_iter().map(item).collect();
    Ok(QueryStateResponse { results, token: found.token.unwrap_or_default() })
}

async fn get_metadata(door: Door, (): ()) -> Result<GetMetadataResponse> {
    let component = |name: &String| RegisteredComponent {
        name: name.clone(),
        kind: COMPONENT_TYPE.to_owned(),
        version: "v1".to_owned(),
        capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
    };
    Ok(GetMetadataResponse {
        id: "kstone".to_owned(),
        components: door.options().stores.iter().map(component).collect(),
        extended: HashMap::from([("daprRuntimeVersion".to_owned(), VERSION.to_owned())]),
        runtime_version: VERSION.to_owned(),
    })
}
