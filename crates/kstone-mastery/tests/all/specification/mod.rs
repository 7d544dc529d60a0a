//! Tests of the mastery engine's specification, on the embedded adapters with the shipped catalogues in
//! force.

mod batches;
mod cache;
mod fixture;
mod history;
mod ingesting;
mod insight;
mod keys;
mod persons;
mod rebuilding;
mod saving;
mod schools;
