//! Change streams: what they hold, in which order, for how long, and who can read them.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use kstone::ops::{DeleteItem, PutItem, UpdateItem};
use kstone::stream::{ChangeKind, ShardPosition, StreamName, StreamRecord};
use kstone::table::{KeyAttribute, KeySchema, StreamView, TableChange, TableSpec};
use kstone::{Database, Durability, Error, Item, ItemBytes, Value};

use crate::support::{Machine, START_MS};

const HOUR_MS: u64 = 3600 * 1000;
const ALL_VIEWS: [StreamView; 4] =
    [StreamView::KeysOnly, StreamView::NewImage, StreamView::OldImage, StreamView::NewAndOldImages];

fn with_table(view: StreamView) -> (Machine, Database) {
    let machine = Machine::new();
    let db = machine.open();
    create(&db, view);
    (machine, db)
}

fn create(db: &Database, view: StreamView) {
    let key = KeySchema::hash(KeyAttribute::string("pk"));
    let spec = TableSpec { name: "items".into(), key, stream: Some(view), ..TableSpec::default() };
    db.create_table(&spec).unwrap();
}

fn item(pk: &str, n: i64) -> Item {
    Item::new().with("pk", pk).with("n", n)
}

fn put(db: &Database, item: Item) {
    db.put_item(&PutItem { table: "items".into(), item, ..PutItem::default() }).wait().unwrap();
}

fn delete(db: &Database, pk: &str) {
    let key = Item::new().with("pk", pk);
    db.delete_item(&DeleteItem { table: "items".into(), key, ..DeleteItem::default() })
        .wait()
        .unwrap();
}

fn close_stream(db: &Database) {
    let change = TableChange { stream: Some(None), ..TableChange::default() };
    db.update_table("items", &change).unwrap();
}

fn stream(db: &Database) -> StreamName {
    db.list_streams(Some("items"), None, 100).0.pop().unwrap()
}

fn shards(db: &Database) -> Vec<String> {
    let description = db.describe_stream(&stream(db), None, 100).unwrap();
    description.shards.into_iter().map(|shard| shard.id).collect()
}

fn iterators(db: &Database, position: ShardPosition<'_>) -> Vec<String> {
    let shards = shards(db);
    shards.iter().map(|id| db.shard_iterator(&stream(db), id, position).unwrap()).collect()
}

/// Reads on until a page is empty; with the iterator to go on with.
fn drain(db: &Database, iterator: String, limit: usize) -> (Vec<StreamRecord>, Option<String>) {
    let (mut records, mut next) = (Vec::new(), Some(iterator));
    while let Some(iterator) = next.take() {
        let page = db.stream_records(&iterator, limit).wait().unwrap();
        next = page.next_iterator;
        if page.records.is_empty() {
            break;
        }
        records.extend(page.records);
    }
    (records, next)
}

fn all_records(db: &Database) -> Vec<StreamRecord> {
    let from_start = iterators(db, ShardPosition::TrimHorizon);
    from_start.into_iter().flat_map(|iterator| drain(db, iterator, 1000).0).collect()
}

fn decoded(item: &Option<ItemBytes>) -> Option<Item> {
    item.as_ref().map(|item| item.decode().unwrap())
}

#[test]
fn each_view_holds_what_its_name_says_of_inserts_changes_and_removals() {
    for view in ALL_VIEWS {
        let (_machine, db) = with_table(view);
        put(&db, item("a", 1));
        put(&db, item("a", 2));
        delete(&db, "a");
        let records = all_records(&db);
        let kinds: Vec<ChangeKind> = records.iter().map(|record| record.kind).collect();
        assert_eq!(kinds, [ChangeKind::Insert, ChangeKind::Modify, ChangeKind::Remove], "{view:?}");
        let with_old = matches!(view, StreamView::OldImage | StreamView::NewAndOldImages);
        let with_new = matches!(view, StreamView::NewImage | StreamView::NewAndOldImages);
        let (one, two) = (Some(item("a", 1)), Some(item("a", 2)));
        let images = [(None, one.clone()), (one, two.clone()), (two, None)];
        for (record, (old, new)) in records.iter().zip(images) {
            assert_eq!(record.keys.decode().unwrap(), Item::new().with("pk", "a"));
            assert_eq!(decoded(&record.old), old.filter(|_| with_old), "{view:?}");
            assert_eq!(decoded(&record.new), new.filter(|_| with_new), "{view:?}");
            assert_eq!((record.view, record.by_expiry), (view, false));
            assert_eq!(record.created_ms, START_MS);
        }
    }
}

#[test]
fn the_size_of_a_record_is_that_of_its_keys_and_images() {
    let (_machine, db) = with_table(StreamView::NewAndOldImages);
    put(&db, item("a", 1));
    put(&db, item("a", 2));
    let sizes: Vec<usize> = all_records(&db).iter().map(|record| record.size_bytes).collect();
    let (key, whole) = (Item::new().with("pk", "a").size(), item("a", 1).size());
    assert_eq!(sizes, [key + whole, key + 2 * whole]);
}

#[test]
fn writing_the_same_again_leaves_no_record() {
    let (_machine, db) = with_table(StreamView::NewAndOldImages);
    put(&db, item("a", 1));
    put(&db, item("a", 1));
    let key = Item::new().with("pk", "a");
    db.update_item(&UpdateItem { table: "items".into(), key, ..UpdateItem::default() })
        .wait()
        .unwrap();
    delete(&db, "never there");
    assert_eq!(all_records(&db).len(), 1);
}

#[test]
fn a_shard_is_read_in_order_whatever_the_size_of_a_page() {
    let (_machine, db) = with_table(StreamView::NewImage);
    for n in 0..500 {
        put(&db, item(&format!("item {}", n % 100), n));
    }
    let from_start = iterators(&db, ShardPosition::TrimHorizon);
    assert_eq!(from_start.len(), 4);
    let mut seen = HashSet::new();
    let mut last_of_item: BTreeMap<String, Value> = BTreeMap::new();
    for iterator in from_start {
        let (whole, _) = drain(&db, iterator.clone(), 1000);
        let (in_steps, _) = drain(&db, iterator, 7);
        assert_eq!(whole, in_steps);
        assert!(whole.len() > 50, "the items are spread over the shards: {}", whole.len());
        assert!(whole.is_sorted_by(|a, b| a.sequence_number < b.sequence_number));
        for record in whole {
            assert!(seen.insert(record.event_id), "no two records have the same id");
            let new = record.new.unwrap().decode().unwrap();
            let pk = format!("{:?}", new.get("pk").unwrap());
            let n = new.get("n").unwrap().clone();
            let before = last_of_item.insert(pk, n.clone());
            let (Value::N(n), Some(Value::N(before))) = (n, before) else { continue };
            assert!(n > before, "the changes of an item are in order");
        }
    }
    assert_eq!(seen.len(), 500);
}

#[test]
fn a_page_holds_a_megabyte_at_most_but_always_something() {
    let (_machine, db) = with_table(StreamView::NewImage);
    for n in 0..8 {
        put(&db, item("a", n).with("blob", "x".repeat(300_000)));
    }
    let mut sizes = Vec::new();
    for mut iterator in iterators(&db, ShardPosition::TrimHorizon) {
        loop {
            let page = db.stream_records(&iterator, 1000).wait().unwrap();
            if page.records.is_empty() {
                break;
            }
            sizes.push(page.records.len());
            iterator = page.next_iterator.unwrap();
        }
    }
    assert_eq!(sizes, [3, 3, 2]);
}

#[test]
fn the_latest_position_shows_only_what_comes_after_it() {
    let (_machine, db) = with_table(StreamView::KeysOnly);
    put(&db, item("before", 1));
    let latest = iterators(&db, ShardPosition::Latest);
    put(&db, item("after", 1));
    let records: Vec<_> = latest.into_iter().flat_map(|at| drain(&db, at, 10).0).collect();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].keys.decode().unwrap(), Item::new().with("pk", "after"));
}

#[test]
fn a_stream_that_is_quiet_for_days_keeps_its_readers() {
    let (machine, db) = with_table(StreamView::KeysOnly);
    put(&db, item("before", 1));
    let mut polled = iterators(&db, ShardPosition::TrimHorizon);
    for _ in 0..30 {
        for iterator in &mut polled {
            *iterator = drain(&db, iterator.clone(), 10).1.unwrap();
        }
        machine.clock.advance(14 * 60 * 1000);
    }
    let day_ms = 24 * 3600 * 1000;
    for _ in 0..3 {
        machine.clock.advance(day_ms);
        let mut latest = iterators(&db, ShardPosition::Latest);
        for iterator in &mut latest {
            let (records, next) = drain(&db, iterator.clone(), 10);
            assert_eq!(records, []);
            *iterator = next.unwrap();
        }
        polled = latest;
    }
    put(&db, item("after", 1));
    let seen = polled.into_iter().map(|iterator| drain(&db, iterator, 10).0.len());
    assert_eq!(seen.sum::<usize>(), 1);
}

#[test]
fn reading_can_begin_at_a_record_or_after_it() {
    let (_machine, db) = with_table(StreamView::NewImage);
    for n in 0..3 {
        put(&db, item("a", n));
    }
    let whole = all_records(&db);
    let number = whole[1].sequence_number.as_str();
    let read = |position| -> Vec<StreamRecord> {
        iterators(&db, position).into_iter().flat_map(|at| drain(&db, at, 10).0).collect()
    };
    assert_eq!(read(ShardPosition::At(number)), whole[1..]);
    assert_eq!(read(ShardPosition::After(number)), whole[2..]);
    let refused = db.shard_iterator(&stream(&db), &shards(&db)[0], ShardPosition::At("17"));
    assert_eq!(refused.unwrap_err().to_string(), "Invalid SequenceNumber");
}

#[test]
fn an_iterator_lives_for_fifteen_minutes() {
    let (machine, db) = with_table(StreamView::KeysOnly);
    let iterator = iterators(&db, ShardPosition::TrimHorizon).remove(0);
    machine.clock.advance(15 * 60 * 1000);
    db.stream_records(&iterator, 10).wait().unwrap();
    machine.clock.advance(1);
    let error = db.stream_records(&iterator, 10).wait().unwrap_err();
    assert!(matches!(error, Error::ExpiredIterator(_)), "{error:?}");
}

#[test]
fn streams_and_shards_that_do_not_exist_are_said_to_be_missing() {
    let (_machine, db) = with_table(StreamView::KeysOnly);
    let iterator = iterators(&db, ShardPosition::TrimHorizon).remove(0);
    let unknown = StreamName { label: "2015-05-20T20:51:10.252".into(), ..stream(&db) };
    let missing = |result: Result<String, Error>| matches!(result, Err(Error::NotFound(_)));
    assert!(db.describe_stream(&unknown, None, 100).is_err());
    assert!(missing(db.shard_iterator(&unknown, &shards(&db)[0], ShardPosition::Latest)));
    let no_shard = "shardId-00000001414562045508-2bac9cd2";
    assert!(missing(db.shard_iterator(&stream(&db), no_shard, ShardPosition::Latest)));
    db.delete_table("items").unwrap();
    let error = db.stream_records(&iterator, 10).wait().unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error:?}");
}

#[test]
fn a_record_can_be_read_for_a_day() {
    let (machine, db) = with_table(StreamView::KeysOnly);
    put(&db, item("old", 1));
    let old = all_records(&db).remove(0).sequence_number;
    machine.clock.advance(24 * HOUR_MS);
    put(&db, item("new", 1));
    db.run_background().unwrap();
    assert_eq!(all_records(&db).len(), 2);
    machine.clock.advance(1);
    assert_eq!(all_records(&db).len(), 1, "a day and a millisecond later it is gone");

    // What an iterator of the last moment can still ask for is there as long as the iterator.
    machine.clock.advance(15 * 60 * 1000);
    db.run_background().unwrap();
    for position in [ShardPosition::At(&old), ShardPosition::After(&old)] {
        let error = db.shard_iterator(&stream(&db), &shards(&db)[0], position).unwrap_err();
        assert!(matches!(error, Error::TrimmedData(_)), "{error:?}");
    }
    assert_eq!(all_records(&db).len(), 1);
}

#[test]
fn an_iterator_that_was_good_when_it_was_given_out_misses_nothing_while_it_lives() {
    let (machine, db) = with_table(StreamView::KeysOnly);
    put(&db, item("a", 1));
    machine.clock.advance(24 * HOUR_MS);
    let iterators = iterators(&db, ShardPosition::TrimHorizon);
    machine.clock.advance(15 * 60 * 1000 - 1);
    db.run_background().unwrap();
    let records: Vec<_> = iterators.into_iter().flat_map(|at| drain(&db, at, 10).0).collect();
    assert_eq!(records.len(), 1);
}

#[test]
fn a_closed_stream_ends_and_can_be_read_for_another_day() {
    let (machine, db) = with_table(StreamView::NewImage);
    for n in 0..20 {
        put(&db, item(&format!("{n}"), n));
    }
    let closed = stream(&db);
    close_stream(&db);
    put(&db, item("untold", 1));
    machine.clock.advance(1);
    let change = TableChange { stream: Some(Some(StreamView::KeysOnly)), ..TableChange::default() };
    db.update_table("items", &change).unwrap();
    put(&db, item("new stream", 1));
    let (names, more) = db.list_streams(None, None, 10);
    assert_eq!((names.len(), more), (2, false));
    assert_eq!(names[0], closed, "in order of their labels");
    assert_eq!(db.list_streams(None, None, 1), (vec![closed.clone()], true));
    assert_eq!(db.list_streams(None, Some(&closed), 1), (vec![names[1].clone()], false));

    let description = db.describe_stream(&closed, None, 100).unwrap();
    assert!(!description.open);
    let mut count = 0;
    for shard in &description.shards {
        let at = db.shard_iterator(&closed, &shard.id, ShardPosition::TrimHorizon).unwrap();
        let (records, next) = drain(&db, at, 3);
        assert_eq!(next, None, "nothing more comes");
        assert_eq!(records.last().map(|record| record.sequence_number.clone()), shard.last);
        count += records.len();
    }
    assert_eq!(count, 20);

    machine.clock.advance(23 * HOUR_MS);
    db.run_background().unwrap();
    assert!(db.describe_stream(&closed, None, 100).is_ok());
    let tables = db.engine().tables().len();
    machine.clock.advance(2 * HOUR_MS);
    db.run_background().unwrap();
    assert!(matches!(db.describe_stream(&closed, None, 100), Err(Error::NotFound(_))));
    assert_eq!(db.engine().tables().len(), tables - 1, "its records are gone with it");
    assert_eq!(db.list_streams(None, None, 10), (vec![names[1].clone()], false));
}

#[test]
fn a_description_pages_through_the_shards() {
    let (_machine, db) = with_table(StreamView::KeysOnly);
    let whole = db.describe_stream(&stream(&db), None, 100).unwrap();
    assert!(whole.open && !whole.more && whole.shards.iter().all(|shard| shard.last.is_none()));
    let (mut paged, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = db.describe_stream(&stream(&db), after.as_deref(), 3).unwrap();
        after = page.shards.last().map(|shard| shard.id.clone());
        paged.extend(page.shards);
        if !page.more {
            break;
        }
    }
    assert_eq!(paged, whole.shards);
}

#[test]
fn a_restart_keeps_every_record_and_never_gives_a_number_twice() {
    // The clock stands still, so only what is stored can tell which numbers were given out.
    let (machine, db) = with_table(StreamView::NewImage);
    let from_start = iterators(&db, ShardPosition::TrimHorizon);
    drop(db);
    for n in 0..4 {
        let db = machine.open();
        put(&db, item("a", n));
        put(&db, item(&format!("b{n}"), n));
    }
    let db = machine.open();
    let of_a = |record: &StreamRecord| decoded(&record.new).unwrap().get("pk") == Some(&"a".into());
    let records: Vec<_> =
        from_start.into_iter().flat_map(|iterator| drain(&db, iterator, 2).0).collect();
    assert_eq!(records.len(), 8);
    let images: Vec<_> =
        records.iter().filter(|r| of_a(r)).map(|r| decoded(&r.new).unwrap()).collect();
    assert_eq!(images, (0..4).map(|n| item("a", n)).collect::<Vec<_>>());
}

#[test]
fn readers_of_all_shards_see_every_change_once_while_four_threads_write() {
    const WRITES: i64 = 1500;
    let db = Database::memory().unwrap().with_durability(Durability::Os);
    create(&db, StreamView::NewImage);
    let done = AtomicBool::new(false);
    let read_all = |mut iterator: String| {
        let mut seen = Vec::new();
        loop {
            let finished = done.load(Ordering::Acquire);
            let page = db.stream_records(&iterator, 100).wait().unwrap();
            if finished && page.records.is_empty() {
                return seen;
            }
            seen.extend(page.records);
            iterator = page.next_iterator.unwrap();
        }
    };
    let from_start = iterators(&db, ShardPosition::TrimHorizon);
    let shards: Vec<Vec<StreamRecord>> = std::thread::scope(|scope| {
        let readers: Vec<_> =
            from_start.into_iter().map(|iterator| scope.spawn(|| read_all(iterator))).collect();
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let db = &db;
                scope.spawn(move || {
                    for n in 0..WRITES {
                        put(db, item(&format!("{writer}-{}", n % 50), n));
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    let mut by_item: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for records in &shards {
        assert!(records.is_sorted_by(|a, b| a.sequence_number < b.sequence_number));
        for record in records {
            let new = decoded(&record.new).unwrap();
            let pk = format!("{:?}", new.get("pk").unwrap());
            by_item.entry(pk).or_default().push(new.get("n").unwrap().clone());
        }
    }
    assert_eq!(by_item.len(), 200);
    for (pk, seen) in by_item {
        let first = match &seen[0] {
            Value::N(first) => first.to_i64().unwrap(),
            other => panic!("{other:?}"),
        };
        let expected: Vec<Value> = (0..WRITES / 50).map(|n| (first + n * 50).into()).collect();
        assert!(first < 50 && seen == expected, "{pk}: {seen:?}");
    }
}
