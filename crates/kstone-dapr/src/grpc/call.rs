//! Carries out one gRPC call with one request message and one response message.

use std::future::Future;
use std::pin::Pin;

use ::http::{Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use prost::Message;
use tonic::Status;
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic_prost::ProstCodec;

use crate::door::DoorOptions;

/// The header before each message: a flag for compression, and the length.
const FRAME_BYTES: usize = 5;

/// Reads the request message, hands it to `work`, and responds with its result.
pub(super) async fn unary<M, R, W, F>(
    request: Request<Incoming>,
    options: &DoorOptions,
    work: W,
) -> Response<Body>
where
    M: Message + Default + Send + 'static,
    R: Message + Send + 'static,
    W: Fn(M) -> F + Send + 'static,
    F: Future<Output = Result<R, Status>> + Send + 'static,
{
    let (head, body) = request.into_parts();
    let bytes_max = options.body_bytes_max;
    // One deadline for the whole body, so that a client cannot hold the call open byte by byte.
    let body = Limited::new(body, bytes_max.saturating_add(FRAME_BYTES)).collect();
    let body = match tokio::time::timeout(options.read_timeout, body).await {
        Ok(Ok(body)) => Full::new(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let what = format!("a request may have at most {bytes_max} bytes");
            return Status::resource_exhausted(what).into_http();
        }
        Ok(Err(error)) => {
            return Status::cancelled(format!("the message ended too early: {error}")).into_http();
        }
        Err(_) => {
            let what = "the message took too long to arrive";
            return Status::deadline_exceeded(what).into_http();
        }
    };
    let codec = ProstCodec::<R, M>::default();
    let request = Request::from_parts(head, body);
    Grpc::new(codec).max_decoding_message_size(bytes_max).unary(Call(work), request).await
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
