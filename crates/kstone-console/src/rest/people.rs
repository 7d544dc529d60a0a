//! Persons: everything about one of them, given to them or erased.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use kstone_base::field::check_id;
use kstone_base::page::PageRequest;
use kstone_keyspace::Subject;
use kstone_keyspace::erasure::{ErasureError, ErasureRecord, ErasureState};
use kstone_mastery::engine::StoredKey;
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Result;
use super::extract::{Address, Params};
use super::paging::{Page, PageParams};
use super::problem::{Code, Problem};
use crate::console::{Console, ConsoleState};
use crate::erasures::{ErasureProgress, Erasures};

/// An erasure, never whom it is about.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Erasure {
    /// Its id.
    id: String,
    /// When it was asked for, in milliseconds since 1970.
    began_ms: u64,
    /// How far it is.
    state: ErasureStage,
    /// What is being done, if this process does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ErasureProgress>,
    /// What was done, signed, once it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    receipt: Option<serde_json::Value>,
}

/// How far an erasure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ErasureState)]
enum ErasureStage {
    /// Data is being removed.
    Running,
    /// All data is removed; whom it was about is being forgotten.
    Sealed,
    /// It is over.
    Done,
}

/// Some of the erasures, the latest first, and where to go on.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct ErasureList {
    #[serde(flatten)]
    page: Page<Erasure>,
    /// The public key (Ed25519, in hex) with which receipts are signed.
    public_key: String,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new()
        .routes(routes!(erasures))
        .routes(routes!(erasure))
        .routes(routes!(erase))
        .routes(routes!(export))
        .routes(routes!(admit))
        .routes(routes!(debug))
        .routes(routes!(metrics))
}

/// The erasures that there were, the latest first
#[utoipa::path(get, path = "/erasures", tag = "people", params(PageParams),
    responses((status = OK, body = ErasureList)))]
async fn erasures(
    console: ConsoleState,
    Params(page): Params<PageParams>,
) -> Result<Json<ErasureList>> {
    let erasures = erasures_of(&console)?;
    let PageRequest { limit, cursor } = page.asked()?;
    let mut left = erasures.all().await.map_err(failed)?.into_iter().rev().peekable();
    if let Some(cursor) = cursor {
        // It is the last one of the page before.
        if !left.by_ref().any(|record| record.id == cursor) {
            return Err(Problem::invalid("cursor", "must be what `next` of the page before says"));
        }
    }
    let records: Vec<ErasureRecord> = left.by_ref().take(limit as usize).collect();
    let next = records.last().filter(|_| left.peek().is_some()).map(|it| it.id.clone());
    let items = records.into_iter().map(|record| shown(record, erasures)).collect();
    let public_key = erasures.eraser().public_key();
    Ok(Json(ErasureList { page: Page::new(items, next), public_key }))
}

/// How far an erasure is, and its receipt when it is over
#[utoipa::path(get, path = "/erasures/{erasure_id}", tag = "people",
    responses((status = OK, body = Erasure)))]
async fn erasure(console: ConsoleState, Address(id): Address<String>) -> Result<Json<Erasure>> {
    let erasures = erasures_of(&console)?;
    let found = erasures.find(&id).await.map_err(failed)?;
    let record = found.ok_or_else(|| Problem::not_found(format!("erasure {id}")))?;
    Ok(Json(shown(record, erasures)))
}

/// Erases a learner: everything about them, in every table and key, out of every file
#[utoipa::path(delete, path = "/students/{student_id}", tag = "people",
    responses((status = ACCEPTED, body = Erasure, description = "It has begun; `Location` is where to look",
        headers(("Location" = String, description = "Where to see how far it is")))))]
async fn erase(console: ConsoleState, student_id: Address<String>) -> Result<Response> {
    let erasures = erasures_of(&console)?;
    check_id("student_id", &student_id).map_err(Problem::from_invalid)?;
    let subject = Subject::canonical(&student_id, None);
    let id = erasures.begin(&subject).await.map_err(failed)?;
    let record = erasures.find(&id).await.map_err(failed)?;
    let record = record.ok_or_else(|| Problem::not_found(format!("erasure {id}")))?;
    console.note("erasure", None, Some(&id)).await;
    let location = format!("{}/erasures/{id}", super::PREFIX);
    let body = Json(shown(record, erasures));
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], body).into_response())
}

/// Everything about a learner, for them to keep
#[utoipa::path(get, path = "/students/{student_id}/export", tag = "people",
    responses((status = OK, body = Object)))]
async fn export(console: ConsoleState, Address(student_id): Address<String>) -> Result<Response> {
    let export = console.platform()?.mastery.export(&student_id).await?;
    console.note("export", Some(&student_id), None).await;
    let file = format!("attachment; filename=\"{student_id}.json\"");
    Ok(([(header::CONTENT_DISPOSITION, file)], Json(export)).into_response())
}

/// Whether somebody had been erased.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Admitted {
    /// Whether they had been: writes about them were refused until now.
    was_erased: bool,
}

/// Lets data about a learner who was erased be written again
#[utoipa::path(post, path = "/students/{student_id}/admit", tag = "people",
    responses((status = OK, body = Admitted)))]
async fn admit(console: ConsoleState, student_id: Address<String>) -> Result<Json<Admitted>> {
    let was_erased = console.platform()?.mastery.admit(&student_id).await?;
    console.note("admit", Some(&student_id), None).await;
    Ok(Json(Admitted { was_erased }))
}

/// Every key of a learner.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Debugged {
    /// The keys, in order, with values and how long they live.
    keys: Vec<StoredKey>,
}

/// Every key that holds something of a learner, with its value and how long it lives
#[utoipa::path(get, path = "/students/{student_id}/debug", tag = "people",
    responses((status = OK, body = Debugged)))]
async fn debug(console: ConsoleState, student_id: Address<String>) -> Result<Json<Debugged>> {
    let keys = console.platform()?.mastery.debug_student_state(&student_id).await?;
    console.note("debug", Some(&student_id), None).await;
    Ok(Json(Debugged { keys }))
}

/// How many keys there are.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct KeyMetrics {
    /// By name.
    counts: BTreeMap<String, u64>,
}

/// How many keys of mastery there are, by name
#[utoipa::path(get, path = "/metrics", tag = "data", responses((status = OK, body = KeyMetrics)))]
async fn metrics(console: ConsoleState) -> Result<Json<KeyMetrics>> {
    Ok(Json(KeyMetrics { counts: console.platform()?.mastery.get_key_metrics()? }))
}

fn erasures_of(console: &Console) -> Result<&Arc<Erasures>> {
    console.erasures.as_ref().ok_or_else(|| {
        Problem::new(
            Code::PlatformOff,
            "persons can be erased where a keyspace is in force and the data is in a folder: start \
             the server with --data DIR --keyspace shipped",
        )
    })
}

fn failed(error: ErasureError) -> Problem {
    let code = match error {
        ErasureError::Running | ErasureError::Busy(_) => Code::Conflict,
        _ => Code::Unavailable,
    };
    Problem::new(code, error.to_string())
}

fn shown(record: ErasureRecord, erasures: &Erasures) -> Erasure {
    let (state, receipt) = match record.state {
        ErasureState::Running => (ErasureStage::Running, None),
        ErasureState::Sealed(_) => (ErasureStage::Sealed, None),
        ErasureState::Done(receipt) => (ErasureStage::Done, serde_json::to_value(receipt).ok()),
    };
    let progress = erasures.progress(&record.id);
    Erasure { id: record.id, began_ms: record.began_ms, state, progress, receipt }
}
