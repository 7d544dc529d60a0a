//! The REST API and the pages over real sockets.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests panic where they fail")]

mod pages;
mod rest;
