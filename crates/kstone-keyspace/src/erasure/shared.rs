//! Values that name several persons: reads whom they name, and takes one of them out.
//!
//! A field that holds one id makes the whole value that person's. A field that holds a list of ids
//! is shared, even if the list has one member: then only the member goes, unless the catalogue says
//! that the value is deleted with any of them. A value that names somebody in both ways is theirs.

use kstone_ports::keys::Value as Reply;
use kstone_ports::value::{ItemRef, ListRef, Value, ValueRef};
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::keyspace::Match;
use crate::subject::Subject;
use crate::value::whole_number;

/// The attribute that holds the whole value of an item, as the Dapr door writes it.
pub(super) const VALUE: &str = "value";

/// The persons whom a value names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Named {
    pub(super) persons: Vec<Subject>,
    /// Those of them who are named alone: the whole value is theirs, even if it names others in a
    /// list elsewhere.
    owners: Vec<Subject>,
}

/// Which part of a value belongs to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// Nothing.
    Nothing,
    /// A place in a list, from which they can be taken.
    Part,
    /// All of it.
    Whole,
}

/// The person whom an id means in a value of this key.
pub(super) fn person(found: &Match<'_, '_>, id: &str) -> Subject {
    Subject::canonical(id, found.tenant().as_deref())
}

impl Named {
    fn add(&mut self, found: &Match<'_, '_>, id: &str) {
        if !id.is_empty() {
            self.persons.push(person(found, id));
        }
    }

    fn add_owner(&mut self, found: &Match<'_, '_>, id: &str) {
        if !id.is_empty() {
            self.owners.push(person(found, id));
        }
        self.add(found, id);
    }

    /// Which part of the value belongs to this person.
    pub(super) fn share_of(&self, subject: &Subject) -> Share {
        let has = |persons: &[Subject]| persons.iter().any(|person| subject.covers(person));
        match (has(&self.owners), has(&self.persons)) {
            (true, _) => Share::Whole,
            (false, true) => Share::Part,
            (false, false) => Share::Nothing,
        }
    }

    /// One person.
    pub(super) fn single(found: &Match<'_, '_>, id: &[u8]) -> Named {
        let mut named = Named::default();
        if let Ok(id) = std::str::from_utf8(id) {
            named.add_owner(found, id);
        }
        named
    }

    /// Those of a field of a JSON object.
    pub(super) fn in_json(found: &Match<'_, '_>, field: &str, value: &[u8]) -> Named {
        let mut named = Named::default();
        let Some(fields) = Fields::parse(value) else { return named };
        for (_, raw) in fields.0.iter().filter(|(name, _)| name == field) {
            match Ids::parse(raw) {
                Some(Ids::One(id)) => named.add_owner(found, &id),
                Some(Ids::Several(ids)) => {
                    ids.iter()
                        .filter_map(|(id, _)| id.as_deref())
                        .for_each(|id| named.add(found, id));
                }
                None => {}
            }
        }
        named
    }

    /// Those of a field of an item, or of the JSON that is its value.
    pub(super) fn in_item(found: &Match<'_, '_>, field: &str, item: ItemRef<'_>) -> Named {
        let mut named = match item.get(VALUE) {
            Some(ValueRef::S(json)) => Named::in_json(found, field, json.as_bytes()),
            Some(ValueRef::B(json)) => Named::in_json(found, field, json),
            Some(ValueRef::M(map)) => Named::in_attribute(found, map.get(field)),
            _ => Named::default(),
        };
        let own = Named::in_attribute(found, item.get(field));
        named.persons.extend(own.persons);
        named.owners.extend(own.owners);
        named
    }

    fn in_attribute(found: &Match<'_, '_>, value: Option<ValueRef<'_>>) -> Named {
        let mut named = Named::default();
        let one = |value: ValueRef<'_>| match value {
            ValueRef::S(id) => named.add(found, id),
            ValueRef::N(id) => named.add(found, id.decimal().as_str()),
            _ => {}
        };
        match value {
            Some(ValueRef::L(list)) => ListRef::iter(&list).for_each(one),
            Some(ValueRef::Ss(set) | ValueRef::Ns(set)) => set.iter().for_each(one),
            Some(ValueRef::S(id)) => named.add_owner(found, id),
            Some(ValueRef::N(id)) => named.add_owner(found, id.decimal().as_str()),
            _ => {}
        }
        named
    }

    /// Those whom entries of a stream name; a stream is shared, entry by entry.
    pub(super) fn in_entries(found: &Match<'_, '_>, field: &str, entries: &Reply) -> Named {
        let mut named = Named::default();
        for (_, fields) in entries_of(entries) {
            for id in values_of(&fields, field) {
                named.persons.extend(Named::single(found, id).persons);
            }
        }
        named
    }
}

/// The entries of a stream: the ID, and names and values in turn.
pub(super) fn entries_of(reply: &Reply) -> impl Iterator<Item = (&[u8], Vec<&[u8]>)> {
    let entries: &[Reply] = match reply {
        Reply::Array(entries) => entries,
        _ => &[],
    };
    entries.iter().filter_map(|entry| match entry {
        Reply::Array(parts) => match parts.as_slice() {
            [Reply::Bulk(id), Reply::Array(fields)] => {
                Some((id.as_slice(), fields.iter().filter_map(super::stores::bytes_of).collect()))
            }
            _ => None,
        },
        _ => None,
    })
}

/// The values of a field of an entry.
pub(super) fn values_of<'f>(
    fields: &'f [&'f [u8]],
    field: &'f str,
) -> impl Iterator<Item = &'f [u8]> {
    let pairs = fields.chunks_exact(2).filter_map(|pair| match pair {
        [name, value] => Some((*name, *value)),
        _ => None,
    });
    pairs.filter(|(name, _)| *name == field.as_bytes()).map(|(_, value)| value)
}

/// A JSON object with a person taken out of the list in one of its fields; `None` when they are not
/// in it. Everything else stays as it is written, byte for byte.
pub(super) fn json_without(
    value: &[u8],
    field: &str,
    is_theirs: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let fields = Fields::parse(value)?;
    let mut is_changed = false;
    let mut text = String::with_capacity(value.len());
    text.push('{');
    for (at, (name, raw)) in fields.0.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&serde_json::Value::from(name.as_str()).to_string());
        text.push(':');
        match Ids::parse(raw).filter(|_| name == field) {
            Some(Ids::Several(ids)) => {
                let is_other = |id: &Option<String>| !id.as_deref().is_some_and(is_theirs);
                let kept: Vec<&str> =
                    ids.iter().filter(|(id, _)| is_other(id)).map(|(_, raw)| raw.get()).collect();
                is_changed |= kept.len() != ids.len();
                text.push('[');
                text.push_str(&kept.join(","));
                text.push(']');
            }
            _ => text.push_str(raw.get()),
        }
    }
    text.push('}');
    is_changed.then_some(text)
}

/// An attribute with a person taken out; `None` when they are not in it. An empty set is no value,
/// so what is left of a set may be nothing at all.
pub(super) fn attribute_without(
    value: &Value,
    is_theirs: &dyn Fn(&str) -> bool,
) -> Option<Option<Value>> {
    let (before, left) = match value {
        Value::L(list) => {
            let is_other = |value: &&Value| match value {
                Value::S(id) => !is_theirs(id),
                Value::N(id) => !is_theirs(id.decimal().as_str()),
                _ => true,
            };
            let left: Vec<Value> = list.iter().filter(is_other).cloned().collect();
            (list.len(), (left.len(), Some(Value::L(left))))
        }
        Value::Ss(set) => {
            let left: Vec<String> = set.iter().filter(|id| !is_theirs(id)).cloned().collect();
            (set.len(), (left.len(), (!left.is_empty()).then_some(Value::Ss(left))))
        }
        Value::Ns(set) => {
            let is_other = |id: &&kstone_ports::value::Number| !is_theirs(id.decimal().as_str());
            let left: Vec<kstone_ports::value::Number> =
                set.iter().filter(is_other).cloned().collect();
            (set.len(), (left.len(), (!left.is_empty()).then_some(Value::Ns(left))))
        }
        _ => return None,
    };
    (left.0 < before).then_some(left.1)
}

/// The fields of a JSON object in their order, each as it is written.
struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    fn parse(value: &[u8]) -> Option<Fields> {
        let text = std::str::from_utf8(value).ok()?;
        let mut reader = serde_json::Deserializer::from_str(text);
        let fields = reader.deserialize_map(InOrder).ok()?;
        reader.end().ok()?;
        Some(Fields(fields))
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Vec<(String, Box<RawValue>)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}

/// The ids that a field of a JSON object names, with numbers as they are written.
pub(crate) fn ids_as_written(value: &[u8], field: &str) -> Vec<String> {
    let Some(fields) = Fields::parse(value) else { return Vec::new() };
    let named = fields.0.iter().filter(|(name, _)| name == field);
    let ids = named.filter_map(|(_, raw)| Ids::parse(raw)).flat_map(|ids| match ids {
        Ids::One(id) => vec![id],
        Ids::Several(ids) => ids.into_iter().filter_map(|(id, _)| id).collect(),
    });
    ids.filter(|id| !id.is_empty()).collect()
}

/// What a field names: members of a list that are no ids are kept as they are.
enum Ids {
    One(String),
    Several(Vec<(Option<String>, Box<RawValue>)>),
}

impl Ids {
    fn parse(raw: &RawValue) -> Option<Ids> {
        // A whole number is an id by its digits.
        let id = |raw: &RawValue| {
            let digits = whole_number(raw.get()).map(str::to_owned);
            digits.or_else(|| serde_json::from_str::<String>(raw.get()).ok())
        };
        if let Some(id) = id(raw) {
            return Some(Ids::One(id));
        }
        let members: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).ok()?;
        Some(Ids::Several(members.into_iter().map(|raw| (id(&raw), raw)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_person_is_taken_out_of_a_list_and_the_rest_stays_as_it_was() {
        let json =
            r#"{ "total": 1.0, "students": ["a", 7, "b" , "a"], "note":"a", "x":{"a":[1, 2]} }"#;
        let without = json_without(json.as_bytes(), "students", &|id| id == "a").unwrap();
        assert_eq!(without, r#"{"total":1.0,"students":[7,"b"],"note":"a","x":{"a":[1, 2]}}"#);
        assert_eq!(json_without(json.as_bytes(), "students", &|id| id == "c"), None);
        assert_eq!(json_without(json.as_bytes(), "note", &|id| id == "a"), None);
        for wrong in [&b"[1]"[..], b"{", b"\xff", b"{} x"] {
            assert_eq!(json_without(wrong, "students", &|_| true), None);
        }
    }

    #[test]
    fn whole_numbers_of_any_length_are_ids_by_their_digits() {
        let json = br#"{"students":[12345, "b", 123456789012345678901234567890, 1.5, 12345]}"#;
        let long = "123456789012345678901234567890";
        assert_eq!(ids_as_written(json, "students"), ["12345", "b", long, "12345"]);
        let without = json_without(json, "students", &|id| id == "12345").unwrap();
        assert_eq!(without, format!(r#"{{"students":["b",{long},1.5]}}"#));
        assert_eq!(ids_as_written(br#"{"student":-7}"#, "student"), ["-7"]);
    }

    #[test]
    fn attributes_lose_the_person_and_a_set_that_is_empty_then_is_gone() {
        let is_a = |id: &str| id == "a";
        let list = Value::L(vec![Value::S("a".into()), Value::Bool(true)]);
        let left = attribute_without(&list, &is_a).unwrap().unwrap();
        assert_eq!(left, Value::L(vec![Value::Bool(true)]));
        assert!(attribute_without(&left, &is_a).is_none());
        let set = Value::Ss(vec!["a".into()]);
        assert_eq!(attribute_without(&set, &is_a), Some(None));
        assert_eq!(attribute_without(&Value::S("a".into()), &is_a), None);
    }
}
