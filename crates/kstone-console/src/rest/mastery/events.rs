//! What learners did: one event, or up to a hundred.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use kstone_mastery::domain::LearningEvent;
use kstone_mastery::engine::Ingested;
use serde::Serialize;
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::console::{Console, ConsoleState};
use crate::rest::Result;
use crate::rest::extract::{Body, misfit};
use crate::rest::problem::{ErrorDetail, Problem};

/// Events of one request, at most.
const EVENTS_MAX: usize = 100;

/// An event, or a list of them.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Events)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes the body, which is read by hand to name what is wrong")]
enum EventsBody {
    /// One.
    One(LearningEvent),
    /// Up to a hundred, each for itself.
    Many(Vec<LearningEvent>),
}

/// What came of the events of a list, in their order.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct IngestedMany {
    /// One for each event.
    results: Vec<IngestedRow>,
    /// How many were taken in, those that had been taken in before included.
    accepted: usize,
    /// How many were refused.
    refused: usize,
}

/// What came of one event of a list: `result`, or why there is none.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct IngestedRow {
    /// Which event, if it has an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<String>,
    /// What it came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Ingested>,
    /// Why it was refused. The others are not held up by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorDetail>,
}

/// What came of one event, or of each of a list.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = IngestedEvents)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes the two forms of the answer")]
enum IngestedBody {
    /// Of one.
    One(Ingested),
    /// Of a list.
    Many(IngestedMany),
}

pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new().routes(routes!(ingest))
}

/// Takes in what learners did: an event, or a list of up to a hundred
///
/// An event counts once, however often it is sent: its `event_id` says which it is. Of a list each
/// event is taken in or refused for itself; the answer says what became of each.
#[utoipa::path(post, path = "/events", tag = "events", request_body = EventsBody,
    responses((status = OK, body = IngestedBody)))]
async fn ingest(console: ConsoleState, Body(body): Body<Value>) -> Result<Response> {
    let engine = &console.platform()?.mastery;
    let Value::Array(events) = body else {
        let ingested = engine.ingest(&event_of(body)?).await?;
        return Ok(Json(ingested).into_response());
    };
    if !(1..=EVENTS_MAX).contains(&events.len()) {
        let what = format!("a list has 1 to {EVENTS_MAX} events, not {}", events.len());
        return Err(Problem::invalid("events", what));
    }
    let mut results = Vec::with_capacity(events.len());
    let mut good = Vec::with_capacity(events.len());
    for event in events {
        let event_id = event.get("event_id").and_then(Value::as_str).map(str::to_owned);
        let error = match event_of(event) {
            Ok(event) => {
                good.push((results.len(), event));
                None
            }
            Err(problem) => Some(problem.into()),
        };
        results.push(IngestedRow { event_id, result: None, error });
    }
    let (places, good): (Vec<usize>, Vec<LearningEvent>) = good.into_iter().unzip();
    for (place, ingested) in places.into_iter().zip(engine.ingest_many(&good).await) {
        let Some(row) = results.get_mut(place) else { continue };
        match ingested {
            Ok(ingested) => row.result = Some(ingested),
            Err(error) => row.error = Some(Problem::from(error).into()),
        }
    }
    let refused = results.iter().filter(|row| row.error.is_some()).count();
    let accepted = results.len() - refused;
    Ok(Json(IngestedMany { results, accepted, refused }).into_response())
}

/// Reads an event. What kind of event it is decides which fields it has, and serde no longer knows
/// their names when one has the wrong type: so they are looked at here.
fn event_of(value: Value) -> Result<LearningEvent> {
    let Value::Object(fields) = &value else {
        return Err(Problem::invalid("events", "an event is an object"));
    };
    for (name, value) in fields {
        let (is_so, expected) = match name.as_str() {
            "fraction" | "score" | "quality" | "minutes" => (value.is_number(), "a number"),
            "correct" | "passed" => (value.is_boolean(), "true or false"),
            "took_ms" => {
                let is_so =
                    value.is_null() || value.as_u64().is_some_and(|it| it <= u32::MAX.into());
                (is_so, "a whole number of milliseconds")
            }
            "school_id" | "error_kind" => (value.is_null() || value.is_string(), "a text"),
            "type" => (value.is_string(), "a text"),
            name if name.ends_with("_id") || name == "occurred_at" => (value.is_string(), "a text"),
            _ => (true, ""),
        };
        if !is_so {
            return Err(Problem::invalid(name.clone(), format!("must be {expected}")));
        }
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (path, message) = (error.path().to_string(), error.inner().to_string());
        match message.starts_with("unknown variant") {
            true => Problem::invalid("type", message),
            false => misfit(&path, &message),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_with_an_event_is_named() {
        let good = json!({"event_id": "e1", "student_id": "s1", "occurred_at": "2026-01-14T10:30:00Z",
                          "type": "lesson_progress", "lesson_id": "l1", "fraction": 0.5});
        assert!(event_of(good.clone()).is_ok());
        let wrong = |name: &str, value: Value| {
            let mut event = good.clone();
            match value.is_null() {
                true => event.as_object_mut().unwrap().remove(name),
                false => event.as_object_mut().unwrap().insert(name.to_owned(), value),
            };
            event_of(event).unwrap_err().field.map(std::borrow::Cow::into_owned)
        };
        for name in ["event_id", "student_id", "occurred_at", "type", "lesson_id", "fraction"] {
            assert_eq!(wrong(name, Value::Null).as_deref(), Some(name), "missing");
            assert_eq!(wrong(name, json!([])).as_deref(), Some(name), "of another type");
        }
        assert_eq!(wrong("type", json!("nonsense")).as_deref(), Some("type"));
        assert_eq!(wrong("took_ms", json!(-1)).as_deref(), Some("took_ms"));
        assert_eq!(wrong("occurred_at", json!("yesterday")).as_deref(), Some("occurred_at"));
    }
}
