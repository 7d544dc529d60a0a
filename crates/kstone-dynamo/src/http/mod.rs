//! The server: accepts connections, reads requests, sends answers. HTTP/1.1 by hyper.
//!
//! Everything a client can make long or slow has a limit: connections, headers, the body's length
//! and how long it takes to arrive, how much of large bodies is held at a time, and how long an
//! answer waits to be read. What the head of a request tells is checked before its body is read.

mod body;
mod progress;
mod response;

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use kstone::Database;
use kstone_core::env::{Random as _, SeededRandom, SystemRandom};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::DoorOptions;
use crate::auth::{self, Authority, Claim};
use crate::error::Fault;
use crate::operations::{self, Context, Operation};
use crate::wire::Out;
use body::{Held, Unread};
use progress::Progress;
use response::Answer;

/// Headers of real requests are about 1 KiB; a session token can add a few more.
const HEADER_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 100;
/// After an error of `accept` (too many open files, say): give others time to close some.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// What all connections share.
struct Door {
    context: Context,
    authority: Authority,
    ids: SeededRandom,
    read_timeout: Duration,
    memory: body::Memory,
    greeting: String,
    /// Tells this database from every other, also to who may not ask anything else.
    id: String,
}

/// Serves the database at a socket until `shutdown` completes; then finishes the requests that are
/// under way, for as long as the options allow.
///
/// # Errors
/// None that a client could cause: only if the socket itself fails.
pub async fn serve(
    listener: TcpListener,
    database: Database,
    options: DoorOptions,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(options.connections_max));
    let (closing, is_closing) = watch::channel(false);
    let door = Arc::new(Door {
        greeting: format!("healthy: dynamodb.{}.amazonaws.com ", options.region),
        id: database.engine().id().iter().map(|byte| format!("{byte:02x}")).collect(),
        context: Context::new(database, options.region),
        authority: Authority::new(options.keys, options.clock),
        ids: SeededRandom::new(SystemRandom.next_u64()),
        read_timeout: options.read_timeout,
        memory: body::Memory::new(),
    });
    tokio::pin!(shutdown);
    loop {
        // Without a place, the connection waits in the kernel's queue.
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            (listener.accept().await, place)
        };
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accepted => accepted,
        };
        let (Ok((stream, _)), Ok(place)) = accepted else {
            // Out of files, most likely: the connection stays in the kernel's queue meanwhile.
            tokio::time::sleep(ACCEPT_RETRY).await;
            continue;
        };
        let connection = serve_connection(stream, door.clone(), is_closing.clone());
        tokio::spawn(async move {
            connection.await;
            drop(place);
        });
    }
    drop(listener);
    // A place for each connection is free again when all of them have ended.
    let _ = closing.send(true);
    let all = u32::try_from(options.connections_max).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(options.shutdown_timeout, places.acquire_many(all)).await;
    Ok(())
}

async fn serve_connection(stream: TcpStream, door: Arc<Door>, mut closing: watch::Receiver<bool>) {
    // Answers are written whole: there is nothing to wait for.
    let _ = stream.set_nodelay(true);
    let read_timeout = door.read_timeout;
    let service = service_fn(move |request| {
        let door = door.clone();
        async move { Ok::<_, Infallible>(door.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(read_timeout)
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .pipeline_flush(true)
        .serve_connection(TokioIo::new(Progress::new(stream, read_timeout)), service);
    tokio::pin!(connection);
    tokio::select! {
        biased;
        // Whatever ends it, it is between this client and its connection.
        _ = &mut connection => return,
        _ = closing.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

impl Door {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        if head.method == Method::GET {
            return self.answer_get(head.uri.path());
        }
        let content_type = content_type(&head.headers, body.is_end_stream());
        let (Some(content_type), &Method::POST, "/") =
            (content_type, &head.method, head.uri.path())
        else {
            return self.refuse_unread(&head.headers, body, response::not_found(&self.ids)).await;
        };
        let answered = {
            let signed = auth::Head::of(&head);
            let (operation, claim) = match self.admit(&head.headers, &signed) {
                Ok(admitted) => admitted,
                Err(fault) => {
                    let fault = response::fault(&self.ids, &fault, content_type);
                    return self.refuse_unread(&head.headers, body, fault).await;
                }
            };
            let is_packed = head.headers.contains_key(CONTENT_ENCODING);
            match self.memory.read(body, is_packed, self.read_timeout).await {
                Ok(body) if body.is_large() => Err((operation, body)),
                Ok(body) => Ok(self.answer_small(operation, claim, &signed, body).await),
                Err(unread) => Ok(Err(Refusal::Unread(unread))),
            }
        };
        let may_pack = response::accepts_gzip(&head.headers);
        let answered = match answered {
            Ok(answered) => answered,
            Err((operation, body)) => self.answer_large(operation, head, body).await,
        };
        match answered {
            Ok(body) => response::json_packed(&self.ids, body, content_type, may_pack).await,
            Err(Refusal::Fault(fault)) => response::fault(&self.ids, &fault, content_type),
            Err(Refusal::Unread(unread)) => self.refuse(match unread {
                Unread::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
                Unread::TooSlow => StatusCode::REQUEST_TIMEOUT,
                Unread::Broken => StatusCode::BAD_REQUEST,
            }),
        }
    }

    /// Which operation is asked for, and who says to ask, if it can be one who may.
    fn admit<'a>(
        &'a self,
        headers: &HeaderMap,
        signed: &'a auth::Head<'a>,
    ) -> Result<(Operation, Option<Claim<'a>>), Fault> {
        let target = headers.get("x-amz-target").map(HeaderValue::as_bytes);
        let operation =
            target.and_then(Operation::from_target).ok_or_else(Fault::unknown_operation)?;
        Ok((operation, self.authority.read_claim(signed)?))
    }

    async fn answer_small(
        &self,
        operation: Operation,
        claim: Option<Claim<'_>>,
        signed: &auth::Head<'_>,
        body: Held,
    ) -> Result<Vec<u8>, Refusal> {
        if let Some(claim) = claim {
            self.authority.check(&claim, signed, &body.bytes)?;
        }
        let body = unpacked(signed.headers(), body.bytes)?;
        let context = self.context_for(operation, signed.headers());
        Ok(operations::run(operation, body, &context).await?)
    }

    /// Everything that is done with a large body is done beside the executor, and its place in
    /// memory is given back when it is done, even if the client does not wait for that.
    async fn answer_large(
        self: &Arc<Self>,
        operation: Operation,
        head: Parts,
        body: Held,
    ) -> Result<Vec<u8>, Refusal> {
        let door = self.clone();
        let work = move || {
            let signed = auth::Head::of(&head);
            if let Some(claim) = door.authority.read_claim(&signed)? {
                door.authority.check(&claim, &signed, &body.bytes)?;
            }
            let text = unpacked(&head.headers, body.bytes.clone())?;
            let context = door.context_for(operation, &head.headers);
            let begun = operations::begin(operation, &text, &context);
            // The place is given back last.
            drop(text);
            drop(body);
            Ok::<_, Refusal>(begun?)
        };
        Ok(operations::beside(work).await??.finish().await?)
    }

    /// What the operation works with.
    fn context_for(&self, operation: Operation, headers: &HeaderMap) -> Cow<'_, Context> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        match (operation, host) {
            (Operation::DescribeEndpoints, Some(host)) => Cow::Owned(self.context.seen_at(host)),
            _ => Cow::Borrowed(&self.context),
        }
    }

    fn answer_get(&self, path: &str) -> Answer {
        match path {
            "/" => response::text(&self.ids, StatusCode::OK, self.greeting.clone()),
            "/healthz" => {
                let (status, body) = self.health();
                response::json(&self.ids, status, body, response::JSON)
            }
            _ => response::not_found(&self.ids),
        }
    }

    /// Whether the database is of use: not if it refuses every write.
    fn health(&self) -> (StatusCode, Vec<u8>) {
        let refused = self.context.check_writable().err();
        let mut out = Out::with_capacity(128);
        out.object(|out| {
            out.text_member("status", if refused.is_some() { "failed" } else { "ok" });
            out.text_member("id", &self.id);
            if let Some(reason) = &refused {
                out.text_member("reason", &reason.to_string());
            }
        });
        let status = match refused {
            Some(_) => StatusCode::SERVICE_UNAVAILABLE,
            None => StatusCode::OK,
        };
        (status, out.finish().unwrap_or_default())
    }

    /// An answer to a body that was not read to its end.
    fn refuse(&self, status: StatusCode) -> Answer {
        response::closing(response::text(&self.ids, status, ""))
    }

    /// An answer to a request that its head is reason enough to refuse. The body is thrown away as
    /// it comes, because a client that is still sending does not read; one that asks before it
    /// sends is answered at once.
    async fn refuse_unread(
        &self,
        headers: &HeaderMap,
        mut body: Incoming,
        answer: Answer,
    ) -> Answer {
        if headers.contains_key(EXPECT) {
            return response::closing(answer);
        }
        match body::discard(&mut body, self.read_timeout).await {
            Ok(()) => answer,
            Err(_) => response::closing(answer),
        }
    }
}

/// Why there is no answer of the operation.
#[derive(Debug)]
enum Refusal {
    Fault(Fault),
    Unread(Unread),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Refusal::Fault(fault)
    }
}

/// The content type to answer with; `None` if the request has one that is not this protocol's.
fn content_type(headers: &HeaderMap, body_is_empty: bool) -> Option<HeaderValue> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    match given.split(';').next().unwrap_or("").trim() {
        "application/x-amz-json-1.0" => Some(response::JSON_1_0),
        "application/json" => Some(response::JSON),
        _ if body_is_empty => Some(response::JSON),
        _ => None,
    }
}

/// The body, unpacked if it is packed.
fn unpacked(headers: &HeaderMap, body: Bytes) -> Result<Bytes, Refusal> {
    let unpacked = match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity" | b"") => Ok(body),
        Some(coding) if coding.eq_ignore_ascii_case(b"gzip") => body::unpack(&body),
        Some(_) => Err(Unread::Broken),
    };
    unpacked.map_err(|unread| match unread {
        Unread::TooLarge => Refusal::Unread(unread),
        // The request came whole; what is in it makes no sense.
        _ => Refusal::Fault(Fault::malformed()),
    })
}
