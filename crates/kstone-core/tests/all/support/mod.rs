//! What several test files need.

use std::sync::Arc;

use kstone_core::env::{Env, ManualClock, SeededRandom};
use kstone_core::{
    Durability, Engine, Key, KeyedRecord, Options, Result, ScanCursor, TableId, Tuning, WriteBatch,
};
use kstone_sim::SimDisk;

pub const T: TableId = TableId::DEFAULT;

/// Options under which a few hundred writes meet flushes, compactions and several levels.
pub fn tiny() -> Options {
    Options {
        memory_budget_bytes: 256 << 10,
        stripe_records_max: Some(8),
        tuning: Tuning {
            block_bytes: 128,
            l0_compact_files: 2,
            l1_bytes: 2048,
            file_bytes: 1024,
            log_segment_bytes: Some(4096),
            ..Tuning::default()
        },
        ..Options::default()
    }
}

/// The simulated machine, without threads: a run depends on nothing but its calls.
pub fn sim_env(disk: &SimDisk, clock: &Arc<ManualClock>) -> Env {
    Env {
        vfs: Arc::new(disk.clone()),
        clock: clock.clone(),
        random: Arc::new(SeededRandom::new(1)),
        threads: None,
    }
}

pub fn put(engine: &Engine, key: &Key, value: &[u8]) {
    let mut batch = WriteBatch::new();
    batch.put(T, key, value).unwrap();
    engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
}

pub fn delete(engine: &Engine, key: &Key) {
    let mut batch = WriteBatch::new();
    batch.delete(T, key).unwrap();
    engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
}

pub fn get(engine: &Engine, key: &Key) -> Option<Vec<u8>> {
    engine.get(T, key).unwrap().map(|record| record.value.to_vec())
}

pub fn scan(engine: &Engine, table: TableId) -> Vec<KeyedRecord> {
    engine.snapshot().scan(table, ScanCursor::start()).collect::<Result<_>>().unwrap()
}

/// `count` partition keys that all lie in different stripes.
pub fn pks_of_different_stripes(count: usize) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    (0..)
        .map(|n| format!("pk{n}"))
        .filter(|pk| seen.insert(Key::new(pk.clone()).stripe()))
        .take(count)
        .collect()
}

/// Random numbers from a seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
