//! The workflow table of the acceptance list (section 002) on the embedded database: every entity,
//! every key, every way to find them, before and after the database was closed and opened again.
#![allow(clippy::unwrap_used, reason = "tests panic where they fail")]

mod entities;
mod keys;
mod patterns;
mod support;
mod validation;
