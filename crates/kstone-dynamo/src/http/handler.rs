//! Handles one request: authentication, dispatch, response. Independent of connections.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use kstone::Database;
use kstone_core::env::{Clock, Random as _, SeededRandom, SystemRandom};
use kstone_core::meter::Meter;

use super::body::{self, Held, Packing, Unread};
use super::head::{Framing, Head, Headers, slots};
use super::response::{self, HttpResponse};
use super::status::Status;
use crate::DoorOptions;
use crate::auth::{self, Authority};
use crate::error::Fault;
use crate::operations::{self, Context, Operation};
use crate::wire::JsonWriter;

/// What all connections share.
pub(super) struct Handler {
    context: Context,
    authority: Authority,
    pub(super) ids: SeededRandom,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) meter: Arc<Meter>,
    pub(super) read_timeout: Duration,
    pub(super) memory: body::BodyMemory,
    greeting: String,
    /// Tells this database from every other, also to who may not ask anything else.
    id: String,
}

/// What a head asks for, if it may.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    operation: Operation,
    content_type: &'static str,
    pub(super) packing: Packing,
    /// Whether the client unpacks answers.
    may_pack: bool,
}

impl Handler {
    pub(super) fn new(database: Database, options: DoorOptions) -> Self {
        Handler {
            greeting: format!("healthy: dynamodb.{}.amazonaws.com ", options.region),
            id: hex::encode(database.engine().id()),
            context: Context::new(database, options.region),
            authority: Authority::new(options.keys, Arc::clone(&options.clock)),
            ids: SeededRandom::new(SystemRandom.next_u64()),
            clock: options.clock,
            meter: options.meter,
            read_timeout: options.limits.read_timeout,
            memory: body::BodyMemory::new(options.limits.read_timeout),
        }
    }

    /// What the head alone says about a request: which operation is asked for, by one who can be
    /// one who may; else the answer, for which the body does not matter.
    pub(super) fn admit(&self, head: &Head<'_>) -> Result<Call, HttpResponse> {
        if head.method == "GET" {
            return Err(self.answer_get(head.path));
        }
        let content_type = content_type(head.content_type, head.framing == Framing::Length(0));
        let (Some(content_type), "POST", "/") = (content_type, head.method, head.path) else {
            return Err(HttpResponse::not_found());
        };
        let refuse = |fault: Fault| HttpResponse::fault(&fault, content_type);
        let operation = head.target.and_then(Operation::from_target);
        let operation = operation.ok_or_else(|| refuse(Fault::unknown_operation()))?;
        if self.authority.is_required() {
            self.authority.read_claim(&auth::Head::of(head)).map_err(refuse)?;
        }
        Ok(Call {
            operation,
            content_type,
            packing: Packing::of(head.content_encoding),
            may_pack: head.accept_encoding.is_some_and(response::accepts_gzip),
        })
    }

    /// The answer to a request with a body that is not large.
    pub(super) async fn answer_small(&self, call: Call, head: &[u8], body: &[u8]) -> HttpResponse {
        let _timed = self.meter.begin();
        let answered = self.run_small(call, head, body).await;
        self.answer_with(call, answered).await
    }

    async fn run_small(&self, call: Call, head: &[u8], body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let context = self.look_again(call, head, body)?;
        let body = unpacked(call.packing, body)?;
        Ok(operations::run(call.operation, &body, &context).await?)
    }

    /// The answer to a request with a large body. Everything that is done with it is done beside
    /// the executor, and its memory is given back when it is done, even if the client
    /// does not wait for that.
    pub(super) async fn answer_large(
        self: &Arc<Self>,
        call: Call,
        head: &[u8],
        body: Held,
    ) -> HttpResponse {
        let _timed = self.meter.begin();
        let (door, head) = (Arc::clone(self), head.to_vec());
        let work = move || {
            let Held { bytes, arriving, parsed } = body;
            let context = door.look_again(call, &head, &bytes)?;
            let text = unpacked(call.packing, &bytes)?;
            let begun = operations::begin(call.operation, &text, &context);
            // The memory is given back last.
            drop(text);
            drop(bytes);
            drop((arriving, parsed));
            Ok::<_, Refusal>(begun?)
        };
        let answered = async { Ok(operations::run_blocking(work).await??.finish().await?) };
        let answered = answered.await;
        self.answer_with(call, answered).await
    }

    /// What of the head matters once the body is there: the signature over both, and where the
    /// client thinks that it is. Few requests need it, so it is read again for them, and not kept.
    fn look_again(&self, call: Call, head: &[u8], body: &[u8]) -> Result<Cow<'_, Context>, Fault> {
        let names_host = call.operation == Operation::DescribeEndpoints;
        if !self.authority.is_required() && !names_host {
            return Ok(Cow::Borrowed(&self.context));
        }
        let mut slots = slots();
        // It was one before.
        let head = Head::read(head, &mut slots).ok().flatten().ok_or_else(Fault::malformed)?;
        let signed = auth::Head::of(&head);
        if let Some(claim) = self.authority.read_claim(&signed)? {
            self.authority.check(&claim, &signed, body)?;
        }
        Ok(match Headers::text(head.headers, "host") {
            Some(host) if names_host => Cow::Owned(self.context.seen_at(host)),
            _ => Cow::Borrowed(&self.context),
        })
    }

    async fn answer_with(&self, call: Call, answered: Result<Vec<u8>, Refusal>) -> HttpResponse {
        match answered {
            Ok(body) if call.may_pack => HttpResponse::packed(body, call.content_type).await,
            Ok(body) => HttpResponse::json(Status::Ok, body, call.content_type),
            Err(Refusal::Fault(fault)) => HttpResponse::fault(&fault, call.content_type),
            Err(Refusal::Unread(unread)) => self.refuse(unread, call),
        }
    }

    /// The answer to a body that was not read.
    pub(super) fn refuse(&self, unread: Unread, call: Call) -> HttpResponse {
        let status = match unread {
            Unread::TooLarge => Status::PayloadTooLarge,
            Unread::TooSlow => Status::RequestTimeout,
            Unread::Broken => Status::BadRequest,
            Unread::OutOfMemory => {
                let fault = Fault::unavailable("Too many large requests at a time; try again.");
                return HttpResponse::fault(&fault, call.content_type);
            }
        };
        HttpResponse::text(status, "").closing()
    }

    fn answer_get(&self, path: &str) -> HttpResponse {
        match path {
            "/" => HttpResponse::text(Status::Ok, &self.greeting),
            "/healthz" => {
                let (status, body) = self.health();
                HttpResponse::json(status, body, response::JSON)
            }
            _ => HttpResponse::not_found(),
        }
    }

    /// Whether the database is of use: not if it refuses every write.
    fn health(&self) -> (Status, Vec<u8>) {
        let refused = self.context.check_writable().err();
        let mut out = JsonWriter::with_capacity(128);
        out.object(|out| {
            out.text_member("status", if refused.is_some() { "failed" } else { "ok" });
            out.text_member("id", &self.id);
            if let Some(reason) = &refused {
                out.text_member("reason", &reason.to_string());
            }
        });
        let status = match refused {
            Some(_) => Status::ServiceUnavailable,
            None => Status::Ok,
        };
        (status, out.finish().unwrap_or_default())
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
fn content_type(given: Option<&[u8]>, body_is_empty: bool) -> Option<&'static str> {
    let given = given.unwrap_or_default();
    let end = given.iter().position(|byte| *byte == b';').unwrap_or(given.len());
    match given.get(..end).unwrap_or_default().trim_ascii() {
        b"application/x-amz-json-1.0" => Some(response::JSON_1_0),
        b"application/json" => Some(response::JSON),
        _ if body_is_empty => Some(response::JSON),
        _ => None,
    }
}

/// The body, unpacked if it is packed.
fn unpacked(packing: Packing, body: &[u8]) -> Result<Cow<'_, [u8]>, Refusal> {
    let unpacked = match packing {
        Packing::Plain => return Ok(Cow::Borrowed(body)),
        Packing::Gzip => body::unpack(body),
        Packing::Unknown => Err(Unread::Broken),
    };
    unpacked.map(Cow::Owned).map_err(|unread| match unread {
        Unread::TooLarge => Refusal::Unread(unread),
        // The request came whole; what is in it makes no sense.
        _ => Refusal::Fault(Fault::malformed()),
    })
}
