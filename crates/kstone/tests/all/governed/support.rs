//! A small policy, and a machine to try it on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kstone::ops::{
    BatchWrite, DeleteItem, Placeholders, PutItem, ReturnValues, TransactAction, TransactKind,
    TransactWrite, Update, UpdateItem, WriteOutput, WriteRequest,
};
use kstone::partiql::Statement;
use kstone::policy::{
    Admitted, Counted, Effect, Expiry, IndexEntry, ItemRemoval, ItemWrite, KeyRemoval, KeySize,
    KeyWrite, PatternId, Refused, RequestedTtl, SUBJECTS_TABLE, WritePolicy,
};
use kstone::table::{KeyAttribute, KeySchema, TableSpec};
use kstone::{Database, DatabaseOptions, Durability, Item, ItemBytes, ItemRef, Result, ValueRef};
use kstone_core::env::{Env, ManualClock, SeededRandom};
use kstone_core::sync::Mutex;
use kstone_sim::SimDisk;

pub const START_MS: u64 = 1_700_000_000_400;
pub const TABLE: &str = "state";
pub const LIFE_MS: u64 = 60_000;
pub const DECLARED: PatternId = PatternId(7);

/// Keys `student:…` are declared: they live for a minute unless the write says otherwise, must not
/// have an attribute `bad`, and belong to the person in their key and to the one in `friend`.
#[derive(Debug, Default)]
pub struct Students {
    pub refuses_unknown: bool,
    pub heard: Mutex<Heard>,
}

/// What the policy was asked and told.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Heard {
    pub keys: i64,
    pub bytes: i64,
    pub writes: u64,
    pub ends: BTreeMap<u64, i64>,
    pub asked: Vec<(Effect, RequestedTtl)>,
    pub dropped: Vec<String>,
}

impl Students {
    pub fn heard(&self) -> Heard {
        self.heard.lock().clone()
    }
}

fn is_declared(pk: &[u8]) -> bool {
    pk.starts_with(b"student:")
}

/// The persons that an item is about.
pub fn entries(
    table: &str,
    pk: &str,
    sk: &str,
    friend: Option<&str>,
) -> BTreeSet<(String, String)> {
    let place = format!("{table}/{pk}/{sk}");
    let person = pk.strip_prefix("student:");
    person.into_iter().chain(friend).map(|id| (format!("subject#{id}"), place.clone())).collect()
}

fn entries_of(table: &str, pk: &[u8], sk: Option<&[u8]>, item: ItemRef<'_>) -> Vec<IndexEntry> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let friend = match item.get("friend") {
        Some(ValueRef::S(id)) => Some(id),
        _ => None,
    };
    entries(table, &text(pk), &text(sk.unwrap_or_default()), friend)
        .into_iter()
        .map(|(pk, sk)| IndexEntry { pk, sk })
        .collect()
}

impl WritePolicy for Students {
    fn admit_item(&self, write: &ItemWrite<'_>) -> Result<Admitted, Refused> {
        if write.table != TABLE || !is_declared(write.pk) {
            return match self.refuses_unknown {
                true => Err(Refused("no pattern has such a key".to_owned())),
                false => Ok(Admitted::AS_IT_IS),
            };
        }
        if write.item.contains("bad") {
            return Err(Refused("pattern student: attribute bad is not declared".to_owned()));
        }
        self.heard.lock().asked.push((write.effect, write.asked));
        let expiry = match (write.asked, write.effect) {
            (RequestedTtl::Unsaid, Effect::Makes) => Expiry::InMs(LIFE_MS),
            (RequestedTtl::Ms(ms), _) => Expiry::InMs(ms.min(10 * LIFE_MS)),
            (RequestedTtl::Never, _) => Expiry::Never,
            (RequestedTtl::Unsaid | RequestedTtl::Keep, _) => Expiry::Keep,
        };
        let index = entries_of(write.table, write.pk, write.sk, write.item);
        let mut unindex = write
            .old
            .map(|old| entries_of(write.table, write.pk, write.sk, old))
            .unwrap_or_default();
        unindex.retain(|entry| !index.contains(entry));
        Ok(Admitted { pattern: Some(DECLARED), expiry, trim_to: None, index, unindex })
    }

    fn release_item(&self, removal: &ItemRemoval<'_>) -> Admitted {
        if removal.table != TABLE || !is_declared(removal.pk) {
            return Admitted::AS_IT_IS;
        }
        let unindex = entries_of(removal.table, removal.pk, removal.sk, removal.old);
        Admitted { pattern: Some(DECLARED), unindex, ..Admitted::AS_IT_IS }
    }

    fn admit_key(&self, _: &KeyWrite<'_>) -> Result<Admitted, Refused> {
        Ok(Admitted::AS_IT_IS)
    }

    fn release_key(&self, _: &KeyRemoval<'_>) -> Admitted {
        Admitted::AS_IT_IS
    }

    fn committed(&self, changes: &[Counted]) {
        let heard = &mut *self.heard.lock();
        for change in changes {
            assert_eq!(change.pattern, DECLARED);
            let mut add = |key_size: Option<KeySize>, sign: i64| {
                let Some(KeySize { bytes, expires_at_ms, .. }) = key_size else { return };
                heard.keys += sign;
                heard.bytes += sign * bytes as i64;
                let ends = heard.ends.entry(expires_at_ms.unwrap_or(0)).or_default();
                *ends += sign;
                if *ends == 0 {
                    heard.ends.remove(&expires_at_ms.unwrap_or(0));
                }
            };
            add(change.before, -1);
            add(change.after, 1);
            heard.writes += u64::from(change.is_write);
        }
    }

    fn emptied(&self, _: u8) {}

    fn swapped(&self, _: u8, _: u8) {}

    fn dropped(&self, table: &str) {
        self.heard.lock().dropped.push(table.to_owned());
    }
}

/// A policy that admits everything as it is; it calls this before each item.
pub struct AdmitAll(pub Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for AdmitAll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdmitAll")
    }
}

impl WritePolicy for AdmitAll {
    fn admit_item(&self, _: &ItemWrite<'_>) -> Result<Admitted, Refused> {
        (self.0)();
        Ok(Admitted::AS_IT_IS)
    }

    fn release_item(&self, _: &ItemRemoval<'_>) -> Admitted {
        Admitted::AS_IT_IS
    }

    fn admit_key(&self, _: &KeyWrite<'_>) -> Result<Admitted, Refused> {
        Ok(Admitted::AS_IT_IS)
    }

    fn release_key(&self, _: &KeyRemoval<'_>) -> Admitted {
        Admitted::AS_IT_IS
    }

    fn committed(&self, _: &[Counted]) {}
    fn emptied(&self, _: u8) {}
    fn swapped(&self, _: u8, _: u8) {}
    fn dropped(&self, _: &str) {}
}

/// A machine whose clock stands still and whose background work runs when it is told to.
pub struct Machine {
    pub disk: SimDisk,
    pub clock: Arc<ManualClock>,
}

impl Machine {
    pub fn new() -> Self {
        Machine { disk: SimDisk::new(1), clock: Arc::new(ManualClock::at(START_MS)) }
    }

    pub fn env(&self) -> Env {
        Env {
            vfs: Arc::new(self.disk.clone()),
            clock: Arc::clone(&self.clock) as _,
            random: Arc::new(SeededRandom::new(1)),
            threads: None,
        }
    }

    pub fn open(&self) -> Database {
        Database::open_with(self.env(), "db", DatabaseOptions::default()).unwrap()
    }

    /// With the policy in force, and a table whose items expire by `ttl`.
    pub fn governed() -> (Machine, Database, Arc<Students>) {
        let machine = Machine::new();
        let db = machine.open().with_durability(Durability::Os);
        create(&db);
        let policy = Arc::new(Students::default());
        db.govern(policy.clone()).unwrap();
        (machine, db, policy)
    }
}

pub fn create(db: &Database) {
    create_plain(db, TABLE);
    db.update_ttl(TABLE, "ttl", true).unwrap();
    db.run_background().unwrap();
}

/// A table without time to live.
pub fn create_plain(db: &Database, name: &str) {
    let key = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"));
    db.create_table(&TableSpec { name: name.to_owned(), key, ..TableSpec::default() }).unwrap();
}

pub fn key(pk: &str, sk: &str) -> Item {
    Item::new().with("pk", pk).with("sk", sk)
}

pub fn get(db: &Database, pk: &str, sk: &str) -> Option<Item> {
    db.table(TABLE).get(key(pk, sk)).unwrap()
}

pub fn put(db: &Database, item: Item) -> Result<WriteOutput> {
    db.put_item(&PutItem { table: TABLE.to_owned(), item, ..PutItem::default() }).wait()
}

pub fn update(db: &Database, pk: &str, sk: &str, text: &str) -> Result<WriteOutput> {
    let request = UpdateItem {
        table: TABLE.to_owned(),
        key: key(pk, sk),
        update: Some(Update::Text(text.to_owned())),
        placeholders: Placeholders {
            names: text.contains("#t").then(|| vec![("#t".to_owned(), "ttl".to_owned())]),
            values: None,
        },
        return_values: ReturnValues::AllNew,
        ..UpdateItem::default()
    };
    db.update_item(&request).wait()
}

pub fn delete(db: &Database, pk: &str, sk: &str) -> Result<WriteOutput> {
    let request = DeleteItem { table: TABLE.to_owned(), key: key(pk, sk), ..DeleteItem::default() };
    db.delete_item(&request).wait()
}

pub fn batch(db: &Database, writes: Vec<WriteRequest>) -> Result<()> {
    let request = BatchWrite { tables: vec![(TABLE.to_owned(), writes)], ..BatchWrite::default() };
    db.batch_write(&request).wait().map(drop)
}

pub fn transact(db: &Database, kinds: Vec<TransactKind>) -> Result<()> {
    let actions = kinds.into_iter().map(|kind| TransactAction::new(TABLE, kind)).collect();
    let request = TransactWrite { actions, ..TransactWrite::default() };
    db.transact_write(&request).wait().map(drop)
}

pub fn statement(db: &Database, text: &str) -> Result<()> {
    db.execute_statement(&Statement::new(text)).wait().map(drop)
}

/// All entries of the index of persons.
pub fn indexed(db: &Database) -> BTreeSet<(String, String)> {
    let items = db.table(SUBJECTS_TABLE).scan().unwrap();
    let text = |item: &Item, name: &str| item.get(name).unwrap().as_str().unwrap().to_owned();
    items.iter().map(|item| (text(item, "pk"), text(item, "sk"))).collect()
}

/// What is stored, counted from the items themselves. With the clock where it is, nothing of it may
/// have expired.
pub fn recounted(db: &Database) -> (Heard, BTreeSet<(String, String)>) {
    let (mut heard, mut index) = (Heard::default(), BTreeSet::new());
    for item in db.table(TABLE).scan().unwrap() {
        let text = |name: &str| item.get(name).and_then(|value| value.as_str());
        let (pk, sk) = (text("pk").unwrap(), text("sk").unwrap());
        if !is_declared(pk.as_bytes()) {
            continue;
        }
        let stored = ItemBytes::encode(&item).as_slice().len();
        heard.keys += 1;
        heard.bytes += (pk.len() + sk.len() + stored) as i64;
        let second = item.get("ttl").and_then(|value| value.as_number());
        let at_ms = second.and_then(|second| second.to_u64()).unwrap_or(0) * 1000;
        *heard.ends.entry(at_ms).or_default() += 1;
        index.extend(entries(TABLE, pk, sk, text("friend")));
    }
    (heard, index)
}

/// Checks that the policy has heard of exactly what is stored, and that the index of persons holds
/// exactly what is said there.
pub fn check_exact(db: &Database, policy: &Students) {
    let (stored, index) = recounted(db);
    let heard = policy.heard();
    assert_eq!((heard.keys, heard.bytes, &heard.ends), (stored.keys, stored.bytes, &stored.ends));
    assert_eq!(indexed(db), index);
}
