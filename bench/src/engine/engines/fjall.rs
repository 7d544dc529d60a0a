//! fjall.
//!
//! How the budget is spent: half is the block cache, and a memtable is a quarter, so that one can
//! fill while another is flushed, as for RocksDB. fjall has no shared limit: it goes on to queue
//! up to four sealed memtables, and pins some index and filter blocks outside the cache.

use super::{Budget, Durability, Engine};
use crate::Outcome;
use crate::engine::dataset::{BenchKey, Record, Values};
use ::fjall::config::CompressionPolicy;
use ::fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode,
};
use std::path::Path;
use std::time::Duration;

/// An open fjall database with its one keyspace.
pub struct Fjall {
    db: Database,
    records: Keyspace,
}

impl Fjall {
    /// A batch that is written to the operating system, or synced, before `commit` returns.
    ///
    /// A single durable write is a batch of one: the other way to sync, `persist` after `insert`,
    /// takes the journal's lock twice and came out at half the speed with several writers.
    fn new_batch(&self, durability: Durability) -> OwnedWriteBatch {
        self.db.batch().durability(Some(match durability {
            Durability::Soon | Durability::Os => PersistMode::Buffer,
            Durability::Sync => PersistMode::SyncData,
        }))
    }
}

impl Engine for Fjall {
    fn open(dir: &Path, budget: Budget) -> Outcome<Self> {
        let db = Database::builder(dir)
            .cache_size(budget.memory_bytes as u64 / 2)
            .worker_threads(budget.background_threads)
            .open()?;
        let records = db.keyspace("records", || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(budget.memory_bytes as u64 / 4)
                // The default leaves the first two levels uncompressed; all engines compress all.
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
        })?;
        Ok(Fjall { db, records })
    }

    fn put(&self, record: &Record, durability: Durability) -> Outcome<()> {
        match durability {
            Durability::Soon | Durability::Os => {
                Ok(self.records.insert(record.key.joined(), record.value)?)
            }
            Durability::Sync => self.batch(std::slice::from_ref(record), durability),
        }
    }

    fn batch(&self, records: &[Record], durability: Durability) -> Outcome<()> {
        let mut batch = self.new_batch(durability);
        for record in records {
            batch.insert(&self.records, record.key.joined(), record.value);
        }
        Ok(batch.commit()?)
    }

    fn delete(&self, key: &BenchKey, durability: Durability) -> Outcome<()> {
        let mut batch = self.new_batch(durability);
        batch.remove(&self.records, key.joined());
        Ok(batch.commit()?)
    }

    fn get<R>(&self, key: &BenchKey, read: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(self.records.get(key.joined())?.map(|value| read(&value)))
    }

    fn range(&self, start: &BenchKey, count: usize, mut visit: impl FnMut(&[u8])) -> Outcome<()> {
        for guard in self.records.range(start.joined()..).take(count) {
            visit(&guard.value()?);
        }
        Ok(())
    }

    fn scan(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Outcome<()> {
        for guard in self.records.iter() {
            let (key, value) = guard.into_inner()?;
            visit(&key, &value);
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        self.records.rotate_memtable_and_wait()?;
        // There is no call that waits for compactions; one may be about to start when none runs,
        // so the engine counts as at rest when it was found so several times in a row.
        let mut found_at_rest = 0;
        while found_at_rest < 5 {
            let busy = self.db.outstanding_flushes()
                + self.records.sealed_memtable_count()
                + self.db.active_compactions();
            found_at_rest = if busy == 0 { found_at_rest + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn ingest(&self, records: u32, value_len: usize) -> Outcome<()> {
        let mut values = Values::new(1, value_len);
        let mut ingestion = self.records.start_ingestion()?;
        for id in 0..records {
            let Record { key, value } = values.record(id, 0);
            ingestion.write(key.joined(), value)?;
        }
        Ok(ingestion.finish()?)
    }

    fn compact(self) -> Outcome<()> {
        self.settle()?;
        self.records.major_compact()?;
        self.close()
    }

    fn close(self) -> Outcome<()> {
        self.db.persist(PersistMode::SyncAll)?;
        drop(self);
        Ok(())
    }
}
