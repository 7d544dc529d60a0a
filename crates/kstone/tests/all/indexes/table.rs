//! The table that the tests work on, and plain ways to call the database.

use std::cmp::Ordering;

use kstone::ops::{PutItem, Query, QueryOutput, Scan};
use kstone::table::{
    IndexProjection, IndexSpec, KeyAttribute, KeySchema, Status, StreamView, TableChange,
    TableDescription, TableSpec,
};
use kstone::{Database, Item, Value};

pub use crate::support::{Machine, START_MS};

pub const TABLE: &str = "things";

/// Two global indexes, one of them with several attributes of all types in its key, and a local
/// one; between them, all projections. Items expire by their `ttl`.
pub fn spec() -> TableSpec {
    let wide = KeySchema {
        hash: vec![KeyAttribute::string("kind"), KeyAttribute::number("size")],
        range: vec![KeyAttribute::binary("raw"), KeyAttribute::number("at")],
    };
    TableSpec {
        name: TABLE.to_owned(),
        key: KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::number("sk")),
        global: vec![
            index("wide", wide, IndexProjection::Include(vec!["note".to_owned()])),
            index("by-owner", KeySchema::hash(KeyAttribute::string("owner")), IndexProjection::All),
        ],
        local: vec![index(
            "by-raw",
            KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::binary("raw")),
            IndexProjection::KeysOnly,
        )],
        stream: Some(StreamView::NewAndOldImages),
        ..TableSpec::default()
    }
}

/// An index that is made when the table has items already.
pub fn late_index() -> IndexSpec {
    let key = KeySchema::hash_range(KeyAttribute::number("at"), KeyAttribute::string("owner"));
    index("late", key, IndexProjection::Include(vec!["kind".to_owned()]))
}

pub fn index(name: &str, key: KeySchema, projection: IndexProjection) -> IndexSpec {
    IndexSpec { name: name.to_owned(), key, projection, throughput: None }
}

pub fn create(db: &Database) {
    db.create_table(&spec()).unwrap();
    db.update_ttl(TABLE, "ttl", true).unwrap();
    db.run_background().unwrap();
}

pub fn create_index(spec: IndexSpec) -> TableChange {
    TableChange { create_index: Some(spec), ..TableChange::default() }
}

pub fn delete_index(name: &str) -> TableChange {
    TableChange { delete_index: Some(name.to_owned()), ..TableChange::default() }
}

pub fn describe(db: &Database) -> TableDescription {
    db.describe_table(TABLE).unwrap()
}

pub fn index_status(db: &Database, name: &str) -> Option<Status> {
    let description = describe(db);
    let at = description.spec.global.iter().position(|index| index.name == name)?;
    Some(description.global[at].status)
}

pub fn put(db: &Database, item: Item) {
    let request = PutItem { table: TABLE.to_owned(), item, ..PutItem::default() };
    db.put_item(&request).wait().unwrap();
}

/// All items of a table or of an index, in the order in which a scan gives them.
pub fn scan(db: &Database, table: &str, index: Option<&str>) -> Vec<Item> {
    let index = index.map(str::to_owned);
    let mut request = Scan { table: table.to_owned(), index, ..Scan::default() };
    let mut items = Vec::new();
    loop {
        let page = db.scan_items(&request).wait().unwrap();
        request.start = take_page(page, &mut items);
        if request.start.is_none() {
            return items;
        }
    }
}

/// All pages of a query.
pub fn query(db: &Database, mut request: Query) -> Vec<Item> {
    let mut items = Vec::new();
    loop {
        let page = db.query_items(&request).wait().unwrap();
        request.start = take_page(page, &mut items);
        if request.start.is_none() {
            return items;
        }
    }
}

fn take_page(page: QueryOutput, items: &mut Vec<Item>) -> Option<Item> {
    items.extend(page.items.unwrap().iter().map(|item| item.decode().unwrap()));
    page.next
}

/// The order of key values of one type.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::S(a), Value::S(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::N(a), Value::N(b)) => a.cmp(b),
        (Value::B(a), Value::B(b)) => a.cmp(b),
        other => panic!("not of one type: {other:?}"),
    }
}

/// The order of two items by some of their attributes, which both must have.
pub fn compare_by<'a>(
    attributes: impl Iterator<Item = &'a KeyAttribute>,
    a: &Item,
    b: &Item,
) -> Ordering {
    let mut attributes = attributes;
    attributes
        .find_map(|attribute| {
            let value = |item: &Item| item.get(&attribute.name).unwrap().clone();
            Some(compare(&value(a), &value(b))).filter(|order| order.is_ne())
        })
        .unwrap_or(Ordering::Equal)
}
