//! Backfill: fills a new index from the items that are there.
//!
//! Writes keep the index from the moment it is in the catalogue, so whatever is written during the
//! fill is right already; the fill only has to add what was there before, item by item, as it
//! finds it under the lock.

use kstone_core::{Key, ScanCursor, StripeSet, TableId};

use crate::background::Step;
use crate::cost::Costs;
use crate::database::Database;
use crate::database::locking::Stop;
use crate::error::{Result, table_gone};
use crate::staging::{Staged, put_record};
use crate::table::Status;
use crate::table::live::{Index, Table};
use crate::table::record::IndexRecord;
use crate::value::ItemRef;

/// Items of one commit. Why not more: other writers wait for the locks of all their stripes.
const CHUNK: usize = 32;

impl Database {
    /// Fills every index that is being made; an index whose table changes meanwhile, from the
    /// start in the next step.
    pub(crate) fn fill_indexes(&self) -> Result<Step> {
        let mut step = Ok(Step::Idle);
        for table in self.inner().catalog.all() {
            let making = |index: &&Index| index.status == Status::Creating;
            let Some(index) = table.indexes.iter().find(making) else { continue };
            // One table that cannot be read does not keep the others waiting.
            match self.fill(&table, index) {
                Ok(()) => step = step.map(|_| Step::More),
                Err(error) => step = Err(error),
            }
        }
        step
    }

    fn fill(&self, table: &Table, index: &Index) -> Result<()> {
        let filled = self.each_item(
            table,
            std::slice::from_ref(index),
            |staged, key| staged.fill(table, index, key),
            |looked| {
                let mut progress = self.inner().background.progress.lock();
                progress.entry(table.id()).or_default().insert(index.id.0, looked);
            },
        );
        self.inner().background.progress.lock().remove(&table.id());
        if filled? {
            self.finish_index(table.name(), index.id)?;
        }
        Ok(())
    }

    /// Runs `work` on every item that was written under what the table was before its last change,
    /// some in each commit; `false` if the table was changed again meanwhile, or the database is
    /// being closed. `touched` are the indexes whose entries `work` writes.
    pub(crate) fn each_item(
        &self,
        table: &Table,
        touched: &[Index],
        work: impl Fn(&mut Staged<'_>, &Key) -> Result<()>,
        progress: impl Fn(u64),
    ) -> Result<bool> {
        drop(self.snapshot_after_change()?);
        let mut cursor = Some(ScanCursor::start());
        let mut looked = 0;
        while let Some(at) = cursor.take() {
            if self.inner().background.stopping() || !table.is_current() {
                return Ok(false);
            }
            let mut scan = self.engine().snapshot().scan(table.id(), at);
            let mut keys = Vec::with_capacity(CHUNK);
            let mut stripes = StripeSet::EMPTY;
            while keys.len() < CHUNK {
                let Some(record) = scan.next_ref().map_err(table_gone)? else { break };
                let key = Key {
                    pk: record.pk.to_vec().into(),
                    sk: record.sk.map(|sk| sk.to_vec().into()),
                };
                stripes.insert(key.stripe());
                // As far as can be told before the locks are held: then one round will do.
                let item = ItemRef::from_slice(record.value)?;
                for entry in touched.iter().filter_map(|index| index.entry_key(&key, item)) {
                    stripes.insert(entry.stripe());
                }
                keys.push(key);
            }
            looked += keys.len() as u64;
            cursor = scan.cursor();
            drop(scan);
            let changed = self.change(stripes, Costs::default, |staged| {
                Stop::unless_current(table)?;
                for key in &keys {
                    work(staged, key)?;
                }
                Ok(())
            })?;
            match changed {
                None => return Ok(false),
                Some(changed) => changed.result?,
            }
            progress(looked);
            // A large table takes a while, and what expires meanwhile should not have to wait.
            // What fails here is met again by the step that is there for it.
            let _met_again = self.reclaim_expired();
        }
        Ok(true)
    }

    fn finish_index(&self, table: &str, index: TableId) -> Result<()> {
        let inner = self.inner();
        let changing = inner.catalog.change(&inner.engine);
        let Some(table) = changing.get(table) else { return Ok(()) };
        let mut record = table.record.clone();
        let making = |i: &&mut IndexRecord| i.id == index.0 && i.status == Status::Creating;
        if let Some(index) = record.global.iter_mut().find(making) {
            index.status = Status::Active;
            changing.put(record, &[])?;
        }
        Ok(())
    }
}

impl Staged<'_> {
    /// Adds the index entry of an item that was there before the index.
    fn fill(&mut self, table: &Table, index: &Index, key: &Key) -> Result<()> {
        let Some(stored) = self.stored(table.id(), key)? else { return Ok(()) };
        let Some(entry) = index.entry_key(key, stored.item.as_ref()) else { return Ok(()) };
        let held = index.project(&stored.item);
        put_record(&mut self.batch, index.id, &entry, &held, stored.expires_at_ms)
    }
}
