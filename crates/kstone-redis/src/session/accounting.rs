//! Accounts for every command that was executed: statistics, slow log, latency, MONITOR; and
//! applies CLIENT REPLY.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::args;
use crate::command_spec::{Command, Request, flag};
use crate::commands;
use crate::reply::{Mark, Out};
use crate::server::config;
use crate::server::{Server, slowlog};
use crate::session::{Client, Replies, Session};

impl Session {
    /// Counts a command that was executed, logs it if it was slow, and shows it to MONITOR.
    pub(crate) fn note_called(&mut self, request: Request<'_>, took: Duration, outcome: Outcome) {
        let (server, command) = (&self.server, request.command);
        let place = commands::index_of(command);
        let usec = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let is_tracked = server.config.is_on(config::LATENCY_TRACKING);
        server.stats.called(place, usec, outcome == Outcome::Failed, is_tracked);
        let peer = &self.client.peer;
        peer.db.store(self.client.db.into(), Ordering::Relaxed);
        // What waits is looked at when it is served.
        if outcome != Outcome::Waits {
            server.note_slow(&self.client, request, usec);
        }
        let is_fast = command.has(flag::FAST);
        server.note_latency(if is_fast { "fast-command" } else { "command" }, took);
        if !server.monitors.is_idle() && !is_shown_before(command) && is_shown(command) {
            server.monitor(self.client.db, &peer.address, &redacted(request));
        }
        if let Some(mode) = &mut self.client.tracking
            && mode.caching.is_some()
            && command.name != "client|caching"
            && !self.transaction.is_open()
        {
            mode.caching = None;
        }
    }

    /// Shows a script before the commands that it runs.
    pub(super) fn monitor_before(&self, request: Request<'_>) {
        if !self.server.monitors.is_idle() && is_shown_before(request.command) {
            self.server.monitor(self.client.db, &self.client.peer.address, request.args);
        }
    }

    /// Takes back the reply if the client has turned replies off: CLIENT REPLY.
    pub(super) fn suppress_reply(
        &mut self,
        command: Option<&'static Command>,
        start: Mark,
        out: Out<'_>,
    ) {
        match self.client.replies {
            Replies::On => return,
            Replies::SkipNext => {
                // This was CLIENT REPLY SKIP itself, which has said nothing.
                self.client.replies = Replies::Skip;
                return;
            }
            Replies::Skip => self.client.replies = Replies::On,
            Replies::Off => {}
        }
        // A confirmation of a subscription is a message, not a reply.
        let is_message = command.is_some_and(|command| {
            command.has(flag::PUBSUB) && command.name.ends_with("subscribe")
        });
        if !is_message {
            out.rewind(start);
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
    /// It waits for a key.
    Waits,
}

impl Outcome {
    /// Done, or failed.
    pub(crate) fn of(has_failed: bool) -> Outcome {
        if has_failed { Outcome::Failed } else { Outcome::Done }
    }
}

impl Server {
    /// Records how long something took, if that is long enough for LATENCY.
    pub(crate) fn note_latency(&self, name: &str, took: Duration) {
        let threshold_ms = self.config.size(config::LATENCY_THRESHOLD);
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if threshold_ms > 0 && ms >= threshold_ms {
            self.latency.add(name, self.engine.now_ms(), ms);
        }
    }

    /// Adds a command to SLOWLOG if it was slow.
    pub(crate) fn note_slow(&self, client: &Client, request: Request<'_>, usec: u64) {
        let slower_than = self.config.number(config::SLOWLOG_SLOWER_THAN);
        let is_slow = slower_than >= 0 && usec >= slower_than.unsigned_abs();
        if !is_slow || request.command.has(flag::SKIP_SLOWLOG) {
            return;
        }
        let len_max = usize::try_from(self.config.size(config::SLOWLOG_MAX_LEN));
        let entry = slowlog::Entry {
            id: 0,
            at_ms: self.engine.now_ms(),
            usec,
            args: slowlog::shortened(&redacted(request)),
            address: client.peer.address.clone(),
            client: client.peer.name.lock().clone(),
        };
        self.slowlog.add(entry, len_max.unwrap_or(usize::MAX));
    }
}

fn is_shown(command: &Command) -> bool {
    command.flags & (flag::SKIP_MONITOR | flag::ADMIN) == 0
}

/// Whether it runs other commands, which are to be seen after it.
fn is_shown_before(command: &Command) -> bool {
    ["eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"].contains(&command.name)
}

/// The arguments without what is secret in them.
fn redacted(request: Request<'_>) -> Cow<'_, [&[u8]]> {
    let Request { command, args: given } = request;
    let is_secret: Vec<usize> = match command.name {
        "auth" => (1..given.len()).collect(),
        "acl|setuser" | "acl|deluser" | "acl|getuser" => (2..given.len()).collect(),
        "hello" | "migrate" => given
            .iter()
            .enumerate()
            .filter(|(_, arg)| args::is(arg, "auth") || args::is(arg, "auth2"))
            .flat_map(|(at, arg)| {
                let is_pair = command.name == "hello" || args::is(arg, "auth2");
                at + 1..at + if is_pair { 3 } else { 2 }
            })
            .collect(),
        "config|set" => (2..given.len())
            .step_by(2)
            .filter(|at| given.get(*at).is_some_and(|name| config::is_secret(name)))
            .map(|at| at + 1)
            .collect(),
        _ => return Cow::Borrowed(given),
    };
    let shown = given.iter().enumerate().map(|(at, &arg)| match is_secret.contains(&at) {
        true => b"(redacted)".as_slice(),
        false => arg,
    });
    Cow::Owned(shown.collect())
}
