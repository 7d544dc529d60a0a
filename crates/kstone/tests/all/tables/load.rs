//! Tables that change while others read and write them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use kstone::ops::DeleteItem;
use kstone::table::{IndexProjection, IndexSpec, KeyAttribute, KeySchema, Status, TableChange};
use kstone::{Database, DatabaseOptions, Durability, Error, Item, Result};
use kstone_core::env::Env;

use crate::tables::support::{all, put, spec};

const WRITERS: u64 = 3;
/// Items of each writer. Few, so that they are overwritten and deleted often.
const ITEMS: u64 = 150;

fn database() -> Database {
    // No thread of its own: the tests say when the background works.
    let env = Env { threads: None, ..Env::memory() };
    let options = DatabaseOptions { durability: Durability::Os, ..DatabaseOptions::default() };
    let db = Database::open_with(env, "db", options).unwrap();
    db.create_table(&spec("orders")).unwrap();
    db
}

fn by_color() -> TableChange {
    let index = IndexSpec {
        name: "by-color".to_owned(),
        key: KeySchema::hash(KeyAttribute::string("color")),
        projection: IndexProjection::All,
        throughput: None,
    };
    TableChange { create_index: Some(index), ..TableChange::default() }
}

fn drop_by_color() -> TableChange {
    TableChange { delete_index: Some("by-color".to_owned()), ..TableChange::default() }
}

/// The `n`-th write of a writer: puts an item with another color or with none, or deletes one.
fn write(db: &Database, writer: u64, n: u64) -> Result<()> {
    let pk = format!("{writer}-{}", n * 7 % ITEMS);
    let item = Item::new().with("pk", pk.as_str()).with("n", n);
    match n % 5 {
        0 => put(db, "orders", item),
        1 => {
            let key = Item::new().with("pk", pk.as_str());
            let request = DeleteItem { table: "orders".to_owned(), key, ..DeleteItem::default() };
            db.delete_item(&request).wait().map(drop)
        }
        color => put(db, "orders", item.with("color", format!("c{color}"))),
    }
}

/// Sets a flag when it goes, also when a test fails: nobody is left running.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs writers until `meanwhile` is done; every one of them has written before it begins and
/// after it ends.
fn under_load(db: &Database, allowed: impl Fn(&Error) -> bool + Sync, meanwhile: impl FnOnce()) {
    let (stop, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let written: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let all_write_on = || {
        for count in &written {
            let from = count.load(Ordering::Relaxed);
            while count.load(Ordering::Relaxed) < from + ITEMS && !ended.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        }
    };
    thread::scope(|scope| {
        for (writer, count) in (0..).zip(&written) {
            let (stop, ended, allowed) = (&stop, &ended, &allowed);
            scope.spawn(move || {
                let _ended = SetWhenDropped(ended);
                for n in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    if let Err(error) = write(db, writer, n) {
                        assert!(allowed(&error), "{error:?}");
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _stop = SetWhenDropped(&stop);
        all_write_on();
        meanwhile();
        all_write_on();
    });
}

#[test]
fn an_index_that_was_filled_during_writes_holds_what_the_table_holds() {
    let db = database();
    under_load(
        &db,
        |_| false,
        || {
            for round in 0..5 {
                db.update_table("orders", &by_color()).unwrap();
                db.run_background().unwrap();
                assert_eq!(db.describe_table("orders").unwrap().global[0].status, Status::Active);
                if round < 4 {
                    db.update_table("orders", &drop_by_color()).unwrap();
                }
            }
        },
    );
    let mut items = all(&db, "orders", None).unwrap();
    items.retain(|item| item.get("color").is_some());
    assert!(!items.is_empty());
    assert_eq!(all(&db, "orders", Some("by-color")).unwrap(), items);
}

#[test]
fn who_reads_an_index_while_it_is_dropped_gets_its_items_or_is_told_that_it_is_gone() {
    let db = database();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut answers = [0_u64; 2];
            while !stop.load(Ordering::Relaxed) {
                match all(&db, "orders", Some("by-color")) {
                    Ok(_) => answers[0] += 1,
                    Err(Error::Validation(_) | Error::NotFound(_)) => answers[1] += 1,
                    Err(other) => panic!("{other:?}"),
                }
            }
            answers
        });
        let _stop = SetWhenDropped(&stop);
        under_load(
            &db,
            |_| false,
            || {
                for _ in 0..8 {
                    db.update_table("orders", &by_color()).unwrap();
                    db.run_background().unwrap();
                    db.update_table("orders", &drop_by_color()).unwrap();
                }
            },
        );
        stop.store(true, Ordering::Relaxed);
        let answers = reader.join().unwrap();
        assert!(answers.iter().sum::<u64>() > 0);
    });
}

#[test]
fn writes_to_a_table_that_is_dropped_meanwhile_say_that_it_is_gone() {
    let db = database();
    under_load(
        &db,
        |error| matches!(error, Error::NotFound(message) if message == "Requested resource not found"),
        || {
            for _ in 0..8 {
                db.delete_table("orders").unwrap();
                db.create_table(&spec("orders")).unwrap();
            }
        },
    );
    // What was written to the last table, and nothing of those before.
    db.delete_table("orders").unwrap();
    db.create_table(&spec("orders")).unwrap();
    assert!(all(&db, "orders", None).unwrap().is_empty());
}
