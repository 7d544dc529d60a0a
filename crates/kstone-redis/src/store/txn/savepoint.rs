//! Savepoints: rolls back one of several commands of a transaction.
//!
//! A command checks nearly everything before it writes, but that a key is too long, or that the
//! engine cannot be read, shows later. A command that runs alone is then simply not committed. In a
//! MULTI or a script the commands before it stay, so only its own changes are rolled back.

use bytes::Bytes;
use kstone_core::BATCH_LEN_MAX;

use crate::fault::{Fault, Result};
use crate::store::annex::AnnexId;
use crate::store::databases::Layout;
use crate::store::txn::governed::PendingMark;
use crate::store::txn::{KEY_TOO_LONG, Txn};

/// Room in a commit for what is written beside the keys: the table of databases, the names of
/// libraries, the ends of annexes.
const REST_LEN_MAX: usize = 64 << 10;

/// How a transaction was, but for its changes to keys, which know that themselves.
#[derive(Debug)]
pub(super) struct Savepoint {
    layout: Option<Layout>,
    emptied: usize,
    libraries: usize,
    touched: usize,
    flushed: usize,
    events: usize,
    ready: usize,
    dirty: u64,
    expired: u64,
    annexed: Vec<(u8, Vec<u8>, AnnexId)>,
    orphans: Vec<(u8, AnnexId)>,
    /// The annexes that had been begun.
    pub(super) filling: Vec<AnnexId>,
    pending: PendingMark,
}

impl Txn<'_> {
    /// A command begins of which nothing may stay if it fails ([`roll_back`](Txn::roll_back)).
    pub(crate) fn set_savepoint(&mut self) {
        self.changes.mark();
        let mark = Savepoint {
            layout: self.layout.clone(),
            emptied: self.emptied.len(),
            libraries: self.libraries.len(),
            touched: self.committed.touched.len(),
            flushed: self.committed.flushed.len(),
            events: self.committed.events.len(),
            ready: self.committed.ready.len(),
            dirty: self.committed.dirty,
            expired: self.committed.expired,
            annexed: self.annexed.clone(),
            orphans: self.orphans.clone(),
            filling: self.filling.ids().collect(),
            pending: self.pending_mark(),
        };
        match &mut self.mark {
            Some(have) => **have = mark,
            None => self.mark = Some(Box::new(mark)),
        }
    }

    /// The command that was begun last has failed: nothing of it stays.
    pub(crate) fn roll_back(&mut self) {
        const LOST: Fault = Fault::fixed(
            "ERR a command failed after it had written too much to be taken back: nothing was done",
        );
        self.refused = None;
        let Some(mark) = self.mark.take() else { return };
        if !self.changes.take_back() {
            self.failure.get_or_insert(LOST);
            return;
        }
        self.layout = mark.layout;
        self.emptied.truncate(mark.emptied);
        self.libraries.truncate(mark.libraries);
        self.committed.touched.truncate(mark.touched);
        self.committed.flushed.truncate(mark.flushed);
        self.committed.events.truncate(mark.events);
        self.committed.ready.truncate(mark.ready);
        (self.committed.dirty, self.committed.expired) = (mark.dirty, mark.expired);
        (self.annexed, self.orphans) = (mark.annexed, mark.orphans);
        self.take_back_pending(mark.pending);
        self.seen.2 = None;
        // An in-memory form that has seen more than there was must not be taken for one in step.
        let changes = &self.changes;
        self.held
            .before_commit(|slot, key| changes.get(slot, key).map_or(0, |changes| changes.writes));
        self.select(self.db);
    }

    /// What a command came to: it has failed, too, if it wrote what cannot be stored, or more than
    /// can be committed together with what those before it wrote.
    pub(crate) fn checked<T>(&mut self, ran: Result<T>) -> Result<T> {
        match self.refused.take() {
            Some(fault) => ran.and(Err(fault)),
            None if self.is_too_much() => ran.and(Err(Fault::TOO_MUCH_AT_ONCE)),
            None => ran,
        }
    }

    /// Whether what is to be committed together is too much.
    fn is_too_much(&self) -> bool {
        // Without a mark nothing could be taken back, and to look through it all would cost.
        if self.mark.is_none() {
            return false;
        }
        let libraries = self.libraries.iter().filter_map(|(_, text)| text.as_ref());
        let libraries_len = libraries.map(Bytes::len).sum::<usize>();
        let rest_len = libraries_len + self.index_len_max() + REST_LEN_MAX;
        self.changes.commit_len_max() + rest_len > BATCH_LEN_MAX
    }

    /// A part was written whose key leaves no room for it; in an annex there is room.
    #[cold]
    pub(super) fn refuse_part(&mut self, key: &[u8]) {
        let is_dropped = self.changes.get(self.slot, key).is_some_and(|changes| changes.dropped);
        if is_dropped || self.stored_annex(self.slot, key).is_none() {
            self.refused.get_or_insert(KEY_TOO_LONG);
        }
    }
}
