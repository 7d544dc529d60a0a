//! The tables named `kstone.…` are the database's own; and the database lets go of its policy.

use std::sync::Arc;

use kstone::ops::{BatchWrite, PutItem, TransactAction, TransactKind, TransactWrite, WriteRequest};
use kstone::policy::SUBJECTS_TABLE;
use kstone::table::{KeyAttribute, KeySchema, TableChange, TableSpec};
use kstone::{Database, Error, Item, Result};

use crate::governed::support::{AdmitAll, Machine, Students, create, indexed, key, put, statement};

fn put_into(db: &Database, table: &str) -> Result<()> {
    let item = key("subject#1", "x");
    db.put_item(&PutItem { table: table.to_owned(), item, ..PutItem::default() }).wait().map(drop)
}

#[test]
fn nobody_outside_writes_the_databases_own_tables() {
    let (_machine, db, _policy) = Machine::governed();
    put(&db, key("student:1", "a")).unwrap();
    let before = indexed(&db);
    let spec = TableSpec {
        name: "kstone.mine".to_owned(),
        key: KeySchema::hash(KeyAttribute::string("pk")),
        ..TableSpec::default()
    };
    let own = || SUBJECTS_TABLE.to_owned();
    let into = TransactWrite {
        actions: vec![TransactAction::new(SUBJECTS_TABLE, TransactKind::Delete(key("a", "b")))],
        ..TransactWrite::default()
    };
    let batch = BatchWrite {
        tables: vec![(own(), vec![WriteRequest::Put(key("a", "b"))])],
        ..BatchWrite::default()
    };
    let protect = TableChange { deletion_protection: Some(true), ..TableChange::default() };
    let attempts: Vec<(&str, Result<()>)> = vec![
        ("put", put_into(&db, SUBJECTS_TABLE)),
        ("delete", db.table(SUBJECTS_TABLE).delete(key("a", "b")).map(drop)),
        ("batch", db.batch_write(&batch).wait().map(drop)),
        ("transaction", db.transact_write(&into).wait().map(drop)),
        (
            "statement",
            statement(&db, "DELETE FROM \"kstone.subjects\" WHERE pk = 'a' AND sk = 'b'"),
        ),
        ("create", db.create_table(&spec).map(drop)),
        ("change", db.update_table(SUBJECTS_TABLE, &protect).map(drop)),
        ("expire", db.update_ttl(SUBJECTS_TABLE, "ttl", true)),
        ("drop", db.delete_table(SUBJECTS_TABLE).map(drop)),
    ];
    for (name, result) in attempts {
        assert!(matches!(result, Err(Error::Refused(_))), "{name}: {result:?}");
    }
    assert_eq!(indexed(&db), before);
    let internal = db.internal();
    internal.create_table(&spec).unwrap();
    put_into(&internal, SUBJECTS_TABLE).unwrap();
    assert_eq!(indexed(&db).len(), before.len() + 1);
}

#[test]
fn a_policy_that_holds_an_internal_handle_does_not_keep_the_database_open() {
    let machine = Machine::new();
    let db = machine.open();
    create(&db);
    let policy = Arc::new(Students::default());
    let weak = Arc::downgrade(&policy);
    // As one that keeps its counts there does.
    let held = (policy, db.internal());
    db.govern(Arc::new(AdmitAll(Box::new(move || _ = &held)))).unwrap();
    assert!(db.policy().is_some());
    put(&db, Item::new().with("pk", "student:1").with("sk", "a")).unwrap();
    drop(db);
    assert!(weak.upgrade().is_none(), "the policy is still there");
    let again = machine.open();
    assert!(again.policy().is_none());
    assert_eq!(indexed(&again).len(), 0);
}
