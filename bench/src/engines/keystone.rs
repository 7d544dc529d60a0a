//! KeystoneDB's engine.
//!
//! How the budget is spent: the engine divides `memory_bytes` between unflushed writes and cached
//! blocks, indexes and filters itself, as it does for every user.

use super::{Budget, Durability, Engine, Outcome};
use crate::dataset::{BenchKey, Record};
use kstone_core::{Batch, Compression, Key, Options, TableId};
use std::path::Path;

/// An open engine; all records are in its default table.
pub struct Keystone {
    engine: kstone_core::Engine,
}

/// The one engine here whose keys are pairs: it pays for building them inside the timed calls,
/// as its users do.
fn key_of(key: &BenchKey) -> Key {
    Key::with_sk(key.pk().to_vec(), key.sk().to_vec())
}

impl Keystone {
    fn write(&self, batch: Batch, durability: Durability) -> Outcome<()> {
        let durability = match durability {
            Durability::Os => kstone_core::Durability::Os,
            Durability::Sync => kstone_core::Durability::Sync,
        };
        Ok(self.engine.write(batch, durability)?.wait()?)
    }
}

impl Engine for Keystone {
    fn open(dir: &Path, budget: Budget) -> Outcome<Self> {
        let options = Options {
            memory_bytes: budget.memory_bytes,
            background_threads: budget.background_threads,
            compression: Compression::Lz4,
            ..Options::default()
        };
        Ok(Keystone { engine: kstone_core::Engine::open(dir, options)? })
    }

    fn put(&self, record: &Record, durability: Durability) -> Outcome<()> {
        let mut batch = Batch::new();
        batch.put(TableId::DEFAULT, key_of(&record.key), &record.value[..]);
        self.write(batch, durability)
    }

    fn batch(&self, records: &[Record], durability: Durability) -> Outcome<()> {
        let mut batch = Batch::new();
        for record in records {
            batch.put(TableId::DEFAULT, key_of(&record.key), &record.value[..]);
        }
        self.write(batch, durability)
    }

    fn delete(&self, key: &BenchKey, durability: Durability) -> Outcome<()> {
        let mut batch = Batch::new();
        batch.delete(TableId::DEFAULT, key_of(key));
        self.write(batch, durability)
    }

    fn get<R>(&self, key: &BenchKey, read: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        Ok(self.engine.get(TableId::DEFAULT, &key_of(key))?.map(|value| read(&value)))
    }

    fn range(&self, start: &BenchKey, count: usize, mut visit: impl FnMut(&[u8])) -> Outcome<()> {
        let partition = self.engine.partition(TableId::DEFAULT, start.pk());
        for entry in partition.from_sk(start.sk()).take(count) {
            visit(&entry?.value);
        }
        Ok(())
    }

    fn scan(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Outcome<()> {
        let mut joined = Vec::new();
        for entry in self.engine.scan(TableId::DEFAULT) {
            let entry = entry?;
            joined.clear();
            joined.extend_from_slice(&entry.key.pk);
            joined.push(0);
            joined.extend_from_slice(entry.key.sk.as_deref().unwrap_or_default());
            visit(&joined, &entry.value);
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        self.engine.flush()?;
        Ok(self.engine.wait_idle()?)
    }

    fn close(self) -> Outcome<()> {
        Ok(self.engine.close()?)
    }
}
