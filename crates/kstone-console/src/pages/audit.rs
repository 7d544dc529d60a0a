//! `/audit`: who did what to whose data, day by day.

use axum::extract::{Query, State};
use kstone_base::audit::AuditEntry;
use kstone_base::page::PageRequest;
use kstone_keyspace::Date;
use maud::{Markup, html};
use serde::Deserialize;

use super::error::{PageError, PageResult};
use super::figures::moment;
use super::layout::Column::Text;
use super::layout::{Layout, Section, empty_state, page, table};
use super::{Pages, links};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct AuditQuery {
    #[serde(default)]
    date: String,
    #[serde(default)]
    after: String,
}

/// `/audit`
pub(crate) async fn show(pages: State<Pages>, Query(query): Query<AuditQuery>) -> PageResult {
    let today = pages.console.now().date();
    let date: Date = match query.date.trim() {
        "" => today,
        date => date
            .parse()
            .map_err(|_| PageError::Refused(format!("{date} is no day: write it as {today}.")))?,
    };
    let cursor = Some(query.after).filter(|after| !after.is_empty());
    let log = pages.platform()?.audit.of_day(date, &PageRequest { limit: 100, cursor }).await?;
    let content = html! {
        h1 { "Audit" }
        p.faint { "Who did what to whose data. Entries are kept for a year; who is erased is erased here too." }
        form.row method="get" action="/audit" {
            div.field {
                label for="date" { "Day" }
                input #date type="date" name="date" value=(date) max=(today);
            }
            button type="submit" { "Show" }
            a.button.quiet href={ "/audit?date=" (date.plus_days(-1)) } { "Day before" }
            @if date < today { a.button.quiet href={ "/audit?date=" (date.plus_days(1)) } { "Day after" } }
        }
        @if log.items.is_empty() {
            (empty_state(&format!("Nothing was noted on {date}."), &html! {
                p { "Exports, erasures, changes of consent and of profiles are noted here." }
            }))
        } @else {
            (rows(&log.items))
            @if let Some(next) = &log.next {
                div.actions {
                    a.button.quiet rel="next" href={ "/audit?date=" (date) "&after=" (links::part(next)) } { "Earlier" }
                }
            }
        }
    };
    Ok(page(&Layout::new("Audit", Some(Section::Audit)), &content))
}

fn rows(entries: &[AuditEntry]) -> Markup {
    let columns = [Text("When"), Text("What"), Text("By"), Text("About"), Text("Detail")];
    let rows = html! {
        @for entry in entries {
            tr {
                th scope="row" { (moment(entry.at.epoch_ms())) }
                td { (entry.action) }
                td { (entry.actor.as_deref().unwrap_or("–")) }
                td {
                    @match &entry.student_id {
                        Some(id) => a href=(links::person(id, None)) { (id) },
                        None => "–",
                    }
                }
                td { (entry.detail.as_deref().unwrap_or_default()) }
            }
        }
    };
    table("What was done, the newest first", &columns, &rows)
}
