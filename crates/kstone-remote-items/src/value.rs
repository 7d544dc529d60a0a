//! Values and items in the SDK's terms and back.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use bytes::Bytes;
use kstone_ports::value::{Item, ItemBytes, Number, Value};
use kstone_ports::{Error, Result};

/// An item as the SDK has it.
pub(crate) type Attributes = HashMap<String, AttributeValue>;

/// An item for the SDK.
pub(crate) fn attributes(item: &Item) -> Attributes {
    item.iter().map(|(name, value)| (name.to_owned(), attribute(value))).collect()
}

/// A value for the SDK.
pub(crate) fn attribute(value: &Value) -> AttributeValue {
    match value {
        Value::S(text) => AttributeValue::S(text.clone()),
        Value::N(number) => AttributeValue::N(number.to_string()),
        Value::B(bytes) => AttributeValue::B(Blob::new(bytes.to_vec())),
        Value::Bool(value) => AttributeValue::Bool(*value),
        Value::Null => AttributeValue::Null(true),
        Value::M(map) => AttributeValue::M(attributes(map)),
        Value::L(list) => AttributeValue::L(list.iter().map(attribute).collect()),
        Value::Ss(set) => AttributeValue::Ss(set.clone()),
        Value::Ns(set) => AttributeValue::Ns(set.iter().map(Number::to_string).collect()),
        Value::Bs(set) => {
            AttributeValue::Bs(set.iter().map(|bytes| Blob::new(bytes.to_vec())).collect())
        }
    }
}

/// An item of the SDK as a tree.
///
/// # Errors
/// [`Error::Unreadable`], when the store sent what is no value of DynamoDB.
pub(crate) fn item(attributes: &Attributes) -> Result<Item> {
    let pairs = attributes.iter().map(|(name, attribute)| Ok((name.clone(), value(attribute)?)));
    Ok(pairs.collect::<Result<Vec<_>>>()?.into_iter().collect())
}

/// An item of the SDK in the compact form.
///
/// # Errors
/// As of [`item`].
pub(crate) fn item_bytes(attributes: &Attributes) -> Result<ItemBytes> {
    Ok(ItemBytes::encode(&item(attributes)?))
}

/// A value of the SDK.
///
/// # Errors
/// As of [`item`].
pub(crate) fn value(attribute: &AttributeValue) -> Result<Value> {
    let bytes = |blob: &Blob| Bytes::copy_from_slice(blob.as_ref());
    Ok(match attribute {
        AttributeValue::S(text) => Value::S(text.clone()),
        AttributeValue::N(digits) => Value::N(number(digits)?),
        AttributeValue::B(blob) => Value::B(bytes(blob)),
        AttributeValue::Bool(value) => Value::Bool(*value),
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::M(map) => Value::M(item(map)?),
        AttributeValue::L(list) => Value::L(list.iter().map(value).collect::<Result<_>>()?),
        AttributeValue::Ss(set) => Value::Ss(set.clone()),
        AttributeValue::Ns(set) => {
            Value::Ns(set.iter().map(|digits| number(digits)).collect::<Result<_>>()?)
        }
        AttributeValue::Bs(set) => Value::Bs(set.iter().map(bytes).collect()),
        _ => return Err(Error::Unreadable("the store sent a value of an unknown type".to_owned())),
    })
}

fn number(digits: &str) -> Result<Number> {
    digits.parse().map_err(|error| {
        Error::Unreadable(format!("the store sent the number {digits:?}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_back_as_it_went() {
        let number = |text: &str| text.parse::<Number>().unwrap();
        let deep = Item::new().with("list", vec![Value::Null, Value::from("text")]);
        let all = Item::new()
            .with("s", "text")
            .with("n", number("-1.2345678901234567890123456789012345678E-100"))
            .with("b", &b"\0\xff"[..])
            .with("bool", true)
            .with("null", Value::Null)
            .with("m", deep)
            .with("ss", Value::Ss(vec!["b".to_owned(), "a".to_owned()]))
            .with("ns", Value::Ns(vec![number("10"), number("2")]))
            .with("bs", Value::Bs(vec![Bytes::from_static(b"x")]));
        assert_eq!(item(&attributes(&all)).unwrap(), all);
        assert_eq!(item_bytes(&attributes(&all)).unwrap().decode().unwrap(), all);
    }
}
