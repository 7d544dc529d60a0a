//! What follows from a learner's mastery: predictions, a path, recommendations.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use kstone_mastery::domain::{PredictionResult, Recommendation};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::console::{Console, ConsoleState};
use crate::rest::Result;
use crate::rest::extract::{Address, Body, Params};
use crate::rest::paging::{Page, PageParams};
use crate::rest::problem::Problem;

/// How far ahead.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct AheadParams {
    /// How many days ahead, from 1 to 365; default 7
    #[param(minimum = 1, maximum = 365)]
    days: Option<u16>,
}

/// What to learn next.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct LearningPath {
    /// Skills, the next one first.
    steps: Vec<String>,
}

/// Recommendations.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Recommendations {
    /// What to do, the most urgent first.
    recommendations: Vec<Recommendation>,
}

/// Whether a recommendation helped.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct FeedbackBody {
    /// Whether it helped.
    helpful: bool,
    /// In the learner's words.
    #[schema(max_length = 2000)]
    comment: Option<String>,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new()
        .routes(routes!(prediction))
        .routes(routes!(path))
        .routes(routes!(recommendation_history, recommend))
        .routes(routes!(recommendations_view))
        .routes(routes!(feedback))
}

/// Where a learner's score is going
#[utoipa::path(get, path = "/students/{student_id}/prediction", tag = "mastery",
    params(AheadParams), responses((status = OK, body = PredictionResult)))]
async fn prediction(
    console: ConsoleState,
    student_id: Address<String>,
    Params(params): Params<AheadParams>,
) -> Result<Json<PredictionResult>> {
    let days = params.days.unwrap_or(7);
    if !(1..=365).contains(&days) {
        return Err(Problem::invalid("days", "must be from 1 to 365"));
    }
    Ok(Json(console.platform()?.mastery.prediction(&student_id, days).await?))
}

/// What to learn next
#[utoipa::path(get, path = "/students/{student_id}/path", tag = "mastery",
    responses((status = OK, body = LearningPath)))]
async fn path(console: ConsoleState, student_id: Address<String>) -> Result<Json<LearningPath>> {
    Ok(Json(LearningPath { steps: console.platform()?.mastery.path(&student_id).await? }))
}

/// Everything that was recommended to a learner, the newest first
#[utoipa::path(get, path = "/students/{student_id}/recommendations", tag = "mastery",
    params(PageParams), responses((status = OK, body = Page<Recommendation>)))]
async fn recommendation_history(
    console: ConsoleState,
    student_id: Address<String>,
    Params(page): Params<PageParams>,
) -> Result<Json<Page<Recommendation>>> {
    let page =
        console.platform()?.mastery.recommendation_history(&student_id, &page.asked()?).await?;
    Ok(Json(page.into()))
}

/// Everything that was recommended to a learner, the newest first: as `GET …/recommendations`
#[utoipa::path(get, path = "/students/{student_id}/history/recommendations", tag = "mastery",
    params(PageParams), responses((status = OK, body = Page<Recommendation>)))]
async fn recommendations_view(
    console: State<Arc<Console>>,
    student_id: Address<String>,
    page: Params<PageParams>,
) -> Result<Json<Page<Recommendation>>> {
    recommendation_history(console, student_id, page).await
}

/// Recommends what a learner should do now, and remembers it
#[utoipa::path(post, path = "/students/{student_id}/recommendations", tag = "mastery",
    responses((status = OK, body = Recommendations)))]
async fn recommend(
    console: ConsoleState,
    student_id: Address<String>,
) -> Result<Json<Recommendations>> {
    let recommendations = console.platform()?.mastery.recommendations(&student_id).await?;
    Ok(Json(Recommendations { recommendations }))
}

/// Says whether a recommendation helped
#[utoipa::path(post, path = "/students/{student_id}/recommendations/{recommendation_id}/feedback",
    tag = "mastery",
    request_body = FeedbackBody, responses((status = OK, body = Recommendation)))]
async fn feedback(
    console: ConsoleState,
    Address((student_id, recommendation_id)): Address<(String, String)>,
    Body(said): Body<FeedbackBody>,
) -> Result<Json<Recommendation>> {
    let engine = &console.platform()?.mastery;
    let comment = said.comment.as_deref();
    let told = engine.give_feedback(&student_id, &recommendation_id, said.helpful, comment).await?;
    Ok(Json(told))
}
