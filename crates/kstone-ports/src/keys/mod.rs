//! The port to keys: Redis commands on keys of one slot, independent of where the keys are.
//!
//! Whoever holds a [`Keys`] never asks whether the keys are in this process or in a Valkey or Redis
//! Cluster far away. A command is its arguments, a reply is a [`Value`].
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
//! - A failover of a cluster may take back what it acknowledged: what must not be lost is an item,
//!   and a key is a view of it that can be made again.
//!
//! [slot]: slot_of

mod command;
mod purge;
mod reply;
mod slot;

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::PortFuture;
use crate::capabilities::Capabilities;
use crate::items::PurgeReport;

pub use command::PortCommand;
pub use purge::PurgeKeys;
pub use reply::{ErrorReply, Reply, Value};
pub use slot::{SLOTS, slot_of};

/// Keys of one database: of this process, or of a service that speaks Redis's protocol.
pub trait Keys: Debug + Send + Sync {
    /// What this store can promise.
    fn capabilities(&self) -> Capabilities;

    /// What this store is called in messages and on pages: `this database`, or a URL.
    fn name(&self) -> String;

    /// The same keys' neighbours: another of the 16 databases, if the store has it.
    fn database(&self, db: u8) -> Option<Arc<dyn Keys>>;

    /// Which database this is.
    fn db(&self) -> u8;

    /// Executes one command. `args` begins with its name.
    ///
    /// # Errors
    /// [`Error::Reply`](crate::Error::Reply) if the reply is an error.
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
    /// [`Error::Unsupported`](crate::Error::Unsupported) of a store whose files are out of reach.
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
