//! Commands that a client sent together, carried out together: the same locks, one commit.
//!
//! What a client sends in one go may be done in one go. It saves each command but the first the way
//! through the locks and the engine, and a key that they all write is written once. Only commands
//! that touch few keys and write little are taken; whatever needs more care (a transaction, a
//! script, what waits, a client that is tracked, watched or limited) goes through
//! [`Session::execute`] one by one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::command::{Caller, Command, Context, Keys, Run, flag};
use crate::commands;
use crate::fault::Fault;
use crate::reply::Sink;
use crate::server::blocked::Ready;
use crate::server::clients::state;
use crate::session::counted::Outcome;
use crate::session::{Replies, Session};

/// So many commands are done together at most: others wait for the same keys.
const COMMANDS_MAX: usize = 64;
/// So much may be asked and answered together: what is written has to fit into one commit.
const BYTES_MAX: usize = 1 << 20;
/// After so long the commands that are left wait for the next time.
const TIME_MAX: Duration = Duration::from_millis(1);

/// Commands that came together and may be carried out together.
#[derive(Debug)]
pub struct Pipeline<'a> {
    commands: Vec<&'static Command>,
    args: Vec<&'a [u8]>,
    /// Where each command's arguments end.
    ends: Vec<usize>,
    bytes: usize,
}

impl<'a> Pipeline<'a> {
    /// No commands, and room for a few.
    pub fn new() -> Self {
        const FEW: usize = 16;
        Pipeline {
            commands: Vec::with_capacity(FEW),
            args: Vec::with_capacity(4 * FEW),
            ends: Vec::with_capacity(FEW),
            bytes: 0,
        }
    }

    /// How many commands there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a command, whose arguments begin with its name; false if it has to be carried out on
    /// its own.
    pub fn push(&mut self, args: impl Iterator<Item = &'a [u8]>) -> bool {
        let start = self.args.len();
        self.args.extend(args);
        let given = self.args.get(start..).unwrap_or_default();
        let bytes = given.iter().map(|arg| arg.len()).sum::<usize>();
        let command = commands::find(given).ok().filter(|command| is_light(command));
        match command {
            Some(command) if self.len() < COMMANDS_MAX && self.bytes + bytes <= BYTES_MAX => {
                self.bytes += bytes;
                self.commands.push(command);
                self.ends.push(self.args.len());
                true
            }
            _ => {
                self.args.truncate(start);
                false
            }
        }
    }

    /// The commands with their arguments.
    fn iter(&self) -> impl Iterator<Item = (&'static Command, &[&'a [u8]])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let places = starts.zip(self.ends.iter().copied());
        let args = places.map(|(start, end)| self.args.get(start..end).unwrap_or_default());
        self.commands.iter().copied().zip(args)
    }
}

impl Default for Pipeline<'_> {
    fn default() -> Self {
        Pipeline::new()
    }
}

impl Session {
    /// Carries out the commands of a pipeline together, from the first on. Answers how many that
    /// were: the next is to be [executed](Session::execute) on its own.
    pub async fn execute_together(
        &mut self,
        pipeline: &Pipeline<'_>,
        out: &mut (dyn Sink + Send),
    ) -> usize {
        let (done, ready) = self.run_together(pipeline, out);
        if !ready.is_empty() {
            let server = Arc::clone(&self.server);
            let _alone = server.locks.exclude().await;
            self.seq = self.seq.max(server.serve_blocked(ready));
        }
        done
    }

    /// Whether nothing about the client asks for each command to be looked at on its own: then
    /// [`execute_together`](Session::execute_together) is worth trying.
    pub fn may_run_together(&self) -> bool {
        self.apart == 0
            && !self.transaction.is_open()
            && self.client.replies == Replies::On
            && self.client.tracking.is_none()
            && self.client.user.is_all_powerful()
            && !self.client.peer.is(state::PUBSUB)
            && self.server.monitors.is_idle()
            && !self.server.pause.is_possible()
    }

    fn run_together(
        &mut self,
        pipeline: &Pipeline<'_>,
        out: &mut (dyn Sink + Send),
    ) -> (usize, Ready) {
        const NOTHING: (usize, Ready) = (0, Vec::new());
        if pipeline.len() < 2 || !self.may_run_together() {
            return NOTHING;
        }
        if pipeline.iter().any(|(command, args)| self.admit(command, args).is_err()) {
            return NOTHING;
        }
        let server = Arc::clone(&self.server);
        let Some(gate) = server.locks.try_share() else { return NOTHING };
        let keys = pipeline.iter().map(|(command, args)| keys_of(command, args));
        let (_locked, count) = server.locks.commands(&gate, &server.way, keys);
        // Who waits for a key is served before the next command: see `run_on_keys`.
        let commands = || pipeline.iter().take(count);
        let mut writes = commands().filter(|(command, _)| command.has(flag::WRITE));
        let db = self.client.db;
        if writes.any(|(command, args)| server.blocked.is_awaited(db, keys_of(command, args))) {
            return NOTHING;
        }

        let (start, started) = (out.position(), self.begun);
        self.policy.renew(&server.database);
        let (policy, number) = self.policy.get();
        let mut txn = server.begin_under(policy, number, self.client.db);
        txn.set_origin(self.client.id);
        txn.set_pipelined(count);
        txn.expect(commands().flat_map(|(command, args)| keys_of(command, args)));
        let members: Vec<(&[u8], Vec<u8>)> = commands()
            .filter_map(|(command, args)| Some((*args.get(1)?, commands::member(command, args)?)))
            .collect();
        txn.expect_members(members.iter().map(|(key, sk)| (*key, sk.as_slice())));
        // What each came to, which counts only if all of it is committed.
        let mut ran: Vec<(Duration, Option<Fault>)> = Vec::with_capacity(pipeline.len());
        let mut is_refused = false;
        // Then what a rule is against is taken back, and the rest is not done again for it.
        let is_governed = txn.is_governed();
        for (command, args) in commands() {
            let Run::Keys(run) = command.run else { break };
            self.client.peer.command.store(commands::place(command) + 1, Ordering::Relaxed);
            let begun = out.position();
            if is_governed {
                txn.mark();
            }
            let flow = {
                let (caller, ready, client) = (Caller::Client, None, &mut self.client);
                let (server, txn, out) = (&*server, &mut txn, &mut *out);
                run(&mut Context { server, txn, client, out, caller, ready }, args)
            };
            let fault = server.ended(&mut txn, flow).err();
            if let Some(fault) = &fault {
                if is_governed {
                    txn.take_back();
                } else if command.has(flag::WRITE) {
                    is_refused = true;
                    break;
                }
                out.rewind(begun);
                out.error(fault.message().as_bytes());
            }
            let now = server.engine.monotonic();
            ran.push((now.saturating_sub(self.begun), fault));
            self.begun = now;
            let said_bytes = out.position().0.saturating_sub(start.0);
            if said_bytes > BYTES_MAX || now.saturating_sub(started) > TIME_MAX {
                break;
            }
        }
        let committed = match is_refused {
            true => {
                drop(txn);
                None
            }
            false => server.commit(txn).ok(),
        };
        let Some((seq, ready)) = committed else {
            // A write that fails may have begun to write, and a commit is refused as a whole, which
            // the others are not to suffer from: nothing was done, and each is done on its own.
            out.rewind(start);
            self.begun = started;
            self.apart = ran.len() + 1;
            return NOTHING;
        };
        self.note_seq(seq);
        for ((command, args), (took, fault)) in pipeline.iter().zip(&ran) {
            if let Some(fault) = fault {
                server.stats.error(fault.message());
            }
            self.note_called(command, args, *took, Outcome::of(fault.is_some()));
        }
        (ran.len(), ready)
    }
}

fn keys_of<'k>(command: &Command, args: &'k [&'k [u8]]) -> impl Iterator<Item = &'k [u8]> {
    command.keys.positions(args).filter_map(|at| args.get(at).copied())
}

/// Whether a command touches the keys it names and no others, never waits, and writes about as much
/// as it was given.
fn is_light(command: &Command) -> bool {
    const HEAVY: u32 = flag::EXCLUSIVE | flag::UNLOCKED | flag::BLOCKING | flag::MOVABLE_KEYS;
    const LIGHT: [&str; 4] = ["set", "setex", "psetex", "mset"];
    command.flags & HEAVY == 0
        && matches!(command.run, Run::Keys(_))
        && !matches!(command.keys, Keys::None)
        && (command.has(flag::READONLY) || command.has(flag::FAST) || LIGHT.contains(&command.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push<'a>(pipeline: &mut Pipeline<'a>, line: &'a str) -> bool {
        pipeline.push(line.split(' ').map(str::as_bytes))
    }

    #[test]
    fn a_pipeline_takes_only_what_may_be_done_together() {
        let mut pipeline = Pipeline::new();
        for line in ["GET a", "SET a 1", "LPUSH l a b", "LRANGE l 0 -1"] {
            assert!(push(&mut pipeline, line), "{line}");
        }
        for line in
            ["PING", "BLPOP l 0", "KEYS *", "RENAME a b", "GET", "nonsense", "MULTI", "SORT l"]
        {
            assert!(!push(&mut pipeline, line), "{line}");
        }
        let args: Vec<usize> = pipeline.iter().map(|(_, args)| args.len()).collect();
        assert_eq!(args, [2, 3, 4, 4]);
    }

    #[test]
    fn a_pipeline_has_an_end() {
        let mut pipeline = Pipeline::new();
        assert_eq!((0..1000).take_while(|_| push(&mut pipeline, "GET a")).count(), COMMANDS_MAX);
        let long = format!("SET a {}", "x".repeat(BYTES_MAX));
        assert!(!push(&mut Pipeline::new(), &long));
    }
}
