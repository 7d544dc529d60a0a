//! The `Keys` trait: Redis commands on keys of one slot, independent of where the keys are.
//!
//! Everything above that is not the door for Redis's own protocol (the catalogue, erasure, the
//! learning platform) holds a [`Keys`] and never asks whether the keys are in this process
//! ([`LocalKeys`]) or in a Valkey or Redis Cluster far away. A command is its arguments, a reply is
//! a [`Value`]: there is one way to say a thing, and every client of Redis knows it.
//!
//! What the port promises is what a cluster can keep, and no more:
//! - A command names its keys, and all of them are in one [slot]; a transaction has one slot for all
//!   of its commands. What cannot be told to keep to that is refused, here as there, so that what
//!   works on one machine works on many. (Keys with the same tag, as in `{user:1}:cart`, share a
//!   slot.)
//! - The commands of a pipeline may be on several slots: what is on one slot is done in order, and
//!   others may come in between.
//! - Nothing waits: BLPOP and its kin would hold up a connection that others share. Nothing
//!   subscribes, and nothing changes the server or the connection.
//! - A script names the keys that it touches.
//! - Which of the 16 databases is part of the handle; a cluster has only the first.
//!
//! Answers are boxed futures, for the reasons that [`kstone::ports`] gives.
//!
//! [slot]: slot_of

mod admission;
pub(crate) mod local;
mod slot;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::fault::Fault;
use crate::reply::Value;

pub use kstone::ports::PurgeReport;

pub use admission::{KnownCommand, NamedKey, PortCommand, known_commands};
pub use local::LocalKeys;
pub use slot::{SLOTS, slot_of};

/// What every call of a port returns: a boxed future, because ports are used as trait objects.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// What asking a port comes to.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// One of several replies: an error of one command leaves the others as they are.
pub type Reply = Result<Value, Fault>;

/// Why a port did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The store answered with an error: a wrong type, a rule that the write breaks.
    #[error(transparent)]
    Reply(#[from] Fault),
    /// The port does not do this, wherever the keys are: ask for something else.
    #[error("{0}")]
    Refused(String),
    /// This adapter cannot do what another can, and says which.
    #[error("{0}")]
    Unsupported(String),
    /// The store cannot be reached or is not to be used now. Whether it was done is not known;
    /// asking again may help.
    #[error("{0}")]
    Unavailable(String),
}

/// Keys of one database: of this process, or of a service that speaks Redis's protocol.
///
/// The keys of this process are worked on by the thread that first polls the answer, mostly for
/// microseconds; after that only the disk is waited for, if the replies promise that, and no thread
/// waits with it.
pub trait Keys: Debug + Send + Sync {
    /// The same keys' neighbours: another of the 16 databases, if the store has it.
    fn database(&self, db: u8) -> Option<Arc<dyn Keys>>;

    /// Which database this is.
    fn db(&self) -> u8;

    /// Executes one command. `args` begins with its name.
    ///
    /// # Errors
    /// [`Error::Reply`] if the reply is an error.
    fn command<'a>(&'a self, args: &'a [Bytes]) -> PortFuture<'a, Value>;

    /// Executes several commands, each for itself, and returns each.
    fn pipeline<'a>(&'a self, commands: &'a [Vec<Bytes>]) -> PortFuture<'a, Vec<Reply>>;

    /// Executes several commands of one slot as one: nobody sees some of them, and a crash leaves
    /// all or none. One that fails leaves the others, as with MULTI and EXEC.
    fn transaction<'a>(&'a self, commands: &'a [Vec<Bytes>]) -> PortFuture<'a, Vec<Reply>>;

    /// Begins to watch keys of one slot: what is read from now on, and decided from that, is
    /// committed only if none of them has changed. A caller that loses the race reads and tries again.
    fn watch<'a>(&'a self, keys: &'a [Bytes]) -> PortFuture<'a, Box<dyn Watch>>;

    /// Some of the keys, beginning anywhere. What is there all the time from the first page to the
    /// last is shown, possibly more than once; what comes or goes meanwhile may be.
    fn scan<'a>(&'a self, request: &'a ScanKeys) -> PortFuture<'a, KeysPage>;

    /// Returns once every write that began before is committed. A rule that was changed before is
    /// seen by every write after.
    fn settle(&self) -> PortFuture<'_, ()>;

    /// Deletes, and removes the bytes from every file of the store and of the checkpoints that were
    /// made from it. Can be interrupted anywhere, and asked for again: what is gone already is
    /// removed from the files all the same.
    ///
    /// # Errors
    /// [`Error::Unsupported`] of a store whose files are out of reach.
    fn purge<'a>(&'a self, request: &'a PurgeKeys) -> PortFuture<'a, PurgeReport>;
}

/// Keys that are watched, until this is dropped.
pub trait Watch: Debug + Send {
    /// Executes a command on the slot of the watched keys, most likely one that reads.
    fn command<'a>(&'a mut self, args: &'a [Bytes]) -> PortFuture<'a, Value>;

    /// Executes several commands as [`Keys::transaction`] does, unless a watched key has changed:
    /// then nothing is done, and the answer is `None`.
    fn commit<'a>(
        self: Box<Self>,
        commands: &'a [Vec<Bytes>],
    ) -> PortFuture<'a, Option<Vec<Reply>>>;
}

/// Which keys to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanKeys {
    /// Where to go on: [`KeysPage::next`] of the page before; `None` at the beginning.
    pub after: Option<Bytes>,
    /// Only keys like this, as `KEYS` writes patterns.
    pub pattern: Option<Bytes>,
    /// Only keys of this type, as `TYPE` names it.
    pub kind: Option<&'static str>,
    /// About how many keys to look at.
    pub count: u32,
}

impl Default for ScanKeys {
    /// All keys, a thousand at a time.
    fn default() -> Self {
        ScanKeys { after: None, pattern: None, kind: None, count: 1000 }
    }
}

/// Some keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeysPage {
    /// The keys.
    pub keys: Vec<Bytes>,
    /// Where to go on; `None` if this was the last page. A page without keys need not be.
    pub next: Option<Bytes>,
}

/// What to delete for good.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PurgeKeys {
    /// Whole keys, by database.
    pub keys: Vec<(u8, Bytes)>,
    /// Members of collections, by database and key: a field of a hash, a member of a set or of a
    /// sorted set, every element of a list that is equal to it, the entry of a stream with this ID.
    pub members: Vec<(u8, Bytes, Bytes)>,
    /// Also every byte of what was deleted or overwritten before, of all owners: all files are
    /// rewritten, and not only those of the keys that are named here. Keys that were deleted, that
    /// expired or were renamed before anybody asked for a purge are in no list. SLOWLOG and ACL LOG
    /// are emptied.
    pub remains: bool,
    /// Only delete them, here and not in checkpoints. The bytes stay until somebody purges the
    /// remains: for those who have more to delete before that. The logs are emptied at once.
    pub files_later: bool,
}
