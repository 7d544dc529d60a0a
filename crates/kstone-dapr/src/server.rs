//! Connections: how many, how long, and how they end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, Response};
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::door::DoorOptions;

/// After an error of `accept` (too many open files, say): give others time to close some.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// Requests that one HTTP/2 connection has under way.
const STREAMS_MAX: u32 = 256;

/// What is spoken at a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Where connections come from.
pub(crate) trait Accept {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = TcpListener::accept(self).await?;
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

impl Accept for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Ok(UnixListener::accept(self).await?.0)
    }
}

/// Serves a socket until `shutdown` completes, and then what is under way.
pub(crate) async fn run<L, A, F, B>(
    listener: L,
    options: &DoorOptions,
    protocol: Protocol,
    answer: A,
    shutdown: impl Future<Output = ()>,
) where
    L: Accept,
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let places = Arc::new(Semaphore::new(options.connections_max));
    let graceful = GracefulShutdown::new();
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
        let (Ok(stream), Ok(place)) = accepted else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let (answer, meter) = (answer.clone(), Arc::clone(&options.meter));
        let counted = meter.connect();
        let service = service_fn(move |request| {
            let (answer, meter) = (answer(request), Arc::clone(&meter));
            async move {
                let _timed = meter.begin();
                Ok::<_, Infallible>(answer.await)
            }
        });
        let io = TokioIo::new(stream);
        match protocol {
            Protocol::Http1 => {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(options.read_timeout)
                    .serve_connection(io, service);
                let connection = graceful.watch(connection);
                tokio::spawn(async move {
                    // A client that goes away in the middle is its own business.
                    let _ = connection.await;
                    drop((counted, place));
                });
            }
            Protocol::Http2 => {
                let connection = http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .max_concurrent_streams(STREAMS_MAX)
                    .keep_alive_interval(options.read_timeout)
                    .serve_connection(io, service);
                let connection = graceful.watch(connection);
                tokio::spawn(async move {
                    let _ = connection.await;
                    drop((counted, place));
                });
            }
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(options.shutdown_timeout, graceful.shutdown()).await;
}
