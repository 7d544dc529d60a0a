//! A database that is closed and opened again in every test.

use std::sync::Arc;

use kstone::ops::PutItem;
use kstone::{Database, DatabaseOptions, Item};
use kstone_base::time::Timestamp;
use kstone_core::env::{Env, ManualClock};
use kstone_workflows::create_table;

pub const TABLE: &str = "workflows";

pub fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A machine with a clock that stands still, and the files of one database.
pub struct Machine {
    env: Env,
    clock: Arc<ManualClock>,
}

impl Machine {
    pub fn at(now: &str) -> Self {
        let clock = Arc::new(ManualClock::at(moment(now).epoch_seconds() * 1000));
        Machine { env: Env { clock: Arc::clone(&clock) as _, ..Env::memory() }, clock }
    }

    pub fn set_clock(&self, now: Timestamp) {
        self.clock.set(now.epoch_seconds() * 1000);
    }

    pub fn open(&self) -> Database {
        Database::open_with(self.env.clone(), "db", DatabaseOptions::default()).unwrap()
    }

    /// A workflow table with these items.
    pub fn open_with_items(&self, items: &[Item]) -> Database {
        let db = self.open();
        create_table(&db, TABLE).unwrap();
        for item in items {
            put(&db, item);
        }
        db
    }
}

/// Fills a workflow table with items, looks at it, opens the database again, and looks again.
pub fn check_before_and_after_a_reopen(now: &str, items: &[Item], look: impl Fn(&Database)) {
    let machine = Machine::at(now);
    look(&machine.open_with_items(items));
    look(&machine.open());
}

pub fn put(db: &Database, item: &Item) {
    let request = PutItem { table: TABLE.to_owned(), item: item.clone(), ..PutItem::default() };
    db.put_item(&request).wait().unwrap();
}
