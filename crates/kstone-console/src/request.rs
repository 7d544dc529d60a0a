//! Middleware for every request: an id, the actor, a body within limits, and safe headers in the answer.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kstone_base::field::check_id;
use kstone_door::body::{BodyError, BodyLimits};

use crate::admission;
use crate::console::ConsoleState;
use crate::rest::{Code, Problem};

/// The header in which a request's id comes and goes.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// No id of a client is longer.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// The header in which a client names the actor.
const ACTOR: HeaderName = HeaderName::from_static("x-actor");

tokio::task_local! {
    /// The request that is being answered.
    static CONTEXT: RequestContext;
}

/// The context of a request, for everything that works on it.
#[derive(Debug, Clone, Default)]
struct RequestContext {
    id: String,
    actor: Actor,
}

/// Who asks, as far as that is known: there is one token for all who have it, so a name is what the
/// client says and nobody checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Actor {
    /// Where it came in: `rest` or `console`.
    pub door: &'static str,
    /// The name that came with it: in `X-Actor`, or typed where a browser asks for the token.
    pub name: Option<String>,
}

/// The id of the request that is being answered.
pub(crate) fn id() -> String {
    CONTEXT.try_with(|it| it.id.clone()).unwrap_or_default()
}

/// Who sent the request that is being answered.
pub(crate) fn actor() -> Actor {
    CONTEXT.try_with(|it| it.actor.clone()).unwrap_or_default()
}

/// Work for the same request, wherever it is done.
pub(crate) fn in_same_request<W: Future>(work: W) -> impl Future<Output = W::Output> {
    CONTEXT.scope(CONTEXT.try_with(Clone::clone).unwrap_or_default(), work)
}

/// Where a request comes from, as far as a client can be told from another: of IPv6 it has a whole
/// network of addresses.
pub(crate) fn client(request: &Request) -> String {
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>();
    match from.map(|ConnectInfo(at)| at.ip().to_canonical()) {
        Some(IpAddr::V6(at)) => Ipv6Addr::from_bits(at.to_bits() >> 64 << 64).to_string(),
        Some(at) => at.to_string(),
        None => "unknown".to_owned(),
    }
}

/// Gives the request its id, and the answer its headers.
pub(crate) async fn identify(console: ConsoleState, request: Request, next: Next) -> Response {
    let id = client_request_id(request.headers()).unwrap_or_else(|| console.next_request_id());
    let is_api = request.uri().path().starts_with("/api/");
    let door = if is_api { "rest" } else { "console" };
    let name_or_problem = actor_name(request.headers());
    let name = name_or_problem.as_ref().ok().cloned().flatten();
    let context = RequestContext { id: id.clone(), actor: Actor { door, name } };
    CONTEXT
        .scope(context, async move {
            let mut response = match name_or_problem {
                Ok(_) => next.run(request).await,
                Err(problem) => problem.into_response(),
            };
            let headers = response.headers_mut();
            if let Ok(id) = HeaderValue::from_str(&id) {
                headers.insert(REQUEST_ID, id);
            }
            let mut safe = |name: HeaderName, value: &'static str| {
                headers.entry(name).or_insert(HeaderValue::from_static(value));
            };
            safe(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
            safe(header::REFERRER_POLICY, "no-referrer");
            safe(header::X_FRAME_OPTIONS, "DENY");
            safe(header::CONTENT_SECURITY_POLICY, POLICY);
            if is_api {
                safe(header::CACHE_CONTROL, "no-store");
            }
            response
        })
        .await
}

/// What a page may load and run: what this server has in files of its own.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The id that the client gave, if it can be one.
fn client_request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    let is_id = (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_plain);
    is_id.then(|| id.to_owned())
}

/// The name of the actor that the request gives, if any.
fn actor_name(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    if let Some(value) = headers.get(ACTOR) {
        // Who is to be in the audit log must not be left out of it by a slip.
        let name = value.to_str().unwrap_or_default();
        check_id("X-Actor", name).map_err(Problem::from_invalid)?;
        return Ok(Some(name.to_owned()));
    }
    // Anything can be typed there: what could be a name counts as one.
    let user = admission::user(headers).filter(|user| check_id("user", user).is_ok());
    Ok(user)
}

/// Reads the whole body, within the limits, so that nothing after this waits for a client.
pub(crate) async fn collect(
    State(bodies): State<BodyLimits>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let held = match bodies.collect(body).await {
        Ok(held) => held,
        Err(error) => {
            let code = match error {
                BodyError::TooLarge { .. } => Code::BodyTooLarge,
                BodyError::TooSlow => Code::TooSlow,
                BodyError::OutOfMemory => Code::Unavailable,
                BodyError::Broken(_) => Code::BadBody,
            };
            return closing(Problem::new(code, error.to_string()));
        }
    };
    let response = next.run(Request::from_parts(head, Body::from(held.bytes))).await;
    // What was made of the body took memory until here.
    drop(held.memory);
    response
}

/// The rest of the body is not read, so the connection cannot be used again.
fn closing(problem: Problem) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
