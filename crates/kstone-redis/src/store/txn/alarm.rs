//! Schedules a later background check of a key (hash field expiry), and runs side transactions.

use kstone_core::Durability;

use crate::fault::Result;
use crate::store::txn::Txn;
use crate::store::{Kind, fields};

impl<'s> Txn<'s> {
    /// The key is to be looked up at this time, even if no command uses it. A key has one alarm.
    pub(crate) fn set_alarm(&mut self, key: &[u8], at_ms: u64) {
        self.changes.at(self.slot, key).alarm = Some(Some(at_ms));
    }

    /// The key needs its alarm no more.
    pub(crate) fn clear_alarm(&mut self, key: &[u8]) {
        self.changes.at(self.slot, key).alarm = Some(None);
    }

    /// The key's alarm has gone off: what is due is done by looking the key up.
    pub(crate) fn answer_alarm(&mut self, key: &[u8]) -> Result<()> {
        let next_ms = match self.lookup_quietly(key)? {
            Some(entry) if entry.kind == Kind::Hash => {
                fields::HashHead::decode(&entry.body)?.next_expiry_ms
            }
            _ => None,
        };
        match next_ms {
            Some(at_ms) => self.set_alarm(key, at_ms),
            None => self.clear_alarm(key),
        }
        Ok(())
    }

    /// Whether this transaction has changed the key.
    pub(crate) fn has_changed(&self, key: &[u8]) -> bool {
        self.changes.get(self.slot, key).is_some()
    }

    /// A transaction of its own in the same database, for what is true whether or not this one is
    /// committed. It shows and touches only keys that this one has not changed.
    pub(crate) fn aside(&self) -> Txn<'s> {
        let mut aside = Txn::new(self.engine, self.databases, self.held.hot(), self.db);
        (aside.slot, aside.now_ms) = (self.slot, self.now_ms);
        aside.annexed.clone_from(&self.annexed);
        aside
    }

    /// Commits what was done [`aside`](Txn::aside). There are no notifications, and nobody waits for the disk:
    /// what is lost in a crash is done again.
    pub(crate) fn commit_aside(self) -> Result<()> {
        self.commit(Durability::Os).map(drop)
    }
}
