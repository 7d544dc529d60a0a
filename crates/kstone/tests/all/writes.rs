//! What writes make of items, and what they refuse: on a database in memory.

use bytes::Bytes;
use kstone::expr::legacy::{AttributeAction, AttributeUpdate, attribute_updates};
use kstone::ops::{
    BatchWrite, CapacityDetail, CapacityKind, GetItem, Placeholders, Projection, PutItem,
    ReturnValues, TransactAction, TransactKind, TransactWrite, Update, UpdateItem, WriteRequest,
};
use kstone::table::{IndexProjection, IndexSpec, KeyAttribute, KeySchema, StreamView, TableSpec};
use kstone::{Database, Error, Item, Value, placeholders};

const TABLE: &str = "things";
const INVALID: &str = "One or more parameter values were invalid: ";

fn database(spec: TableSpec) -> Database {
    let db = Database::memory().unwrap();
    let key = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::number("sk"));
    db.create_table(&TableSpec { name: TABLE.to_owned(), key, ..spec }).unwrap();
    db
}

fn local(name: &str, range: &str, projection: IndexProjection) -> IndexSpec {
    let key = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string(range));
    IndexSpec { name: name.to_owned(), key, projection, throughput: None }
}

fn key(pk: &str, sk: i64) -> Item {
    Item::new().with("pk", pk).with("sk", sk)
}

fn put(db: &Database, item: Item) -> Result<(), Error> {
    let request = PutItem { table: TABLE.to_owned(), item, ..PutItem::default() };
    db.put_item(&request).wait().map(|_| ())
}

fn get(db: &Database, key: Item) -> Option<Item> {
    let request = GetItem { table: TABLE.to_owned(), key, ..GetItem::default() };
    db.get_item(&request).wait().unwrap().item.map(|item| item.decode().unwrap())
}

fn update(key: Item, text: &str, placeholders: Placeholders) -> UpdateItem {
    UpdateItem {
        table: TABLE.to_owned(),
        key,
        update: Some(Update::Text(text.to_owned())),
        placeholders,
        return_values: ReturnValues::AllNew,
        ..UpdateItem::default()
    }
}

fn action(kind: TransactKind) -> TransactAction {
    TransactAction::new(TABLE, kind)
}

#[test]
fn an_update_that_only_takes_away_makes_no_item() {
    let db = database(TableSpec::default());
    let set = Value::Ss(vec!["a".to_owned()]);
    let legacy = AttributeUpdate { action: AttributeAction::Delete, value: None };
    let legacy = attribute_updates(vec![("x".to_owned(), legacy)]).unwrap();
    let requests = [
        update(key("a", 1), "REMOVE x", Placeholders::default()),
        update(key("a", 2), "REMOVE x.y, z[1]", Placeholders::default()),
        update(key("a", 3), "DELETE x :s REMOVE y", placeholders([(":s", set)])),
        UpdateItem {
            update: Some(Update::Built(legacy)),
            ..update(key("a", 4), "", Placeholders::default())
        },
    ];
    for request in requests {
        let output = db.update_item(&request).wait().unwrap();
        assert_eq!(output.attributes, None, "{request:?}");
        assert_eq!(get(&db, request.key.clone()), None, "{request:?}");
        let update = request.update.clone().unwrap();
        let kind = TransactKind::Update(request.key.clone(), update);
        let action = TransactAction { placeholders: request.placeholders.clone(), ..action(kind) };
        let write = TransactWrite { actions: vec![action], ..TransactWrite::default() };
        db.transact_write(&write).wait().unwrap();
        assert_eq!(get(&db, request.key.clone()), None, "in a transaction: {request:?}");
    }
}

#[test]
fn an_update_of_nothing_or_of_more_than_removals_makes_the_item() {
    let db = database(TableSpec::default());
    let nothing = UpdateItem { update: None, ..update(key("a", 1), "", Placeholders::default()) };
    let output = db.update_item(&nothing).wait().unwrap();
    assert_eq!(output.attributes.unwrap().decode().unwrap(), key("a", 1));
    assert_eq!(get(&db, key("a", 1)), Some(key("a", 1)));

    let both = update(key("a", 2), "REMOVE x SET y = :y", placeholders([(":y", 1)]));
    db.update_item(&both).wait().unwrap();
    assert_eq!(get(&db, key("a", 2)), Some(key("a", 2).with("y", 1)));
}

#[test]
fn sets_that_could_not_be_read_back_are_refused_wherever_they_are() {
    let db = database(TableSpec::default());
    let text = |text: &str| text.to_owned();
    let empty = |what: &str| format!("{INVALID}{what}");
    let twice = Bytes::from_static(b"b");
    for (set, message) in [
        (Value::Ss(vec![]), empty("An string set  may not be empty")),
        (Value::Ns(vec![]), empty("An number set  may not be empty")),
        (Value::Bs(vec![]), empty("Binary sets should not be empty")),
        (
            Value::Ss(vec![text("b"), text("a"), text("b")]),
            empty("Input collection [b, a, b] contains duplicates."),
        ),
        (Value::Ns(vec![1.into(), 1.into()]), text("Input collection contains duplicates")),
        (
            Value::Bs(vec![twice.clone(), twice]),
            empty("Input collection [Yg==, Yg==]of type BS contains duplicates."),
        ),
    ] {
        let nested = Value::L(vec![Value::M(Item::new().with("s", set.clone()))]);
        for value in [set, nested] {
            let refused = put(&db, key("a", 1).with("v", value.clone())).unwrap_err();
            assert_eq!(refused.to_string(), message);
            let request = update(key("a", 1), "SET v = :v", placeholders([(":v", value)]));
            assert_eq!(db.update_item(&request).wait().unwrap_err().to_string(), message);
        }
    }
    assert_eq!(get(&db, key("a", 1)), None);
}

#[test]
fn an_attribute_name_has_at_most_65535_bytes() {
    let db = database(TableSpec::default());
    let message = format!("{INVALID}Attribute name is too large, must be less than 65536 bytes");
    let (longest, long) = ("n".repeat(65_535), "n".repeat(65_536));
    put(&db, key("a", 1).with(longest.as_str(), 1)).unwrap();
    let nested = Item::new().with(long.as_str(), 1);
    for item in [key("a", 1).with(long.as_str(), 1), key("a", 1).with("m", nested)] {
        assert_eq!(put(&db, item).unwrap_err().to_string(), message);
    }
    let wanting = |name: &str| GetItem {
        table: TABLE.to_owned(),
        key: key("a", 1),
        projection: Some(Projection::Attributes(vec![name.to_owned()])),
        ..GetItem::default()
    };
    let item = db.get_item(&wanting(&longest)).wait().unwrap().item.unwrap();
    assert_eq!(item.decode().unwrap(), Item::new().with(longest.as_str(), 1));
    assert_eq!(db.get_item(&wanting(&long)).wait().unwrap_err().to_string(), message);
}

/// An item of almost the largest size, in all of five indexes.
fn large(sk: i64) -> Item {
    let item = key("a", sk).with("data", "x".repeat(399_000));
    (0..5).fold(item, |item, n| item.with(format!("r{n}"), format!("{sk}")))
}

fn with_five_indexes() -> Database {
    let index = |n: usize| local(&format!("index-{n}"), &format!("r{n}"), IndexProjection::All);
    database(TableSpec {
        local: (0..5).map(index).collect(),
        stream: Some(StreamView::NewAndOldImages),
        ..TableSpec::default()
    })
}

#[test]
fn a_batch_too_large_for_one_commit_is_written_in_parts() {
    let db = with_five_indexes();
    let writes = (0..25).map(|sk| WriteRequest::Put(large(sk))).collect();
    let request = BatchWrite {
        tables: vec![(TABLE.to_owned(), writes)],
        capacity: CapacityDetail::Indexes,
        collection_metrics: true,
    };
    let output = db.batch_write(&request).wait().unwrap();
    for sk in 0..25 {
        assert_eq!(get(&db, key("a", sk)), Some(large(sk)), "{sk}");
    }
    assert_eq!(output.collections.len(), 1, "all items are of one collection");
    assert_eq!(output.consumed.len(), 1);
    let each = 390.0;
    assert_eq!(output.consumed[0].table_units, 25.0 * each);
    assert_eq!(output.consumed[0].local.len(), 5);
    assert!(output.consumed[0].local.iter().all(|(_, units)| *units == 25.0 * each));
}

#[test]
fn a_transaction_counts_what_its_updates_make_of_the_items() {
    let db = database(TableSpec::default());
    for sk in 0..11 {
        put(&db, key("a", sk).with("data", "x".repeat(399_000))).unwrap();
    }
    let actions = |count: i64| {
        let update = |sk| {
            let kind = TransactKind::Update(key("a", sk), Update::Text("SET n = :n".to_owned()));
            TransactAction { placeholders: placeholders([(":n", 1)]), ..action(kind) }
        };
        TransactWrite { actions: (0..count).map(update).collect(), ..TransactWrite::default() }
    };
    let message = "Collective size of items in the transaction exceeds the limit of 4 MB";
    assert_eq!(db.transact_write(&actions(11)).wait().unwrap_err().to_string(), message);
    assert_eq!(get(&db, key("a", 0)).unwrap().get("n"), None);
    db.transact_write(&actions(10)).wait().unwrap();
    assert_eq!(get(&db, key("a", 9)).unwrap().get("n"), Some(&1.into()));
}

#[test]
fn a_repeated_token_costs_reading_the_items() {
    let db = database(TableSpec::default());
    let item = key("a", 1).with("data", "x".repeat(9_000));
    let request = TransactWrite {
        actions: vec![action(TransactKind::Put(item))],
        token: Some("once".to_owned()),
        capacity: CapacityDetail::Total,
        collection_metrics: false,
    };
    let first = db.transact_write(&request).wait().unwrap().consumed;
    assert_eq!((first[0].kind, first[0].total()), (CapacityKind::Write, 18.0));
    let again = db.transact_write(&request).wait().unwrap().consumed;
    assert_eq!((again[0].kind, again[0].total()), (CapacityKind::Read, 6.0));
}

#[test]
fn an_item_collection_is_told_of_once() {
    let db = database(TableSpec {
        local: vec![local("index", "r", IndexProjection::KeysOnly)],
        ..TableSpec::default()
    });
    let items = [key("a", 1), key("b", 1), key("a", 2)];
    let writes = items.iter().cloned().map(WriteRequest::Put).collect();
    let batch = BatchWrite {
        tables: vec![(TABLE.to_owned(), writes)],
        collection_metrics: true,
        ..BatchWrite::default()
    };
    let told = db.batch_write(&batch).wait().unwrap().collections;
    let keys: Vec<_> = told.iter().map(|collection| collection.key.clone()).collect();
    assert_eq!(keys, [Item::new().with("pk", "a"), Item::new().with("pk", "b")]);
    let actions = items.into_iter().map(|item| action(TransactKind::Put(item))).collect();
    let write = TransactWrite { actions, collection_metrics: true, ..TransactWrite::default() };
    assert_eq!(db.transact_write(&write).wait().unwrap().collections, told);
}
