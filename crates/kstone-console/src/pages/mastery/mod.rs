//! `/learn`: schools and their classes.

pub(crate) mod class;
pub(crate) mod learner;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use kstone_mastery::domain::{AggregateStats, CohortStanding, Component, Components, Level};
use kstone_mastery::engine::{ClassSummary, MasteryEngine};
use maud::{Markup, html};
use serde::Deserialize;

use super::charts::{Tone, bar, sparkline};
use super::error::PageResult;
use super::figures::{ago, count, counted, percent};
use super::layout::Column::{Number, Text};
use super::layout::{Layout, Section, empty_state, page, table, tile};
use super::{Pages, links};

/// How many days of a school are shown.
const DAYS: i64 = 30;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct LearnQuery {
    #[serde(default)]
    learner: String,
}

/// `/learn`
pub(crate) async fn show(
    pages: State<Pages>,
    Query(asked): Query<LearnQuery>,
) -> PageResult<Response> {
    let engine = pages.engine()?;
    let learner = asked.learner.trim();
    if !learner.is_empty() {
        return Ok(Redirect::to(&links::learner(learner)).into_response());
    }
    let schools = engine.schools().await?;
    let content = html! {
        h1 { "Learning" }
        p.faint { "Schools, classes and learners: how far they are, and who needs somebody." }
        (look_up())
        @if schools.is_empty() {
            (empty_state("No school yet.", &html! {
                p { "A school is there with its first learner or class: send events with a "
                    code { "school_id" } " to " code { "POST /api/v1/events" } ", or start the server with "
                    code { "--demo" } " for one that is simulated." }
            }))
        } @else {
            @for school in &schools { (school_card(engine, school).await?) }
        }
    };
    Ok(page(&Layout::new("Learning", Some(Section::Learn)), &content).into_response())
}

fn look_up() -> Markup {
    html! {
        form.row method="get" action="/learn" role="search" {
            div.field.grow {
                label for="learner" { "Learner" }
                input #learner name="learner" required autocomplete="off" spellcheck="false"
                    placeholder="student_12345";
            }
            button type="submit" { "Open" }
        }
    }
}

/// `/learn/schools/{school}`
pub(crate) async fn school(pages: State<Pages>, Path(school): Path<String>) -> PageResult {
    let engine = pages.engine()?;
    let content = html! { h1 { (school) } (school_card(engine, &school).await?) };
    Ok(page(&Layout::below(&school, Section::Learn, &[]), &content))
}

async fn school_card(engine: &MasteryEngine, school: &str) -> PageResult {
    let today = engine.now().date();
    let days = engine.aggregates(school, today.plus_days(1 - DAYS), today).await?;
    let classes = engine.classes(school).await?;
    let ids: Vec<String> = classes.iter().map(|class| class.class_id.clone()).collect();
    let mut standings = Vec::new();
    // As many as can be compared at once.
    for ids in ids.chunks(20) {
        standings.extend(engine.compare_cohorts(school, ids).await?.cohorts);
    }
    Ok(html! {
        section {
            h2 { a href=(links::school(school)) { (school) } }
            @if let Some(day) = days.last() { (school_day(day, &days, engine.now().epoch_ms())) }
            @if classes.is_empty() {
                (empty_state("No class yet.", &html! {
                    p { code { "PUT /api/v1/schools/" (school) "/classes/{class}" } " makes one." }
                }))
            } @else { (class_rows(school, &classes, &standings)) }
        }
    })
}

fn school_day(day: &AggregateStats, days: &[AggregateStats], now_ms: u64) -> Markup {
    let averages: Vec<f64> = days.iter().map(|day| day.average_score).collect();
    html! {
        div.tiles {
            (tile("Average mastery", &percent(day.average_score), &html! {
                (sparkline(&averages, "Average mastery of the last days"))
            }))
            (tile("Learners", &count(u64::from(day.students)), &html! {
                span.more { "half of them reach " (percent(day.median_score)) }
            }))
            (tile("Struggling", &count(u64::from(day.struggling)), &html! {
                span.more { "with something, on " (day.date) }
            }))
            (tile("Active that day", &count(u64::from(day.active_today)), &html! {
                span.more { "computed " (ago(day.calculated_at.epoch_ms(), now_ms)) }
            }))
        }
    }
}

fn class_rows(school: &str, classes: &[ClassSummary], standings: &[CohortStanding]) -> Markup {
    let columns = [Text("Class"), Number("Learners"), Text("Average"), Text("Levels")];
    let rows = html! {
        @for class in classes {
            @let standing = standings.iter().find(|it| it.class_id == class.class_id);
            tr {
                th scope="row" {
                    a href=(links::class(school, &class.class_id)) { (class.name) }
                }
                @if let Some(it) = standing.filter(|it| it.students > 0) {
                    td.number { (it.students) }
                    td { (bar(it.average_score, tone(it.average_score))) " " (percent(it.average_score)) }
                    td { (level_pills(&it.levels)) }
                } @else { td.number { "0" } td { "–" } td { "–" } }
            }
        }
    };
    table(&format!("Classes of {school}"), &columns, &rows)
}

/// How many are on each level, of those levels where somebody is.
fn level_pills(levels: &std::collections::BTreeMap<Level, u32>) -> Markup {
    html! {
        @for (level, &learners) in levels.iter().filter(|it| *it.1 > 0) {
            span class={ "pill " (level_class(*level)) } { (learners) " " (level) } " "
        }
    }
}

/// What a level looks like.
fn level_class(level: Level) -> &'static str {
    match level {
        Level::Beginner => "bad",
        Level::Developing => "warn",
        Level::Competent => "plain",
        Level::Proficient | Level::Expert => "good",
    }
}

/// What a score looks like: as the level that it is on.
fn tone(score: f64) -> Tone {
    match Level::of(score) {
        Level::Beginner => Tone::Bad,
        Level::Developing => Tone::Warn,
        Level::Competent => Tone::Plain,
        Level::Proficient | Level::Expert => Tone::Good,
    }
}

/// The four parts of a score, each with its weight.
fn components(of: &Components) -> Markup {
    html! {
        @for component in Component::ALL {
            @let value = of.get(component);
            div.meter {
                span { (title(component.as_str())) " "
                    small { "counts " (percent(component.weight())) } }
                strong { (percent(value)) }
                (bar(value, tone(value)))
            }
        }
    }
}

/// With a capital letter.
fn title(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn learners_of(number: usize) -> String {
    counted(number as u64, "learner", "learners")
}
