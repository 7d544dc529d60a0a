//! Switches a table's time to live: gives every item its expiry, or takes it away.

use kstone_core::Key;

use crate::background::Step;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::staging::{Staged, put_record};
use crate::table::live::Table;
use crate::table::{TtlState, no_such_table};

impl Database {
    /// Switches time to live on, by the attribute that holds the second of expiry, or off. Items
    /// that are there already are stamped in the background.
    pub fn update_ttl(&self, table: &str, attribute: &str, enabled: bool) -> Result<()> {
        let inner = self.inner();
        let changing = inner.catalog.change(&inner.engine);
        let old = changing.get(table).ok_or_else(|| no_such_table(table))?;
        self.check_may_write(table)?;
        let state = match (&old.record.ttl, enabled) {
            (TtlState::On(now) | TtlState::Enabling(now), true) if now == attribute => {
                return Err(Error::validation("TimeToLive is already enabled"));
            }
            (TtlState::On(now) | TtlState::Enabling(now), _) if now != attribute => {
                return Err(Error::validation(format!(
                    "TimeToLive is active on a different AttributeName: current AttributeName is {now}"
                )));
            }
            (TtlState::Off | TtlState::Disabling(_), false) => {
                return Err(Error::validation("TimeToLive is already disabled"));
            }
            (_, true) => TtlState::Enabling(attribute.to_owned()),
            (_, false) => TtlState::Disabling(attribute.to_owned()),
        };
        let mut record = old.record.clone();
        record.ttl = state;
        changing.put(record, &[])?;
        drop(changing);
        self.wake_background();
        Ok(())
    }

    /// Stamps the items of a table whose time to live was switched.
    pub(crate) fn stamp_tables(&self) -> Result<Step> {
        let mut step = Ok(Step::Idle);
        for table in self.inner().catalog.all() {
            if !matches!(table.record.ttl, TtlState::Enabling(_) | TtlState::Disabling(_)) {
                continue;
            }
            // One table that cannot be read does not keep the others waiting.
            match self.stamp(&table) {
                Ok(()) => step = step.map(|_| Step::More),
                Err(error) => step = Err(error),
            }
        }
        step
    }

    fn stamp(&self, table: &Table) -> Result<()> {
        let stamp = |staged: &mut Staged<'_>, key: &Key| staged.stamp(table, key);
        if self.each_item(table, &table.indexes, stamp, |_| {})? {
            self.finish_stamping(table)?;
        }
        Ok(())
    }

    fn finish_stamping(&self, table: &Table) -> Result<()> {
        let inner = self.inner();
        let changing = inner.catalog.change(&inner.engine);
        let Some(now) = changing.get(table.name()) else { return Ok(()) };
        if now.version() != table.version() {
            return Ok(());
        }
        let mut record = now.record.clone();
        record.ttl = match record.ttl {
            TtlState::Enabling(name) => TtlState::On(name),
            TtlState::Disabling(_) => TtlState::Off,
            other => other,
        };
        changing.put(record, &[])?;
        Ok(())
    }
}

impl Staged<'_> {
    /// Gives an item and its index entries the expiry that the table's rule says.
    fn stamp(&mut self, table: &Table, key: &Key) -> Result<()> {
        let Some(stored) = self.stored(table.id(), key)? else { return Ok(()) };
        let expires_at_ms = table.expiry_ms(stored.item.as_ref(), self.locked.now_ms());
        // What has expired waits to be reclaimed; switching off does not bring it back.
        if stored.expired || stored.expires_at_ms == expires_at_ms {
            return Ok(());
        }
        self.restamp(table, key, &stored, expires_at_ms);
        put_record(&mut self.batch, table.id(), key, &stored.item, expires_at_ms)?;
        for index in &table.indexes {
            if let Some(entry) = index.entry_key(key, stored.item.as_ref()) {
                let held = index.project(&stored.item);
                put_record(&mut self.batch, index.id, &entry, &held, expires_at_ms)?;
            }
        }
        Ok(())
    }
}
