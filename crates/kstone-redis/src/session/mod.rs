//! One client's side of things: which database it works in, its transaction, what it waits for.
//!
//! [`Session::execute`] is the way in for every command: find it, check it, lock its keys, run it,
//! commit, tell who is to be told.

mod admit;
mod batch;
pub(crate) mod call;
mod counted;
mod door;
mod kept_policy;
mod transaction;

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use kstone_core::Durable;
use tokio::sync::oneshot;

use crate::args;
use crate::command::{Block, Caller, Command, Context, Flow, Run, flag};
use crate::commands;
use crate::fault::{Fault, Result};
use crate::reply::Sink;
use crate::server::Server;
use crate::server::acl::{self, User};
use crate::server::blocked::{Ready, Served, Waiter};
use crate::server::clients::Peer;
use crate::server::tracking;
pub use batch::Pipeline;
use counted::Outcome;
use kept_policy::KeptPolicy;
use transaction::Transaction;

/// What commands may know and change about who asks.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Its number.
    pub(crate) id: u64,
    /// The logical database it works in.
    pub(crate) db: u8,
    /// Whether it speaks RESP3, in which some replies have another shape.
    pub(crate) resp3: bool,
    /// What others see of it and send to it.
    pub(crate) peer: Arc<Peer>,
    /// Whether it wants replies.
    pub(crate) replies: Replies,
    /// Who it is.
    pub(crate) user: Arc<User>,
    /// Whether it has said so, or does not have to.
    pub(crate) is_authenticated: bool,
    /// The users' version that `user` is of; [`INSIDE`] if it is none of them.
    acl_version: u64,
    /// How it wants to be told of changes to what it has read.
    pub(crate) tracking: Option<Box<tracking::Mode>>,
}

impl Client {
    fn new(server: &Server, peer: Arc<Peer>) -> Client {
        let acl_version = server.acl.version();
        let user = server.acl.user(acl::DEFAULT).unwrap_or_default();
        Client {
            id: peer.id,
            db: 0,
            resp3: false,
            peer,
            replies: Replies::On,
            is_authenticated: user.is_on && user.no_password,
            user,
            acl_version,
            tracking: None,
        }
    }
}

/// In place of a users' version: whoever is inside is no user, and no change to users matters to it.
const INSIDE: u64 = u64::MAX;

/// Whether a client wants replies: CLIENT REPLY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replies {
    On,
    Off,
    /// Not to the command that comes next.
    SkipNext,
    /// Not to this one.
    Skip,
}

/// One client.
#[derive(Debug)]
pub struct Session {
    pub(crate) server: Arc<Server>,
    pub(crate) client: Client,
    pub(crate) transaction: Transaction,
    /// What has to be durable before the replies given so far may leave a door that promises that.
    seq: u64,
    /// When what came before was done with: the next command begins then.
    begun: Duration,
    /// So many commands that come next could not be carried out together.
    apart: usize,
    policy: KeptPolicy,
}

/// What to do after a command.
#[derive(Debug)]
pub enum Step {
    /// It has replied.
    Replied,
    /// It has not replied yet: wait for it.
    Waiting(Box<Waiting>),
    /// It has replied; close the connection when the reply is out.
    Close,
    /// The server is paused: nothing was done. Execute the command again after this time, or when
    /// there is something to attend to ([`Session::poll_attention`]).
    Paused(Duration),
}

/// A command that waits for a key or for the disk. Await [`Waiting::served`], and after [`Waiting::left`] end the
/// wait with [`Waiting::time_out`]. Whoever drops it waits no longer.
#[derive(Debug)]
pub struct Waiting {
    server: Arc<Server>,
    waiter: Arc<Waiter>,
    receiver: oneshot::Receiver<Served>,
    /// When to give up, in milliseconds since 1970.
    until_ms: Option<u64>,
    /// What ends the wait if nobody serves the command.
    durable: Option<Durable>,
}

/// How long it is until then, and not less: the beginning of a wait was cut to a millisecond, which may
/// have ended at once, and nobody is to be told before their time.
fn left_of(server: &Server, until_ms: Option<u64>) -> Option<Duration> {
    let now_ms = server.engine.now_ms();
    until_ms.map(|at_ms| Duration::from_millis(at_ms.saturating_add(1).saturating_sub(now_ms)))
}

impl Waiting {
    /// How long to wait at most; `None` is for ever.
    pub fn left(&self) -> Option<Duration> {
        left_of(&self.server, self.until_ms)
    }

    /// Waits until the command is served, and says the reply. May be cancelled and called again.
    pub async fn served(&mut self, session: &mut Session, out: &mut (dyn Sink + Send)) {
        let Waiting { server, waiter, receiver, durable, .. } = self;
        let served = poll_fn(|context| {
            if let Poll::Ready(served) = Pin::new(&mut *receiver).poll(context) {
                return Poll::Ready(served);
            }
            if let Some(durable) = durable
                && let Poll::Ready(synced) = Pin::new(durable).poll(context)
                && server.blocked.give_up(waiter)
            {
                let reply = match synced {
                    Ok(()) => waiter.otherwise(),
                    Err(error) => Fault::from(error).into(),
                };
                return Poll::Ready(Ok(Served { reply, seq: 0 }));
            }
            Poll::Pending
        });
        // The sender is dropped unused only if serving failed halfway.
        let Ok(served) = served.await else { return out.null() };
        session.seq = session.seq.max(served.seq);
        served.reply.write(out);
    }

    /// The time is over: says so, or gives the reply if the command has just been served.
    pub async fn time_out(mut self, session: &mut Session, out: &mut (dyn Sink + Send)) {
        if self.server.blocked.give_up(&self.waiter) {
            self.waiter.otherwise().write(out);
        } else {
            self.served(session, out).await;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.server.blocked.give_up(&self.waiter);
    }
}

impl Session {
    /// A client that comes from one address to another.
    pub(crate) fn new(server: Arc<Server>, address: String, local_address: String) -> Session {
        let id = server.client_id();
        let begun = server.engine.monotonic();
        let peer = Arc::new(Peer::new(id, begun, address, local_address));
        server.clients.add(Arc::clone(&peer));
        server.stats.connections.fetch_add(1, Ordering::Relaxed);
        let client = Client::new(&server, peer);
        let (transaction, policy) = Default::default();
        Session { server, client, transaction, seq: 0, begun, apart: 0, policy }
    }

    /// A client in this process that may do everything in a database, whatever users may.
    pub(crate) fn inside(server: Arc<Server>, db: u8) -> Session {
        let mut session = Session::new(server, String::new(), String::new());
        let client = &mut session.client;
        client.user = Arc::new(User::all_powerful());
        (client.is_authenticated, client.acl_version, client.db) = (true, INSIDE, db);
        session
    }

    /// Goes on in another database.
    pub(crate) fn enter(&mut self, db: u8) {
        self.client.db = db;
    }

    /// Whether the client asked for RESP3.
    pub fn speaks_resp3(&self) -> bool {
        self.client.resp3
    }

    /// A reply rests on this commit.
    pub(crate) fn note_seq(&mut self, seq: u64) {
        self.seq = self.seq.max(seq);
    }

    /// What has to be durable before the replies given so far may leave a door that promises that:
    /// everything they show.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Carries out one command. `args` begins with its name. The reply goes to `out`, unless the
    /// command has to wait for a key.
    pub async fn execute(&mut self, args: &[&[u8]], out: &mut (dyn Sink + Send)) -> Step {
        self.apart = self.apart.saturating_sub(1);
        let start = out.position();
        let found = commands::find(args);
        let known = found.as_ref().ok().copied();
        let flow = match found {
            Ok(command) => match self.admit(command, args) {
                Ok(()) => match self.pause(command, args) {
                    Some(left) => return Step::Paused(left),
                    None => self.dispatch(command, args, out).await,
                },
                Err(fault) => {
                    self.server.stats.rejected(command);
                    self.transaction.note_error();
                    Err(fault.into())
                }
            },
            Err(fault) => {
                if let Some(command) = args.first().and_then(|name| commands::named(name)) {
                    self.server.stats.rejected(command);
                }
                self.transaction.note_error();
                Err(fault.into())
            }
        };
        let step = match flow {
            Ok(Flow::Done | Flow::Failed) => Step::Replied,
            Ok(Flow::Close) => Step::Close,
            // Whoever waits was told so above.
            Ok(Flow::Block(_)) => Step::Replied,
            Err(Stop::Fault(fault)) => {
                // A reply whose commit failed is none.
                out.rewind(start);
                // What it was refused for may not be durable yet.
                self.note_seq(self.server.engine.applied_seq());
                self.server.stats.error(fault.message());
                out.error(fault.message().as_bytes());
                Step::Replied
            }
            Err(Stop::Waiting(waiting)) => Step::Waiting(waiting),
        };
        self.mind_replies(known, start, out);
        step
    }

    async fn dispatch(
        &mut self,
        command: &'static Command,
        args: &[&[u8]],
        out: &mut (dyn Sink + Send),
    ) -> Result<Flow, Stop> {
        if self.transaction.queues(command) {
            let flags = self.server.scripts.flags_of(command, args);
            self.transaction.queue(command, args, flags)?;
            self.show_transaction();
            out.simple("QUEUED");
            return Ok(Flow::Done);
        }
        if command.has(flag::PUBSUB)
            && command.name.ends_with("publish")
            && !self.server.pubsub.is_idle()
        {
            let_others_go_first().await;
        }
        // CLIENT LIST shows what a client is doing, not only what it has done.
        self.client.peer.command.store(commands::place(command) + 1, Ordering::Relaxed);
        self.monitor_before(command, args);
        let flow = match command.run {
            Run::Session(run) => match run(self, args, out) {
                Ok(Flow::Block(block)) => Err(self.block(command, args, block)),
                flow => flow.map_err(Stop::from),
            },
            Run::Waiting(run) => run(self, args, out).await.map_err(Stop::from),
            Run::Keys(_) => self.run_on_keys(command, args, out).await,
            Run::Subcommands => return Err(commands::unknown_subcommand(args).into()),
        };
        let now = self.server.engine.monotonic();
        let took = now.saturating_sub(self.begun);
        self.begun = now;
        let outcome = match &flow {
            Err(Stop::Fault(_)) | Ok(Flow::Failed) => Outcome::Failed,
            Err(Stop::Waiting(_)) => Outcome::Waits,
            Ok(_) => Outcome::Done,
        };
        self.note_called(command, args, took, outcome);
        flow
    }

    /// Locks what the command touches, runs it, commits.
    async fn run_on_keys(
        &mut self,
        command: &'static Command,
        args: &[&[u8]],
        out: &mut (dyn Sink + Send),
    ) -> Result<Flow, Stop> {
        let server = Arc::clone(&self.server);
        if command.has(flag::UNLOCKED) {
            return self.run_alone(command, args, out);
        }
        if !command.has(flag::EXCLUSIVE) {
            let gate = match server.locks.try_share() {
                Some(gate) => gate,
                None => server.scripts.running.unless_busy(server.locks.share()).await?,
            };
            let keys = || command.keys.positions(args).filter_map(|at| args.get(at).copied());
            let locked = server.locks.keys(&gate, &server.way, keys());
            // A write that somebody waits for serves them before anybody else comes.
            let is_awaited =
                command.has(flag::WRITE) && server.blocked.is_awaited(self.client.db, keys());
            if !is_awaited {
                let ran = self.run_locked(command, args, out);
                drop(locked);
                let (flow, ready) = ran?;
                if !ready.is_empty() {
                    // Keys that the command made in another database.
                    drop(gate);
                    let _alone = server.locks.exclude().await;
                    self.seq = self.seq.max(server.serve_blocked(ready));
                }
                return Ok(flow);
            }
            drop(locked);
        }
        let _alone = server.scripts.running.unless_busy(server.locks.exclude()).await?;
        self.run_alone(command, args, out)
    }

    /// Runs a command that has the keyspace for itself, or that needs no lock.
    fn run_alone(
        &mut self,
        command: &'static Command,
        args: &[&[u8]],
        out: &mut (dyn Sink + Send),
    ) -> Result<Flow, Stop> {
        let (flow, ready) = self.run_locked(command, args, out)?;
        if !ready.is_empty() {
            self.seq = self.seq.max(self.server.serve_blocked(ready));
        }
        Ok(flow)
    }

    /// Runs a command whose keys are locked. Answers also which keys it made ready that somebody
    /// waits for.
    fn run_locked(
        &mut self,
        command: &'static Command,
        args: &[&[u8]],
        out: &mut (dyn Sink + Send),
    ) -> Result<(Flow, Ready), Stop> {
        let Run::Keys(run) = command.run else { return Ok((Flow::Done, Vec::new())) };
        let server = Arc::clone(&self.server);
        self.policy.renew(&server.database);
        let (policy, number) = self.policy.get();
        let mut txn = server.begin_under(policy, number, self.client.db);
        txn.set_origin(self.client.id);
        self.client.note_reads(&server, command, args);
        if command.keys.are_many(args) {
            txn.expect(command.keys.positions(args).filter_map(|at| args.get(at).copied()));
        }
        let flow = {
            let (caller, ready, client) = (Caller::Client, None, &mut self.client);
            let (server, txn) = (&*server, &mut txn);
            run(&mut Context { server, txn, client, out, caller, ready }, args)?
        };
        let only_reads = server.pause.is_possible() && self.only_reads(command, args);
        let (seq, ready) = if only_reads { server.end_reading(txn) } else { server.commit(txn) }?;
        self.seq = self.seq.max(seq);
        match flow {
            Flow::Block(block) => Err(self.block(command, args, block)),
            flow => Ok((flow, ready)),
        }
    }

    /// Begins to wait. The keys are still locked.
    fn block(&mut self, command: &'static Command, args: &[&[u8]], mut block: Block) -> Stop {
        let (until_ms, again) = (block.until_ms, block.again.take());
        let durable = block.durable.take();
        let args = again.unwrap_or_else(|| args.iter().map(|arg| arg.to_vec()).collect());
        let server = Arc::clone(&self.server);
        let (waiter, receiver) = server.blocked.add(command, args, self.client.clone(), block);
        Stop::Waiting(Box::new(Waiting { server, waiter, receiver, until_ms, durable }))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.unwatch_all();
        self.server.pubsub.forget(&self.client.peer);
        self.server.tracking.stop(&self.client.peer);
        self.server.monitors.remove(&self.client.peer);
        if self.server.pause.is_possible() {
            self.server.pause.leave(self.client.id);
        }
        self.server.clients.remove(self.client.id);
    }
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

/// Why a command has not replied.
#[derive(Debug)]
pub(crate) enum Stop {
    Fault(Fault),
    Waiting(Box<Waiting>),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

/// The error for a command that nobody knows, with the beginning of what was asked.
pub(crate) fn unknown_command(given: &[&[u8]]) -> Fault {
    let name = args::shown(given.first().copied().unwrap_or_default());
    let mut shown = String::new();
    for arg in given.iter().skip(1) {
        if shown.len() >= 128 {
            break;
        }
        let arg = args::shown(arg);
        let room = 128 - shown.len();
        let cut: String = arg.chars().take(room).collect();
        shown.push_str(&format!("'{cut}' "));
    }
    let name: String = name.chars().take(128).collect();
    Fault::new(format!("ERR unknown command '{name}', with args beginning with: {shown}"))
}
