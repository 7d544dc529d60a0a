//! Unvalidated table requests as clients send them: attribute types apart from keys, key elements in
//! any order, billing and throughput that may contradict each other. A door fills these in from a
//! request; [`RawTable::resolve`] and [`Database::update_table_as_requested`] check them the way
//! DynamoDB does, in its order and words, and give what the database works with.
//!
//! What is typed already ([`TableSpec`], [`TableChange`]) is turned back into these forms to be
//! checked, so that there is one list of rules.

use std::collections::HashMap;

use crate::database::Database;
use crate::error::Result;
use crate::table::{
    Billing, IndexProjection, IndexSpec, KeyAttribute, KeySchema, KeyType, StreamView, TableChange,
    TableDescription, TableSpec, Throughput, validate, validate_change,
};

/// Which part of a key an attribute is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRole {
    /// Part of the partition key.
    Hash,
    /// Part of the sort key.
    Range,
}

impl KeyRole {
    /// The name that DynamoDB gives it.
    pub fn name(self) -> &'static str {
        match self {
            KeyRole::Hash => "HASH",
            KeyRole::Range => "RANGE",
        }
    }
}

/// One element of a `KeySchema`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyElement {
    /// The attribute.
    pub name: String,
    /// Its part.
    pub role: KeyRole,
}

/// A `ProjectionType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectionType {
    /// All attributes.
    All,
    /// Only keys.
    KeysOnly,
    /// Keys, and the attributes named in `NonKeyAttributes`.
    Include,
}

impl ProjectionType {
    /// The name that DynamoDB gives it.
    pub fn name(self) -> &'static str {
        match self {
            ProjectionType::All => "ALL",
            ProjectionType::KeysOnly => "KEYS_ONLY",
            ProjectionType::Include => "INCLUDE",
        }
    }
}

/// A `BillingMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BillingMode {
    /// By provisioned units.
    Provisioned,
    /// By request.
    PayPerRequest,
}

/// A `StreamSpecification`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStream {
    /// `StreamEnabled`.
    pub enabled: bool,
    /// `StreamViewType`.
    pub view: Option<StreamView>,
}

/// An index as a client asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawIndex {
    /// `IndexName`.
    pub name: String,
    /// `KeySchema`.
    pub key: Vec<KeyElement>,
    /// `Projection.ProjectionType`.
    pub projection: Option<ProjectionType>,
    /// `Projection.NonKeyAttributes`.
    pub non_key: Option<Vec<String>>,
    /// `ProvisionedThroughput`.
    pub throughput: Option<Throughput>,
}

/// A table as a client asks for it: the input of `CreateTable`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawTable {
    /// `TableName`.
    pub name: String,
    /// `AttributeDefinitions`.
    pub attributes: Vec<KeyAttribute>,
    /// `KeySchema`.
    pub key: Vec<KeyElement>,
    /// `LocalSecondaryIndexes`; an empty list is not the same as none.
    pub local: Option<Vec<RawIndex>>,
    /// `GlobalSecondaryIndexes`; an empty list is not the same as none.
    pub global: Option<Vec<RawIndex>>,
    /// `BillingMode`.
    pub billing: Option<BillingMode>,
    /// `ProvisionedThroughput`.
    pub throughput: Option<Throughput>,
    /// `OnDemandThroughput`: maximum read and write request units.
    pub on_demand: Option<(Option<i64>, Option<i64>)>,
    /// `StreamSpecification`.
    pub stream: Option<RawStream>,
    /// `SSESpecification.Enabled`.
    pub encryption: Option<bool>,
    /// `DeletionProtectionEnabled`.
    pub deletion_protection: bool,
    /// `TableClass`.
    pub table_class: Option<String>,
    /// `Tags`.
    pub tags: Vec<(String, String)>,
}

/// One entry of `GlobalSecondaryIndexUpdates`. Exactly one of its parts must be there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawIndexChange {
    /// `Create`.
    pub create: Option<RawIndex>,
    /// `Update`: the index and its throughput. `None` inside if the request has only members
    /// that mean nothing here (`OnDemandThroughput`, `WarmThroughput`).
    pub update: Option<(String, Option<Throughput>)>,
    /// `Delete`.
    pub delete: Option<String>,
}

/// A change to a table as a client asks for it: the input of `UpdateTable`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawTableChange {
    /// `AttributeDefinitions`. Only a new index looks at them.
    pub attributes: Option<Vec<KeyAttribute>>,
    /// `BillingMode`.
    pub billing: Option<BillingMode>,
    /// `ProvisionedThroughput`.
    pub throughput: Option<Throughput>,
    /// `OnDemandThroughput`: maximum read and write request units, -1 for no maximum.
    pub on_demand: Option<(Option<i64>, Option<i64>)>,
    /// `GlobalSecondaryIndexUpdates`; an empty list is not the same as none.
    pub global: Option<Vec<RawIndexChange>>,
    /// `StreamSpecification`.
    pub stream: Option<RawStream>,
    /// `SSESpecification.Enabled`.
    pub encryption: Option<bool>,
    /// `DeletionProtectionEnabled`.
    pub deletion_protection: Option<bool>,
    /// `TableClass`.
    pub table_class: Option<String>,
}

impl RawTable {
    /// What to create a table from, if DynamoDB would accept the request.
    pub fn resolve(&self) -> Result<TableSpec> {
        let raw = self;
        validate::table(raw)?;
        let types = Types::new(&raw.attributes);
        let indexes = |raw: &Option<Vec<RawIndex>>| {
            raw.iter().flatten().map(|index| index.resolve(&types)).collect::<Result<_>>()
        };
        Ok(TableSpec {
            name: raw.name.clone(),
            key: types.key(&raw.key)?,
            local: indexes(&raw.local)?,
            global: indexes(&raw.global)?,
            stream: raw.stream.and_then(|stream| stream.view),
            throughput: raw.throughput,
            deletion_protection: raw.deletion_protection,
            table_class: raw.table_class.clone(),
            encryption: raw.encryption,
            on_demand: raw.on_demand,
            tags: raw.tags.clone(),
        })
    }
}

impl Database {
    /// Changes a table as [`Database::update_table`] does, from a request that may contradict
    /// itself or the table: then it is refused in DynamoDB's words.
    pub fn update_table_as_requested(
        &self,
        name: &str,
        raw: &RawTableChange,
    ) -> Result<TableDescription> {
        validate_change::request(raw)?;
        self.change_table(name, |record| {
            validate_change::on_table(&record.spec, &record.global, raw)?;
            raw.resolve(&record.spec)
        })
    }
}

impl RawTableChange {
    /// The change, for a table that it was checked against.
    fn resolve(&self, spec: &TableSpec) -> Result<TableChange> {
        let known = spec.key_attributes().cloned();
        let attributes: Vec<KeyAttribute> =
            known.chain(self.attributes.iter().flatten().cloned()).collect();
        let types = Types::new(&attributes);
        let entries = || self.global.iter().flatten();
        let created = entries().find_map(|entry| entry.create.as_ref());
        Ok(TableChange {
            billing: match (self.billing, self.throughput) {
                (Some(BillingMode::PayPerRequest), _) => Some(Billing::OnDemand),
                (_, throughput) => throughput.map(Billing::Provisioned),
            },
            stream: self.stream.map(|stream| stream.view),
            create_index: created.map(|index| index.resolve(&types)).transpose()?,
            delete_index: entries().find_map(|entry| entry.delete.clone()),
            index_throughput: entries()
                .filter_map(|entry| entry.update.clone())
                .filter_map(|(name, throughput)| Some((name, throughput?)))
                .collect(),
            deletion_protection: self.deletion_protection,
            table_class: self.table_class.clone(),
            encryption: self.encryption,
            on_demand: self.on_demand,
        })
    }
}

impl RawIndex {
    fn resolve(&self, types: &Types<'_>) -> Result<IndexSpec> {
        Ok(IndexSpec {
            name: self.name.clone(),
            key: types.key(&self.key)?,
            projection: match self.projection {
                Some(ProjectionType::KeysOnly) => IndexProjection::KeysOnly,
                Some(ProjectionType::Include) => {
                    // DynamoDB shows them in this order.
                    let mut names = self.non_key.clone().unwrap_or_default();
                    names.sort_unstable();
                    IndexProjection::Include(names)
                }
                Some(ProjectionType::All) | None => IndexProjection::All,
            },
            throughput: self.throughput,
        })
    }
}

/// The types of attributes, by name.
struct Types<'a>(HashMap<&'a str, KeyType>);

impl<'a> Types<'a> {
    fn new(attributes: &'a [KeyAttribute]) -> Self {
        let mut types = HashMap::with_capacity(attributes.len());
        for attribute in attributes {
            // The first counts: what the table has already cannot be changed.
            types.entry(attribute.name.as_str()).or_insert(attribute.kind);
        }
        Types(types)
    }

    fn key(&self, elements: &[KeyElement]) -> Result<KeySchema> {
        let part = |role: KeyRole| {
            let of_part = elements.iter().filter(|element| element.role == role);
            of_part.map(|element| self.attribute(&element.name)).collect::<Result<_>>()
        };
        Ok(KeySchema { hash: part(KeyRole::Hash)?, range: part(KeyRole::Range)? })
    }

    fn attribute(&self, name: &str) -> Result<KeyAttribute> {
        match self.0.get(name) {
            Some(&kind) => Ok(KeyAttribute { name: name.to_owned(), kind }),
            None => Err(validate::undefined(&[name], &self.0.keys().copied().collect::<Vec<_>>())),
        }
    }
}

impl From<&TableSpec> for RawTable {
    fn from(spec: &TableSpec) -> Self {
        let indexes = |specs: &[IndexSpec]| {
            (!specs.is_empty()).then(|| specs.iter().map(RawIndex::from).collect())
        };
        RawTable {
            name: spec.name.clone(),
            attributes: definitions(spec.key_attributes()),
            key: elements(&spec.key),
            local: indexes(&spec.local),
            global: indexes(&spec.global),
            billing: Some(match spec.throughput {
                Some(_) => BillingMode::Provisioned,
                None => BillingMode::PayPerRequest,
            }),
            throughput: spec.throughput,
            on_demand: spec.on_demand,
            stream: spec.stream.map(|view| RawStream { enabled: true, view: Some(view) }),
            encryption: spec.encryption,
            deletion_protection: spec.deletion_protection,
            table_class: spec.table_class.clone(),
            tags: spec.tags.clone(),
        }
    }
}

impl From<&IndexSpec> for RawIndex {
    fn from(spec: &IndexSpec) -> Self {
        let (projection, non_key) = match &spec.projection {
            IndexProjection::All => (ProjectionType::All, None),
            IndexProjection::KeysOnly => (ProjectionType::KeysOnly, None),
            IndexProjection::Include(names) => (ProjectionType::Include, Some(names.clone())),
        };
        RawIndex {
            name: spec.name.clone(),
            key: elements(&spec.key),
            projection: Some(projection),
            non_key,
            throughput: spec.throughput,
        }
    }
}

impl From<&TableChange> for RawTableChange {
    fn from(change: &TableChange) -> Self {
        let create = change.create_index.as_ref().map(|index| RawIndexChange {
            create: Some(RawIndex::from(index)),
            ..RawIndexChange::default()
        });
        let delete = change
            .delete_index
            .as_ref()
            .map(|name| RawIndexChange { delete: Some(name.clone()), ..RawIndexChange::default() });
        let update = |(name, throughput): &(String, Throughput)| RawIndexChange {
            update: Some((name.clone(), Some(*throughput))),
            ..RawIndexChange::default()
        };
        let updates = change.index_throughput.iter().map(update);
        let global: Vec<RawIndexChange> = create.into_iter().chain(delete).chain(updates).collect();
        let (billing, throughput) = match change.billing {
            Some(Billing::OnDemand) => (Some(BillingMode::PayPerRequest), None),
            Some(Billing::Provisioned(units)) => (Some(BillingMode::Provisioned), Some(units)),
            None => (None, None),
        };
        RawTableChange {
            attributes: change
                .create_index
                .as_ref()
                .map(|index| definitions(index.key.attributes())),
            billing,
            throughput,
            on_demand: change.on_demand,
            global: (!global.is_empty()).then_some(global),
            stream: change.stream.map(|view| RawStream { enabled: view.is_some(), view }),
            encryption: change.encryption,
            deletion_protection: change.deletion_protection,
            table_class: change.table_class.clone(),
        }
    }
}

/// One definition for each attribute; two if it is used with two types, which is refused later.
fn definitions<'a>(attributes: impl Iterator<Item = &'a KeyAttribute>) -> Vec<KeyAttribute> {
    let mut defined: Vec<KeyAttribute> = Vec::new();
    for attribute in attributes {
        if !defined.contains(attribute) {
            defined.push(attribute.clone());
        }
    }
    defined
}

fn elements(key: &KeySchema) -> Vec<KeyElement> {
    let part = |attributes: &[KeyAttribute], role| -> Vec<KeyElement> {
        attributes.iter().map(|a| KeyElement { name: a.name.clone(), role }).collect()
    };
    let mut elements = part(&key.hash, KeyRole::Hash);
    elements.extend(part(&key.range, KeyRole::Range));
    elements
}
