//! The durable record of an erasure, in the table `kstone.erasures`.
//!
//! | `pk` | `sk` | what it is |
//! |---|---|---|
//! | `running#{erasure}` | `job` | whom it is about, and how far it is |
//! | `running#{erasure}` | `plan#{n}` | places that it is going to clear, written before it does |
//! | `erasures` | `{erasure}` | that there is one, and in the end its receipt; never whom it is about |
//!
//! Deleting a key deletes its entry in the index, so a place that is not in the plan would be
//! forgotten by a crash between the delete and the purge. The first partition names the person and is
//! purged when everything else is; whatever is found there after a crash is gone on with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kstone_ports::items::{GetItem, Placeholders, PutItem, TransactAction, TransactKind};
use kstone_ports::items::{Items, write_together};
use kstone_ports::items::{KeyAttribute, KeySchema, TableSpec};
use kstone_ports::value::{Item, Value};
use serde::{Deserialize, Serialize};

use super::receipt::{PatternCount, PurgeCount, Receipt, SignedReceipt};
use super::stores::{ErasureError, Result, each_in_partition};
use crate::index::IndexEntryKey;
use crate::subject::Subject;

/// The table in which erasures are kept.
pub(super) const ERASURES_TABLE: &str = "kstone.erasures";
const ALL: &str = "erasures";
/// Well below what an item may hold.
const CHUNK_BYTES: usize = 200 * 1024;

/// The public record of an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureRecord {
    /// Its id.
    pub id: String,
    /// When it was asked for, in milliseconds since 1970.
    pub began_ms: u64,
    /// How far it is.
    pub state: ErasureState,
}

/// The state of an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErasureState {
    /// Data is being removed. After a restart it has to be gone on with.
    Running,
    /// All data is removed. What is left is to forget whom it was about, and to sign.
    Sealed(Box<Receipt>),
    /// It is over.
    Done(Box<SignedReceipt>),
}

/// The private record of a running erasure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) id: String,
    subject: String,
    tenant: Option<String>,
    salt: String,
    pub(super) began_ms: u64,
    /// The sequence number before the first delete, once that is known.
    pub(super) first_seq: Option<u64>,
    pub(super) last_seq: u64,
    /// The checkpoints that there were when it began.
    pub(super) checkpoints: Vec<PathBuf>,
    pub(super) purge: PurgeCount,
}

/// A place that the erasure is going to clear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Planned {
    /// The entry's `sk` in the index.
    place: String,
    pub(super) pattern: String,
    pub(super) how: PlannedContent,
}

/// What was at a place when it was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PlannedContent {
    /// Something of theirs alone.
    Whole,
    /// Something that others share.
    Shared,
    /// Nothing that anybody could read. Its bytes may be there.
    Gone,
}

impl Job {
    pub(super) fn new(id: String, subject: &Subject, salt: &[u8], began_ms: u64) -> Job {
        Job {
            id,
            subject: subject.id.clone(),
            tenant: subject.tenant.clone(),
            salt: hex::encode(salt),
            began_ms,
            first_seq: None,
            last_seq: 0,
            checkpoints: Vec::new(),
            purge: PurgeCount::default(),
        }
    }

    pub(super) fn subject(&self) -> Subject {
        Subject { id: self.subject.clone(), tenant: self.tenant.clone() }
    }

    pub(super) fn salt(&self) -> Vec<u8> {
        hex::decode(&self.salt).unwrap_or_default()
    }

    /// The partition in which an erasure names the person.
    pub(super) fn partition_of(id: &str) -> Value {
        Value::S(partition(id))
    }

    fn item(&self) -> Result<Item> {
        let text = serde_json::to_string(self).map_err(|error| broken(&self.id, error))?;
        Ok(key(&partition(&self.id), "job").with("job", text))
    }
}

impl Planned {
    pub(super) fn new(place: &IndexEntryKey, pattern: String, how: PlannedContent) -> Planned {
        Planned { place: place.entry(String::new()).sk, pattern, how }
    }

    pub(super) fn place(&self) -> Option<IndexEntryKey> {
        IndexEntryKey::parse(&self.place)
    }
}

/// Counts of what was removed, by pattern.
pub(super) fn counts(plan: &[Planned]) -> BTreeMap<String, PatternCount> {
    let mut counts: BTreeMap<String, PatternCount> = BTreeMap::new();
    for planned in plan {
        let count = || match planned.pattern.is_empty() {
            true => "undeclared".to_owned(),
            false => planned.pattern.clone(),
        };
        match planned.how {
            PlannedContent::Whole => counts.entry(count()).or_default().deleted += 1,
            PlannedContent::Shared => counts.entry(count()).or_default().changed += 1,
            PlannedContent::Gone => {}
        }
    }
    counts
}

/// The table of erasures, behind a handle that may write to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Jobs<'i> {
    pub(super) items: &'i dyn Items,
}

impl Jobs<'_> {
    /// Makes the table if it is missing.
    pub(super) async fn prepare(&self) -> Result<()> {
        let pair = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"));
        let name = ERASURES_TABLE.to_owned();
        let spec = TableSpec { name, key: pair, ..TableSpec::default() };
        Ok(self.items.require_table(&spec, None).await?)
    }

    /// Records a new erasure: privately whom it is about, publicly that there is one.
    pub(super) async fn begin(&self, job: &Job) -> Result<()> {
        let put = |item| TransactAction {
            table: ERASURES_TABLE.to_owned(),
            kind: TransactKind::Put(item),
            condition: None,
            placeholders: Placeholders::default(),
            return_on_failure: false,
        };
        let listed = key(ALL, &job.id).with("state", "running").with("began_ms", job.began_ms);
        let actions = vec![put(job.item()?), put(listed)];
        write_together(self.items, actions).await?;
        Ok(())
    }

    /// Stores the progress of an erasure.
    pub(super) async fn keep(&self, job: &Job) -> Result<()> {
        self.put(job.item()?).await
    }

    /// Adds places to the plan. The first of them is the number `from`.
    pub(super) async fn plan(&self, job: &Job, from: usize, places: &[Planned]) -> Result<()> {
        let mut at = from;
        let mut rest = places;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|it| {
                bytes += it.place.len() + it.pattern.len() + 64;
                bytes <= CHUNK_BYTES
            });
            let (chunk, after) = rest.split_at(fits.count().max(1));
            let text = serde_json::to_string(chunk).map_err(|error| broken(&job.id, error))?;
            self.put(key(&partition(&job.id), &format!("plan#{at:012}")).with("plan", text))
                .await?;
            at += chunk.len();
            rest = after;
        }
        Ok(())
    }

    /// Loads the private record of a running erasure; `None` when it is gone.
    pub(super) async fn load(&self, id: &str) -> Result<Option<(Job, Vec<Planned>)>> {
        let (mut job, mut plan) = (None, Vec::new());
        for item in self.partition(&partition(id)).await? {
            let text = |name: &str| match item.get(name) {
                Some(Value::S(text)) => Some(text.as_str()),
                _ => None,
            };
            if let Some(text) = text("job") {
                job = Some(serde_json::from_str(text).map_err(|error| broken(id, error))?);
            }
            if let Some(text) = text("plan") {
                let chunk: Vec<Planned> =
                    serde_json::from_str(text).map_err(|error| broken(id, error))?;
                plan.extend(chunk);
            }
        }
        Ok(job.map(|job| (job, plan)))
    }

    /// Records that all data is removed: after a restart the person need not be known any more.
    pub(super) async fn seal(&self, receipt: &Receipt) -> Result<()> {
        let text =
            serde_json::to_string(receipt).map_err(|error| broken(&receipt.erasure, error))?;
        let item = key(ALL, &receipt.erasure)
            .with("state", "sealed")
            .with("began_ms", receipt.began_ms)
            .with("receipt", text);
        self.put(item).await
    }

    /// Stores the receipt.
    pub(super) async fn finish(&self, signed: &SignedReceipt) -> Result<()> {
        let item = key(ALL, &signed.receipt.erasure)
            .with("state", "done")
            .with("began_ms", signed.receipt.began_ms)
            .with("receipt", signed.to_json());
        self.put(item).await
    }

    /// All erasures that there were, the earliest first.
    pub(super) async fn all(&self) -> Result<Vec<ErasureRecord>> {
        let mut records = Vec::new();
        for item in self.partition(ALL).await? {
            records.push(record(&item)?);
        }
        Ok(records)
    }

    /// One of them.
    pub(super) async fn find(&self, id: &str) -> Result<Option<ErasureRecord>> {
        let request = GetItem {
            table: ERASURES_TABLE.to_owned(),
            key: key(ALL, id),
            consistent_read: true,
            ..GetItem::default()
        };
        let found = match self.items.get(&request).await {
            Err(kstone_ports::Error::NotFound(_)) => return Ok(None),
            found => found?.item,
        };
        let item =
            found.map(|item| item.decode()).transpose().map_err(kstone_ports::Error::from)?;
        item.as_ref().map(record).transpose()
    }

    async fn put(&self, item: Item) -> Result<()> {
        let request = PutItem { table: ERASURES_TABLE.to_owned(), item, ..PutItem::default() };
        self.items.put(&request).await?;
        Ok(())
    }

    async fn partition(&self, pk: &str) -> Result<Vec<Item>> {
        let mut found = Vec::new();
        each_in_partition(self.items, ERASURES_TABLE, pk, |item| {
            found.push(item.decode().map_err(kstone_ports::Error::from)?);
            Ok(())
        })
        .await?;
        Ok(found)
    }
}

fn partition(id: &str) -> String {
    format!("running#{id}")
}

fn key(pk: &str, sk: &str) -> Item {
    Item::new().with("pk", pk).with("sk", sk)
}

fn record(item: &Item) -> Result<ErasureRecord> {
    let text = |name: &str| match item.get(name) {
        Some(Value::S(text)) => text.as_str(),
        _ => "",
    };
    let id = text("sk").to_owned();
    let state = match text("state") {
        "running" => ErasureState::Running,
        "sealed" => {
            let receipt = serde_json::from_str(text("receipt"));
            ErasureState::Sealed(receipt.map_err(|error| broken(&id, error))?)
        }
        _ => {
            let receipt = serde_json::from_str(text("receipt"));
            ErasureState::Done(receipt.map_err(|error| broken(&id, error))?)
        }
    };
    let began_ms = item.get("began_ms").and_then(Value::as_number).and_then(|it| it.to_u64());
    Ok(ErasureRecord { id, began_ms: began_ms.unwrap_or_default(), state })
}

fn broken(id: &str, error: serde_json::Error) -> ErasureError {
    ErasureError::Unreadable(format!("what is remembered of erasure {id} cannot be read: {error}"))
}
