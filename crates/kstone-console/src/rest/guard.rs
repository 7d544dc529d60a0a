//! Middleware before every call: rate limits, and answers for repeated requests.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use kstone_base::idempotency::{BeginOutcome, RepeatableRequest, StoredResponse};
use kstone_base::rate_limits::{Decision, LimitKind};
use serde_json::Value;

use super::PREFIX;
use super::extract::IdempotencyKey;
use super::problem::{Code, Problem};
use crate::console::ConsoleState;
use crate::request;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Headers of an answer that belong to what was done, and are answered again with it.
const KEPT_HEADERS: [HeaderName; 2] = [header::ETAG, header::LOCATION];
/// How often a long request is marked as still being carried out.
const RENEWED: Duration = Duration::from_secs(20);
/// Whose keys they are. There is one token, so all who have it are one: a phone that repeats a request
/// from another network is the same client.
const KEYS_OWNER: &str = "api";

/// What a call counts as; `None` if it is never too much.
fn kind_of(method: &Method, path: &str) -> Option<LimitKind> {
    let path = path.strip_prefix(PREFIX).unwrap_or(path);
    if matches!(path, "/health" | "/openapi.json" | "/docs") {
        return None;
    }
    Some(match (method, path) {
        (&Method::POST, "/events") => LimitKind::Ingest,
        (&Method::POST, "/batches") => LimitKind::Batch,
        (&Method::POST, "/mastery/query") => LimitKind::Query,
        (_, path) if path.ends_with("/prediction") => LimitKind::Predict,
        (_, path) if path.ends_with("/cohorts") || path == "/compare" => LimitKind::Calculate,
        (&Method::GET | &Method::HEAD, _) => LimitKind::Query,
        _ => LimitKind::Calculate,
    })
}

/// Refuses clients that ask too often, and tells the others how much they may ask.
pub(super) async fn limit(console: ConsoleState, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let kind = kind_of(request.method(), path).filter(|_| console.options.has_rate_limits);
    let (Some(kind), Some(platform)) = (kind, &console.platform) else {
        return next.run(request).await;
    };
    let decision = platform.limits.admit(kind, &request::client(&request)).await;
    let mut response = match decision.allowed {
        true => next.run(request).await,
        false => {
            let Decision { limit, reset_s, .. } = decision;
            let kind = kind.as_str();
            let what = format!("at most {limit} calls of the kind `{kind}` in a minute");
            let retry_after_s = Some(reset_s.max(1));
            Problem { retry_after_s, ..Problem::new(Code::RateLimited, what) }.into_response()
        }
    };
    let headers = response.headers_mut();
    headers.insert(LIMIT, decision.limit.into());
    headers.insert(REMAINING, decision.remaining.into());
    headers.insert(RESET, decision.reset_s.into());
    response
}

/// Carries out a request with an `Idempotency-Key` once, and answers repetitions with what was
/// answered then.
pub(super) async fn once(
    console: ConsoleState,
    address: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    let may_repeat = matches!(*request.method(), Method::POST | Method::PUT);
    let (Some(key), Some(platform), true) =
        (request.headers().get(IDEMPOTENCY_KEY), &console.platform, may_repeat)
    else {
        return next.run(request).await;
    };
    let Some(key) = key.to_str().ok().map(str::to_owned) else {
        return Problem::invalid("Idempotency-Key", "must be plain text").into_response();
    };
    let (head, body) = request.into_parts();
    // It is in memory already: `request::collect` has read it.
    let body = body.collect().await.map(|it| it.to_bytes()).unwrap_or_default();
    let call = head.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    // An address that cannot be read is refused by the call itself.
    let address = address.iter().flatten();
    let students = students_in(call, address, &body);
    let repeatable = RepeatableRequest {
        client: KEYS_OWNER.to_owned(),
        key,
        request: spelled(&head.method, head.uri.path(), &head.headers, &body),
        students,
    };
    let ticket = match platform.idempotency.begin(&repeatable).await {
        Ok(BeginOutcome::New(ticket)) => ticket,
        Ok(BeginOutcome::Replay(kept)) => return replayed(kept),
        Ok(BeginOutcome::InFlight) => {
            let what = "the first request with this key is still being carried out";
            let problem = Problem {
                field: Some("Idempotency-Key".into()),
                retry_after_s: Some(1),
                ..Problem::new(Code::InFlight, what)
            };
            return problem.into_response();
        }
        Ok(BeginOutcome::Mismatch) => {
            let what = "this key was used for another request: use a new one";
            let field = Some("Idempotency-Key".into());
            return Problem { field, ..Problem::new(Code::KeyReused, what) }.into_response();
        }
        Err(error) => return Problem::from(error).into_response(),
    };
    let mut request = Request::from_parts(head, Body::from(body));
    request.extensions_mut().insert(IdempotencyKey(Some(ticket.name().to_owned())));
    let platform = Arc::clone(platform);
    // A client that goes away must not leave it half done: a repeated request would have to wait.
    let work = request::in_same_request(async move {
        let mut answering = std::pin::pin!(next.run(request));
        let response = loop {
            match tokio::time::timeout(RENEWED, &mut answering).await {
                Ok(response) => break response,
                // Whether or not it could be said, the work goes on.
                Err(_) => drop(platform.idempotency.renew(&ticket).await),
            }
        };
        if response.status().is_server_error() {
            // It may have been carried out all the same.
            let _ = platform.idempotency.release(&ticket).await;
            return response;
        }
        if !response.status().is_success() {
            let _ = platform.idempotency.abandon(&ticket).await;
            return response;
        }
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.map(|it| it.to_bytes()).unwrap_or_default();
        let said = |name: &HeaderName| {
            let value = head.headers.get(name)?.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        };
        let kept = StoredResponse {
            status: head.status.as_u16(),
            headers: KEPT_HEADERS.iter().filter_map(said).collect(),
            body: String::from_utf8_lossy(&bytes).into_owned(),
        };
        // If it cannot be kept, a repetition is carried out after a while, and finds what was made.
        let _ = platform.idempotency.finish(&ticket, &kept).await;
        Response::from_parts(head, Body::from(bytes))
    });
    match tokio::spawn(work).await {
        Ok(response) => response,
        Err(_) => Problem::new(Code::Internal, "the call ended in the middle").into_response(),
    }
}

fn replayed(kept: StoredResponse) -> Response {
    let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    let mut response = (status, kept.body.clone()).into_response();
    let headers = response.headers_mut();
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    for name in KEPT_HEADERS {
        let value = kept.headers.get(name.as_str()).and_then(|it| HeaderValue::from_str(it).ok());
        value.map(|value| headers.insert(name, value));
    }
    match kept.body.is_empty() {
        true => headers.remove(header::CONTENT_TYPE),
        false => headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
    };
    response
}

/// Everything that makes a request this one and no other.
fn spelled(method: &Method, path: &str, headers: &HeaderMap, body: &Bytes) -> Vec<u8> {
    let mut spelled = format!("{method} {path}\n").into_bytes();
    for name in [header::IF_MATCH, header::IF_NONE_MATCH] {
        if let Some(value) = headers.get(&name) {
            spelled.extend_from_slice(name.as_str().as_bytes());
            spelled.extend_from_slice(value.as_bytes());
            spelled.push(b'\n');
        }
    }
    spelled.extend_from_slice(body);
    spelled
}

/// Learners whom the answer may be about: it is erased with them.
fn students_in<'a>(
    call: &str,
    address: impl Iterator<Item = (&'a str, &'a str)>,
    body: &[u8],
) -> Vec<String> {
    let mut found = Vec::new();
    // A client within its limit again was not logged before.
    if !call.ends_with("/admit") {
        let named = address.filter(|(name, _)| *name == "student_id");
        found.extend(named.map(|(_, id)| id.to_owned()));
    }
    if let Ok(value) = serde_json::from_slice::<Value>(body) {
        named_in(&value, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    found.retain(|id| kstone_base::field::check_id("student_id", id).is_ok());
    found
}

fn named_in(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| named_in(value, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("student_id", Value::String(id)) => found.push(id.clone()),
                    ("student_ids", Value::Array(ids)) => {
                        found.extend(ids.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    (_, value) => named_in(value, found),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_as_what_they_cost() {
        let kind = |method: Method, path: &str| kind_of(&method, &format!("{PREFIX}{path}"));
        assert_eq!(kind(Method::POST, "/events"), Some(LimitKind::Ingest));
        assert_eq!(kind(Method::POST, "/batches"), Some(LimitKind::Batch));
        assert_eq!(kind(Method::GET, "/batches/{batch_id}"), Some(LimitKind::Query));
        let prediction = "/students/{student_id}/prediction";
        assert_eq!(kind(Method::GET, prediction), Some(LimitKind::Predict));
        let mastery = "/students/{student_id}/mastery";
        assert_eq!(kind(Method::GET, mastery), Some(LimitKind::Query));
        assert_eq!(kind(Method::PUT, mastery), Some(LimitKind::Calculate));
        assert_eq!(kind(Method::GET, "/health"), None);
    }

    #[test]
    fn learners_are_found_in_the_path_and_in_the_body() {
        let body = br#"[{"student_id":"s2"},{"x":{"student_ids":["s3","s2"]}}]"#;
        let found = |call: &str, address: &[(&str, &str)], body: &[u8]| {
            students_in(call, address.iter().copied(), body)
        };
        let s1 = [("student_id", "s1")];
        assert_eq!(found("/students/{student_id}/rebuild", &s1, body), ["s1", "s2", "s3"]);
        assert_eq!(found("/students/{student_id}/admit", &s1, b""), Vec::<String>::new());
        let member = [("school_id", "students"), ("class_id", "members"), ("student_id", "s9")];
        assert_eq!(found("/members/{student_id}", &member, b""), ["s9"]);
        assert_eq!(found("/batches", &[], b"nonsense"), Vec::<String>::new());
    }
}
