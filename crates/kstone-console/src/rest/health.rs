//! The health check.

use std::sync::Arc;

use axum::Json;
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::console::{Console, ConsoleState};

/// The answer of the health check: that the server is there, and what it has.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
    /// The server's version.
    version: &'static str,
    /// Whether a keyspace is in force.
    keyspace: bool,
    /// Whether the learning platform is on.
    platform: bool,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new().routes(routes!(health))
}

/// Whether the server is there; the only call that needs no token
#[utoipa::path(get, path = "/health", tag = "server", responses((status = OK, body = Health)))]
async fn health(console: ConsoleState) -> Json<Health> {
    Json(Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
        keyspace: console.governor.is_some(),
        platform: console.platform.is_some(),
    })
}
