//! A client's session: its database, user, transaction, and what it waits for.
//!
//! There are two ways in: [`Session::execute`] (`execute`) runs one command, and
//! [`Session::execute_together`] (`batch`) runs several that came together (`pipeline`) under the
//! same locks. `admit` is what both check first, `accounting` is what both record afterwards.

mod accounting;
mod admit;
mod batch;
mod cached_policy;
pub(crate) mod call;
mod door;
mod execute;
mod pipeline;
mod transaction;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::server::Server;
use crate::server::acl::{self, User};
use crate::server::clients::Peer;
use crate::server::tracking;
use cached_policy::CachedPolicy;
pub use pipeline::Pipeline;
use transaction::Transaction;
pub use waiting::Waiting;

/// What commands may know and change about the client that sent them.
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
    /// The ACL user that it is logged in as.
    pub(crate) user: Arc<User>,
    /// Whether it has authenticated, or does not have to.
    pub(crate) is_authenticated: bool,
    /// The version of the ACL that `user` was read from; [`INSIDE`] if from none.
    acl_version: u64,
    /// How it wants to hear of changes to keys that it has read: CLIENT TRACKING.
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

/// In place of an ACL version: a client in this process is no ACL user, and no change to the ACL
/// applies to it.
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

/// One client's connection to the keys, over the network or in this process.
#[derive(Debug)]
pub struct Session {
    pub(crate) server: Arc<Server>,
    pub(crate) client: Client,
    pub(crate) transaction: Transaction,
    /// The last commit that the replies given so far may show ([`Session::seq`]).
    seq: u64,
    /// When the command that runs now, or the next one, started: when the one before it ended.
    command_started: Duration,
    /// How many of the next commands are executed alone, because they failed as a batch.
    alone_left: usize,
    policy: CachedPolicy,
}

/// What to do after a command.
#[derive(Debug)]
pub enum CommandOutcome {
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

impl Session {
    /// A client that comes from one address to another.
    pub(crate) fn new(server: Arc<Server>, address: String, local_address: String) -> Session {
        let id = server.client_id();
        let command_started = server.engine.monotonic();
        let peer = Arc::new(Peer::new(id, command_started, address, local_address));
        server.clients.add(Arc::clone(&peer));
        server.stats.connections.fetch_add(1, Ordering::Relaxed);
        let client = Client::new(&server, peer);
        let (transaction, policy) = Default::default();
        Session { server, client, transaction, seq: 0, command_started, alone_left: 0, policy }
    }

    /// A client in this process that may do everything in a database, whatever the ACL says.
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

    /// The next reply may show what this commit wrote.
    pub(crate) fn note_seq(&mut self, seq: u64) {
        self.seq = self.seq.max(seq);
    }

    /// The number of the last commit that the replies given so far may show. A door that promises
    /// durability sends them once everything up to it is durable.
    pub fn seq(&self) -> u64 {
        self.seq
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
