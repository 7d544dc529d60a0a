//! MULTI, EXEC, DISCARD and WATCH.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::command_spec::{Caller, Command, Context, Flow, Request, Run, flag};
use crate::fault::{Fault, Result};
use crate::reply::{Out, Sink, replace_with_error, write_value};
use crate::server::Server;
use crate::server::clients::state;
use crate::server::watches::Dirty;
use crate::session::Session;
use crate::session::accounting::Outcome;
use crate::session::admit::is_reading;
use crate::store::Txn;

/// A command and its arguments.
type Queued = (&'static Command, Vec<Vec<u8>>);

/// A client's transaction, if it has begun one.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    queue: Option<Vec<Queued>>,
    /// What the queued commands do, all together.
    flags: u32,
    /// A command could not be queued, so nothing of it will be done.
    has_error: bool,
    /// What is watched: database, key, and whether it was there when that began.
    watched: Vec<(u8, Vec<u8>, bool)>,
    dirty: Dirty,
}

impl Transaction {
    /// Whether commands are queued now.
    pub(crate) fn is_open(&self) -> bool {
        self.queue.is_some()
    }

    /// How many commands are queued; `None` without MULTI.
    pub(crate) fn len(&self) -> Option<usize> {
        self.queue.as_ref().map(Vec::len)
    }

    /// Whether a queued command has this flag.
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.is_open() && self.flags & flag != 0
    }

    /// Whether a command is to be queued instead of being run.
    pub(crate) fn queues(&self, command: &Command) -> bool {
        const AT_ONCE: [&str; 7] =
            ["multi", "exec", "discard", "watch", "unwatch", "quit", "reset"];
        self.is_open() && !AT_ONCE.contains(&command.name)
    }

    fn queue(&mut self, request: Request<'_>, flags: u32) -> Result<()> {
        if request.command.has(flag::NO_MULTI) {
            self.has_error = true;
            return Err(Fault::fixed("ERR Command not allowed inside a transaction"));
        }
        if let Some(queue) = &mut self.queue {
            self.flags |= flags;
            queue.push((request.command, request.args.iter().map(|arg| arg.to_vec()).collect()));
        }
        Ok(())
    }

    /// A command of the transaction was refused before it could be queued.
    pub(crate) fn note_error(&mut self) {
        self.has_error |= self.is_open();
    }
}

impl Session {
    /// Queues a command in the transaction that MULTI has opened.
    pub(super) fn queue(&mut self, request: Request<'_>, out: Out<'_>) -> Result<Flow> {
        let flags = self.server.scripts.flags_of(request);
        self.transaction.queue(request, flags)?;
        self.show_transaction();
        out.reply_simple("QUEUED")
    }

    /// MULTI.
    pub(crate) fn multi(&mut self, _: &[&[u8]], out: Out<'_>) -> Result<Flow> {
        if self.transaction.is_open() {
            return Err(Fault::fixed("ERR MULTI calls can not be nested"));
        }
        self.transaction.queue = Some(Vec::new());
        self.transaction.flags = 0;
        self.show_transaction();
        out.reply_ok()
    }

    /// DISCARD.
    pub(crate) fn discard(&mut self, _: &[&[u8]], out: Out<'_>) -> Result<Flow> {
        if !self.transaction.is_open() {
            return Err(Fault::fixed("ERR DISCARD without MULTI"));
        }
        self.abandon();
        out.reply_ok()
    }

    /// UNWATCH.
    pub(crate) fn unwatch(&mut self, _: &[&[u8]], out: Out<'_>) -> Result<Flow> {
        self.unwatch_all();
        out.reply_ok()
    }

    /// Forgets the transaction and what is watched.
    pub(crate) fn abandon(&mut self) {
        self.transaction.queue = None;
        self.transaction.has_error = false;
        self.show_transaction();
        self.unwatch_all();
    }

    /// Lets others see in CLIENT LIST how the transaction stands.
    fn show_transaction(&self) {
        let queued = self.transaction.len();
        self.client.peer.set(state::MULTI, queued.is_some());
        let shown = queued.map_or(-1, |queued| i64::try_from(queued).unwrap_or(i64::MAX));
        self.client.peer.queued.store(shown, Ordering::Relaxed);
    }

    pub(crate) fn unwatch_all(&mut self) {
        for (db, key, _) in std::mem::take(&mut self.transaction.watched) {
            self.server.watches.unwatch(db, &key, &self.transaction.dirty);
        }
        self.transaction.dirty.store(false, Ordering::Release);
    }

    /// WATCH.
    pub(crate) fn watch<'a>(
        &'a mut self,
        args: &'a [&'a [u8]],
        out: &'a mut (dyn Sink + Send),
    ) -> Pin<Box<dyn Future<Output = Result<Flow>> + Send + 'a>> {
        Box::pin(async move {
            if self.transaction.is_open() {
                return Err(Fault::fixed("ERR WATCH inside MULTI is not allowed"));
            }
            let server = Arc::clone(&self.server);
            let gate = server.locks.share().await;
            let locked =
                server.locks.keys(&gate, &server.task_handoff, args.iter().skip(1).copied());
            let db = self.client.db;
            let mut awaited = Vec::new();
            for key in args.iter().skip(1) {
                if self.transaction.watched.iter().any(|(at, have, _)| *at == db && have == key) {
                    continue;
                }
                // One whose time is over is removed on the way, and counts as not there.
                let mut txn = server.begin(db);
                let is_there = txn.lookup(key)?.is_some();
                let (seq, ready) = server.end_reading(txn)?;
                self.note_seq(seq);
                awaited.extend(ready);
                server.watches.watch(db, key, &self.transaction.dirty, is_there);
                self.transaction.watched.push((db, key.to_vec(), is_there));
            }
            drop(locked);
            drop(gate);
            if !awaited.is_empty() {
                self.serve_blocked(awaited).await;
            }
            out.reply_ok()
        })
    }

    /// EXEC.
    pub(crate) fn exec<'a>(
        &'a mut self,
        _: &'a [&'a [u8]],
        out: &'a mut (dyn Sink + Send),
    ) -> Pin<Box<dyn Future<Output = Result<Flow>> + Send + 'a>> {
        Box::pin(async move {
            let Some(queue) = self.transaction.queue.take() else {
                return Err(Fault::fixed("ERR EXEC without MULTI"));
            };
            self.show_transaction();
            if self.transaction.has_error {
                self.abandon();
                return Err(Fault::fixed(
                    "EXECABORT Transaction discarded because of previous errors.",
                ));
            }
            let server = Arc::clone(&self.server);
            let alone = server.scripts.running.unless_busy(server.locks.exclude()).await;
            let _alone = match alone {
                Ok(alone) => alone,
                Err(busy) => {
                    self.abandon();
                    return Err(aborted(&busy));
                }
            };
            let is_dirty = match self.look_at_watched() {
                Ok(is_dirty) => is_dirty,
                Err(fault) => {
                    self.abandon();
                    return Err(aborted(&fault));
                }
            };
            self.unwatch_all();
            if is_dirty {
                // It shows that somebody has written.
                self.note_seq(server.engine.applied_seq());
                return out.reply_null_array();
            }
            self.run_queue(queue, out)
        })
    }

    /// Whether anything that is watched was changed. What has expired since is removed now, which
    /// its watchers notice. The caller has the whole keyspace to itself.
    fn look_at_watched(&mut self) -> Result<bool> {
        let server = Arc::clone(&self.server);
        let (mut is_dirty, mut last) = (false, 0);
        for (db, key, was_there) in &self.transaction.watched {
            let mut txn = server.begin(*db);
            is_dirty |= txn.lookup(key)?.is_some() != *was_there;
            let (_, ready) = server.end_reading(txn)?;
            last = last.max(server.serve_blocked(ready));
        }
        self.note_seq(last);
        Ok(is_dirty | self.transaction.dirty.load(Ordering::Acquire))
    }

    /// Runs the queued commands as one commit. The caller has the whole keyspace to itself.
    fn run_queue(&mut self, queue: Vec<Queued>, out: Out<'_>) -> Result<Flow> {
        let server = Arc::clone(&self.server);
        let mut txn = server.begin(self.client.db);
        txn.set_origin(self.client.id);
        out.array(queue.len());
        for (command, args) in &queue {
            let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            let request = Request { command, args: &args };
            let (start, started) = (out.position(), server.engine.monotonic());
            let ran = self.run_queued(&mut txn, &server, request, out);
            if let Err(fault) = &ran {
                server.stats.error(fault.message());
                replace_with_error(out, start, fault);
            }
            let took = server.engine.monotonic().saturating_sub(started);
            let has_failed = matches!(ran, Err(_) | Ok(Flow::Failed));
            self.note_called(request, took, Outcome::of(has_failed));
        }
        let (seq, ready) = server.end(txn, || is_reading(self.transaction.flags))?;
        self.note_seq(seq);
        self.note_seq(server.serve_blocked(ready));
        Ok(Flow::Done)
    }

    /// Runs one of the queued commands. What it wrote is undone if it fails.
    fn run_queued<'s>(
        &mut self,
        txn: &mut Txn<'s>,
        server: &'s Server,
        request: Request<'_>,
        out: Out<'_>,
    ) -> Result<Flow> {
        self.client.note_reads(server, request);
        if self.deny(request, "multi").is_some() {
            return Err(Fault::fixed(
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and \
                 the EXEC call. This command is no longer allowed for the following reason: no \
                 permission to execute the command or subcommand",
            ));
        }
        let args = request.args;
        match request.command.run {
            Run::Keys(run) => {
                txn.select(self.client.db);
                let client = &mut self.client;
                Context::new(server, txn, client, out, Caller::Multi).run_or_roll_back(run, args)
            }
            Run::Session(run) => match run(self, args, out)? {
                // No command waits while it has all keys to itself: it replies how things stand.
                Flow::Block(block) => {
                    write_value(&block.on_timeout.reply(), out);
                    Ok(Flow::Done)
                }
                flow => Ok(flow),
            },
            // What waits for locks cannot run while this client has all of them.
            Run::Waiting(_) | Run::Subcommands => {
                Err(Fault::fixed("ERR Command not allowed inside a transaction"))
            }
        }
    }
}

/// What EXEC says when it cannot even begin.
pub(super) fn aborted(why: &Fault) -> Fault {
    Fault::new(format!("EXECABORT Transaction discarded because of: {}", why.message()))
}
