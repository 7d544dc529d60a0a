//! `/learn/classes/{school}/{class}`: who struggles, and how the class does.

use std::time::Duration;

use axum::extract::{Path, State};
use kstone_base::time::Moment;
use kstone_mastery::domain::{Level, Trend};
use kstone_mastery::engine::{ClassRow, ClassView};
use maud::{Markup, html};

use super::{components, learners_of, level_class, title, tone};
use crate::pages::charts::{Tone, bar};
use crate::pages::error::PageResult;
use crate::pages::figures::{ago, count, percent};
use crate::pages::layout::Column::Text;
use crate::pages::layout::{Layout, Section, empty_state, live, page, table, tile};
use crate::pages::{Pages, links};

/// A learner who was not active for so many days is marked.
const LATELY: Duration = Duration::from_secs(7 * 24 * 3600);

/// `/learn/classes/{school}/{class}`
pub(crate) async fn show(
    pages: State<Pages>,
    Path((school, class)): Path<(String, String)>,
) -> PageResult {
    let engine = pages.engine()?;
    let view = engine.class(&school, &class).await?;
    let trail = [(links::school(&school), school.clone())];
    let content = html! {
        h1 { (view.name) }
        p.faint { "Class " code { (class) } " of " (school) ". " (learners_of(view.learners.len())) "." }
        @if view.learners.is_empty() {
            (empty_state("Nobody is in this class yet.", &html! {
                p { code { "PUT /api/v1/schools/" (school) "/classes/" (class) "/members/{learner}" }
                    " adds somebody." }
            }))
        } @else {
            (live(&format!("/live{}", links::class(&school, &class)), 5000, &now(&view, engine.now())))
        }
    };
    Ok(page(&Layout::below(&view.name, Section::Learn, &trail), &content))
}

/// `/live/learn/classes/{school}/{class}`
pub(crate) async fn fragment(
    pages: State<Pages>,
    Path((school, class)): Path<(String, String)>,
) -> PageResult {
    let engine = pages.engine()?;
    Ok(now(&engine.class(&school, &class).await?, engine.now()))
}

fn now(view: &ClassView, now: Moment) -> Markup {
    let struggling = view.learners.iter().filter(|it| !it.struggles.is_empty()).count();
    let is_lately =
        |row: &&ClassRow| row.last_activity.is_some_and(|last| now.since(last) < LATELY);
    let active = view.learners.iter().filter(is_lately).count();
    let declining = view.learners.iter().filter(|it| it.trend == Some(Trend::Declining)).count();
    html! {
        div.tiles {
            (tile("Average mastery", &view.average_score.map_or("–".to_owned(), percent), &html! {}))
            (tile("Struggling now", &count(struggling as u64), &html! {
                span.more { "of " (learners_of(view.learners.len())) }
            }))
            (tile("Going down", &count(declining as u64), &html! {}))
            (tile("Active in 7 days", &count(active as u64), &html! {}))
        }
        section { h2 { "Learners" } (rows(view, now)) }
        section {
            div.columns {
                div.card { h2 { "Levels" } (levels(view)) }
                div.card { h2 { "Averages" } (components(&view.averages)) }
            }
        }
    }
}

/// Those who struggle first, then those with the lowest scores.
fn rows(view: &ClassView, now: Moment) -> Markup {
    let mut learners: Vec<&ClassRow> = view.learners.iter().collect();
    learners.sort_by(|one, other| {
        let score = |row: &ClassRow| row.mastery.as_ref().map_or(2.0, |it| it.mastery_score);
        (one.struggles.is_empty().cmp(&other.struggles.is_empty()))
            .then_with(|| score(one).total_cmp(&score(other)))
    });
    let columns = [
        Text("Learner"),
        Text("Mastery"),
        Text("Level"),
        Text("Trend"),
        Text("Struggles with"),
        Text("Last active"),
    ];
    let rows = html! {
        @for row in learners {
            tr {
                th.whole scope="row" {
                    a href=(links::learner(&row.student_id)) {
                        (row.display_name.as_ref().unwrap_or(&row.student_id))
                    }
                }
                @if let Some(mastery) = &row.mastery {
                    td.number {
                        (bar(mastery.mastery_score, tone(mastery.mastery_score))) " "
                        (percent(mastery.mastery_score))
                    }
                    td { span class={ "pill " (level_class(mastery.level)) } { (mastery.level) } }
                } @else { td { "–" } td { "–" } }
                td.whole { (trend(row.trend)) }
                td {
                    @for struggle in row.struggles.iter().take(2) { div { (struggle.detail) } }
                    @if row.struggles.len() > 2 { div.faint { "and " (row.struggles.len() - 2) " more" } }
                }
                td.whole {
                    @match row.last_activity {
                        Some(last) => (ago(last.epoch_ms(), now.epoch_ms())),
                        None => "never",
                    }
                }
            }
        }
    };
    table("Learners, those who struggle first", &columns, &rows)
}

/// Where a score is going, in a sign and a word.
pub(super) fn trend(trend: Option<Trend>) -> Markup {
    match trend {
        Some(Trend::Improving) => html! { span.good { "↗ improving" } },
        Some(Trend::Stable) => html! { span.faint { "→ stable" } },
        Some(Trend::Declining) => html! { span.bad { "↘ declining" } },
        None => html! { span.faint { "–" } },
    }
}

fn levels(view: &ClassView) -> Markup {
    let all: u32 = view.levels.values().sum();
    html! {
        @for level in Level::ALL.into_iter().rev() {
            @let learners = view.levels.get(&level).copied().unwrap_or(0);
            div.meter {
                span { (title(level.as_str())) }
                strong { (learners) }
                (bar(f64::from(learners) / f64::from(all.max(1)), Tone::Plain))
            }
        }
    }
}
