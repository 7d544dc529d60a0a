//! The server: reads requests and sends answers on connections that [`kstone_door`] accepts. Its own
//! HTTP/1.1, on `httparse`: `docs/decisions/0008-http.md` says why.
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
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod handler;
mod head;
mod response;
mod socket;
mod status;

pub(crate) use head::{Head, Headers};
pub(crate) use status::Status;

use std::future::Future;
use std::sync::Arc;

use kstone::Database;
use kstone_door::DoorFrame;
use tokio::net::TcpListener;

use crate::DoorOptions;
use handler::Handler;

/// Serves the database at a socket until `shutdown` completes; then finishes the requests that are
/// under way, for as long as the options allow.
pub async fn serve(
    listener: TcpListener,
    database: Database,
    options: DoorOptions,
    shutdown: impl Future<Output = ()>,
) {
    let frame = DoorFrame::new(options.limits, Arc::clone(&options.meter));
    let door = Arc::new(Handler::new(database, options));
    let connection =
        move |stream, _, closing| connection::serve(stream, Arc::clone(&door), closing);
    frame.serve(listener, connection, shutdown).await;
}
