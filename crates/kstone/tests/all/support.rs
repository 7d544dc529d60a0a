//! What several topics share: a machine whose clock the test moves, and reading a stream to its end.

use std::sync::Arc;

use kstone::stream::{ShardPosition, StreamRecord};
use kstone::{Database, DatabaseOptions};
use kstone_core::env::{Env, ManualClock};

pub const START_MS: u64 = 1_700_000_000_000;

/// A machine whose clock stands still and whose background work runs when it is told to.
pub struct Machine {
    pub env: Env,
    pub clock: Arc<ManualClock>,
}

impl Machine {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let env = Env { clock: Arc::clone(&clock) as _, threads: None, ..Env::memory() };
        Machine { env, clock }
    }

    pub fn open(&self) -> Database {
        Database::open_with(self.env.clone(), "db", DatabaseOptions::default()).unwrap()
    }
}

/// All records of a table's stream, shard by shard; none without a stream.
pub fn stream_records(db: &Database, table: &str) -> Vec<StreamRecord> {
    let Some(stream) = db.list_streams(Some(table), None, 1).0.pop() else { return Vec::new() };
    let mut records = Vec::new();
    for shard in db.describe_stream(&stream, None, 100).unwrap().shards {
        let position = ShardPosition::TrimHorizon;
        let mut next = Some(db.shard_iterator(&stream, &shard.id, position).unwrap());
        while let Some(iterator) = next.take() {
            let page = db.stream_records(&iterator, 1000).wait().unwrap();
            if !page.records.is_empty() {
                next = page.next_iterator;
                records.extend(page.records);
            }
        }
    }
    records
}
