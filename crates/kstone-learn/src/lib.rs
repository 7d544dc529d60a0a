//! The learning platform on KeystoneDB: pure domain models, and what stores, finds and moves them.
//! Storage is reached through the two ports only; clocks and randomness are handed in.
//!
//! | module | what it is |
//! |---|---|
//! | [`workflows`] | executions of two workflow engines side by side, with albums, tasks, metrics |
//! | [`mastery`] | how well learners know what they learn: scores, ratings, streaks, predictions |
//! | [`engine`] | the mastery domain on the two ports: every operation on learners, classes, schools |
//! | [`platform`] | all of it, made, started and stopped as one |
//! | [`work`] | durable queues, schedules, alerts: what all systems do in the background |
//! | [`guard`] | requests that came before, and clients that ask too often |
//! | [`evaluate`] | how well Elo predicts answers, beside two other models |
//! | [`simulate`] | learners whose ability is known, and a school of them |
//! | [`page`] | long lists, a page at a time |
//! | [`field`] | items to fields and back; errors that name the field |
//! | [`time`] | days and moments as text that sorts by time |
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod engine;
pub mod evaluate;
pub mod field;
pub mod guard;
pub mod mastery;
pub mod page;
pub mod platform;
pub mod simulate;
pub mod time;
pub mod work;
pub mod workflows;
