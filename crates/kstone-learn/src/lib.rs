//! The learning platform on KeystoneDB: pure domain models, and the requests that store and find
//! them. Nothing here knows files, sockets or clocks; moments and randomness are arguments.
//!
//! | module | what it is |
//! |---|---|
//! | [`workflows`] | executions of two workflow engines side by side, with albums, tasks, metrics |
//! | [`mastery`] | how well learners know what they learn: scores, ratings, streaks, predictions |
//! | [`engine`] | the mastery domain on the two ports: every operation on learners, classes, schools |
//! | [`field`] | items to fields and back; errors that name the field |
//! | [`time`] | days and moments as text that sorts by time |
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod engine;
pub mod field;
pub mod mastery;
pub mod time;
pub mod workflows;
