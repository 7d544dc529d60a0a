//! `/`: doors, traffic, latency, memory, disk, and the 256 stripes.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::Pages;
use super::charts::{heat_map, sparkline};
use super::figures::{bytes, count, counted, micros, percent, rate, span};
use super::layout::Column::{Number, Text};
use super::layout::{Layout, Section, empty_state, live, page, table, tile};
use crate::server_status::{EngineStatus, SECONDS_KEPT, StripeStatus, Traffic};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct OverviewQuery {
    #[serde(default)]
    by: String,
}

/// What the stripes are coloured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Data,
    Records,
    Files,
    Reads,
    Writes,
}

impl Measure {
    const ALL: [Measure; 5] =
        [Measure::Data, Measure::Records, Measure::Files, Measure::Reads, Measure::Writes];

    fn of(name: &str) -> Measure {
        let is = |it: &Measure| it.name() == name;
        Measure::ALL.into_iter().find(is).unwrap_or(Measure::Data)
    }

    fn name(self) -> &'static str {
        match self {
            Measure::Data => "data",
            Measure::Records => "records",
            Measure::Files => "files",
            Measure::Reads => "reads",
            Measure::Writes => "writes",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Measure::Data => "Data",
            Measure::Records => "Records",
            Measure::Files => "Files",
            Measure::Reads => "Reads",
            Measure::Writes => "Writes",
        }
    }

    fn value(self, stripe: &StripeStatus) -> u64 {
        match self {
            Measure::Data => stripe.data_bytes,
            Measure::Records => stripe.records,
            Measure::Files => stripe.files,
            Measure::Reads => stripe.gets,
            Measure::Writes => stripe.writes,
        }
    }

    fn show(self, value: u64) -> String {
        match self {
            Measure::Data => bytes(value),
            _ => count(value),
        }
    }
}

/// `/`
pub(crate) async fn show(pages: State<Pages>, Query(choice): Query<OverviewQuery>) -> Markup {
    let by = Measure::of(&choice.by);
    let status = &pages.console.status;
    let up_ms = pages.console.clock.now_ms().saturating_sub(status.started_at_ms());
    let place = status.place();
    let content = html! {
        h1 { "Overview" }
        p.faint {
            @if !place.is_empty() { "Data in " code { (place) } ". " }
            @if status.started_at_ms() > 0 { "Serving for " (span(up_ms)) "." }
        }
        (live(&format!("/live/overview?by={}", by.name()), 2000, &now(&pages, by)))
    };
    page(&Layout::new("Overview", Some(Section::Overview)), &content)
}

/// `/live/overview`
pub(crate) async fn fragment(pages: State<Pages>, Query(choice): Query<OverviewQuery>) -> Markup {
    now(&pages, Measure::of(&choice.by))
}

fn now(pages: &Pages, by: Measure) -> Markup {
    let (traffic, engine) = (pages.history.traffic(), pages.console.status.engine());
    html! {
        (tiles(&traffic, &engine))
        section { h2 { "Doors" } (doors(&traffic)) }
        section {
            div.head {
                h2 #stripes { "The " (engine.stripes.len().max(256)) " stripes" }
                ul.tabs {
                    @for it in Measure::ALL {
                        @let here = (it == by).then_some("true");
                        li { a href={ "/?by=" (it.name()) "#stripes" } aria-current=[here] { (it.title()) } }
                    }
                }
            }
            div.columns {
                div.card { (stripes(&engine, by)) }
                div.card { (facts(&engine)) }
            }
        }
    }
}

fn tiles(traffic: &[Traffic], engine: &EngineStatus) -> Markup {
    let all = sum(traffic);
    let now: f64 = traffic.iter().map(|it| it.now_per_second).sum();
    let slowest = |q: f64| traffic.iter().filter_map(|it| it.minute.quantile_us(q)).max();
    let took = |us: Option<u64>| us.map_or("–".to_owned(), |us| format!("≤ {}", micros(us)));
    let memory = engine.memtable_bytes + engine.cache_bytes;
    let seconds = SECONDS_KEPT / 60;
    html! {
        div.tiles {
            (tile("Operations per second", &rate(now), &html! {
                (sparkline(&all, &format!("Operations per second over {seconds} minutes")))
            }))
            (tile("Half are answered in", &took(slowest(0.5)), &html! {
                span.more {
                    @match slowest(0.99) {
                        Some(us) => { "99 of 100 in ≤ " (micros(us)) ", at the slowest door, last minute" },
                        None => "no operation in the last minute",
                    }
                }
            }))
            (tile("Memory", &bytes(engine.process_memory_bytes.unwrap_or(memory)), &html! {
                span.more {
                    (bytes(memory)) " of " (bytes(engine.memory_budget_bytes)) " for data"
                }
            }))
            (tile("On disk", &bytes(engine.file_bytes + engine.log_bytes), &html! {
                span.more { (counted(engine.files, "file", "files")) ", log " (bytes(engine.log_bytes)) }
            }))
            (tile("Records", &count(engine.records), &html! {
                span.more { (bytes(engine.data_bytes)) " before compression" }
            }))
        }
    }
}

/// All doors together, second by second; those that opened later count from then on.
fn sum(traffic: &[Traffic]) -> Vec<f64> {
    let seconds = traffic.iter().map(|it| it.per_second.len()).max().unwrap_or(0);
    let mut sums = vec![0.0; seconds];
    for it in traffic {
        for (sum, value) in sums.iter_mut().rev().zip(it.per_second.iter().rev()) {
            *sum += value;
        }
    }
    sums
}

fn doors(traffic: &[Traffic]) -> Markup {
    if traffic.is_empty() {
        return empty_state(
            "No door is open.",
            &html! { p { "This process serves only the console." } },
        );
    }
    let took = |us: Option<u64>| us.map_or("–".to_owned(), micros);
    let columns = [
        Text("Door"),
        Text("Durability"),
        Number("Connections"),
        Number("Per second"),
        Text("Five minutes"),
        Number("50 %"),
        Number("99 %"),
        Number("Since the start"),
    ];
    let rows = html! {
        @for it in traffic {
            @let door = &it.door;
            tr {
                th.whole scope="row" { (door.name) div.faint { code { (door.address) } } }
                td { (door.durability) }
                td.number { (count(door.reading.connections)) }
                td.number { (rate(it.now_per_second)) }
                td { (sparkline(&it.per_second, &format!("Operations per second at {}", door.name))) }
                td.number { (took(it.minute.quantile_us(0.5))) }
                td.number { (took(it.minute.quantile_us(0.99))) }
                td.number { (count(door.reading.operations)) }
            }
        }
    };
    table("Doors", &columns, &rows)
}

fn stripes(engine: &EngineStatus, by: Measure) -> Markup {
    let values: Vec<u64> = engine.stripes.iter().map(|stripe| by.value(stripe)).collect();
    if values.is_empty() {
        return html! { p.faint { "This process does not say what its stripes hold." } };
    }
    heat_map(&values, by.title(), |value| by.show(value))
}

fn facts(engine: &EngineStatus) -> Markup {
    let per_sync = engine.commits as f64 / engine.syncs.max(1) as f64;
    html! {
        h3 { "Since it was opened" }
        dl.facts {
            dt { "Last write" } dd { "number " (count(engine.sequence)) }
            dt { "Commits" } dd { (count(engine.commits)) }
            dt { "Syncs" }
            dd {
                (count(engine.syncs))
                @if engine.syncs > 0 {
                    ", " (format!("{per_sync:.1}")) " commits each; half in ≤ " (micros(engine.sync_us_p50))
                    ", 99 % in ≤ " (micros(engine.sync_us_p99))
                }
            }
            dt { "Written for each byte" } dd { (format!("{:.1}", engine.write_amplification)) }
            dt { "Found in memory" }
            dd { (engine.cache_hit_rate.map_or("–".to_owned(), |it| format!("{} of blocks", percent(it)))) }
            dt { "Writers that had to wait" } dd { (count(engine.stalls)) }
            dt { "Memory" }
            dd { (bytes(engine.memtable_bytes)) " not in files yet, " (bytes(engine.cache_bytes)) " of blocks" }
        }
    }
}
