//! Short ways to write requests about tables.

use kstone::ops::{PutItem, Scan};
use kstone::table::{
    BillingMode, KeyAttribute, KeyElement, KeyRole, KeySchema, KeyType, ProjectionType, RawIndex,
    RawIndexChange, RawTable, RawTableChange, TableSpec, Throughput,
};
use kstone::{Database, Error, Item, Result};

pub const INVALID: &str = "One or more parameter values were invalid: ";

/// `"a b:N"`: attributes with types; S where none is given.
pub fn types(text: &str) -> Vec<KeyAttribute> {
    let attribute = |word: &str| match word.split_once(':') {
        Some((name, "N")) => KeyAttribute { name: name.to_owned(), kind: KeyType::N },
        Some((name, "B")) => KeyAttribute { name: name.to_owned(), kind: KeyType::B },
        _ => KeyAttribute::string(word),
    };
    text.split_whitespace().map(attribute).collect()
}

/// `"a H b R"`: the elements of a key.
pub fn key(text: &str) -> Vec<KeyElement> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let element = |pair: &[&str]| KeyElement {
        name: pair[0].to_owned(),
        role: if pair[1] == "H" { KeyRole::Hash } else { KeyRole::Range },
    };
    words.chunks(2).map(element).collect()
}

pub fn index(name: &str, elements: &str) -> RawIndex {
    RawIndex {
        name: name.to_owned(),
        key: key(elements),
        projection: Some(ProjectionType::All),
        non_key: None,
        throughput: None,
    }
}

pub fn including(name: &str, elements: &str, names: &[&str]) -> RawIndex {
    RawIndex {
        projection: Some(ProjectionType::Include),
        non_key: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..index(name, elements)
    }
}

pub fn units(read: u64, write: u64) -> Option<Throughput> {
    Some(Throughput { read, write })
}

/// A table that is billed by request.
pub fn raw(attributes: &str, elements: &str) -> RawTable {
    RawTable {
        name: "orders".to_owned(),
        attributes: types(attributes),
        key: key(elements),
        billing: Some(BillingMode::PayPerRequest),
        ..RawTable::default()
    }
}

pub fn refusal(raw: &RawTable) -> String {
    match raw.resolve() {
        Err(Error::Validation(message)) => message,
        other => panic!("{other:?}"),
    }
}

pub fn spec(name: &str) -> TableSpec {
    TableSpec {
        name: name.to_owned(),
        key: KeySchema::hash(KeyAttribute::string("pk")),
        ..TableSpec::default()
    }
}

/// A database in memory with this table.
pub fn with_table(raw: &RawTable) -> Database {
    let db = Database::memory().unwrap();
    db.create_table(&raw.resolve().unwrap()).unwrap();
    db
}

pub fn change(entries: Vec<RawIndexChange>) -> RawTableChange {
    RawTableChange { global: Some(entries), ..RawTableChange::default() }
}

pub fn create(index: RawIndex) -> RawIndexChange {
    RawIndexChange { create: Some(index), ..RawIndexChange::default() }
}

pub fn update(name: &str, throughput: Option<Throughput>) -> RawIndexChange {
    RawIndexChange { update: Some((name.to_owned(), throughput)), ..RawIndexChange::default() }
}

pub fn delete(name: &str) -> RawIndexChange {
    RawIndexChange { delete: Some(name.to_owned()), ..RawIndexChange::default() }
}

pub fn put(db: &Database, table: &str, item: Item) -> Result<()> {
    let request = PutItem { table: table.to_owned(), item, ..PutItem::default() };
    db.put_item(&request).wait().map(drop)
}

/// Everything in a table or an index, sorted by its text.
pub fn all(db: &Database, table: &str, index: Option<&str>) -> Result<Vec<Item>> {
    let mut scan =
        Scan { table: table.to_owned(), index: index.map(str::to_owned), ..Scan::default() };
    let mut items = Vec::new();
    loop {
        let page = db.scan_items(&scan).wait()?;
        items.extend(page.items.unwrap().iter().map(|item| item.decode().unwrap()));
        let Some(next) = page.next else { break };
        scan.start = Some(next);
    }
    items.sort_by_key(|item| format!("{item:?}"));
    Ok(items)
}
