//! The engine, as the layers above call it: one file or folder for each topic.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod basics;
mod crash;
mod decoders;
mod deliberate_bugs;
mod examples;
mod faults;
mod golden;
mod ingest;
mod key_design;
mod linearizable;
mod merge_for_readers;
mod metamorphic;
mod model;
mod one_bad_file;
mod support;
