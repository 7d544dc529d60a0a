//! Dapr's HTTP API for state: from a request to its answer.

mod address;
mod answer;
mod body;

use ::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use kstone_door::body::{BodyError, HeldBody};

use crate::door::{API_TOKEN, Door};
use crate::error::{Doing, Error, Result};
use crate::query::Query;
use crate::store::Store;
use crate::write::{Concurrency, Expected, Operation, check_consistency};
use address::{Address, Parameters};

pub(crate) type Answer = Response<Full<Bytes>>;

/// The answer to a request.
pub(crate) async fn answer(door: Door, request: Request<Incoming>) -> Answer {
    let address = match Address::parse(request.uri().path()) {
        Some(address) => address,
        None => {
            let what = format!(
                "there is nothing at {}: this server has Dapr's state API",
                request.uri().path()
            );
            return answer::error(StatusCode::NOT_FOUND, "ERR_NOT_FOUND", &what);
        }
    };
    // Whoever asks whether the server is there need not say who asks.
    let is_health = matches!(address, Address::Health);
    let token = request.headers().get(API_TOKEN).map(|token| token.as_bytes());
    if !is_health && !door.admits(token) {
        let what = "invalid api token: send it in the header dapr-api-token";
        return answer::error(StatusCode::UNAUTHORIZED, "ERR_UNAUTHORIZED", what);
    }
    let Some(doing) = address.doing(request.method()) else {
        return match (address, request.method()) {
            (Address::Health, &Method::GET) => answer::nothing(),
            (Address::Metadata, &Method::GET) => answer::metadata(door.options()),
            _ => {
                let what = format!("{} is not possible here", request.method());
                answer::error(StatusCode::METHOD_NOT_ALLOWED, "ERR_METHOD_NOT_ALLOWED", &what)
            }
        };
    };
    match carry_out(&door, address, doing, request).await {
        Ok(answer) => answer,
        Err(error) => answer::error(error.status(), error.code(doing), &error.to_string()),
    }
}

async fn carry_out(
    door: &Door,
    address: Address,
    doing: Doing,
    request: Request<Incoming>,
) -> Result<Answer> {
    let (store, key) = address.store_and_key();
    let state = door.store(&store)?;
    let parameters = Parameters::parse(request.uri().query())?;
    if let Some(consistency) = parameters.get("consistency") {
        check_consistency(consistency)?;
    }
    match doing {
        Doing::Get => Ok(match state.get(&key).await? {
            Some(entry) => answer::entry(entry),
            None => answer::nothing(),
        }),
        Doing::Delete => {
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
            Ok(answer::nothing())
        }
        Doing::Save | Doing::BulkGet | Doing::Transaction | Doing::Query => {
            let body = read(door, request).await?;
            with_body(&state, doing, &body.bytes, parameters).await
        }
    }
}

async fn with_body(
    state: &Store<'_>,
    doing: Doing,
    body: &[u8],
    parameters: Parameters,
) -> Result<Answer> {
    match doing {
        Doing::BulkGet => {
            let keys = body::keys(body)?;
            let entries = state.get_many(&keys).await?;
            Ok(answer::bulk(&keys, entries))
        }
        Doing::Transaction => {
            state.transact(body::transaction(body, &parameters.metadata)?).await?;
            Ok(answer::nothing())
        }
        Doing::Query => {
            let query = Query::parse(body, &parameters.metadata)?;
            Ok(answer::found(state.query(query).await?))
        }
        _ => {
            state.write(body::saves(body, &parameters.metadata)?).await?;
            Ok(answer::nothing())
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
