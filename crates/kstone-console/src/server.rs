//! The router of the API and the pages, and the port that they are served on.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use hyper::body::Incoming;
use kstone_core::meter::Meter;
use kstone_door::body::BodyLimits;
use kstone_door::{DoorFrame, HttpVersion};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::console::Console;
use crate::{admission, pages, request, rest};

/// Everything that is answered: the API, the pages, and what stands before both.
pub fn router(console: &Arc<Console>) -> Router {
    let gate = admission::Gate::new(Arc::clone(console));
    let options = &console.options;
    let bodies = BodyLimits::new(options.body_bytes_max, options.limits.read_timeout);
    let layer = |router: Router| {
        router
            .layer(from_fn_with_state(bodies, request::collect))
            .layer(from_fn_with_state(gate, admission::admit))
            .layer(from_fn_with_state(Arc::clone(console), request::identify))
    };
    layer(rest::router(Arc::clone(console)).merge(pages::router(Arc::clone(console))))
}

/// Serves the console at a socket until `shutdown` completes; then finishes the requests that are
/// under way, for as long as the options allow.
pub async fn serve(
    listener: TcpListener,
    console: Arc<Console>,
    shutdown: impl Future<Output = ()>,
) {
    let router = router(&console);
    let answer = move |request, from| answer(router.clone(), request, from);
    let frame = DoorFrame::new(console.options.limits, Arc::<Meter>::default());
    frame.serve_http(listener, HttpVersion::Http1, answer, shutdown).await;
}

async fn answer(router: Router, request: hyper::Request<Incoming>, from: SocketAddr) -> Response {
    let mut request = request.map(axum::body::Body::new);
    request.extensions_mut().insert(ConnectInfo(from));
    let answered: Result<_, Infallible> = router.oneshot(request).await;
    answered.unwrap_or_else(|never| match never {})
}
