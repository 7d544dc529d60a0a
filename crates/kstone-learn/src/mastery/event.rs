//! What a learner did, and the same as the engine accepted it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::model::Components;
use super::score::check_share;
use crate::field::{Invalid, check_id, check_length};
use crate::time::{Date, Moment, Zone};

/// Something that a learner did, as it is sent to the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LearningEvent {
    /// Its name, made by the sender: sent again under the same name it counts once.
    pub event_id: String,
    /// Who did it.
    pub student_id: String,
    /// The learner's school, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub school_id: Option<String>,
    /// When it happened. It decides the learner's day; the order of events is that of acceptance.
    pub occurred_at: Moment,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum What {
    /// The learner got this far in a lesson. Of each lesson the best counts.
    LessonProgress {
        /// Which lesson.
        lesson_id: String,
        /// How far, from 0 to 1.
        fraction: f64,
    },
    /// The learner answered a question.
    Answer {
        /// What the question is about.
        skill_id: String,
        /// Which question.
        item_id: String,
        /// Whether the answer was right.
        correct: bool,
        /// How long it took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u32>,
        /// What kind of mistake it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<String>,
    },
    /// The learner finished a quiz.
    QuizFinished {
        /// Which quiz.
        quiz_id: String,
        /// How much of it was right, from 0 to 1.
        score: f64,
    },
    /// Somebody looked at the learner's work.
    WorkReviewed {
        /// Which task it was for.
        task_id: String,
        /// How good it is, from 0 to 1.
        quality: f64,
    },
    /// The learner ran a program.
    CodeRun {
        /// For which task.
        task_id: String,
        /// Whether it did what it should.
        passed: bool,
        /// What kind of error it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<String>,
    },
    /// The learner does not get further.
    Stuck {
        /// With which task.
        task_id: String,
        /// For how long by now.
        minutes: f64,
    },
    /// The learner was there.
    Visit {},
    /// Somebody says how far the learner is: a teacher, or another system. It replaces what was
    /// known; what comes later moves it on from there.
    Assessed {
        /// How far.
        components: Components,
    },
}

/// An event as it was accepted: with everything else that its effect depends on, so that it has the
/// same effect whenever it is folded again, whatever became of time zones and questions meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AcceptedEvent {
    /// When it was accepted. No two events of a learner have the same moment.
    pub accepted_at: Moment,
    /// The day on which it happened, where the learner was.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub day: Date,
    /// How hard the question was, as far as was known; in logits, 0 if unknown. Answers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<f64>,
    /// What happened.
    pub event: LearningEvent,
}

/// How far clocks of senders may go ahead of ours.
const AHEAD_MAX: Duration = Duration::from_secs(300);
/// The longest name of a mistake.
const ERROR_KIND_MAX: usize = 128;
/// A day.
const MINUTES_MAX: f64 = 1440.0;

impl LearningEvent {
    /// Refuses an event that is not as it must be, by the name of the field. `now` is the moment of
    /// acceptance: what has not happened yet is refused.
    pub fn check(&self, now: Moment) -> Result<(), Invalid> {
        check_id("event_id", &self.event_id)?;
        check_id("student_id", &self.student_id)?;
        if let Some(school) = &self.school_id {
            check_id("school_id", school)?;
        }
        if self.occurred_at > now.plus(AHEAD_MAX) {
            let expected = format!("not later than now, {now}");
            return Err(Invalid::value("occurred_at", expected, self.occurred_at));
        }
        self.what.check()
    }
}

impl What {
    /// The word for it in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            What::LessonProgress { .. } => "lesson_progress",
            What::Answer { .. } => "answer",
            What::QuizFinished { .. } => "quiz_finished",
            What::WorkReviewed { .. } => "work_reviewed",
            What::CodeRun { .. } => "code_run",
            What::Stuck { .. } => "stuck",
            What::Visit {} => "visit",
            What::Assessed { .. } => "assessed",
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        match self {
            What::LessonProgress { lesson_id, fraction } => {
                check_id("lesson_id", lesson_id)?;
                check_share("fraction", *fraction)
            }
            What::Answer { skill_id, item_id, error_kind, .. } => {
                check_id("skill_id", skill_id)?;
                check_id("item_id", item_id)?;
                check_error_kind(error_kind.as_deref())
            }
            What::QuizFinished { quiz_id, score } => {
                check_id("quiz_id", quiz_id)?;
                check_share("score", *score)
            }
            What::WorkReviewed { task_id, quality } => {
                check_id("task_id", task_id)?;
                check_share("quality", *quality)
            }
            What::CodeRun { task_id, error_kind, .. } => {
                check_id("task_id", task_id)?;
                check_error_kind(error_kind.as_deref())
            }
            What::Stuck { task_id, minutes } => {
                check_id("task_id", task_id)?;
                match (0.0..=MINUTES_MAX).contains(minutes) {
                    true => Ok(()),
                    false => {
                        let expected = format!("a number from 0 to {MINUTES_MAX}");
                        Err(Invalid::value("minutes", expected, minutes))
                    }
                }
            }
            What::Visit {} => Ok(()),
            What::Assessed { components } => components.check(),
        }
    }
}

impl AcceptedEvent {
    /// An event accepted now. Of an answer, `difficulty` is how hard its question is as far as is
    /// known.
    pub fn new(
        event: LearningEvent,
        accepted_at: Moment,
        zone: &Zone,
        difficulty: Option<f64>,
    ) -> Self {
        let difficulty = match event.what {
            What::Answer { .. } => difficulty.map(super::score::to_millionths),
            _ => None,
        };
        AcceptedEvent { accepted_at, day: zone.date(event.occurred_at), difficulty, event }
    }
}

fn check_error_kind(kind: Option<&str>) -> Result<(), Invalid> {
    kind.map_or(Ok(()), |kind| check_length("error_kind", kind, 1..=ERROR_KIND_MAX))
}
