//! Many learners at once, with progress.

use std::sync::Arc;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use kstone_mastery::domain::BatchStatus;
use kstone_mastery::engine::BatchRequest;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::console::{Console, ConsoleState};
use crate::rest::Result;
use crate::rest::extract::{Address, Body, IdempotencyKey};
use crate::rest::problem::Problem;

/// Learners of a batch, at most.
const REQUESTS_MAX: usize = 1000;

/// What is to be written of many learners.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct BatchBody {
    /// One for each learner, at most 1000.
    #[schema(min_items = 1, max_items = 1000)]
    requests: Vec<BatchRequest>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new().routes(routes!(start)).routes(routes!(status))
}

/// Says how far up to a thousand learners are; it is done in the background
#[utoipa::path(post, path = "/batches", tag = "mastery", request_body = BatchBody,
    responses((status = ACCEPTED, body = BatchStatus, description = "It has begun; `Location` is where to look",
        headers(("Location" = String, description = "Where to see how far it is")))))]
async fn start(
    console: ConsoleState,
    IdempotencyKey(name): IdempotencyKey,
    Body(body): Body<BatchBody>,
) -> Result<Response> {
    if !(1..=REQUESTS_MAX).contains(&body.requests.len()) {
        let what = format!("must be 1 to {REQUESTS_MAX} learners");
        return Err(Problem::invalid("requests", what));
    }
    let engine = &console.platform()?.mastery;
    let status = match name {
        Some(name) => engine.start_batch_once(&name, &body.requests).await?,
        None => engine.start_batch(&body.requests).await?,
    };
    console.note("batch", None, Some(&status.batch_id)).await;
    let location = format!("{}/batches/{}", crate::rest::PREFIX, status.batch_id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(status)).into_response())
}

/// How far a batch is
#[utoipa::path(get, path = "/batches/{batch_id}", tag = "mastery",
    responses((status = OK, body = BatchStatus)))]
async fn status(console: ConsoleState, batch_id: Address<String>) -> Result<Json<BatchStatus>> {
    Ok(Json(console.platform()?.mastery.batch_status(&batch_id).await?))
}
