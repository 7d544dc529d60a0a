//! A door on a free port that echoes bodies, and its shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
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

/// More than sockets hold.
pub const LARGE_BYTES: usize = 32 << 20;

pub struct Door {
    pub at: SocketAddr,
    close: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Door {
    /// A door that answers each request with its body; at `/long` with more than
    /// a small window, at `/large` with more than sockets hold.
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

async fn echo(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let bytes = match request.uri().path() {
        "/long" => 100 << 10,
        "/large" => LARGE_BYTES,
        _ => 0,
    };
    if bytes > 0 {
        return Response::new(Full::new(Bytes::from(vec![b'x'; bytes])));
    }
    let body = request.into_body().collect().await.map(|body| body.to_bytes());
    Response::new(Full::new(body.unwrap_or_default()))
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
