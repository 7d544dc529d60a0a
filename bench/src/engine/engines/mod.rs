//! The engines under test, behind one trait.
//!
//! The trait asks for what a database above an engine asks for, in the shape that costs each
//! engine least: values are lent to a closure, so that an engine which can point into a cached
//! block or a mapped page copies nothing; ranges and scans do the same for keys.

mod fjall;
mod keystone;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use super::dataset::{BenchKey, Record};
use crate::Outcome;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a returned write promises.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives a crash of the process a few milliseconds later: the log is written in the
    /// background. An engine without such a mode gives [`Durability::Os`].
    Soon,
    /// It survives a crash of the process: the bytes are with the operating system.
    Os,
    /// It survives a loss of power: the log was synced through it before the call returned.
    Sync,
}

/// What all engines are opened with. Each says in its file how it spends the budget.
#[derive(Clone, Copy)]
pub struct Budget {
    /// Memory for cached blocks, their indexes and filters, and unflushed writes, in bytes.
    pub memory_bytes: usize,
    /// Background threads for flushes and compactions.
    pub background_threads: usize,
    /// Whether every write will ask for [`Durability::Sync`]: LMDB has to know when it opens.
    pub every_write_syncs: bool,
}

/// What an engine counts about itself, since it was opened.
#[derive(Clone, Copy)]
pub struct Counters {
    /// Commits.
    pub commits: u64,
    /// Syncs of the log.
    pub syncs: u64,
    /// Blocks of records that were looked into, cached or not.
    pub blocks: u64,
}

/// A storage engine as the workloads see it.
pub trait Engine: Sized + Sync {
    /// Opens the database in `dir`, making it if it is not there.
    fn open(dir: &Path, budget: Budget) -> Outcome<Self>;

    /// Writes one record.
    fn put(&self, record: &Record, durability: Durability) -> Outcome<()>;

    /// Writes all records or none.
    fn batch(&self, records: &[Record], durability: Durability) -> Outcome<()>;

    /// Removes one record.
    fn delete(&self, key: &BenchKey, durability: Durability) -> Outcome<()>;

    /// Lends the value of a key to `read`; `None` if there is no such record.
    fn get<R>(&self, key: &BenchKey, read: impl FnOnce(&[u8]) -> R) -> Outcome<Option<R>>;

    /// Visits up to `count` values of one partition in sort-key order, from `start` on. Asked
    /// only where the partition has that many left.
    fn range(&self, start: &BenchKey, count: usize, visit: impl FnMut(&[u8])) -> Outcome<()>;

    /// Visits every record once, in whatever order suits the engine, as the joined key and the
    /// value. An engine without joined keys may lend any bytes that tell the records apart and
    /// equal [`BenchKey::joined`].
    fn scan(&self, visit: impl FnMut(&[u8], &[u8])) -> Outcome<()>;

    /// Puts everything that was written into tables and waits until the engine has no more
    /// background work of its own accord. Forces no compaction: the shape that an engine lets
    /// its tree rest in is part of its design.
    fn settle(&self) -> Outcome<()>;

    /// Writes records 0 to `records`, at version 0 and in key order, into an empty database by the
    /// fastest way the engine has for that. They are on the disk when this returns.
    fn ingest(&self, records: u32, value_len: usize) -> Outcome<()>;

    /// Rewrites everything into the smallest form the engine has a call for, and closes.
    fn compact(self) -> Outcome<()>;

    /// What the engine counts, where counting costs its users nothing.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// Closes the database; opening it again finds everything.
    fn close(self) -> Outcome<()>;
}

/// Names an engine on the command line and in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// Ours.
    Keystone,
    /// RocksDB, C++.
    #[cfg(feature = "rocksdb")]
    RocksDb,
    /// fjall, Rust.
    Fjall,
    /// redb, Rust.
    Redb,
    /// LMDB, C.
    Lmdb,
}

/// Something to do with an engine whose type is known only from its name.
pub trait Task {
    /// What it gives back.
    type Output;
    /// Does it.
    fn run<E: Engine>(self) -> Self::Output;
}

impl EngineName {
    /// Every engine of this build, ours first.
    pub const ALL: &[EngineName] = &[
        EngineName::Keystone,
        #[cfg(feature = "rocksdb")]
        EngineName::RocksDb,
        EngineName::Fjall,
        EngineName::Redb,
        EngineName::Lmdb,
    ];

    /// The name that is printed and parsed.
    pub fn as_str(self) -> &'static str {
        match self {
            EngineName::Keystone => "keystone",
            #[cfg(feature = "rocksdb")]
            EngineName::RocksDb => "rocksdb",
            EngineName::Fjall => "fjall",
            EngineName::Redb => "redb",
            EngineName::Lmdb => "lmdb",
        }
    }

    /// The engine of that name, if this build has it.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|engine| engine.as_str() == name)
    }

    /// Whether it is KeystoneDB; the rest are peers.
    pub fn is_ours(self) -> bool {
        self.as_str() == "keystone"
    }

    /// Whether it keeps its records in sorted runs that it merges, as ours does; the others keep a
    /// B-tree.
    pub fn is_lsm(self) -> bool {
        !matches!(self, EngineName::Redb | EngineName::Lmdb)
    }

    /// Runs `task` on the engine's type, so that its calls are direct and can be inlined.
    pub fn dispatch<T: Task>(self, task: T) -> T::Output {
        match self {
            EngineName::Keystone => task.run::<keystone::Keystone>(),
            #[cfg(feature = "rocksdb")]
            EngineName::RocksDb => task.run::<rocksdb::RocksDb>(),
            EngineName::Fjall => task.run::<fjall::Fjall>(),
            EngineName::Redb => task.run::<redb::Redb>(),
            EngineName::Lmdb => task.run::<lmdb::Lmdb>(),
        }
    }
}
