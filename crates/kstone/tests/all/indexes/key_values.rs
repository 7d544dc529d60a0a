//! Values that an index key cannot have: refused when they are written to an index, left out when
//! they were there before it.

use kstone::ops::PutItem;
use kstone::table::{IndexProjection, KeyAttribute, KeySchema, Status, TableSpec};
use kstone::{Database, Item, Value};

use crate::indexes::table::{Machine, TABLE, create_index, index, index_status, put, scan};

fn owner_index() -> kstone::table::IndexSpec {
    let key = KeySchema::hash_range(KeyAttribute::string("owner"), KeyAttribute::binary("tag"));
    index("by-owner", key, IndexProjection::All)
}

fn table(db: &Database, global: Vec<kstone::table::IndexSpec>) {
    let key = KeySchema::hash(KeyAttribute::string("pk"));
    let spec = TableSpec { name: TABLE.to_owned(), key, global, ..TableSpec::default() };
    db.create_table(&spec).unwrap();
}

fn item(pk: &str, owner: impl Into<Value>, tag: impl Into<Value>) -> Item {
    Item::new().with("pk", pk).with("owner", owner).with("tag", tag)
}

fn bytes(len: usize) -> Value {
    Value::B(vec![7; len].into())
}

/// Items with values that the index does not take, and what DynamoDB says of them.
fn refused() -> Vec<(Item, &'static str)> {
    vec![
        (
            item("type", 5, bytes(1)),
            "One or more parameter values were invalid: Type mismatch for Index Key owner Expected: S Actual: N IndexName: by-owner",
        ),
        (
            item("empty", "", bytes(1)),
            "One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty string value. IndexName: by-owner, IndexKey: owner",
        ),
        (
            item("empty tag", "ada", bytes(0)),
            "One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty binary value. IndexName: by-owner, IndexKey: tag",
        ),
        (
            item("long", "x".repeat(2049), bytes(1)),
            "One or more parameter values were invalid: Size limit exceeded for Index Key owner Actual Size: 2049 bytes Max Size: 2048 bytes IndexName: by-owner",
        ),
        (
            item("very long", "x".repeat(200_000), bytes(1)),
            "One or more parameter values were invalid: Size limit exceeded for Index Key owner Actual Size: 200000 bytes Max Size: 2048 bytes IndexName: by-owner",
        ),
        (
            item("long tag", "ada", bytes(1025)),
            "One or more parameter values were invalid: Size limit exceeded for Index Key tag Actual Size: 1025 bytes Max Size: 1024 bytes IndexName: by-owner",
        ),
    ]
}

#[test]
fn a_write_that_an_index_cannot_take_is_refused() {
    let db = Machine::new().open();
    table(&db, vec![owner_index()]);
    for (item, message) in refused() {
        let request = PutItem { table: TABLE.to_owned(), item, ..PutItem::default() };
        assert_eq!(db.put_item(&request).wait().unwrap_err().to_string(), message);
    }
    put(&db, item("longest", "x".repeat(2048), bytes(1024)));
    assert_eq!(scan(&db, TABLE, Some("by-owner")).len(), 1);
}

#[test]
fn an_item_from_before_the_index_that_it_cannot_take_is_left_out_of_it() {
    let db = Machine::new().open();
    table(&db, Vec::new());
    for (item, _) in refused() {
        put(&db, item);
    }
    put(&db, item("fine", "ada", bytes(1)));
    put(&db, Item::new().with("pk", "no tag").with("owner", "ada"));
    db.update_table(TABLE, &create_index(owner_index())).unwrap();
    db.run_background().unwrap();
    assert_eq!(index_status(&db, "by-owner"), Some(Status::Active));
    assert_eq!(scan(&db, TABLE, Some("by-owner")), [item("fine", "ada", bytes(1))]);
    // Each can be mended, and is in the index then.
    for (item, _) in refused() {
        let mended = item.with("owner", "bob").with("tag", bytes(2));
        put(&db, mended);
    }
    assert_eq!(scan(&db, TABLE, Some("by-owner")).len(), 1 + refused().len());
}
