//! Making an index of a table that has items: it is filled while the table is written, goes on
//! after a restart, and can be given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kstone::ops::{KeyCondition, Query, Scan};
use kstone::table::{KeyAttribute, KeySchema, Status, TableSpec};
use kstone::{
    Database, DatabaseOptions, Durability, Error, Item, ItemBytes, Key, Value, placeholders,
};
use kstone_core::env::Env;
use kstone_core::{Options, ScanCursor, TableId, WriteBatch};
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

use crate::indexes::agreement::{check, check_engine_tables, implied};
use crate::indexes::table::{
    Machine, TABLE, create, create_index, delete_index, index_status, late_index, put, scan, spec,
};
use crate::indexes::workload::{Dice, Step, draw_item, run};

/// Of no time that counts: items with it do not expire.
const NO_TIME: u64 = 0;

fn fill(db: &Database, items: usize) {
    let dice = Dice::new(3);
    for n in 0..items {
        put(db, draw_item(&dice, NO_TIME).with("pk", format!("{n}")));
    }
}

fn make_late_index(db: &Database) {
    db.update_table(TABLE, &create_index(late_index())).unwrap();
}

fn query_late(db: &Database) -> Result<usize, Error> {
    let request = Query {
        table: TABLE.to_owned(),
        index: Some("late".to_owned()),
        key_condition: Some(KeyCondition::Text("#a = :v".to_owned())),
        placeholders: placeholders([("#a", Value::from("at")), (":v", 12.into())]),
        ..Query::default()
    };
    Ok(db.query_items(&request).wait()?.items.unwrap().len())
}

#[test]
fn an_index_cannot_be_read_before_it_is_filled() {
    let db = Machine::new().open();
    create(&db);
    fill(&db, 100);
    make_late_index(&db);
    assert_eq!(index_status(&db, "late"), Some(Status::Creating));
    let error = query_late(&db).unwrap_err();
    assert_eq!(error.to_string(), "Cannot read from backfilling global secondary index: late");
    db.run_background().unwrap();
    assert_eq!(index_status(&db, "late"), Some(Status::Active));
    assert!(query_late(&db).unwrap() > 0);
    check(&db);
}

#[test]
fn writes_before_and_during_the_fill_are_all_in_the_index() {
    for seed in 0..10 {
        let dice = Dice::new(seed);
        let machine = Machine::new();
        let db = machine.open();
        create(&db);
        let write = |steps: usize| {
            for _ in 0..steps {
                run(&machine, &db, &Step::draw_write(&dice, NO_TIME)).unwrap();
            }
        };
        write(60);
        make_late_index(&db);
        write(60);
        db.run_background().unwrap();
        write(60);
        check(&db);
    }
}

#[test]
fn an_index_that_is_made_while_four_threads_write_holds_every_item() {
    let machine = Machine::new();
    let db = Database::memory().unwrap().with_durability(Durability::Os);
    create(&db);
    for round in 0..8 {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|writer| {
                    let (db, machine) = (&db, &machine);
                    scope.spawn(move || {
                        let dice = Dice::new(round * 4 + writer);
                        for _ in 0..200 {
                            run(machine, db, &Step::draw_write(&dice, NO_TIME)).unwrap();
                        }
                    })
                })
                .collect();
            // One more that fills, next to the database's own: it begins in the middle of things.
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    db.run_background().unwrap();
                }
            });
            make_late_index(&db);
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Release);
        });
        db.run_background().unwrap();
        assert_eq!(index_status(&db, "late"), Some(Status::Active));
        check(&db);
        db.update_table(TABLE, &delete_index("late")).unwrap();
        check_engine_tables(&db);
    }
}

/// How long a fill that does not wait for a writer gets to pass it by.
const TIME_TO_GO_WRONG: Duration = Duration::from_millis(300);

#[test]
fn a_fill_waits_for_the_writer_that_knew_nothing_of_the_index() {
    let db = Machine::new().open();
    let spec = TableSpec {
        name: TABLE.to_owned(),
        key: KeySchema::hash(KeyAttribute::string("pk")),
        ..TableSpec::default()
    };
    db.create_table(&spec).unwrap();
    let items = TableId(2);
    let item = |pk: &str| Item::new().with("pk", pk).with("owner", "ada").with("at", 1);
    put(&db, item("before"));
    let (key, mut batch) = (Key::new("slow"), WriteBatch::new());
    batch.put(items, &key, ItemBytes::encode(&item("slow")).as_slice()).unwrap();
    assert_ne!(key.stripe(), Key::new("before").stripe());

    std::thread::scope(|scope| {
        // A writer looked at the table, holds its lock, and has not committed yet.
        let writer = db.engine().lock([&key]).unwrap();
        scope.spawn(|| make_late_index(&db));
        let start = Instant::now();
        while index_status(&db, "late").is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "the index is never made");
            std::thread::yield_now();
        }
        let filler = scope.spawn(|| db.run_background().unwrap());
        let passed_by = || db.describe_table(TABLE).unwrap().global[0].backfilled != Some(0);
        let start = Instant::now();
        while start.elapsed() < TIME_TO_GO_WRONG && !passed_by() {
            std::thread::yield_now();
        }
        writer.commit(&batch, Durability::Os).unwrap().wait().unwrap();
        filler.join().unwrap();
    });
    db.run_background().unwrap();
    assert_eq!(scan(&db, TABLE, Some("late")).len(), 2);
}

#[test]
fn who_reads_an_index_that_comes_and_goes_gets_an_answer_or_is_told_that_there_is_none() {
    let db = Database::memory().unwrap().with_durability(Durability::Os);
    create(&db);
    fill(&db, 200);
    let expected = implied(&spec().key, &late_index(), &scan(&db, TABLE, None)).len();
    let done = AtomicBool::new(false);
    let read = || {
        let request =
            Scan { table: TABLE.to_owned(), index: Some("late".to_owned()), ..Scan::default() };
        let mut answers = 0;
        while !done.load(Ordering::Acquire) {
            match db.scan_items(&request).wait() {
                Ok(page) => {
                    assert_eq!(page.count as usize, expected);
                    answers += 1;
                }
                Err(Error::Validation(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
            match query_late(&db) {
                Ok(_) | Err(Error::Validation(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        answers
    };
    let answers: usize = std::thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read)];
        for _ in 0..30 {
            make_late_index(&db);
            db.run_background().unwrap();
            db.update_table(TABLE, &delete_index("late")).unwrap();
        }
        done.store(true, Ordering::Release);
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    assert!(answers > 0, "no reader ever met the index");
    check_engine_tables(&db);
}

#[test]
fn a_fill_that_a_restart_interrupts_goes_on() {
    const ITEMS: usize = 200;
    let mut met_the_middle = 0;
    for at_op in (0..).step_by(29) {
        let disk = SimDisk::new(at_op);
        let machine = Machine::new();
        let env = |disk: &SimDisk| Env { vfs: Arc::new(disk.clone()), ..machine.env.clone() };
        // Small files, so that some of it is on disk before all of it is done.
        let engine = Options { stripe_records_max: Some(4), ..Options::default() };
        let options = DatabaseOptions { engine, ..DatabaseOptions::default() };
        let open = |disk: &SimDisk| Database::open_with(env(disk), "db", options.clone()).unwrap();
        let db = open(&disk).with_durability(Durability::Os);
        create(&db);
        fill(&db, ITEMS);
        make_late_index(&db);
        let index = db.engine().tables().into_iter().max().unwrap();
        disk.arm(Trigger::AtOp(at_op));
        let stopped = db.run_background().is_err();
        drop(db);
        if !stopped {
            break;
        }
        let db = open(&disk.crash(CrashPolicy::KeepAll));
        let entries = entries_of(&db, index);
        db.run_background().unwrap();
        assert_eq!(index_status(&db, "late"), Some(Status::Active));
        met_the_middle += usize::from(0 < entries && entries < entries_of(&db, index));
        check(&db);
    }
    assert!(met_the_middle > 0, "no crash was in the middle of it");
}

fn entries_of(db: &Database, index: TableId) -> usize {
    db.engine().snapshot().scan(index, ScanCursor::start()).count()
}

#[test]
fn an_index_can_be_dropped_before_it_is_filled() {
    let db = Machine::new().open();
    create(&db);
    fill(&db, 100);
    make_late_index(&db);
    db.update_table(TABLE, &delete_index("late")).unwrap();
    assert_eq!(index_status(&db, "late"), None);
    check_engine_tables(&db);
    db.run_background().unwrap();
    fill(&db, 150);
    make_late_index(&db);
    db.run_background().unwrap();
    check(&db);
    check_engine_tables(&db);
}

#[test]
fn an_index_can_be_dropped_while_it_is_filled() {
    let db = Database::memory().unwrap().with_durability(Durability::Os);
    create(&db);
    fill(&db, 500);
    for _ in 0..20 {
        // The background thread begins to fill it at once.
        make_late_index(&db);
        db.update_table(TABLE, &delete_index("late")).unwrap();
        db.run_background().unwrap();
        check_engine_tables(&db);
    }
    check(&db);
}

#[test]
fn a_table_is_not_dropped_before_its_index_is_filled_and_leaves_nothing_then() {
    let db = Machine::new().open();
    create(&db);
    fill(&db, 100);
    make_late_index(&db);
    let error = db.delete_table(TABLE).unwrap_err();
    assert!(matches!(error, Error::InUse(_)), "{error:?}");
    db.run_background().unwrap();
    db.delete_table(TABLE).unwrap();
    db.run_background().unwrap();
    assert_eq!(db.engine().tables().len(), 2);
    create(&db);
    assert_eq!(check(&db), []);
}

#[test]
fn a_database_can_be_closed_in_the_middle_of_a_fill_and_goes_on_when_it_is_opened() {
    let env = Env::memory();
    let open = || Database::open_with(env.clone(), "db", DatabaseOptions::default()).unwrap();
    let db = open().with_durability(Durability::Os);
    create(&db);
    fill(&db, 3000);
    make_late_index(&db);
    drop(db);
    let db = open();
    db.run_background().unwrap();
    assert_eq!(index_status(&db, "late"), Some(Status::Active));
    check(&db);
}
