//! HTTP responses, and their JSON.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::HttpResponse;
use crate::door::{CAPABILITIES, COMPONENT_TYPE, DoorOptions, VERSION};
use crate::entry::Entry;
use crate::query::QueryPage;
use crate::time_to_live;

/// The header for the expiry of a value: Dapr returns a value's metadata as headers.
const EXPIRES: HeaderName = HeaderName::from_static("metadata.ttlexpiretime");

/// One key in the response to a bulk read or a query. A missing key has neither data nor ETag.
#[derive(Debug, Serialize)]
pub(super) struct BulkItem<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<serde_json::Value>,
}

/// The body of the response to a query.
#[derive(Debug, Serialize)]
struct QueryBody<'a> {
    results: Vec<BulkItem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl<'a> BulkItem<'a> {
    pub(super) fn new(key: &'a str, entry: Option<Entry>) -> BulkItem<'a> {
        let Some(Entry { value, etag, expires_at_s }) = entry else {
            return BulkItem { key, data: None, etag: None, metadata: None };
        };
        let metadata =
            expires_at_s.map(|second| json!({"ttlExpireTime": time_to_live::rfc3339(second)}));
        BulkItem { key, data: Some(as_json(&value)), etag: Some(etag.to_string()), metadata }
    }
}

/// A value as part of a JSON document. A value that is not JSON becomes a JSON string.
fn as_json(value: &[u8]) -> Box<RawValue> {
    let text = String::from_utf8_lossy(value);
    let quoted =
        || serde_json::value::to_raw_value(&*text).unwrap_or_else(|_| RawValue::NULL.to_owned());
    RawValue::from_string(text.clone().into_owned()).unwrap_or_else(|_| quoted())
}

fn with_body(status: StatusCode, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn json(body: &impl Serialize) -> HttpResponse {
    match serde_json::to_vec(body) {
        Ok(body) => with_body(StatusCode::OK, body),
        Err(error) => {
            self::error(StatusCode::INTERNAL_SERVER_ERROR, "ERR_STATE_GET", &error.to_string())
        }
    }
}

/// Success, without a body.
pub(super) fn no_content() -> HttpResponse {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

pub(super) fn error(status: StatusCode, code: &str, message: &str) -> HttpResponse {
    with_body(status, json!({"errorCode": code, "message": message}).to_string())
}

/// The response to a read of one key.
pub(super) fn entry(entry: Entry) -> HttpResponse {
    let mut response = with_body(StatusCode::OK, entry.value);
    let headers = response.headers_mut();
    if let Ok(etag) = HeaderValue::try_from(entry.etag.to_string()) {
        headers.insert(ETAG, etag);
    }
    let expires = entry.expires_at_s.map(time_to_live::rfc3339);
    if let Some(Ok(expires)) = expires.map(HeaderValue::try_from) {
        headers.insert(EXPIRES, expires);
    }
    response
}

/// The response to a bulk read.
pub(super) fn bulk(keys: &[String], entries: Vec<Option<Entry>>) -> HttpResponse {
    let all = keys.iter().zip(entries).map(|(key, entry)| BulkItem::new(key, entry));
    json(&all.collect::<Vec<_>>())
}

/// The response to a query.
pub(super) fn query_page(found: QueryPage) -> HttpResponse {
    let keys = found.entries.iter().map(|(key, entry)| BulkItem::new(key, Some(entry.clone())));
    let results: Vec<BulkItem<'_>> = keys.collect();
    match found.token {
        Some(token) => json(&QueryBody { results, token: Some(token) }),
        None if results.is_empty() => no_content(),
        None => json(&QueryBody { results, token: None }),
    }
}

/// The response to a metadata request, which SDKs send when they start.
pub(super) fn metadata(options: &DoorOptions) -> HttpResponse {
    let component = |name: &String| {
        json!({
            "name": name, "type": COMPONENT_TYPE, "version": "v1", "capabilities": CAPABILITIES
        })
    };
    json(&json!({
        "id": "kstone",
        "runtimeVersion": VERSION,
        "components": options.stores.iter().map(component).collect::<Vec<_>>(),
        "extended": {"daprRuntimeVersion": VERSION},
    }))
}
