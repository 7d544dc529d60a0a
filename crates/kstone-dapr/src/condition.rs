//! Conditions of writes as DynamoDB's expressions. An expired item counts as absent, even if the
//! database has not removed it yet.

use kstone_ports::items::Placeholders;
use kstone_ports::items::placeholders;
use kstone_ports::value::{Item, Value};

use crate::entry::{ETAG, PK, TTL, VALUE};

/// A condition's text and its placeholders.
pub(crate) type ConditionText = (String, Placeholders);

/// How many attributes are compared at most: DynamoDB limits an expression to 4 KiB and 300
/// operators.
const COMPARED_MAX: usize = 100;

/// The key holds nothing.
pub(crate) fn absent(now_ms: u64) -> ConditionText {
    let now = Value::from(now_ms / 1000);
    let placeholders =
        placeholders([("#pk", Value::from(PK)), ("#ttl", Value::from(TTL)), (":now", now)]);
    ("attribute_not_exists(#pk) OR #ttl <= :now".to_owned(), placeholders)
}

/// The item is still as it was read a moment ago. No expression can say that an item has no further
/// attributes, so one that was added since is not noticed, nor a change beyond the first hundred.
pub(crate) fn is_unchanged(item: Item) -> ConditionText {
    let (mut clauses, mut names, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (at, name) in [VALUE, ETAG, TTL].into_iter().enumerate() {
        if item.get(name).is_none() {
            clauses.push(format!("attribute_not_exists(#n{at})"));
            names.push((format!("#n{at}"), name.to_owned()));
        }
    }
    for (at, (name, value)) in item.into_iter().take(COMPARED_MAX).enumerate() {
        clauses.push(format!("#a{at} = :a{at}"));
        names.push((format!("#a{at}"), name));
        values.push((format!(":a{at}"), value));
    }
    (clauses.join(" AND "), Placeholders { names: Some(names), values: Some(values) })
}
