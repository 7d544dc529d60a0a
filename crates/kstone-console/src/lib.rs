//! The web console of KeystoneDB and the REST API of the learning platform, on one port.
//!
//! | module | what it is |
//! |---|---|
//! | [`Console`] | what both are made of: the ports, the platform, who erases, the vitals of the process |
//! | [`serve`] | connections: how many, how long, and how they end |
//! | `admission` | who may ask: token, host, origin |
//! | `request` | what every request gets: an id, a body within limits, safe headers |
//! | `erasures` | erasures that go on while nobody waits for them |
//! | [`rest`] | the API under `/api/v1`, one file for each resource |
//! | [`pages`] | the console, one file for each page |
//! | [`vitals`] | what only the process knows of itself |
//!
//! Storage is reached only through the two ports and what is built on them; nothing here knows the
//! engine. What only the process can know comes through [`vitals::Vitals`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod admission;
mod console;
mod erasures;
pub mod pages;
mod request;
pub mod rest;
mod server;
pub mod vitals;

pub use admission::Token;
pub use console::{Console, ConsoleOptions};
pub use erasures::{ErasureProgress, Erasures, Stage};
pub use server::{router, serve};
