//! Everything that a learner's events come to.

use serde::{Deserialize, Serialize};

use super::event::AcceptedEvent;
use super::model::{ActivityData, Components, Level, MasteryResult, SkillRating, Struggle};
use crate::time::{Date, Moment, Zone};

/// Everything that a learner's events come to. It is bounded in size, however many events there
/// were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnerState {
    student_id: String,
    version: u64,
    accepted_at: Moment,
    day: Date,
    school_id: Option<String>,
}

/// What an event changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the learner's mastery is now.
    pub mastery: MasteryResult,
    /// The day whose snapshot this is: the newest on which the learner was active. An event that
    /// comes late changes what is known now, not what was known then.
    pub day: Date,
    /// The level before, if it is another now.
    pub level_before: Option<Level>,
    /// The rating of the skill that was answered in.
    pub skill: Option<SkillRating>,
    /// What the learner began to struggle with just now.
    pub struggles_begun: Vec<Struggle>,
}

impl LearnerState {
    /// A learner of whom nothing is known.
    pub fn new(student_id: impl Into<String>) -> LearnerState {
        LearnerState {
            student_id: student_id.into(),
            version: 0,
            accepted_at: Moment::default(),
            day: Date::default(),
            school_id: None,
        }
    }

    /// Takes in an event: the next in the order of acceptance.
    pub fn apply(&mut self, accepted: &AcceptedEvent) -> Outcome {
        self.version += 1;
        self.accepted_at = accepted.accepted_at;
        self.day = self.day.max(accepted.day);
        Outcome {
            mastery: self.mastery(),
            day: self.day,
            level_before: None,
            skill: None,
            struggles_begun: Vec::new(),
        }
    }

    /// Whose it is.
    pub fn student_id(&self) -> &str {
        &self.student_id
    }

    /// How many changes there were.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// When the last event was accepted.
    pub fn accepted_at(&self) -> Moment {
        self.accepted_at
    }

    /// The newest day on which the learner was active.
    pub fn day(&self) -> Date {
        self.day
    }

    /// The mastery right after the last event.
    pub fn mastery(&self) -> MasteryResult {
        self.mastery_on(self.accepted_at, self.day)
    }

    /// The mastery now. Only consistency falls while nothing happens.
    pub fn mastery_on(&self, now: Moment, today: Date) -> MasteryResult {
        let _ = today;
        MasteryResult::new(self.student_id.clone(), &Components::default(), now, self.version)
    }

    /// When the learner was active, seen from now.
    pub fn activity(&self, now: Moment, zone: &Zone) -> ActivityData {
        let _ = now;
        ActivityData {
            last_activity: self.accepted_at,
            current_streak: 0,
            max_streak: 0,
            activity_log: Vec::new(),
            time_zone: zone.name().to_owned(),
        }
    }

    /// What the learner can do, by skill.
    pub fn skills(&self) -> Vec<SkillRating> {
        Vec::new()
    }

    /// What the learner struggles with now.
    pub fn struggles(&self, now: Moment) -> Vec<Struggle> {
        let _ = now;
        Vec::new()
    }
}
