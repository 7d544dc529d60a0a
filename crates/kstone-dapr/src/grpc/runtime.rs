//! Dapr's gRPC API for state: the methods of `dapr.proto.runtime.v1.Dapr` that are about it.

use std::collections::HashMap;
use std::future::Future;

use ::http::{Request, Response};
use hyper::body::Incoming;
use prost::Message;
use tonic::body::Body;
use tonic::{Code, Status};

use super::call;
use super::messages::common::{StateItem, state_options::StateConcurrency};
use super::messages::runtime::{
    BulkStateItem, DeleteBulkStateRequest, DeleteStateRequest, ExecuteStateTransactionRequest,
    GetBulkStateRequest, GetBulkStateResponse, GetMetadataResponse, GetStateRequest,
    GetStateResponse, QueryStateItem, QueryStateRequest, QueryStateResponse, RegisteredComponents,
    SaveStateRequest, TransactionalStateOperation,
};
use crate::door::{API_TOKEN, CAPABILITIES, COMPONENT_TYPE, Door, VERSION};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::query::Query;
use crate::time_to_live;
use crate::write::{Concurrency, Expected, Operation};

/// The beginning of each method's path.
const SERVICE: &str = "/dapr.proto.runtime.v1.Dapr/";

/// Answers one call of a client.
pub(crate) async fn answer(door: Door, request: Request<Incoming>) -> Response<Body> {
    let token = request.headers().get(API_TOKEN).map(|token| token.as_bytes());
    if !door.accepts_token(token) {
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

/// Carries out a call, and reports an error as its status.
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

/// The metadata of a response that holds this value.
pub(super) fn metadata(entry: &Entry) -> HashMap<String, String> {
    let expires = entry.expires_at_s.map(time_to_live::rfc3339);
    expires.map(|expires| ("ttlExpireTime".to_owned(), expires)).into_iter().collect()
}

/// What a write expects of its key. The numbers of `concurrency` are the same in the API for clients
/// and in the one for components.
pub(super) fn expected(
    key: &str,
    etag: Option<&str>,
    concurrency: Option<i32>,
) -> Result<Expected> {
    let first_write = StateConcurrency::ConcurrencyFirstWrite as i32;
    let concurrency = match concurrency {
        Some(concurrency) if concurrency == first_write => Concurrency::First,
        _ => Concurrency::Last,
    };
    Expected::new(key, etag, concurrency)
}

fn expectation(item: &StateItem) -> Result<Expected> {
    let etag = item.etag.as_ref().map(|etag| etag.value.as_str());
    expected(&item.key, etag, item.options.map(|options| options.concurrency))
}

fn upsert(item: StateItem) -> Result<Operation> {
    let expected = expectation(&item)?;
    let StateItem { key, value, metadata, .. } = item;
    Ok(Operation { key, value: Some(value), expected, metadata })
}

fn delete(item: StateItem) -> Result<Operation> {
    let expected = expectation(&item)?.of_delete();
    Ok(Operation { key: item.key, value: None, expected, metadata: item.metadata })
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
            ..Default::default()
        },
        None => BulkStateItem { key, ..Default::default() },
    };
    Ok(GetBulkStateResponse { items: request.keys.into_iter().zip(entries).map(item).collect() })
}

async fn save_state(door: Door, request: SaveStateRequest) -> Result<()> {
    let state = door.store(&request.store_name)?;
    let operations = request.states.into_iter().map(upsert).collect::<Result<_>>()?;
    state.write(operations).await
}

async fn delete_bulk_state(door: Door, request: DeleteBulkStateRequest) -> Result<()> {
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
    let operation = |operation: TransactionalStateOperation| {
        let item = operation.request.unwrap_or_default();
        let operation = match operation.operation_type.as_str() {
            "upsert" => upsert(item)?,
            "delete" => delete(item)?,
            _ => return Err(Error::UnsupportedOperation(operation.operation_type)),
        };
        Ok(operation.with_default_metadata(&request.metadata))
    };
    let operations = request.operations.into_iter().map(operation);
    state.transact(operations.collect::<Result<_>>()?).await
}

async fn query(door: Door, request: QueryStateRequest) -> Result<QueryStateResponse> {
    let state = door.store(&request.store_name)?;
    let query = Query::parse(request.query.as_bytes(), &request.metadata)?;
    let found = state.query(query).await?;
    let item = |(key, entry): (String, Entry)| QueryStateItem {
        key,
        etag: entry.etag.to_string(),
        data: entry.value,
        ..Default::default()
    };
    Ok(QueryStateResponse {
        results: found.entries.into_iter().map(item).collect(),
        token: found.token.unwrap_or_default(),
        ..Default::default()
    })
}

async fn get_metadata(door: Door, (): ()) -> Result<GetMetadataResponse> {
    let component = |name: &String| RegisteredComponents {
        name: name.clone(),
        r#type: COMPONENT_TYPE.to_owned(),
        version: "v1".to_owned(),
        capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
    };
    Ok(GetMetadataResponse {
        id: "kstone".to_owned(),
        registered_components: door.options().stores.iter().map(component).collect(),
        extended_metadata: HashMap::from([("daprRuntimeVersion".to_owned(), VERSION.to_owned())]),
        runtime_version: VERSION.to_owned(),
        ..Default::default()
    })
}
