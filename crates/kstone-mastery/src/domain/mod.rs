//! The mastery engine's domain: what events say about learners. Pure: no clock, no storage, no
//! randomness; moments and days are arguments, so the same events give the same result anywhere and
//! at any time.
//!
//! | module | what it is |
//! |---|---|
//! | `event` | what a learner did ([`LearningEvent`]), and the same as accepted ([`AcceptedEvent`]) |
//! | `wire` | events from JSON |
//! | `model` | what the engine says of learners, batches and schools |
//! | `profile` | who a learner is, and what they agreed to |
//! | `fold` | [`LearnerState`]: everything that a learner's events come to |
//! | `evidence`, `activity`, `struggle` | its parts: lessons and recent results, days, signs of trouble |
//! | [`elo`] | the chance of success by ratings of learners and questions |
//! | `score` | from components to a score and a level |
//! | `predict` | where a score is going |
//! | `recommend` | what would help |
//! | `compare` | many learners together: schools, learners and classes side by side |

mod activity;
mod compare;
pub mod elo;
mod event;
mod event_json;
mod evidence;
mod fold;
mod predict;
mod profile;
mod recommend;
mod results;
mod score;
mod struggle;

pub use compare::{
    CohortComparison, CohortStanding, Counted, StudentComparison, StudentStanding, aggregate,
    compare_cohorts, compare_students, levels, mean, mean_components, median,
};
pub use elo::{ItemRating, ObservedAnswer};
pub use event::{AcceptedEvent, EventDetail, LearningEvent};
pub use fold::{LearnerState, Outcome};
pub use predict::{SNAPSHOTS_MAX, SNAPSHOTS_MIN, TooFewDays, predict, trend};
pub use profile::{CLASSES_MAX, Consent, LearnerProfile};
pub use recommend::{adaptive_path, made_at, recommend, step_in_words};
pub use results::{
    ActivityData, AggregateStats, BatchFailure, BatchState, BatchStatus, Component, Components,
    Feedback, Level, MasteryResult, PredictionResult, Priority, ProcessingRecord, Recommendation,
    SkillRating, Struggle, StruggleKind, Trend,
};
