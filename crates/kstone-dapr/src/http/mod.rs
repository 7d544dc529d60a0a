//! Dapr's HTTP API for state: routes a request, carries it out, and makes the response.

mod body;
mod response;
mod route;

use ::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use kstone_door::body::{BodyError, HeldBody};

use crate::door::{API_TOKEN, Door};
use crate::error::{Error, RequestKind, Result};
use crate::query::Query;
use crate::store::Store;
use crate::write::{Concurrency, Expected, Operation, check_consistency};
use route::{Parameters, Route};

pub(crate) type HttpResponse = Response<Full<Bytes>>;

/// Answers one request.
pub(crate) async fn answer(door: Door, request: Request<Incoming>) -> HttpResponse {
    let route = match Route::parse(request.uri().path()) {
        Some(route) => route,
        None => {
            let what = format!(
                "there is nothing at {}: this server has Dapr's state API",
                request.uri().path()
            );
            return response::error(StatusCode::NOT_FOUND, "ERR_NOT_FOUND", &what);
        }
    };
    // Health checks need no token.
    let is_health = matches!(route, Route::Health);
    let token = request.headers().get(API_TOKEN).map(|token| token.as_bytes());
    if !is_health && !door.accepts_token(token) {
        let what = "invalid api token: send it in the header dapr-api-token";
        return response::error(StatusCode::UNAUTHORIZED, "ERR_UNAUTHORIZED", what);
    }
    let Some(kind) = route.request_kind(request.method()) else {
        return match (route, request.method()) {
            (Route::Health, &Method::GET) => response::no_content(),
            (Route::Metadata, &Method::GET) => response::metadata(door.options()),
            _ => {
                let what = format!("{} is not possible here", request.method());
                response::error(StatusCode::METHOD_NOT_ALLOWED, "ERR_METHOD_NOT_ALLOWED", &what)
            }
        };
    };
    match carry_out(&door, route, kind, request).await {
        Ok(response) => response,
        Err(error) => response::error(error.status(), error.code(kind), &error.to_string()),
    }
}

async fn carry_out(
    door: &Door,
    route: Route,
    kind: RequestKind,
    request: Request<Incoming>,
) -> Result<HttpResponse> {
    let (store, key) = route.store_and_key();
    let state = door.store(&store)?;
    let parameters = Parameters::parse(request.uri().query())?;
    if let Some(consistency) = parameters.get("consistency") {
        check_consistency(consistency)?;
    }
    match kind {
        RequestKind::Get => Ok(match state.get(&key).await? {
            Some(entry) => response::entry(entry),
            None => response::no_content(),
        }),
        RequestKind::Delete => {
            let concurrency =
                Concurrency::parse(parameters.get("concurrency").unwrap_or_default())?;
            let etag = match request.headers().get(::http::header::IF_MATCH) {
                Some(etag) => Some(etag.to_str().map_err(|_| Error::BadEtag {
                    key: key.clone(),
                    etag: String::from_utf8_lossy(etag.as_bytes()).into_owned(),
                })?),
                None => None,
            };
            let expected = Expected::new(&key, etag, concurrency)?.of_delete();
            let metadata = parameters.metadata;
            let operation = Operation { key, value: None, expected, metadata };
            state.write(vec![operation]).await?;
            Ok(response::no_content())
        }
        RequestKind::Save
        | RequestKind::BulkGet
        | RequestKind::Transaction
        | RequestKind::Query => {
            let body = read(door, request).await?;
            with_body(&state, kind, &body.bytes, parameters).await
        }
    }
}

async fn with_body(
    state: &Store<'_>,
    kind: RequestKind,
    body: &[u8],
    parameters: Parameters,
) -> Result<HttpResponse> {
    match kind {
        RequestKind::BulkGet => {
            let keys = body::keys(body)?;
            let entries = state.get_many(&keys).await?;
            Ok(response::bulk(&keys, entries))
        }
        RequestKind::Transaction => {
            state.transact(body::transaction(body, &parameters.metadata)?).await?;
            Ok(response::no_content())
        }
        RequestKind::Query => {
            let query = Query::parse(body, &parameters.metadata)?;
            Ok(response::query_page(state.query(query).await?))
        }
        _ => {
            state.write(body::saves(body, &parameters.metadata)?).await?;
            Ok(response::no_content())
        }
    }
}

async fn read(door: &Door, request: Request<Incoming>) -> Result<HeldBody> {
    door.bodies().collect(request.into_body()).await.map_err(|error| match error {
        BodyError::TooLarge { bytes_max } => {
            Error::TooLarge(format!("a request may have at most {bytes_max} bytes"))
        }
        BodyError::TooSlow => Error::malformed("the body took too long to arrive"),
        BodyError::OutOfMemory => Error::Unavailable(error.to_string()),
        BodyError::Broken(error) => Error::malformed(format!("the body ended too early: {error}")),
    })
}
