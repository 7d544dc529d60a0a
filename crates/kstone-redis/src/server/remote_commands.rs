//! Commands for other servers: what MIGRATE sends. A door makes the connection, because this layer
//! knows no network.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use crate::reply::Value;

/// Commands for another server.
#[derive(Debug)]
pub struct RemoteCommands {
    /// The server's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How long to wait for each step: connecting, sending some, receiving some.
    pub timeout: Duration,
    /// The commands, each with its name and its arguments.
    pub commands: Vec<Vec<Vec<u8>>>,
}

/// Runs an errand: answers a reply for each command.
pub type RunRemoteCommands =
    fn(RemoteCommands) -> Pin<Box<dyn Future<Output = io::Result<Vec<Value>>> + Send>>;
