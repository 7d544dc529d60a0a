//! Schools: classes, their members, aggregates and comparisons.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use kstone_mastery::domain::{AggregateStats, CohortComparison, StudentComparison};
use kstone_mastery::engine::{ClassSummary, ClassView};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::console::{Console, ConsoleState};
use crate::rest::Result;
use crate::rest::extract::{Address, Body, Params};
use crate::rest::paging::{Page, PageParams, shown_cursor};
use crate::rest::problem::Problem;
use crate::rest::range::RangeParams;

/// Learners or classes of one comparison, at most.
const COMPARED_MAX: usize = 100;

/// Schools.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Schools {
    /// Their ids.
    schools: Vec<String>,
}

/// A school's classes.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Classes {
    /// The classes.
    classes: Vec<ClassSummary>,
}

/// What a class is called.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct ClassBody {
    /// Its name.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
}

/// A school day by day.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Aggregates {
    /// The days of which there is something, the oldest first.
    days: Vec<AggregateStats>,
}

/// Which classes.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct CohortParams {
    /// The classes, with commas between
    classes: String,
}

/// Which learners.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct CompareParams {
    /// The learners, with commas between
    students: String,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new()
        .routes(routes!(schools))
        .routes(routes!(learners))
        .routes(routes!(classes))
        .routes(routes!(class, put_class))
        .routes(routes!(add_member, remove_member))
        .routes(routes!(aggregates))
        .routes(routes!(cohorts))
        .routes(routes!(compare))
}

/// The schools that are known
#[utoipa::path(get, path = "/schools", tag = "schools", responses((status = OK, body = Schools)))]
async fn schools(console: ConsoleState) -> Result<Json<Schools>> {
    Ok(Json(Schools { schools: console.platform()?.mastery.schools().await? }))
}

/// The learners of a school
#[utoipa::path(get, path = "/schools/{school_id}/learners", tag = "schools",
    params(PageParams), responses((status = OK, body = Page<String>)))]
async fn learners(
    console: ConsoleState,
    school_id: Address<String>,
    Params(page): Params<PageParams>,
) -> Result<Json<Page<String>>> {
    let page = console.platform()?.mastery.learners(&school_id, &page.asked()?).await?;
    Ok(Json(page.into()))
}

/// The classes of a school
#[utoipa::path(get, path = "/schools/{school_id}/classes", tag = "schools",
    responses((status = OK, body = Classes)))]
async fn classes(console: ConsoleState, school_id: Address<String>) -> Result<Json<Classes>> {
    Ok(Json(Classes { classes: console.platform()?.mastery.classes(&school_id).await? }))
}

/// A class with its learners, a page of them: how far they are, who struggles
///
/// Averages and levels are of all of them.
#[utoipa::path(get, path = "/schools/{school_id}/classes/{class_id}", tag = "schools",
    params(PageParams), responses((status = OK, body = ClassView)))]
async fn class(
    console: ConsoleState,
    Address((school_id, class_id)): Address<(String, String)>,
    Params(page): Params<PageParams>,
) -> Result<Json<ClassView>> {
    let engine = &console.platform()?.mastery;
    let mut view = engine.class_page(&school_id, &class_id, &page.asked()?).await?;
    view.next = view.next.map(shown_cursor);
    Ok(Json(view))
}

/// Makes a class, or names it anew
#[utoipa::path(put, path = "/schools/{school_id}/classes/{class_id}", tag = "schools",
    request_body = ClassBody, responses((status = OK, body = ClassSummary)))]
async fn put_class(
    console: ConsoleState,
    Address((school_id, class_id)): Address<(String, String)>,
    Body(body): Body<ClassBody>,
) -> Result<Json<ClassSummary>> {
    Ok(Json(console.platform()?.mastery.put_class(&school_id, &class_id, &body.name).await?))
}

/// Puts a learner into a class
#[utoipa::path(put, path = "/schools/{school_id}/classes/{class_id}/members/{student_id}",
    tag = "schools",
    responses((status = NO_CONTENT, description = "The learner is in the class")))]
async fn add_member(
    console: ConsoleState,
    Address((school_id, class_id, student_id)): Address<(String, String, String)>,
) -> Result<StatusCode> {
    console.platform()?.mastery.add_member(&school_id, &class_id, &student_id).await?;
    let class = format!("{class_id} of {school_id}");
    console.note("class_join", Some(&student_id), Some(&class)).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a learner out of a class
#[utoipa::path(delete, path = "/schools/{school_id}/classes/{class_id}/members/{student_id}",
    tag = "schools",
    responses((status = NO_CONTENT, description = "The learner is not in the class")))]
async fn remove_member(
    console: ConsoleState,
    Address((school_id, class_id, student_id)): Address<(String, String, String)>,
) -> Result<StatusCode> {
    console.platform()?.mastery.remove_member(&school_id, &class_id, &student_id).await?;
    let class = format!("{class_id} of {school_id}");
    console.note("class_leave", Some(&student_id), Some(&class)).await;
    Ok(StatusCode::NO_CONTENT)
}

/// A school day by day: averages, levels, who is active
#[utoipa::path(get, path = "/schools/{school_id}/aggregates", tag = "schools",
    params(RangeParams), responses((status = OK, body = Aggregates)))]
async fn aggregates(
    console: ConsoleState,
    school_id: Address<String>,
    Params(range): Params<RangeParams>,
) -> Result<Json<Aggregates>> {
    let engine = &console.platform()?.mastery;
    let (from, to) = range.days(engine.now().date())?;
    Ok(Json(Aggregates { days: engine.aggregates(&school_id, from, to).await? }))
}

/// Classes of a school side by side
#[utoipa::path(get, path = "/schools/{school_id}/cohorts", tag = "schools",
    params(CohortParams), responses((status = OK, body = CohortComparison)))]
async fn cohorts(
    console: ConsoleState,
    school_id: Address<String>,
    Params(params): Params<CohortParams>,
) -> Result<Json<CohortComparison>> {
    let classes = listed("classes", &params.classes)?;
    Ok(Json(console.platform()?.mastery.compare_cohorts(&school_id, &classes).await?))
}

/// Learners side by side
#[utoipa::path(get, path = "/compare", tag = "schools", params(CompareParams),
    responses((status = OK, body = StudentComparison)))]
async fn compare(
    console: ConsoleState,
    Params(params): Params<CompareParams>,
) -> Result<Json<StudentComparison>> {
    let students = listed("students", &params.students)?;
    Ok(Json(console.platform()?.mastery.compare_students(&students).await?))
}

/// Names with commas between.
fn listed(field: &'static str, text: &str) -> Result<Vec<String>> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_owned).collect();
    match (1..=COMPARED_MAX).contains(&names.len()) {
        true => Ok(names),
        false => Err(Problem::invalid(
            field,
            format!("must be 1 to {COMPARED_MAX}, with commas between"),
        )),
    }
}
