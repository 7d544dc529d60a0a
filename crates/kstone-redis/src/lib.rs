//! Redis's data types and commands as a library on the engine of KeystoneDB: durable, and larger
//! than memory.
//!
//! [`Redis`] opens the keys that live beside the tables of a [`Database`], in the same engine and
//! folder. Each client has a [`Session`], which executes commands and writes their replies into a
//! [`Sink`]; a door (`kstone-resp`) encodes them for the network.
//!
//! The modules, from the caller down: `session` (one client: looking up a command, locks,
//! transactions, waiting), `port` (the same keys behind an interface that a remote Redis can serve,
//! too), `commands` (one file or folder for each family), `command` (what describes a command),
//! `server` (what all clients share), `store` (keys as records of the engine).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod args;
mod command_spec;
mod commands;
mod fault;
mod float;
mod glob;
pub mod port;
mod purge;
mod rdb;
mod reply;
mod server;
mod session;
mod store;

use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use kstone::Database;
use kstone_core::meter::Reading;

pub use fault::Fault;
pub use float::double_text;
pub use reply::{Mark, Sink, Tree, Value};
pub use server::remote_commands::{RemoteCommands, RunRemoteCommands};
pub use server::survey::{KeyPresence, SurveyedKey};
pub use session::{CommandOutcome, Pipeline, Session, Waiting};

use server::{Server, ShutdownHook, config};
use store::databases::Databases;

/// The keys of a database, as Redis knows them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Redis {
    server: Arc<Server>,
}

impl Redis {
    /// Opens the keys that live in the database. Replies promise what the handle promises
    /// ([`Database::durability`]).
    pub fn open(database: &Database) -> kstone::Result<Redis> {
        Ok(Redis { server: Server::open(database)? })
    }

    /// The same, if the database has such keys: what has expired is removed only while they are
    /// open. A database that never had any stays as it is.
    pub fn open_if_any(database: &Database) -> kstone::Result<Option<Redis>> {
        Databases::are_in(database)?.then(|| Redis::open(database)).transpose()
    }

    /// Whether a reply has to wait until what it shows is durable.
    pub fn is_sync(&self) -> bool {
        self.server.durability == kstone_core::Durability::Sync
    }

    /// The number up to which everything is durable.
    pub fn durable_seq(&self) -> u64 {
        self.server.engine.durable_seq()
    }

    /// Ready when everything up to [`Session::seq`] is durable.
    ///
    /// # Errors
    /// If the disk failed: then the reply must not leave.
    pub fn poll_durable(
        &self,
        seq: u64,
        context: &mut Context<'_>,
    ) -> Poll<kstone_core::Result<()>> {
        pin!(self.server.engine.durable(seq)).poll(context)
    }

    /// How many commands were executed, how long they took (while `latency-tracking` is on), and
    /// how many clients there are.
    pub fn meter(&self) -> Reading {
        Reading {
            connections: self.server.clients.count() as u64,
            operations: self.server.stats.commands_processed(),
            took_us: self.server.stats.took_us(),
        }
    }

    /// How many clients wait for a key.
    pub fn blocked_clients(&self) -> usize {
        self.server.blocked.count()
    }

    /// Sets the function that a command calls once it has kept its thread for some milliseconds, so
    /// that the executor can move its other tasks to another thread.
    pub fn set_task_handoff(&self, hand_off: fn()) {
        self.server.task_handoff.set(hand_off);
    }

    /// Sets the function that sends commands to other servers. Without it MIGRATE cannot connect.
    pub fn run_remote_commands_with(&self, run: RunRemoteCommands) {
        let _ = self.server.run_remote_commands.set(run);
    }

    /// Another client in this process.
    pub fn session(&self) -> Session {
        Session::new(Arc::clone(&self.server), String::new(), String::new())
    }

    /// Another client that came from one address to another, as CLIENT LIST shows them; `None` if
    /// there are as many as `maxclients` allows.
    pub fn accept(&self, address: String, local_address: String) -> Option<Session> {
        let most = self.server.config.size(config::MAXCLIENTS);
        if self.server.clients.count() as u64 >= most {
            self.server.stats.rejected_connections.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Session::new(Arc::clone(&self.server), address, local_address))
    }

    /// Says where the server listens, and how it comes to listen at another port when CONFIG SET
    /// asks for one.
    pub fn note_address(
        &self,
        address: SocketAddr,
        listen: impl Fn(u16) -> io::Result<()> + Send + Sync + 'static,
    ) {
        self.server.config.note(config::PORT, &address.port().to_string());
        self.server.config.note(config::BIND, &address.ip().to_string());
        self.server.config.listen_with(Box::new(listen));
    }

    /// Sets the password of the default user: `requirepass`.
    pub fn require_password(&self, password: &str) {
        self.server.config.note(config::REQUIREPASS, password);
        self.server.acl.require_password(password);
    }

    /// Sets what SHUTDOWN does after everything has reached the disk.
    pub fn shutdown_with(&self, stop: impl Fn() + Send + Sync + 'static) {
        *self.server.shutdown_hook.lock() = Some(ShutdownHook(Box::new(stop)));
    }

    /// After how long a connection without traffic is probed; `None` is never.
    pub fn keepalive(&self) -> Option<Duration> {
        let seconds = self.server.config.size(config::TCP_KEEPALIVE);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// Disconnects clients that have done nothing for longer than `timeout`.
    pub fn close_idle(&self) {
        let most_ms = self.server.config.size(config::TIMEOUT).saturating_mul(1000);
        if most_ms == 0 {
            return;
        }
        let now = self.server.engine.monotonic();
        for peer in self.server.clients.all() {
            if peer.is_idle(now, most_ms) && !self.server.blocked.is_waiting(peer.id) {
                peer.kill();
            }
        }
    }

    /// Disconnects all clients, once their replies are sent.
    pub fn close_all(&self) {
        self.server.clients.all().iter().for_each(|peer| peer.dismiss());
    }
}
