//! Simulated learners whose ability is known: to test models, and to fill a demo school. Pure:
//! everything follows from a seed and a moment.
//!
//! | module | what it is |
//! |---|---|
//! | `answers` | a table of answers to evaluate models with ([`write_answers`]) |
//! | `school` | [`School`]: classes, learners and what they did, day by day |
//! | `learner` | one of them: ability, diligence, what becomes of them |
//! | `session` | what a learner does in one sitting |
//! | `course` | what is taught |
//! | `chance` | draws that depend on nothing but a seed |

mod answers;
mod chance;
mod course;
mod learner;
mod names;
mod school;
mod session;

pub use answers::{AnswerSet, write_answers};
pub use chance::Chance;
pub use learner::{Course, Learner};
pub use school::{Class, School};
