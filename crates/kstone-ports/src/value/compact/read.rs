//! Decodes the compact form to the tree form, with every check on the way.

use bytes::Bytes;

use crate::value::compact::{Corrupt, DEPTH_MAX, ItemRef, ListRef, SetRef, ValueRef};
use crate::value::{Item, Value};

impl ItemRef<'_> {
    /// The tree form.
    pub fn decode(&self) -> Result<Item, Corrupt> {
        item(self, DEPTH_MAX)
    }

    /// Looks at every byte.
    pub fn check(&self) -> Result<(), Corrupt> {
        self.decode().map(drop)
    }
}

impl ValueRef<'_> {
    /// The tree form.
    pub fn decode(&self) -> Result<Value, Corrupt> {
        value(self, DEPTH_MAX)
    }
}

fn item(map: &ItemRef<'_>, levels: usize) -> Result<Item, Corrupt> {
    let mut entries = map.iter();
    let mut attributes = Vec::with_capacity(map.len());
    while let Some((name, element)) = entries.take_entry() {
        attributes.push((name.to_owned(), value(&element, levels)?));
    }
    if entries.left > 0 || !entries.rest.is_empty() {
        return Err(Corrupt);
    }
    Item::from_sorted(attributes).ok_or(Corrupt)
}

fn value(from: &ValueRef<'_>, levels: usize) -> Result<Value, Corrupt> {
    let below = levels.checked_sub(1).ok_or(Corrupt)?;
    Ok(match from {
        ValueRef::S(text) => Value::S((*text).to_owned()),
        ValueRef::N(number) => Value::N(number.to_number()),
        ValueRef::B(bytes) => Value::B(Bytes::copy_from_slice(bytes)),
        ValueRef::Bool(value) => Value::Bool(*value),
        ValueRef::Null => Value::Null,
        ValueRef::M(map) => Value::M(item(map, below)?),
        ValueRef::L(list) => Value::L(elements(list, below)?),
        ValueRef::Ss(set) => Value::Ss(members(set, |value| match value {
            ValueRef::S(text) => Some(text.to_owned()),
            _ => None,
        })?),
        ValueRef::Ns(set) => Value::Ns(members(set, |value| match value {
            ValueRef::N(number) => Some(number.to_number()),
            _ => None,
        })?),
        ValueRef::Bs(set) => Value::Bs(members(set, |value| match value {
            ValueRef::B(bytes) => Some(Bytes::copy_from_slice(bytes)),
            _ => None,
        })?),
    })
}

fn elements(list: &ListRef<'_>, levels: usize) -> Result<Vec<Value>, Corrupt> {
    let mut rest = list.elements;
    let mut elements = Vec::with_capacity(list.len());
    for _ in 0..list.len() {
        let element = ValueRef::take(&mut rest).ok_or(Corrupt)?;
        elements.push(value(&element, levels)?);
    }
    if rest.is_empty() { Ok(elements) } else { Err(Corrupt) }
}

fn members<'a, T: Ord>(
    set: &SetRef<'a>,
    own: impl Fn(ValueRef<'a>) -> Option<T>,
) -> Result<Vec<T>, Corrupt> {
    let mut rest = set.elements;
    let mut members = Vec::with_capacity(set.len());
    for _ in 0..set.len() {
        members.push(set.kind.take(&mut rest).and_then(&own).ok_or(Corrupt)?);
    }
    let ascending = members.is_sorted_by(|a, b| a < b);
    if ascending && rest.is_empty() && !members.is_empty() { Ok(members) } else { Err(Corrupt) }
}
