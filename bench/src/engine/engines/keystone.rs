//! KeystoneDB's engine.
//!
//! How the budget is spent: the engine divides it itself, as it does for every user: up to half for
//! unflushed writes, the rest for cached blocks, indexes and filters. Everything is at its default,
//! except that the last level is LZ4 here, as for everyone, and not ZSTD.

use super::{Budget, Counters, Durability, Engine};
use crate::Outcome;
use crate::engine::dataset::{BenchKey, Record, Values};
use kstone_core::{Compression, KeyRef, Options, ScanCursor, TableId, WriteBatch};
use std::path::Path;

const TABLE: TableId = TableId::DEFAULT;

/// An open engine; all records are in its default table.
pub struct Keystone {
    engine: kstone_core::Engine,
}

/// The one engine here whose keys are pairs: it joins them itself, inside the timed calls.
fn key_of(key: &BenchKey) -> KeyRef<'_> {
    KeyRef::with_sk(key.pk(), key.sk())
}

impl Keystone {
    fn write(&self, batch: &WriteBatch, durability: Durability) -> Outcome<()> {
        match durability {
            Durability::Soon => self.engine.write(batch, kstone_core::Durability::Os)?.wait()?,
            Durability::Os => {
                self.engine.write(batch, kstone_core::Durability::Os)?.wait_written()?;
            }
            Durability::Sync => self.engine.write(batch, kstone_core::Durability::Sync)?.wait()?,
        }
        Ok(())
    }
}

impl Engine for Keystone {
    fn open(dir: &Path, budget: Budget) -> Outcome<Self> {
        let options = Options {
            memory_budget_bytes: budget.memory_bytes,
            background_threads: budget.background_threads,
            compression: Compression::Lz4,
            bottom_compression: Compression::Lz4,
            ..Options::default()
        };
        Ok(Keystone { engine: kstone_core::Engine::open(dir, options)? })
    }

    fn put(&self, record: &Record, durability: Durability) -> Outcome<()> {
        self.batch(std::slice::from_ref(record), durability)
    }

    fn batch(&self, records: &[Record], durability: Durability) -> Outcome<()> {
        let mut batch = WriteBatch::new();
        for record in records {
            batch.put(TABLE, key_of(&record.key), record.value)?;
        }
        self.write(&batch, durability)
    }

    fn delete(&self, key: &BenchKey, durability: Durability) -> Outcome<()> {
        let mut batch = WriteBatch::new();
        batch.delete(TABLE, key_of(key))?;
        self.write(&batch, durability)
    }

    fn get<R>(&self, key: &BenchKey, read: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(self.engine.get(TABLE, key_of(key))?.map(|record| read(&record.value)))
    }

    fn range(&self, start: &BenchKey, count: usize, mut visit: impl FnMut(&[u8])) -> Outcome<()> {
        let query = self.engine.partition(TABLE, start.pk().to_vec());
        let mut records = query.range(start.sk()..).iter()?;
        for _ in 0..count {
            let Some(record) = records.next_ref()? else { break };
            visit(record.value);
        }
        Ok(())
    }

    fn scan(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Outcome<()> {
        let mut joined = Vec::new();
        let mut records = self.engine.snapshot().scan(TABLE, ScanCursor::start());
        while let Some(found) = records.next_ref()? {
            joined.clear();
            joined.extend_from_slice(found.pk);
            joined.push(0);
            joined.extend_from_slice(found.sk.unwrap_or_default());
            visit(&joined, found.value);
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        self.engine.flush()?;
        Ok(self.engine.wait_idle()?)
    }

    fn ingest(&self, records: u32, value_len: usize) -> Outcome<()> {
        let mut values = Values::new(1, value_len);
        let mut ingester = self.engine.ingester()?;
        for id in 0..records {
            let Record { key, value } = values.record(id, 0);
            ingester.add(TABLE, key_of(&key), value, None)?;
        }
        ingester.finish()?;
        Ok(())
    }

    fn compact(self) -> Outcome<()> {
        self.engine.compact()?;
        self.engine.wait_idle()?;
        self.close()
    }

    fn counters(&self) -> Option<Counters> {
        let stats = self.engine.stats();
        Some(Counters {
            commits: stats.commits,
            syncs: stats.syncs,
            blocks: stats.cache_hits + stats.cache_misses,
        })
    }

    fn close(self) -> Outcome<()> {
        // Dropping the last handle flushes and syncs; a failure there shows when the next open
        // looks for the records.
        drop(self);
        Ok(())
    }
}
