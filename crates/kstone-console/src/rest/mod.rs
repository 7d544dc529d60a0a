//! The REST API under `/api/v1`: JSON in and out, one file for each resource.
//!
//! | module | what it is |
//! |---|---|
//! | `problem` | errors that name the field |
//! | `extract` | bodies, parameters and addresses as types |
//! | `openapi` | the description, generated from the code, and a page that shows it |
//! | the others | a resource each |

mod extract;
mod health;
mod keyspaces;
mod openapi;
mod people;
mod problem;

use std::sync::Arc;

use axum::http::Uri;
use axum::response::{IntoResponse as _, Response};
use axum::{Router, http::Method};
use utoipa_axum::router::OpenApiRouter;

use crate::console::Console;

pub use problem::{Code, ErrorBody, Problem};

/// Where the API begins.
const PREFIX: &str = "/api/v1";

/// What a call comes to.
type Result<T, E = Problem> = std::result::Result<T, E>;

/// The API.
pub fn router(console: Arc<Console>) -> Router {
    let (api, document) = described().split_for_parts();
    let described = openapi::router(openapi::finished(document));
    let api = api
        .merge(described)
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_so)
        .with_state(console);
    Router::new().nest(PREFIX, api)
}

/// Every call with its description.
fn described() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::with_openapi(openapi::preface())
        .merge(health::calls())
        .merge(keyspaces::calls())
        .merge(people::calls())
}

async fn nothing_here(uri: Uri) -> Response {
    let what = format!("there is nothing at {PREFIX}{}: {PREFIX}/docs lists the calls", uri.path());
    Problem::new(Code::NotFound, what).into_response()
}

async fn not_so(method: Method) -> Response {
    Problem::new(Code::MethodNotAllowed, format!("{method} is not possible here")).into_response()
}
