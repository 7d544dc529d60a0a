//! HTTP/1.1 and HTTP/2 connections by hyper, with deadlines for idle and slow clients.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use kstone_core::meter::Meter;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Limits;
use crate::accept::{Closing, DoorFrame, Handshake, Listener};
use crate::activity::{Activity, Expiry, Underway};
use crate::stall_guard::StallGuard;

/// The version of HTTP that a socket speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1, and 1.0.
    Http1,
    /// HTTP/2 from its first byte, as gRPC speaks it.
    Http2,
}

/// Requests that one HTTP/2 connection may have under way.
const STREAMS_MAX: u32 = 256;
/// What an HTTP/2 client says before anything else, in bytes.
const PREFACE_BYTES: usize = 24;
/// How much of a request may be on its way before the door has begun to read it. All streams of a
/// connection together have room for that: one that waits for memory must not hold up the others.
const WINDOW_BYTES: u32 = 64 * 1024;
/// Answers are handed to hyper in pieces of this length: what hyper has, it counts as sent.
const PIECE_BYTES: usize = 64 * 1024;
/// How long an idle client is waited for after it was told that its connection ends.
const LINGER: Duration = Duration::from_secs(1);

impl<H> DoorFrame<H> {
    /// Answers HTTP requests until `shutdown` completes; then finishes those that are under way, for
    /// as long as the limits allow. Each request is measured by the door's meter.
    pub async fn serve_http<L, A, F, B>(
        self,
        listener: L,
        version: HttpVersion,
        answer: A,
        shutdown: impl Future<Output = ()>,
    ) where
        L: Listener,
        H: Handshake<L::Stream>,
        A: Fn(Request<Incoming>, L::Peer) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (limits, meter) = (self.limits, Arc::clone(&self.meter));
        let connection = move |stream, peer: L::Peer, closing| {
            let answer = answer.clone();
            let answer = move |request| answer(request, peer.clone());
            serve_connection(stream, version, limits, Arc::clone(&meter), answer, closing)
        };
        self.serve(listener, connection, shutdown).await;
    }
}

async fn serve_connection<S, A, F, B>(
    stream: S,
    version: HttpVersion,
    limits: Limits,
    meter: Arc<Meter>,
    answer: A,
    closing: Closing,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let activity = Activity::new(limits.read_timeout);
    let service = service_fn(|request| {
        let (answer, underway) = (answer(request), activity.begin());
        let meter = Arc::clone(&meter);
        async move {
            let timed = meter.begin();
            let response = answer.await;
            drop(timed);
            Ok::<_, Infallible>(response.map(|body| AnswerBody::new(body, underway)))
        }
    });
    let stream = StallGuard::new(stream, limits.read_timeout).watched_by(&activity);
    match version {
        HttpVersion::Http1 => {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.read_timeout)
                .serve_connection(TokioIo::new(stream), service);
            drive(connection, &activity, closing).await;
        }
        HttpVersion::Http2 => {
            let stream = stream.with_first_bytes(PREFACE_BYTES, limits.handshake_timeout);
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(STREAMS_MAX)
                .initial_stream_window_size(WINDOW_BYTES)
                .initial_connection_window_size(STREAMS_MAX * WINDOW_BYTES)
                .max_send_buf_size(PIECE_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            drive(connection, &activity, closing).await;
        }
    }
}

/// Runs a connection until it ends by itself, its client is too slow, or the door is closed and all
/// its requests are answered.
async fn drive(connection: impl GracefulConnection, activity: &Activity, mut closing: Closing) {
    let mut connection = pin!(connection);
    tokio::select! {
        biased;
        // A client that breaks off in the middle is its own business.
        _ = connection.as_mut() => return,
        () = closing.requested() => {}
        expiry = activity.expired() => match expiry {
            Expiry::Unread => return,
            Expiry::Idle => activity.restart_idle(LINGER),
        },
    }
    // The client is told (HTTP/2: GOAWAY), and requests under way are answered.
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        _ = connection => {}
        _ = activity.expired() => {}
    }
}

/// The body of an answer: its request is under way until the body is dropped.
struct AnswerBody<B> {
    body: B,
    /// What the body has given and hyper has not taken yet.
    rest: Bytes,
    /// Whether the length of all of it was known from the beginning. A stream of events says none,
    /// and may rightly never end: then there is a deadline for each piece.
    has_length: bool,
    underway: Underway,
}

impl<B: Body<Data = Bytes>> AnswerBody<B> {
    fn new(body: B, mut underway: Underway) -> AnswerBody<B> {
        let length = body.size_hint().exact();
        underway.await_client(length.unwrap_or_default());
        AnswerBody { body, rest: Bytes::new(), has_length: length.is_some(), underway }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for AnswerBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if !self.has_length {
            self.underway.await_nothing();
        }
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(length);
        if !self.has_length {
            self.underway.await_client(length as u64);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (of_body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower() + rest);
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
