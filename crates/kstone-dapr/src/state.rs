//! State: keys with values, ETags and lives, as items of the table `state`. Uses only the port to
//! items, so it is the same on the embedded database and on a DynamoDB far away.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kstone::ops::{Condition, DeleteItem, PutItem, TransactAction, TransactKind, TransactWrite};
use kstone::ports::Items;
use kstone::table::{KeyAttribute, KeySchema, TableSpec};
use kstone::{CancellationCode, Item};
use kstone_core::env::Clock;
use kstone_keyspace::{AskedTtl, Keyspace, Ttl};

use crate::condition;
use crate::entry::{self, Life, PK, SK, TTL};
use crate::error::{Error, Result};
use crate::etag::{Etag, Versions};
use crate::key::{Place, TABLE};
use crate::plan::{self, Planned};
use crate::time_to_live;
use crate::write::{Expected, Operation};

/// The keys of one batch of reads, and the writes of one transaction, as in DynamoDB.
pub(crate) const BATCH_MAX: usize = 100;
/// The bytes of items in one transaction; DynamoDB allows 4 MiB.
const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What an item may hold, its attribute names included.
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
    /// Whether the table was there when it was last looked for.
    table_is_ready: AtomicBool,
}

impl State {
    /// State in the table `state`, which is made by the first write if it is missing.
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

    /// Writes keys, each for itself: one whose ETag does not match keeps no other from being
    /// written, and the first of them is the answer. Any other error ends it; up to 100 keys
    /// nothing is written then.
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

    /// Writes keys in one commit if all of them are as expected, and else one by one.
    async fn commit_each(&self, planned: Vec<Planned>) -> Result<()> {
        let may_differ = planned.iter().any(|write| write.expected != Expected::Anything);
        if planned.len() < 2 || !may_differ {
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
        let bytes: usize = planned.iter().map(Planned::bytes).sum();
        if bytes > TRANSACTION_BYTES_MAX {
            return Err(Error::TooLarge(format!(
                "a transaction writes {bytes} bytes, and at most {TRANSACTION_BYTES_MAX} are allowed"
            )));
        }
        self.commit(planned).await
    }

    /// Checks operations and makes items of them, one write for each key.
    fn plan(&self, operations: Vec<Operation>) -> Result<Vec<Planned>> {
        let writes = operations.into_iter().map(|operation| {
            let place = Place::of(self.keyspace(), &operation.key)?;
            let item = self.item_of(&place, &operation)?;
            Ok(Planned { key: operation.key, place, expected: operation.expected, item })
        });
        plan::one_for_each_key(writes.collect::<Result<_>>()?)
    }

    /// The item that an operation puts; `None` if it deletes.
    fn item_of(&self, place: &Place, operation: &Operation) -> Result<Option<Item>> {
        let Some(value) = &operation.value else { return Ok(None) };
        let (key, now_ms) = (operation.key.as_str(), self.now_ms());
        let life = match time_to_live::asked(&operation.metadata)? {
            AskedTtl::Ms(ms) => Life::UntilSecond(time_to_live::second_of_expiry(now_ms, ms)),
            // Without a word the catalogue's rule counts, if one is in force. So a key that has
            // one is told that its item shall not end.
            AskedTtl::Never if self.has_life(key) => Life::WithoutEnd,
            _ => Life::Unsaid,
        };
        let version = self.inner.versions.next(now_ms);
        let item = entry::item(place, value.clone(), version, life);
        let bytes = item.size();
        if bytes > ITEM_BYTES_MAX {
            return Err(Error::TooLarge(format!(
                "key {key} and its value take {bytes} bytes, and at most {ITEM_BYTES_MAX} are allowed"
            )));
        }
        Ok(Some(item))
    }

    /// Whether a catalogue says how long such a key lives.
    fn has_life(&self, key: &str) -> bool {
        let place = kstone_keyspace::KeyStore::Table(TABLE);
        let found = self.keyspace().find(place, key.as_bytes());
        found.is_some_and(|found| found.pattern.ttl != Ttl::None)
    }

    async fn commit(&self, planned: Vec<Planned>) -> Result<()> {
        let mut known = self.items_expected(&planned).await?;
        let (mut actions, mut keys) = (Vec::new(), Vec::new());
        for Planned { key, place, expected, item } in planned {
            let condition = match expected {
                Expected::Anything => None,
                Expected::Absent => Some(condition::absent(self.now_ms())),
                Expected::Unchanged(etag) => match known.remove(&place) {
                    Some(item) if self.is(&item, etag) => Some(condition::content_is(item)),
                    _ => return Err(Error::EtagMismatch { key }),
                },
            };
            let (condition, placeholders) = match condition {
                Some((text, placeholders)) => (Some(Condition::Text(text)), placeholders),
                None => Default::default(),
            };
            let kind = match item {
                Some(item) => TransactKind::Put(item),
                None => TransactKind::Delete(place.key_item()),
            };
            let table = TABLE.to_owned();
            let return_on_failure = false;
            actions.push(TransactAction {
                table,
                kind,
                condition,
                placeholders,
                return_on_failure,
            });
            keys.push(key);
        }
        let request = match (actions.len(), actions.pop()) {
            (_, None) => return Ok(()),
            (1, Some(only)) => Request::alone(only),
            (_, Some(last)) => {
                actions.push(last);
                Request::Together(TransactWrite { actions, ..TransactWrite::default() })
            }
        };
        self.send(&request).await.map_err(|error| failed(error, keys))
    }

    /// Writes. The table is made, or looked at, before the first write, and again when somebody has
    /// dropped it.
    async fn send(&self, request: &Request) -> kstone::Result<()> {
        let is_ready = &self.inner.table_is_ready;
        if is_ready.load(Ordering::Relaxed) {
            match self.send_once(request).await {
                Err(kstone::Error::NotFound(_)) => {}
                done => return done,
            }
        }
        let key = KeySchema::hash_range(KeyAttribute::string(PK), KeyAttribute::string(SK));
        let spec = TableSpec { name: TABLE.to_owned(), key, ..TableSpec::default() };
        self.items().require_table(&spec, Some(TTL)).await?;
        is_ready.store(true, Ordering::Relaxed);
        self.send_once(request).await
    }

    async fn send_once(&self, request: &Request) -> kstone::Result<()> {
        match request {
            Request::Put(put) => self.items().put(put).await.map(drop),
            Request::Delete(delete) => self.items().delete(delete).await.map(drop),
            Request::Together(all) => self.items().transact_write(all).await.map(drop),
        }
    }

    /// The items that are to be as somebody read them. DynamoDB knows no checksums: they are read
    /// and compared here, and the write itself compares once more what was read.
    async fn items_expected(&self, planned: &[Planned]) -> Result<HashMap<Place, Item>> {
        let is_read = |write: &&Planned| matches!(write.expected, Expected::Unchanged(_));
        self.items_at(planned.iter().filter(is_read).map(|write| &write.place).collect()).await
    }

    fn is(&self, item: &Item, etag: Etag) -> bool {
        entry::is_live(item, self.now_ms()) && Etag::of(item) == etag
    }
}

/// What is asked of the port.
enum Request {
    Put(PutItem),
    Delete(DeleteItem),
    Together(TransactWrite),
}

impl Request {
    /// One write alone needs no transaction.
    fn alone(action: TransactAction) -> Request {
        let TransactAction { table, kind, condition, placeholders, .. } = action;
        match kind {
            TransactKind::Put(item) => {
                let put = PutItem { table, item, condition, placeholders, ..PutItem::default() };
                Request::Put(put)
            }
            TransactKind::Check(key) | TransactKind::Delete(key) | TransactKind::Update(key, _) => {
                let delete =
                    DeleteItem { table, key, condition, placeholders, ..DeleteItem::default() };
                Request::Delete(delete)
            }
        }
    }
}

/// Which key an error is about, if it is about one.
fn failed(error: kstone::Error, keys: Vec<String>) -> Error {
    let (at, refusal) = match &error {
        kstone::Error::ConditionFailed { .. } => (Some(0), None),
        kstone::Error::Refused(message) if keys.len() == 1 => (Some(0), Some(message.clone())),
        kstone::Error::TransactionCanceled { reasons } => {
            let with = |code| reasons.iter().position(|reason| reason.code == code);
            match with(CancellationCode::ValidationError) {
                Some(at) => {
                    let reason = reasons.get(at).and_then(|reason| reason.message.clone());
                    (Some(at), Some(reason.unwrap_or_default()))
                }
                None => (with(CancellationCode::ConditionalCheckFailed), None),
            }
        }
        _ => (None, None),
    };
    match (at.and_then(|at| keys.into_iter().nth(at)), refusal) {
        (Some(key), Some(refusal)) => Error::Refused { key, refusal },
        (Some(key), None) => Error::EtagMismatch { key },
        (None, _) => Error::Items(error),
    }
}
