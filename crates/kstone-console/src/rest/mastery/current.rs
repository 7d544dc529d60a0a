//! What a learner has mastered: the score, its history, and what follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use kstone_base::time::Date;
use kstone_mastery::domain::{
    AcceptedEvent, ActivityData, Component, Components, MasteryResult, SkillRating, Struggle,
};
use kstone_mastery::engine::{ComponentsDay, MasteryDay};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::console::{Console, ConsoleState};
use crate::rest::Result;
use crate::rest::extract::{Address, Body, IdempotencyKey, Params};
use crate::rest::paging::{Page, PageParams};
use crate::rest::problem::{Code, Problem};
use crate::rest::range::RangeParams;

/// Learners of one question, at most.
const STUDENTS_MAX: usize = 1000;

/// Days on which something happened, the oldest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct History {
    /// The days.
    days: Vec<MasteryDay>,
}

/// A component on a day.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct TrendPoint {
    /// The day, where the learner is.
    #[schema(value_type = String, format = Date)]
    date: Date,
    /// The component's value, from 0 to 1.
    value: f64,
}

/// A component over time, the oldest day first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct ComponentTrend {
    /// Which component.
    component: Component,
    /// Its values.
    points: Vec<TrendPoint>,
}

/// Skills.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Skills {
    /// Each skill with the chance of success at it.
    skills: Vec<SkillRating>,
}

/// What a learner struggles with now.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Struggles {
    /// Each struggle; none if all is well.
    struggles: Vec<Struggle>,
}

/// Of whom to tell.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct MasteryQuery {
    /// The learners, at most 1000.
    #[schema(max_items = 1000)]
    student_ids: Vec<String>,
}

/// Those of whom something is known.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct MasteryFound {
    /// By learner.
    mastery: BTreeMap<String, MasteryResult>,
    /// Those of whom nothing is known.
    unknown: Vec<String>,
}

/// How many days.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct DaysParams {
    /// How many days back, from 1 to 366; default 30
    #[param(minimum = 1, maximum = 366)]
    days: Option<u16>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new()
        .routes(routes!(current, assess))
        .routes(routes!(query))
        .routes(routes!(history))
        .routes(routes!(full_history))
        .routes(routes!(components_history))
        .routes(routes!(trend))
        .routes(routes!(skills))
        .routes(routes!(activity))
        .routes(routes!(struggles))
        .routes(routes!(events))
        .routes(routes!(rebuild))
}

/// A learner's mastery now
///
/// The answer's `ETag` is the version; with `If-None-Match` an answer that would be the same is left
/// out.
#[utoipa::path(get, path = "/students/{student_id}/mastery", tag = "mastery",
    params(("If-None-Match" = Option<String>, Header, description = "The version that is known already")),
    responses((status = OK, body = MasteryResult, headers(("ETag" = String, description = "The version"))),
        (status = NOT_MODIFIED, description = "It is the version that is known already")))]
async fn current(
    console: ConsoleState,
    Address(student_id): Address<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let found = console.platform()?.mastery.get_current_mastery(&student_id).await?;
    let mastery = found.ok_or_else(|| Problem::not_found(format!("mastery of {student_id}")))?;
    let known = headers.get(header::IF_NONE_MATCH).and_then(|it| it.to_str().ok());
    let etag = etag(mastery.version);
    if known.is_some_and(|it| it == "*" || it.split(',').any(|it| it.trim() == etag)) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response());
    }
    Ok(with_etag(mastery))
}

/// Says how far a learner is; with `If-Match`, only if nobody else has meanwhile
///
/// For a teacher or another system that knows better. With `If-Match: "7"` it is done only if version
/// 7 is the present one, otherwise the answer is 412; with `If-None-Match: *` only if nothing is known
/// of the learner.
#[utoipa::path(put, path = "/students/{student_id}/mastery", tag = "mastery",
    params(("If-Match" = Option<String>, Header, description = "The version that it is based on"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only a first one")),
    request_body = Components,
    responses((status = OK, body = MasteryResult, headers(("ETag" = String, description = "The version")))))]
async fn assess(
    console: ConsoleState,
    student_id: Address<String>,
    IdempotencyKey(name): IdempotencyKey,
    headers: HeaderMap,
    Body(components): Body<Components>,
) -> Result<Response> {
    let engine = &console.platform()?.mastery;
    let expected = expected_version(&headers)?;
    let mastery = match (name, expected) {
        (Some(name), expected) => {
            engine.save_mastery_update_once(&name, &student_id, &components, expected).await
        }
        (None, Some(version)) => {
            engine.update_with_version(&student_id, &components, version).await
        }
        (None, None) => engine.save_mastery_update(&student_id, &components).await,
    };
    match mastery {
        Ok(mastery) => {
            console.note("assessment", Some(&student_id), None).await;
            Ok(with_etag(mastery))
        }
        Err(kstone_mastery::engine::Error::Conflict { current, .. })
            if is_conditional(&headers) =>
        {
            let what = match current {
                Some(0) | None => "nothing is known of the learner".to_owned(),
                Some(current) => format!("the version is {current} by now: read it again"),
            };
            let field =
                if headers.contains_key(header::IF_MATCH) { "If-Match" } else { "If-None-Match" };
            let problem =
                Problem { field: Some(field.into()), ..Problem::new(Code::VersionMismatch, what) };
            let mut response = problem.into_response();
            if let Some(etag) = current.filter(|it| *it > 0).and_then(|it| etag(it).parse().ok()) {
                response.headers_mut().insert(header::ETAG, etag);
            }
            Ok(response)
        }
        Err(error) => Err(error.into()),
    }
}

fn etag(version: u64) -> String {
    format!("\"{version}\"")
}

fn with_etag(mastery: MasteryResult) -> Response {
    let etag = HeaderValue::from_str(&etag(mastery.version));
    let mut response = Json(mastery).into_response();
    if let Ok(etag) = etag {
        response.headers_mut().insert(header::ETAG, etag);
    }
    response
}

fn is_conditional(headers: &HeaderMap) -> bool {
    headers.contains_key(header::IF_MATCH) || headers.contains_key(header::IF_NONE_MATCH)
}

fn expected_version(headers: &HeaderMap) -> Result<Option<u64>> {
    if let Some(said) = headers.get(header::IF_NONE_MATCH) {
        return match said.as_bytes() {
            b"*" => Ok(Some(0)),
            _ => Err(Problem::invalid("If-None-Match", "must be * here")),
        };
    }
    let Some(said) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = said.to_str().ok().and_then(|it| it.strip_prefix('"')?.strip_suffix('"'));
    let version = text.and_then(|it| it.parse().ok());
    version.map(Some).ok_or_else(|| {
        Problem::invalid("If-Match", "must be an ETag that was answered, such as \"7\"")
    })
}

/// The mastery of several learners at once
#[utoipa::path(post, path = "/mastery/query", tag = "mastery", request_body = MasteryQuery,
    responses((status = OK, body = MasteryFound)))]
async fn query(
    console: ConsoleState,
    Body(query): Body<MasteryQuery>,
) -> Result<Json<MasteryFound>> {
    if query.student_ids.len() > STUDENTS_MAX {
        let what = format!("must be at most {STUDENTS_MAX} learners");
        return Err(Problem::invalid("student_ids", what));
    }
    let mastery = console.platform()?.mastery.get_batch_mastery(&query.student_ids).await?;
    let mut unknown: Vec<String> =
        query.student_ids.into_iter().filter(|id| !mastery.contains_key(id)).collect();
    unknown.sort_unstable();
    unknown.dedup();
    Ok(Json(MasteryFound { mastery, unknown }))
}

/// A learner's mastery day by day
#[utoipa::path(get, path = "/students/{student_id}/history", tag = "mastery",
    params(RangeParams), responses((status = OK, body = History)))]
async fn history(
    console: ConsoleState,
    student_id: Address<String>,
    Params(range): Params<RangeParams>,
) -> Result<Json<History>> {
    let engine = &console.platform()?.mastery;
    let (from, to) = range.days(engine.today(&student_id).await?)?;
    let days = engine.get_mastery_history(&student_id, from, to).await?;
    let days = days.into_iter().map(|(date, mastery)| MasteryDay { date, mastery }).collect();
    Ok(Json(History { days }))
}

/// Every day of a learner's history, the newest first
#[utoipa::path(get, path = "/students/{student_id}/history/full", tag = "mastery",
    params(PageParams), responses((status = OK, body = Page<MasteryDay>)))]
async fn full_history(
    console: ConsoleState,
    student_id: Address<String>,
    Params(page): Params<PageParams>,
) -> Result<Json<Page<MasteryDay>>> {
    let page = console.platform()?.mastery.full_history(&student_id, &page.asked()?).await?;
    Ok(Json(page.into()))
}

/// What the score was made of on every day of a learner's history, the newest first
#[utoipa::path(get, path = "/students/{student_id}/history/components", tag = "mastery",
    params(PageParams), responses((status = OK, body = Page<ComponentsDay>)))]
async fn components_history(
    console: ConsoleState,
    student_id: Address<String>,
    Params(page): Params<PageParams>,
) -> Result<Json<Page<ComponentsDay>>> {
    let page = console.platform()?.mastery.components_history(&student_id, &page.asked()?).await?;
    Ok(Json(page.into()))
}

/// One component over the last days
#[utoipa::path(get, path = "/students/{student_id}/components/{component}/trend", tag = "mastery",
    params(("component" = Component, Path, description = "Which component"), DaysParams),
    responses((status = OK, body = ComponentTrend)))]
async fn trend(
    console: ConsoleState,
    Address((student_id, component)): Address<(String, String)>,
    Params(params): Params<DaysParams>,
) -> Result<Json<ComponentTrend>> {
    let component: Component = component.parse().map_err(Problem::from_invalid)?;
    let days = params.days.unwrap_or(30);
    if !(1..=366).contains(&days) {
        return Err(Problem::invalid("days", "must be from 1 to 366"));
    }
    let points =
        console.platform()?.mastery.get_component_trend(&student_id, component, days).await?;
    let points = points.into_iter().map(|(date, value)| TrendPoint { date, value }).collect();
    Ok(Json(ComponentTrend { component, points }))
}

/// The chance of success at each skill
#[utoipa::path(get, path = "/students/{student_id}/skills", tag = "mastery",
    responses((status = OK, body = Skills)))]
async fn skills(console: ConsoleState, student_id: Address<String>) -> Result<Json<Skills>> {
    Ok(Json(Skills { skills: console.platform()?.mastery.skills(&student_id).await? }))
}

/// When a learner was active, and for how many days in a row
#[utoipa::path(get, path = "/students/{student_id}/activity", tag = "mastery",
    responses((status = OK, body = ActivityData)))]
async fn activity(
    console: ConsoleState,
    student_id: Address<String>,
) -> Result<Json<ActivityData>> {
    Ok(Json(console.platform()?.mastery.activity(&student_id).await?))
}

/// What a learner struggles with now
#[utoipa::path(get, path = "/students/{student_id}/struggles", tag = "mastery",
    responses((status = OK, body = Struggles)))]
async fn struggles(console: ConsoleState, student_id: Address<String>) -> Result<Json<Struggles>> {
    Ok(Json(Struggles { struggles: console.platform()?.mastery.struggles(&student_id).await? }))
}

/// What a learner did, the newest first
#[utoipa::path(get, path = "/students/{student_id}/events", tag = "events",
    params(PageParams), responses((status = OK, body = Page<AcceptedEvent>)))]
async fn events(
    console: ConsoleState,
    student_id: Address<String>,
    Params(page): Params<PageParams>,
) -> Result<Json<Page<AcceptedEvent>>> {
    let page = console.platform()?.mastery.events(&student_id, &page.asked()?).await?;
    Ok(Json(page.into()))
}

/// Computes a learner's mastery anew from what they did
#[utoipa::path(post, path = "/students/{student_id}/rebuild", tag = "mastery",
    responses((status = OK, body = MasteryResult)))]
async fn rebuild(
    console: ConsoleState,
    student_id: Address<String>,
) -> Result<Json<MasteryResult>> {
    let platform = console.platform()?;
    let mastery = platform.mastery.rebuild_mastery_from_events(&student_id).await?;
    console.note("rebuild", Some(&student_id), None).await;
    Ok(Json(mastery))
}
