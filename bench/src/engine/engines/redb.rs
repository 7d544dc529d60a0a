//! redb.
//!
//! How the budget is spent: all of it is the cache, which holds pages read and pages not yet
//! written. There are no background threads, no compression and no filters.
//!
//! Between "lost with the process" ([`redb::Durability::None`]) and "synced" it has nothing, so its
//! writes outside the durable rows promise less than everyone else's: what was written since the
//! last synced commit is gone when the process is.

use super::{Budget, Durability, Engine};
use crate::Outcome;
use crate::engine::dataset::{BenchKey, Record, Values};
use ::redb::{
    Database, ReadableDatabase, ReadableTable, TableDefinition, TableError, WriteTransaction,
};
use std::path::Path;

const RECORDS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("records");

/// An open redb database with its one table.
pub struct Redb {
    db: Database,
}

impl Redb {
    fn begin(&self, durability: Durability) -> Outcome<WriteTransaction> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(match durability {
            Durability::Soon | Durability::Os => ::redb::Durability::None,
            Durability::Sync => ::redb::Durability::Immediate,
        })?;
        Ok(transaction)
    }
}

impl Engine for Redb {
    fn open(dir: &Path, budget: Budget) -> Outcome<Self> {
        let db = Database::builder()
            .set_cache_size(budget.memory_bytes)
            .create(dir.join("records.redb"))?;
        let transaction = db.begin_read()?;
        match transaction.open_table(RECORDS) {
            Err(TableError::TableDoesNotExist(_)) => {
                let transaction = db.begin_write()?;
                transaction.open_table(RECORDS)?;
                transaction.commit()?;
            }
            found => drop(found?),
        }
        Ok(Redb { db })
    }

    fn put(&self, record: &Record, durability: Durability) -> Outcome<()> {
        self.batch(std::slice::from_ref(record), durability)
    }

    fn batch(&self, records: &[Record], durability: Durability) -> Outcome<()> {
        let transaction = self.begin(durability)?;
        {
            let mut table = transaction.open_table(RECORDS)?;
            for record in records {
                table.insert(record.key.joined(), record.value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn delete(&self, key: &BenchKey, durability: Durability) -> Outcome<()> {
        let transaction = self.begin(durability)?;
        transaction.open_table(RECORDS)?.remove(key.joined())?;
        Ok(transaction.commit()?)
    }

    fn get<R>(&self, key: &BenchKey, read: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let table = self.db.begin_read()?.open_table(RECORDS)?;
        Ok(table.get(key.joined())?.map(|value| read(value.value())))
    }

    fn range(&self, start: &BenchKey, count: usize, mut visit: impl FnMut(&[u8])) -> Outcome<()> {
        let table = self.db.begin_read()?.open_table(RECORDS)?;
        for entry in table.range(start.joined()..)?.take(count) {
            visit(entry?.1.value());
        }
        Ok(())
    }

    fn scan(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Outcome<()> {
        let table = self.db.begin_read()?.open_table(RECORDS)?;
        for entry in table.iter()? {
            let (key, value) = entry?;
            visit(key.value(), value.value());
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        Ok(self.begin(Durability::Sync)?.commit()?)
    }

    fn ingest(&self, records: u32, value_len: usize) -> Outcome<()> {
        let mut values = Values::new(1, value_len);
        let transaction = self.begin(Durability::Sync)?;
        {
            let mut table = transaction.open_table(RECORDS)?;
            for id in 0..records {
                let Record { key, value } = values.record(id, 0);
                table.insert(key.joined(), value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn compact(mut self) -> Outcome<()> {
        self.settle()?;
        self.db.compact()?;
        self.close()
    }

    fn close(self) -> Outcome<()> {
        self.settle()?;
        drop(self);
        Ok(())
    }
}
