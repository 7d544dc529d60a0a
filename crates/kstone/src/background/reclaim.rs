//! Removing what has expired: items through their indexes and streams, like any delete; stream
//! records, index entries and tokens by themselves.

use std::collections::HashMap;
use std::sync::Arc;

use kstone_core::{Expired, StripeSet, TableId};

use crate::background::Step;
use crate::cost::Costs;
use crate::database::Database;
use crate::database::locking::Stop;
use crate::error::Result;
use crate::staging::Cause;
use crate::table::live::Table;

/// Records of one round.
const ROUND: usize = 1024;
/// Records without indexes or streams of one commit.
const CHUNK: usize = 256;

impl Database {
    /// Removes some of what has expired.
    pub(crate) fn reclaim_expired(&self) -> Result<Step> {
        let (expired, next) = self.engine().expired(0, ROUND)?;
        if expired.is_empty() {
            return Ok(Step::Idle);
        }
        let tables: HashMap<TableId, Arc<Table>> =
            self.inner().catalog.all().into_iter().map(|table| (table.id(), table)).collect();
        let (items, others): (Vec<_>, Vec<_>) =
            expired.iter().partition(|expired| tables.contains_key(&expired.table));
        // What cannot be removed does not keep the rest from being removed.
        let mut step = Ok(if next.is_some() { Step::More } else { Step::Idle });
        for expired in items {
            if self.inner().background.stopping() {
                return step;
            }
            if let Some(table) = tables.get(&expired.table)
                && let Err(error) = self.reclaim_item(table, expired)
            {
                step = Err(error);
            }
        }
        for chunk in others.chunk_by(|a, b| a.key.stripe() == b.key.stripe()) {
            for chunk in chunk.chunks(CHUNK) {
                if let Err(error) = self.reclaim_records(chunk) {
                    step = Err(error);
                }
            }
        }
        step
    }

    fn reclaim_item(&self, table: &Table, expired: &Expired) -> Result<()> {
        let stripes: StripeSet = [expired.key.stripe()].into_iter().collect();
        let changed = self.change(stripes, Costs::default, |staged| {
            if !table.is_current() {
                return Err(Stop::TableChanged);
            }
            let stored = staged.stored(table.id(), &expired.key)?;
            if let Some(stored) = stored.filter(|stored| stored.expired) {
                staged.delete(table, &expired.key, &stored, Cause::Expiry)?;
                staged.batch.reclaim(expired)?;
            }
            Ok(())
        })?;
        // A table that changed meanwhile has its turn in the next round.
        changed.map_or(Ok(()), |changed| changed.result)
    }

    fn reclaim_records(&self, chunk: &[&Expired]) -> Result<()> {
        let stripes: StripeSet = chunk.iter().map(|expired| expired.key.stripe()).collect();
        let changed = self.change(stripes, Costs::default, |staged| {
            for expired in chunk {
                let record = staged.locked.get_even_expired(expired.table, &expired.key)?;
                if record.is_some_and(|record| record.version == expired.version) {
                    staged.batch.reclaim(expired)?;
                }
            }
            Ok(())
        })?;
        changed.map_or(Ok(()), |changed| changed.result)
    }
}
