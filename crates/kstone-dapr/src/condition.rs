//! What a key must be like, as DynamoDB's expressions. An item whose time is over counts as absent,
//! also where the database takes its time to remove it.

use kstone::ops::Placeholders;
use kstone::{Item, Value};

use crate::entry::{ETAG, PK, TTL, VALUE};

/// A condition with what its placeholders stand for.
pub(crate) type Text = (String, Placeholders);

/// How many attributes are compared: DynamoDB takes an expression of 4 KiB with 300 operators.
const COMPARED_MAX: usize = 100;

/// There is nothing.
pub(crate) fn absent(now_ms: u64) -> Text {
    let name = |name: &str, means: &str| (name.to_owned(), means.to_owned());
    let placeholders = Placeholders {
        names: Some([name("#pk", PK), name("#ttl", TTL)].into_iter().collect()),
        values: Some([(":now".to_owned(), Value::from(now_ms / 1000))].into_iter().collect()),
    };
    ("attribute_not_exists(#pk) OR #ttl <= :now".to_owned(), placeholders)
}

/// It holds what it held when it was read a moment ago. No expression can say that an item has no
/// attribute but these: one of another name that comes in this moment is not noticed, nor a change of
/// one beyond the first hundred.
pub(crate) fn content_is(item: Item) -> Text {
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
