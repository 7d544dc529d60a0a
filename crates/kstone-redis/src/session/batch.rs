//! Executes the commands of a pipeline as one batch: the same locks, one transaction, one commit.
//!
//! This spares each command but the first its own way through the locks and the engine, and a key
//! that several commands write is written once. Only commands that touch few keys and write little
//! are taken ([`Pipeline::push`]); whatever needs more care (a transaction, a script, a command
//! that blocks, a client that tracks keys or is restricted by ACLs) goes through
//! [`Session::execute`] one by one. So does every command of a batch that could not be committed.

use std::sync::Arc;
use std::time::Duration;

use crate::command_spec::{Caller, Context, Request, Run, RunOnKeys, flag};
use crate::commands;
use crate::fault::Fault;
use crate::reply::{Out, replace_with_error};
use crate::server::Server;
use crate::server::blocked::Ready;
use crate::server::clients::state;
use crate::session::accounting::Outcome;
use crate::session::cached_policy::CachedPolicy;
use crate::session::pipeline::{BYTES_MAX, Pipeline};
use crate::session::{Client, Replies, Session};
use crate::store::Txn;

/// A batch ends after this time; the commands that are left become the next one.
const TIME_MAX: Duration = Duration::from_millis(1);

/// Commands that share a transaction.
struct Batch<'b, 's> {
    server: &'s Server,
    client: &'b mut Client,
    txn: Txn<'s>,
    /// Whether a policy judges each command: then one that fails is undone, and the others stay.
    is_governed: bool,
    /// When the next command starts.
    command_started: Duration,
    /// The commands that were run, in order.
    ran: Vec<Ran>,
}

/// A command that was run as part of a batch. It counts only once the batch is committed.
struct Ran {
    took: Duration,
    fault: Option<Fault>,
}

/// A write failed in a way that only undoing the whole batch can mend.
struct WriteFailed;

impl Session {
    /// Executes the commands of a pipeline as one batch, from the first on. Returns how many that
    /// were: the next is to be [executed](Session::execute) alone.
    pub async fn execute_together(&mut self, pipeline: &Pipeline<'_>, out: Out<'_>) -> usize {
        let (done, ready) = self.run_together(pipeline, out).unwrap_or_default();
        if !ready.is_empty() {
            self.serve_blocked(ready).await;
        }
        done
    }

    /// Whether nothing about the client asks for each command to be looked at on its own: then
    /// [`execute_together`](Session::execute_together) is worth trying.
    pub fn may_run_together(&self) -> bool {
        self.alone_left == 0
            && !self.transaction.is_open()
            && self.client.replies == Replies::On
            && self.client.tracking.is_none()
            && self.client.user.is_all_powerful()
            && !self.client.peer.is(state::PUBSUB)
            && self.server.monitors.is_idle()
            && !self.server.pause.is_possible()
    }

    /// Locks the keys of as many commands as are free, runs those and commits. Returns how many
    /// they are and which keys they wrote that clients are blocked on; `None` if nothing was done.
    fn run_together(&mut self, pipeline: &Pipeline<'_>, out: Out<'_>) -> Option<(usize, Ready)> {
        if pipeline.len() < 2 || !self.may_run_together() || !self.admits_all(pipeline) {
            return None;
        }
        let server = Arc::clone(&self.server);
        let gate = server.locks.try_share()?;
        let keys = pipeline.iter().map(|request| request.keys());
        let (_locked, count) = server.locks.commands(&gate, &server.task_handoff, keys);
        let db = self.client.db;
        let mut locked = pipeline.iter().take(count);
        // A client that is blocked on a key is served before the next command: see `run_on_keys`.
        if locked.any(|request| server.blocked.is_awaited_write(db, request)) {
            return None;
        }
        let start = out.position();
        let (policy, client) = (&mut self.policy, &mut self.client);
        let commands = (pipeline, count);
        let mut batch = Batch::begin(&server, policy, client, self.command_started, commands);
        let ran = batch.run_all(pipeline.iter().take(count), out);
        let (ran, committed) = batch.commit(ran);
        let Some((seq, ready)) = committed else {
            // Nothing was done. Each command is tried again alone, so that one that fails does not
            // make the others fail.
            out.rewind(start);
            self.alone_left = ran.len() + 1;
            return None;
        };
        self.note_seq(seq);
        self.note_all_called(pipeline, &ran);
        Some((ran.len(), ready))
    }

    fn admits_all(&mut self, pipeline: &Pipeline<'_>) -> bool {
        pipeline.iter().all(|request| self.admit(request).is_ok())
    }

    /// Accounts for the commands of a batch that was committed.
    fn note_all_called(&mut self, pipeline: &Pipeline<'_>, ran: &[Ran]) {
        for (request, Ran { took, fault }) in pipeline.iter().zip(ran) {
            self.command_started += *took;
            if let Some(fault) = fault {
                self.server.stats.error(fault.message());
            }
            self.note_called(request, *took, Outcome::of(fault.is_some()));
        }
    }
}

impl<'b, 's> Batch<'b, 's> {
    /// Begins a batch of the first `count` commands, whose keys are locked.
    fn begin(
        server: &'s Server,
        policy: &'s mut CachedPolicy,
        client: &'b mut Client,
        command_started: Duration,
        (pipeline, count): (&Pipeline<'_>, usize),
    ) -> Batch<'b, 's> {
        let mut txn = policy.begin(server, client);
        txn.set_pipelined(count);
        let commands = || pipeline.iter().take(count);
        txn.expect(commands().flat_map(|request| request.keys()));
        let members: Vec<(&[u8], Vec<u8>)> = commands()
            .filter_map(|request| Some((*request.args.get(1)?, commands::member(request)?)))
            .collect();
        txn.expect_members(members.iter().map(|(key, sk)| (*key, sk.as_slice())));
        let (is_governed, ran) = (txn.is_governed(), Vec::with_capacity(count));
        Batch { server, client, txn, is_governed, command_started, ran }
    }

    /// Runs the commands until the batch has become too large or has taken too long.
    fn run_all<'p>(
        &mut self,
        requests: impl Iterator<Item = Request<'p>>,
        out: Out<'_>,
    ) -> Result<(), WriteFailed> {
        let (start, started) = (out.position(), self.command_started);
        for request in requests {
            let Run::Keys(run) = request.command.run else { break };
            self.run_one(request, run, out)?;
            let reply_bytes = out.position().0.saturating_sub(start.0);
            let so_far = self.command_started.saturating_sub(started);
            if reply_bytes > BYTES_MAX || so_far > TIME_MAX {
                break;
            }
        }
        Ok(())
    }

    /// Runs a command and writes its reply, which is the error if it fails.
    fn run_one(
        &mut self,
        Request { command, args }: Request<'_>,
        run: RunOnKeys,
        out: Out<'_>,
    ) -> Result<(), WriteFailed> {
        self.client.peer.note_command(command);
        let start = out.position();
        let mut context =
            Context::new(self.server, &mut self.txn, self.client, &mut *out, Caller::Client);
        let fault = match self.is_governed {
            true => context.run_or_roll_back(run, args).err(),
            false => context.run_and_check(run, args).err(),
        };
        if let Some(fault) = &fault {
            // Without a mark to go back to, what a failed write has begun to write stays.
            if !self.is_governed && command.has(flag::WRITE) {
                return Err(WriteFailed);
            }
            replace_with_error(out, start, fault);
        }
        let now = self.server.engine.monotonic();
        self.ran.push(Ran { took: now.saturating_sub(self.command_started), fault });
        self.command_started = now;
        Ok(())
    }

    /// Commits, unless a write failed. Returns the commands that were run, and the number of the
    /// commit with the keys that it wrote and clients are blocked on.
    fn commit(self, ran: Result<(), WriteFailed>) -> (Vec<Ran>, Option<(u64, Ready)>) {
        let (server, txn) = (self.server, self.txn);
        (self.ran, ran.ok().and_then(|()| server.commit(txn).ok()))
    }
}
