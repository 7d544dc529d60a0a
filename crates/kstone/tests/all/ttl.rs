//! Time to live: an item whose second has come is absent at once, for every reader and for every
//! condition, and is removed later, with its index entries and a record in the stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kstone::ops::{
    BatchGet, BatchGetTable, Condition, DeleteItem, GetItem, KeyCondition, Placeholders, PutItem,
    Query, ReturnValues, Scan, TransactGet, TransactGetRequest, Update, UpdateItem,
};
use kstone::partiql::Statement;
use kstone::stream::ChangeKind;
use kstone::table::{
    IndexProjection, IndexSpec, KeyAttribute, KeySchema, StreamView, TableChange, TableSpec,
    TtlState,
};
use kstone::{Database, DatabaseOptions, Error, Item, Number, Value, placeholders};
use kstone_core::env::{Env, ManualClock, OsThreads};
use kstone_core::{Durability, Options, ScanCursor, TableId};
use kstone_sim::{CrashPolicy, SimDisk, Trigger};

use crate::support::{Machine, START_MS, stream_records};

const START_S: i64 = 1_700_000_000;
const YEAR_S: i64 = 365 * 86_400;
const TABLE: &str = "sessions";

/// A machine and a database with a table whose items expire by their `ttl`.
fn with_ttl() -> (Machine, Database) {
    let machine = Machine::new();
    let db = machine.open();
    create(&db);
    switch(&db, true);
    (machine, db)
}

fn create(db: &Database) {
    let index = |name: &str, key: KeySchema, projection: IndexProjection| IndexSpec {
        name: name.to_owned(),
        key,
        projection,
        throughput: None,
    };
    let pk = || KeyAttribute::string("pk");
    let user = KeySchema::hash(KeyAttribute::string("user"));
    let by_n = KeySchema::hash_range(pk(), KeyAttribute::number("n"));
    let spec = TableSpec {
        name: TABLE.to_owned(),
        key: KeySchema::hash_range(pk(), KeyAttribute::string("sk")),
        global: vec![index("by-user", user, IndexProjection::All)],
        local: vec![index("by-n", by_n, IndexProjection::KeysOnly)],
        stream: Some(StreamView::NewAndOldImages),
        ..TableSpec::default()
    };
    db.create_table(&spec).unwrap();
}

fn switch(db: &Database, on: bool) {
    db.update_ttl(TABLE, "ttl", on).unwrap();
    db.run_background().unwrap();
}

fn key(sk: &str) -> Item {
    Item::new().with("pk", "p").with("sk", sk)
}

fn session(sk: &str, ttl: impl Into<Value>) -> Item {
    key(sk).with("user", "ada").with("n", 1).with("ttl", ttl)
}

fn put(db: &Database, item: Item) {
    let request = PutItem { table: TABLE.to_owned(), item, ..PutItem::default() };
    db.put_item(&request).wait().unwrap();
}

fn update(db: &Database, sk: &str, text: &str, with: &[(&'static str, Value)]) -> Option<Item> {
    let request = UpdateItem {
        table: TABLE.to_owned(),
        key: key(sk),
        update: Some(Update::Text(text.to_owned())),
        placeholders: placeholders(with.to_vec()),
        return_values: ReturnValues::AllNew,
        ..UpdateItem::default()
    };
    let output = db.update_item(&request).wait().unwrap();
    output.attributes.map(|item| item.decode().unwrap())
}

fn get(db: &Database, sk: &str) -> Option<Item> {
    let request = GetItem { table: TABLE.to_owned(), key: key(sk), ..GetItem::default() };
    db.get_item(&request).wait().unwrap().item.map(|item| item.decode().unwrap())
}

fn query(db: &Database, index: Option<&str>, condition: &str, value: &str) -> Vec<Item> {
    let request = Query {
        table: TABLE.to_owned(),
        index: index.map(str::to_owned),
        key_condition: Some(KeyCondition::Text(condition.to_owned())),
        placeholders: Placeholders {
            names: condition.contains("#u").then(|| vec![("#u".to_owned(), "user".to_owned())]),
            ..placeholders([(":v", value)])
        },
        ..Query::default()
    };
    let page = db.query_items(&request).wait().unwrap();
    page.items.unwrap().iter().map(|item| item.decode().unwrap()).collect()
}

fn by_user(db: &Database) -> Vec<Item> {
    query(db, Some("by-user"), "#u = :v", "ada")
}

fn scan(db: &Database, index: Option<&str>) -> Vec<Item> {
    let index = index.map(str::to_owned);
    let request = Scan { table: TABLE.to_owned(), index, ..Scan::default() };
    let page = db.scan_items(&request).wait().unwrap();
    page.items.unwrap().iter().map(|item| item.decode().unwrap()).collect()
}

/// How many items each way of reading gives, for a table with the one item `sk`.
fn seen_by_every_reader(db: &Database, sk: &str) -> Vec<(&'static str, usize)> {
    let batch = BatchGet {
        tables: vec![BatchGetTable {
            table: TABLE.to_owned(),
            keys: vec![key(sk)],
            ..BatchGetTable::default()
        }],
        ..BatchGet::default()
    };
    let one = TransactGetRequest {
        table: TABLE.to_owned(),
        key: key(sk),
        ..TransactGetRequest::default()
    };
    let transact = TransactGet { gets: vec![one], ..TransactGet::default() };
    let fetched = Query {
        table: TABLE.to_owned(),
        index: Some("by-n".to_owned()),
        select: Some(kstone::ops::Select::AllAttributes),
        key_condition: Some(KeyCondition::Text("pk = :v".to_owned())),
        placeholders: placeholders([(":v", "p")]),
        ..Query::default()
    };
    let select = Statement::new(format!("SELECT * FROM {TABLE} WHERE pk = 'p'"));
    let transacted = db.transact_get(&transact).wait().unwrap().items;
    vec![
        ("get", usize::from(get(db, sk).is_some())),
        ("batch get", db.batch_get(&batch).wait().unwrap().found[0].1.len()),
        ("transact get", transacted.iter().flatten().count()),
        ("query", query(db, None, "pk = :v", "p").len()),
        ("query by global index", by_user(db).len()),
        ("query by local index", query(db, Some("by-n"), "pk = :v", "p").len()),
        ("query that fetches", db.query_items(&fetched).wait().unwrap().items.unwrap().len()),
        ("scan", scan(db, None).len()),
        ("scan of global index", scan(db, Some("by-user")).len()),
        ("scan of local index", scan(db, Some("by-n")).len()),
        ("PartiQL", db.execute_statement(&select).wait().unwrap().items.len()),
    ]
}

/// How many records of items and index entries are still stored although their time is over.
fn left_behind(db: &Database) -> usize {
    db.engine().expired(0, 100_000).unwrap().0.len()
}

/// What the stream tells: each change with its images' `n`, and whether it was by expiry.
fn told(db: &Database) -> Vec<(ChangeKind, bool)> {
    stream_records(db, TABLE).iter().map(|record| (record.kind, record.by_expiry)).collect()
}

#[test]
fn an_expired_item_is_never_returned() {
    let (machine, db) = with_ttl();
    put(&db, session("a", START_S + 10));
    machine.clock.advance(9_999);
    for (reader, seen) in seen_by_every_reader(&db, "a") {
        assert_eq!(seen, 1, "{reader} in the last millisecond");
    }
    machine.clock.advance(1);
    for (reader, seen) in seen_by_every_reader(&db, "a") {
        assert_eq!(seen, 0, "{reader} before it is reclaimed");
    }
    db.run_background().unwrap();
    for (reader, seen) in seen_by_every_reader(&db, "a") {
        assert_eq!(seen, 0, "{reader} after it was reclaimed");
    }
}

#[test]
fn an_item_that_is_written_with_a_second_in_the_past_is_not_there() {
    let (_machine, db) = with_ttl();
    put(&db, session("a", START_S - 1));
    for (reader, seen) in seen_by_every_reader(&db, "a") {
        assert_eq!(seen, 0, "{reader}");
    }
}

#[test]
fn what_has_expired_is_reclaimed_with_its_index_entries_and_told_in_the_stream() {
    let (machine, db) = with_ttl();
    for n in 0..300 {
        put(&db, session(&format!("{n:03}"), START_S + 10));
    }
    put(&db, session("stays", START_S + 20));
    machine.clock.advance(10_000);
    assert_eq!(left_behind(&db), 3 * 300, "each item with its two index entries");
    db.run_background().unwrap();
    assert_eq!(left_behind(&db), 0);
    let records = stream_records(&db, TABLE);
    let removed: Vec<_> = records.iter().filter(|r| r.kind == ChangeKind::Remove).collect();
    assert_eq!((records.len(), removed.len()), (601, 300));
    for record in removed {
        assert!(record.by_expiry && record.new.is_none());
        let keys = record.keys.decode().unwrap();
        let sk = keys.get("sk").unwrap().as_str().unwrap();
        assert_eq!(record.old.as_ref().unwrap().decode().unwrap(), session(sk, START_S + 10));
        assert_eq!(record.created_ms, START_MS + 10_000);
    }
    assert_eq!(by_user(&db).len(), 1);
    db.run_background().unwrap();
    assert_eq!(stream_records(&db, TABLE).len(), 601, "nothing is reclaimed twice");
}

#[test]
fn overwriting_an_expired_item_removes_the_old_one_and_inserts_the_new_one() {
    let (machine, db) = with_ttl();
    put(&db, session("a", START_S + 10));
    machine.clock.advance(10_000);
    // The same item but for its time: the index entries must not be taken for unchanged.
    put(&db, session("a", START_S + 20));
    let inserted = (ChangeKind::Insert, false);
    assert_eq!(told(&db), [inserted, (ChangeKind::Remove, true), inserted]);
    assert_eq!(by_user(&db), [session("a", START_S + 20)]);
    assert_eq!(left_behind(&db), 0);
    db.run_background().unwrap();
    assert_eq!(by_user(&db), [session("a", START_S + 20)]);

    machine.clock.advance(10_000);
    put(&db, session("a", START_S + 40).with("user", "grace").with("n", 2));
    assert_eq!(by_user(&db), []);
    assert_eq!(scan(&db, Some("by-user")).len(), 1);
    assert_eq!(scan(&db, Some("by-n")), [key("a").with("n", 2)]);
    assert_eq!(left_behind(&db), 0, "no entry of the expired item is left");
    assert_eq!(told(&db).len(), 5);
}

#[test]
fn to_a_condition_an_expired_item_is_absent() {
    let (machine, db) = with_ttl();
    for sk in ["put", "update", "delete", "check"] {
        put(&db, session(sk, START_S + 10));
    }
    machine.clock.advance(10_000);
    let exists = || Some(Condition::Text("attribute_exists(pk)".to_owned()));
    let refused = DeleteItem {
        table: TABLE.to_owned(),
        key: key("check"),
        condition: exists(),
        return_on_failure: true,
        ..DeleteItem::default()
    };
    let error = db.delete_item(&refused).wait().unwrap_err();
    assert!(matches!(error, Error::ConditionFailed { item: None }), "{error:?}");

    let request = PutItem {
        table: TABLE.to_owned(),
        item: key("put"),
        condition: Some(Condition::Text("attribute_not_exists(pk)".to_owned())),
        return_values: ReturnValues::AllOld,
        ..PutItem::default()
    };
    assert_eq!(db.put_item(&request).wait().unwrap().attributes, None);

    let updated = update(&db, "update", "SET hits = if_not_exists(n, :n)", &[(":n", 7.into())]);
    assert_eq!(updated, Some(key("update").with("hits", 7)), "nothing of the old item is left");

    let request = DeleteItem {
        table: TABLE.to_owned(),
        key: key("delete"),
        return_values: ReturnValues::AllOld,
        ..DeleteItem::default()
    };
    assert_eq!(db.delete_item(&request).wait().unwrap().attributes, None);
    db.run_background().unwrap();
    let told = told(&db);
    let count = |wanted| told.iter().filter(|told| **told == wanted).count();
    assert_eq!(count((ChangeKind::Remove, true)), 4, "each went because its time was over");
    assert_eq!(count((ChangeKind::Remove, false)), 0);
    assert_eq!(count((ChangeKind::Insert, false)), 4 + 2);
    assert_eq!(scan(&db, None).len(), 2);
    assert_eq!(scan(&db, Some("by-user")), []);
}

#[test]
fn switching_it_on_stamps_the_items_that_are_there() {
    let machine = Machine::new();
    let db = machine.open();
    create(&db);
    for n in 0..100 {
        put(&db, session(&format!("{n}"), START_S + 10));
    }
    put(&db, session("past", START_S - 10));
    put(&db, session("later", START_S + 20));
    assert_eq!(scan(&db, None).len(), 102, "it is off: nothing expires");
    db.update_ttl(TABLE, "ttl", true).unwrap();
    let enabling = TtlState::Enabling("ttl".to_owned());
    assert_eq!(db.describe_table(TABLE).unwrap().ttl, enabling);
    db.run_background().unwrap();
    assert_eq!(db.describe_table(TABLE).unwrap().ttl, TtlState::On("ttl".to_owned()));
    assert_eq!(scan(&db, None).len(), 101);
    assert_eq!(by_user(&db).len(), 101);
    machine.clock.advance(10_000);
    for index in [None, Some("by-user"), Some("by-n")] {
        assert_eq!(scan(&db, index).len(), 1, "{index:?}");
    }
    db.run_background().unwrap();
    assert_eq!(left_behind(&db), 0);
    let removed = told(&db).iter().filter(|told| **told == (ChangeKind::Remove, true)).count();
    assert_eq!(removed, 101);
}

#[test]
fn switching_it_off_keeps_what_is_there_and_does_not_bring_back_what_has_gone() {
    let (machine, db) = with_ttl();
    put(&db, session("gone", START_S + 10));
    for n in 0..100 {
        put(&db, session(&format!("{n}"), START_S + 20));
    }
    machine.clock.advance(10_000);
    switch(&db, false);
    assert_eq!(db.describe_table(TABLE).unwrap().ttl, TtlState::Off);
    machine.clock.advance(10_000);
    db.run_background().unwrap();
    for index in [None, Some("by-user"), Some("by-n")] {
        assert_eq!(scan(&db, index).len(), 100, "{index:?}");
    }
    assert_eq!(get(&db, "gone"), None);
    assert_eq!(left_behind(&db), 0);
    put(&db, session("new", START_S - 10));
    assert!(get(&db, "new").is_some());
}

#[test]
fn it_can_be_switched_to_another_attribute() {
    let (machine, db) = with_ttl();
    put(&db, session("old", START_S + 10));
    put(&db, key("new").with("until", START_S + 10));
    switch(&db, false);
    db.update_ttl(TABLE, "until", true).unwrap();
    db.run_background().unwrap();
    machine.clock.advance(10_000);
    assert!(get(&db, "old").is_some());
    assert_eq!(get(&db, "new"), None);
}

#[test]
fn a_second_further_back_than_five_years_does_not_count() {
    let (machine, db) = with_ttl();
    put(&db, session("just", START_S - 5 * YEAR_S));
    put(&db, session("older", START_S - 5 * YEAR_S - 1));
    assert_eq!(get(&db, "just"), None);
    assert!(get(&db, "older").is_some(), "it looks like a mistake, not like a time");
    machine.clock.advance(1000);
    db.run_background().unwrap();
    assert!(get(&db, "older").is_some());
    assert_eq!(by_user(&db).len(), 1);
}

#[test]
fn an_attribute_that_is_no_time_is_ignored() {
    let (machine, db) = with_ttl();
    let number = |text: &str| Value::N(text.parse::<Number>().unwrap());
    let no_times = [
        ("text", Value::from("1700000001")),
        ("list", Value::from(vec![Value::from(START_S + 1)])),
        ("set", Value::number_set(vec![(START_S + 1).into()]).unwrap()),
        ("null", Value::Null),
        ("zero", Value::from(0)),
        ("negative", Value::from(-START_S)),
        ("huge", number("9E+125")),
        ("tiny", number("1E-130")),
    ];
    for (sk, value) in &no_times {
        put(&db, session(sk, value.clone()));
    }
    put(&db, key("none").with("user", "ada").with("n", 1));
    put(&db, session("fraction", number("1700000010.9")));
    machine.clock.advance(9_999);
    assert!(get(&db, "fraction").is_some());
    machine.clock.advance(1);
    assert_eq!(get(&db, "fraction"), None, "a fraction of a second does not count");
    machine.clock.advance(1000 * YEAR_S as u64);
    db.run_background().unwrap();
    let left: Vec<_> = no_times.iter().filter(|(sk, _)| get(&db, sk).is_some()).collect();
    assert_eq!(left.len(), no_times.len(), "{left:?}");
    assert_eq!(by_user(&db).len(), no_times.len() + 1);
}

#[test]
fn an_update_can_move_the_time() {
    let (machine, db) = with_ttl();
    for sk in ["later", "sooner", "never", "untouched"] {
        put(&db, session(sk, START_S + 10));
    }
    put(&db, key("from now on").with("user", "ada").with("n", 1));
    let moved = |sk: &str, to_s: i64| {
        update(&db, sk, "SET #t = :t", &[("#t", "ttl".into()), (":t", to_s.into())]);
    };
    moved("later", START_S + 20);
    moved("sooner", START_S + 5);
    moved("from now on", START_S + 5);
    update(&db, "untouched", "SET hits = :n", &[(":n", 1.into())]);
    update(&db, "never", "REMOVE #t", &[("#t", "ttl".into())]);

    let there = |expected: &[&str]| {
        for index in [None, Some("by-user"), Some("by-n")] {
            let name = |item: &Item| item.get("sk").unwrap().as_str().unwrap().to_owned();
            let mut seen: Vec<String> = scan(&db, index).iter().map(name).collect();
            seen.sort_unstable();
            assert_eq!(seen, expected, "{index:?}");
        }
    };
    there(&["from now on", "later", "never", "sooner", "untouched"]);
    machine.clock.advance(5_000);
    db.run_background().unwrap();
    there(&["later", "never", "untouched"]);
    machine.clock.advance(5_000);
    db.run_background().unwrap();
    there(&["later", "never"]);
    machine.clock.advance(10_000);
    db.run_background().unwrap();
    there(&["never"]);
    machine.clock.advance(1000 * YEAR_S as u64);
    there(&["never"]);
}

#[test]
fn a_restart_neither_revives_nor_loses_anything() {
    let (machine, db) = with_ttl();
    put(&db, session("a", START_S + 10));
    put(&db, session("b", START_S + 20));
    machine.clock.advance(10_000);
    assert_eq!(get(&db, "a"), None);
    drop(db);
    // The machine's clock is set back; the database's is not.
    machine.clock.set(START_MS);
    let db = machine.open();
    assert_eq!(get(&db, "a"), None);
    assert!(get(&db, "b").is_some());
    db.run_background().unwrap();
    assert_eq!(left_behind(&db), 0);
    assert_eq!(told(&db).last(), Some(&(ChangeKind::Remove, true)));
}

#[test]
fn an_index_that_is_made_later_takes_over_when_its_items_expire() {
    let (machine, db) = with_ttl();
    put(&db, session("a", START_S + 10));
    let key = KeySchema::hash(KeyAttribute::number("n"));
    let late = IndexSpec {
        name: "late".to_owned(),
        key,
        projection: IndexProjection::KeysOnly,
        throughput: None,
    };
    let change = TableChange { create_index: Some(late), ..TableChange::default() };
    db.update_table(TABLE, &change).unwrap();
    db.run_background().unwrap();
    assert_eq!(scan(&db, Some("late")).len(), 1);
    machine.clock.advance(10_000);
    assert_eq!(scan(&db, Some("late")), []);
    db.run_background().unwrap();
    assert_eq!(left_behind(&db), 0);
}

/// The items' stamps as the engine has them: how many expire, and how many do not.
fn stamps(db: &Database, table: TableId) -> (usize, usize) {
    let records = db.engine().snapshot().scan(table, ScanCursor::start());
    let stamped = records.filter(|record| record.as_ref().unwrap().record.expires_at_ms.is_some());
    let stamped = stamped.count();
    (stamped, db.engine().snapshot().scan(table, ScanCursor::start()).count() - stamped)
}

#[test]
fn a_restart_in_the_middle_of_stamping_goes_on_with_it() {
    const ITEMS: usize = 200;
    for on in [true, false] {
        let mut met_the_middle = 0;
        for at_op in (0..).step_by(23) {
            let clock = Arc::new(ManualClock::at(START_MS));
            let disk = SimDisk::new(at_op);
            let env = |disk: &SimDisk| Env {
                vfs: Arc::new(disk.clone()),
                clock: Arc::clone(&clock) as _,
                threads: None,
                ..Env::memory()
            };
            // Small files, so that some of it is on disk before all of it is done.
            let engine = Options { stripe_records_max: Some(30), ..Options::default() };
            let options = DatabaseOptions { engine, ..DatabaseOptions::default() };
            let open =
                |disk: &SimDisk| Database::open_with(env(disk), "db", options.clone()).unwrap();
            let db = open(&disk).with_durability(Durability::Os);
            create(&db);
            // After the catalogue's, the first engine table that was made.
            let table = TableId(2);
            if !on {
                switch(&db, true);
            }
            for n in 0..ITEMS {
                put(&db, session(&format!("{n}"), START_S + 10));
            }
            db.update_ttl(TABLE, "ttl", on).unwrap();
            disk.arm(Trigger::AtOp(at_op));
            let stopped = db.run_background().is_err();
            assert_eq!(stopped, disk.is_stopped());
            drop(db);
            if !stopped {
                break;
            }
            let db = open(&disk.crash(CrashPolicy::KeepAll));
            let (stamped, plain) = stamps(&db, table);
            assert_eq!(stamped + plain, ITEMS);
            met_the_middle += usize::from(stamped > 0 && plain > 0);
            db.run_background().unwrap();
            let all = if on { (ITEMS, 0) } else { (0, ITEMS) };
            assert_eq!(stamps(&db, table), all, "crashed at operation {at_op}");
            let state = db.describe_table(TABLE).unwrap().ttl;
            assert!(matches!(state, TtlState::On(_) | TtlState::Off), "{state:?}");
            clock.advance(10_000);
            let left = if on { 0 } else { ITEMS };
            for index in [None, Some("by-user"), Some("by-n")] {
                assert_eq!(scan(&db, index).len(), left, "crashed at operation {at_op}");
            }
        }
        assert!(met_the_middle > 0, "no crash was in the middle of it");
    }
}

#[test]
fn a_table_can_be_dropped_while_its_items_are_stamped() {
    let machine = Machine::new();
    let db = machine.open();
    create(&db);
    put(&db, session("a", START_S + 10));
    db.update_ttl(TABLE, "ttl", true).unwrap();
    db.delete_table(TABLE).unwrap();
    db.run_background().unwrap();
    assert_eq!(db.engine().tables().len(), 2);
}

#[test]
fn the_background_thread_reclaims_without_being_asked() {
    let clock = Arc::new(ManualClock::at(START_MS));
    let env =
        Env { clock: Arc::clone(&clock) as _, threads: Some(Arc::new(OsThreads)), ..Env::memory() };
    let db = Database::open_with(env, "db", DatabaseOptions::default()).unwrap();
    create(&db);
    put(&db, session("before", START_S + 10));
    db.update_ttl(TABLE, "ttl", true).unwrap();
    put(&db, session("after", START_S + 10));
    let eventually = |done: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(60), "it never happened");
            std::thread::yield_now();
        }
    };
    eventually(&|| matches!(db.describe_table(TABLE).unwrap().ttl, TtlState::On(_)));
    clock.advance(10_000);
    eventually(&|| {
        told(&db).iter().filter(|told| **told == (ChangeKind::Remove, true)).count() == 2
    });
    assert_eq!(scan(&db, None), []);
}

/// Owns a table, and fails if it is told to.
#[derive(Debug)]
struct Layer {
    engine: kstone_core::Engine,
    table: TableId,
    fails: bool,
}

impl kstone::ExpiredRecordHandler for Layer {
    fn owns(&self, table: TableId) -> bool {
        table == self.table
    }

    fn reclaim(&self, expired: &[&kstone_core::Expired]) -> kstone_core::Result<()> {
        if self.fails {
            return Err(kstone_core::Error::invalid("not now"));
        }
        let mut batch = kstone_core::WriteBatch::new();
        for one in expired {
            batch.reclaim(one)?;
        }
        self.engine.write(&batch, Durability::Os)?.wait()
    }
}

/// Writes expired records to a table of another layer, most of them to one stripe.
fn expire_elsewhere(db: &Database, machine: &Machine, count: u32) -> TableId {
    let table = db.make_side_table().unwrap();
    let mut batch = kstone_core::WriteBatch::new();
    for n in 0..count {
        let at_ms = START_MS + 1 + u64::from(n % 7);
        let key = kstone_core::Key::with_sk(b"p".to_vec(), n.to_be_bytes().to_vec());
        batch.put_expiring(table, &key, b"", at_ms).unwrap();
        let key = kstone_core::Key::new(n.to_be_bytes().to_vec());
        batch.put_expiring(table, &key, b"", at_ms).unwrap();
    }
    db.engine().write(&batch, Durability::Os).unwrap().wait().unwrap();
    for n in 0..300 {
        let item = session(&n.to_string(), START_S + 1).with("pk", format!("p{n}"));
        put(db, item);
    }
    machine.clock.set(START_MS + 10_000);
    table
}

#[test]
fn what_expired_in_a_layer_that_is_not_open_keeps_nothing_else_from_being_removed() {
    let (machine, db) = with_ttl();
    let table = expire_elsewhere(&db, &machine, 3000);
    // This ends, though most of it cannot be removed.
    db.run_background().unwrap();
    let left = db.engine().expired(0, 100_000).unwrap().0;
    assert_eq!(left.len(), 6000);
    assert!(left.iter().all(|one| one.table == table));

    db.reclaim_with(Arc::new(Layer { engine: db.engine().clone(), table, fails: false }));
    db.run_background().unwrap();
    assert_eq!(left_behind(&db), 0);
}

#[test]
fn a_layer_that_fails_keeps_no_other_from_removing_what_has_expired() {
    let (machine, db) = with_ttl();
    let bad = db.make_side_table().unwrap();
    db.reclaim_with(Arc::new(Layer { engine: db.engine().clone(), table: bad, fails: true }));
    let mut batch = kstone_core::WriteBatch::new();
    batch.put_expiring(bad, &kstone_core::Key::new(b"p".to_vec()), b"", START_MS + 1).unwrap();
    db.engine().write(&batch, Durability::Os).unwrap().wait().unwrap();
    let good = expire_elsewhere(&db, &machine, 10);
    db.reclaim_with(Arc::new(Layer { engine: db.engine().clone(), table: good, fails: false }));
    assert!(db.run_background().is_err());
    assert_eq!(left_behind(&db), 1);
}

#[test]
fn a_layer_is_open_once() {
    let db = Machine::new().open();
    let one = db.open_side("layer", || Ok(Arc::new(1))).unwrap();
    let same = db.open_side("layer", || Ok(Arc::new(2))).unwrap();
    assert!(Arc::ptr_eq(&one, &same));
    assert!(db.open_side("layer", || Ok(Arc::new("of another type"))).is_err());
    drop((one, same));
    assert_eq!(*db.open_side("layer", || Ok(Arc::new(3))).unwrap(), 3);
}
