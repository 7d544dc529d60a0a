//! Values come back as they were written.

use bytes::Bytes;
use kstone_ports::Error;
use kstone_ports::items::PutItem;
use kstone_ports::value::{Item, Number, Value};

use super::{Store, key};

fn number(text: &str) -> Number {
    text.parse().unwrap()
}

/// All ten types, nested and empty ones too.
pub async fn every_type_comes_back(store: &Store) {
    let table = store.table("types").await;
    let inner = Item::new().with("list", vec![Value::Null, Value::from("x"), Value::L(vec![])]);
    let item = key("types", "ü\u{1F600}")
        .with("string", "text with \"quotes\", \\ and \u{7f}")
        .with("empty string", "")
        .with("number", -7)
        .with("bytes", Bytes::from((0..=255).collect::<Vec<u8>>()))
        .with("empty bytes", Bytes::new())
        .with("true", true)
        .with("false", false)
        .with("null", Value::Null)
        .with("map", inner)
        .with("empty map", Item::new())
        .with("list", vec![Value::from(1), Value::from("two"), Value::Bool(false)])
        .with("strings", Value::Ss(vec!["b".to_owned(), "a".to_owned()]))
        .with("numbers", Value::Ns(vec![number("10"), number("-2.5")]))
        .with("binaries", Value::Bs(vec![Bytes::from_static(b"\0"), Bytes::from_static(b"z")]));
    store.put(&table, item.clone()).await;
    assert_eq!(store.get(&table, key("types", "ü\u{1F600}")).await, Some(item));
}

/// The longest, largest and smallest numbers, also as sets.
pub async fn numbers_keep_38_digits(store: &Store) {
    let table = store.table("numbers").await;
    let texts = [
        "0",
        "12345678901234567890123456789012345678",
        "-0.12345678901234567890123456789012345678",
        "9.9999999999999999999999999999999999999E+125",
        "-9.9999999999999999999999999999999999999E+125",
        "1E-130",
        "9223372036854775808",
    ];
    let numbers: Vec<Number> = texts.iter().map(|text| number(text)).collect();
    let each = numbers.iter().enumerate().map(|(at, it)| (format!("n{at}"), Value::N(*it)));
    let mut item: Item = each.collect();
    item.insert("all", Value::Ns(numbers));
    item.insert("pk", "numbers");
    item.insert("sk", "-");
    store.put(&table, item.clone()).await;
    assert_eq!(store.get(&table, key("numbers", "-")).await, Some(item));
}

/// 400 KB is the limit.
pub async fn a_large_item_is_kept_and_one_too_large_refused(store: &Store) {
    let table = store.table("sizes").await;
    let large = key("sizes", "large").with("text", "x".repeat(390 * 1024));
    store.put(&table, large.clone()).await;
    assert_eq!(store.get(&table, key("sizes", "large")).await, Some(large));
    let item = key("sizes", "too large").with("text", "x".repeat(Item::SIZE_MAX));
    let put = PutItem { table: table.clone(), item, ..PutItem::default() };
    let refused = store.items.put(&put).await.unwrap_err();
    assert!(matches!(refused, Error::TooLarge(_) | Error::Invalid(_)), "{refused:?}");
    assert_eq!(store.get(&table, key("sizes", "too large")).await, None);
}
