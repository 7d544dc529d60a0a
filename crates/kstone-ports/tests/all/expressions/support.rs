//! A request's expressions, bound with placeholders written as JSON.

use bytes::Bytes;
use kstone_ports::RequestError;
use kstone_ports::expr::{
    Binder, BoundCondition, BoundKeyCondition, BoundProjection, BoundUpdate, ExpressionCache, Kind,
};
use kstone_ports::items::Placeholders;
use kstone_ports::value::{Item, ItemBytes, Number, Value};
use serde_json::{Value as Json, json};

/// A value from DynamoDB's JSON: `{"S": "a"}`. Byte strings are written as text.
pub fn value(json: &Json) -> Value {
    let (kind, inner) = json.as_object().and_then(|map| map.iter().next()).unwrap();
    let text = |json: &Json| json.as_str().unwrap().to_owned();
    let number = |json: &Json| json.as_str().unwrap().parse::<Number>().unwrap();
    let list = || inner.as_array().unwrap().iter();
    match kind.as_str() {
        "S" => Value::S(text(inner)),
        "N" => Value::N(number(inner)),
        "B" => Value::B(Bytes::from(text(inner))),
        "BOOL" => Value::Bool(inner.as_bool().unwrap()),
        "NULL" => Value::Null,
        "M" => Value::M(item(inner)),
        "L" => Value::L(list().map(value).collect()),
        "SS" => Value::string_set(list().map(text).collect()).unwrap(),
        "NS" => Value::number_set(list().map(number).collect()).unwrap(),
        "BS" => Value::binary_set(list().map(|json| Bytes::from(text(json))).collect()).unwrap(),
        other => panic!("type {other}"),
    }
}

pub fn item(json: &Json) -> Item {
    json.as_object().unwrap().iter().map(|(name, json)| (name.clone(), value(json))).collect()
}

/// Those of `names` and `values` that the text uses.
pub fn used(text: &str, names: &Json, values: &Json) -> Placeholders {
    let is_used = |key: &str| {
        text.match_indices(key).any(|(at, _)| {
            let after = text[at + key.len()..].chars().next();
            !after.is_some_and(|next| next.is_ascii_alphanumeric() || next == '_')
        })
    };
    let names: Vec<(String, String)> = names
        .as_object()
        .unwrap()
        .iter()
        .filter(|(key, _)| is_used(key))
        .map(|(key, name)| (key.clone(), name.as_str().unwrap().to_owned()))
        .collect();
    let values: Vec<(String, Value)> = values
        .as_object()
        .unwrap()
        .iter()
        .filter(|(key, _)| is_used(key))
        .map(|(key, json)| (key.clone(), value(json)))
        .collect();
    Placeholders {
        names: (!names.is_empty()).then_some(names),
        values: (!values.is_empty()).then_some(values),
    }
}

/// Binds one expression that uses all its placeholders.
fn bind<T>(
    placeholders: &Placeholders,
    bind: impl FnOnce(&mut Binder<'_>) -> Result<T, RequestError>,
) -> Result<T, String> {
    let cache = ExpressionCache::new(16);
    let mut binder = Binder::new(&cache, placeholders).map_err(|error| error.to_string())?;
    let bound = bind(&mut binder).map_err(|error| error.to_string())?;
    binder.finish().map_err(|error| error.to_string())?;
    Ok(bound)
}

pub fn filter(text: &str, names: &Json, values: &Json) -> Result<BoundCondition, String> {
    bind(&used(text, names, values), |binder| binder.condition(Kind::Filter, text))
}

pub fn update(text: &str, names: &Json, values: &Json) -> Result<BoundUpdate, String> {
    bind(&used(text, names, values), |binder| binder.update(text))
}

pub fn projection(text: &str, names: &Json) -> Result<BoundProjection, String> {
    bind(&used(text, names, &json!({})), |binder| binder.projection(text))
}

pub fn key_condition(text: &str, values: &Json) -> Result<BoundKeyCondition, String> {
    bind(&used(text, &json!({}), values), |binder| binder.key_condition(text))
}

pub fn encoded(item: &Item) -> ItemBytes {
    ItemBytes::encode(item)
}

/// Compares with what DynamoDB says after `Invalid FilterExpression: ` and such.
#[track_caller]
pub fn assert_refused<T: std::fmt::Debug>(bound: Result<T, String>, kind: &str, message: &str) {
    assert_eq!(bound.map(|_| ()), Err(format!("Invalid {kind}: {message}")));
}
