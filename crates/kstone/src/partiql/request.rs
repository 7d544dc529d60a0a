//! Requests and their answers: one statement, a batch of them, or a transaction.

use crate::error::Error;
use crate::ops::{CapacityDetail, Consumed};
use crate::value::{Item, ItemBytes, Value};

/// One statement, as `ExecuteStatement` takes it.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    /// The statement, 1 to 8192 characters.
    pub text: String,
    /// What its `?` stand for, in order. `None` and empty differ: DynamoDB refuses the empty one.
    pub parameters: Option<Vec<Value>>,
    /// Costs twice the capacity units; refused on global indexes.
    pub consistent_read: bool,
    /// How many items to look at, at most.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub next_token: Option<String>,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
    /// Whether a failed condition's error carries the item.
    pub return_on_failure: bool,
}

impl Statement {
    /// A statement without parameters.
    pub fn new(text: impl Into<String>) -> Self {
        Statement { text: text.into(), ..Statement::default() }
    }

    /// The same statement with one more parameter.
    #[must_use]
    pub fn with(mut self, parameter: impl Into<Value>) -> Self {
        self.parameters.get_or_insert_default().push(parameter.into());
        self
    }
}

/// The answer to a [`Statement`].
#[derive(Debug, Clone, Default)]
pub struct StatementOutput {
    /// What a `SELECT` found, or what a `RETURNING` asked for.
    pub items: Vec<ItemBytes>,
    /// For the next page; `None` after the last.
    pub next_token: Option<String>,
    /// The key that the page ended with, when there may be another.
    pub last_evaluated_key: Option<Item>,
    /// Capacity units, when asked for.
    pub consumed: Option<Consumed>,
}

/// Up to 25 statements, all reads or all writes; each for itself.
#[derive(Debug, Clone, Default)]
pub struct StatementBatch {
    /// The statements. Those that read must name one item by its key.
    pub statements: Vec<Statement>,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
}

/// The answer to a [`StatementBatch`].
#[derive(Debug, Clone, Default)]
pub struct StatementBatchOutput {
    /// One for each statement, in order.
    pub responses: Vec<StatementResponse>,
    /// Capacity units by table, when asked for.
    pub consumed: Vec<Consumed>,
}

/// What came of one statement of a batch.
#[derive(Debug, Clone)]
pub struct StatementResponse {
    /// The table, if the statement was run at all.
    pub table: Option<String>,
    /// The item that it read or returned, or why it failed.
    pub result: Result<Option<ItemBytes>, StatementError>,
}

/// Why one statement of a batch failed.
#[derive(Debug, Clone)]
pub struct StatementError {
    /// DynamoDB's code, such as `ConditionalCheckFailed`.
    pub code: &'static str,
    /// What it says.
    pub message: String,
    /// The item that did not meet the condition, when asked for.
    pub item: Option<ItemBytes>,
}

impl From<Error> for StatementError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let (code, item) = match error {
            Error::Validation(_) | Error::Refused(_) => ("ValidationError", None),
            Error::ConditionFailed { item } => ("ConditionalCheckFailed", item),
            Error::NotFound(_) => ("ResourceNotFound", None),
            Error::DuplicateItem => ("DuplicateItem", None),
            Error::LimitExceeded(_) => ("RequestLimitExceeded", None),
            _ => ("InternalServerError", None),
        };
        StatementError { code, message, item }
    }
}

/// Up to 100 statements, all reads or all writes; all or nothing.
#[derive(Debug, Clone, Default)]
pub struct StatementTransaction {
    /// The statements. Each must name one item by its key.
    pub statements: Vec<Statement>,
    /// The client's token: a repetition within ten minutes does nothing and succeeds.
    pub token: Option<String>,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
}

/// The answer to a [`StatementTransaction`].
#[derive(Debug, Clone, Default)]
pub struct StatementTransactionOutput {
    /// One for each statement that reads, in order; empty for a transaction that writes.
    pub items: Vec<Option<ItemBytes>>,
    /// Capacity units by table, when asked for.
    pub consumed: Vec<Consumed>,
}
