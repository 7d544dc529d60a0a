//! The web console of KeystoneDB and the REST API of the learning platform, on one port.
//!
//! | module | what it is |
//! |---|---|
//! | `console` | [`Console`], what both are made of: the ports, the platform, erasure, the status of the process |
//! | `server` | [`serve`] and its connections: how many, how long, and how they end |
//! | `admission` | which requests are served: token, host, origin |
//! | `request` | middleware for every request: an id, a body within limits, safe headers |
//! | `erasures` | erasures of persons that run in the background |
//! | [`rest`] | the API under `/api/v1`, one file for each resource |
//! | [`pages`] | the console, one file for each page |
//! | [`server_status`] | the figures that the process reports of itself, and their history |
//!
//! Storage is reached only through the two ports and what is built on them; nothing here knows the
//! engine. What only the process can know comes through [`server_status::ServerStatus`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod admission;
mod console;
mod erasures;
pub mod pages;
mod request;
pub mod rest;
mod server;
pub mod server_status;

pub use admission::Token;
pub use console::{Console, ConsoleOptions};
pub use erasures::{ErasureProgress, Erasures, Stage};
pub use server::{router, serve};
