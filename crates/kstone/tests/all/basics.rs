//! The operations, end to end, on a database in memory.

use kstone::ops::{
    Condition, DeleteItem, GetItem, KeyCondition, PutItem, Query, ReturnValues, Scan,
    TransactAction, TransactKind, TransactWrite, Update, UpdateItem,
};
use kstone::table::{IndexProjection, IndexSpec, KeyAttribute, KeySchema, TableSpec};
use kstone::{CancellationCode, Database, Error, Item, Value, placeholders};

fn orders() -> (Database, TableSpec) {
    let db = Database::memory().unwrap();
    let spec = TableSpec {
        name: "orders".to_owned(),
        key: KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk")),
        global: vec![IndexSpec {
            name: "by-status".to_owned(),
            key: KeySchema::hash_range(
                KeyAttribute::string("status"),
                KeyAttribute::number("amount"),
            ),
            projection: IndexProjection::All,
            throughput: None,
        }],
        ..TableSpec::default()
    };
    db.create_table(&spec).unwrap();
    (db, spec)
}

fn order(pk: &str, sk: &str, status: &str, amount: i64) -> Item {
    Item::new().with("pk", pk).with("sk", sk).with("status", status).with("amount", amount)
}

fn put(db: &Database, item: Item) {
    let request = PutItem { table: "orders".to_owned(), item, ..PutItem::default() };
    db.put_item(&request).wait().unwrap();
}

fn key(pk: &str, sk: &str) -> Item {
    Item::new().with("pk", pk).with("sk", sk)
}

fn get(db: &Database, pk: &str, sk: &str) -> Option<Item> {
    let request = GetItem { table: "orders".to_owned(), key: key(pk, sk), ..GetItem::default() };
    db.get_item(&request).wait().unwrap().item.map(|item| item.decode().unwrap())
}

fn by_status(db: &Database, status: &str) -> Vec<String> {
    let request = Query {
        table: "orders".to_owned(),
        index: Some("by-status".to_owned()),
        key_condition: Some(KeyCondition::Text("#s = :s".to_owned())),
        placeholders: placeholders([("#s", "status"), (":s", status)]),
        ..Query::default()
    };
    let page = db.query_items(&request).wait().unwrap();
    let sort_key = |item: &kstone::ItemBytes| match item.decode().unwrap().get("sk") {
        Some(Value::S(sk)) => sk.clone(),
        other => panic!("{other:?}"),
    };
    page.items.unwrap().iter().map(sort_key).collect()
}

#[test]
fn an_item_is_read_back_as_it_was_put() {
    let (db, _) = orders();
    let item =
        order("o#1", "a", "open", 5).with("tags", Value::string_set(vec!["x".into()]).unwrap());
    put(&db, item.clone());
    assert_eq!(get(&db, "o#1", "a"), Some(item));
    assert_eq!(get(&db, "o#1", "b"), None);
}

#[test]
fn an_index_follows_every_write_of_its_items() {
    let (db, _) = orders();
    for (sk, amount) in [("a", 30), ("b", -4), ("c", 200)] {
        put(&db, order("o#1", sk, "open", amount));
    }
    assert_eq!(by_status(&db, "open"), ["b", "a", "c"]);
    put(&db, order("o#1", "a", "paid", 30));
    assert_eq!(by_status(&db, "open"), ["b", "c"]);
    assert_eq!(by_status(&db, "paid"), ["a"]);
    let request = UpdateItem {
        table: "orders".to_owned(),
        key: key("o#1", "b"),
        update: Some(Update::Text("SET amount = amount + :n".to_owned())),
        placeholders: placeholders([(":n", 1000)]),
        return_values: ReturnValues::UpdatedNew,
        ..UpdateItem::default()
    };
    let output = db.update_item(&request).wait().unwrap();
    let changed = output.attributes.unwrap().decode().unwrap();
    assert_eq!(changed, Item::new().with("amount", 996));
    assert_eq!(by_status(&db, "open"), ["c", "b"]);
    let request =
        DeleteItem { table: "orders".to_owned(), key: key("o#1", "c"), ..DeleteItem::default() };
    db.delete_item(&request).wait().unwrap();
    assert_eq!(by_status(&db, "open"), ["b"]);
}

#[test]
fn a_failed_condition_changes_nothing() {
    let (db, _) = orders();
    put(&db, order("o#1", "a", "open", 1));
    let request = PutItem {
        table: "orders".to_owned(),
        item: order("o#1", "a", "paid", 2),
        condition: Some(Condition::Text("attribute_not_exists(pk)".to_owned())),
        return_on_failure: true,
        ..PutItem::default()
    };
    match db.put_item(&request).wait() {
        Err(Error::ConditionFailed { item: Some(item) }) => {
            assert_eq!(item.decode().unwrap(), order("o#1", "a", "open", 1));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(get(&db, "o#1", "a"), Some(order("o#1", "a", "open", 1)));
}

#[test]
fn a_transaction_does_all_or_nothing_and_once() {
    let (db, _) = orders();
    put(&db, order("o#1", "a", "open", 1));
    let action = |sk: &str, condition: &str| TransactAction {
        condition: Some(Condition::Text(condition.to_owned())),
        ..TransactAction::new("orders", TransactKind::Put(order("o#1", sk, "paid", 2)))
    };
    let refused = TransactWrite {
        actions: vec![
            action("b", "attribute_not_exists(pk)"),
            action("a", "attribute_not_exists(pk)"),
        ],
        ..TransactWrite::default()
    };
    match db.transact_write(&refused).wait() {
        Err(Error::TransactionCanceled { reasons }) => {
            let codes: Vec<_> = reasons.iter().map(|reason| reason.code).collect();
            assert_eq!(codes, [CancellationCode::None, CancellationCode::ConditionalCheckFailed]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(get(&db, "o#1", "b"), None);
    let accepted = TransactWrite {
        actions: vec![action("b", "attribute_not_exists(pk)")],
        token: Some("once".to_owned()),
        ..TransactWrite::default()
    };
    db.transact_write(&accepted).wait().unwrap();
    assert!(get(&db, "o#1", "b").is_some());
    db.transact_write(&accepted).wait().unwrap();
    let other =
        TransactWrite { actions: vec![action("c", "attribute_not_exists(pk)")], ..accepted };
    assert!(matches!(db.transact_write(&other).wait(), Err(Error::IdempotentParameterMismatch(_))));
}

#[test]
fn pages_of_a_scan_and_of_a_query_join_to_the_whole() {
    let (db, _) = orders();
    for n in 0..50 {
        put(&db, order(&format!("o#{}", n % 7), &format!("{n:03}"), "open", n));
    }
    let mut scan = Scan { table: "orders".to_owned(), limit: Some(3), ..Scan::default() };
    let mut seen = Vec::new();
    loop {
        let page = db.scan_items(&scan).wait().unwrap();
        seen.extend(page.items.unwrap().iter().map(|item| item.decode().unwrap()));
        let Some(next) = page.next else { break };
        scan.start = Some(next);
    }
    assert_eq!(seen.len(), 50);
    for backward in [false, true] {
        let mut query = Query {
            table: "orders".to_owned(),
            key_condition: Some(KeyCondition::Text("pk = :pk AND sk BETWEEN :a AND :b".to_owned())),
            placeholders: placeholders([(":pk", "o#3"), (":a", "010"), (":b", "040")]),
            limit: Some(2),
            backward,
            ..Query::default()
        };
        let mut seen = Vec::new();
        loop {
            let page = db.query_items(&query).wait().unwrap();
            for item in page.items.unwrap() {
                seen.push(item.decode().unwrap().get("sk").unwrap().as_str().unwrap().to_owned());
            }
            let Some(next) = page.next else { break };
            query.start = Some(next);
        }
        let mut expected = vec!["010", "017", "024", "031", "038"];
        if backward {
            expected.reverse();
        }
        assert_eq!(seen, expected);
    }
}
