//! [`Store`]: reads and writes JSON values under declared keys. All systems keep their state this
//! way.
//!
//! An item has `pk` and `sk` by its key, `value` as text (what the Dapr door shows), and, where
//! racing writers have to be told apart, `version` as a number. Its end (`ttl`) is added by the
//! rule of its pattern.

use std::sync::Arc;

use kstone_keyspace::typed::TypedKey;
use kstone_ports::items::{
    BatchGet, BatchGetTable, Condition, GetItem, KeyCondition, Placeholders, Query, TransactAction,
    TransactGet, TransactGetRequest, TransactKind,
};
use kstone_ports::items::{Items, write_together};
use kstone_ports::value::{Item, ItemBytes, Value, ValueRef};
use kstone_ports::{CancellationCode, CancellationReason};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Error, Result};
use crate::field::Invalid;
use crate::time::Moment;

/// The partition key attribute.
pub const PK: &str = "pk";
/// The sort key attribute.
pub const SK: &str = "sk";
/// The attribute that holds the value as text.
pub const VALUE: &str = "value";
/// The attribute that counts changes, of items that several writers change.
pub const VERSION: &str = "version";
/// The attribute by which items of these tables expire, in seconds.
const TTL: &str = "ttl";

/// How many items DynamoDB reads at once.
const BATCH_MAX: usize = 100;

/// A typed store of items under declared keys.
#[derive(Debug, Clone)]
pub struct Store {
    items: Arc<dyn Items>,
}

/// A stored value with its version.
#[derive(Debug, Clone, PartialEq)]
pub struct Versioned<T> {
    /// Its value.
    pub value: T,
    /// 0 if the item has none.
    pub version: u64,
}

/// An item with text in it, as a page shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its partition key.
    pub pk: String,
    /// Its sort key.
    pub sk: String,
    /// Its value as text.
    pub text: String,
    /// 0 if it has none.
    pub version: u64,
}

/// A part of a partition, in the order of the sort keys.
#[derive(Debug, Clone, Default)]
pub struct Range {
    /// The table.
    pub table: &'static str,
    /// The partition key.
    pub partition: String,
    /// The first sort key, included.
    pub first: String,
    /// The last sort key, included.
    pub last: String,
    /// From the last sort key to the first.
    pub newest_first: bool,
    /// How many at most; `None` for all.
    pub limit: Option<u32>,
    /// Go on behind this sort key.
    pub after: Option<String>,
}

impl Range {
    /// All keys of a pattern in a partition.
    pub fn of<K: TypedKey>(partition: String) -> Range {
        Range::with_prefix::<K>(partition, K::FACTS.sort_prefix)
    }

    /// The keys of a pattern's table whose sort key begins like this.
    pub fn with_prefix<K: TypedKey>(partition: String, prefix: &str) -> Range {
        // Keys are ASCII and no key may be empty: `!` comes before whatever may stand in one, and
        // `~` behind whatever follows the prefix.
        let first = if prefix.is_empty() { "!" } else { prefix };
        Range::between::<K>(partition, first.to_owned(), format!("{prefix}~"))
    }

    /// The keys of a pattern's table between two sort keys.
    pub fn between<K: TypedKey>(partition: String, first: String, last: String) -> Range {
        let table = table_of::<K>();
        Range { table, partition, first, last, ..Range::default() }
    }

    /// From the last sort key to the first.
    pub fn newest_first(mut self) -> Range {
        self.newest_first = true;
        self
    }

    /// At most so many.
    pub fn limit(mut self, limit: u32) -> Range {
        self.limit = Some(limit);
        self
    }

    /// Begins after this sort key.
    pub fn after(mut self, after: Option<String>) -> Range {
        self.after = after;
        self
    }

    /// Checks a cursor: it comes from the client, and must lie in the range.
    fn check(&self) -> Result<()> {
        match &self.after {
            Some(after) if *after < self.first || *after > self.last => {
                Err(Invalid::cursor(after).into())
            }
            _ => Ok(()),
        }
    }
}

/// The condition under which a write happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// Whatever is there.
    Any,
    /// Nothing is there.
    Absent,
    /// What is there has this version; 0 is what has none, also what is not there.
    Version(u64),
}

impl Store {
    /// A store of these items.
    pub fn new(items: Arc<dyn Items>) -> Store {
        Store { items }
    }

    /// Reads one key.
    pub async fn get<K: TypedKey, T: DeserializeOwned>(
        &self,
        key: &K,
    ) -> Result<Option<Versioned<T>>> {
        let request = GetItem {
            table: table_of::<K>().to_owned(),
            key: item_key(key),
            consistent_read: true,
            ..GetItem::default()
        };
        let found = self.items.get(&request).await?.item;
        found.map(|item| versioned(row(&item)?)).transpose()
    }

    /// Reads several keys in one transaction: all as of one moment.
    pub async fn get_together(&self, keys: Vec<(&str, Item)>) -> Result<Vec<Option<Row>>> {
        let gets = keys.into_iter().map(|(table, key)| TransactGetRequest {
            table: table.to_owned(),
            key,
            ..TransactGetRequest::default()
        });
        let request = TransactGet { gets: gets.collect(), ..TransactGet::default() };
        let found = self.items.transact_get(&request).await?.items;
        found.iter().map(|item| item.as_ref().map(row).transpose()).collect()
    }

    /// Reads several keys of one table in batches; missing ones are left out.
    pub async fn get_many<K: TypedKey>(&self, keys: &[K]) -> Result<Vec<Row>> {
        let mut found = Vec::with_capacity(keys.len());
        for batch in keys.chunks(BATCH_MAX) {
            let mut keys: Vec<Item> = batch.iter().map(item_key).collect();
            while !keys.is_empty() {
                let table = BatchGetTable {
                    table: table_of::<K>().to_owned(),
                    keys,
                    consistent_read: true,
                    ..BatchGetTable::default()
                };
                let mut request = BatchGet { tables: vec![table], ..BatchGet::default() };
                let output = self.items.batch_get(&request).await?;
                for item in output.found.iter().flat_map(|(_, items)| items) {
                    found.push(row(item)?);
                }
                let left: Vec<usize> =
                    output.unprocessed.into_iter().flat_map(|(_, at)| at).collect();
                let asked = request.tables.pop().map(|table| table.keys).unwrap_or_default();
                let left = (0..).zip(asked).filter(|(at, _)| left.contains(at));
                keys = left.map(|(_, key)| key).collect();
            }
        }
        Ok(found)
    }

    /// The values of several keys of one table; missing ones are left out.
    pub async fn values<K: TypedKey, T: DeserializeOwned>(&self, keys: &[K]) -> Result<Vec<T>> {
        self.get_many(keys).await?.iter().map(parse).collect()
    }

    /// The items of a range; with a limit, at most so many. Answers also whether there are more.
    pub async fn list(&self, range: &Range) -> Result<(Vec<Row>, bool)> {
        range.check()?;
        let mut rows = Vec::new();
        let key_at = |sk: &str| Item::new().with(PK, range.partition.as_str()).with(SK, sk);
        let mut start = range.after.as_deref().map(key_at);
        loop {
            let left = range.limit.map(|limit| limit.saturating_sub(rows.len() as u32));
            let query = Query {
                table: range.table.to_owned(),
                key_condition: Some(KeyCondition::Text(
                    "pk = :pk AND sk BETWEEN :first AND :last".to_owned(),
                )),
                placeholders: values(vec![
                    (":pk", range.partition.as_str().into()),
                    (":first", range.first.as_str().into()),
                    (":last", range.last.as_str().into()),
                ]),
                limit: left,
                start: start.take(),
                backward: range.newest_first,
                consistent_read: true,
                ..Query::default()
            };
            let page = self.items.query(&query).await?;
            for item in page.items.iter().flatten() {
                rows.push(row(item)?);
            }
            start = page.next;
            let is_full = range.limit.is_some_and(|limit| rows.len() as u32 >= limit);
            if start.is_none() || is_full {
                return Ok((rows, start.is_some()));
            }
        }
    }

    /// Commits a transaction: all writes or none.
    pub async fn commit(&self, actions: Vec<TransactAction>) -> Result<(), CommitError> {
        match write_together(&*self.items, actions).await {
            Ok(()) => Ok(()),
            Err(kstone_ports::Error::TransactionCanceled { reasons }) => {
                Err(CommitError::of(reasons))
            }
            Err(error) => Err(CommitError::Error(error.into())),
        }
    }

    /// Writes one item.
    pub async fn put(&self, write: TransactAction) -> Result<()> {
        self.commit(vec![write]).await.map_err(|stopped| stopped.into_error("the item"))
    }
}

/// Why a transaction was not committed.
#[derive(Debug)]
pub enum CommitError {
    /// The guards of these actions did not hold, by their places in the transaction.
    PreconditionsFailed(Vec<usize>),
    /// Somebody else was at work on the same items. Trying again helps.
    Busy,
    /// Something else.
    Error(Error),
}

impl CommitError {
    fn of(reasons: Vec<CancellationReason>) -> CommitError {
        let at = |code: CancellationCode| {
            let found = reasons.iter().enumerate().filter(move |(_, it)| it.code == code);
            found.map(|(at, _)| at).collect::<Vec<usize>>()
        };
        let failed = at(CancellationCode::ConditionalCheckFailed);
        if !failed.is_empty() {
            return CommitError::PreconditionsFailed(failed);
        }
        let is_busy = |code| !at(code).is_empty();
        if is_busy(CancellationCode::TransactionConflict) || is_busy(CancellationCode::Throttled) {
            return CommitError::Busy;
        }
        CommitError::Error(kstone_ports::Error::TransactionCanceled { reasons }.into())
    }

    /// The error for callers that do not retry.
    pub fn into_error(self, what: &str) -> Error {
        match self {
            CommitError::PreconditionsFailed(_) | CommitError::Busy => {
                Error::Conflict { what: what.to_owned(), current: None }
            }
            CommitError::Error(error) => error,
        }
    }
}

/// Writes a value as JSON.
pub fn put<K: TypedKey>(key: &K, value: &impl Serialize) -> Result<TransactAction> {
    Ok(put_text(key, json(key, value)?))
}

/// Writes a value as JSON with a version, if the precondition holds.
pub fn put_version<K: TypedKey>(
    key: &K,
    value: &impl Serialize,
    version: u64,
    guard: Precondition,
) -> Result<TransactAction> {
    let item = item_key(key).with(VALUE, json(key, value)?).with(VERSION, version);
    Ok(with_precondition(action::<K>(TransactKind::Put(item)), guard))
}

/// Writes a text.
pub fn put_text<K: TypedKey>(key: &K, text: impl Into<String>) -> TransactAction {
    action::<K>(TransactKind::Put(item_key(key).with(VALUE, text.into())))
}

/// Writes a text with a version.
pub fn put_text_version<K: TypedKey>(key: &K, text: &str, version: u64) -> TransactAction {
    let item = item_key(key).with(VALUE, text).with(VERSION, version);
    action::<K>(TransactKind::Put(item))
}

/// Writes nothing, but cancels the transaction unless the precondition holds.
pub fn check<K: TypedKey>(key: &K, guard: Precondition) -> TransactAction {
    with_precondition(action::<K>(TransactKind::Check(item_key(key))), guard)
}

/// How long the text is that a put writes.
pub fn text_len(action: &TransactAction) -> usize {
    match &action.kind {
        TransactKind::Put(item) => item.get(VALUE).and_then(Value::as_str).map_or(0, str::len),
        _ => 0,
    }
}

/// The same write with an explicit expiry, instead of that of its pattern.
pub fn expiring(mut action: TransactAction, at: Moment) -> TransactAction {
    if let TransactKind::Put(item) = &mut action.kind {
        item.insert(TTL, at.epoch_ms().div_ceil(1000));
    }
    action
}

/// Deletes the item, if it exists.
pub fn delete<K: TypedKey>(key: &K) -> TransactAction {
    action::<K>(TransactKind::Delete(item_key(key)))
}

/// The same write, if the precondition holds.
pub fn with_precondition(mut action: TransactAction, guard: Precondition) -> TransactAction {
    let names = || Some(vec![("#version".to_owned(), VERSION.to_owned())]);
    let (text, placeholders) = match guard {
        Precondition::Any => return action,
        Precondition::Absent => ("attribute_not_exists(pk)", Placeholders::default()),
        Precondition::Version(0) => {
            let placeholders = Placeholders { names: names(), values: None };
            ("attribute_not_exists(#version)", placeholders)
        }
        Precondition::Version(version) => {
            let mut placeholders = values(vec![(":version", version.into())]);
            placeholders.names = names();
            ("#version = :version", placeholders)
        }
    };
    action.condition = Some(Condition::Text(text.to_owned()));
    action.placeholders = placeholders;
    action
}

/// The key attributes of an item.
pub fn item_key<K: TypedKey>(key: &K) -> Item {
    Item::new().with(PK, key.partition_key()).with(SK, key.sort_key())
}

/// The table that the items of a pattern are in.
pub fn table_of<K: TypedKey>() -> &'static str {
    K::FACTS.table.unwrap_or("state")
}

/// Parses the value of a row.
pub fn parse<T: DeserializeOwned>(row: &Row) -> Result<T> {
    serde_json::from_str(&row.text).map_err(|error| unreadable(&row.pk, &row.sk, error.to_string()))
}

/// Parses the key of a row.
pub fn key_of<K: TypedKey>(row: &Row) -> Option<K> {
    K::parse(format!("{}:{}", row.pk, row.sk).as_bytes())
}

fn versioned<T: DeserializeOwned>(row: Row) -> Result<Versioned<T>> {
    Ok(Versioned { value: parse(&row)?, version: row.version })
}

/// A value as the text that is kept of it.
pub fn json<K: TypedKey>(key: &K, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::Unreadable { key: key.key(), problem: error.to_string() })
}

fn action<K: TypedKey>(kind: TransactKind) -> TransactAction {
    TransactAction {
        table: table_of::<K>().to_owned(),
        kind,
        condition: None,
        placeholders: Placeholders::default(),
        return_on_failure: false,
    }
}

fn values(values: Vec<(&str, Value)>) -> Placeholders {
    let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Placeholders { names: None, values: Some(values) }
}

fn row(item: &ItemBytes) -> Result<Row> {
    let item = item.as_ref();
    let text = |name: &str| match item.get(name) {
        Some(ValueRef::S(text)) => text.to_owned(),
        _ => String::new(),
    };
    let version = match item.get(VERSION) {
        Some(ValueRef::N(number)) => number.decimal().as_str().parse().unwrap_or_default(),
        _ => 0,
    };
    let (pk, sk) = (text(PK), text(SK));
    match item.get(VALUE) {
        Some(ValueRef::S(value)) => Ok(Row { pk, sk, text: value.to_owned(), version }),
        Some(ValueRef::B(bytes)) => match std::str::from_utf8(bytes) {
            Ok(value) => Ok(Row { pk, sk, text: value.to_owned(), version }),
            Err(error) => Err(unreadable(&pk, &sk, error.to_string())),
        },
        _ => Err(unreadable(&pk, &sk, "it has no text as its value".to_owned())),
    }
}

fn unreadable(pk: &str, sk: &str, problem: String) -> Error {
    Error::Unreadable { key: format!("{pk}:{sk}"), problem }
}
