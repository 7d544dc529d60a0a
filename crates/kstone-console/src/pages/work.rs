//! `/work`: what is done in the background, what went wrong with it, and what people should look at.

use axum::Form;
use axum::extract::{Path, Query, State};
use axum::response::Redirect;
use kstone_base::work::{Alert, DeadJob, QueueDepth, Severity};
use maud::{Markup, html};
use serde::Deserialize;

use super::error::{PageError, PageResult};
use super::figures::{ago, count, span};
use super::layout::Column::{Number, Text};
use super::layout::{Layout, Section, empty_state, live, page, table};
use super::{Pages, links};

/// How many alerts, or dead jobs, are on a page.
const PAGE: u32 = 50;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct WorkQuery {
    #[serde(default)]
    after: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DeadJobForm {
    id: String,
    what: String,
}

/// `/work`
pub(crate) async fn show(pages: State<Pages>, Query(asked): Query<WorkQuery>) -> PageResult {
    let platform = pages.platform()?;
    let now_ms = pages.console.clock.now_ms();
    let alerts = platform.alerts.recent(PAGE, after(&asked)).await?;
    let content = html! {
        h1 { "Work" }
        p.faint { "What is done in the background, and what a person should look at." }
        (live("/live/work", 2000, &queues(&pages).await?))
        section {
            h2 { "Alerts" }
            @if alerts.items.is_empty() {
                (empty_state("No alert.", &html! {
                    p { "One is raised when a learner struggles or is likely to fall behind, and when a job "
                        "was given up. " code { "--alert-webhook URL" } " sends them elsewhere too." }
                }))
            } @else {
                (alert_rows(&alerts.items, now_ms))
                @if let Some(next) = &alerts.next {
                    div.actions {
                        a.button.quiet rel="next" href={ "/work?after=" (links::part(next)) } { "Older" }
                    }
                }
            }
        }
    };
    Ok(page(&Layout::new("Work", Some(Section::Work)), &content))
}

fn after(asked: &WorkQuery) -> Option<&str> {
    Some(asked.after.as_str()).filter(|after| !after.is_empty())
}

/// `/live/work`
pub(crate) async fn fragment(pages: State<Pages>) -> PageResult {
    queues(&pages).await
}

async fn queues(pages: &Pages) -> PageResult {
    let platform = pages.platform()?;
    let now_ms = pages.console.clock.now_ms();
    let depths = platform.workers.depth().await?;
    let schedules = platform.schedules.state().await?;
    Ok(html! {
        section {
            h2 { "Queues" }
            @if depths.is_empty() { p.faint { "No queue is worked on." } } @else { (depth_rows(&depths)) }
        }
        section {
            h2 { "Schedules" }
            @if schedules.is_empty() { p.faint { "Nothing is scheduled." } } @else {
                (table("Schedules", &[Text("Schedule"), Text("Every"), Text("Last"), Text("Next")], &html! {
                    @for it in &schedules {
                        tr {
                            th scope="row" { (it.name) }
                            td { (span(it.every_s.saturating_mul(1000))) }
                            td { @match it.last { Some(last) => (ago(last.epoch_ms(), now_ms)), None => "never" } }
                            td { (ago(it.next.epoch_ms(), now_ms)) }
                        }
                    }
                }))
            }
        }
    })
}

fn depth_rows(depths: &[QueueDepth]) -> Markup {
    let columns = [
        Text("Queue"),
        Number("Ready"),
        Number("Later"),
        Number("Running"),
        Number("Waits for"),
        Number("Given up"),
    ];
    let rows = html! {
        @for it in depths {
            tr {
                th scope="row" { (it.queue) }
                td.number { (count(it.ready)) }
                td.number { (count(it.delayed)) }
                td.number { (count(it.running)) }
                td.number { (span(it.lag_ms)) }
                td.number {
                    @if it.dead > 0 {
                        a.bad href={ "/work/dead/" (links::part(&it.queue)) } { (count(it.dead)) }
                    } @else { "0" }
                }
            }
        }
    };
    table("Queues", &columns, &rows)
}

fn alert_rows(alerts: &[Alert], now_ms: u64) -> Markup {
    let columns = [Text("Alert"), Text("Severity"), Text("About"), Text("When")];
    let rows = html! {
        @for alert in alerts {
            tr {
                th scope="row" { (alert.title) div.faint { (alert.detail) } }
                td { (severity(alert.severity)) }
                td {
                    @match &alert.student_id {
                        Some(id) => a href=(links::learner(id)) { (id) },
                        None => (alert.kind),
                    }
                }
                td { (ago(alert.at.epoch_ms(), now_ms)) }
            }
        }
    };
    table("Alerts, the newest first", &columns, &rows)
}

fn severity(severity: Severity) -> Markup {
    match severity {
        Severity::Info => html! { span.pill { "info" } },
        Severity::Warning => html! { span.pill.warn { "warning" } },
        Severity::Critical => html! { span.pill.bad { "critical" } },
    }
}

/// `/work/dead/{queue}`
pub(crate) async fn dead(
    pages: State<Pages>,
    Path(queue): Path<String>,
    Query(asked): Query<WorkQuery>,
) -> PageResult {
    let platform = pages.platform()?;
    let jobs = platform.queues.dead_letters(&queue, PAGE, after(&asked)).await?;
    let now_ms = pages.console.clock.now_ms();
    let title = format!("Given up in {queue}");
    let content = html! {
        h1 { (title) }
        p.faint { "Jobs that failed for good. Try one again once its cause is mended, or drop it." }
        @if jobs.items.is_empty() {
            (empty_state("No job was given up.", &html! { p { a href="/work" { "Back to all queues" } } }))
        } @else {
            (dead_rows(&queue, &jobs.items, now_ms))
            @if let Some(next) = &jobs.next {
                div.actions {
                    a.button.quiet rel="next"
                        href={ "/work/dead/" (links::part(&queue)) "?after=" (links::part(next)) } { "Older" }
                }
            }
        }
    };
    Ok(page(&Layout::below(&title, Section::Work, &[]), &content))
}

fn dead_rows(queue: &str, jobs: &[DeadJob], now_ms: u64) -> Markup {
    let columns = [Text("Job"), Text("Why"), Number("Tries"), Text("When"), Text("What now")];
    let rows = html! {
        @for job in jobs {
            tr {
                th.key scope="row" { (job.kind) div.faint.mono { (job.id) }
                    details { summary { "What it was about" } (super::json::pretty(&job.payload)) } }
                td { (job.problem) }
                td.number { (job.attempts) }
                td { (ago(job.died_at.epoch_ms(), now_ms)) }
                td {
                    form.row.small method="post" action={ "/work/dead/" (links::part(queue)) } {
                        input type="hidden" name="id" value=(job.id);
                        button.quiet name="what" value="retry" type="submit" { "Try again" }
                        button.quiet name="what" value="drop" type="submit" { "Drop" }
                    }
                }
            }
        }
    };
    table("Jobs that were given up, the last first", &columns, &rows)
}

/// `POST /work/dead/{queue}`
pub(crate) async fn decide(
    pages: State<Pages>,
    Path(queue): Path<String>,
    Form(decided): Form<DeadJobForm>,
) -> PageResult<Redirect> {
    let queues = &pages.platform()?.queues;
    match decided.what.as_str() {
        "retry" => queues.retry_dead(&queue, &decided.id).await?,
        "drop" => queues.drop_dead(&queue, &decided.id).await?,
        what => return Err(PageError::Refused(format!("A job cannot be told to {what}."))),
    }
    let which = format!("job {} of {queue}", decided.id);
    pages.console.note(&decided.what, None, Some(&which)).await;
    Ok(Redirect::to(&format!("/work/dead/{}", links::part(&queue))))
}
