//! Blocked clients: those that wait for a key with BLPOP and the like.
//!
//! A client registers while it holds the locks under which it found nothing, so that no write slips
//! in between. A command that writes a key which a client waits for takes the whole keyspace (see
//! `session::execute`), commits, and serves the blocked clients before any other command can take
//! what they wait for.
//!
//! Whether a client still waits is decided under its own lock ([`Waiter::claim`]), which is held
//! while its command is run again: a client that has gone or timed out takes nothing, and one that
//! took something gets it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use kstone_core::sync::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::command_spec::{
    Block, Caller, Command, Context, Flow, Request, Run, TimeoutReply, flag,
};
use crate::reply::{Tree, Value};
use crate::server::Server;
use crate::session::Client;
use crate::store::databases::DATABASES;

/// The reply to a client that CLIENT UNBLOCK has ended the wait of.
const UNBLOCKED: &[u8] = b"UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// Keys that blocked clients may now be served from, with their databases.
pub(crate) type Ready = Vec<(u8, Vec<u8>)>;

/// One client that waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// Its place among all who wait.
    ticket: u64,
    /// The command to run when a key is ready.
    command: &'static Command,
    args: Vec<Vec<u8>>,
    /// As it was when it began to wait.
    client: Client,
    /// What it waits for, in its database.
    keys: Vec<Vec<u8>>,
    /// The reply when its timeout is over.
    on_timeout: TimeoutReply,
    /// Where its reply goes; taken to end the wait.
    reply: Mutex<Option<oneshot::Sender<Served>>>,
}

impl Waiter {
    /// The reply when its timeout is over.
    pub(crate) fn on_timeout(&self) -> Value {
        self.on_timeout.reply()
    }

    /// Locks the end of the wait; `None` inside if it has ended.
    fn claim(&self) -> MutexGuard<'_, Option<oneshot::Sender<Served>>> {
        self.reply.lock()
    }
}

/// What a client that waited gets.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) reply: Value,
    /// What has to be durable before the reply may leave.
    pub(crate) seq: u64,
}

/// The clients that wait for each key, in the order in which they came.
type Queues = HashMap<Vec<u8>, BTreeMap<u64, Arc<Waiter>>>;

#[derive(Debug, Default)]
struct Waiting {
    next_ticket: u64,
    databases: [Queues; DATABASES],
    /// By the number of the client.
    clients: HashMap<u64, Arc<Waiter>>,
}

impl Waiting {
    fn queues(&self, db: u8) -> Option<&Queues> {
        self.databases.get(usize::from(db))
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    /// Read before the lock is taken, which is not needed if this is 0.
    count: AtomicUsize,
    waiting: Mutex<Waiting>,
}

impl Blocked {
    /// How many clients wait.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Whether this client waits.
    pub(crate) fn is_waiting(&self, client: u64) -> bool {
        self.count() > 0 && self.waiting.lock().clients.contains_key(&client)
    }

    /// Whether anybody waits for one of these keys.
    pub(crate) fn is_awaited<'k>(&self, db: u8, mut keys: impl Iterator<Item = &'k [u8]>) -> bool {
        if self.count() == 0 {
            return false;
        }
        let waiting = self.waiting.lock();
        waiting.queues(db).is_some_and(|queues| keys.any(|key| queues.contains_key(key)))
    }

    /// Whether a command writes and a client waits for one of its keys.
    pub(crate) fn is_awaited_write(&self, db: u8, request: Request<'_>) -> bool {
        request.command.has(flag::WRITE) && self.is_awaited(db, request.keys())
    }

    /// The keys of a database that anybody waits for.
    pub(crate) fn awaited(&self, db: u8) -> Vec<Vec<u8>> {
        if self.count() == 0 {
            return Vec::new();
        }
        let waiting = self.waiting.lock();
        waiting.queues(db).into_iter().flat_map(|queues| queues.keys().cloned()).collect()
    }

    /// A client begins to wait. It holds the locks of its keys.
    pub(crate) fn add(
        &self,
        command: &'static Command,
        args: Vec<Vec<u8>>,
        client: Client,
        block: Block,
    ) -> (Arc<Waiter>, oneshot::Receiver<Served>) {
        let Block { keys, on_timeout, .. } = block;
        let (sender, receiver) = oneshot::channel();
        let reply = Mutex::new(Some(sender));
        let mut waiting = self.waiting.lock();
        let ticket = waiting.next_ticket;
        waiting.next_ticket += 1;
        let waiter = Arc::new(Waiter { ticket, command, args, client, keys, on_timeout, reply });
        if let Some(queues) = waiting.databases.get_mut(usize::from(waiter.client.db)) {
            for key in &waiter.keys {
                queues.entry_ref(key).or_default().insert(ticket, Arc::clone(&waiter));
            }
        }
        waiting.clients.insert(waiter.client.id, Arc::clone(&waiter));
        self.count.fetch_add(1, Ordering::Release);
        (waiter, receiver)
    }

    /// A client waits no longer; false if it has just been served.
    pub(crate) fn give_up(&self, waiter: &Waiter) -> bool {
        let ended = waiter.claim().take().is_some();
        if ended {
            self.forget(waiter);
        }
        ended
    }

    /// Ends a client's wait as if its time were over, or with an error; false if it does not wait.
    pub(crate) fn unblock(&self, client: u64, with_error: bool) -> bool {
        let Some(waiter) = self.waiting.lock().clients.get(&client).cloned() else { return false };
        let Some(sender) = waiter.claim().take() else { return false };
        self.forget(&waiter);
        let reply = match with_error {
            true => Value::Error(UNBLOCKED.to_vec()),
            false => waiter.on_timeout(),
        };
        sender.send(Served { reply, seq: 0 }).is_ok()
    }

    /// The first who waits for a key, came after this one, and has something to hear: if the key is
    /// not there, only who waits in a group of the stream that is gone.
    fn next(&self, db: u8, key: &[u8], after: Option<u64>, is_there: bool) -> Option<Arc<Waiter>> {
        let waiting = self.waiting.lock();
        let queue = waiting.queues(db)?.get(key)?;
        let low = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut later = queue.range((low, Bound::Unbounded)).map(|(_, waiter)| waiter);
        later.find(|waiter| is_there || waiter.command.name == "xreadgroup").cloned()
    }

    /// Takes out of the queues a client whose wait has ended.
    fn forget(&self, waiter: &Waiter) {
        let mut waiting = self.waiting.lock();
        waiting.clients.remove(&waiter.client.id);
        if let Some(queues) = waiting.databases.get_mut(usize::from(waiter.client.db)) {
            for key in &waiter.keys {
                let Some(queue) = queues.get_mut(key) else { continue };
                queue.remove(&waiter.ticket);
                if queue.is_empty() {
                    queues.remove(key);
                }
            }
        }
        self.count.fetch_sub(1, Ordering::Release);
    }
}

impl Server {
    /// Serves the clients that waited for these keys, first come first served. The caller has the
    /// keyspace for itself. Returns the last commit's number.
    pub(crate) fn serve_blocked(&self, ready: Ready) -> u64 {
        let mut queue: VecDeque<_> = ready.into();
        let mut last = 0;
        while let Some((db, key)) = queue.pop_front() {
            let look = || self.begin(db).lookup(&key).map_or(true, |entry| entry.is_some());
            let (mut is_there, mut after) = (look(), None);
            while let Some(waiter) = self.blocked.next(db, &key, after, is_there) {
                after = Some(waiter.ticket);
                let Some((seq, more)) = self.serve(&waiter, &key) else { continue };
                last = last.max(seq);
                queue.extend(more);
                // Many may wait for a key that the first has just emptied.
                is_there = is_there && look();
            }
        }
        last
    }

    /// Runs a waiting client's command again; `None` if it waits on, or no longer.
    fn serve(&self, waiter: &Waiter, key: &[u8]) -> Option<(u64, Ready)> {
        let mut claimed = waiter.claim();
        claimed.as_ref()?;
        let Run::Keys(run) = waiter.command.run else { return None };
        let mut out = Tree::new();
        let mut client = waiter.client.clone();
        let mut txn = self.begin(client.db);
        txn.set_origin(client.id);
        let begun = self.engine.monotonic();
        let args: Vec<&[u8]> = waiter.args.iter().map(Vec::as_slice).collect();
        let context = Context::new(self, &mut txn, &mut client, &mut out, Caller::Waiter);
        let flow = run(&mut Context { ready: Some(key), ..context }, &args);
        let (reply, seq, more) = match flow {
            Ok(Flow::Block(_)) => return None,
            Ok(Flow::Done | Flow::Failed | Flow::Close) => match self.commit(txn) {
                Ok((seq, more)) => (out.into_value(), seq, more),
                Err(fault) => (fault.into(), self.engine.applied_seq(), Vec::new()),
            },
            Err(fault) => {
                self.stats.failed_after_waiting(waiter.command, fault.message());
                // It shows what others have written.
                (fault.into(), self.engine.applied_seq(), Vec::new())
            }
        };
        let took = self.engine.monotonic().saturating_sub(begun);
        let usec = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.note_slow(&waiter.client, Request { command: waiter.command, args: &args }, usec);
        self.note_latency("command-unblocking", took);
        let sender = claimed.take();
        drop(claimed);
        self.blocked.forget(waiter);
        // Who has gone since its command was committed has lost what it took, as if the reply had
        // been on its way.
        let _ = sender?.send(Served { reply, seq });
        Some((seq, more))
    }
}
