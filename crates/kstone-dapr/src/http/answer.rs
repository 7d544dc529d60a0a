//! Answers as HTTP.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::Answer;
use crate::door::{CAPABILITIES, COMPONENT_TYPE, DoorOptions, VERSION};
use crate::entry::Entry;
use crate::query::Found;
use crate::time_to_live;

/// Dapr gives metadata of a value as headers.
const EXPIRES: HeaderName = HeaderName::from_static("metadata.ttlexpiretime");

/// One key of a bulk answer. A key that holds nothing has neither data nor ETag.
#[derive(Debug, Serialize)]
pub(super) struct OneKey<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<serde_json::Value>,
}

/// One page of a query's answer.
#[derive(Debug, Serialize)]
struct Page<'a> {
    results: Vec<OneKey<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl<'a> OneKey<'a> {
    pub(super) fn new(key: &'a str, entry: Option<Entry>) -> OneKey<'a> {
        let Some(Entry { value, etag, expires_at_s }) = entry else {
            return OneKey { key, data: None, etag: None, metadata: None };
        };
        let metadata =
            expires_at_s.map(|second| json!({"ttlExpireTime": time_to_live::rfc3339(second)}));
        OneKey { key, data: Some(as_json(&value)), etag: Some(etag.to_string()), metadata }
    }
}

/// A value among JSON. One that is no JSON is text there.
fn as_json(value: &[u8]) -> Box<RawValue> {
    let text = String::from_utf8_lossy(value);
    let quoted =
        || serde_json::value::to_raw_value(&*text).unwrap_or_else(|_| RawValue::NULL.to_owned());
    RawValue::from_string(text.clone().into_owned()).unwrap_or_else(|_| quoted())
}

fn with_body(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

pub(super) fn json(body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(body) => with_body(StatusCode::OK, body),
        Err(error) => {
            self::error(StatusCode::INTERNAL_SERVER_ERROR, "ERR_STATE_GET", &error.to_string())
        }
    }
}

/// Done, and there is nothing to say.
pub(super) fn nothing() -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

pub(super) fn error(status: StatusCode, code: &str, message: &str) -> Answer {
    with_body(status, json!({"errorCode": code, "message": message}).to_string())
}

/// What one key holds.
pub(super) fn entry(entry: Entry) -> Answer {
    let mut answer = with_body(StatusCode::OK, entry.value);
    let headers = answer.headers_mut();
    if let Ok(etag) = HeaderValue::try_from(entry.etag.to_string()) {
        headers.insert(ETAG, etag);
    }
    let expires = entry.expires_at_s.map(time_to_live::rfc3339);
    if let Some(Ok(expires)) = expires.map(HeaderValue::try_from) {
        headers.insert(EXPIRES, expires);
    }
    answer
}

/// What several keys hold.
pub(super) fn bulk(keys: &[String], entries: Vec<Option<Entry>>) -> Answer {
    let all = keys.iter().zip(entries).map(|(key, entry)| OneKey::new(key, entry));
    json(&all.collect::<Vec<_>>())
}

/// What a query found.
pub(super) fn found(found: Found) -> Answer {
    let keys = found.entries.iter().map(|(key, entry)| OneKey::new(key, Some(entry.clone())));
    let results: Vec<OneKey<'_>> = keys.collect();
    match found.token {
        Some(token) => json(&Page { results, token: Some(token) }),
        None if results.is_empty() => nothing(),
        None => json(&Page { results, token: None }),
    }
}

/// What SDKs ask for when they start.
pub(super) fn metadata(options: &DoorOptions) -> Answer {
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
