//! What an item must be like, as DynamoDB's expressions. An item whose time is over counts as
//! absent, also where the database takes its time to remove it.

use kstone::ops::Placeholders;
use kstone::{Item, Value};

use crate::entry::{ETAG, PK, TTL};

/// A condition with what its placeholders stand for.
pub(crate) type Text = (String, Placeholders);

fn text(text: &str, names: &[(&str, &str)], values: Vec<(&str, Value)>) -> Text {
    let names = names.iter().map(|(name, means)| ((*name).to_owned(), (*means).to_owned()));
    let values = values.into_iter().map(|(name, value)| (name.to_owned(), value));
    let placeholders =
        Placeholders { names: Some(names.collect()), values: Some(values.collect()) };
    (text.to_owned(), placeholders)
}

/// There is nothing.
pub(crate) fn absent(now_ms: u64) -> Text {
    text(
        "attribute_not_exists(#pk) OR #ttl <= :now",
        &[("#pk", PK), ("#ttl", TTL)],
        vec![(":now", Value::from(now_ms / 1000))],
    )
}

/// It is the one that this door wrote with this version.
pub(crate) fn version_is(version: u64, now_ms: u64) -> Text {
    text(
        "#etag = :etag AND NOT #ttl <= :now",
        &[("#etag", ETAG), ("#ttl", TTL)],
        vec![(":etag", Value::from(version)), (":now", Value::from(now_ms / 1000))],
    )
}

/// It holds what it held when it was read, and this door has not written it since.
pub(crate) fn content_is(item: &Item) -> Text {
    let (mut clauses, mut names, mut values) = (Vec::new(), Vec::new(), Vec::new());
    if item.get(ETAG).is_none() {
        clauses.push("attribute_not_exists(#etag)".to_owned());
        names.push(("#etag".to_owned(), ETAG.to_owned()));
    }
    for (at, (name, value)) in item.iter().enumerate() {
        clauses.push(format!("#a{at} = :a{at}"));
        names.push((format!("#a{at}"), name.to_owned()));
        values.push((format!(":a{at}"), value.clone()));
    }
    (clauses.join(" AND "), Placeholders { names: Some(names), values: Some(values) })
}
