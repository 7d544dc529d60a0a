//! Connections: how many, how long, and how they end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::middleware::from_fn_with_state;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use crate::console::Console;
use crate::{admission, pages, request, rest};

/// After an error of `accept` (too many open files, say): give others time to close some.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Everything that is answered: the API, the pages, and what stands before both.
pub fn router(console: &Arc<Console>) -> Router {
    let gate = admission::Gate::new(Arc::clone(console));
    let layer = |router: Router| {
        router
            .layer(from_fn_with_state(Arc::clone(console), request::collect))
            .layer(from_fn_with_state(gate, admission::admit))
            .layer(from_fn_with_state(Arc::clone(console), request::identify))
    };
    layer(rest::router(Arc::clone(console)).merge(pages::router(Arc::clone(console))))
}

/// Serves the console at a socket until `shutdown` completes; then finishes the requests that are
/// under way, for as long as the options allow.
///
/// # Errors
/// None that a client could cause: only if the socket itself fails.
pub async fn serve(
    listener: TcpListener,
    console: Arc<Console>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let router = router(&console);
    let options = &console.options;
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
        let (Ok((stream, from)), Ok(place)) = accepted else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = service_fn(move |request| answer(router.clone(), request, from));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(options.read_timeout)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that goes away in the middle is its own business.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(options.shutdown_timeout, graceful.shutdown()).await;
    Ok(())
}

async fn answer(
    router: Router,
    request: hyper::Request<Incoming>,
    from: SocketAddr,
) -> Result<axum::response::Response, std::convert::Infallible> {
    let mut request = request.map(axum::body::Body::new);
    request.extensions_mut().insert(ConnectInfo(from));
    router.oneshot(request).await
}
