//! Erasure in an embedded database: connects an eraser to its two ports and its checkpoints.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kstone::{Database, Durability};
use kstone_core::env::{Clock, Random};
use kstone_redis::Redis;

use super::eraser::{CheckpointStore, Eraser, EraserParts, Keep, OpenCheckpoint};
use super::receipt::ReceiptKey;
use super::stores::{ErasureError, Result, Stores};
use crate::keyspace::Keyspace;
use crate::policy::{Governor, GovernorOptions};

impl Stores {
    /// The stores of a database of this process.
    pub fn embedded(db: &Database, redis: &Redis, keyspace: Arc<Keyspace>) -> Result<Stores> {
        let no_keys = || ErasureError::Unreadable("Redis has no databases".to_owned());
        let keys = Arc::new(redis.keys(0).ok_or_else(no_keys)?);
        // What is remembered of an erasure must be durable before the next step.
        let items = Arc::new(db.internal().with_durability(Durability::Sync));
        Ok(Stores { items, keys, keyspace })
    }
}

impl Eraser {
    /// An eraser of a database of this process.
    pub fn embedded(
        db: &Database,
        redis: &Redis,
        governor: Arc<Governor>,
        key: ReceiptKey,
        random: Arc<dyn Random>,
    ) -> Result<Eraser> {
        let keyspace = Arc::clone(governor.keyspace());
        Ok(Eraser::new(EraserParts {
            stores: Stores::embedded(db, redis, Arc::clone(&keyspace))?,
            governor,
            copies: Arc::new(Checkpoints { db: db.internal(), keyspace }),
            clock: Arc::new(EngineClock(db.internal())),
            random,
            key,
            database: hex::encode(db.engine().id()),
        }))
    }
}

/// The checkpoints that were made from a database.
#[derive(Debug)]
struct Checkpoints {
    db: Database,
    keyspace: Arc<Keyspace>,
}

impl CheckpointStore for Checkpoints {
    fn list(&self) -> Vec<PathBuf> {
        self.db.engine().checkpoints()
    }

    fn open(&self, path: &Path) -> Result<Option<OpenCheckpoint>> {
        let Some(db) = self.db.open_checkpoint(path)? else { return Ok(None) };
        let redis = Redis::open(&db)?;
        let keyspace = Arc::clone(&self.keyspace);
        let governor = Governor::govern(&db, keyspace, GovernorOptions::default())?;
        let keep = Governed { governor: Arc::clone(&governor), db: db.clone() };
        // It may be from before the keyspace, or from before it was changed.
        if !governor.is_counted() {
            governor.recount(Some(&redis), &mut |_| {})?;
        }
        let stores = Stores::embedded(&db, &redis, Arc::clone(&self.keyspace))?;
        Ok(Some(OpenCheckpoint { stores, governor, keep: Box::new(keep) }))
    }
}

/// An open checkpoint with its keyspace in force. Dropping it unlinks the database and its
/// governor, which refer to each other.
#[derive(Debug)]
struct Governed {
    governor: Arc<Governor>,
    db: Database,
}

impl Keep for Governed {}

impl Drop for Governed {
    fn drop(&mut self) {
        // Counts that are not kept are counted anew.
        let _ = self.governor.close();
        self.db.ungovern();
    }
}

/// The database's own time, which never runs backwards.
#[derive(Debug)]
struct EngineClock(Database);

impl Clock for EngineClock {
    fn now_ms(&self) -> u64 {
        self.0.engine().now_ms()
    }

    fn monotonic(&self) -> std::time::Duration {
        self.0.engine().monotonic()
    }
}
