//! [`Stores`]: both ports of a database, with helpers that read table keys and Redis replies.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kstone::policy::SUBJECTS_TABLE;
use kstone_ports::items::Items;
use kstone_ports::items::{KeyAttribute, KeyType, TtlState};
use kstone_ports::items::{KeyCondition, Placeholders, Query};
use kstone_ports::keys::Keys;
use kstone_ports::keys::Value as Reply;
use kstone_ports::value::{Item, ItemBytes, ItemRef, Number, Value, ValueRef};

use crate::index::IndexEntryKey;
use crate::keyspace::Keyspace;

/// The two ports of a database that hold data of persons.
#[derive(Debug, Clone)]
pub struct Stores {
    /// Items. To erase, a handle that may write to the database's own tables.
    pub items: Arc<dyn Items>,
    /// Keys of Redis; any of the databases.
    pub keys: Arc<dyn Keys>,
    /// What is declared.
    pub keyspace: Arc<Keyspace>,
}

/// Why data of a person could not be listed, exported or erased.
#[derive(Debug, thiserror::Error)]
pub enum ErasureError {
    /// The storage could not be asked, or refused.
    #[error(transparent)]
    Store(#[from] kstone_ports::Error),
    /// What is stored makes no sense here.
    #[error("{0}")]
    Unreadable(String),
    /// Another erasure is under way. Wait for it.
    #[error("another erasure is under way; wait for it")]
    Running,
    /// Some of the erasures that were interrupted could not go on; the others are done. It says which,
    /// and why.
    #[error("erasures that could not go on: {0}")]
    Unfinished(String),
    /// A value changes faster than the person can be taken out of it. Ask again.
    #[error("{0} is being changed all the time; try again")]
    Busy(String),
}

impl From<kstone::Error> for ErasureError {
    fn from(error: kstone::Error) -> ErasureError {
        ErasureError::Store(error.into())
    }
}

pub(crate) type Result<T, E = ErasureError> = std::result::Result<T, E>;

/// The key schema of a table.
#[derive(Debug, Clone)]
pub(super) struct TableKey {
    pub(super) pk: KeyAttribute,
    pub(super) sk: Option<KeyAttribute>,
    pub(super) ttl: Option<String>,
}

/// Cached key schemas by table.
pub(super) type TableKeys = BTreeMap<String, Option<TableKey>>;

impl Stores {
    /// The entries of the index of persons under this `pk`, wherever they are.
    pub(super) async fn entries(&self, pk: &str) -> Result<Vec<IndexEntryKey>> {
        let mut found = Vec::new();
        // Without the table, no policy was ever in force here.
        each_in_partition(&*self.items, SUBJECTS_TABLE, pk, |item| {
            if let Some(ValueRef::S(sk)) = item.as_ref().get("sk") {
                found.push(IndexEntryKey::parse(sk).ok_or_else(|| unreadable(pk, sk))?);
            }
            Ok(())
        })
        .await?;
        Ok(found)
    }

    /// How items of a table are named; `None` when there is no such table.
    pub(super) async fn table<'t>(
        &self,
        known: &'t mut TableKeys,
        name: &str,
    ) -> Result<Option<&'t TableKey>> {
        if !known.contains_key(name) {
            let described = match self.items.describe(name).await {
                Err(kstone_ports::Error::NotFound(_)) => None,
                described => Some(described?),
            };
            let key = described.and_then(|table| {
                let ttl = match table.ttl {
                    TtlState::On(name) | TtlState::Enabling(name) => Some(name),
                    TtlState::Off | TtlState::Disabling(_) => None,
                };
                let mut hash = table.spec.key.hash.into_iter();
                Some(TableKey {
                    pk: hash.next()?,
                    sk: table.spec.key.range.into_iter().next(),
                    ttl,
                })
            });
            known.insert(name.to_owned(), key);
        }
        Ok(known.get(name).and_then(Option::as_ref))
    }

    /// The port to one of the databases of Redis.
    pub(super) fn keys_of(&self, db: u8) -> Result<Arc<dyn Keys>> {
        let no_such = || ErasureError::Unreadable(format!("there is no database {db} of Redis"));
        self.keys.database(db).ok_or_else(no_such)
    }
}

fn unreadable(pk: &str, sk: &str) -> ErasureError {
    ErasureError::Unreadable(format!(
        "the index of persons has an entry of no known form: {pk} {sk}"
    ))
}

impl TableKey {
    /// The key attributes of an item.
    pub(super) fn item(&self, pk: &[u8], sk: Option<&[u8]>) -> Option<Item> {
        let item = Item::new().with(self.pk.name.as_str(), value(self.pk.kind, pk)?);
        match (&self.sk, sk) {
            (Some(attribute), Some(sk)) => {
                Some(item.with(attribute.name.as_str(), value(attribute.kind, sk)?))
            }
            (None, None) => Some(item),
            _ => None,
        }
    }

    /// Whether an item has this key.
    pub(super) fn is(&self, item: ItemRef<'_>, pk: &[u8], sk: Option<&[u8]>) -> bool {
        let same = |name: &str, wanted: &[u8]| match item.get(name) {
            Some(ValueRef::S(text)) => text.as_bytes() == wanted,
            Some(ValueRef::B(bytes)) => bytes == wanted,
            Some(ValueRef::N(number)) => number.decimal().as_bytes() == wanted,
            _ => false,
        };
        let sk_is = match (&self.sk, sk) {
            (Some(attribute), Some(sk)) => same(&attribute.name, sk),
            (attribute, sk) => attribute.is_none() && sk.is_none(),
        };
        sk_is && same(&self.pk.name, pk)
    }

    /// When an item ends.
    pub(super) fn expires_at_ms(&self, item: ItemRef<'_>) -> Option<u64> {
        match item.get(self.ttl.as_deref()?)? {
            ValueRef::N(second) => {
                let second: f64 = second.decimal().as_str().parse().ok()?;
                Some((second as u64).saturating_mul(1000)).filter(|ms| *ms > 0)
            }
            _ => None,
        }
    }
}

/// A key attribute from its bytes as the index has them.
fn value(kind: KeyType, bytes: &[u8]) -> Option<Value> {
    let text = || std::str::from_utf8(bytes).ok();
    match kind {
        KeyType::S => Some(Value::S(text()?.to_owned())),
        KeyType::N => Some(Value::N(text()?.parse::<Number>().ok()?)),
        KeyType::B => Some(Value::B(Bytes::copy_from_slice(bytes))),
    }
}

/// Looks at every item of a partition; at none if there is no such table.
pub(super) async fn each_in_partition(
    items: &dyn Items,
    table: &str,
    pk: &str,
    mut each: impl FnMut(&ItemBytes) -> Result<()>,
) -> Result<()> {
    let mut start = None;
    loop {
        let query = Query {
            table: table.to_owned(),
            key_condition: Some(KeyCondition::Text("pk = :pk".to_owned())),
            placeholders: Placeholders {
                names: None,
                values: Some(vec![(":pk".to_owned(), Value::S(pk.to_owned()))]),
            },
            consistent_read: true,
            start: start.take(),
            ..Query::default()
        };
        let page = match items.query(&query).await {
            Err(kstone_ports::Error::NotFound(_)) => return Ok(()),
            page => page?,
        };
        page.items.iter().flatten().try_for_each(&mut each)?;
        start = page.next;
        if start.is_none() {
            return Ok(());
        }
    }
}

/// A command of Redis.
pub(super) fn command<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<Bytes> {
    parts.into_iter().map(Bytes::copy_from_slice).collect()
}

/// The bytes of a reply.
pub(super) fn bytes_of(reply: &Reply) -> Option<&[u8]> {
    match reply {
        Reply::Bulk(bytes) => Some(bytes),
        Reply::Simple(text) => Some(text.as_bytes()),
        _ => None,
    }
}

/// Asks Redis several things at once. More than one batch would hold too much at a time.
pub(super) async fn pipeline(keys: &dyn Keys, commands: &[Vec<Bytes>]) -> Result<Vec<Reply>> {
    const AT_A_TIME: usize = 1000;
    let mut replies = Vec::with_capacity(commands.len());
    for some in commands.chunks(AT_A_TIME) {
        for reply in keys.pipeline(some).await? {
            replies.push(match reply {
                Ok(reply) => reply,
                // A key that holds something else by now.
                Err(fault) if fault.to_string().starts_with("WRONGTYPE") => Reply::Null,
                Err(fault) => return Err(kstone_ports::Error::from(fault).into()),
            });
        }
    }
    Ok(replies)
}
