//! The keys of the four applications and their platform as types. Each module is written from its catalogue; the test
//! `generated` compares them, and writes them anew when it is run with `KSTONE_REWRITE=1`.

pub mod mastery;
pub mod platform;
pub mod practice;
pub mod reviews;
pub mod workflows;
