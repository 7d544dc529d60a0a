//! Pages, asked for in this process: of an empty store, of a full one, and of one whose keys and values
//! would rather be markup.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod data;
mod erasing;
mod every_page;
mod learning;
mod place;
mod work;
