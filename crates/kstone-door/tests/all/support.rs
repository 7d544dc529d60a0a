//! A door on a free port that echoes bodies, and its shutdown.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use kstone_door::body::BodyLimits;
use kstone_door::{DoorFrame, HttpVersion, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Nothing that works takes as long.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// A silent client is cut off after this.
pub const QUICK: Duration = Duration::from_millis(100);

/// Few connections, and little time for each.
pub fn strict() -> Limits {
    Limits {
        connections_max: 2,
        handshake_timeout: QUICK,
        read_timeout: QUICK,
        shutdown_timeout: PATIENCE,
    }
}

/// More than a small window takes, and what a slow client reads in two seconds.
const LONG_BYTES: usize = 100 << 10;
/// More than sockets hold.
pub const LARGE_BYTES: usize = 32 << 20;

pub struct Door {
    pub at: SocketAddr,
    close: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Door {
    /// A door that answers each request with its body; at `/long` with more than a small window
    /// takes, at `/large` with more than sockets hold, at `/length` with the body's length.
    pub async fn echo(limits: Limits, version: HttpVersion) -> Door {
        let (listener, at) = listen().await;
        let (close, closed) = oneshot::channel();
        let frame = DoorFrame::new(limits, Arc::default());
        let serving =
            tokio::spawn(frame.serve_http(listener, version, |request, _| echo(request), async {
                closed.await.unwrap_or_default()
            }));
        Door { at, close, serving }
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.at).await.unwrap()
    }

    /// Closes the door, and waits until its last request is answered.
    pub async fn close(self) {
        let _ = self.close.send(());
        timeout(PATIENCE, self.serving).await.expect("it closes").unwrap();
    }
}

pub async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// The bodies of all doors of this process.
static BODIES: LazyLock<BodyLimits> = LazyLock::new(|| BodyLimits::new(LARGE_BYTES, PATIENCE));

async fn echo(request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
    let repeat = |bytes| Full::new(Bytes::from(vec![b'x'; bytes]));
    Response::new(match request.uri().path() {
        "/long" => repeat(LONG_BYTES).boxed(),
        "/long/stream" => WithoutLength(repeat(LONG_BYTES)).boxed(),
        "/large" => repeat(LARGE_BYTES).boxed(),
        "/length" => {
            let length = BODIES.collect(request.into_body()).await.unwrap().bytes.len();
            Full::new(Bytes::from(length.to_string())).boxed()
        }
        _ => {
            let body = request.into_body().collect().await.map(|body| body.to_bytes());
            Full::new(body.unwrap_or_default()).boxed()
        }
    })
}

/// A body that does not say how long it is.
struct WithoutLength(Full<Bytes>);

impl Body for WithoutLength {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }
}

/// One HTTP/1.1 request on a connection of its own.
pub async fn post(at: SocketAddr, body: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", body.len());
    let request = format!("{head}Connection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an answer");
    read.unwrap();
    answer
}

/// Reads until the server closes the connection, and gives what it sent before.
pub async fn closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("it is closed");
    bytes
}
