//! A table in the form that operations use: immutable; a change makes a new one with the next version.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use kstone_core::{Key, TableId};

use crate::error::{Error, Result};
use crate::key;
use crate::table::record::TableRecord;
use crate::table::{
    IndexProjection, IndexSpec, KeyAttribute, KeySchema, KeyType, Status, StreamView, TtlState,
};
use crate::value::{Item, ItemBytes, ItemRef, Value, ValueRef};
use crate::write_policy::is_own;

/// The longest partition key, in bytes.
const HASH_LEN_MAX: usize = 2048;
/// The longest sort key, in bytes.
const RANGE_LEN_MAX: usize = 1024;
/// Seconds in five years: an expiry further back than this does not count, as in DynamoDB.
const FIVE_YEARS_S: u64 = 5 * 365 * 86_400;

/// A table that can be read and written.
#[derive(Debug)]
pub(crate) struct Table {
    pub record: TableRecord,
    /// Local indexes, then global ones.
    pub indexes: Vec<Index>,
    pub has_global: bool,
    version: u64,
    /// The version that is current; a writer looks at it once more under its locks.
    current: Arc<AtomicU64>,
}

/// An index that is kept.
#[derive(Debug)]
pub(crate) struct Index {
    pub id: TableId,
    pub name: String,
    pub scope: Scope,
    pub key: KeySchema,
    pub projection: IndexProjection,
    pub status: Status,
    /// The attributes that it holds, sorted; `None` for all.
    held: Option<Vec<String>>,
}

/// Whether an index shares the table's partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Local,
    Global,
}

impl Table {
    pub fn new(record: TableRecord, version: u64, current: Arc<AtomicU64>) -> Self {
        let base = &record.spec.key;
        let local = record.spec.local.iter().zip(&record.local);
        let global = record.spec.global.iter().zip(&record.global);
        let indexes: Vec<Index> =
            local
                .map(|(spec, index)| Index::new(base, spec, index.id, index.status, Scope::Local))
                .chain(global.filter(|(_, index)| index.status != Status::Deleting).map(
                    |(spec, index)| Index::new(base, spec, index.id, index.status, Scope::Global),
                ))
                .collect();
        let has_global = indexes.iter().any(|index| index.scope == Scope::Global);
        Table { record, indexes, has_global, version, current }
    }

    pub fn name(&self) -> &str {
        &self.record.spec.name
    }

    pub fn id(&self) -> TableId {
        TableId(self.record.id)
    }

    pub fn key(&self) -> &KeySchema {
        &self.record.spec.key
    }

    /// Whether the table was neither changed nor dropped since it was looked up. True under a stripe
    /// lock, it stays true until the lock is let go of, as far as that stripe is concerned: who
    /// changes a table passes through every stripe's lock afterwards.
    pub fn is_current(&self) -> bool {
        self.current.load(Ordering::Acquire) == self.version
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    /// Where the current version of the table with this name is kept.
    pub fn current(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.current)
    }

    /// The index with this name, if it can be asked.
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// What the open stream holds of each item.
    pub fn stream(&self) -> Option<(TableId, StreamView)> {
        self.record.open_stream().map(|stream| (TableId(stream.id), stream.view))
    }

    /// The attribute with the second of expiry.
    pub fn ttl_attribute(&self) -> Option<&str> {
        match &self.record.ttl {
            TtlState::On(name) | TtlState::Enabling(name) => Some(name),
            TtlState::Off | TtlState::Disabling(_) => None,
        }
    }

    /// When the item expires, in milliseconds.
    pub fn expiry_ms(&self, item: ItemRef<'_>, now_ms: u64) -> Option<u64> {
        let ValueRef::N(second) = item.get(self.ttl_attribute()?)? else { return None };
        // A fraction of a second does not count.
        let second = match second.to_i64() {
            Some(second) => u64::try_from(second).ok()?,
            None => second.to_number().to_f64() as u64,
        };
        (second > 0 && second.saturating_add(FIVE_YEARS_S) >= now_ms / 1000)
            .then(|| second.saturating_mul(1000))
    }

    /// The key of a whole item that is to be written.
    pub fn key_of_item(&self, item: ItemRef<'_>) -> Result<Key> {
        let schema = self.key();
        let mut parts = [None, None];
        for (part, attribute) in parts.iter_mut().zip(schema.attributes()) {
            let Some(value) = item.get(&attribute.name) else {
                return Err(Error::validation(format!(
                    "One or more parameter values were invalid: Missing the key {} in the item",
                    attribute.name
                )));
            };
            if value.type_name() != attribute.kind.name() {
                return Err(Error::validation(format!(
                    "One or more parameter values were invalid: Type mismatch for key {} expected: {} actual: {}",
                    attribute.name,
                    attribute.kind.name(),
                    value.type_name()
                )));
            }
            *part = Some(value);
        }
        self.key_from(parts)
    }

    /// The key that a request names: exactly the key attributes, with the right types.
    pub fn key_of_request(&self, key: ItemRef<'_>) -> Result<Key> {
        self.key_of_attributes(key.len(), |name| key.get(name))
    }

    /// The same from the tree form, which need not be encoded for this.
    pub fn key_of_tree(&self, key: &Item) -> Result<Key> {
        self.key_of_attributes(key.len(), |name| key.get(name)?.scalar())
    }

    /// The engine's partition key for a value of the table's partition key.
    pub fn partition_of_value(&self, value: &Value) -> Result<Bytes> {
        let mut pk = Vec::new();
        let hash = self.key().hash.first().zip(value.scalar());
        match hash.is_some_and(|(hash, value)| key::write_single(hash.kind, value, &mut pk)) {
            true => Ok(pk.into()),
            false => Err(Error::validation("The provided key element does not match the schema")),
        }
    }

    fn key_of_attributes<'v>(
        &self,
        attributes: usize,
        value_of: impl Fn(&str) -> Option<ValueRef<'v>>,
    ) -> Result<Key> {
        let schema = self.key();
        let mismatch = || Error::validation("The provided key element does not match the schema");
        if attributes != schema.len() {
            return Err(mismatch());
        }
        let mut parts = [None, None];
        for (part, attribute) in parts.iter_mut().zip(schema.attributes()) {
            let value = value_of(&attribute.name).ok_or_else(mismatch)?;
            if value.type_name() != attribute.kind.name() {
                return Err(mismatch());
            }
            *part = Some(value);
        }
        self.key_from(parts)
    }

    fn key_from(&self, parts: [Option<ValueRef<'_>>; 2]) -> Result<Key> {
        let schema = self.key();
        for (value, attribute) in parts.iter().flatten().zip(schema.attributes()) {
            if let Some(kind) = empty_kind(*value) {
                return Err(Error::validation(format!(
                    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty {kind} value. Key: {}",
                    attribute.name
                )));
            }
        }
        let bytes = |value: Option<ValueRef<'_>>, attribute: Option<&KeyAttribute>| {
            let (value, attribute) = (value?, attribute?);
            let mut out = Vec::new();
            key::write_single(attribute.kind, value, &mut out).then_some(out)
        };
        let pk = bytes(parts[0], schema.hash.first()).unwrap_or_default();
        // Entries of the index of persons hold whole keys of others, and names of databases. They are
        // written by the database alone, and may be as long as the engine takes.
        let is_own = is_own(self.name());
        if pk.len() > HASH_LEN_MAX && !is_own {
            return Err(Error::validation(
                "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes",
            ));
        }
        match bytes(parts[1], schema.range.first()) {
            Some(sk) if sk.len() > RANGE_LEN_MAX && !is_own => Err(Error::validation(
                "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
            )),
            Some(sk) => Ok(Key::with_sk(pk, sk)),
            None => Ok(Key::new(pk)),
        }
    }

    /// The attributes of the table's key, taken from an item.
    pub fn key_attributes(&self, item: ItemRef<'_>) -> ItemBytes {
        item.filter(|name| self.key().contains(name))
    }

    /// Refuses an item whose index keys have the wrong type, no value, or too long a one.
    pub fn check_index_keys(&self, item: ItemRef<'_>) -> Result<()> {
        for index in &self.indexes {
            for (attribute, len_max) in index.key_limits() {
                let Some(value) = item.get(&attribute.name) else { continue };
                if value.type_name() != attribute.kind.name() {
                    return Err(Error::validation(format!(
                        "One or more parameter values were invalid: Type mismatch for Index Key {} Expected: {} Actual: {} IndexName: {}",
                        attribute.name,
                        attribute.kind.name(),
                        value.type_name(),
                        index.name
                    )));
                }
                if let Some(kind) = empty_kind(value) {
                    return Err(Error::validation(format!(
                        "One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty {kind} value. IndexName: {}, IndexKey: {}",
                        index.name, attribute.name
                    )));
                }
                if value.size() > len_max {
                    return Err(Error::validation(format!(
                        "One or more parameter values were invalid: Size limit exceeded for Index Key {} Actual Size: {} bytes Max Size: {len_max} bytes IndexName: {}",
                        attribute.name,
                        value.size(),
                        index.name
                    )));
                }
            }
        }
        Ok(())
    }
}

fn empty_kind(value: ValueRef<'_>) -> Option<&'static str> {
    match value {
        ValueRef::S("") => Some("string"),
        ValueRef::B([]) => Some("binary"),
        _ => None,
    }
}

impl Index {
    fn new(base: &KeySchema, spec: &IndexSpec, id: u32, status: Status, scope: Scope) -> Self {
        let held = match &spec.projection {
            IndexProjection::All => None,
            IndexProjection::KeysOnly => Some(Vec::new()),
            IndexProjection::Include(names) => Some(names.clone()),
        };
        let held = held.map(|mut names| {
            let keys = base.attributes().chain(spec.key.attributes());
            names.extend(keys.map(|attribute| attribute.name.clone()));
            names.sort_unstable();
            names.dedup();
            names
        });
        Index {
            id: TableId(id),
            name: spec.name.clone(),
            scope,
            key: spec.key.clone(),
            projection: spec.projection.clone(),
            status,
            held,
        }
    }

    /// Whether it holds this attribute of every item.
    pub fn holds(&self, name: &str) -> bool {
        self.held
            .as_ref()
            .is_none_or(|held| held.binary_search_by(|h| h.as_str().cmp(name)).is_ok())
    }

    /// What it holds of an item.
    pub fn project(&self, item: &ItemBytes) -> ItemBytes {
        match self.held {
            None => item.clone(),
            Some(_) => item.as_ref().filter(|name| self.holds(name)),
        }
    }

    /// The attributes of its key, each with the bytes that its value may have.
    fn key_limits(&self) -> impl Iterator<Item = (&KeyAttribute, usize)> {
        let hash = self.key.hash.iter().map(|attribute| (attribute, HASH_LEN_MAX));
        hash.chain(self.key.range.iter().map(|attribute| (attribute, RANGE_LEN_MAX)))
    }

    /// Where an item stands in the index; `None` if it lacks a key attribute and so is not in it.
    ///
    /// An item that was there before the index can also have a value that no index takes: of
    /// another type, empty, or too long. It is not in the index either.
    pub fn entry_key(&self, base: &Key, item: ItemRef<'_>) -> Option<Key> {
        for (attribute, len_max) in self.key_limits() {
            let value = item.get(&attribute.name)?;
            if empty_kind(value).is_some() || value.size() > len_max {
                return None;
            }
        }
        let pk = match self.scope {
            Scope::Local => base.pk.to_vec(),
            Scope::Global => self.partition(|attribute| item.get(&attribute.name))?,
        };
        let mut sk = Vec::with_capacity(32 + base.pk.len());
        for attribute in &self.key.range {
            let value = item.get(&attribute.name)?;
            if !key::write_part(attribute.kind, value, &mut sk) {
                return None;
            }
        }
        // The table's key makes entries with equal index keys distinct.
        if self.scope == Scope::Global {
            let _fits = key::write_part(KeyType::B, ValueRef::B(&base.pk), &mut sk);
        }
        if let Some(base_sk) = &base.sk {
            let _fits = key::write_part(KeyType::B, ValueRef::B(base_sk), &mut sk);
        }
        Some(Key::with_sk(pk, sk))
    }

    /// The engine's partition key for these values of the partition key attributes.
    pub fn partition<'v>(
        &self,
        value_of: impl Fn(&KeyAttribute) -> Option<ValueRef<'v>>,
    ) -> Option<Vec<u8>> {
        let mut pk = Vec::with_capacity(32);
        let fits = match self.key.hash.as_slice() {
            [only] => key::write_single(only.kind, value_of(only)?, &mut pk),
            several => {
                let mut fits = true;
                for attribute in several {
                    fits &= key::write_part(attribute.kind, value_of(attribute)?, &mut pk);
                }
                fits
            }
        };
        fits.then_some(pk)
    }

    /// The attributes that name a place in the index: its own key and the table's.
    pub fn position_attributes(&self, table: &KeySchema, item: ItemRef<'_>) -> Option<Item> {
        item.filter(|name| self.key.contains(name) || table.contains(name)).decode().ok()
    }
}
