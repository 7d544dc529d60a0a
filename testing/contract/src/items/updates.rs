//! Updates of attributes.

use kstone_ports::Error;
use kstone_ports::items::{Placeholders, ReturnValues, Update, UpdateItem};
use kstone_ports::value::Value;

use super::{Store, condition, key, values};

fn update(table: &str, text: &str) -> UpdateItem {
    UpdateItem {
        table: table.to_owned(),
        key: key("a", "b"),
        update: Some(Update::Text(text.to_owned())),
        return_values: ReturnValues::AllNew,
        ..UpdateItem::default()
    }
}

/// The four clauses, names with placeholders, and what is returned.
pub async fn attributes_are_set_removed_added_and_deleted(store: &Store) {
    let table = store.table("updates").await;
    let strings = |texts: &[&str]| Value::Ss(texts.iter().map(|it| (*it).to_owned()).collect());
    let item = key("a", "b").with("count", 1).with("stale", "x").with("tags", strings(&["a", "b"]));
    store.put(&table, item).await;
    let mut change = update(&table, "SET #s = :s REMOVE stale ADD #c :two DELETE tags :a");
    change.placeholders = Placeholders {
        names: Some(vec![("#s".into(), "size".into()), ("#c".into(), "count".into())]),
        values: Some(vec![
            (":s".into(), "large".into()),
            (":two".into(), 2.into()),
            (":a".into(), strings(&["a"])),
        ]),
    };
    let changed =
        key("a", "b").with("count", 3).with("size", "large").with("tags", strings(&["b"]));
    let new = store.items.update(&change).await.unwrap().attributes.unwrap();
    assert_eq!(new.decode().unwrap(), changed);
    assert_eq!(store.get(&table, key("a", "b")).await.unwrap(), changed);

    let mut refused = update(&table, "SET amount = if_not_exists(nothing, :n)");
    refused.placeholders = values([(":n", 1)]);
    refused.condition = condition("attribute_not_exists(pk)");
    let error = store.items.update(&refused).await.unwrap_err();
    assert!(matches!(error, Error::ConditionFailed { .. }), "{error:?}");
    let wrong = update(&table, "SET");
    let error = store.items.update(&wrong).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    assert_eq!(store.get(&table, key("a", "b")).await.unwrap(), changed);
}

/// An update makes the item that it does not find.
pub async fn an_update_of_nothing_makes_the_item(store: &Store) {
    let table = store.table("made").await;
    let made = UpdateItem { update: None, ..update(&table, "") };
    store.items.update(&made).await.unwrap();
    assert_eq!(store.get(&table, key("a", "b")).await, Some(key("a", "b")));
    let other = UpdateItem {
        key: key("a", "c"),
        placeholders: values([(":n", 5)]),
        return_values: ReturnValues::UpdatedNew,
        ..update(&table, "ADD n :n")
    };
    let new = store.items.update(&other).await.unwrap().attributes.unwrap().decode().unwrap();
    assert_eq!(new.get("n"), Some(&5.into()));
    assert_eq!(store.get(&table, key("a", "c")).await, Some(key("a", "c").with("n", 5)));
}

/// None is lost and none counts twice.
pub async fn increments_of_one_item_at_the_same_time_add_up(store: &Store) {
    let table = store.table("hot").await;
    let mut adding = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let items = store.items.clone();
        let add =
            UpdateItem { placeholders: values([(":one", 1)]), ..update(&table, "ADD n :one") };
        adding.spawn(async move { items.update(&add).await });
    }
    while let Some(ended) = adding.join_next().await {
        ended.unwrap().unwrap();
    }
    assert_eq!(store.get(&table, key("a", "b")).await, Some(key("a", "b").with("n", 64)));
}
