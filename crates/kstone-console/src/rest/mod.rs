//! The REST API under `/api/v1`: JSON in and out, a folder for each system, in it a file for each
//! resource.
//!
//! | module | what it is |
//! |---|---|
//! | `problem` | errors that name the field |
//! | `extract`, `paging`, `range` | bodies, parameters, addresses, pages and days as types |
//! | `guard` | rate limits, repeated requests |
//! | `openapi` | the description, generated from the code, and a page that shows it |
//! | `mastery` | learners, events, scores, batches, schools |
//! | `people`, `keyspaces`, `work`, `health` | what all systems share |

mod extract;
mod guard;
mod health;
mod keyspaces;
mod mastery;
mod openapi;
mod paging;
mod people;
mod problem;
mod range;
mod work;

use std::sync::Arc;

use axum::extract::OriginalUri;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Router, http::Method};
use utoipa_axum::router::OpenApiRouter;

use crate::console::Console;

pub use problem::{Code, ErrorBody, ErrorDetail, Problem};

/// Where the API begins.
const PREFIX: &str = "/api/v1";

/// The result of a call.
type Result<T, E = Problem> = std::result::Result<T, E>;

/// The API.
pub fn router(console: Arc<Console>) -> Router {
    let (api, document) = described().split_for_parts();
    let described = openapi::router(openapi::finished(document));
    let api = api
        .layer(from_fn_with_state(Arc::clone(&console), guard::once))
        .layer(from_fn_with_state(Arc::clone(&console), guard::limit))
        .merge(described)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(console);
    Router::new()
        .nest(PREFIX, api)
        .route("/api", any(not_found))
        .route("/api/{*rest}", any(not_found))
}

/// Every call with its description.
fn described() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::with_openapi(openapi::preface())
        .merge(health::routes())
        .merge(keyspaces::routes())
        .merge(mastery::routes())
        .merge(people::routes())
        .merge(work::routes())
}

async fn not_found(OriginalUri(uri): OriginalUri) -> Response {
    let what = format!("there is nothing at {}: {PREFIX}/docs lists the calls", uri.path());
    Problem::new(Code::NotFound, what).into_response()
}

async fn method_not_allowed(method: Method) -> Response {
    Problem::new(Code::MethodNotAllowed, format!("{method} is not possible here")).into_response()
}
