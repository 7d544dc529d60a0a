//! `/data`: what is stored, as it is stored.

mod cursor;
pub(crate) mod items;
pub(crate) mod keys;

use axum::extract::State;
use kstone_ports::items::{KeyAttribute, TableDescription, TtlState};
use maud::{Markup, html};

use super::error::PageResult;
use super::figures::{bytes, count};
use super::layout::Column::{Number, Text};
use super::layout::{Layout, Section, empty_state, page, table};
use super::{Pages, links};

/// What the names of the database's own tables begin with.
const OWN_PREFIX: &str = "kstone.";

/// `/data`
pub(crate) async fn show(pages: State<Pages>) -> PageResult {
    let items = &pages.console.items;
    let mut tables = Vec::new();
    for name in items.tables().await? {
        match items.describe(&name).await {
            Ok(description) => tables.push(description),
            // It was dropped meanwhile.
            Err(kstone_ports::Error::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // What the database keeps for itself is shown apart: it is read, and nothing to work with.
    let (own, tables): (Vec<_>, Vec<_>) =
        tables.into_iter().partition(|it| it.spec.name.starts_with(OWN_PREFIX));
    let content = html! {
        h1 { "Data" }
        p.faint { "Tables of items and keys of Redis, as they are stored." }
        section {
            h2 { "Tables" }
            @if tables.is_empty() {
                (empty_state("No table yet.", &html! {
                    p { "Make one at the DynamoDB door, or keep state by a catalogue: then its table "
                        "is made for you." }
                }))
            } @else { (list("Tables", &tables)) }
        }
        section {
            h2 { "Redis keys" }
            (keys::search(0, ""))
        }
        @if !own.is_empty() {
            section {
                h2 { "The database's own tables" }
                p.faint { "Counts of keys, the index of persons, erasures." }
                (list("The database's own tables", &own))
            }
        }
    };
    Ok(page(&Layout::new("Data", Some(Section::Data)), &content))
}

fn list(caption: &str, tables: &[TableDescription]) -> Markup {
    let columns = [Text("Table"), Text("Key"), Text("Ends by"), Number("Items"), Number("Bytes")];
    let rows = html! {
        @for it in tables {
            tr {
                th scope="row" { a href=(links::table(&it.spec.name)) { (it.spec.name) } }
                td { (key(&it.spec.key.hash, &it.spec.key.range)) }
                td {
                    @match &it.ttl {
                        TtlState::On(name) | TtlState::Enabling(name) => { code { (name) } },
                        _ => "–",
                    }
                }
                td.number { (count(it.items)) }
                td.number { (bytes(it.bytes)) }
            }
        }
    };
    table(caption, &columns, &rows)
}

fn key(hash: &[KeyAttribute], range: &[KeyAttribute]) -> Markup {
    html! {
        @for (nth, attribute) in hash.iter().chain(range).enumerate() {
            @if nth > 0 { ", " }
            code { (attribute.name) } " " small { (attribute.kind.name()) }
        }
    }
}
