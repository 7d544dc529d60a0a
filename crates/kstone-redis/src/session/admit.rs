//! Checks before a command is executed or queued: authentication, ACL, busy script, memory,
//! replicas, subscriptions, pause.

use std::time::Duration;

use crate::command_spec::{Command, Request, flag};
use crate::fault::{Fault, Result};
use crate::server::Server;
use crate::server::acl::{Denied, Entry};
use crate::server::clients::state;
use crate::server::config;
use crate::server::pause::Paused;
use crate::session::transaction::aborted;
use crate::session::{Client, INSIDE, Session};

/// What a client that has subscribed to something may still ask for, unless it speaks RESP3.
const WHILE_SUBSCRIBED: [&str; 9] = [
    "subscribe",
    "unsubscribe",
    "psubscribe",
    "punsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "ping",
    "quit",
    "reset",
];

/// The flags of commands that may write.
const WRITES: u32 = flag::WRITE | flag::MAY_REPLICATE;

/// Whether commands with these flags cannot write anything.
pub(super) fn is_reading(flags: u32) -> bool {
    flags & (WRITES | flag::ADMIN) == 0
}

impl Session {
    /// Whether the command may go on now; the error if not.
    pub(super) fn admit(&mut self, request: Request<'_>) -> Result<()> {
        let command = request.command;
        self.refresh_user();
        if !self.client.is_authenticated && !command.has(flag::NO_AUTH) {
            return Err(Fault::fixed("NOAUTH Authentication required."));
        }
        let context = if self.transaction.is_open() { "multi" } else { "toplevel" };
        if let Some(denied) = self.deny(request, context) {
            return Err(denied);
        }
        if let Err(busy) = self.server.scripts.running.refuses(command) {
            if command.name == "exec" && self.transaction.is_open() {
                self.abandon();
                return Err(aborted(&busy));
            }
            return Err(busy);
        }
        if self.client.acl_version == INSIDE {
            // The rules that follow are for clients of the network.
            return Ok(());
        }
        let server = &self.server;
        if server.is_out_of_memory()
            && (command.has(flag::DENYOOM) || self.executes(command, flag::DENYOOM))
        {
            return Err(Fault::OUT_OF_MEMORY);
        }
        if server.lacks_replicas()
            && (command.has(flag::WRITE) || self.executes(command, flag::WRITE))
        {
            return Err(Fault::NO_REPLICAS);
        }
        if !self.client.resp3
            && self.client.peer.is(state::PUBSUB)
            && !WHILE_SUBSCRIBED.contains(&command.name)
        {
            return Err(Fault::new(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                 RESET are allowed in this context",
                command.name
            )));
        }
        Ok(())
    }

    /// Whether the command is EXEC, and one of the queued commands has this flag.
    fn executes(&self, command: &Command, flag: u32) -> bool {
        command.name == "exec" && self.transaction.has(flag)
    }

    /// Reads the user again if the ACL has changed, and disconnects a client whose user is gone.
    fn refresh_user(&mut self) {
        let version = self.server.acl.version();
        if version == self.client.acl_version || self.client.acl_version == INSIDE {
            return;
        }
        self.client.acl_version = version;
        match self.server.acl.user(&self.client.user.name) {
            Some(user) => self.client.user = user,
            None => self.client.peer.kill(),
        }
    }

    /// The error if the user may not do this; it is noted in ACL LOG.
    pub(super) fn deny(&self, request: Request<'_>, context: &'static str) -> Option<Fault> {
        if self.client.user.is_all_powerful() {
            return None;
        }
        let denied = self.client.user.check(request.command, request.args).err()?;
        Some(self.server.note_denied(&self.client, request.command, denied, context))
    }

    /// How long the command has to wait because the server is paused.
    pub(super) fn pause(&mut self, request: Request<'_>) -> Option<Duration> {
        let server = &self.server;
        if !server.pause.is_possible() {
            return None;
        }
        let now_ms = server.engine.now_ms();
        let (paused, until_ms) = server.pause.now(now_ms);
        let is_paused = match paused {
            Paused::Nothing => false,
            Paused::Everything => true,
            Paused::Writes => {
                let executes = |flag| self.executes(request.command, flag);
                let flags = server.scripts.flags_of(request);
                flags & WRITES != 0 || executes(flag::WRITE) || executes(flag::MAY_REPLICATE)
            }
        };
        // What is only queued does nothing yet.
        if is_paused && !self.transaction.queues(request.command) || paused == Paused::Everything {
            server.pause.wait(&self.client.peer);
            return Some(Duration::from_millis(until_ms.saturating_sub(now_ms)));
        }
        server.pause.leave(self.client.id);
        None
    }
}

impl Client {
    /// Remembers the keys that a client with CLIENT TRACKING is about to read; they are locked. A
    /// script notes what it reads itself.
    pub(crate) fn note_reads(&self, server: &Server, request: Request<'_>) {
        let command = request.command;
        if command.has(flag::READONLY) && command.categories != "scripting" {
            self.note_keys_read(server, request.keys());
        }
    }

    /// Remembers that a client with CLIENT TRACKING reads these keys; they are locked.
    pub(crate) fn note_keys_read<'k>(&self, server: &Server, keys: impl Iterator<Item = &'k [u8]>) {
        let Some(mode) = &self.tracking else { return };
        let is_wanted = if mode.opt_in {
            mode.caching == Some(true)
        } else {
            !(mode.opt_out && mode.caching == Some(false))
        };
        if mode.broadcast || !is_wanted {
            return;
        }
        let keys_max = server.config.size(config::TRACKING_KEYS_MAX);
        let keys_max = usize::try_from(keys_max).unwrap_or(usize::MAX);
        server.tracking.remember(self.id, keys, keys_max, server.delivery());
    }
}

impl Server {
    /// Whether the command cannot write anything.
    pub(super) fn only_reads(&self, request: Request<'_>) -> bool {
        is_reading(self.scripts.flags_of(request))
    }

    /// Notes in ACL LOG that a client may not do something; returns the error.
    pub(crate) fn note_denied(
        &self,
        client: &Client,
        command: &'static Command,
        denied: Denied,
        context: &'static str,
    ) -> Fault {
        let (reason, object, fault) = match denied {
            Denied::Command => {
                let message = format!(
                    "NOPERM this user has no permissions to run the '{}' command",
                    command.name
                );
                ("command", command.name.as_bytes().to_vec(), Fault::new(message))
            }
            Denied::Key(key) => ("key", key, Fault::NO_KEY_PERMISSION),
            Denied::Channel(channel) => ("channel", channel, Fault::NO_CHANNEL_PERMISSION),
        };
        self.note_refused(client, reason, context, object, &client.user.name);
        fault
    }

    /// Adds to ACL LOG.
    pub(crate) fn note_refused(
        &self,
        client: &Client,
        reason: &'static str,
        context: &'static str,
        object: Vec<u8>,
        user: &str,
    ) {
        let at_ms = self.engine.now_ms();
        let entry = Entry {
            count: 0,
            reason,
            context,
            object,
            user: user.to_owned(),
            at_ms,
            client: self.show_client(&client.peer),
        };
        let len_max = usize::try_from(self.config.size(config::ACL_LOG_MAX_LEN));
        self.acl.log.add(entry, len_max.unwrap_or(usize::MAX));
    }
}
