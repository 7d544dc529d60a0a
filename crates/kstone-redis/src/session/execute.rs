//! Executes one command: look it up, admit it, queue it or run it, reply.
//!
//! A command on keys runs under the locks of its keys, in a transaction of its own. While a client
//! is blocked on a key that it writes, it takes the whole keyspace instead, so that the blocked
//! client is served before any other command can take what it waits for.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::command_spec::{Block, Caller, Command, Context, Flow, Request, Run, flag};
use crate::commands;
use crate::fault::{Fault, Result};
use crate::reply::{Mark, Out, replace_with_error};
use crate::server::Server;
use crate::server::blocked::Ready;
use crate::server::locks::Shared;
use crate::session::accounting::Outcome;
use crate::session::waiting::Waiting;
use crate::session::{CommandOutcome, Session};

/// Why a command has not replied.
#[derive(Debug)]
enum NoReply {
    Fault(Fault),
    Waiting(Box<Waiting>),
}

impl From<Fault> for NoReply {
    fn from(fault: Fault) -> Self {
        NoReply::Fault(fault)
    }
}

impl Session {
    /// Executes one command. `args` begins with its name. The reply goes to `out`, unless the
    /// command has to wait for a key.
    pub async fn execute(&mut self, args: &[&[u8]], out: Out<'_>) -> CommandOutcome {
        self.alone_left = self.alone_left.saturating_sub(1);
        let start = out.position();
        let found = commands::find(args);
        let known = found.as_ref().ok().copied();
        let request = found.map(|command| Request { command, args });
        let admitted = request.and_then(|request| self.admit(request).map(|()| request));
        let ran = match admitted {
            Ok(request) => match self.pause(request) {
                Some(left) => return CommandOutcome::Paused(left),
                None => self.queue_or_run(request, out).await,
            },
            Err(fault) => {
                self.note_rejected(known, args);
                Err(fault.into())
            }
        };
        let step = self.reply(ran, start, out);
        self.suppress_reply(known, start, out);
        step
    }

    /// Counts a command that may not run, and makes the open transaction fail, if there is one.
    fn note_rejected(&mut self, known: Option<&'static Command>, args: &[&[u8]]) {
        // One that is known by name but was given arguments that it does not take counts, too.
        let named = || args.first().and_then(|name| commands::named(name));
        if let Some(command) = known.or_else(named) {
            self.server.stats.rejected(command);
        }
        self.transaction.note_error();
    }

    /// What follows a command; its error, if it failed, becomes its reply.
    fn reply(&mut self, ran: Result<Flow, NoReply>, start: Mark, out: Out<'_>) -> CommandOutcome {
        match ran {
            Ok(Flow::Close) => CommandOutcome::Close,
            // A command that waits has become `NoReply::Waiting` by now.
            Ok(Flow::Done | Flow::Failed | Flow::Block(_)) => CommandOutcome::Replied,
            Err(NoReply::Waiting(waiting)) => CommandOutcome::Waiting(waiting),
            Err(NoReply::Fault(fault)) => {
                // What it was refused for may not be durable yet.
                self.note_seq(self.server.engine.applied_seq());
                self.server.stats.error(fault.message());
                replace_with_error(out, start, &fault);
                CommandOutcome::Replied
            }
        }
    }

    /// Queues the command in the open MULTI, or runs it now and accounts for it.
    async fn queue_or_run(&mut self, request: Request<'_>, out: Out<'_>) -> Result<Flow, NoReply> {
        let Request { command, args } = request;
        if self.transaction.queues(command) {
            return Ok(self.queue(request, out)?);
        }
        if is_publish(command) && !self.server.pubsub.is_idle() {
            let_others_go_first().await;
        }
        // CLIENT LIST shows what a client is doing, not only what it has done.
        self.client.peer.note_command(command);
        self.monitor_before(request);
        let ran = match command.run {
            Run::Session(run) => match run(self, args, out) {
                Ok(Flow::Block(block)) => Err(self.blocked(request, block)),
                flow => flow.map_err(NoReply::from),
            },
            Run::Waiting(run) => run(self, args, out).await.map_err(NoReply::from),
            Run::Keys(_) => self.run_on_keys(request, out).await,
            Run::Subcommands => Err(commands::unknown_subcommand(args).into()),
        };
        self.note_ran(request, &ran);
        ran
    }

    /// Measures the command that has just ended, and accounts for it.
    fn note_ran(&mut self, request: Request<'_>, ran: &Result<Flow, NoReply>) {
        let now = self.server.engine.monotonic();
        let took = now.saturating_sub(self.command_started);
        self.command_started = now;
        let outcome = match ran {
            Err(NoReply::Fault(_)) | Ok(Flow::Failed) => Outcome::Failed,
            Err(NoReply::Waiting(_)) => Outcome::Waits,
            Ok(_) => Outcome::Done,
        };
        self.note_called(request, took, outcome);
    }

    /// Takes the locks that the command needs, runs it under them, and serves the clients that
    /// were blocked on what it wrote.
    async fn run_on_keys(&mut self, request: Request<'_>, out: Out<'_>) -> Result<Flow, NoReply> {
        let server = Arc::clone(&self.server);
        if request.command.has(flag::UNLOCKED) {
            return self.run_and_serve(&server, request, out);
        }
        if !request.command.has(flag::EXCLUSIVE) {
            let gate = match server.locks.try_share() {
                Some(gate) => gate,
                None => server.scripts.running.unless_busy(server.locks.share()).await?,
            };
            if let Some(ran) = self.run_with_key_locks(&server, &gate, request, out) {
                let (flow, ready) = ran?;
                if !ready.is_empty() {
                    // Keys that the command made in another database.
                    drop(gate);
                    self.serve_blocked(ready).await;
                }
                return Ok(flow);
            }
        }
        let _alone = server.scripts.running.unless_busy(server.locks.exclude()).await?;
        self.run_and_serve(&server, request, out)
    }

    /// Runs a command under the locks of its keys; `None`, and nothing is done, if a client is
    /// blocked on a key that it writes.
    fn run_with_key_locks(
        &mut self,
        server: &Server,
        gate: &Shared<'_>,
        request: Request<'_>,
        out: Out<'_>,
    ) -> Option<Result<(Flow, Ready), NoReply>> {
        let _locked = server.locks.keys(gate, &server.task_handoff, request.keys());
        let is_free = !server.blocked.is_awaited_write(self.client.db, request);
        is_free.then(|| self.run_locked(server, request, out))
    }

    /// Runs a command that has the whole keyspace to itself, or that needs no lock, and serves the
    /// clients that were blocked on what it wrote.
    fn run_and_serve(
        &mut self,
        server: &Server,
        request: Request<'_>,
        out: Out<'_>,
    ) -> Result<Flow, NoReply> {
        let (flow, ready) = self.run_locked(server, request, out)?;
        self.note_seq(server.serve_blocked(ready));
        Ok(flow)
    }

    /// Runs a command whose keys are locked, and commits. Returns also which keys it wrote that
    /// clients are blocked on.
    fn run_locked(
        &mut self,
        server: &Server,
        request: Request<'_>,
        out: Out<'_>,
    ) -> Result<(Flow, Ready), NoReply> {
        let Request { command, args } = request;
        let Run::Keys(run) = command.run else { return Ok((Flow::Done, Vec::new())) };
        let mut txn = self.policy.begin(server, &self.client);
        self.client.note_reads(server, request);
        if command.keys.are_many(args) {
            txn.expect(request.keys());
        }
        let client = &mut self.client;
        let flow = run(&mut Context::new(server, &mut txn, client, out, Caller::Client), args)?;
        let (seq, ready) = server.end(txn, || server.only_reads(request))?;
        self.note_seq(seq);
        match flow {
            Flow::Block(block) => Err(self.blocked(request, block)),
            flow => Ok((flow, ready)),
        }
    }

    fn blocked(&self, request: Request<'_>, block: Block) -> NoReply {
        NoReply::Waiting(Box::new(self.wait(request, block)))
    }

    /// Serves the clients that are blocked on these keys, with the whole keyspace locked. The
    /// caller holds no lock.
    pub(super) async fn serve_blocked(&mut self, ready: Ready) {
        let server = Arc::clone(&self.server);
        let _alone = server.locks.exclude().await;
        self.note_seq(server.serve_blocked(ready));
    }
}

/// Whether the command is PUBLISH or SPUBLISH.
fn is_publish(command: &Command) -> bool {
    command.has(flag::PUBSUB) && command.name.ends_with("publish")
}

/// Lets tasks run that are ready. An executor may take up the last of several clients first whose
/// commands came together; who unsubscribed before a message was sent must not get it for that.
async fn let_others_go_first() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
