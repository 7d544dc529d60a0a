//! Deserialises events from JSON.
//!
//! An event is flat: what happened stands beside who and when. Read the obvious way, each would be
//! gathered in pieces first and taken apart afterwards, and errors would not say where they are. So
//! all fields that any kind has are read at once, and the kind says which of them must be there.

use serde::Deserialize;

use super::event::{EventDetail, LearningEvent};
use super::results::Components;
use kstone_base::field::{Invalid, Problem};
use kstone_base::time::Moment;

#[derive(Deserialize)]
pub(super) struct Wire {
    event_id: String,
    student_id: String,
    school_id: Option<String>,
    occurred_at: Moment,
    #[serde(rename = "type")]
    kind: Kind,
    lesson_id: Option<String>,
    fraction: Option<f64>,
    skill_id: Option<String>,
    item_id: Option<String>,
    correct: Option<bool>,
    took_ms: Option<u32>,
    error_kind: Option<String>,
    quiz_id: Option<String>,
    score: Option<f64>,
    task_id: Option<String>,
    quality: Option<f64>,
    passed: Option<bool>,
    minutes: Option<f64>,
    components: Option<Components>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    LessonProgress,
    Answer,
    QuizFinished,
    WorkReviewed,
    CodeRun,
    Stuck,
    Visit,
    Assessed,
}

impl TryFrom<Wire> for LearningEvent {
    type Error = Invalid;

    fn try_from(wire: Wire) -> Result<LearningEvent, Invalid> {
        let Wire { error_kind, took_ms, .. } = wire;
        let what = match wire.kind {
            Kind::LessonProgress => EventDetail::LessonProgress {
                lesson_id: there("lesson_id", wire.lesson_id)?,
                fraction: there("fraction", wire.fraction)?,
            },
            Kind::Answer => EventDetail::Answer {
                skill_id: there("skill_id", wire.skill_id)?,
                item_id: there("item_id", wire.item_id)?,
                correct: there("correct", wire.correct)?,
                took_ms,
                error_kind,
            },
            Kind::QuizFinished => EventDetail::QuizFinished {
                quiz_id: there("quiz_id", wire.quiz_id)?,
                score: there("score", wire.score)?,
            },
            Kind::WorkReviewed => EventDetail::WorkReviewed {
                task_id: there("task_id", wire.task_id)?,
                quality: there("quality", wire.quality)?,
            },
            Kind::CodeRun => EventDetail::CodeRun {
                task_id: there("task_id", wire.task_id)?,
                passed: there("passed", wire.passed)?,
                error_kind,
            },
            Kind::Stuck => EventDetail::Stuck {
                task_id: there("task_id", wire.task_id)?,
                minutes: there("minutes", wire.minutes)?,
            },
            Kind::Visit => EventDetail::Visit {},
            Kind::Assessed => {
                EventDetail::Assessed { components: there("components", wire.components)? }
            }
        };
        let Wire { event_id, student_id, school_id, occurred_at, .. } = wire;
        Ok(LearningEvent { event_id, student_id, school_id, occurred_at, what })
    }
}

fn there<T>(field: &str, value: Option<T>) -> Result<T, Invalid> {
    value.ok_or_else(|| Invalid::new(field, Problem::Missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(rest: &str) -> String {
        let json = format!(
            r#"{{"event_id":"e","student_id":"s","occurred_at":"2026-01-14T10:30:00Z",{rest}}}"#
        );
        serde_json::from_str::<LearningEvent>(&json).unwrap_err().to_string()
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let found = problem(r#""type":"lesson_progress","lesson_id":"l""#);
        assert!(found.contains("fraction is missing"), "{found}");
        let found = problem(r#""type":"answer","skill_id":"s","item_id":"i","correct":null"#);
        assert!(found.contains("correct is missing"), "{found}");
        let found = problem(r#""type":"nap""#);
        assert!(found.contains("`nap`") && found.contains("`visit`"), "{found}");
        let found = problem(r#""minutes":3"#);
        assert!(found.contains("`type`"), "{found}");
    }

    #[test]
    fn fields_that_the_kind_does_not_have_are_ignored() {
        let json = r#"{"type":"visit","event_id":"e","student_id":"s","minutes":3,"more":{},"occurred_at":"2026-01-14T10:30:00Z"}"#;
        let event: LearningEvent = serde_json::from_str(json).unwrap();
        assert_eq!(event.what, EventDetail::Visit {});
    }
}
