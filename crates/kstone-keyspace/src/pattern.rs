//! [`Pattern`]: one declared pattern of keys with its type, TTL, limits and fields.

use std::fmt;
use std::sync::Arc;

use crate::field::{Field, FieldType};
use crate::placeholder::{PartError, Placeholder};
use crate::problem::Position;
use crate::segment::Segment;
use crate::ttl::Ttl;

/// A declared pattern of keys.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// The application whose catalogue declares it.
    pub application: Arc<str>,
    /// Its name, of its own in the catalogue.
    pub name: String,
    /// Its segments.
    pub segments: Vec<Segment>,
    /// How many segments are the partition. The others are the sort key; where there are none,
    /// the key is a partition by itself. All of them for a key of Redis.
    pub partition_segments: usize,
    /// Where its keys live.
    pub store: Store,
    /// What its keys hold.
    pub value_type: ValueType,
    /// How long its keys live.
    pub ttl: Ttl,
    /// The fields of a value, in the order of the catalogue.
    pub fields: Vec<Field>,
    /// What fields that are not declared may hold; `None` when there may be none.
    pub other_fields: Option<FieldType>,
    /// What the whole value may be, or each member of a collection.
    pub value: Option<FieldType>,
    /// The segment that names the tenant.
    pub tenant: Option<usize>,
    /// Whose data it is.
    pub subject: SubjectSource,
    /// Whether a value whose field names several persons is deleted with any of them. Otherwise the
    /// one who is erased is taken out of the list, and the rest of the value stays.
    pub is_deleted_with_any: bool,
    /// What its keys may not exceed.
    pub limits: Limits,
    /// What it is for.
    pub description: String,
    /// The pattern that it abbreviates.
    pub short_form_of: Option<String>,
    /// Whether its keys may be written. The others are only read.
    pub written: bool,
    /// The name under which its keys are counted.
    pub metric: String,
    /// Keys of the pattern.
    pub examples: Vec<Example>,
    /// Where it is declared.
    pub at: Position,
}

/// Where keys are stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Store {
    /// Among the keys of Redis.
    Redis,
    /// In a table of items. A table's name may have a placeholder in it, as in `reviews-{season}`.
    Table(Segment),
}

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueType {
    /// A JSON text.
    Json,
    /// Bytes.
    String,
    /// A whole number that is counted up and down.
    Counter,
    /// Fields, each with bytes.
    Hash,
    /// A list.
    List,
    /// A set.
    Set,
    /// A set in the order of scores.
    Zset,
    /// A log of entries with fields.
    Stream,
    /// An item with attributes.
    Item,
}

/// Where the data subject of a key is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectSource {
    /// Nowhere: it is nobody's.
    Nobody,
    /// In this placeholder of the key.
    Placeholder(String),
    /// In this field of the value; a list there names several.
    Field(String),
    /// The members of the collection are the persons.
    Members,
    /// The owner of the key of this other pattern, with the same placeholders.
    Through(String),
}

/// Size limits of keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the key.
    pub key_bytes: u64,
    /// Bytes of the value, or of one member of a collection.
    pub value_bytes: Option<u64>,
    /// Members of the collection.
    pub members: Option<u64>,
    /// What happens with a write that makes more members than that.
    pub over: OverflowAction,
}

/// What happens to a write that exceeds the limit of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverflowAction {
    /// It is refused.
    Refuse,
    /// It is done, and the oldest members go.
    Trim,
}

/// A key that a catalogue gives as an example.
#[derive(Debug, Clone)]
pub struct Example {
    /// The key.
    pub key: String,
    /// Where it stands.
    pub at: Position,
}

/// A key cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A value cannot stand in its place.
    #[error("{pattern}: {error}")]
    Part {
        /// Which pattern.
        pattern: String,
        /// What is wrong.
        error: PartError,
    },
    /// A placeholder was given no value.
    #[error("{pattern}: no value for {{{placeholder}}}")]
    Missing {
        /// Which pattern.
        pattern: String,
        /// Which placeholder.
        placeholder: String,
    },
    /// A value was given for a placeholder that the pattern does not have.
    #[error("{pattern}: has no placeholder {{{placeholder}}}")]
    Unknown {
        /// Which pattern.
        pattern: String,
        /// Which placeholder.
        placeholder: String,
    },
}

impl Pattern {
    /// Its name among the patterns of all applications: `mastery.daily_mastery`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.application, self.name)
    }

    /// Its placeholders, from left to right.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.segments.iter().filter_map(|segment| segment.slot().map(|slot| &slot.placeholder))
    }

    /// The segment in which a placeholder stands.
    pub(crate) fn segment_of(&self, placeholder: &str) -> Option<usize> {
        self.segments.iter().position(|segment| {
            segment.slot().is_some_and(|slot| slot.placeholder.name == placeholder)
        })
    }

    /// The text of its first segments.
    pub(crate) fn text_of(segments: &[Segment]) -> String {
        segments.iter().map(Segment::to_string).collect::<Vec<_>>().join(":")
    }

    /// The part of the pattern that is the partition key.
    pub fn partition(&self) -> String {
        Pattern::text_of(self.segments.get(..self.partition_segments).unwrap_or_default())
    }

    /// How literal the pattern is: of two patterns that match a key, the one of higher rank wins.
    pub(crate) fn rank(&self) -> u32 {
        self.segments.iter().map(Segment::rank).sum()
    }

    /// The key with these values in the places of the placeholders, each escaped where it must be.
    pub fn build(&self, values: &[(&str, &str)]) -> Result<String, BuildError> {
        let pattern = || self.full_name();
        if let Some((unknown, _)) = values.iter().find(|it| self.segment_of(it.0).is_none()) {
            let placeholder = (*unknown).to_owned();
            return Err(BuildError::Unknown { pattern: pattern(), placeholder });
        }
        let mut key = String::new();
        for segment in &self.segments {
            if !key.is_empty() {
                key.push(':');
            }
            match segment {
                Segment::Literal(word) => key.push_str(word),
                Segment::Slot(slot) => {
                    let name = &slot.placeholder.name;
                    let Some((_, value)) = values.iter().find(|(given, _)| given == name) else {
                        let placeholder = name.clone();
                        return Err(BuildError::Missing { pattern: pattern(), placeholder });
                    };
                    let part = (slot.placeholder.write(value))
                        .map_err(|error| BuildError::Part { pattern: pattern(), error })?;
                    key.push_str(&slot.prefix);
                    key.push_str(&part);
                    key.push_str(&slot.suffix);
                }
            }
        }
        Ok(key)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Pattern::text_of(&self.segments))
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Store::Redis => f.write_str("Redis"),
            Store::Table(name) => write!(f, "table {name}"),
        }
    }
}

impl ValueType {
    /// All of them.
    pub const ALL: [ValueType; 9] = [
        ValueType::Json,
        ValueType::String,
        ValueType::Counter,
        ValueType::Hash,
        ValueType::List,
        ValueType::Set,
        ValueType::Zset,
        ValueType::Stream,
        ValueType::Item,
    ];

    /// The type as catalogues write it.
    pub const fn name(self) -> &'static str {
        match self {
            ValueType::Json => "json",
            ValueType::String => "string",
            ValueType::Counter => "counter",
            ValueType::Hash => "hash",
            ValueType::List => "list",
            ValueType::Set => "set",
            ValueType::Zset => "zset",
            ValueType::Stream => "stream",
            ValueType::Item => "item",
        }
    }

    pub(crate) fn has_fields(self) -> bool {
        matches!(self, ValueType::Json | ValueType::Hash | ValueType::Stream | ValueType::Item)
    }

    pub(crate) fn has_members(self) -> bool {
        use ValueType::{Hash, List, Set, Stream, Zset};
        matches!(self, Hash | List | Set | Zset | Stream)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for SubjectSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubjectSource::Nobody => f.write_str("nobody"),
            SubjectSource::Placeholder(name) => write!(f, "`{{{name}}}`"),
            SubjectSource::Field(name) => write!(f, "field `{name}`"),
            SubjectSource::Members => f.write_str("its members"),
            SubjectSource::Through(pattern) => write!(f, "as of `{pattern}`"),
        }
    }
}
