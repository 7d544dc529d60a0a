//! The frame under the network doors: accepts connections, and bounds what clients can make long,
//! slow or large. What is said on a connection is the door's business.
//!
//! | module | what it does |
//! |---|---|
//! | [`accept`] | the accept loop: connection slots, handshakes with a deadline, orderly shutdown |
//! | `activity` | what an HTTP connection is doing, and its deadlines |
//! | [`http`] | HTTP/1.1 and HTTP/2 connections by hyper, with deadlines for idle and slow clients |
//! | [`body`] | request bodies: bounded in length, in time, and together in memory |
//! | [`memory`] | a memory budget that large bodies share |
//! | [`stall_guard`] | a stream that fails when its peer stops reading, or never begins to speak |
//!
//! The DynamoDB door has an HTTP/1.1 of its own (`docs/decisions/0008-http.md`) and takes
//! [`accept`], [`memory`] and [`stall_guard`]; the console and the Dapr door take [`http`] and
//! [`body`] too. The Redis door accepts by Redis's own rules (`maxclients`, a port that CONFIG SET
//! moves) and does not use this crate.
//!
//! Calls nothing below but the meter of `kstone-core`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod accept;
mod activity;
pub mod body;
pub mod http;
pub mod memory;
pub mod stall_guard;

use std::time::Duration;

pub use accept::{Closing, DoorFrame, Handshake, Listener, NoHandshake};
pub use http::HttpVersion;

/// How many clients a door serves at a time, and how long each may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many connections are open at a time; more wait to be accepted. Each takes one of the
    /// files that the process may have open: leave enough of those to the database.
    pub connections_max: usize,
    /// How long a client may take before it can ask anything: for TLS, and for the first bytes of
    /// HTTP/2.
    pub handshake_timeout: Duration,
    /// How long a client may take to send a request's head, and then its body; how long it may
    /// leave an answer unread; and how long a connection may be idle.
    pub read_timeout: Duration,
    /// How long requests that are under way may take to finish when the door is closed.
    pub shutdown_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 1024,
            // A slow phone on a bad line needs two or three.
            handshake_timeout: Duration::from_secs(10),
            // SDKs keep idle connections for about this long.
            read_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}
