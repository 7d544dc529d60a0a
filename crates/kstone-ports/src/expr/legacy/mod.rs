//! The parameters that came before expressions: `Expected`, `QueryFilter`, `ScanFilter`,
//! `KeyConditions` and `AttributeUpdates`. They become the same bound forms as expressions.

mod condition;
mod update;

pub use condition::{expected, filter, key_conditions};
pub use update::attribute_updates;

use crate::value::Value;

/// The names and values of a parameter together: as much as an expression's may take.
const LEGACY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The comparisons that a parameter asks for. DynamoDB names no limit; this many are more than
/// programs write, and few enough to be asked of every item of a page.
const COMPARISONS_MAX: usize = 1024;

/// How a legacy condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOperator {
    /// `EQ`
    Eq,
    /// `NE`
    Ne,
    /// `IN`
    In,
    /// `LE`
    Le,
    /// `LT`
    Lt,
    /// `GE`
    Ge,
    /// `GT`
    Gt,
    /// `BETWEEN`
    Between,
    /// `NOT_NULL`: the attribute is there.
    NotNull,
    /// `NULL`: the attribute is not there.
    Null,
    /// `CONTAINS`
    Contains,
    /// `NOT_CONTAINS`
    NotContains,
    /// `BEGINS_WITH`
    BeginsWith,
}

impl ComparisonOperator {
    /// All of them, in the order in which DynamoDB lists them in a message.
    pub const ALL: [ComparisonOperator; 13] = [
        ComparisonOperator::In,
        ComparisonOperator::Null,
        ComparisonOperator::Between,
        ComparisonOperator::Lt,
        ComparisonOperator::NotContains,
        ComparisonOperator::Eq,
        ComparisonOperator::Gt,
        ComparisonOperator::NotNull,
        ComparisonOperator::Ne,
        ComparisonOperator::Le,
        ComparisonOperator::BeginsWith,
        ComparisonOperator::Ge,
        ComparisonOperator::Contains,
    ];

    /// The operator of this name.
    pub fn named(name: &str) -> Option<ComparisonOperator> {
        ComparisonOperator::ALL.into_iter().find(|operator| operator.as_str() == name)
    }

    /// The name that DynamoDB gives it.
    pub fn as_str(self) -> &'static str {
        match self {
            ComparisonOperator::Eq => "EQ",
            ComparisonOperator::Ne => "NE",
            ComparisonOperator::In => "IN",
            ComparisonOperator::Le => "LE",
            ComparisonOperator::Lt => "LT",
            ComparisonOperator::Ge => "GE",
            ComparisonOperator::Gt => "GT",
            ComparisonOperator::Between => "BETWEEN",
            ComparisonOperator::NotNull => "NOT_NULL",
            ComparisonOperator::Null => "NULL",
            ComparisonOperator::Contains => "CONTAINS",
            ComparisonOperator::NotContains => "NOT_CONTAINS",
            ComparisonOperator::BeginsWith => "BEGINS_WITH",
        }
    }
}

/// Whether all legacy conditions must hold or one is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConditionalOperator {
    /// All.
    #[default]
    And,
    /// One.
    Or,
}

/// What a write expects of an attribute: `Expected`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expected {
    /// `Value`
    pub value: Option<Value>,
    /// `Exists`
    pub exists: Option<bool>,
    /// `ComparisonOperator`
    pub operator: Option<ComparisonOperator>,
    /// `AttributeValueList`
    pub values: Option<Vec<Value>>,
}

/// What a query or scan wants of an attribute: `QueryFilter`, `ScanFilter`, `KeyConditions`.
#[derive(Debug, Clone, PartialEq)]
pub struct LegacyCondition {
    /// `ComparisonOperator`
    pub operator: ComparisonOperator,
    /// `AttributeValueList`
    pub values: Vec<Value>,
}

/// What to do to an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttributeAction {
    /// Sets it.
    #[default]
    Put,
    /// Adds a number, or elements of a set or list.
    Add,
    /// Removes it, or elements of a set.
    Delete,
}

/// A change of an attribute: `AttributeUpdates`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttributeUpdate {
    /// `Action`
    pub action: AttributeAction,
    /// `Value`
    pub value: Option<Value>,
}
