//! Mastery: how well learners know what they learn. Storage is reached through the two ports only;
//! clocks and randomness are handed in.
//!
//! | module | what it is |
//! |---|---|
//! | [`domain`] | events, scores, ratings, streaks, predictions: pure |
//! | [`engine`] | the domain on the two ports: every operation on learners, classes, schools |
//! | [`jobs`] | what the engine does in the background, and when |
//! | `learners` | iterates over all learners |
//! | [`simulate`] | learners whose ability is known, and a school of them |
//! | [`evaluate`] | how well Elo predicts answers, beside two other models |
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod domain;
pub mod engine;
pub mod evaluate;
pub mod jobs;
mod learners;
pub mod simulate;
