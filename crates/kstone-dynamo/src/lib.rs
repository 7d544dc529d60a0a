//! The DynamoDB door of KeystoneDB: serves the embedded database over DynamoDB's own protocol, so
//! that the AWS SDKs and the AWS CLI work unchanged.
//!
//! A door translates: parse, call, encode. No storage logic is here, and no protocol in the layers
//! below. One request passes through:
//!
//! | module | what it does |
//! |---|---|
//! | `http` | connections, limits, headers, the body |
//! | `auth` | AWS Signature Version 4, if access keys are configured |
//! | `json` | parses the body into a tree |
//! | `shape` | checks types and constraints of each operation's input, with AWS's messages |
//! | `wire` | converts attribute values, `{"S": "…"}`, to and from the database's values |
//! | `operations` | one file for each operation: request, call, response |
//! | `error` | errors as HTTP status and JSON |
//!
//! ```no_run
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! use kstone_dynamo::{DoorOptions, serve};
//!
//! let database = kstone::Database::memory()?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
//! serve(listener, database, DoorOptions::default(), std::future::pending()).await;
//! # Ok(()) }
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod auth;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http;
mod input_schema;
mod json;
mod operations;
mod wire;

pub use auth::Credential;
pub use http::serve;

use std::sync::Arc;

use kstone_core::env::{Clock, SystemClock};
use kstone_core::meter::Meter;
use kstone_door::Limits;

/// How the door is served.
#[derive(Debug, Clone)]
pub struct DoorOptions {
    /// The keys that requests have to be signed with. Without any, every request passes: then
    /// listen on loopback only.
    pub keys: Vec<Credential>,
    /// The region that ARNs name.
    pub region: String,
    /// How many connections, and how long each may take. A connection may be idle for a quarter
    /// longer than the limit says.
    pub limits: Limits,
    /// What signatures' dates are compared with, and answers are dated by.
    pub clock: Arc<dyn Clock>,
    /// Counts operations and connections; other handles to it read the counts.
    pub meter: Arc<Meter>,
}

impl Default for DoorOptions {
    fn default() -> Self {
        DoorOptions {
            keys: Vec::new(),
            region: "us-east-1".to_owned(),
            // Fewer would refuse real clients; each idle connection costs about 10 KiB.
            limits: Limits { connections_max: 4096, ..Limits::default() },
            clock: Arc::new(SystemClock::new()),
            meter: Arc::new(Meter::default()),
        }
    }
}
