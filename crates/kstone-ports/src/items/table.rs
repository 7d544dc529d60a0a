//! What a table is: keys, indexes, stream, time to live, tags.

use serde::{Deserialize, Serialize};

/// The type of a key attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyType {
    /// A string.
    S,
    /// A number.
    N,
    /// Bytes.
    B,
}

/// One attribute of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyAttribute {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: KeyType,
}

/// A key: the attributes that name the partition, then those that order it. A table has one of
/// each at most; a global index up to four of each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeySchema {
    /// The partition key, in order.
    pub hash: Vec<KeyAttribute>,
    /// The sort key, in order; empty if there is none.
    pub range: Vec<KeyAttribute>,
}

impl KeyType {
    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            KeyType::S => "S",
            KeyType::N => "N",
            KeyType::B => "B",
        }
    }
}

impl KeyAttribute {
    /// A string attribute.
    pub fn string(name: impl Into<String>) -> Self {
        KeyAttribute { name: name.into(), kind: KeyType::S }
    }

    /// A number attribute.
    pub fn number(name: impl Into<String>) -> Self {
        KeyAttribute { name: name.into(), kind: KeyType::N }
    }

    /// A binary attribute.
    pub fn binary(name: impl Into<String>) -> Self {
        KeyAttribute { name: name.into(), kind: KeyType::B }
    }
}

impl KeySchema {
    /// A partition key without a sort key.
    pub fn hash(hash: KeyAttribute) -> Self {
        KeySchema { hash: vec![hash], range: Vec::new() }
    }

    /// A partition key and a sort key.
    pub fn hash_range(hash: KeyAttribute, range: KeyAttribute) -> Self {
        KeySchema { hash: vec![hash], range: vec![range] }
    }

    /// All attributes, the partition key's first.
    pub fn attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.hash.iter().chain(&self.range)
    }

    /// How many attributes.
    pub fn len(&self) -> usize {
        self.hash.len() + self.range.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has an attribute with this name.
    pub fn contains(&self, name: &str) -> bool {
        self.attributes().any(|attribute| attribute.name == name)
    }
}

/// Which attributes an index holds besides the keys of table and index.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum IndexProjection {
    /// All of them.
    #[default]
    All,
    /// None.
    KeysOnly,
    /// These.
    Include(Vec<String>),
}

/// What to create an index from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexSpec {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: KeySchema,
    /// What it holds.
    pub projection: IndexProjection,
    /// Provisioned throughput, kept to be shown.
    pub throughput: Option<Throughput>,
}

/// Provisioned capacity. Kept and shown; nothing is throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Throughput {
    /// Read capacity units.
    pub read: u64,
    /// Write capacity units.
    pub write: u64,
}

/// What a change stream holds of the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamView {
    /// Only its key.
    KeysOnly,
    /// The item after the change.
    NewImage,
    /// The item before the change.
    OldImage,
    /// Both.
    NewAndOldImages,
}

/// What to create a table from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableSpec {
    /// Its name: 3 to 255 of `a-z A-Z 0-9 _ - .`.
    pub name: String,
    /// Its key: one partition key attribute and at most one sort key attribute.
    pub key: KeySchema,
    /// Local indexes: the table's partition key with another sort key.
    pub local: Vec<IndexSpec>,
    /// Global indexes: any key.
    pub global: Vec<IndexSpec>,
    /// The change stream, if it is to have one.
    pub stream: Option<StreamView>,
    /// Provisioned throughput; `None` is on demand.
    pub throughput: Option<Throughput>,
    /// Refuses deletion of the table.
    pub deletion_protection: bool,
    /// `STANDARD` or `STANDARD_INFREQUENT_ACCESS`, kept to be shown.
    pub table_class: Option<String>,
    /// Server-side encryption as asked for, kept to be shown.
    pub encryption: Option<bool>,
    /// Maximum on-demand throughput, kept to be shown.
    pub on_demand: Option<(Option<i64>, Option<i64>)>,
    /// Tags.
    pub tags: Vec<(String, String)>,
}

impl TableSpec {
    /// The attributes of all keys, by name: the `AttributeDefinitions` of this table.
    pub fn attribute_definitions(&self) -> Vec<KeyAttribute> {
        let mut defined: Vec<KeyAttribute> = self.key_attributes().cloned().collect();
        defined.sort_by(|a, b| a.name.cmp(&b.name));
        defined.dedup();
        defined
    }

    /// The attributes of all keys, as often as they are in one.
    pub fn key_attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        let indexes = self.local.iter().chain(&self.global);
        self.key.attributes().chain(indexes.flat_map(|index| index.key.attributes()))
    }
}

/// Whether a table or an index can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Status {
    /// Being made; not to be used yet.
    Creating,
    /// In use.
    #[default]
    Active,
    /// In use, while an index is made or dropped.
    Updating,
    /// Being dropped.
    Deleting,
}

/// A table as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDescription {
    /// What it was created from, with later changes.
    pub spec: TableSpec,
    /// A random id (UUID form).
    pub id: String,
    /// Whether it can be used.
    pub status: Status,
    /// When it was made.
    pub created_ms: u64,
    /// How many items, as last counted.
    pub items: u64,
    /// How many bytes, as last counted.
    pub bytes: u64,
    /// Global indexes with their state, in the order of `spec.global`.
    pub global: Vec<IndexState>,
    /// Local indexes with their state, in the order of `spec.local`.
    pub local: Vec<IndexState>,
    /// The label of the latest stream (its start as ISO time), if there was one.
    pub stream_label: Option<String>,
    /// When the billing mode last became on demand.
    pub on_demand_since_ms: Option<u64>,
    /// When the throughput was last raised, and lowered.
    pub throughput_changed_ms: [Option<u64>; 2],
    /// Time to live, if it is on.
    pub ttl: TtlState,
}

/// The state of one index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexState {
    /// Whether it can be used.
    pub status: Status,
    /// While it is made: how many items of the table have been looked at.
    pub backfilled: Option<u64>,
    /// How many items it holds, as last counted.
    pub items: u64,
    /// How many bytes, as last counted.
    pub bytes: u64,
}

/// Time to live of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TtlState {
    /// Off.
    #[default]
    Off,
    /// On, but items that were there before are still being stamped.
    Enabling(String),
    /// On: the attribute that holds the second of expiry.
    On(String),
    /// Off, but stamps are still being taken off.
    Disabling(String),
}
