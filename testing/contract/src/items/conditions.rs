//! Writes that depend on the item in their place.

use kstone_ports::Error;
use kstone_ports::items::{DeleteItem, PutItem, ReturnValues};
use kstone_ports::value::Item;

use super::{Store, condition, key, values};

const ABSENT: &str = "attribute_not_exists(pk)";

/// Puts an item where none is.
pub async fn an_item_is_put_only_where_there_is_none(store: &Store) {
    let table = store.table("absent").await;
    let put = |text: &str| PutItem {
        table: table.clone(),
        item: key("a", "b").with("text", text),
        condition: condition(ABSENT),
        ..PutItem::default()
    };
    store.items.put(&put("first")).await.unwrap();
    let refused = store.items.put(&put("second")).await.unwrap_err();
    assert_eq!(refused, Error::ConditionFailed { item: None });
    let now = store.get(&table, key("a", "b")).await.unwrap();
    assert_eq!(now, key("a", "b").with("text", "first"));
}

/// The usual way to change an item: read it, change it, write it if it is still the same.
pub async fn a_version_that_has_moved_on_fails_the_condition(store: &Store) {
    let table = store.table("version").await;
    store.put(&table, key("a", "b").with("version", 1)).await;
    let put = |from: i32| PutItem {
        table: table.clone(),
        item: key("a", "b").with("version", from + 1),
        condition: condition("version = :from"),
        placeholders: values([(":from", from)]),
        return_values: ReturnValues::AllOld,
        ..PutItem::default()
    };
    let old = store.items.put(&put(1)).await.unwrap().attributes.unwrap();
    assert_eq!(old.decode().unwrap(), key("a", "b").with("version", 1));
    let refused = store.items.put(&put(1)).await.unwrap_err();
    assert!(matches!(refused, Error::ConditionFailed { .. }), "{refused:?}");
    store.items.put(&put(2)).await.unwrap();
    assert_eq!(store.get(&table, key("a", "b")).await.unwrap(), key("a", "b").with("version", 3));
}

/// Then there is no need to read it again.
pub async fn a_failed_condition_brings_the_item_if_asked(store: &Store) {
    let table = store.table("failed").await;
    let there = key("a", "b").with("text", "there");
    store.put(&table, there.clone()).await;
    let put = PutItem {
        table: table.clone(),
        item: key("a", "b"),
        condition: condition(ABSENT),
        return_on_failure: true,
        ..PutItem::default()
    };
    match store.items.put(&put).await.unwrap_err() {
        Error::ConditionFailed { item: Some(item) } => assert_eq!(item.decode().unwrap(), there),
        other => panic!("{other:?}"),
    }
    let nothing_there =
        PutItem { item: key("a", "c"), condition: condition("attribute_exists(pk)"), ..put };
    let refused = store.items.put(&nothing_there).await.unwrap_err();
    assert_eq!(refused, Error::ConditionFailed { item: None });
}

/// And without a condition it deletes, and what is gone can be deleted again.
pub async fn a_delete_with_a_condition_keeps_what_does_not_meet_it(store: &Store) {
    let table = store.table("delete").await;
    let item = key("a", "b").with("amount", 3);
    store.put(&table, item.clone()).await;
    let delete = |text: &str| DeleteItem {
        table: table.clone(),
        key: key("a", "b"),
        condition: condition(text),
        placeholders: values([(":amount", 3)]),
        return_values: ReturnValues::AllOld,
        ..DeleteItem::default()
    };
    let refused = store.items.delete(&delete("amount > :amount")).await.unwrap_err();
    assert!(matches!(refused, Error::ConditionFailed { .. }), "{refused:?}");
    let old = store.items.delete(&delete("amount >= :amount")).await.unwrap().attributes.unwrap();
    assert_eq!(old.decode().unwrap(), item);
    assert_eq!(store.get(&table, key("a", "b")).await, None);
    let again = DeleteItem { table: table.clone(), key: key("a", "b"), ..DeleteItem::default() };
    store.items.delete(&again).await.unwrap();
}

/// Whatever the order in which they arrive.
pub async fn of_racing_puts_exactly_one_wins(store: &Store) {
    let table = store.table("race").await;
    let mut racers = tokio::task::JoinSet::new();
    for racer in 0..32 {
        let items = store.items.clone();
        let put = PutItem {
            table: table.clone(),
            item: key("the", "item").with("racer", racer),
            condition: condition(ABSENT),
            ..PutItem::default()
        };
        racers.spawn(async move { (racer, items.put(&put).await) });
    }
    let mut winners = Vec::new();
    while let Some(ended) = racers.join_next().await {
        match ended.unwrap() {
            (racer, Ok(_)) => winners.push(racer),
            (_, Err(Error::ConditionFailed { .. })) => {}
            (_, Err(other)) => panic!("{other:?}"),
        }
    }
    let [winner] = winners[..] else { panic!("{winners:?} all won") };
    let there: Item = store.get(&table, key("the", "item")).await.unwrap();
    assert_eq!(there, key("the", "item").with("racer", winner));
}
