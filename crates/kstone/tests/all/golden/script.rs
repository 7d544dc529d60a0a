//! What is done to the golden database: every kind of record is written, changed and removed.

use std::sync::Arc;

use bytes::Bytes;
use kstone::ops::{DeleteItem, PutItem, TransactAction, TransactKind, TransactWrite, Update};
use kstone::table::{
    IndexProjection, IndexSpec, KeyAttribute, KeySchema, StreamView, TableChange, TableSpec,
};
use kstone::{Database, Item, Value, placeholders};
use kstone_core::env::ManualClock;

pub const START_MS: u64 = 1_700_000_000_000;
pub const HOUR_MS: u64 = 3_600_000;
pub const TOKEN: &str = "order-17";

/// The engine's tables, in the order in which the script makes them.
pub const SYSTEM: u32 = 1;
pub const MUSIC: u32 = 2;
pub const BY_TITLE: u32 = 3;
pub const BY_GENRE: u32 = 4;
pub const BY_OWNER: u32 = 5;
pub const STREAM: u32 = 6;
pub const SCORES: u32 = 7;
pub const BY_LEVEL: u32 = 8;
pub const KEYS_STREAM: u32 = 9;
pub const BY_PRICE: u32 = 10;

pub fn music() -> TableSpec {
    let (s, n) = (KeyAttribute::string, KeyAttribute::number);
    let index = |name: &str, key, projection| IndexSpec {
        name: name.to_owned(),
        key,
        projection,
        throughput: None,
    };
    TableSpec {
        name: "music".to_owned(),
        key: KeySchema::hash_range(s("artist"), n("year")),
        local: vec![index(
            "by-title",
            KeySchema::hash_range(s("artist"), s("title")),
            IndexProjection::KeysOnly,
        )],
        global: vec![
            index(
                "by-genre",
                KeySchema {
                    hash: vec![s("genre"), KeyAttribute::binary("label")],
                    range: vec![n("rating")],
                },
                IndexProjection::Include(vec!["price".to_owned()]),
            ),
            index("by-owner", KeySchema::hash(s("owner")), IndexProjection::All),
        ],
        stream: Some(StreamView::NewAndOldImages),
        ..TableSpec::default()
    }
}

pub fn scores() -> TableSpec {
    TableSpec {
        name: "scores".to_owned(),
        key: KeySchema::hash(KeyAttribute::number("player")),
        global: vec![IndexSpec {
            name: "by-level".to_owned(),
            key: KeySchema::hash(KeyAttribute::number("level")),
            projection: IndexProjection::All,
            throughput: None,
        }],
        ..TableSpec::default()
    }
}

fn by_price() -> IndexSpec {
    IndexSpec {
        name: "by-price".to_owned(),
        key: KeySchema::hash(KeyAttribute::number("price")),
        projection: IndexProjection::KeysOnly,
        throughput: None,
    }
}

pub fn number(text: &str) -> Value {
    Value::N(text.parse().unwrap())
}

/// Values of every type, numbers at the ends of their range, bytes that have to be escaped.
pub fn every_type() -> Item {
    let numbers = ["0", "-1", "1E-130", "-9.9999999999999999999999999999999999999E+125"];
    Item::new()
        .with("artist", "Ada")
        .with("year", 1978)
        .with("title", "Zero\0")
        .with("genre", "jazz")
        .with("label", Value::B(Bytes::from_static(b"\0\x01")))
        .with("rating", number("4.75"))
        .with("yes", true)
        .with("no", false)
        .with("null", Value::Null)
        .with("map", Item::new().with("a", "").with("b", Item::new()))
        .with("list", vec![Value::from("x"), number("-100"), Value::L(Vec::new())])
        .with("ss", Value::Ss(vec!["b".to_owned(), "a".to_owned()]))
        .with("ns", Value::Ns(numbers.map(|text| text.parse().unwrap()).to_vec()))
        .with("bs", Value::Bs(vec![Bytes::from_static(b"\xff"), Bytes::new()]))
        .with("words", "0123456789".repeat(13))
}

/// An item that is there for an hour.
pub fn expiring() -> Item {
    Item::new()
        .with("artist", "Bob")
        .with("year", -44)
        .with("title", "Ends")
        .with("owner", "o1")
        .with("ends", (START_MS + HOUR_MS) / 1000)
}

pub fn score() -> Item {
    Item::new().with("player", number("1E-129")).with("level", 7)
}

/// The transaction that has a token.
pub fn transaction() -> TransactWrite {
    let key = Item::new().with("artist", "Ada").with("year", 1978);
    let action =
        |kind, placeholders| TransactAction { placeholders, ..TransactAction::new("music", kind) };
    TransactWrite {
        actions: vec![
            action(
                TransactKind::Update(key, Update::Text("SET price = :p REMOVE words".to_owned())),
                placeholders([(":p", number("9.99"))]),
            ),
            action(
                TransactKind::Put(Item::new().with("artist", "Cleo").with("year", 0)),
                Default::default(),
            ),
        ],
        token: Some(TOKEN.to_owned()),
        ..TransactWrite::default()
    }
}

fn put(db: &Database, table: &str, item: Item) {
    let request = PutItem { table: table.to_owned(), item, ..PutItem::default() };
    db.put_item(&request).wait().unwrap();
}

fn change(db: &Database, change: TableChange) {
    db.update_table("music", &change).unwrap();
}

/// Does everything, up to where the power is cut.
pub fn run(db: &Database, clock: &Arc<ManualClock>) {
    db.create_table(&music()).unwrap();
    put(db, "music", every_type());
    db.update_ttl("music", "ends", true).unwrap();
    db.run_background().unwrap();
    put(db, "music", expiring());
    clock.advance(1);
    db.transact_write(&transaction()).wait().unwrap();
    let key = Item::new().with("artist", "Cleo").with("year", 0);
    let delete = DeleteItem { table: "music".to_owned(), key, ..DeleteItem::default() };
    db.delete_item(&delete).wait().unwrap();
    db.put(b"user#1", Item::new().with("name", "Ada")).unwrap();
    db.put_with_sk(b"user\0", b"post\0", Item::new()).unwrap();

    db.create_table(&scores()).unwrap();
    put(db, "scores", score());
    clock.advance(1);
    change(db, TableChange { stream: Some(None), ..TableChange::default() });
    clock.advance(1);
    let keys_only = Some(Some(StreamView::KeysOnly));
    change(db, TableChange { stream: keys_only, ..TableChange::default() });
    change(db, TableChange { delete_index: Some("by-owner".to_owned()), ..TableChange::default() });
    change(db, TableChange { create_index: Some(by_price()), ..TableChange::default() });
    db.run_background().unwrap();
    db.tag("music", &[("team".to_owned(), "core".to_owned())]).unwrap();

    clock.set(START_MS + HOUR_MS);
    db.run_background().unwrap();
    db.delete_table("scores").unwrap();
    db.transact_write(&TransactWrite { token: Some("late".to_owned()), ..transaction() })
        .wait()
        .unwrap();
}
