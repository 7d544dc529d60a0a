//! HTTP/1.1 and HTTP/2 connections by hyper, with deadlines for idle and slow clients.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
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
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

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
/// How much of an answer is kept for an HTTP/2 client that does not read yet.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
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
        let (answer, mut underway) = (answer(request), activity.begin());
        let meter = Arc::clone(&meter);
        async move {
            let timed = meter.begin();
            let response = answer.await;
            drop(timed);
            // A stream of events may rightly never end, and says no length.
            if let Some(bytes) = response.body().size_hint().exact() {
                underway.answer(bytes);
            }
            Ok::<_, Infallible>(response.map(|body| AnswerBody { body, _underway: underway }))
        }
    });
    let stream = StallGuard::new(stream, limits.read_timeout);
    let watched = |stream| TokioIo::new(WatchedStream { stream, activity: Arc::clone(&activity) });
    match version {
        HttpVersion::Http1 => {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.read_timeout)
                .serve_connection(watched(stream), service);
            drive(connection, &activity, closing).await;
        }
        HttpVersion::Http2 => {
            let stream = stream.with_first_bytes(PREFACE_BYTES, limits.handshake_timeout);
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(STREAMS_MAX)
                .max_send_buf_size(SEND_BUFFER_BYTES)
                .serve_connection(watched(stream), service);
            drive(connection, &activity, closing).await;
        }
    }
}

/// Runs a connection until it ends by itself, its client is too slow, or the door is closed and all
/// its requests are answered.
async fn drive(connection: impl GracefulConnection, activity: &Activity, mut closing: Closing) {
    let mut connection = pin!(connection);
    tokio::select! {
        // A client that breaks off in the middle is its own business.
        _ = connection.as_mut() => return,
        () = closing.requested() => {}
        expiry = activity.expired() => if expiry == Expiry::Unread { return },
    }
    connection.as_mut().graceful_shutdown();
    activity.shorten_idle(LINGER);
    tokio::select! {
        _ = connection => {}
        _ = activity.expired() => {}
    }
}

/// A stream that tells its connection when the client takes bytes.
struct WatchedStream<S> {
    stream: StallGuard<S>,
    activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> WatchedStream<S> {
    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(_)) = &written {
            self.activity.wrote();
        }
        written
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The body of an answer: its request is under way until the body is dropped.
struct AnswerBody<B> {
    body: B,
    _underway: Underway,
}

impl<B: Body<Data = Bytes> + Unpin> Body for AnswerBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
