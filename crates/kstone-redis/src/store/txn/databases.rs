//! Whole databases: emptying, swapping, listing and counting their keys.

use std::ops::ControlFlow;

use crate::fault::Result;
use crate::store::Kind;
use crate::store::txn::commit::difference;
use crate::store::txn::governed::DatabaseChange;
use crate::store::txn::{PARTS_WALKED_MAX, Txn, kind_of};

impl Txn<'_> {
    /// Removes every key of a logical database, in constant time. The caller has the keyspace for
    /// itself.
    pub(crate) fn flush(&mut self, db: u8) {
        let layout = self.layout.get_or_insert_with(|| self.databases.layout());
        let slot = layout.slot(db);
        self.changes.forget_slot(slot);
        self.held.forget_slot(slot);
        // Whatever the engine has there is nobody's any more.
        self.annexed.retain(|(at, _, _)| *at != slot);
        self.orphans.retain(|(at, _)| *at != slot);
        self.seen.2 = None;
        if !self.emptied.contains(&slot) {
            self.emptied.push(slot);
        }
        self.committed.flushed.push(db);
        self.note_move(DatabaseChange::Emptied(db));
    }

    /// Swaps two logical databases. The caller has the whole keyspace to itself.
    pub(crate) fn swap(&mut self, one: u8, other: u8) {
        let layout = self.layout.get_or_insert_with(|| self.databases.layout());
        layout.slots.swap(usize::from(one), usize::from(other));
        self.committed.flushed.extend([one, other]);
        self.note_move(DatabaseChange::Swapped(one, other));
        self.select(self.db);
    }

    /// Shows every key of the selected database that is there, in no order, until told to stop. It
    /// does not show what this transaction changed, unless the database was emptied in it.
    pub(crate) fn each_key(
        &self,
        see: impl FnMut(&[u8], Kind, Option<u64>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.each_key_from(0, see)
    }

    /// The same, beginning with the keys of a stripe and going once around.
    pub(crate) fn each_key_from(
        &self,
        stripe: u8,
        mut see: impl FnMut(&[u8], Kind, Option<u64>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let table = self.databases.table(self.slot).filter(|_| !self.emptied.contains(&self.slot));
        let snapshot = self.engine.snapshot();
        for stripe in (stripe..=u8::MAX).chain(0..stripe) {
            let cursor = kstone_core::ScanCursor::segment(u32::from(stripe), 256)?;
            let (Some(table), Some(cursor)) = (table, cursor) else { break };
            let mut scan = snapshot.scan(table, cursor);
            let mut parts = 0;
            while let Some(record) = scan.next_ref()? {
                self.step();
                if record.sk.is_some() {
                    parts += 1;
                    if parts == PARTS_WALKED_MAX {
                        scan.skip_partition()?;
                    }
                    continue;
                }
                parts = 0;
                // A key whose head alone was not written is still in the engine.
                let changes = self.changes.get(self.slot, record.pk);
                if changes.is_some_and(|changes| changes.head.is_some()) {
                    continue;
                }
                let kind = kind_of(record.value)?;
                if see(record.pk, kind, record.expires_at_ms)?.is_break() {
                    return Ok(());
                }
            }
        }
        for (key, changes) in self.changes.slot(self.slot) {
            if let Some(Some(head)) = &changes.head
                && see(key, kind_of(&head.value)?, head.expires_at_ms)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// How many keys the selected database has.
    pub(crate) fn count_keys(&self) -> Result<i64> {
        let pending: i64 =
            self.changes.slot(self.slot).map(|(_, changes)| difference(changes)).sum();
        if self.emptied.contains(&self.slot) {
            return Ok(pending);
        }
        if let Some(count) = self.databases.counts.get(self.slot) {
            return Ok(count + pending);
        }
        let mut count = 0;
        self.each_key(|_, _, _| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }
}
