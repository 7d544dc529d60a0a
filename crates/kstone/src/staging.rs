//! The write path of one item: the item itself, its index entries and its stream records, staged
//! for one atomic commit. Every operation that writes items goes through here, the reclaiming of
//! expired items included.

use std::sync::Arc;

use kstone_core::{Engine, Key, Locked, Seq, TableId, WriteBatch};

use crate::cost::Costs;
use crate::error::Result;
use crate::policy::{CommitChanges, Effect};
use crate::stream::{Change, StreamTicket};
use crate::table::live::Table;
use crate::value::ItemBytes;
use crate::write_policy::Rules;

/// A write as it is put together under the locks.
pub(crate) struct Staged<'a> {
    pub batch: WriteBatch,
    pub locked: Locked<'a>,
    pub streams: StreamTicket<'a>,
    pub costs: Costs,
    /// The newest thing that was read: what the answer rests on if nothing is written.
    pub seen: Seq,
    /// Asked for what an absent record rests on.
    pub engine: &'a Engine,
    /// The policy that is in force.
    pub rules: Option<Arc<Rules>>,
    /// What the policy hears of once all this is committed.
    pub counted: CommitChanges,
}

/// An item as it is stored now.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub item: ItemBytes,
    pub expires_at_ms: Option<u64>,
    /// Its time is over: it counts as absent, but it and its index entries still take room, and
    /// the stream has not seen it go.
    pub expired: bool,
}

impl Stored {
    /// The item, unless its time is over.
    pub fn live(&self) -> Option<&ItemBytes> {
        (!self.expired).then_some(&self.item)
    }
}

/// Why an item is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    User,
    Expiry,
    /// A purge, of which streams show nothing.
    Purge,
}

impl Staged<'_> {
    /// The item with this key as it is now, also when it has expired.
    pub fn stored(&mut self, table: TableId, key: &Key) -> Result<Option<Stored>> {
        let Some(record) = self.locked.get_even_expired(table, key)? else {
            // What hides the record was waited for by the read, so it is below this number.
            self.seen = self.seen.max(self.engine.applied_seq());
            return Ok(None);
        };
        self.seen = self.seen.max(record.version);
        let now_ms = self.locked.now_ms();
        Ok(Some(Stored {
            item: ItemBytes::from_bytes(record.value)?,
            expires_at_ms: record.expires_at_ms,
            expired: record.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms),
        }))
    }

    /// Writes an item in place of what is stored under its key, if the policy in force admits it.
    /// Gives the item as it is stored where the policy made it another.
    pub fn put(
        &mut self,
        table: &Table,
        key: &Key,
        old: Option<&Stored>,
        new: &ItemBytes,
        effect: Effect,
    ) -> Result<Option<ItemBytes>> {
        let (ruled, expires_at_ms) = match self.is_ruled(table) {
            true => self.admit(table, key, old, new, effect)?,
            false => (None, table.expiry_ms(new.as_ref(), self.locked.now_ms())),
        };
        let new = ruled.as_ref().unwrap_or(new);
        self.put_records(table, key, old, new, expires_at_ms)?;
        if self.costs.wanted() {
            let before = old.and_then(Stored::live).map_or(0, ItemBytes::size);
            self.costs.write(table, None, new.size().max(before));
        }
        if table.stream().is_some() {
            let mut before = old;
            if let Some(expired) = old.filter(|old| old.expired) {
                // Its time was over before this write came.
                self.record_change(table, key, Some(&expired.item), None, Cause::Expiry)?;
                before = None;
            }
            self.record_change(table, key, before.map(|old| &old.item), Some(new), Cause::User)?;
        }
        Ok(ruled)
    }

    /// Writes an item and its index entries in place of what is stored, without a stream record.
    fn put_records(
        &mut self,
        table: &Table,
        key: &Key,
        old: Option<&Stored>,
        new: &ItemBytes,
        expires_at_ms: Option<u64>,
    ) -> Result<()> {
        put_record(&mut self.batch, table.id(), key, new, expires_at_ms)?;
        for index in &table.indexes {
            let before = old.and_then(|old| index.entry_key(key, old.item.as_ref()));
            let after = index.entry_key(key, new.as_ref());
            if let Some(gone) = before.as_ref().filter(|before| after.as_ref() != Some(before)) {
                self.batch.delete(index.id, gone)?;
                if self.costs.wanted() {
                    let bytes = old.map_or(0, |old| index.project(&old.item).size());
                    self.costs.write(table, Some(index), bytes);
                }
            }
            let Some(entry) = after else { continue };
            let held = index.project(new);
            let unchanged = before.as_ref() == Some(&entry)
                && old.is_some_and(|old| {
                    old.expires_at_ms == expires_at_ms
                        && index.project(&old.item).as_slice() == held.as_slice()
                });
            if !unchanged {
                put_record(&mut self.batch, index.id, &entry, &held, expires_at_ms)?;
                if self.costs.wanted() {
                    self.costs.write(table, Some(index), held.size());
                }
            }
        }
        Ok(())
    }

    /// Deletes what a client wants gone; if nothing is stored, that costs a write all the same.
    pub fn delete_asked(&mut self, table: &Table, key: &Key, old: Option<&Stored>) -> Result<()> {
        match old {
            Some(old) => self.delete(table, key, old, Cause::User)?,
            None => self.costs.write(table, None, 0),
        }
        Ok(())
    }

    /// Deletes a stored item with its index entries.
    pub fn delete(&mut self, table: &Table, key: &Key, old: &Stored, cause: Cause) -> Result<()> {
        self.release(table, key, old, cause)?;
        self.batch.delete(table.id(), key)?;
        for index in &table.indexes {
            let Some(entry) = index.entry_key(key, old.item.as_ref()) else { continue };
            self.batch.delete(index.id, &entry)?;
            if self.costs.wanted() {
                self.costs.write(table, Some(index), index.project(&old.item).size());
            }
        }
        if self.costs.wanted() {
            self.costs.write(table, None, old.item.size());
        }
        if cause == Cause::Purge {
            return Ok(());
        }
        let cause = if old.expired { Cause::Expiry } else { cause };
        self.record_change(table, key, Some(&old.item), None, cause)
    }

    fn record_change(
        &mut self,
        table: &Table,
        key: &Key,
        old: Option<&ItemBytes>,
        new: Option<&ItemBytes>,
        cause: Cause,
    ) -> Result<()> {
        let Some((stream, view)) = table.stream() else { return Ok(()) };
        let Some(any) = new.or(old) else { return Ok(()) };
        // Writing the same again changes nothing, and a stream tells of changes only.
        if old.map(ItemBytes::as_slice) == new.map(ItemBytes::as_slice) {
            return Ok(());
        }
        let keys = table.key_attributes(any.as_ref());
        let change = Change { keys: &keys, old, new, cause, now_ms: self.locked.now_ms() };
        self.streams.append(&mut self.batch, stream, view, key.stripe(), &change)
    }
}

/// Writes a record, with its expiry if it has one.
pub(crate) fn put_record(
    batch: &mut WriteBatch,
    table: TableId,
    key: &Key,
    item: &ItemBytes,
    expires_at_ms: Option<u64>,
) -> Result<()> {
    match expires_at_ms {
        Some(at_ms) => batch.put_expiring(table, key, item.as_slice(), at_ms)?,
        None => batch.put(table, key, item.as_slice())?,
    }
    Ok(())
}
