//! Attribute values as DynamoDB's protocol writes them, `{"S":"…"}`, to and from items.

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kstone::{Item, Value};
use serde_json::{Map, Value as Json, json};

pub fn from_item(item: &Item) -> Json {
    let members = item.iter().map(|(name, value)| (name.to_owned(), from_value(value)));
    Json::Object(members.collect())
}

pub fn from_value(value: &Value) -> Json {
    match value {
        Value::S(text) => json!({ "S": text }),
        Value::N(number) => json!({ "N": number.to_string() }),
        Value::B(bytes) => json!({ "B": BASE64.encode(bytes) }),
        Value::Bool(value) => json!({ "BOOL": value }),
        Value::Null => json!({ "NULL": true }),
        Value::M(map) => json!({ "M": from_item(map) }),
        Value::L(list) => json!({ "L": list.iter().map(from_value).collect::<Vec<_>>() }),
        Value::Ss(set) => json!({ "SS": set }),
        Value::Ns(set) => {
            json!({ "NS": set.iter().map(ToString::to_string).collect::<Vec<_>>() })
        }
        Value::Bs(set) => {
            json!({ "BS": set.iter().map(|bytes| BASE64.encode(bytes)).collect::<Vec<_>>() })
        }
    }
}

pub fn to_item(json: &Json) -> Result<Item> {
    let members = json.as_object().context("the server sent an item that is no object")?;
    let mut item = Item::new();
    for (name, value) in members {
        item.insert(name.as_str(), to_value(value)?);
    }
    Ok(item)
}

fn to_value(json: &Json) -> Result<Value> {
    let typed = json.as_object().and_then(|members: &Map<_, _>| members.iter().next());
    let (kind, json) = typed.context("the server sent a value without a type")?;
    let text = |json: &Json| -> Result<String> {
        Ok(json.as_str().context("the server sent a value of the wrong type")?.to_owned())
    };
    let list = || json.as_array().context("the server sent a list that is none");
    Ok(match kind.as_str() {
        "S" => Value::S(text(json)?),
        "N" => Value::N(text(json)?.parse()?),
        "B" => Value::B(BASE64.decode(text(json)?)?.into()),
        "BOOL" => Value::Bool(json.as_bool().unwrap_or_default()),
        "NULL" => Value::Null,
        "M" => Value::M(to_item(json)?),
        "L" => Value::L(list()?.iter().map(to_value).collect::<Result<_>>()?),
        "SS" => Value::Ss(list()?.iter().map(text).collect::<Result<_>>()?),
        "NS" => {
            let numbers = list()?.iter().map(|json| Ok(text(json)?.parse()?));
            Value::Ns(numbers.collect::<Result<_>>()?)
        }
        "BS" => {
            let bytes = list()?.iter().map(|json| Ok(BASE64.decode(text(json)?)?.into()));
            Value::Bs(bytes.collect::<Result<_>>()?)
        }
        other => bail!("the server sent a value of an unknown type, {other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back_as_it_was() {
        let json = json!({
            "s": {"S": "a"}, "n": {"N": "12345678901234567890.5"}, "b": {"B": "/w=="},
            "t": {"BOOL": true}, "z": {"NULL": true}, "m": {"M": {"x": {"L": [{"S": ""}]}}},
            "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2"]}, "bs": {"BS": ["/w=="]}
        });
        assert_eq!(from_item(&to_item(&json).unwrap()), json);
        for bad in [json!({"a": {"X": "1"}}), json!({"a": 1}), json!({"a": {"N": "x"}}), json!(1)] {
            assert!(to_item(&bad).is_err(), "{bad}");
        }
    }
}
