//! Checks writes against the rules of a pattern. Pure: the caller describes the write, and gets the
//! expiry to apply or the rule that is broken.

use std::fmt;

use crate::field::{Field, FieldType};
use crate::pattern::{Limits, OverflowAction, Pattern, Store, SubjectSource, ValueType};
use crate::ttl::{Effect, Expiry, RequestedTtl};
use crate::value::{FieldValue, Json};

/// A description of a write.
#[derive(Debug, Clone)]
pub struct Write<'w> {
    /// Bytes of the key.
    pub key_bytes: u64,
    /// What the key holds afterwards.
    pub shape: StoredType,
    /// Whether the write makes the key or changes it.
    pub effect: Effect,
    /// What it says about the key's life.
    pub ttl: RequestedTtl,
    /// The whole value, of a string.
    pub value: Option<&'w [u8]>,
    /// The fields that are written, of a hash, a stream's entry or an item; all of them when an item
    /// is put.
    pub fields: &'w [(&'w str, FieldValue<'w>)],
    /// The members that are added to a list, a set or a sorted set.
    pub members: &'w [&'w [u8]],
    /// How many members the collection has afterwards, if that is known.
    pub members_after: Option<u64>,
    /// Bytes of an item, or of a string of which only a part is written, afterwards, if that is known.
    pub whole_bytes: Option<u64>,
}

/// What a key holds, as its store sees it: JSON, strings and counters are all bytes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredType {
    /// Bytes.
    Bytes,
    /// Fields with bytes.
    Hash,
    /// A list.
    List,
    /// A set.
    Set,
    /// A set in the order of scores.
    Zset,
    /// A log of entries.
    Stream,
    /// An item.
    Item,
}

/// The permission to write, with the expiry to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// What becomes of the key's expiry.
    pub expiry: Expiry,
    /// To how many members the collection is to be trimmed, the oldest first, in the same commit.
    pub trim_to: Option<u64>,
}

/// A rule of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// Its keys are only read.
    Written,
    /// Where its partition ends.
    Partition,
    /// The type.
    Type,
    /// How long the key may be.
    KeyBytes,
    /// How large the value may be.
    ValueBytes,
    /// How many members there may be.
    Members,
    /// What the value may be.
    Value,
    /// What this field may hold.
    Field(String),
    /// How long the key may live.
    Ttl,
}

/// The refusal of a write that breaks a rule of its pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pattern}: {rule}: must be {expected}, and is {found}")]
pub struct Refusal {
    /// The pattern, as in `mastery.daily_mastery`.
    pub pattern: String,
    /// The rule.
    pub rule: Rule,
    /// What would be right.
    pub expected: String,
    /// What was to be written.
    pub found: String,
}

impl<'w> Write<'w> {
    /// A key is made, or all of it replaced, with a value of this shape.
    pub fn makes(key: &[u8], shape: StoredType) -> Write<'w> {
        Write {
            key_bytes: key.len() as u64,
            shape,
            effect: Effect::Makes,
            ttl: RequestedTtl::Unsaid,
            value: None,
            fields: &[],
            members: &[],
            members_after: None,
            whole_bytes: None,
        }
    }
}

impl ValueType {
    /// How its store sees it.
    pub fn shape(self) -> StoredType {
        match self {
            ValueType::Json | ValueType::String | ValueType::Counter => StoredType::Bytes,
            ValueType::Hash => StoredType::Hash,
            ValueType::List => StoredType::List,
            ValueType::Set => StoredType::Set,
            ValueType::Zset => StoredType::Zset,
            ValueType::Stream => StoredType::Stream,
            ValueType::Item => StoredType::Item,
        }
    }
}

impl Pattern {
    /// Whether the write may happen, and with which expiry.
    pub fn admit(&self, write: &Write<'_>) -> Result<Admission, Refusal> {
        self.judge(write).map_err(|refusal| *refusal)
    }

    /// The same; the refusal is boxed, because it is large and rare.
    #[inline]
    pub(crate) fn judge(&self, write: &Write<'_>) -> Result<Admission, Box<Refusal>> {
        let admission = self.admit_whole(write)?;
        self.check_content(write)?;
        Ok(admission)
    }

    /// The same without the content: the caller checks fields and value.
    #[inline]
    pub(crate) fn admit_whole(&self, write: &Write<'_>) -> Result<Admission, Box<Refusal>> {
        if !self.written {
            let instead = self.short_form_of.as_deref().unwrap_or("another pattern");
            let found = || "a write".to_owned();
            return Err(self.refuse(
                Rule::Written,
                || format!("read only (write {instead})"),
                found,
            ));
        }
        self.check_type(write)?;
        self.check_limits(write)?;
        let expiry = self.ttl.answer(write.ttl, write.effect).map_err(|allowed| {
            let found = || match write.ttl {
                RequestedTtl::Ms(ms) => format!("{}.{:03} s", ms / 1000, ms % 1000),
                _ => "for good".to_owned(),
            };
            self.refuse(Rule::Ttl, || allowed.bounds(), found)
        })?;
        let trim_to = match (self.limits, write.members_after) {
            (Limits { members: Some(most), over: OverflowAction::Trim, .. }, Some(after)) => {
                (after > most).then_some(most)
            }
            _ => None,
        };
        Ok(Admission { expiry, trim_to })
    }

    #[cold]
    pub(crate) fn refuse(
        &self,
        rule: Rule,
        expected: impl FnOnce() -> String,
        found: impl FnOnce() -> String,
    ) -> Box<Refusal> {
        let (pattern, expected, found) = (self.full_name(), expected(), found());
        Box::new(Refusal { pattern, rule, expected, found })
    }

    #[inline]
    fn check_type(&self, write: &Write<'_>) -> Result<(), Box<Refusal>> {
        let fits = self.value_type.shape() == write.shape;
        // JSON among items may be an item with the same fields.
        let as_item = self.value_type == ValueType::Json
            && write.shape == StoredType::Item
            && matches!(self.store, Store::Table(_));
        match fits || as_item {
            true => Ok(()),
            false => Err(self.refuse(
                Rule::Type,
                || self.value_type.to_string(),
                || write.shape.to_string(),
            )),
        }
    }

    #[inline]
    fn check_limits(&self, write: &Write<'_>) -> Result<(), Box<Refusal>> {
        let over = |rule: Rule, most: u64, found: u64, unit: &str| {
            self.refuse(rule, || format!("at most {most} {unit}"), || found.to_string())
        };
        let Limits { key_bytes, value_bytes, members, over: when_over } = self.limits;
        if write.key_bytes > key_bytes {
            return Err(over(Rule::KeyBytes, key_bytes, write.key_bytes, "bytes"));
        }
        if let Some(most) = value_bytes {
            let value = write.value.map(|value| value.len() as u64);
            let member = write.members.iter().map(|member| member.len() as u64).max();
            let field = write.fields.iter().filter_map(|(_, field)| match field {
                FieldValue::Raw(bytes) => Some(bytes.len() as u64),
                _ => None,
            });
            let largest = value.max(member).max(field.max()).max(write.whole_bytes);
            if let Some(found) = largest.filter(|found| *found > most) {
                return Err(over(Rule::ValueBytes, most, found, "bytes"));
            }
        }
        match (members, write.members_after) {
            (Some(most), Some(after)) if after > most && when_over == OverflowAction::Refuse => {
                Err(over(Rule::Members, most, after, "members"))
            }
            _ => Ok(()),
        }
    }

    /// Checks one field of a hash or of a stream's entry, as Redis stores it.
    pub(crate) fn check_raw_field(&self, name: &[u8], value: &[u8]) -> Result<(), Box<Refusal>> {
        let bytes = value.len() as u64;
        if let Some(most) = self.limits.value_bytes.filter(|most| bytes > *most) {
            let expected = || format!("at most {most} bytes");
            return Err(self.refuse(Rule::ValueBytes, expected, || bytes.to_string()));
        }
        // What is no text is the name of no declared field, whatever is put in the place of it.
        let name = std::str::from_utf8(name).unwrap_or("\u{fffd}");
        self.check_field(name, &FieldValue::Raw(value))
    }

    /// Checks a partial write to a string that is too long to be read: refused where a rule is
    /// about the whole string, or where it may name a person.
    pub(crate) fn check_unseen(&self, bytes: u64) -> Result<(), Box<Refusal>> {
        let is_by_field = matches!(self.subject, SubjectSource::Field(_));
        let is_any = self.value_type == ValueType::String && self.value.is_none() && !is_by_field;
        match is_any {
            true => Ok(()),
            false => Err(self.refuse(
                Rule::Value,
                || "written whole, being so long".to_owned(),
                || format!("a part of {bytes} bytes"),
            )),
        }
    }

    #[inline]
    fn check_content(&self, write: &Write<'_>) -> Result<(), Box<Refusal>> {
        match (self.value_type, write.value) {
            (ValueType::Json, Some(value)) => self.check_json(value)?,
            (ValueType::Counter, Some(value)) => {
                let number = std::str::from_utf8(value).ok().and_then(|it| it.parse::<i64>().ok());
                if number.is_none() {
                    let found = || FieldValue::Raw(value).describe();
                    let expected = || "a whole number of 64 bits".to_owned();
                    return Err(self.refuse(Rule::Value, expected, found));
                }
            }
            (ValueType::String, Some(value)) => self.check_value(&FieldValue::Raw(value))?,
            _ => {}
        }
        for member in write.members {
            self.check_value(&FieldValue::Raw(member))?;
        }
        for (name, value) in write.fields {
            self.check_field(name, value)?;
        }
        // A hash may be filled one field after the other; an item that is put is whole.
        if write.shape == StoredType::Item && write.effect == Effect::Makes {
            self.check_missing(|_, name| write.fields.iter().any(|(given, _)| *given == name))?;
        }
        Ok(())
    }

    fn check_json(&self, value: &[u8]) -> Result<(), Box<Refusal>> {
        // A bit for each declared field, as far as there are bits.
        let bit_of = |at: usize| 1_u64.checked_shl(u32::try_from(at).unwrap_or(u32::MAX));
        let (mut seen, mut wrong) = (0, None);
        let read = Json::read(value, |name, value| {
            let declared = self.fields.iter().position(|field| field.name == name);
            seen |= declared.and_then(bit_of).unwrap_or(0);
            if wrong.is_none() {
                let field = declared.and_then(|at| self.fields.get(at));
                wrong = self.check_as(field, name, &value).err();
            }
        });
        // What is no JSON at all is refused for that.
        let other =
            read.map_err(|error| self.refuse(Rule::Value, || "JSON".to_owned(), || error))?;
        match other {
            None => {
                if self.value.is_some() {
                    self.check_value(&FieldValue::Map)?;
                }
                if let Some(wrong) = wrong {
                    return Err(wrong);
                }
                self.check_missing(|at, name| match bit_of(at) {
                    Some(bit) => seen & bit != 0,
                    None => Json::has_field(value, name),
                })
            }
            Some(value) => {
                if !self.fields.is_empty() && self.value.is_none() {
                    let expected = || "an object".to_owned();
                    return Err(self.refuse(Rule::Value, expected, || value.describe()));
                }
                self.check_value(&value)
            }
        }
    }

    #[inline]
    pub(crate) fn check_value(&self, value: &FieldValue<'_>) -> Result<(), Box<Refusal>> {
        match &self.value {
            Some(kind) if !kind.accepts(value) => {
                Err(self.refuse(Rule::Value, || kind.to_string(), || value.describe()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check_field(
        &self,
        name: &str,
        value: &FieldValue<'_>,
    ) -> Result<(), Box<Refusal>> {
        self.check_as(self.fields.iter().find(|field| field.name == name), name, value)
    }

    /// The same for a field that was looked for already.
    pub(crate) fn check_as(
        &self,
        declared: Option<&Field>,
        name: &str,
        value: &FieldValue<'_>,
    ) -> Result<(), Box<Refusal>> {
        let rule = || Rule::Field(name.to_owned());
        let kind: &FieldType = match (declared, &self.other_fields) {
            (Some(field), _) if field.optional && *value == FieldValue::Null => return Ok(()),
            (Some(field), _) => &field.kind,
            (None, Some(others)) => others,
            (None, None) => {
                let names: Vec<&str> = self.fields.iter().map(|it| it.name.as_str()).collect();
                let expected = || format!("one of {}", names.join(", "));
                return Err(self.refuse(rule(), expected, || "not declared".to_owned()));
            }
        };
        match kind.accepts(value) {
            true => Ok(()),
            false => Err(self.refuse(rule(), || kind.to_string(), || value.describe())),
        }
    }

    /// Refuses what lacks a field that may not be missing. `has` is asked for the place of each among
    /// the declared ones, and its name.
    pub(crate) fn check_missing(
        &self,
        has: impl Fn(usize, &str) -> bool,
    ) -> Result<(), Box<Refusal>> {
        let mut fields = self.fields.iter().enumerate();
        match fields.find(|(at, field)| !field.optional && !has(*at, &field.name)) {
            None => Ok(()),
            Some((_, field)) => Err(self.refuse(
                Rule::Field(field.name.clone()),
                || field.kind.to_string(),
                || "missing".to_owned(),
            )),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Written => f.write_str("written"),
            Rule::Partition => f.write_str("partition"),
            Rule::Type => f.write_str("type"),
            Rule::KeyBytes => f.write_str("limits.key_bytes"),
            Rule::ValueBytes => f.write_str("limits.value_bytes"),
            Rule::Members => f.write_str("limits.members"),
            Rule::Value => f.write_str("value"),
            Rule::Field(name) => write!(f, "fields.{name}"),
            Rule::Ttl => f.write_str("ttl"),
        }
    }
}

impl fmt::Display for StoredType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoredType::Bytes => "bytes",
            StoredType::Hash => "hash",
            StoredType::List => "list",
            StoredType::Set => "set",
            StoredType::Zset => "zset",
            StoredType::Stream => "stream",
            StoredType::Item => "item",
        })
    }
}
