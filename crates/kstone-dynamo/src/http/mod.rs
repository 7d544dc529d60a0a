//! The server: accepts connections, reads requests, sends answers. Its own HTTP/1.1, on `httparse`:
//! `docs/decisions/0008-http.md` says why.
//!
//! Everything a client can make long or slow has a limit: connections, headers, the body's length
//! and how long it takes to arrive, how much of large bodies is held at a time, and how long an
//! answer waits to be read. What the head of a request tells is checked before its body is read.
//!
//! | module | what it does |
//! |---|---|
//! | `link` | bytes in, bytes out, and their time limits |
//! | `head` | what a request's first lines say, and where it ends |
//! | `chunked` | a body that does not say how long it is |
//! | `body` | what may be held of bodies |
//! | `connection` | requests and answers in their order |
//! | `door` | from a request to its answer |
//! | `response`, `status` | the answer as bytes |

mod body;
mod chunked;
mod connection;
mod door;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod head;
mod link;
mod progress;
mod response;
mod status;

pub(crate) use head::{Head, Headers};
pub(crate) use status::Status;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kstone::Database;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::DoorOptions;
use door::Door;

/// After an error of `accept` (too many open files, say): give others time to close some.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

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
    let (connections_max, shutdown_timeout) = (options.connections_max, options.shutdown_timeout);
    let places = Arc::new(Semaphore::new(connections_max));
    let (closing, is_closing) = watch::channel(());
    let door = Arc::new(Door::new(database, options));
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
        // Answers are written whole: there is nothing to wait for.
        let _ = stream.set_nodelay(true);
        let mut is_closing = is_closing.clone();
        let closing = Box::pin(async move {
            let _ = is_closing.changed().await;
        });
        let connection = connection::serve(stream, door.clone(), closing);
        let counted = door.meter.connect();
        tokio::spawn(async move {
            connection.await;
            drop(counted);
            drop(place);
        });
    }
    drop(listener);
    door.is_closing.store(true, Ordering::Relaxed);
    // A place for each connection is free again when all of them have ended.
    let _ = closing.send(());
    let all = u32::try_from(connections_max).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(shutdown_timeout, places.acquire_many(all)).await;
    Ok(())
}
