//! The learning platform on KeystoneDB: pure domain models, and the requests that store and find
//! them. Nothing here knows files, sockets or clocks; moments and randomness are arguments.
//!
//! | module | what it is |
//! |---|---|
//! | [`workflows`] | executions of two workflow engines side by side, with albums, tasks, metrics |
//! | [`mastery`] | how well learners know what they learn: scores, ratings, streaks, predictions |
//! | [`evaluate`] | how well Elo predicts answers, beside two other models |
//! | [`simulate`] | learners whose ability is known, and a school of them |
//! | [`field`] | items to fields and back; errors that name the field |
//! | [`time`] | days and moments as text that sorts by time |
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod evaluate;
pub mod field;
pub mod mastery;
pub mod simulate;
pub mod time;
pub mod workflows;
