//! Converts JSON to attribute values, with DynamoDB's checks.
//!
//! A wrong JSON type is reported as [`Fault::malformed`] only. The caller gets the message from
//! [`crate::input_schema::first_type_error`], because a wrong type elsewhere may precede it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use kstone::{Item, Number, Value};

use crate::error::Fault;
use crate::json::Json;

const EMPTY: &str = "Supplied AttributeValue is empty, must contain exactly one of the supported \
                     datatypes";
pub(crate) const SEVERAL_TYPES: &str = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the \
     supported datatypes";
const NULL_IS_TRUE: &str = "One or more parameter values were invalid: Null attribute value types \
                            must have the value of true";
const TOO_DEEP: &str = "Nesting Levels have exceeded supported limits: Attributes in the item \
                        have nested levels beyond supported limit";

/// An item, a key or any other map of attribute values.
pub(crate) fn read_item(json: &Json<'_>) -> Result<Item, Fault> {
    read_map(json, 1)
}

/// An attribute value.
pub(crate) fn read_value(json: &Json<'_>) -> Result<Value, Fault> {
    value(json, 1)
}

/// A list of attribute values.
pub(crate) fn read_values(json: &Json<'_>) -> Result<Vec<Value>, Fault> {
    elements(json)?.iter().map(read_value).collect()
}

/// The error for a text that is not valid base64.
pub(crate) fn base64_fault(text: &str) -> Option<Fault> {
    BASE64.decode(text).err().map(|error| {
        let length = text.len();
        Fault::serialization(match error {
            _ if !length.is_multiple_of(4) => format!(
                "Base64 encoded length is expected a multiple of 4 bytes but found: {length}"
            ),
            base64::DecodeError::InvalidByte(_, byte) if byte != b'=' => {
                format!("Invalid base 64 character: '{}'", char::from(byte))
            }
            // The misspelling is AWS's.
            _ => "Invalid last non-pad Base64 character dectected".to_owned(),
        })
    })
}

fn read_map(json: &Json<'_>, level: usize) -> Result<Item, Fault> {
    let Json::Object(members) = json else { return Err(Fault::malformed()) };
    // Sorted once: inserting one by one would take quadratic time in the worst order.
    let attribute = |(name, json): &(Cow<'_, str>, Json<'_>)| {
        Ok((name.as_ref().to_owned(), value(json, level)?))
    };
    members.iter().map(attribute).collect()
}

fn value(json: &Json<'_>, level: usize) -> Result<Value, Fault> {
    if level > Value::DEPTH_MAX {
        return Err(Fault::validation(TOO_DEEP));
    }
    let members = match json {
        Json::Object(members) => members,
        Json::Null => return Err(Fault::validation(EMPTY)),
        _ => return Err(Fault::malformed()),
    };
    let mut found = None;
    let mut several = false;
    for (name, json) in members {
        if matches!(json, Json::Null) {
            continue;
        }
        // All are read, because an invalid value precedes the error for having several.
        if let Some(value) = typed(name, json, level)? {
            several |= found.replace((name, value)).is_some_and(|(before, _)| before != name);
        }
    }
    match found {
        Some(_) if several => Err(Fault::validation(SEVERAL_TYPES)),
        Some((_, value)) => Ok(value),
        None => Err(Fault::validation(EMPTY)),
    }
}

/// The value of a type; `None` if there is no such type.
fn typed(name: &str, json: &Json<'_>, level: usize) -> Result<Option<Value>, Fault> {
    Ok(Some(match name {
        "S" => Value::S(text(json)?.to_owned()),
        "N" => Value::N(number(text(json)?)?),
        "B" => Value::B(blob(text(json)?)?),
        "BOOL" => Value::Bool(json.as_boolean().ok_or_else(Fault::malformed)?),
        "NULL" => match json.as_boolean() {
            Some(true) => Value::Null,
            Some(false) => return Err(Fault::validation(NULL_IS_TRUE)),
            None => return Err(Fault::malformed()),
        },
        "M" => Value::M(read_map(json, level + 1)?),
        "L" => Value::L(
            elements(json)?.iter().map(|one| value(one, level + 1)).collect::<Result<_, _>>()?,
        ),
        "SS" => Value::string_set(set(json, "string", |text| Ok(text.to_owned()))?)?,
        "NS" => Value::number_set(set(json, "number", number)?)?,
        "BS" => Value::binary_set(set(json, "binary", blob)?)?,
        _ => return Ok(None),
    }))
}

fn text<'j>(json: &'j Json<'_>) -> Result<&'j str, Fault> {
    json.as_str().ok_or_else(Fault::malformed)
}

fn elements<'j, 'a>(json: &'j Json<'a>) -> Result<&'j [Json<'a>], Fault> {
    match json {
        Json::List(elements) => Ok(elements),
        _ => Err(Fault::malformed()),
    }
}

fn set<T>(
    json: &Json<'_>,
    kind: &str,
    read: impl Fn(&str) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let element = |json: &Json<'_>| match json {
        Json::Null => Err(Fault::validation(format!(
            "One or more parameter values were invalid: An {kind} set  may not have a null string \
             as a member"
        ))),
        _ => read(text(json)?),
    };
    elements(json)?.iter().map(element).collect()
}

fn number(text: &str) -> Result<Number, Fault> {
    text.parse().map_err(|error: kstone::NumberError| Fault::validation(error.to_string()))
}

fn blob(text: &str) -> Result<Bytes, Fault> {
    BASE64.decode(text).map(Bytes::from).map_err(|_| Fault::malformed())
}
