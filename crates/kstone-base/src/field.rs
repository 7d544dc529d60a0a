//! Converts between item attributes and typed fields; errors name the field.

use std::fmt::Display;
use std::ops::RangeInclusive;

use kstone_ports::value::{Item, Number, Value};

use crate::time::{Date, Timestamp};

/// An invalid field: nothing was written, or the item cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct Invalid {
    /// Which field, by its name in the item: `albumName`, `albums[1].year`.
    pub field: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is not there, or null.
    #[error("is missing")]
    Missing,
    /// It has another type of DynamoDB's.
    #[error("must be of type {expected}, not {found}")]
    WrongType {
        /// The type that it must have.
        expected: &'static str,
        /// The type that it has.
        found: &'static str,
    },
    /// The text is too short or too long.
    #[error("must have {min} to {max} characters, not {found}")]
    Length {
        /// The fewest characters.
        min: usize,
        /// The most characters.
        max: usize,
        /// How many it has.
        found: usize,
    },
    /// The value does not do.
    #[error("must be {expected}, not {found}")]
    Value {
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
}

impl Invalid {
    /// A field that is wrong in this way.
    pub fn new(field: impl Into<String>, problem: Problem) -> Self {
        Invalid { field: field.into(), problem }
    }

    /// A value that does not do.
    pub fn value(field: &str, expected: impl Display, found: impl Display) -> Self {
        let (expected, found) = (expected.to_string(), found.to_string());
        Invalid::new(field, Problem::Value { expected, found })
    }

    /// A cursor that no page has given.
    pub fn cursor(cursor: &str) -> Self {
        Invalid::value("cursor", "what the page before said comes next", format!("`{cursor}`"))
    }

    /// The same problem, seen from outside the map or list that `outer` names.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        let separator = match self.field.as_str() {
            "" => "",
            inner if inner.starts_with('[') => "",
            _ => ".",
        };
        self.field = format!("{outer}{separator}{}", self.field);
        self
    }
}

/// A type that can be read from an attribute. Its errors name no field, or one inside the
/// attribute.
pub trait FromValue: Sized {
    /// Reads it.
    fn from_value(value: &Value) -> Result<Self, Invalid>;
}

/// Reads an attribute that must be there; null is the same as missing.
pub fn required<T: FromValue>(item: &Item, name: &str) -> Result<T, Invalid> {
    optional(item, name)?.ok_or_else(|| Invalid::new(name, Problem::Missing))
}

/// Reads an attribute that may be missing or null.
pub fn optional<T: FromValue>(item: &Item, name: &str) -> Result<Option<T>, Invalid> {
    match item.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => T::from_value(value).map(Some).map_err(|invalid| invalid.within(name)),
    }
}

/// The attribute for a field that may have no value: null says that it has none.
pub fn nullable(field: Option<impl Into<Value>>) -> Value {
    field.map_or(Value::Null, Into::into)
}

/// Refuses text with too few or too many characters.
pub fn check_length(field: &str, text: &str, range: RangeInclusive<usize>) -> Result<(), Invalid> {
    let found = text.chars().count();
    match range.contains(&found) {
        true => Ok(()),
        false => {
            let (min, max) = range.into_inner();
            Err(Invalid::new(field, Problem::Length { min, max, found }))
        }
    }
}

/// Refuses what is no id: they are parts of keys of every kind, so what separates the parts of a
/// key, or matches a pattern, is not allowed in them.
pub fn check_id(field: &str, id: &str) -> Result<(), Invalid> {
    check_length(field, id, 1..=128)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.@-".contains(&byte);
    match id.bytes().all(allowed) {
        true => Ok(()),
        false => Err(Invalid::value(field, "of letters, digits and _ . @ -", format!("`{id}`"))),
    }
}

fn wrong_type(expected: &'static str, found: &Value) -> Invalid {
    Invalid::new("", Problem::WrongType { expected, found: found.type_name() })
}

/// The text of a string attribute.
pub fn text(value: &Value) -> Result<&str, Invalid> {
    value.as_str().ok_or_else(|| wrong_type("S", value))
}

/// The attributes of a map.
pub fn map(value: &Value) -> Result<&Item, Invalid> {
    value.as_map().ok_or_else(|| wrong_type("M", value))
}

impl FromValue for String {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        text(value).map(str::to_owned)
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        match value {
            Value::Bool(value) => Ok(*value),
            other => Err(wrong_type("BOOL", other)),
        }
    }
}

impl FromValue for Number {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        value.as_number().ok_or_else(|| wrong_type("N", value))
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let number = Number::from_value(value)?;
        number.to_u64().ok_or_else(|| {
            Invalid::value("", format!("a whole number from 0 to {}", u64::MAX), number)
        })
    }
}

impl FromValue for u32 {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let number = Number::from_value(value)?;
        number.to_u64().and_then(|number| number.try_into().ok()).ok_or_else(|| {
            Invalid::value("", format!("a whole number from 0 to {}", u32::MAX), number)
        })
    }
}

impl FromValue for Timestamp {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let text = text(value)?;
        text.parse().map_err(|_| {
            Invalid::value("", "of the form 2025-01-15T10:30:00Z", format!("`{text}`"))
        })
    }
}

impl FromValue for Date {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let text = text(value)?;
        text.parse()
            .map_err(|_| Invalid::value("", "a day of the form 2025-01-15", format!("`{text}`")))
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let list = value.as_list().ok_or_else(|| wrong_type("L", value))?;
        let read = |(at, value)| {
            T::from_value(value).map_err(|invalid: Invalid| invalid.within(&format!("[{at}]")))
        };
        list.iter().enumerate().map(read).collect()
    }
}

impl From<Timestamp> for Value {
    fn from(moment: Timestamp) -> Value {
        Value::S(moment.to_string())
    }
}
