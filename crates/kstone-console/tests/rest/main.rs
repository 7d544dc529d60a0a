//! The REST API through real sockets, one file for each topic.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod frame;
mod guard;
mod learners;
mod mastery;
mod people;
mod schools;
mod support;
