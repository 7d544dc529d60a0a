//! `/people`: everything about one person, given to them or removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Form;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use kstone_base::field::check_id;
use kstone_keyspace::erasure::{ErasureRecord, ErasureState, PersonalDataLocation, SignedReceipt};
use kstone_keyspace::index::Location;
use kstone_keyspace::{Governor, Subject};
use maud::{Markup, html};
use serde::Deserialize;

use super::error::{PageError, PageResult};
use super::figures::{ago, bytes, count, counted, micros, moment};
use super::keyspaces::how_to_declare;
use super::layout::Column::{Number, Text};
use super::layout::{Layout, Section, empty_state, live, page, table};
use super::{Pages, json, links};
use crate::{ErasureProgress, Erasures, Stage};

/// So many places are listed; all of them are counted.
const LISTED_MAX: usize = 500;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct PeopleQuery {
    #[serde(default)]
    id: String,
    #[serde(default)]
    tenant: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct EraseForm {
    #[serde(default)]
    confirm: String,
}

impl PeopleQuery {
    fn tenant(&self) -> Option<&str> {
        Some(self.tenant.trim()).filter(|tenant| !tenant.is_empty())
    }
}

fn off() -> PageError {
    PageError::Off(
        "Nobody knows whose data is whose",
        html! {
            p { "Without a keyspace in force, and a folder for the data, persons cannot be looked up." }
            (how_to_declare())
        },
    )
}

fn governed(pages: &Pages) -> PageResult<(&Arc<Governor>, &Arc<Erasures>)> {
    let console = &pages.console;
    console.governor.as_ref().zip(console.erasures.as_ref()).ok_or_else(off)
}

/// `/people`
pub(crate) async fn find(
    pages: State<Pages>,
    Query(asked): Query<PeopleQuery>,
) -> PageResult<Response> {
    let (_, erasures) = governed(&pages)?;
    let id = asked.id.trim();
    if !id.is_empty() {
        return Ok(Redirect::to(&links::person(id, asked.tenant())).into_response());
    }
    let mut records = erasures.all().await?;
    records.reverse();
    let now_ms = pages.console.clock.now_ms();
    let content = html! {
        h1 { "People" }
        p.faint { "Everything that is kept about one person: look at it, export it, erase it." }
        form.row method="get" action="/people" role="search" {
            div.field.grow {
                label for="id" { "Person" }
                input #id name="id" required autocomplete="off" spellcheck="false" placeholder="student_12345";
            }
            div.field {
                label for="tenant" { "School " span.hint { "(optional)" } }
                input #tenant name="tenant" autocomplete="off" spellcheck="false";
            }
            button type="submit" { "Look up" }
        }
        section {
            h2 { "Erasures" }
            @if records.is_empty() {
                (empty_state("Nobody was erased yet.", &html! {
                    p { "An erasure removes every byte about a person, also from files and checkpoints, and "
                        "leaves a signed receipt that does not name them." }
                }))
            } @else { (erasure_rows(&records, now_ms)) }
        }
    };
    Ok(page(&Layout::new("People", Some(Section::People)), &content).into_response())
}

fn erasure_rows(records: &[ErasureRecord], now_ms: u64) -> Markup {
    let columns = [Text("Erasure"), Text("Began"), Text("State"), Number("Records removed")];
    let rows = html! {
        @for record in records.iter().take(LISTED_MAX) {
            tr {
                th.key scope="row" { a.mono href=(links::erasure(&record.id)) { (record.id) } }
                td { (ago(record.began_ms, now_ms)) }
                td { (state(&record.state)) }
                td.number {
                    @match &record.state {
                        ErasureState::Done(signed) => (count(signed.receipt.purge.records)),
                        _ => "–",
                    }
                }
            }
        }
    };
    table("Erasures", &columns, &rows)
}

fn state(state: &ErasureState) -> Markup {
    match state {
        ErasureState::Running => html! { span.pill.warn { "running" } },
        ErasureState::Sealed(_) => html! { span.pill.warn { "being signed" } },
        ErasureState::Done(_) => html! { span.pill.good { "done" } },
    }
}

/// `/people/{id}`
pub(crate) async fn one(
    pages: State<Pages>,
    Path(id): Path<String>,
    Query(asked): Query<PeopleQuery>,
) -> PageResult {
    show(&pages, &id, asked.tenant(), None).await
}

async fn show(pages: &Pages, id: &str, tenant: Option<&str>, mistake: Option<&str>) -> PageResult {
    let (governor, erasures) = governed(pages)?;
    let subject = Subject::canonical(id, tenant);
    let holdings = erasures.eraser().stores().holdings(&subject).await?;
    let now_ms = pages.console.clock.now_ms();
    let is_erased = governor.is_erased(&subject);
    let content = html! {
        h1 { (id) }
        p.faint {
            "Known as " code { (subject.id) }
            @match &subject.tenant {
                Some(tenant) => { " of " code { (tenant) } },
                None => " in all schools",
            }
            ". " (counted(holdings.len() as u64, "place holds", "places hold")) " data about this person."
        }
        @if is_erased {
            div.note {
                p { "This person was erased: writes about them are refused. "
                    code { "kstone subject admit " (subject.id) } " lets them in again." }
            }
        }
        @if holdings.is_empty() {
            (empty_state("Nothing is kept about this person.", &html! {
                p { "Ids are looked up as written; " code { "student_12345" } " and " code { "12345" }
                    " are the same person. " a href="/people" { "Look up somebody else" } }
            }))
        } @else {
            div.actions {
                a.button href=(links::export(id, tenant)) download { "Export as JSON" }
                a.button.quiet href=(links::learner(id)) { "Learner's page" }
            }
            section { h2 { "What is kept" } (kept(&holdings, now_ms)) }
        }
        section #erase { h2 { "Erase" } (erase_form(id, tenant, mistake)) }
    };
    Ok(page(&Layout::below(id, Section::People, &[]), &content))
}

fn kept(holdings: &[PersonalDataLocation], now_ms: u64) -> Markup {
    let mut by_pattern: BTreeMap<&str, (u64, Option<u64>)> = BTreeMap::new();
    for holding in holdings {
        let (places, last_end) = by_pattern.entry(&holding.pattern).or_insert((0, Some(0)));
        *places += 1;
        // One that never ends is later than all.
        *last_end = last_end.zip(holding.expires_at_ms).map(|(one, other)| one.max(other));
    }
    html! {
        (table("What is kept, by pattern", &[Text("Pattern"), Number("Places"), Text("The last ends")], &html! {
            @for (pattern, (places, last_end)) in &by_pattern {
                tr {
                    th scope="row" { a href=(links::pattern(pattern)) { (pattern) } }
                    td.number { (count(*places)) }
                    td { @match last_end { Some(ms) => (ago(*ms, now_ms)), None => "never" } }
                }
            }
        }))
        details {
            summary { "Every place" }
            (places(holdings, now_ms))
        }
    }
}

fn places(holdings: &[PersonalDataLocation], now_ms: u64) -> Markup {
    html! {
        (table("Places that hold data about this person", &[Text("Key"), Text("Where"), Text("Ends")], &html! {
            @for holding in holdings.iter().take(LISTED_MAX) {
                tr {
                    th.key scope="row" {
                        a.mono href=(links::location(&holding.location)) { (name(&holding.location)) }
                    }
                    td.whole {
                        (place(&holding.location))
                        @if holding.is_shared { " " span.pill { "shared" } }
                    }
                    td.whole { @match holding.expires_at_ms { Some(ms) => (ago(ms, now_ms)), None => "never" } }
                }
            }
        }))
        @if holdings.len() > LISTED_MAX {
            p.faint { "The first " (LISTED_MAX) " of " (count(holdings.len() as u64)) "; the export has all." }
        }
    }
}

fn name(location: &Location) -> String {
    match location {
        Location::Key { key, .. } => links::text_of(key),
        Location::Member { key, member, .. } => {
            format!("{} → {}", links::text_of(key), links::text_of(member))
        }
        Location::Item { pk, sk, .. } => {
            let sk = sk.as_ref().map(|sk| format!(":{}", links::text_of(sk))).unwrap_or_default();
            format!("{}{sk}", links::text_of(pk))
        }
    }
}

fn place(location: &Location) -> String {
    match location {
        Location::Key { db, .. } | Location::Member { db, .. } => format!("Redis, database {db}"),
        Location::Item { table, .. } => format!("table {table}"),
    }
}

fn erase_form(id: &str, tenant: Option<&str>, mistake: Option<&str>) -> Markup {
    html! {
        div.card {
            p {
                "Removes every byte about this person from tables, Redis keys, files and checkpoints, and "
                "refuses writes about them from then on. It cannot be undone. A signed receipt remains, "
                "which does not name them."
            }
            @if let Some(mistake) = mistake { p.bad role="alert" #mistake { (mistake) } }
            form.row method="post" action=(links::person(id, tenant)) {
                div.field.grow {
                    label for="confirm" { "Type " code { (id) } " to confirm" }
                    input #confirm name="confirm" required autocomplete="off" spellcheck="false"
                        aria-invalid=[mistake.map(|_| "true")] aria-describedby=[mistake.map(|_| "mistake")];
                }
                button.danger type="submit" { "Erase for good" }
            }
        }
    }
}

/// `POST /people/{id}`: erases.
pub(crate) async fn erase(
    pages: State<Pages>,
    Path(id): Path<String>,
    Query(asked): Query<PeopleQuery>,
    Form(confirmed): Form<EraseForm>,
) -> PageResult<Response> {
    let (_, erasures) = governed(&pages)?;
    if confirmed.confirm.trim() != id {
        let mistake = "That is another name: nothing was erased.";
        let shown = show(&pages, &id, asked.tenant(), Some(mistake)).await?;
        return Ok((axum::http::StatusCode::UNPROCESSABLE_ENTITY, shown).into_response());
    }
    let subject = Subject::canonical(&id, asked.tenant());
    let erasure = erasures.begin(&subject).await?;
    pages.console.note("erasure", None, Some(&erasure)).await;
    Ok(Redirect::to(&links::erasure(&erasure)).into_response())
}

/// `/people/{id}/export`
pub(crate) async fn export(
    pages: State<Pages>,
    Path(id): Path<String>,
    Query(asked): Query<PeopleQuery>,
) -> PageResult<Response> {
    let (_, erasures) = governed(&pages)?;
    let subject = Subject::canonical(&id, asked.tenant());
    let now_ms = pages.console.clock.now_ms();
    let exported = erasures.eraser().stores().export(&subject, now_ms).await?;
    let text = serde_json::to_string_pretty(&exported)
        .map_err(|error| PageError::Failed(error.to_string()))?;
    let about = Some(subject.id.as_str()).filter(|id| check_id("student_id", id).is_ok());
    pages.console.note("export", about, None).await;
    Ok(download(text, "export.json"))
}

/// The name does not say whose: file names end up in logs and in folders of others.
fn download(text: String, name: &str) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    (headers, text).into_response()
}

/// `/erasures/{id}`
pub(crate) async fn erasure(pages: State<Pages>, Path(id): Path<String>) -> PageResult {
    let (progress, is_over) = progress(&pages, &id).await?;
    let content = html! {
        h1 { "Erasure" }
        p.faint { code { (id) } }
        @if is_over { (progress) } @else {
            (live(&format!("/live{}", links::erasure(&id)), 700, &progress))
            noscript { p { "Load this page again to see how far it is." } }
        }
    };
    Ok(page(&Layout::below("Erasure", Section::People, &[]), &content))
}

/// `/live/erasures/{id}`
pub(crate) async fn erasure_fragment(
    pages: State<Pages>,
    Path(id): Path<String>,
) -> PageResult<Response> {
    let (progress, is_over) = progress(&pages, &id).await?;
    let mut response = progress.into_response();
    if is_over {
        let over = (HeaderName::from_static("x-live"), HeaderValue::from_static("over"));
        response.headers_mut().insert(over.0, over.1);
    }
    Ok(response)
}

/// `/erasures/{id}/receipt`
pub(crate) async fn receipt(pages: State<Pages>, Path(id): Path<String>) -> PageResult<Response> {
    let (_, erasures) = governed(&pages)?;
    match erasures.find(&id).await?.map(|record| record.state) {
        Some(ErasureState::Done(signed)) => Ok(download(signed.to_json(), "receipt.json")),
        Some(_) => Err(PageError::NotFound("It is not over: there is no receipt yet.".to_owned())),
        None => Err(PageError::NotFound(format!("There is no erasure {id}."))),
    }
}

async fn progress(pages: &Pages, id: &str) -> PageResult<(Markup, bool)> {
    let (_, erasures) = governed(pages)?;
    let not_found = || PageError::NotFound(format!("There is no erasure {id}."));
    let record = erasures.find(id).await?.ok_or_else(not_found)?;
    Ok(match record.state {
        ErasureState::Done(signed) => (done(id, &signed), true),
        ErasureState::Running | ErasureState::Sealed(_) => {
            let progress = erasures.progress(id);
            let is_stopped = progress.as_ref().is_some_and(|it| it.stage == Stage::Stopped);
            (running(progress.as_ref(), record.began_ms, pages.console.clock.now_ms()), is_stopped)
        }
    })
}

fn running(progress: Option<&ErasureProgress>, began_ms: u64, now_ms: u64) -> Markup {
    const STEPS: [(Stage, &str); 6] = [
        (Stage::Waiting, "Waits for its turn"),
        (Stage::Refusing, "Refuses writes about the person"),
        (Stage::Deleting, "Deletes what is found"),
        (Stage::Purging, "Rewrites files without it"),
        (Stage::Checkpoints, "Clears checkpoints"),
        (Stage::Sealing, "Signs the receipt"),
    ];
    let at = progress.and_then(|it| STEPS.iter().position(|(stage, _)| *stage == it.stage));
    html! {
        p { span.pill.warn { "running" } " It began " (ago(began_ms, now_ms)) "." }
        @if let Some(problem) = progress.and_then(|it| it.problem.as_deref()) {
            div.note.bad role="alert" {
                p { "It could not go on: " (problem) }
                p { "It goes on when it is asked for again, or when the server starts again." }
            }
        } @else {
            ol.steps {
                @for (nth, (_, name)) in STEPS.iter().enumerate() {
                    @let class = match at {
                        Some(at) if nth < at => "done",
                        Some(at) if nth == at => "now",
                        _ => "later",
                    };
                    li class=(class) aria-current=[(class == "now").then_some("step")] { (name) }
                }
            }
        }
        @if let Some(it) = progress {
            p.faint {
                (counted(it.places, "place", "places")) " found"
                @if it.checkpoints > 0 { ", checkpoint " (it.checkpoints_done) " of " (it.checkpoints) }
            }
        }
    }
}

fn done(id: &str, signed: &SignedReceipt) -> Markup {
    let receipt = &signed.receipt;
    let purge = &receipt.purge;
    html! {
        p { span.pill.good { "done" } " Every byte is gone. The receipt says so, and not whose they were." }
        div.actions { a.button href={ (links::erasure(id)) "/receipt" } download { "Download the receipt" } }
        div.columns {
            section.card {
                h2 { "What was done" }
                dl.facts {
                    dt { "Began" } dd { (moment(receipt.began_ms)) }
                    dt { "Finished" } dd { (moment(receipt.finished_ms)) }
                    dt { "Records removed" } dd { (count(purge.records)) }
                    dt { "Stripes rewritten" } dd { (count(purge.stripes)) ", " (bytes(purge.read_bytes)) " read" }
                    dt { "Checkpoints cleared" } dd { (count(purge.checkpoints)) }
                    dt { "Files took" } dd { (micros(purge.took_ms.saturating_mul(1000))) }
                    dt { "Writes" } dd { "from number " (count(receipt.first_seq)) " to " (count(receipt.last_seq)) }
                }
                @if !purge.missing_checkpoints.is_empty() {
                    div.note.warn {
                        p { "These checkpoints are not where they were made. If they were moved, they have to "
                            "be purged where they are:" }
                        @for path in &purge.missing_checkpoints { p { code { (path) } } }
                    }
                }
            }
            section.card {
                h2 { "By pattern" }
                @if receipt.patterns.is_empty() { p.faint { "Nothing was there." } } @else {
                    (table("Removed by pattern", &[Text("Pattern"), Number("Deleted"), Number("Changed")], &html! {
                        @for (pattern, it) in &receipt.patterns {
                            tr {
                                th scope="row" { (pattern) }
                                td.number { (count(it.deleted)) }
                                td.number { (count(it.changed)) }
                            }
                        }
                    }))
                }
            }
        }
        section {
            h2 { "The receipt" }
            p.faint { "Anyone who knows the id can check that the receipt is genuine and about it: "
                code { "kstone erase verify-receipt" } " does." }
            @if let Ok(value) = serde_json::from_str(&signed.to_json()) { (json::pretty(&value)) }
        }
    }
}
