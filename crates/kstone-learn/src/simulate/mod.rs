//! Simulated learners whose ability is known: to see whether a model finds it, and to fill a school
//! that looks alive. Everything follows from a seed and a moment.

mod answers;
mod chance;
mod course;

pub use answers::{AnswerSet, write_answers};
pub use chance::Chance;
