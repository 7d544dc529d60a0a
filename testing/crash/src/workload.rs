//! A workload: a list of steps and the options, drawn from a seed.

use std::time::Duration;

use bytes::Bytes;
use kstone_core::{Compression, Durability, Key, Options, TableId, Tuning};

use crate::dice::Dice;
use crate::model::{Change, Model, Stored};

/// One step. Tables are named by their id, which the engine gives out in order.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names of the engine's operations")]
pub enum Step {
    /// One batch. With `written`, waits until the operating system has it.
    Commit {
        changes: Vec<Change>,
        durability: Durability,
        written: bool,
    },
    CreateTable,
    DropTable {
        table: TableId,
    },
    Ingest {
        records: Vec<(TableId, Key, Stored)>,
    },
    Purge {
        table: TableId,
        pk: Bytes,
    },
    /// Deletes what has expired, as the layer above would.
    ExpiredRecordHandler,
    Flush,
    Compact,
    Sync,
    Checkpoint,
    Reopen,
    AdvanceClock {
        ms: u64,
    },
    TakeSnapshot,
    DropSnapshot,
}

/// A run to be carried out.
#[derive(Debug, Clone)]
pub struct Workload {
    /// What it was drawn from.
    pub seed: u64,
    /// The database's options.
    pub options: Options,
    /// What to do, in order.
    pub steps: Vec<Step>,
}

/// The time at which every run starts.
pub(crate) const START_MS: u64 = 1_000_000;

impl Workload {
    /// Draws a workload of so many steps.
    pub fn draw(seed: u64, steps: usize) -> Workload {
        let dice = Dice::new(seed);
        let options = draw_options(&dice);
        let mut drawing = WorkloadBuilder {
            dice,
            model: Model::default(),
            now_ms: START_MS,
            commits: 0,
            heavy: false,
        };
        drawing.heavy = drawing.dice.chance(15);
        let steps = (0..steps).map(|_| drawing.step()).collect();
        Workload { seed, options, steps }
    }
}

fn draw_options(dice: &Dice) -> Options {
    let compression = dice.pick(&[Compression::None, Compression::Lz4]);
    Options {
        // The least there is; what makes memtables small is the number of records.
        memory_budget_bytes: 256 << 10,
        compression,
        bottom_compression: dice.pick(&[Compression::None, Compression::Zstd { level: 1 }]),
        sync_interval: Duration::from_millis(50),
        stripe_records_max: dice.pick(&[Some(3), Some(6), Some(12), None]),
        tuning: Tuning {
            block_bytes: dice.pick(&[64, 256, 4096]),
            restart_interval: dice.pick(&[1, 4, 16]),
            filter_bits_per_key: 10,
            // Half of the runs have all files in parts, the other half none.
            parts_beyond_bytes: match compression {
                Compression::None => 0,
                _ => Tuning::default().parts_beyond_bytes,
            },
            l0_compact_files: dice.pick(&[2, 3]),
            l0_stop_files: 8,
            l1_bytes: dice.pick(&[512, 2048]),
            file_bytes: dice.pick(&[256, 1024]),
            log_segment_bytes: dice.pick(&[Some(1024), Some(2048), Some(8192)]),
        },
        ..Options::default()
    }
}

/// Draws steps that make sense one after another.
struct WorkloadBuilder {
    dice: Dice,
    model: Model,
    now_ms: u64,
    commits: u64,
    /// Large values, so that memory and log, not the number of records, force flushes.
    heavy: bool,
}

impl WorkloadBuilder {
    fn step(&mut self) -> Step {
        match self.dice.below(100) {
            0..75 => self.commit(),
            75..78 => Step::Flush,
            78..80 => Step::Compact,
            80..82 => Step::Sync,
            82..84 => {
                self.model.create_table();
                Step::CreateTable
            }
            84 => match self.other_table() {
                Some(table) => {
                    self.model.apply(&Change::DropTable { table });
                    Step::DropTable { table }
                }
                None => Step::Sync,
            },
            85..87 => self.ingest(),
            87 => {
                let (table, pk) = (self.table(), self.pk());
                self.model.apply(&Change::DropPartition { table, pk: pk.clone() });
                Step::Purge { table, pk }
            }
            88 => Step::Checkpoint,
            89..91 => Step::Reopen,
            91..94 => {
                let ms = 1 + self.dice.below(40);
                self.now_ms += ms;
                Step::AdvanceClock { ms }
            }
            94..97 => Step::TakeSnapshot,
            97 => Step::DropSnapshot,
            _ => Step::ExpiredRecordHandler,
        }
    }

    fn commit(&mut self) -> Step {
        self.commits += 1;
        let mut count = self.dice.pick(&[1, 1, 1, 2, 3, 6]);
        if self.dice.chance(2) {
            // Large enough to go in stripe by stripe.
            count = 64 + self.dice.below(40);
        }
        let mut changes = Vec::new();
        for n in 0..count {
            let change = self.change(n);
            self.model.apply(&change);
            changes.push(change);
        }
        let durability = self.dice.pick(&[
            Durability::Sync,
            Durability::Sync,
            Durability::Interval,
            Durability::Os,
            Durability::Os,
        ]);
        Step::Commit { changes, durability, written: self.dice.chance(40) }
    }

    fn change(&mut self, n: u64) -> Change {
        let table = self.table();
        match self.dice.below(100) {
            0..70 => {
                let key = self.key();
                let stored = self.stored(n);
                Change::Put { table, key, stored }
            }
            70..95 => Change::Delete { table, key: self.key() },
            95..99 => Change::DropPartition { table, pk: self.pk() },
            _ => match self.other_table() {
                Some(table) => Change::DropTable { table },
                None => Change::Delete { table, key: self.key() },
            },
        }
    }

    fn ingest(&mut self) -> Step {
        self.commits += 1;
        let mut records = std::collections::BTreeMap::new();
        for n in 0..1 + self.dice.below(12) {
            records.insert((self.table(), self.key()), self.stored(n));
        }
        for ((table, key), stored) in &records {
            let (table, key, stored) = (*table, key.clone(), stored.clone());
            self.model.apply(&Change::Put { table, key, stored });
        }
        Step::Ingest { records: records.into_iter().map(|((t, k), s)| (t, k, s)).collect() }
    }

    fn table(&self) -> TableId {
        if self.dice.chance(75) {
            return TableId::DEFAULT;
        }
        let tables = self.model.tables();
        self.dice.pick(&tables)
    }

    fn other_table(&self) -> Option<TableId> {
        let tables = self.model.tables();
        let others = tables.get(1..).unwrap_or_default();
        (!others.is_empty()).then(|| self.dice.pick(others))
    }

    /// Half of everything goes to one partition, so that one stripe grows levels.
    fn pk(&self) -> Bytes {
        let n = if self.dice.chance(50) { 0 } else { self.dice.below(8) };
        Bytes::from(format!("p{n}"))
    }

    fn key(&self) -> Key {
        let pk = self.pk();
        if self.dice.chance(10) {
            return Key::new(pk);
        }
        Key::with_sk(pk, format!("s{:02}", self.dice.below(24)))
    }

    /// No two commits write the same value, so contents tell which commits made them.
    fn stored(&self, n: u64) -> Stored {
        let len = match self.dice.below(100) {
            _ if self.heavy => 1000 + self.dice.below(12_000),
            0..70 => 8 + self.dice.below(60),
            70..93 => 200 + self.dice.below(600),
            // Larger than many a log segment.
            _ => 1500 + self.dice.below(2500),
        };
        let mut value = format!("{}.{n}.", self.commits).into_bytes();
        // Not compressible, so that large values stay large.
        while (value.len() as u64) < len {
            value.push(self.dice.below(256) as u8);
        }
        let expires_at_ms = self.dice.chance(12).then(|| self.now_ms + 1 + self.dice.below(120));
        Stored { value: value.into(), expires_at_ms }
    }
}
