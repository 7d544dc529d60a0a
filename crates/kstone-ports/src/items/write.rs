//! The requests that write, with their answers.

use crate::items::{
    CapacityDetail, CollectionMetrics, Condition, Consumed, Placeholders, ReturnValues, Update,
};
use crate::value::{Item, ItemBytes};

/// Writes a whole item, in place of the one with the same key.
#[derive(Debug, Clone, Default)]
pub struct PutItem {
    /// The table's name.
    pub table: String,
    /// The item with its key attributes.
    pub item: Item,
    /// What the item in its place must be like.
    pub condition: Option<Condition>,
    /// What the condition's placeholders stand for.
    pub placeholders: Placeholders,
    /// [`ReturnValues::None`] or [`ReturnValues::AllOld`].
    pub return_values: ReturnValues,
    /// Whether a failed condition's error carries the item.
    pub return_on_failure: bool,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
    /// Whether to estimate the item collection's size.
    pub collection_metrics: bool,
}

/// Changes attributes of an item; makes the item if there is none, unless all it does is to take
/// something away.
#[derive(Debug, Clone, Default)]
pub struct UpdateItem {
    /// The table's name.
    pub table: String,
    /// The key attributes.
    pub key: Item,
    /// What to change; `None` only makes the item.
    pub update: Option<Update>,
    /// What the item must be like.
    pub condition: Option<Condition>,
    /// What the placeholders of both expressions stand for.
    pub placeholders: Placeholders,
    /// What to return of the item.
    pub return_values: ReturnValues,
    /// Whether a failed condition's error carries the item.
    pub return_on_failure: bool,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
    /// Whether to estimate the item collection's size.
    pub collection_metrics: bool,
}

/// Deletes the item with a key, if there is one.
#[derive(Debug, Clone, Default)]
pub struct DeleteItem {
    /// The table's name.
    pub table: String,
    /// The key attributes.
    pub key: Item,
    /// What the item must be like.
    pub condition: Option<Condition>,
    /// What the condition's placeholders stand for.
    pub placeholders: Placeholders,
    /// [`ReturnValues::None`] or [`ReturnValues::AllOld`].
    pub return_values: ReturnValues,
    /// Whether a failed condition's error carries the item.
    pub return_on_failure: bool,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
    /// Whether to estimate the item collection's size.
    pub collection_metrics: bool,
}

/// The answer to [`PutItem`](crate::items::PutItem), [`UpdateItem`](crate::items::UpdateItem) and
/// [`DeleteItem`](crate::items::DeleteItem).
#[derive(Debug, Clone, Default)]
pub struct WriteOutput {
    /// What the request's `return_values` asked for.
    pub attributes: Option<ItemBytes>,
    /// Capacity units, when asked for.
    pub consumed: Option<Consumed>,
    /// The item collection's size, when asked for.
    pub collection: Option<CollectionMetrics>,
}

/// Puts and deletes up to 25 items of one or more tables; each for itself, not as a transaction.
#[derive(Debug, Clone, Default)]
pub struct BatchWrite {
    /// Each table with what to write.
    pub tables: Vec<(String, Vec<WriteRequest>)>,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
    /// Whether to estimate the item collections' sizes.
    pub collection_metrics: bool,
}

/// One write of a [`BatchWrite`].
#[derive(Debug, Clone)]
pub enum WriteRequest {
    /// Writes an item.
    Put(Item),
    /// Deletes the item with this key.
    Delete(Item),
}

/// The answer to [`BatchWrite`].
#[derive(Debug, Clone, Default)]
pub struct BatchWriteOutput {
    /// What was not done, as indexes into the requests, by table; empty here in practice.
    pub unprocessed: Vec<(String, Vec<usize>)>,
    /// Capacity units by table, when asked for.
    pub consumed: Vec<Consumed>,
    /// Item collection sizes, when asked for.
    pub collections: Vec<CollectionMetrics>,
}

/// Up to 100 writes and checks, all or nothing.
#[derive(Debug, Clone, Default)]
pub struct TransactWrite {
    /// What to do.
    pub actions: Vec<TransactAction>,
    /// The client's token: a repetition within ten minutes does nothing and succeeds.
    pub token: Option<String>,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
    /// Whether to estimate the item collections' sizes.
    pub collection_metrics: bool,
}

/// One action of a [`TransactWrite`].
#[derive(Debug, Clone)]
pub struct TransactAction {
    /// The table's name.
    pub table: String,
    /// What to do.
    pub kind: TransactKind,
    /// What the item must be like. A check must have one.
    pub condition: Option<Condition>,
    /// What the placeholders of all expressions stand for.
    pub placeholders: Placeholders,
    /// Whether a failed condition's reason carries the item.
    pub return_on_failure: bool,
}

impl TransactAction {
    /// An action without a condition.
    pub fn new(table: &str, kind: TransactKind) -> Self {
        TransactAction {
            table: table.to_owned(),
            kind,
            condition: None,
            placeholders: Placeholders::default(),
            return_on_failure: false,
        }
    }
}

/// What an action of a transaction does.
#[derive(Debug, Clone)]
pub enum TransactKind {
    /// Only checks the condition on the item with this key.
    Check(Item),
    /// Writes an item.
    Put(Item),
    /// Deletes the item with this key.
    Delete(Item),
    /// Changes the item with this key.
    Update(Item, Update),
}

/// The answer to [`TransactWrite`].
#[derive(Debug, Clone, Default)]
pub struct TransactWriteOutput {
    /// Capacity units by table, when asked for.
    pub consumed: Vec<Consumed>,
    /// Item collection sizes, when asked for.
    pub collections: Vec<CollectionMetrics>,
}
