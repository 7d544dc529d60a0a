//! Learning events, as they are sent and as the engine accepted them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::results::Components;
use super::score::check_share;
use kstone_base::field::{Invalid, check_id, check_length};
use kstone_base::time::{Date, Moment, Zone};

/// An event as it is sent to the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "super::event_json::Wire")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LearningEvent {
    /// Its name, made by the sender: sent again under the same name it counts once.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
    pub event_id: String,
    /// Who did it.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
    pub student_id: String,
    /// The learner's school, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
    pub school_id: Option<String>,
    /// When it happened. It decides the learner's day; the order of events is that of acceptance.
    pub occurred_at: Moment,
    /// What happened, with the details of its kind.
    #[serde(flatten)]
    pub what: EventDetail,
}

/// What happened, with the details of its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum EventDetail {
    /// The learner got this far in a lesson. Of each lesson the best counts.
    LessonProgress {
        /// Which lesson.
        #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
        lesson_id: String,
        /// How far, from 0 to 1.
        #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
        fraction: f64,
    },
    /// The learner answered a question.
    Answer {
        /// What the question is about.
        #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
        skill_id: String,
        /// Which question.
        #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
        item_id: String,
        /// Whether the answer was right.
        correct: bool,
        /// How long it took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u32>,
        /// What kind of mistake it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        error_kind: Option<String>,
    },
    /// The learner finished a quiz.
    QuizFinished {
        /// Which quiz.
        #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
        quiz_id: String,
        /// How much of it was right, from 0 to 1.
        #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
        score: f64,
    },
    /// Somebody looked at the learner's work.
    WorkReviewed {
        /// Which task it was for.
        #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
        task_id: String,
        /// How good it is, from 0 to 1.
        #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
        quality: f64,
    },
    /// The learner ran a program.
    CodeRun {
        /// For which task.
        #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
        task_id: String,
        /// Whether it did what it should.
        passed: bool,
        /// What kind of error it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        error_kind: Option<String>,
    },
    /// The learner does not get further.
    Stuck {
        /// With which task.
        #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
        task_id: String,
        /// For how long by now.
        #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1440.0))]
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

/// An accepted event, with everything else that its effect depends on (time zone, difficulty), so
/// that folding it again always has the same effect.
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
    /// What happened, with the details of its kind.
    pub event: LearningEvent,
}

/// How far clocks of senders may go ahead of ours.
const AHEAD_MAX: Duration = Duration::from_secs(300);
/// The longest name of a mistake.
const ERROR_KIND_MAX: usize = 128;
/// A day.
const MINUTES_MAX: f64 = 1440.0;

impl LearningEvent {
    /// Validates an event; the error names the field. `now` is the moment of acceptance: events in
    /// the future are refused.
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

impl EventDetail {
    /// The word for it in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            EventDetail::LessonProgress { .. } => "lesson_progress",
            EventDetail::Answer { .. } => "answer",
            EventDetail::QuizFinished { .. } => "quiz_finished",
            EventDetail::WorkReviewed { .. } => "work_reviewed",
            EventDetail::CodeRun { .. } => "code_run",
            EventDetail::Stuck { .. } => "stuck",
            EventDetail::Visit {} => "visit",
            EventDetail::Assessed { .. } => "assessed",
        }
    }

    /// Whether the learner did it. What others say of their work is no activity of theirs.
    pub fn is_activity(&self) -> bool {
        !matches!(self, EventDetail::WorkReviewed { .. } | EventDetail::Assessed { .. })
    }

    fn check(&self) -> Result<(), Invalid> {
        match self {
            EventDetail::LessonProgress { lesson_id, fraction } => {
                check_id("lesson_id", lesson_id)?;
                check_share("fraction", *fraction)
            }
            EventDetail::Answer { skill_id, item_id, error_kind, .. } => {
                check_id("skill_id", skill_id)?;
                check_id("item_id", item_id)?;
                check_error_kind(error_kind.as_deref())
            }
            EventDetail::QuizFinished { quiz_id, score } => {
                check_id("quiz_id", quiz_id)?;
                check_share("score", *score)
            }
            EventDetail::WorkReviewed { task_id, quality } => {
                check_id("task_id", task_id)?;
                check_share("quality", *quality)
            }
            EventDetail::CodeRun { task_id, error_kind, .. } => {
                check_id("task_id", task_id)?;
                check_error_kind(error_kind.as_deref())
            }
            EventDetail::Stuck { task_id, minutes } => {
                check_id("task_id", task_id)?;
                match (0.0..=MINUTES_MAX).contains(minutes) {
                    true => Ok(()),
                    false => {
                        let expected = format!("a number from 0 to {MINUTES_MAX}");
                        Err(Invalid::value("minutes", expected, minutes))
                    }
                }
            }
            EventDetail::Visit {} => Ok(()),
            EventDetail::Assessed { components } => components.check(),
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
            EventDetail::Answer { .. } => difficulty.map(super::score::to_millionths),
            _ => None,
        };
        AcceptedEvent { accepted_at, day: zone.date(event.occurred_at), difficulty, event }
    }
}

fn check_error_kind(kind: Option<&str>) -> Result<(), Invalid> {
    kind.map_or(Ok(()), |kind| check_length("error_kind", kind, 1..=ERROR_KIND_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Moment {
        "2026-01-14T10:30:00Z".parse().unwrap()
    }

    fn event(what: EventDetail) -> LearningEvent {
        LearningEvent {
            event_id: "e1".into(),
            student_id: "student_12345".into(),
            school_id: None,
            occurred_at: now(),
            what,
        }
    }

    fn wrong(what: EventDetail) -> String {
        event(what).check(now()).unwrap_err().field
    }

    #[test]
    fn an_event_is_flat_in_json_and_leads_back() {
        let json = r#"{"event_id":"e1","student_id":"student_12345","occurred_at":"2026-01-14T10:30:00Z","type":"answer","skill_id":"fractions","item_id":"q-17","correct":true}"#;
        let read: LearningEvent = serde_json::from_str(json).unwrap();
        assert_eq!(read.check(now()), Ok(()));
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
        let visit = r#"{"event_id":"e","student_id":"s","occurred_at":"2026-01-14T10:30:00Z","type":"visit"}"#;
        let read: LearningEvent = serde_json::from_str(visit).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), visit);
    }

    #[test]
    fn every_kind_of_event_is_named_as_in_json() {
        let components = Components::default();
        let all = [
            EventDetail::LessonProgress { lesson_id: "l".into(), fraction: 0.5 },
            EventDetail::Answer {
                skill_id: "s".into(),
                item_id: "i".into(),
                correct: true,
                took_ms: Some(900),
                error_kind: None,
            },
            EventDetail::QuizFinished { quiz_id: "q".into(), score: 0.5 },
            EventDetail::WorkReviewed { task_id: "t".into(), quality: 0.5 },
            EventDetail::CodeRun {
                task_id: "t".into(),
                passed: false,
                error_kind: Some("E".into()),
            },
            EventDetail::Stuck { task_id: "t".into(), minutes: 12.5 },
            EventDetail::Visit {},
            EventDetail::Assessed { components },
        ];
        for what in all {
            let sent = event(what);
            assert_eq!(sent.check(now()), Ok(()));
            let json = serde_json::to_value(&sent).unwrap();
            assert_eq!(json["type"], sent.what.kind());
            let accepted = AcceptedEvent::new(sent, now(), &Zone::UTC, Some(0.1234567));
            let json = serde_json::to_string(&accepted).unwrap();
            assert_eq!(serde_json::from_str::<AcceptedEvent>(&json).unwrap(), accepted);
            let answer = accepted.event.what.kind() == "answer";
            assert_eq!(accepted.difficulty, answer.then_some(0.123457));
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_its_field() {
        let not_shares = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.001, 1.001];
        for share in not_shares {
            let lesson_id = "l".to_owned();
            assert_eq!(
                wrong(EventDetail::LessonProgress { lesson_id, fraction: share }),
                "fraction"
            );
            assert_eq!(
                wrong(EventDetail::QuizFinished { quiz_id: "q".into(), score: share }),
                "score"
            );
            let task_id = "t".to_owned();
            assert_eq!(wrong(EventDetail::WorkReviewed { task_id, quality: share }), "quality");
            let components = Components { quiz: share, ..Components::default() };
            assert_eq!(wrong(EventDetail::Assessed { components }), "components.quiz");
        }
        for minutes in [f64::NAN, f64::INFINITY, -1.0, 1441.0] {
            assert_eq!(wrong(EventDetail::Stuck { task_id: "t".into(), minutes }), "minutes");
        }
        let error_kind = Some("x".repeat(129));
        assert_eq!(
            wrong(EventDetail::CodeRun { task_id: "t".into(), passed: false, error_kind }),
            "error_kind"
        );
        let answer = |skill: &str, item: &str| EventDetail::Answer {
            skill_id: skill.into(),
            item_id: item.into(),
            correct: true,
            took_ms: None,
            error_kind: None,
        };
        assert_eq!(wrong(answer("a:b", "i")), "skill_id");
        assert_eq!(wrong(answer("s", "")), "item_id");
        assert_eq!(
            wrong(EventDetail::LessonProgress { lesson_id: "*".into(), fraction: 0.5 }),
            "lesson_id"
        );
    }

    #[test]
    fn ids_and_moments_are_checked() {
        let with = |change: fn(&mut LearningEvent)| {
            let mut event = event(EventDetail::Visit {});
            change(&mut event);
            event.check(now()).map_err(|invalid| invalid.field)
        };
        assert_eq!(with(|event| event.event_id = "a b".into()), Err("event_id".into()));
        assert_eq!(with(|event| event.student_id = "x".repeat(129)), Err("student_id".into()));
        assert_eq!(with(|event| event.school_id = Some("{}".into())), Err("school_id".into()));
        fn ahead(event: &mut LearningEvent, seconds: u64) {
            event.occurred_at = event.occurred_at.plus(Duration::from_secs(seconds));
        }
        assert_eq!(with(|event| ahead(event, 300)), Ok(()), "clocks differ a little");
        assert_eq!(with(|event| ahead(event, 301)), Err("occurred_at".into()));
        assert_eq!(with(|event| event.occurred_at = Moment::default()), Ok(()), "late is fine");
    }

    #[test]
    fn the_day_is_that_of_the_learner_when_it_happened() {
        let zone = Zone::named("Asia/Tokyo").unwrap();
        let mut late = event(EventDetail::Visit {});
        late.occurred_at = "2026-01-10T16:00:00Z".parse().unwrap();
        let accepted = AcceptedEvent::new(late, now(), &zone, None);
        assert_eq!(accepted.day.to_string(), "2026-01-11");
    }
}
