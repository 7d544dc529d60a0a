//! Values and items: the tree form ([`Value`], [`Item`]) that is built and changed, and the compact
//! form ([`ItemBytes`], [`ItemRef`], [`ValueRef`]) that is stored, compared and sent.
//!
//! Calls nothing of the crate but its error type. Everything else builds on it.

mod compact;
mod item;
mod json;
mod number;
mod set;

pub use compact::{
    Attributes, Corrupt, EncodedValue, ItemBuilder, ItemBytes, ItemRef, ListBuilder, ListRef,
    SetKind, SetRef, TextForm, ValueRef,
};
pub use item::Item;
pub use number::{DecimalText, Number, NumberError, NumberRef};
pub use set::check_name;

use bytes::Bytes;

/// An attribute value, in DynamoDB's ten types.
///
/// The sets hold no value twice and are never empty; [`Value::string_set`] and its siblings check.
/// Sets are equal when they hold the same values, in whatever order.
#[derive(Debug, Clone)]
pub enum Value {
    /// A string.
    S(String),
    /// A number of up to 38 digits.
    N(Number),
    /// Bytes.
    B(Bytes),
    /// True or false.
    Bool(bool),
    /// Null.
    Null,
    /// A map of attributes.
    M(Item),
    /// A list.
    L(Vec<Value>),
    /// A set of strings.
    Ss(Vec<String>),
    /// A set of numbers.
    Ns(Vec<Number>),
    /// A set of byte strings.
    Bs(Vec<Bytes>),
}

impl Value {
    /// How many levels of [`depth`](Value::depth) DynamoDB allows.
    pub const DEPTH_MAX: usize = 32;

    /// What DynamoDB calls the type: `S`, `N`, `B`, `BOOL`, `NULL`, `M`, `L`, `SS`, `NS` or `BS`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::S(_) => "S",
            Value::N(_) => "N",
            Value::B(_) => "B",
            Value::Bool(_) => "BOOL",
            Value::Null => "NULL",
            Value::M(_) => "M",
            Value::L(_) => "L",
            Value::Ss(_) => "SS",
            Value::Ns(_) => "NS",
            Value::Bs(_) => "BS",
        }
    }

    /// How many levels it has: 1 for all but lists and maps, which add one to their deepest
    /// element. DynamoDB refuses a value of more than [`DEPTH_MAX`](Value::DEPTH_MAX).
    pub fn depth(&self) -> usize {
        let below = match self {
            Value::M(map) => map.iter().map(|(_, value)| value.depth()).max(),
            Value::L(list) => list.iter().map(Value::depth).max(),
            _ => None,
        };
        1 + below.unwrap_or(0)
    }

    /// How many bytes it counts for in the size of an item.
    pub fn size(&self) -> usize {
        match self {
            Value::S(text) => text.len(),
            Value::N(number) => number.size(),
            Value::B(bytes) => bytes.len(),
            Value::Bool(_) | Value::Null => 1,
            Value::M(map) => 3 + map.len() + map.size(),
            Value::L(list) => 3 + list.iter().map(|value| 1 + value.size()).sum::<usize>(),
            Value::Ss(set) => set.iter().map(String::len).sum(),
            Value::Ns(set) => set.iter().map(Number::size).sum(),
            Value::Bs(set) => set.iter().map(Bytes::len).sum(),
        }
    }

    /// The same value, borrowed, if it is of one of the types that hold no others. The rest have
    /// to be encoded to be looked at that way: see [`EncodedValue`].
    pub fn scalar(&self) -> Option<ValueRef<'_>> {
        match self {
            Value::S(text) => Some(ValueRef::S(text)),
            Value::N(number) => Some(ValueRef::N(number.as_number_ref())),
            Value::B(bytes) => Some(ValueRef::B(bytes)),
            Value::Bool(value) => Some(ValueRef::Bool(*value)),
            Value::Null => Some(ValueRef::Null),
            _ => None,
        }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::S(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<Number> {
        match self {
            Value::N(number) => Some(*number),
            _ => None,
        }
    }

    /// The map, if it is one.
    pub fn as_map(&self) -> Option<&Item> {
        match self {
            Value::M(map) => Some(map),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::L(list) => Some(list),
            _ => None,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::S(a), Value::S(b)) => a == b,
            (Value::N(a), Value::N(b)) => a == b,
            (Value::B(a), Value::B(b)) => a == b,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Null, Value::Null) => true,
            (Value::M(a), Value::M(b)) => a == b,
            (Value::L(a), Value::L(b)) => a == b,
            (Value::Ss(a), Value::Ss(b)) => set::same(a, b),
            (Value::Ns(a), Value::Ns(b)) => set::same(a, b),
            (Value::Bs(a), Value::Bs(b)) => set::same(a, b),
            _ => false,
        }
    }
}

impl Eq for Value {}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::S(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::S(text)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Value::N(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::N(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::N(number.into())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::N(number.into())
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Value::N(number)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Value::B(bytes)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Value::B(Bytes::copy_from_slice(bytes))
    }
}

impl From<Vec<Value>> for Value {
    fn from(list: Vec<Value>) -> Self {
        Value::L(list)
    }
}

impl From<Item> for Value {
    fn from(map: Item) -> Self {
        Value::M(map)
    }
}
