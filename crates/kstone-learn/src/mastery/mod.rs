//! The mastery engine's domain: what events say about learners. Pure: no clock, no storage, no
//! randomness; moments and days are arguments, so the same events give the same result anywhere and
//! at any time.
//!
//! | module | what it is |
//! |---|---|
//! | `event` | what a learner did ([`LearningEvent`]), and the same as accepted ([`AcceptedEvent`]) |
//! | `model` | what the engine says of learners, batches and schools |
//! | `profile` | who a learner is, and what they agreed to |
//! | `fold` | [`LearnerState`]: everything that a learner's events come to |
//! | `score` | from components to a score and a level |

mod event;
mod fold;
mod model;
mod profile;
mod score;

pub use event::{AcceptedEvent, LearningEvent, What};
pub use fold::{LearnerState, Outcome};
pub use model::{
    ActivityData, AggregateStats, BatchFailure, BatchState, BatchStatus, Component, Components,
    Feedback, Level, MasteryResult, PredictionResult, Priority, ProcessingRecord, Recommendation,
    SkillRating, Struggle, StruggleKind, Trend,
};
pub use profile::{Consent, LearnerProfile};
