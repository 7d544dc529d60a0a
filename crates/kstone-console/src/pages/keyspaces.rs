//! `/keyspaces`: every declared pattern, with its number of keys and its size.

use axum::extract::{Path, State};
use kstone_keyspace::{Governor, Metrics, OverflowAction, Pattern, PatternMetrics, Store, Usage};
use maud::{Markup, html};

use super::error::{PageError, PageResult};
use super::figures::{bytes, count, counted, rate};
use super::layout::Column::{Number, Text};
use super::layout::{Layout, Section, empty_state, live, page, table, tile};
use super::{Pages, links};

/// `/keyspaces`
pub(crate) async fn list(pages: State<Pages>) -> Markup {
    let content = html! {
        h1 { "Keyspaces" }
        p.faint { "Every declared pattern of keys, and what there is of it." }
        (live("/live/keyspaces", 5000, &patterns(&pages)))
    };
    page(&Layout::new("Keyspaces", Some(Section::Keyspaces)), &content)
}

/// `/live/keyspaces`
pub(crate) async fn fragment(pages: State<Pages>) -> Markup {
    patterns(&pages)
}

/// How a keyspace is put in force.
pub(crate) fn how_to_declare() -> Markup {
    html! {
        p {
            "Start the server with " code { "kstone serve --keyspace shipped" } " for the catalogues of the "
            "learning platform, or with a file of your own. It is remembered from then on."
        }
    }
}

fn patterns(pages: &Pages) -> Markup {
    let Some(governor) = &pages.console.governor else {
        return empty_state("No keyspace is in force: keys are not counted.", &how_to_declare());
    };
    let metrics = governor.metrics();
    html! {
        (summary(governor, &metrics))
        @for catalogue in governor.keyspace().catalogues() {
            section {
                h2 { (catalogue.application) }
                p.faint { (sentence(&catalogue.description)) }
                (rows(&catalogue.application, catalogue.patterns.iter(), &metrics))
            }
        }
    }
}

fn summary(governor: &Governor, metrics: &Metrics) -> Markup {
    let total = |of: fn(&PatternMetrics) -> u64| metrics.patterns.iter().map(of).sum::<u64>();
    let patterns = governor.keyspace().patterns().len() as u64;
    let writes: f64 = metrics.patterns.iter().map(|it| it.writes_per_second).sum();
    html! {
        div.tiles {
            (tile("Patterns", &count(patterns), &html! {}))
            (tile("Keys", &count(total(|it| it.keys)), &html! {}))
            (tile("Bytes", &bytes(total(|it| it.bytes)), &html! {}))
            (tile("Ending within an hour", &count(total(|it| it.expiring_next_hour.likely)), &html! {}))
            (tile("Writes per second", &rate(writes), &html! {}))
        }
        @if metrics.off_by_changes_max > 0 {
            p.note.warn {
                "After a crash the counts may be off by up to "
                (counted(metrics.off_by_changes_max, "change", "changes")) ". "
                code { "kstone keyspace recount" } " makes them exact."
            }
        }
        @if metrics.unknown.writes > 0 {
            div.note.warn {
                p { (counted(metrics.unknown.writes, "write", "writes")) " to keys that no pattern declares." }
                @for example in &metrics.unknown.examples { p { code { (example) } } }
            }
        }
    }
}

fn rows<'p>(
    application: &str,
    patterns: impl Iterator<Item = &'p Pattern>,
    metrics: &Metrics,
) -> Markup {
    let columns = [
        Text("Pattern"),
        Text("Where"),
        Text("Type"),
        Text("Lives"),
        Number("Keys"),
        Number("Bytes"),
        Number("Ending in 1 h"),
        Number("Writes/s"),
    ];
    let rows = html! {
        @for pattern in patterns {
            @let used = metrics.usage(&pattern.full_name()).unwrap_or_default();
            tr class=[(used == Usage::default()).then_some("unused")] {
                th.key scope="row" {
                    a.mono href=(links::pattern(&pattern.full_name())) { (pattern) }
                }
                td.whole { (pattern.store) }
                td { (pattern.value_type) }
                td { (pattern.ttl) }
                td.number { (count(used.keys)) }
                td.number { (bytes(used.bytes)) }
                td.number { (count(used.expiring_next_hour)) }
                td.number { (rate(used.writes_per_second)) }
            }
        }
    };
    table(&format!("Patterns of {application}"), &columns, &rows)
}

/// `/keyspaces/{pattern}`
pub(crate) async fn one(pages: State<Pages>, Path(name): Path<String>) -> PageResult {
    let not_found = || PageError::NotFound(format!("No pattern is called {name}."));
    let governor = pages.console.governor.as_ref().ok_or_else(not_found)?;
    let pattern = governor.keyspace().pattern(&name).ok_or_else(not_found)?;
    let metrics = governor.metrics();
    let places: Vec<&PatternMetrics> = metrics
        .patterns
        .iter()
        .filter(|it| it.pattern == name && it.writes + it.keys > 0)
        .collect();
    let title = pattern.full_name();
    let content = html! {
        h1 { (title) }
        p.lead { code { (pattern) } }
        p { (sentence(&pattern.description)) }
        div.columns {
            div.card { h2 { "What is declared" } (declared(pattern)) }
            div.card { h2 { "What there is" } (metrics_table(&places)) @if !places.is_empty() { (browse(pattern)) } }
        }
        @if !pattern.fields.is_empty() { section { h2 { "Fields" } (fields(pattern)) } }
        @if !pattern.examples.is_empty() {
            section {
                h2 { "Examples" }
                ul.plain { @for example in &pattern.examples { li { code { (example.key) } } } }
            }
        }
    };
    Ok(page(&Layout::below(&title, Section::Keyspaces, &[]), &content))
}

fn declared(pattern: &Pattern) -> Markup {
    let tenant = pattern.tenant.and_then(|at| pattern.segments.get(at)?.slot());
    let limits = &pattern.limits;
    html! {
        dl.facts {
            dt { "Where" } dd { (pattern.store) }
            @if let Store::Table(_) = pattern.store { dt { "Partition" } dd { code { (pattern.partition()) } } }
            dt { "Type" } dd { (pattern.value_type) }
            dt { "Lives" } dd { (pattern.ttl) }
            dt { "Whose data" } dd { (pattern.subject.to_string().replace('`', "")) }
            @if let Some(slot) = tenant { dt { "Tenant" } dd { code { "{" (slot.placeholder.name) "}" } } }
            dt { "Counted as" } dd { (pattern.metric) }
            @for placeholder in pattern.placeholders() {
                dt { code { "{" (placeholder.name) "}" } } dd { (placeholder.expected()) }
            }
            dt { "At most" }
            dd {
                "key " (bytes(limits.key_bytes))
                @if let Some(most) = limits.value_bytes { ", value " (bytes(most)) }
                @if let Some(most) = limits.members {
                    ", " (counted(most, "member", "members"))
                    @if limits.over == OverflowAction::Trim { ", then the oldest go" }
                }
            }
            @if let Some(long) = &pattern.short_form_of { dt { "Short for" } dd { code { (long) } } }
            @if !pattern.written { dt { "Writes" } dd { "none: it is only read" } }
        }
    }
}

fn metrics_table(places: &[&PatternMetrics]) -> Markup {
    if places.is_empty() {
        return html! { p.faint { "No key of it was written yet." } };
    }
    html! {
        @for it in places {
            h3 { (it.place) }
            dl.facts {
                dt { "Keys" } dd { (count(it.keys)) }
                dt { "Bytes" } dd { (bytes(it.bytes)) @if it.bytes_are_estimated { " (estimated)" } }
                @if it.members > 0 { dt { "Members" } dd { (count(it.members)) } }
                dt { "Ending in an hour" }
                dd {
                    (count(it.expiring_next_hour.likely))
                    @if it.expiring_next_hour.at_least != it.expiring_next_hour.at_most {
                        " (" (count(it.expiring_next_hour.at_least)) " to "
                        (count(it.expiring_next_hour.at_most)) ")"
                    }
                }
                dt { "Writes" } dd { (count(it.writes)) ", " (rate(it.writes_per_second)) " per second" }
            }
        }
    }
}

/// The way to the keys themselves: those that begin as the pattern does.
fn browse(pattern: &Pattern) -> Markup {
    let text = pattern.to_string();
    let prefix = text.split('{').next().unwrap_or_default();
    let address = match &pattern.store {
        Store::Redis => links::keys(0, prefix),
        Store::Table(table) => {
            let table = table.to_string();
            // A name with a placeholder is several tables.
            if table.contains('{') {
                return html! {};
            }
            format!("{}?pk={}", links::table(&table), links::part(prefix))
        }
    };
    html! { div.actions { a.button.quiet href=(address) { "Look at its keys" } } }
}

fn fields(pattern: &Pattern) -> Markup {
    let columns = [Text("Field"), Text("Holds")];
    let rows = html! {
        @for field in &pattern.fields {
            tr {
                th scope="row" { code { (field.name) } }
                td { (field.kind) @if field.optional { ", or nothing" } }
            }
        }
        @if let Some(others) = &pattern.other_fields {
            tr { th scope="row" { "others" } td { (others) } }
        }
    };
    table("Fields", &columns, &rows)
}

fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}
