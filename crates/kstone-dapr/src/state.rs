//! State: keys with values, ETags and times to live, as items of the table `state`; and its writes.
//! Uses only the port to items, so it is the same on the embedded database and a remote DynamoDB.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kstone_core::env::Clock;
use kstone_keyspace::{Keyspace, RequestedTtl, Ttl};
use kstone_ports::CancellationCode;
use kstone_ports::items::Items;
use kstone_ports::items::{
    Condition, DeleteItem, PutItem, TransactAction, TransactKind, TransactWrite,
};
use kstone_ports::items::{KeyAttribute, KeySchema, TableSpec};
use kstone_ports::value::Item;

use crate::condition;
use crate::entry::{self, Expiry, PK, SK, TTL};
use crate::error::{Error, Result};
use crate::etag::{Etag, Versions};
use crate::key::{ItemKey, TABLE};
use crate::plan::{self, PlannedWrite};
use crate::time_to_live;
use crate::write::{Expected, Operation};

/// DynamoDB's limit for the keys of a batch of reads and for the writes of a transaction.
pub(crate) const BATCH_MAX: usize = 100;
/// DynamoDB's limit for the items of one transaction.
const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// DynamoDB's limit for an item, its attribute names included.
const ITEM_BYTES_MAX: usize = 400 * 1024;

/// State behind a port to items. Cloning gives another handle to the same.
#[derive(Debug, Clone)]
pub struct State {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    items: Arc<dyn Items>,
    keyspace: Arc<Keyspace>,
    clock: Arc<dyn Clock>,
    versions: Versions,
    /// Whether the table existed at the last write.
    table_is_ready: AtomicBool,
}

impl State {
    /// State in the table `state`, which the first write creates if it is missing.
    pub fn new(items: Arc<dyn Items>, keyspace: Arc<Keyspace>, clock: Arc<dyn Clock>) -> State {
        let (versions, table_is_ready) = Default::default();
        State { inner: Arc::new(Inner { items, keyspace, clock, versions, table_is_ready }) }
    }

    pub(crate) fn items(&self) -> &dyn Items {
        &*self.inner.items
    }

    pub(crate) fn keyspace(&self) -> &Keyspace {
        &self.inner.keyspace
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.inner.clock.now_ms()
    }

    /// Writes keys independently: one whose ETag does not match does not keep the others from being
    /// written, and the first mismatch is returned. Any other error ends the write; with up to 100
    /// keys, nothing is written then.
    pub async fn write(&self, operations: Vec<Operation>) -> Result<()> {
        let (mut planned, mut mismatch) = (self.plan(operations)?, None);
        while !planned.is_empty() {
            let mut bytes = 0;
            let fits = planned.iter().take(BATCH_MAX).take_while(|write| {
                bytes += write.bytes();
                bytes <= TRANSACTION_BYTES_MAX
            });
            let rest = planned.split_off(fits.count().max(1));
            let batch = std::mem::replace(&mut planned, rest);
            match self.commit_each(batch).await {
                Err(Error::EtagMismatch { key }) => {
                    mismatch.get_or_insert(Error::EtagMismatch { key });
                }
                done => done?,
            }
        }
        mismatch.map_or(Ok(()), Err)
    }

    /// Writes keys in one commit if all conditions hold, and one by one otherwise.
    async fn commit_each(&self, planned: Vec<PlannedWrite>) -> Result<()> {
        let has_conditions = planned.iter().any(|write| write.expected != Expected::Anything);
        if planned.len() < 2 || !has_conditions {
            return self.commit(planned).await;
        }
        match self.commit(planned.clone()).await {
            Err(Error::EtagMismatch { .. }) => {}
            done => return done,
        }
        let mut mismatch = None;
        for write in planned {
            match self.commit(vec![write]).await {
                Err(Error::EtagMismatch { key }) => {
                    mismatch.get_or_insert(Error::EtagMismatch { key });
                }
                done => done?,
            }
        }
        mismatch.map_or(Ok(()), Err)
    }

    /// Writes keys, all or nothing. Operations on the same key take effect in their order.
    pub async fn transact(&self, operations: Vec<Operation>) -> Result<()> {
        let planned = self.plan(operations)?;
        if planned.len() > BATCH_MAX {
            return Err(Error::TooLarge(format!(
                "a transaction writes {} keys, and at most {BATCH_MAX} are allowed",
                planned.len()
            )));
        }
        let bytes: usize = planned.iter().map(PlannedWrite::bytes).sum();
        if bytes > TRANSACTION_BYTES_MAX {
            return Err(Error::TooLarge(format!(
                "a transaction writes {bytes} bytes, and at most {TRANSACTION_BYTES_MAX} are allowed"
            )));
        }
        self.commit(planned).await
    }

    /// Checks operations, and turns them into one write for each key.
    fn plan(&self, operations: Vec<Operation>) -> Result<Vec<PlannedWrite>> {
        let writes = operations.into_iter().map(|operation| {
            let item_key = ItemKey::of(self.keyspace(), &operation.key)?;
            let item = self.item_of(&item_key, &operation)?;
            Ok(PlannedWrite { key: operation.key, item_key, expected: operation.expected, item })
        });
        plan::one_write_per_key(writes.collect::<Result<_>>()?)
    }

    /// The item that an operation puts; `None` if it deletes.
    fn item_of(&self, item_key: &ItemKey, operation: &Operation) -> Result<Option<Item>> {
        let Some(value) = &operation.value else { return Ok(None) };
        let (key, now_ms) = (operation.key.as_str(), self.now_ms());
        let expiry = match time_to_live::requested(&operation.metadata)? {
            RequestedTtl::Ms(ms) => Expiry::AtSecond(time_to_live::second_of_expiry(now_ms, ms)),
            // An item without `ttl` gets the catalogue's default, so one that is never to expire has
            // to say so where there is a default.
            RequestedTtl::Never if self.has_declared_ttl(key) => Expiry::Never,
            _ => Expiry::Default,
        };
        let version = self.inner.versions.next(now_ms);
        let item = entry::item(item_key, value.clone(), version, expiry);
        let bytes = item.size();
        if bytes > ITEM_BYTES_MAX {
            return Err(Error::TooLarge(format!(
                "key {key} and its value take {bytes} bytes, and at most {ITEM_BYTES_MAX} are allowed"
            )));
        }
        Ok(Some(item))
    }

    /// Whether the catalogue declares a time to live for a key.
    fn has_declared_ttl(&self, key: &str) -> bool {
        let table = kstone_keyspace::KeyStore::Table(TABLE);
        let found = self.keyspace().find(table, key.as_bytes());
        found.is_some_and(|found| found.pattern.ttl != Ttl::None)
    }

    async fn commit(&self, planned: Vec<PlannedWrite>) -> Result<()> {
        let mut current = self.items_to_compare(&planned).await?;
        let (mut actions, mut keys) = (Vec::new(), Vec::new());
        for PlannedWrite { key, item_key, expected, item } in planned {
            let condition = match expected {
                Expected::Anything => None,
                Expected::Absent => Some(condition::absent(self.now_ms())),
                Expected::Unchanged(etag) => match current.remove(&item_key) {
                    Some(item) if self.has_etag(&item, etag) => Some(condition::is_unchanged(item)),
                    _ => return Err(Error::EtagMismatch { key }),
                },
            };
            let (condition, placeholders) = match condition {
                Some((text, placeholders)) => (Some(Condition::Text(text)), placeholders),
                None => Default::default(),
            };
            let kind = match item {
                Some(item) => TransactKind::Put(item),
                None => TransactKind::Delete(item_key.to_item()),
            };
            let action = TransactAction::new(TABLE, kind);
            actions.push(TransactAction { condition, placeholders, ..action });
            keys.push(key);
        }
        let request = match (actions.len(), actions.pop()) {
            (_, None) => return Ok(()),
            (1, Some(only)) => WriteRequest::single(only),
            (_, Some(last)) => {
                actions.push(last);
                WriteRequest::Transaction(TransactWrite { actions, ..TransactWrite::default() })
            }
        };
        self.send(&request).await.map_err(|error| error_with_key(error, keys))
    }

    /// Sends a write. The table is checked or created before the first write, and again after it was
    /// dropped.
    async fn send(&self, request: &WriteRequest) -> kstone_ports::Result<()> {
        let is_ready = &self.inner.table_is_ready;
        if is_ready.load(Ordering::Relaxed) {
            match self.send_once(request).await {
                Err(kstone_ports::Error::NotFound(_)) => {}
                done => return done,
            }
        }
        let key = KeySchema::hash_range(KeyAttribute::string(PK), KeyAttribute::string(SK));
        let spec = TableSpec { name: TABLE.to_owned(), key, ..TableSpec::default() };
        self.items().require_table(&spec, Some(TTL)).await?;
        is_ready.store(true, Ordering::Relaxed);
        self.send_once(request).await
    }

    async fn send_once(&self, request: &WriteRequest) -> kstone_ports::Result<()> {
        match request {
            WriteRequest::Put(put) => self.items().put(put).await.map(drop),
            WriteRequest::Delete(delete) => self.items().delete(delete).await.map(drop),
            WriteRequest::Transaction(all) => self.items().transact_write(all).await.map(drop),
        }
    }

    /// Reads the items whose ETags have to match. DynamoDB cannot compute their checksums, so ETags
    /// are compared here, and the condition of the write is that the item is unchanged since.
    async fn items_to_compare(&self, planned: &[PlannedWrite]) -> Result<HashMap<ItemKey, Item>> {
        let is_read = |write: &&PlannedWrite| matches!(write.expected, Expected::Unchanged(_));
        self.read_items(planned.iter().filter(is_read).map(|write| &write.item_key).collect()).await
    }

    fn has_etag(&self, item: &Item, etag: Etag) -> bool {
        entry::is_live(item, self.now_ms()) && Etag::of(item) == etag
    }
}

/// A write as the port to items takes it.
enum WriteRequest {
    Put(PutItem),
    Delete(DeleteItem),
    Transaction(TransactWrite),
}

impl WriteRequest {
    /// A single write, which needs no transaction.
    fn single(action: TransactAction) -> WriteRequest {
        let TransactAction { table, kind, condition, placeholders, .. } = action;
        match kind {
            TransactKind::Put(item) => {
                let put = PutItem { table, item, condition, placeholders, ..PutItem::default() };
                WriteRequest::Put(put)
            }
            TransactKind::Check(key) | TransactKind::Delete(key) | TransactKind::Update(key, _) => {
                let delete =
                    DeleteItem { table, key, condition, placeholders, ..DeleteItem::default() };
                WriteRequest::Delete(delete)
            }
        }
    }
}

/// Adds the key to an error that is about one key.
fn error_with_key(error: kstone_ports::Error, keys: Vec<String>) -> Error {
    let (index, refusal) = match &error {
        kstone_ports::Error::ConditionFailed { .. } => (Some(0), None),
        kstone_ports::Error::Refused(message) if keys.len() == 1 => {
            (Some(0), Some(message.clone()))
        }
        kstone_ports::Error::TransactionCanceled { reasons } => {
            let with = |code| reasons.iter().position(|reason| reason.code == code);
            match with(CancellationCode::ValidationError) {
                Some(index) => {
                    let reason = reasons.get(index).and_then(|reason| reason.message.clone());
                    (Some(index), Some(reason.unwrap_or_default()))
                }
                None => (with(CancellationCode::ConditionalCheckFailed), None),
            }
        }
        _ => (None, None),
    };
    match (index.and_then(|index| keys.into_iter().nth(index)), refusal) {
        (Some(key), Some(refusal)) => Error::Refused { key, refusal },
        (Some(key), None) => Error::EtagMismatch { key },
        (None, _) => Error::Items(error),
    }
}
