//! Carries out one gRPC call with one request message and one response message.

use std::future::Future;
use std::pin::Pin;

use ::http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use kstone_door::body::{BodyError, BodyLimits};
use prost::Message;
use tonic::Status;
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic_prost::ProstCodec;

/// The header before each message: a flag for compression, and the length.
const FRAME_BYTES: usize = 5;

/// Reads the request message, hands it to `work`, and responds with its result.
pub(super) async fn unary<M, R, W, F>(
    request: Request<Incoming>,
    bodies: &BodyLimits,
    work: W,
) -> Response<Body>
where
    M: Message + Default + Send + 'static,
    R: Message + Send + 'static,
    W: Fn(M) -> F + Send + 'static,
    F: Future<Output = Result<R, Status>> + Send + 'static,
{
    let (head, body) = request.into_parts();
    let bytes_max = bodies.bytes_max();
    let framed = bodies.with_bytes_max(bytes_max.saturating_add(FRAME_BYTES));
    let held = match framed.collect_announced(body, framed_length).await {
        Ok(held) => held,
        Err(error) => return refused(error, bytes_max).into_http(),
    };
    let codec = ProstCodec::<R, M>::default();
    let request = Request::from_parts(head, Full::new(held.bytes));
    let mut call = Grpc::new(codec).max_decoding_message_size(bytes_max);
    call.unary(Call(work), request).await
}

/// How long a message with its header is, by the header.
fn framed_length(begun: &[u8]) -> Option<usize> {
    let (_, rest) = begun.split_first()?;
    let length = u32::from_be_bytes(*rest.first_chunk()?);
    usize::try_from(length).ok()?.checked_add(FRAME_BYTES)
}

fn refused(error: BodyError, bytes_max: usize) -> Status {
    match error {
        BodyError::TooLarge { .. } => {
            Status::resource_exhausted(format!("a request may have at most {bytes_max} bytes"))
        }
        BodyError::TooSlow => Status::deadline_exceeded("the message took too long to arrive"),
        BodyError::OutOfMemory => Status::unavailable(error.to_string()),
        BodyError::Broken(error) => {
            Status::cancelled(format!("the message ended too early: {error}"))
        }
    }
}

/// A function as a tonic service with one method.
struct Call<W>(W);

impl<M, R, W, F> UnaryService<M> for Call<W>
where
    M: Message,
    R: Message,
    W: Fn(M) -> F,
    F: Future<Output = Result<R, Status>> + Send + 'static,
{
    type Response = R;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<R>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<M>) -> Self::Future {
        let work = (self.0)(request.into_inner());
        Box::pin(async move { work.await.map(tonic::Response::new) })
    }
}
