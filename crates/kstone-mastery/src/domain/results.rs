//! Result types of the engine for learners, batches and schools, as they are stored and returned.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use kstone_keyspace::keys::mastery as keys;
use serde::{Deserialize, Serialize};

use kstone_base::field::Invalid;
use kstone_base::time::{Date, Moment};

/// One of the four parts of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Component {
    /// How far the lessons that were begun are done.
    Completion,
    /// How well questions are answered recently.
    Quiz,
    /// How good the reviewed work is recently.
    Quality,
    /// How regularly the learner comes.
    Consistency,
}

/// The four parts of a score, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Components {
    /// How far the lessons that were begun are done.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
    pub completion: f64,
    /// How well questions are answered recently.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
    pub quiz: f64,
    /// How good the reviewed work is recently.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
    pub quality: f64,
    /// How regularly the learner comes.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
    pub consistency: f64,
}

/// The level of a score, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Level {
    /// Below 0.40.
    Beginner,
    /// From 0.40, below 0.60.
    Developing,
    /// From 0.60, below 0.75.
    Competent,
    /// From 0.75, below 0.90.
    Proficient,
    /// From 0.90.
    Expert,
}

/// A learner's mastery: a progress index, not a probability. Ability is given per skill by
/// [`SkillRating`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MasteryResult {
    /// Whose it is.
    pub student_id: String,
    /// The weighted sum of the components, from 0 to 1.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 1.0))]
    pub mastery_score: f64,
    /// The score in a word.
    pub level: Level,
    /// What the score is made of.
    pub components: Components,
    /// As of when.
    pub timestamp: Moment,
    /// Grows by one with each change.
    #[serde(default)]
    pub version: u64,
    /// The learner's school, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub school_id: Option<String>,
}

/// The mark that an event was processed, so that it is processed once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessingRecord {
    /// Which event.
    pub event_id: String,
    /// Whose.
    pub student_id: String,
    /// When.
    pub processed_at: Moment,
    /// `success`.
    pub result: String,
    /// The score after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mastery_score: Option<f64>,
}

/// When a learner was active recently, in days of their own time zone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActivityData {
    /// The newest activity.
    pub last_activity: Moment,
    /// Days in a row up to today, or up to yesterday while today is not over.
    pub current_streak: u32,
    /// The longest row of days ever.
    pub max_streak: u32,
    /// The last days with activity, newest first, 30 at most.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub activity_log: Vec<Date>,
    /// Where the days begin and end.
    pub time_zone: String,
}

/// Where a score is going.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Trend {
    /// Up, by more than 0.01 a day.
    Improving,
    /// Neither.
    Stable,
    /// Down, by more than 0.01 a day.
    Declining,
}

/// Where a learner's score will be in some days, if it goes on as it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PredictionResult {
    /// The score to expect.
    pub predicted_score: f64,
    /// How far to trust it, from 0.1 to 1.
    pub confidence: f64,
    /// Where the score is going.
    pub trend: Trend,
    /// Whether somebody should look after this learner: the score to expect is below 0.5.
    pub intervention_needed: bool,
    /// When it was computed.
    pub calculated_at: Moment,
    /// How many days ahead.
    pub days: u16,
    /// The lower end of where the score should lie.
    pub low: f64,
    /// The upper end of where the score should lie.
    pub high: f64,
    /// From how many days it was computed.
    pub snapshots: u32,
}

/// The progress of a batch. `completed + failed + in_progress` is always `total_requests`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchStatus {
    /// Which batch.
    pub batch_id: String,
    /// How many learners are in it.
    pub total_requests: u32,
    /// How many are done.
    pub completed: u32,
    /// How many could not be done.
    pub failed: u32,
    /// How many are left.
    pub in_progress: u32,
    /// When it began.
    pub started_at: Moment,
    /// Whether it is done.
    pub status: BatchState,
    /// The learners in it.
    pub students: Vec<String>,
    /// What went wrong.
    #[serde(default)]
    pub failures: Vec<BatchFailure>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Moment>,
}

/// Whether a batch is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum BatchState {
    /// Some are left.
    Processing,
    /// None is left; some may have failed.
    Completed,
    /// None is left, and none could be done.
    Failed,
}

/// What went wrong with one learner of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchFailure {
    /// Which learner.
    pub student_id: String,
    /// What went wrong.
    pub problem: String,
}

/// The mastery of a whole school on a day. It names no learner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AggregateStats {
    /// Which school.
    pub school_id: String,
    /// Which day.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = Date))]
    pub date: Date,
    /// How many learners were counted.
    pub students: u32,
    /// The average of their scores; 0 without learners.
    pub average_score: f64,
    /// The score that half of them reach; 0 without learners.
    pub median_score: f64,
    /// How many are on each level; every level is there.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u32>))]
    pub levels: BTreeMap<Level, u32>,
    /// The averages of the components.
    pub components: Components,
    /// How many struggle with something.
    pub struggling: u32,
    /// How many were active on that day.
    pub active_today: u32,
    /// When it was computed.
    pub calculated_at: Moment,
}

/// What a learner can do in one skill, from their answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SkillRating {
    /// Which skill.
    pub skill_id: String,
    /// The Elo rating, in logits: 0 is a beginning, each 1 about trebles the odds of success.
    pub rating: f64,
    /// How many answers it was learnt from.
    pub answers: u32,
    /// How many of them were right.
    pub correct: u32,
    /// The chance of a right answer to an average item of this skill, from 0 to 1.
    pub probability: f64,
    /// The newest answer.
    pub last: Moment,
}

/// A task or skill in which a learner makes no progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Struggle {
    /// Of which kind.
    pub kind: StruggleKind,
    /// When it began.
    pub since: Moment,
    /// What was seen, in words for a teacher.
    pub detail: String,
    /// The task, the quiz or the skill that it is about.
    pub subject_of: String,
}

/// The kinds of struggle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum StruggleKind {
    /// The same error three times.
    RepeatedError,
    /// Ten minutes without getting further.
    Stuck,
    /// Less than half of a quiz.
    LowQuiz,
    /// Five failed runs in a row.
    FailedRuns,
}

/// A recommendation for a learner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Recommendation {
    /// Its name.
    pub id: String,
    /// Which part of the score it would lift.
    pub area: Component,
    /// What to do.
    pub action: String,
    /// Why.
    pub reason: String,
    /// How far that part is below what is expected.
    pub gap: f64,
    /// How urgent it is.
    pub priority: Priority,
    /// When it was made.
    pub made_at: Moment,
    /// The learner's feedback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
}

/// How urgent something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Priority {
    /// At least 0.2 below what is expected.
    High,
    /// At least 0.1 below.
    Medium,
    /// Less.
    Low,
}

/// A learner's feedback on a recommendation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Feedback {
    /// Whether it helped.
    pub helpful: bool,
    /// In their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// When.
    pub at: Moment,
}

impl Component {
    /// All four, in the order of their weight.
    pub const ALL: [Component; 4] =
        [Component::Completion, Component::Quiz, Component::Quality, Component::Consistency];

    /// Its word in keys and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Component::Completion => "completion",
            Component::Quiz => "quiz",
            Component::Quality => "quality",
            Component::Consistency => "consistency",
        }
    }
}

impl Level {
    /// All of them, lowest first.
    pub const ALL: [Level; 5] =
        [Level::Beginner, Level::Developing, Level::Competent, Level::Proficient, Level::Expert];

    /// Its word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Beginner => "beginner",
            Level::Developing => "developing",
            Level::Competent => "competent",
            Level::Proficient => "proficient",
            Level::Expert => "expert",
        }
    }
}

impl Trend {
    /// Its word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Trend::Improving => "improving",
            Trend::Stable => "stable",
            Trend::Declining => "declining",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Trend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Component {
    type Err = Invalid;

    fn from_str(word: &str) -> Result<Component, Invalid> {
        let found = Component::ALL.into_iter().find(|component| component.as_str() == word);
        let expected = "one of completion, quiz, quality, consistency";
        found.ok_or_else(|| Invalid::value("component", expected, format!("`{word}`")))
    }
}

impl From<Component> for keys::Component {
    fn from(component: Component) -> keys::Component {
        match component {
            Component::Completion => keys::Component::Completion,
            Component::Quiz => keys::Component::Quiz,
            Component::Quality => keys::Component::Quality,
            Component::Consistency => keys::Component::Consistency,
        }
    }
}
