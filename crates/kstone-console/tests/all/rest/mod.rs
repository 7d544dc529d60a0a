//! The REST API through real sockets, one file for each topic.

mod every_call;
mod guard;
mod learners;
mod mastery;
mod people;
mod schools;
mod support;
