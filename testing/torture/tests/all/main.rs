//! A short run of the `kill -9` loop.
#![allow(
    clippy::disallowed_methods,
    reason = "tests panic where they fail, and use the machine's files, clock and threads"
)]

mod kill9;
