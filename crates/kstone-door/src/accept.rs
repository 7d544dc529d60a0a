//! The accept loop that every door shares: connection slots, handshakes with a deadline, and an
//! orderly shutdown.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kstone_core::meter::Meter;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::Limits;

/// How long to wait before accepting again after an error: out of files, most likely, so that other
/// connections have to be closed first.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// A socket that connections arrive at.
pub trait Listener: Send {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// The address that it comes from.
    type Peer: Clone + Send + Sync + 'static;

    /// The next connection.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, Self::Peer)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    type Peer = SocketAddr;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        // Answers are written whole, so there is nothing for Nagle's algorithm to wait for.
        let _ = stream.set_nodelay(true);
        Ok((stream, peer))
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;
    type Peer = ();

    async fn accept(&self) -> io::Result<(UnixStream, ())> {
        Ok((UnixListener::accept(self).await?.0, ()))
    }
}

/// What happens on a connection before the door's own protocol begins. TLS goes here.
pub trait Handshake<S>: Send + Sync + 'static {
    /// The stream that the door then reads and writes.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Agrees with the client. Runs in the connection's own task, within
    /// [`Limits::handshake_timeout`].
    fn shake(&self, stream: S) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// No handshake: the protocol begins with the first byte.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHandshake;

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Handshake<S> for NoHandshake {
    type Stream = S;

    async fn shake(&self, stream: S) -> io::Result<S> {
        Ok(stream)
    }
}

/// Tells a connection that its door is being closed.
#[derive(Debug, Clone)]
pub struct Closing {
    receiver: watch::Receiver<bool>,
}

impl Closing {
    /// Completes when the door is being closed.
    pub async fn requested(&mut self) {
        if self.receiver.wait_for(|is_closing| *is_closing).await.is_err() {
            // There is no door that could be closed.
            std::future::pending().await
        }
    }

    /// Whether the door is being closed.
    pub fn is_requested(&self) -> bool {
        *self.receiver.borrow()
    }

    /// For a connection without a door.
    pub fn never() -> Closing {
        Closing { receiver: watch::channel(false).1 }
    }
}

/// Accepts the connections of one door.
#[derive(Debug)]
pub struct DoorFrame<H = NoHandshake> {
    pub(crate) limits: Limits,
    pub(crate) meter: Arc<Meter>,
    handshake: Arc<H>,
}

impl DoorFrame {
    /// A frame without a handshake.
    pub fn new(limits: Limits, meter: Arc<Meter>) -> DoorFrame {
        DoorFrame { limits, meter, handshake: Arc::new(NoHandshake) }
    }
}

impl<H> DoorFrame<H> {
    /// The same frame with this handshake on each connection.
    pub fn with_handshake<T>(self, handshake: T) -> DoorFrame<T> {
        DoorFrame { limits: self.limits, meter: self.meter, handshake: Arc::new(handshake) }
    }

    /// Runs `connection` for each client until `shutdown` completes. Then connections are told to
    /// close, and waited for as long as the limits allow.
    pub async fn serve<L, C, F>(
        self,
        listener: L,
        connection: C,
        shutdown: impl Future<Output = ()>,
    ) where
        L: Listener,
        H: Handshake<L::Stream>,
        C: Fn(H::Stream, L::Peer, Closing) -> F + Clone + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        let Limits { connections_max, handshake_timeout, shutdown_timeout, .. } = self.limits;
        let slots = Arc::new(Semaphore::new(connections_max));
        let (close, receiver) = watch::channel(false);
        let closing = Closing { receiver };
        tokio::pin!(shutdown);
        loop {
            // Without a slot, the connection waits in the kernel's queue.
            let accepted = async {
                let slot = Arc::clone(&slots).acquire_owned().await;
                (listener.accept().await, slot)
            };
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = accepted => accepted,
            };
            let (Ok((stream, peer)), Ok(slot)) = accepted else {
                tokio::time::sleep(ACCEPT_RETRY).await;
                continue;
            };
            let counted = self.meter.connect();
            let (handshake, connection) = (Arc::clone(&self.handshake), connection.clone());
            let closing = closing.clone();
            tokio::spawn(async move {
                // A client that breaks off in the middle is its own business.
                if let Ok(Ok(stream)) = timeout(handshake_timeout, handshake.shake(stream)).await {
                    connection(stream, peer, closing).await;
                }
                drop((counted, slot));
            });
        }
        drop(listener);
        let _ = close.send(true);
        // All slots are free again when all connections have ended.
        let all = u32::try_from(connections_max).unwrap_or(u32::MAX);
        let _ = timeout(shutdown_timeout, slots.acquire_many(all)).await;
    }
}
