//! Who learners are, and what they agreed to.

use std::sync::Arc;

use axum::Json;
use kstone_mastery::domain::{Consent, LearnerProfile};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::console::{Console, ConsoleState};
use crate::rest::Result;
use crate::rest::extract::{Address, Body};

/// Who a learner is. What is left out is not known.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct ProfileBody {
    /// What teachers see.
    #[schema(min_length = 1, max_length = 200)]
    display_name: Option<String>,
    /// The learner's time zone by its IANA name, such as Europe/Berlin; default UTC.
    time_zone: Option<String>,
    /// The learner's school.
    school_id: Option<String>,
    /// The classes in it.
    #[serde(default)]
    class_ids: Vec<String>,
}

/// What may be done with a learner's data.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct ConsentBody {
    /// Events may be taken and scores computed.
    analytics: bool,
    /// Scores may be predicted.
    prediction: bool,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new().routes(routes!(profile, put_profile)).routes(routes!(consent, put_consent))
}

/// Who a learner is
#[utoipa::path(get, path = "/students/{student_id}/profile", tag = "learners",
    responses((status = OK, body = LearnerProfile)))]
async fn profile(
    console: ConsoleState,
    student_id: Address<String>,
) -> Result<Json<LearnerProfile>> {
    Ok(Json(console.platform()?.mastery.profile(&student_id).await?))
}

/// Says who a learner is; what they agreed to stays as it was
#[utoipa::path(put, path = "/students/{student_id}/profile", tag = "learners",
    request_body = ProfileBody, responses((status = OK, body = LearnerProfile)))]
async fn put_profile(
    console: ConsoleState,
    student_id: Address<String>,
    Body(body): Body<ProfileBody>,
) -> Result<Json<LearnerProfile>> {
    let engine = &console.platform()?.mastery;
    let mut profile = LearnerProfile::new(student_id.as_str(), engine.now());
    profile.display_name = body.display_name;
    profile.school_id = body.school_id;
    profile.class_ids = body.class_ids;
    if let Some(zone) = body.time_zone {
        profile.time_zone = zone;
    }
    let profile = engine.put_profile(&profile).await?;
    console.note("profile", Some(&student_id), None).await;
    Ok(Json(profile))
}

/// What a learner agreed to
#[utoipa::path(get, path = "/students/{student_id}/consent", tag = "learners",
    responses((status = OK, body = Consent)))]
async fn consent(console: ConsoleState, student_id: Address<String>) -> Result<Json<Consent>> {
    Ok(Json(console.platform()?.mastery.profile(&student_id).await?.consent))
}

/// Says what may be done with a learner's data from now on
#[utoipa::path(put, path = "/students/{student_id}/consent", tag = "learners",
    request_body = ConsentBody, responses((status = OK, body = Consent)))]
async fn put_consent(
    console: ConsoleState,
    student_id: Address<String>,
    Body(body): Body<ConsentBody>,
) -> Result<Json<Consent>> {
    let engine = &console.platform()?.mastery;
    let profile = engine.set_consent(&student_id, body.analytics, body.prediction).await?;
    let detail = format!("analytics {}, prediction {}", body.analytics, body.prediction);
    console.note("consent", Some(&student_id), Some(&detail)).await;
    Ok(Json(profile.consent))
}
