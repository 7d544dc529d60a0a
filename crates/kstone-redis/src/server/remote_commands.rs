//! Commands that are sent to another server, for MIGRATE. A door makes the connection, because this
//! crate does no networking.

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

/// Sends the commands to the server; returns a reply for each.
pub type RunRemoteCommands =
    fn(RemoteCommands) -> Pin<Box<dyn Future<Output = io::Result<Vec<Value>>> + Send>>;
