//! Background work: queues, what was given up, schedules, alerts; and the audit log.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use kstone_base::audit::AuditEntry;
use kstone_base::time::Date;
use kstone_base::work::{Alert, DeadJob, QueueDepth};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Result;
use super::extract::{Address, Params};
use super::paging::{Page, PageParams, page_asked};
use crate::console::{Console, ConsoleState};

/// All queues.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct QueueList {
    /// How much there is to do in each.
    queues: Vec<QueueDepth>,
}

/// Which day of the audit log, and which part of it.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct AuditParams {
    /// The day in UTC, such as 2026-01-14; default today
    #[param(value_type = Option<String>, format = Date)]
    date: Option<Date>,
    /// How many rows, from 1 to 1000; default 100
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before
    cursor: Option<String>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new()
        .routes(routes!(queues))
        .routes(routes!(dead))
        .routes(routes!(retry))
        .routes(routes!(forget))
        .routes(routes!(alerts))
        .routes(routes!(audit))
}

/// How much background work there is
#[utoipa::path(get, path = "/queues", tag = "work", responses((status = OK, body = QueueList)))]
async fn queues(console: ConsoleState) -> Result<Json<QueueList>> {
    Ok(Json(QueueList { queues: console.platform()?.workers.depth().await? }))
}

/// Jobs of a queue that were given up, the last first
#[utoipa::path(get, path = "/queues/{queue}/dead", tag = "work",
    params(PageParams), responses((status = OK, body = Page<DeadJob>)))]
async fn dead(
    console: ConsoleState,
    queue: Address<String>,
    Params(page): Params<PageParams>,
) -> Result<Json<Page<DeadJob>>> {
    let asked = page.asked()?;
    let queues = &console.platform()?.queues;
    let page = queues.dead_letters(&queue, asked.limit, asked.cursor.as_deref()).await?;
    Ok(Json(page.into()))
}

/// Has a job that was given up tried again
#[utoipa::path(post, path = "/queues/{queue}/dead/{job_id}/retry", tag = "work",
    responses((status = NO_CONTENT, description = "It is tried again")))]
async fn retry(
    console: ConsoleState,
    Address((queue, job_id)): Address<(String, String)>,
) -> Result<StatusCode> {
    console.platform()?.queues.retry_dead(&queue, &job_id).await?;
    console.note("retry", None, Some(&format!("job {job_id} of {queue}"))).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Forgets a job that was given up
#[utoipa::path(delete, path = "/queues/{queue}/dead/{job_id}", tag = "work",
    responses((status = NO_CONTENT, description = "It is forgotten")))]
async fn forget(
    console: ConsoleState,
    Address((queue, job_id)): Address<(String, String)>,
) -> Result<StatusCode> {
    console.platform()?.queues.drop_dead(&queue, &job_id).await?;
    console.note("drop", None, Some(&format!("job {job_id} of {queue}"))).await;
    Ok(StatusCode::NO_CONTENT)
}

/// What a person should look at, the newest first
#[utoipa::path(get, path = "/alerts", tag = "work", params(PageParams),
    responses((status = OK, body = Page<Alert>)))]
async fn alerts(
    console: ConsoleState,
    Params(page): Params<PageParams>,
) -> Result<Json<Page<Alert>>> {
    let asked = page.asked()?;
    let page = console.platform()?.alerts.recent(asked.limit, asked.cursor.as_deref()).await?;
    Ok(Json(page.into()))
}

/// Who did what on a day, the newest first
#[utoipa::path(get, path = "/audit", tag = "work", params(AuditParams),
    responses((status = OK, body = Page<AuditEntry>)))]
async fn audit(
    console: ConsoleState,
    Params(params): Params<AuditParams>,
) -> Result<Json<Page<AuditEntry>>> {
    let platform = console.platform()?;
    let date = params.date.unwrap_or_else(|| console.now().date());
    let asked = page_asked(params.limit, params.cursor)?;
    Ok(Json(platform.audit.of_day(date, &asked).await?.into()))
}
