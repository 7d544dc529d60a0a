//! The requests that read, with their answers.

use crate::items::{CapacityDetail, Condition, Consumed, KeyCondition, Placeholders, Projection};
use crate::value::{Item, ItemBytes};

/// Reads one item by its key.
#[derive(Debug, Clone, Default)]
pub struct GetItem {
    /// The table's name.
    pub table: String,
    /// The key attributes.
    pub key: Item,
    /// Which attributes to return; all of them when `None`.
    pub projection: Option<Projection>,
    /// What the projection's placeholders stand for.
    pub placeholders: Placeholders,
    /// Sees every write that was acknowledged before. Costs twice the capacity units; the embedded
    /// database always reads like that.
    pub consistent_read: bool,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
}

/// The answer to [`GetItem`].
#[derive(Debug, Clone, Default)]
pub struct GetItemOutput {
    /// The item, if there is one.
    pub item: Option<ItemBytes>,
    /// Capacity units, when asked for.
    pub consumed: Option<Consumed>,
}

/// Reads the items of one partition in the order of their sort key.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// The table's name.
    pub table: String,
    /// The index to ask instead of the table.
    pub index: Option<String>,
    /// Which partition, and which part of it.
    pub key_condition: Option<KeyCondition>,
    /// Which of the items found to return.
    pub filter: Option<Condition>,
    /// Which attributes to return.
    pub projection: Option<Projection>,
    /// What the placeholders of all expressions stand for.
    pub placeholders: Placeholders,
    /// What to return; `None` is DynamoDB's default for the request.
    pub select: Option<Select>,
    /// How many items to look at, at most.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub start: Option<Item>,
    /// From the greatest sort key down.
    pub backward: bool,
    /// Costs twice the capacity units; refused on global indexes.
    pub consistent_read: bool,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
}

/// What a query or scan returns of the items it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Select {
    /// Every attribute of the item, fetched from the table if the index lacks them.
    AllAttributes,
    /// Every attribute that the index holds.
    AllProjectedAttributes,
    /// Those that the projection names.
    SpecificAttributes,
    /// How many, and no item.
    Count,
}

/// One of several parts that together are the whole table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Which part, from 0.
    pub index: u32,
    /// How many parts there are, 1 to 1,000,000.
    pub total: u32,
}

/// Reads every item of a table or an index. Answers with a
/// [`QueryOutput`](crate::items::QueryOutput).
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The table's name.
    pub table: String,
    /// The index to read instead of the table.
    pub index: Option<String>,
    /// Which of the items found to return.
    pub filter: Option<Condition>,
    /// Which attributes to return.
    pub projection: Option<Projection>,
    /// What the placeholders of all expressions stand for.
    pub placeholders: Placeholders,
    /// What to return; `None` is DynamoDB's default for the request.
    pub select: Option<Select>,
    /// How many items to look at, at most.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub start: Option<Item>,
    /// The part of the table that this worker reads.
    pub segment: Option<Segment>,
    /// Costs twice the capacity units; refused on global indexes.
    pub consistent_read: bool,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
}

/// The answer to [`Query`] and [`Scan`](crate::items::Scan): one page.
#[derive(Debug, Clone, Default)]
pub struct QueryOutput {
    /// The items, unless only their count was asked for.
    pub items: Option<Vec<ItemBytes>>,
    /// How many passed the filter.
    pub count: u32,
    /// How many were looked at.
    pub scanned: u32,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Item>,
    /// Capacity units, when asked for.
    pub consumed: Option<Consumed>,
}

/// Reads up to 100 items of one or more tables.
#[derive(Debug, Clone, Default)]
pub struct BatchGet {
    /// Each table with the keys to read.
    pub tables: Vec<BatchGetTable>,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
}

/// The keys to read of one table.
#[derive(Debug, Clone, Default)]
pub struct BatchGetTable {
    /// The table's name.
    pub table: String,
    /// The keys.
    pub keys: Vec<Item>,
    /// Which attributes to return.
    pub projection: Option<Projection>,
    /// What the projection's placeholders stand for.
    pub placeholders: Placeholders,
    /// Costs twice the capacity units.
    pub consistent_read: bool,
}

/// The answer to [`BatchGet`].
#[derive(Debug, Clone, Default)]
pub struct BatchGetOutput {
    /// The items found, by table, in the order asked; a table without any is there too.
    pub found: Vec<(String, Vec<ItemBytes>)>,
    /// The keys beyond 16 MB of answer, as indexes into [`BatchGetTable::keys`], by table.
    pub unprocessed: Vec<(String, Vec<usize>)>,
    /// Capacity units by table, when asked for.
    pub consumed: Vec<Consumed>,
}

/// Reads up to 100 items as of one moment.
#[derive(Debug, Clone, Default)]
pub struct TransactGet {
    /// What to read.
    pub gets: Vec<TransactGetRequest>,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
}

/// One read of a [`TransactGet`].
#[derive(Debug, Clone, Default)]
pub struct TransactGetRequest {
    /// The table's name.
    pub table: String,
    /// The key attributes.
    pub key: Item,
    /// Which attributes to return.
    pub projection: Option<Projection>,
    /// What the projection's placeholders stand for.
    pub placeholders: Placeholders,
}

/// The answer to [`TransactGet`].
#[derive(Debug, Clone, Default)]
pub struct TransactGetOutput {
    /// One for each read, in order.
    pub items: Vec<Option<ItemBytes>>,
    /// Capacity units by table, when asked for.
    pub consumed: Vec<Consumed>,
}
