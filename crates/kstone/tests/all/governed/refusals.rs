//! What breaks a rule is refused, whichever way it comes, and leaves nothing behind.

use std::sync::Arc;

use kstone::ops::{TransactKind, Update, WriteRequest};
use kstone::{CancellationCode, Database, Error, Item, Result};

use crate::governed::support::{
    Machine, Students, batch, check_exact, create, get, indexed, key, put, recounted, statement,
    transact, update,
};

fn bad(pk: &str) -> Item {
    key(pk, "a").with("bad", 1)
}

fn refusal(result: Result<()>) -> String {
    match result {
        Err(Error::Refused(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_way_to_write_an_item_is_refused_by_the_rule_and_writes_nothing() {
    let (_machine, db, policy) = Machine::governed();
    put(&db, key("student:1", "old").with("n", 1)).unwrap();
    let before = recounted(&db);
    type Way = fn(&Database) -> Result<()>;
    let ways: [(&str, Way); 6] = [
        ("put", |db| put(db, bad("student:1")).map(drop)),
        ("update that makes", |db| {
            update(db, "student:1", "a", "SET bad = if_not_exists(bad, pk)").map(drop)
        }),
        ("update that changes", |db| update(db, "student:1", "old", "SET bad = n").map(drop)),
        ("batch", |db| {
            let fine = WriteRequest::Put(key("student:2", "a"));
            batch(db, vec![fine, WriteRequest::Put(bad("student:1"))])
        }),
        ("insert", |db| {
            statement(db, "INSERT INTO state VALUE {'pk':'student:1','sk':'a','bad':1}")
        }),
        ("update statement", |db| {
            statement(db, "UPDATE state SET bad = 1 WHERE pk = 'student:1' AND sk = 'old'")
        }),
    ];
    for (name, way) in ways {
        assert_eq!(refusal(way(&db)), "pattern student: attribute bad is not declared", "{name}");
        assert_eq!(recounted(&db), before, "{name}");
    }
    check_exact(&db, &policy);
    assert_eq!(policy.heard().writes, 1);
}

#[test]
fn in_a_transaction_the_refusal_is_the_reason_of_its_action_and_nothing_happens() {
    let (_machine, db, policy) = Machine::governed();
    let kinds = || {
        vec![
            TransactKind::Put(key("student:1", "a")),
            TransactKind::Put(bad("student:2")),
            TransactKind::Update(
                key("student:3", "a"),
                Update::Text("SET bad = if_not_exists(bad, pk)".to_owned()),
            ),
        ]
    };
    let Err(Error::TransactionCanceled { reasons }) = transact(&db, kinds()) else {
        panic!("it was not refused")
    };
    let codes: Vec<CancellationCode> = reasons.iter().map(|reason| reason.code).collect();
    let refused = CancellationCode::ValidationError;
    assert_eq!(codes, [CancellationCode::None, refused, refused]);
    let message = reasons[1].message.as_deref();
    assert_eq!(message, Some("pattern student: attribute bad is not declared"));
    assert!(get(&db, "student:1", "a").is_none() && indexed(&db).is_empty());
    assert_eq!(policy.heard().writes, 0);
}

#[test]
fn keys_outside_every_pattern_are_refused_in_all_tables_if_the_policy_says_so() {
    let machine = Machine::new();
    let db = machine.open();
    create(&db);
    db.put(b"k", Item::new().with("n", 1)).unwrap();
    db.govern(Arc::new(Students { refuses_unknown: true, ..Students::default() })).unwrap();
    assert_eq!(refusal(put(&db, key("x", "a")).map(drop)), "no pattern has such a key");
    let refused = db.put_with_sk(b"k", b"s", Item::new().with("n", 2));
    assert_eq!(refusal(refused), "no pattern has such a key");
    assert_eq!(db.get(b"k").unwrap(), Some(Item::new().with("n", 1)));
    db.delete(b"k").unwrap();
    put(&db, key("student:1", "a")).unwrap();
}

#[test]
fn a_write_that_no_rule_is_about_stays_as_it_was_made() {
    let (_machine, db, policy) = Machine::governed();
    let item = key("x", "a").with("bad", 1);
    put(&db, item.clone()).unwrap();
    assert_eq!(get(&db, "x", "a"), Some(item));
    db.put(b"k", Item::new().with("n", 1)).unwrap();
    assert_eq!(db.get(b"k").unwrap(), Some(Item::new().with("n", 1)));
    assert_eq!(policy.heard().writes, 0);
    assert!(indexed(&db).is_empty());
}

#[test]
fn a_failed_condition_is_told_before_the_policy_is_asked() {
    let (_machine, db, policy) = Machine::governed();
    let refused = db.table("state").put_if(
        bad("student:1"),
        "attribute_exists(pk)",
        [(); 0].map(|()| ("", 0)),
    );
    assert!(matches!(refused, Err(Error::ConditionFailed { .. })), "{refused:?}");
    assert!(policy.heard().asked.is_empty());
}
