//! What an index costs: how many records the engine writes for one write of an item.

use kstone::ops::{DeleteItem, Update, UpdateItem};
use kstone::table::{IndexProjection, KeyAttribute, KeySchema, TableSpec};
use kstone::{Database, Item, placeholders};

use crate::indexes::table::{TABLE, index, put};

fn with_index(projection: IndexProjection) -> Database {
    let db = Database::memory().unwrap();
    let key = KeySchema::hash_range(KeyAttribute::string("owner"), KeyAttribute::number("at"));
    let spec = TableSpec {
        name: TABLE.to_owned(),
        key: KeySchema::hash(KeyAttribute::string("pk")),
        global: vec![index("by-owner", key, projection)],
        ..TableSpec::default()
    };
    db.create_table(&spec).unwrap();
    db
}

fn item() -> Item {
    Item::new().with("pk", "a").with("owner", "ada").with("at", 1).with("note", "n")
}

/// How many records the engine writes.
fn written(db: &Database, work: impl FnOnce()) -> u64 {
    let writes = || db.engine().stats().total.writes;
    let before = writes();
    work();
    writes() - before
}

fn update(db: &Database, name: &str, value: impl Into<kstone::Value>) {
    let request = UpdateItem {
        table: TABLE.to_owned(),
        key: Item::new().with("pk", "a"),
        update: Some(Update::Text("SET #a = :v".to_owned())),
        placeholders: placeholders([("#a", name.into()), (":v", value.into())]),
        ..UpdateItem::default()
    };
    db.update_item(&request).wait().unwrap();
}

#[test]
fn an_index_costs_one_record_more_and_two_when_the_indexed_value_moves() {
    let db = with_index(IndexProjection::All);
    assert_eq!(written(&db, || put(&db, item())), 2, "a new item");
    assert_eq!(written(&db, || put(&db, item())), 1, "the same again");
    assert_eq!(written(&db, || update(&db, "note", "m")), 2, "the entry holds the note");
    assert_eq!(written(&db, || update(&db, "at", 2)), 3, "it moves within its partition");
    assert_eq!(written(&db, || update(&db, "owner", "bob")), 3, "and to another partition");
    let outside = Item::new().with("pk", "a").with("note", "n");
    assert_eq!(written(&db, || put(&db, outside.clone())), 2, "it leaves the index");
    assert_eq!(written(&db, || put(&db, outside.with("note", "m"))), 1, "it is not in it");
    assert_eq!(written(&db, || put(&db, item())), 2, "it enters the index");
    let key = Item::new().with("pk", "a");
    let request = DeleteItem { table: TABLE.to_owned(), key, ..DeleteItem::default() };
    assert_eq!(written(&db, || drop(db.delete_item(&request).wait().unwrap())), 2);
    assert_eq!(written(&db, || drop(db.delete_item(&request).wait().unwrap())), 0);
}

#[test]
fn a_change_that_an_index_does_not_hold_costs_it_nothing() {
    for projection in [IndexProjection::KeysOnly, IndexProjection::Include(vec!["tag".into()])] {
        let db = with_index(projection);
        put(&db, item());
        assert_eq!(written(&db, || update(&db, "note", "m")), 1);
        assert_eq!(written(&db, || update(&db, "at", 7)), 3);
    }
}
