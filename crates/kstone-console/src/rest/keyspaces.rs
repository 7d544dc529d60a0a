//! The declared patterns of keys, with the number and size of the keys of each.

use std::sync::Arc;

use axum::Json;
use kstone_keyspace::{Governor, Store};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Result;
use super::problem::{Code, Problem};
use crate::console::{Console, ConsoleState};

/// All patterns that are in force.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Keyspaces {
    /// The patterns, in the order of their catalogues.
    patterns: Vec<PatternRow>,
    /// By how many changes all counts together may be off; 0 is exact.
    off_by_changes_max: u64,
    /// Writes to keys that no pattern declares.
    unknown_writes: u64,
    /// Some of those keys.
    unknown_examples: Vec<String>,
}

/// A pattern, and what there is of it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct PatternRow {
    /// Its application and name: `mastery.daily_mastery`.
    name: String,
    /// Its keys: `student:{student_id}:mastery:{date}`.
    pattern: String,
    /// What it is for.
    description: String,
    /// `redis`, or the table.
    store: String,
    /// What its keys hold.
    value_type: String,
    /// How long its keys live.
    ttl: String,
    /// How many keys there are.
    keys: u64,
    /// Bytes of keys and values as they are stored, before compression.
    bytes: u64,
    /// About how many keys end within the next hour.
    expiring_next_hour: u64,
    /// Writes per second, as a mean over about a minute.
    writes_per_second: f64,
}

pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new().routes(routes!(keyspaces))
}

/// Every declared pattern of keys with counts, sizes and times to live
#[utoipa::path(get, path = "/keyspaces", tag = "data", responses((status = OK, body = Keyspaces)))]
async fn keyspaces(console: ConsoleState) -> Result<Json<Keyspaces>> {
    let governor = governor(&console)?;
    let metrics = governor.metrics();
    let patterns = governor.keyspace().patterns().iter();
    let patterns = patterns
        .map(|pattern| {
            let name = pattern.full_name();
            let usage = metrics.usage(&name).unwrap_or_default();
            PatternRow {
                pattern: pattern.to_string(),
                description: pattern.description.clone(),
                store: match &pattern.store {
                    Store::Redis => "redis".to_owned(),
                    Store::Table(table) => table.to_string(),
                },
                value_type: pattern.value_type.to_string(),
                ttl: pattern.ttl.to_string(),
                keys: usage.keys,
                bytes: usage.bytes,
                expiring_next_hour: usage.expiring_next_hour,
                writes_per_second: usage.writes_per_second,
                name,
            }
        })
        .collect();
    Ok(Json(Keyspaces {
        patterns,
        off_by_changes_max: metrics.off_by_changes_max,
        unknown_writes: metrics.unknown.writes,
        unknown_examples: metrics.unknown.examples,
    }))
}

/// The keyspace in force.
pub(super) fn governor(console: &Console) -> Result<&Arc<Governor>> {
    console.governor.as_ref().ok_or_else(|| {
        Problem::new(
            Code::PlatformOff,
            "no keyspace is in force: start the server with --keyspace shipped, or a catalogue of \
             your own",
        )
    })
}
