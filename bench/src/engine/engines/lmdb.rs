//! LMDB, through the crate `heed`.
//!
//! How the budget is spent: not at all. LMDB has no memory of its own; it maps its file, and the
//! operating system's page cache, which here holds all of it, is its cache. There are no
//! background threads, no compression, no checksums and no filters.
//!
//! Where every write is to be synced it is opened as it is by default: a commit writes its pages,
//! syncs, and writes the page that makes them count, synced too. Elsewhere it is opened with
//! `NO_SYNC`: a commit has been given to the operating system when it returns.

use super::{Budget, Durability, Engine};
use crate::Outcome;
use crate::engine::dataset::{BenchKey, Record, Values};
use heed::types::Bytes;
use heed::{CompactionOption, Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RwTxn};
use std::ops::Bound;
use std::path::Path;

/// Addresses that are set aside for the map: more than any workload writes, and no memory.
const MAP_BYTES: usize = 256 << 30;

/// An open LMDB environment; all records are in its unnamed database.
pub struct Lmdb {
    env: Env,
    records: Database<Bytes, Bytes>,
    every_write_syncs: bool,
}

impl Lmdb {
    fn commit(&self, transaction: RwTxn<'_>, durability: Durability) -> Outcome<()> {
        transaction.commit()?;
        if durability == Durability::Sync && !self.every_write_syncs {
            self.env.force_sync()?;
        }
        Ok(())
    }
}

#[expect(unsafe_code, reason = "heed calls every opening of a mapped file unsafe")]
fn open_env(dir: &Path, every_write_syncs: bool) -> heed::Result<Env> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES);
    if !every_write_syncs {
        // SAFETY: what `NO_SYNC` risks is a broken file after a loss of power, and the files here
        // do not outlive the run.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    // SAFETY: the folder was made for this run alone, nobody else opens or changes the files in
    // it, and it is not on a remote disk.
    unsafe { options.open(dir) }
}

impl Engine for Lmdb {
    fn open(dir: &Path, budget: Budget) -> Outcome<Self> {
        let every_write_syncs = budget.every_write_syncs;
        let env = open_env(dir, every_write_syncs)?;
        let mut transaction = env.write_txn()?;
        let records = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Lmdb { env, records, every_write_syncs })
    }

    fn put(&self, record: &Record, durability: Durability) -> Outcome<()> {
        self.batch(std::slice::from_ref(record), durability)
    }

    fn batch(&self, records: &[Record], durability: Durability) -> Outcome<()> {
        let mut transaction = self.env.write_txn()?;
        for record in records {
            self.records.put(&mut transaction, record.key.joined(), record.value)?;
        }
        self.commit(transaction, durability)
    }

    fn delete(&self, key: &BenchKey, durability: Durability) -> Outcome<()> {
        let mut transaction = self.env.write_txn()?;
        self.records.delete(&mut transaction, key.joined())?;
        self.commit(transaction, durability)
    }

    fn get<R>(&self, key: &BenchKey, read: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>> {
        let transaction = self.env.read_txn()?;
        Ok(self.records.get(&transaction, key.joined())?.map(read))
    }

    fn range(&self, start: &BenchKey, count: usize, mut visit: impl FnMut(&[u8])) -> Outcome<()> {
        let transaction = self.env.read_txn()?;
        let range = (Bound::Included(start.joined()), Bound::Unbounded);
        for entry in self.records.range(&transaction, &range)?.take(count) {
            visit(entry?.1);
        }
        Ok(())
    }

    fn scan(&self, mut visit: impl FnMut(&[u8], &[u8])) -> Outcome<()> {
        let transaction = self.env.read_txn()?;
        for entry in self.records.iter(&transaction)? {
            let (key, value) = entry?;
            visit(key, value);
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        Ok(self.env.force_sync()?)
    }

    fn ingest(&self, records: u32, value_len: usize) -> Outcome<()> {
        let mut values = Values::new(1, value_len);
        let mut transaction = self.env.write_txn()?;
        for id in 0..records {
            let Record { key, value } = values.record(id, 0);
            let in_order = PutFlags::APPEND;
            self.records.put_with_flags(&mut transaction, in_order, key.joined(), value)?;
        }
        self.commit(transaction, Durability::Sync)
    }

    fn compact(self) -> Outcome<()> {
        let path = self.env.path().join("data.mdb");
        let smaller = self.env.path().join("smaller.mdb");
        self.env.copy_to_path(&smaller, CompactionOption::Enabled)?;
        self.close()?;
        Ok(std::fs::rename(smaller, path)?)
    }

    fn close(self) -> Outcome<()> {
        self.env.force_sync()?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}
