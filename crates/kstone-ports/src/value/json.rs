//! Items as plain JSON, without type names. DynamoDB's own JSON,
//! which names them, belongs to its door.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value as Json;

use crate::request_error::{RequestError, Result};
use crate::value::{Item, Number, Value};

impl Item {
    /// From a JSON object, each member as [`Value::from_json`] reads it.
    pub fn from_json(json: &Json) -> Result<Item> {
        match value(json, Value::DEPTH_MAX + 1)? {
            Value::M(item) => Ok(item),
            _ => Err(RequestError::invalid("an item is a JSON object")),
        }
    }

    /// As a JSON object, each attribute as [`Value::to_json`] gives it.
    pub fn to_json(&self) -> Json {
        Json::Object(self.iter().map(|(name, value)| (name.to_owned(), value.to_json())).collect())
    }
}

impl Value {
    /// A string becomes S, a number N, an object M, an array L, and true, false and null what they
    /// are. There is no way to write bytes or a set.
    ///
    /// A number is taken as `serde_json` holds it: beyond 64-bit integers that is a floating-point
    /// number, which is not exact.
    pub fn from_json(json: &Json) -> Result<Value> {
        value(json, Value::DEPTH_MAX)
    }

    /// The reverse of [`from_json`](Value::from_json), as far as JSON goes: bytes become base64
    /// text, sets arrays, and a number that JSON's integers and floating-point numbers cannot hold
    /// exactly becomes text.
    pub fn to_json(&self) -> Json {
        match self {
            Value::S(text) => Json::String(text.clone()),
            Value::N(n) => number(n),
            Value::B(bytes) => Json::String(BASE64.encode(bytes)),
            Value::Bool(value) => Json::Bool(*value),
            Value::Null => Json::Null,
            Value::M(map) => map.to_json(),
            Value::L(list) => Json::Array(list.iter().map(Value::to_json).collect()),
            Value::Ss(set) => Json::Array(set.iter().cloned().map(Json::String).collect()),
            Value::Ns(set) => Json::Array(set.iter().map(number).collect()),
            Value::Bs(set) => {
                Json::Array(set.iter().map(|bytes| Json::String(BASE64.encode(bytes))).collect())
            }
        }
    }
}

fn value(json: &Json, levels: usize) -> Result<Value> {
    let Some(below) = levels.checked_sub(1) else {
        return Err(RequestError::invalid(
            "Nesting Levels have exceeded supported limits: Attributes in the item have nested \
             levels beyond supported limit",
        ));
    };
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::N(number.to_string().parse()?),
        Json::String(text) => Value::S(text.clone()),
        Json::Array(list) => {
            Value::L(list.iter().map(|element| value(element, below)).collect::<Result<_>>()?)
        }
        Json::Object(map) => {
            let attributes = map.iter().map(|(name, json)| Ok((name.clone(), value(json, below)?)));
            Value::M(attributes.collect::<Result<Vec<_>>>()?.into_iter().collect())
        }
    })
}

fn number(number: &Number) -> Json {
    if let Some(integer) = number.to_i64() {
        return Json::from(integer);
    }
    if let Some(integer) = number.to_u64() {
        return Json::from(integer);
    }
    let float = number.to_f64();
    let exact = Number::try_from(float).is_ok_and(|again| again == *number);
    match serde_json::Number::from_f64(float) {
        Some(float) if exact => Json::Number(float),
        _ => Json::String(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_json_comes_back_as_it_was() {
        let json = json!({
            "name": "Ada", "age": 36, "score": -0.1, "big": 18_446_744_073_709_551_615u64,
            "on": true, "none": null, "tags": ["a", 1], "map": {"k": {}}
        });
        let item = Item::from_json(&json).unwrap();
        assert_eq!(item.get("age"), Some(&Value::from(36)));
        assert_eq!(item.get("score"), Some(&Value::N("-0.1".parse().unwrap())));
        assert_eq!(item.to_json(), json);
    }

    #[test]
    fn what_json_has_no_type_for_becomes_text_and_arrays() {
        let exact = "12345678901234567890123456789012345678";
        let item = Item::new()
            .with("bytes", Bytes::from_static(b"hi"))
            .with("exact", exact.parse::<Number>().unwrap())
            .with("ns", Value::Ns(vec![1.into(), "2.5".parse().unwrap()]))
            .with("ss", Value::Ss(vec!["a".into()]))
            .with("bs", Value::Bs(vec![Bytes::from_static(b"hi")]));
        let expected = json!({
            "bytes": "aGk=", "exact": exact, "ns": [1, 2.5], "ss": ["a"], "bs": ["aGk="]
        });
        assert_eq!(item.to_json(), expected);
    }

    #[test]
    fn nesting_has_the_limit_that_dynamodb_has() {
        let nested =
            |levels: usize| (1..levels).fold(json!("leaf"), |inner, _| json!({ "n": inner }));
        let deepest = Value::from_json(&nested(Value::DEPTH_MAX)).unwrap();
        assert_eq!(deepest.depth(), Value::DEPTH_MAX);
        assert!(Item::from_json(&json!({ "a": nested(Value::DEPTH_MAX) })).is_ok());
        assert!(Value::from_json(&nested(Value::DEPTH_MAX + 1)).is_err());
        let error = Item::from_json(&json!({ "a": nested(Value::DEPTH_MAX + 1) })).unwrap_err();
        assert!(error.to_string().starts_with("Nesting Levels have exceeded supported limits"));
    }

    #[test]
    fn what_is_no_object_or_no_number_is_refused() {
        assert!(Item::from_json(&json!([1])).is_err());
        assert!(Value::from_json(&json!(1e200)).is_err());
    }
}
