//! What requests have in common: expressions, placeholders, and what to return besides the items.

use crate::expr::{BoundCondition, BoundKeyCondition, BoundUpdate};
use crate::value::{Item, Value};

/// `ExpressionAttributeNames` and `ExpressionAttributeValues`: what the placeholders of an
/// operation's expressions stand for. `None` and empty differ: DynamoDB refuses the empty one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Placeholders {
    /// `#name` with the attribute name that it stands for.
    pub names: Option<Vec<(String, String)>>,
    /// `:value` with the value that it stands for.
    pub values: Option<Vec<(String, Value)>>,
}

/// A condition on an item: as text, or as built from a legacy parameter.
#[derive(Debug, Clone)]
pub enum Condition {
    /// `ConditionExpression` or `FilterExpression`.
    Text(String),
    /// The same for what a PartiQL statement asks: it may be longer, as a statement may.
    Statement(String),
    /// `Expected`, `QueryFilter` or `ScanFilter`, by [`legacy`](crate::expr::legacy).
    Built(BoundCondition),
}

/// Which items a query looks at.
#[derive(Debug, Clone)]
pub enum KeyCondition {
    /// `KeyConditionExpression`.
    Text(String),
    /// `KeyConditions`, by [`legacy`](crate::expr::legacy).
    Built(BoundKeyCondition),
}

/// What to change in an item.
#[derive(Debug, Clone)]
pub enum Update {
    /// `UpdateExpression`.
    Text(String),
    /// The same for what a PartiQL statement changes: it may be longer, as a statement may.
    Statement(String),
    /// `AttributeUpdates`, by [`legacy`](crate::expr::legacy).
    Built(BoundUpdate),
}

/// Which attributes to return.
#[derive(Debug, Clone)]
pub enum Projection {
    /// `ProjectionExpression`.
    Text(String),
    /// `AttributesToGet`: top-level names.
    Attributes(Vec<String>),
}

/// What a write returns of the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReturnValues {
    /// Nothing.
    #[default]
    None,
    /// The item as it was.
    AllOld,
    /// What the update changed, as it was.
    UpdatedOld,
    /// The item as it is now.
    AllNew,
    /// What the update changed, as it is now.
    UpdatedNew,
}

/// How much to say about consumed capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapacityDetail {
    /// Nothing.
    #[default]
    None,
    /// One sum.
    Total,
    /// The sum, and what the table and each index took.
    Indexes,
}

/// Capacity units that an operation on one table took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Consumed {
    /// The table's name.
    pub table: String,
    /// How much detail was asked for.
    pub detail: CapacityDetail,
    /// Units of the table itself.
    pub table_units: f64,
    /// Units of local indexes, by name.
    pub local: Vec<(String, f64)>,
    /// Units of global indexes, by name.
    pub global: Vec<(String, f64)>,
    /// Whether these are read or write units.
    pub kind: CapacityKind,
    /// Whether a transaction took them, which says how many were for reading and for writing.
    pub transactional: bool,
}

/// Whether capacity was for reading or for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapacityKind {
    /// For reading.
    #[default]
    Read,
    /// For writing.
    Write,
}

/// The size of an item collection (all items of one partition, on a table with local indexes).
#[derive(Debug, Clone, PartialEq)]
pub struct CollectionMetrics {
    /// The table's name.
    pub table: String,
    /// The partition key attribute with its value.
    pub key: Item,
    /// Lower and upper bound in GB.
    pub size_estimate_gb: [f64; 2],
}

impl Consumed {
    /// All units together.
    pub fn total(&self) -> f64 {
        let indexes = self.local.iter().chain(&self.global);
        self.table_units + indexes.map(|(_, units)| units).sum::<f64>()
    }
}

/// Placeholders from one list: what begins with `#` is a name (its value a string), what begins
/// with `:` a value.
pub fn placeholders<K: Into<String>, V: Into<Value>>(
    list: impl IntoIterator<Item = (K, V)>,
) -> Placeholders {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (placeholder, stands_for) in list {
        let placeholder = placeholder.into();
        match stands_for.into() {
            Value::S(name) if placeholder.starts_with('#') => names.push((placeholder, name)),
            value => values.push((placeholder, value)),
        }
    }
    Placeholders {
        names: (!names.is_empty()).then_some(names),
        values: (!values.is_empty()).then_some(values),
    }
}
