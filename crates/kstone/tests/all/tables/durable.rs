//! Tables after a restart, and after a crash in the middle of a change.

use std::sync::Arc;

use kstone::table::{
    IndexProjection, IndexSpec, KeyAttribute, KeySchema, RawTable, StreamView, TableChange,
    TableSpec,
};
use kstone::{Database, DatabaseOptions, Item, Result};
use kstone_core::env::{Env, ManualClock, SeededRandom};
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

use crate::tables::support::{all, index, put, raw, spec};

fn open(env: &Env) -> Result<Database> {
    Database::open_with(env.clone(), "db", DatabaseOptions::default())
}

#[test]
fn tables_with_all_that_belongs_to_them_are_there_after_a_restart() {
    let env = Env::memory();
    let table = RawTable {
        local: Some(vec![index("by-time", "a H c R")]),
        global: Some(vec![index("by-owner", "d H e H b R"), index("dropped", "d H")]),
        ..raw("a b:N c d e", "a H b R")
    };
    let before = {
        let db = open(&env).unwrap();
        db.create_table(&table.resolve().unwrap()).unwrap();
        db.create_table(&spec("gone")).unwrap();
        db.delete_table("gone").unwrap();
        db.tag("orders", &[("team".to_owned(), "core".to_owned())]).unwrap();
        let open_stream =
            TableChange { stream: Some(Some(StreamView::OldImage)), ..TableChange::default() };
        db.update_table("orders", &open_stream).unwrap();
        let drop_index =
            TableChange { delete_index: Some("dropped".to_owned()), ..TableChange::default() };
        db.update_table("orders", &drop_index).unwrap();
        db.describe_table("orders").unwrap()
    };
    let db = open(&env).unwrap();
    assert_eq!(db.list_tables(None, 10).0, ["orders"]);
    assert_eq!(db.describe_table("orders").unwrap(), before);
    assert_eq!(db.tags("orders").unwrap(), [("team".to_owned(), "core".to_owned())]);
}

/// A machine whose power can be cut, without threads: every run is the same.
fn machine(disk: &SimDisk) -> Env {
    Env {
        vfs: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::at(1_700_000_000_000)),
        random: Arc::new(SeededRandom::new(7)),
        threads: None,
    }
}

/// A table with an index of each kind and a stream: four engine tables.
fn whole() -> TableSpec {
    let by = |name: &str, hash: &str, range: &str| IndexSpec {
        name: name.to_owned(),
        key: KeySchema::hash_range(KeyAttribute::string(hash), KeyAttribute::string(range)),
        projection: IndexProjection::All,
        throughput: None,
    };
    TableSpec {
        key: KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk")),
        local: vec![by("local", "pk", "x")],
        global: vec![by("global", "x", "y")],
        stream: Some(StreamView::KeysOnly),
        ..spec("orders")
    }
}

/// What is found after a crash.
struct Found {
    db: Database,
    /// Engine tables, besides those of an empty database.
    engine_tables: usize,
    /// Whether the work had been acknowledged.
    done: bool,
}

/// Cuts the power at every change of the disk that `work` makes, one after the other, and lets
/// `check` look at what is found then.
fn crash_everywhere(
    prepare: impl Fn(&Database),
    work: impl Fn(&Database) -> Result<()>,
    check: impl Fn(&Found),
) {
    let prepared = || {
        let disk = SimDisk::new(3);
        let db = open(&machine(&disk)).unwrap();
        prepare(&db);
        (disk, db)
    };
    let empty = open(&machine(&SimDisk::new(3))).unwrap().engine().tables().len();
    let (disk, db) = prepared();
    let start = disk.ops();
    work(&db).unwrap();
    let ops = disk.ops() - start;
    assert!(ops > 1);
    for op in 0..ops {
        let (disk, db) = prepared();
        disk.arm(Trigger::AtOp(op));
        let done = work(&db).is_ok();
        assert!(disk.is_stopped());
        drop(db);
        for policy in [CrashPolicy::LoseAll, CrashPolicy::KeepAll, CrashPolicy::Random(op)] {
            let db = open(&machine(&disk.crash(policy))).unwrap();
            let engine_tables = db.engine().tables().len() - empty;
            let found = Found { db, engine_tables, done };
            check(&found);
            if found.db.describe_table("orders").is_ok() {
                found.db.delete_table("orders").unwrap();
            }
            assert_eq!(found.db.engine().tables().len(), empty, "crash at {op}, {policy:?}");
            found.db.create_table(&whole()).unwrap();
            assert!(all(&found.db, "orders", None).unwrap().is_empty());
        }
    }
}

#[test]
fn a_crash_while_a_table_is_made_leaves_all_of_it_or_nothing() {
    crash_everywhere(
        |_| (),
        |db| db.create_table(&whole()).map(drop),
        |found| match found.db.describe_table("orders") {
            Ok(table) => assert_eq!((table.spec, found.engine_tables), (whole(), 4)),
            Err(_) => assert_eq!((found.engine_tables, found.done), (0, false)),
        },
    );
}

#[test]
fn a_crash_while_a_table_is_dropped_leaves_all_of_it_or_nothing() {
    let item = || Item::new().with("pk", "p").with("sk", "s").with("x", "x").with("y", "y");
    crash_everywhere(
        |db| {
            db.create_table(&whole()).unwrap();
            put(db, "orders", item()).unwrap();
        },
        |db| db.delete_table("orders").map(drop),
        |found| match found.db.describe_table("orders") {
            Ok(_) => {
                assert_eq!((found.engine_tables, found.done), (4, false));
                for index in [None, Some("local"), Some("global")] {
                    assert_eq!(all(&found.db, "orders", index).unwrap(), [item()]);
                }
            }
            Err(_) => assert_eq!(found.engine_tables, 0),
        },
    );
}

#[test]
fn a_crash_while_an_index_is_made_or_dropped_leaves_all_of_it_or_nothing() {
    let item = || Item::new().with("pk", "p").with("sk", "s").with("x", "x").with("y", "y");
    let more = || IndexSpec { name: "more".to_owned(), ..whole().global[0].clone() };
    let whole_or_none = |found: &Found, when_done: bool| {
        let table = found.db.describe_table("orders").unwrap();
        let there = table.spec.global.iter().any(|index| index.name == "more");
        assert!(!found.done || there == when_done);
        assert_eq!(found.engine_tables, if there { 5 } else { 4 });
        found.db.run_background().unwrap();
        if there {
            assert_eq!(all(&found.db, "orders", Some("more")).unwrap(), [item()]);
        }
    };
    let prepare = |db: &Database| {
        db.create_table(&whole()).unwrap();
        put(db, "orders", item()).unwrap();
    };
    let create = || TableChange { create_index: Some(more()), ..TableChange::default() };
    crash_everywhere(
        prepare,
        |db| {
            db.update_table("orders", &create())?;
            db.run_background()
        },
        |found| whole_or_none(found, true),
    );
    crash_everywhere(
        |db| {
            prepare(db);
            db.update_table("orders", &create()).unwrap();
            db.run_background().unwrap();
        },
        |db| {
            let delete =
                TableChange { delete_index: Some("more".to_owned()), ..TableChange::default() };
            db.update_table("orders", &delete).map(drop)
        },
        |found| whole_or_none(found, false),
    );
}
