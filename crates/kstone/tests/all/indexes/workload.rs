//! Random operations, and a model of what they do to the items.

use std::collections::BTreeMap;

use kstone::ops::{
    BatchWrite, Condition, DeleteItem, Placeholders, PutItem, TransactAction, TransactKind,
    TransactWrite, Update, UpdateItem, WriteRequest,
};
use kstone::{Database, Error, Item, Value, placeholders};
use kstone_core::env::{Random, SeededRandom};

use crate::indexes::table::{Machine, START_MS, TABLE, create_index, delete_index, late_index};

/// Draws by a seed.
pub struct Dice(SeededRandom);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(SeededRandom::new(seed))
    }

    pub fn below(&self, sides: usize) -> usize {
        (self.0.next_u64() % sides as u64) as usize
    }

    pub fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The values that an attribute takes: few, so that they meet, and near each other in their bytes.
pub fn pool(name: &str) -> Vec<Value> {
    let bytes = |bytes: &[u8]| Value::from(bytes);
    let number = |text: &str| Value::N(text.parse().unwrap());
    match name {
        "pk" => ["a", "a\0", "a\0\u{1}", "b", "\u{7f}", "é"].map(Value::from).to_vec(),
        "sk" => ["-1E+100", "-1", "0", "0.5", "7", "70"].map(number).to_vec(),
        "kind" => ["x", "x\0", "y"].map(Value::from).to_vec(),
        "size" => ["-3", "0", "3"].map(number).to_vec(),
        "raw" => {
            let raw: [&[u8]; 6] = [&[0], &[0, 0], &[0, 1], &[0, 255], &[1], &[255, 255]];
            raw.map(bytes).to_vec()
        }
        "at" => ["-100", "-99.5", "0", "1E-130", "12", "120"].map(number).to_vec(),
        "owner" => ["ada", "ada\0b", "bob"].map(Value::from).to_vec(),
        "note" => ["n1", "n2", "a longer note"].map(Value::from).to_vec(),
        _ => panic!("{name}"),
    }
}

const ATTRIBUTES: [&str; 6] = ["kind", "size", "raw", "at", "owner", "note"];

/// One thing to do.
#[derive(Debug, Clone)]
pub enum Step {
    Put {
        item: Item,
        only: Only,
    },
    Update {
        key: Item,
        change: Change,
    },
    Delete {
        key: Item,
        only: Only,
    },
    Batch(Vec<Write>),
    /// With what each action demands of its item.
    Transact(Vec<(Write, Only)>),
    Tick {
        ms: u64,
    },
    Background,
    Flush,
    /// Makes the late index, or drops it, whichever can be done.
    SwitchIndex,
    SwitchTtl,
}

/// What must be in the item's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    Always,
    IfThere,
    IfAbsent,
}

#[derive(Debug, Clone)]
pub enum Change {
    Set(&'static str, Value),
    Remove(&'static str),
}

#[derive(Debug, Clone)]
pub enum Write {
    Put(Item),
    Delete(Item),
    Update(Item, Change),
}

pub fn draw_item(dice: &Dice, now_ms: u64) -> Item {
    let mut item = draw_key(dice);
    for name in ATTRIBUTES {
        if dice.chance(80) {
            item.insert(name, dice.pick(&pool(name)).clone());
        }
    }
    if dice.chance(30) {
        item.insert("ttl", draw_ttl(dice, now_ms));
    }
    item
}

pub fn draw_key(dice: &Dice) -> Item {
    let value = |name: &str| dice.pick(&pool(name)).clone();
    Item::new().with("pk", value("pk")).with("sk", value("sk"))
}

fn draw_ttl(dice: &Dice, now_ms: u64) -> Value {
    Value::from(now_ms / 1000 + dice.below(6) as u64)
}

fn draw_change(dice: &Dice, now_ms: u64) -> Change {
    let name = *dice.pick(&ATTRIBUTES);
    match dice.below(10) {
        0..6 => Change::Set(name, dice.pick(&pool(name)).clone()),
        6 => Change::Set("ttl", draw_ttl(dice, now_ms)),
        7 => Change::Remove("ttl"),
        _ => Change::Remove(name),
    }
}

fn draw_write(dice: &Dice, now_ms: u64) -> Write {
    match dice.below(10) {
        0..6 => Write::Put(draw_item(dice, now_ms)),
        6 | 7 => Write::Delete(draw_key(dice)),
        _ => Write::Update(draw_key(dice), draw_change(dice, now_ms)),
    }
}

fn draw_only(dice: &Dice) -> Only {
    *dice.pick(&[Only::Always, Only::Always, Only::Always, Only::IfThere, Only::IfAbsent])
}

/// Several writes of different items.
fn draw_writes(dice: &Dice, now_ms: u64, updates: bool) -> Vec<Write> {
    let mut writes: BTreeMap<String, Write> = BTreeMap::new();
    let wanted = 1 + dice.below(6);
    while writes.len() < wanted {
        let write = draw_write(dice, now_ms);
        if updates || !matches!(write, Write::Update(..)) {
            writes.insert(name_of(write.item()), write);
        }
    }
    writes.into_values().collect()
}

impl Step {
    /// Something that changes items, at this time.
    pub fn draw_write(dice: &Dice, now_ms: u64) -> Step {
        match dice.below(10) {
            0..4 => Step::Put { item: draw_item(dice, now_ms), only: draw_only(dice) },
            4 | 5 => Step::Update { key: draw_key(dice), change: draw_change(dice, now_ms) },
            6 => Step::Delete { key: draw_key(dice), only: draw_only(dice) },
            7 => Step::Batch(draw_writes(dice, now_ms, false)),
            _ => {
                let writes = draw_writes(dice, now_ms, true);
                Step::Transact(writes.into_iter().map(|write| (write, draw_only(dice))).collect())
            }
        }
    }

    /// Anything, at this time.
    pub fn draw(dice: &Dice, now_ms: u64) -> Step {
        match dice.below(40) {
            0..3 => Step::Tick { ms: 400 * dice.below(5) as u64 },
            3 | 4 => Step::Background,
            5 => Step::Flush,
            6 => Step::SwitchIndex,
            7 => Step::SwitchTtl,
            _ => Step::draw_write(dice, now_ms),
        }
    }
}

impl Write {
    fn item(&self) -> &Item {
        match self {
            Write::Put(item) | Write::Delete(item) | Write::Update(item, _) => item,
        }
    }
}

/// An item's key.
pub fn key_of(item: &Item) -> Item {
    let value = |name: &str| item.get(name).unwrap().clone();
    Item::new().with("pk", value("pk")).with("sk", value("sk"))
}

/// Something that tells items apart and can be ordered.
fn name_of(item: &Item) -> String {
    format!("{:?}", key_of(item))
}

/// The items of a table.
#[derive(Debug, Clone, Default)]
pub struct Model {
    items: BTreeMap<String, (Item, Option<u64>)>,
    ttl: bool,
    now_ms: u64,
}

impl Model {
    /// An empty table whose items expire.
    pub fn new() -> Self {
        Model { items: BTreeMap::new(), ttl: true, now_ms: START_MS }
    }

    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub fn set_now(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.items.retain(|_, (_, expires)| expires.is_none_or(|at_ms| at_ms > now_ms));
    }

    /// The items that are there, in no order that means anything.
    pub fn items(&self) -> Vec<Item> {
        self.items.values().map(|(item, _)| item.clone()).collect()
    }

    fn put(&mut self, item: &Item) {
        let expires = match item.get("ttl") {
            Some(Value::N(second)) if self.ttl => Some(second.to_i64().unwrap() as u64 * 1000),
            _ => None,
        };
        self.items.insert(name_of(item), (item.clone(), expires));
        self.set_now(self.now_ms);
    }

    fn meets(&self, key: &Item, only: Only) -> bool {
        let there = self.items.contains_key(&name_of(key));
        match only {
            Only::Always => true,
            Only::IfThere => there,
            Only::IfAbsent => !there,
        }
    }

    fn write(&mut self, write: &Write) {
        match write {
            Write::Put(item) => self.put(item),
            Write::Delete(key) => drop(self.items.remove(&name_of(key))),
            Write::Update(key, change) => {
                let before = self.items.get(&name_of(key)).map(|(item, _)| item.clone());
                // Taking something away from an item that is not there makes none.
                if before.is_none() && matches!(change, Change::Remove(_)) {
                    return;
                }
                let mut item = before.unwrap_or_else(|| key.clone());
                match change {
                    Change::Set(name, value) => drop(item.insert(*name, value.clone())),
                    Change::Remove(name) => drop(item.remove(name)),
                }
                self.put(&item);
            }
        }
    }

    /// Does the step; `false` if it must be refused.
    pub fn step(&mut self, step: &Step) -> bool {
        match step {
            Step::Put { item, only } => {
                let meets = self.meets(item, *only);
                if meets {
                    self.put(item);
                }
                meets
            }
            Step::Update { key, change } => {
                self.write(&Write::Update(key.clone(), change.clone()));
                true
            }
            Step::Delete { key, only } => {
                let meets = self.meets(key, *only);
                if meets {
                    self.write(&Write::Delete(key.clone()));
                }
                meets
            }
            Step::Batch(writes) => {
                writes.iter().for_each(|write| self.write(write));
                true
            }
            Step::Transact(writes) => {
                let meets = writes.iter().all(|(write, only)| self.meets(write.item(), *only));
                if meets {
                    writes.iter().for_each(|(write, _)| self.write(write));
                }
                meets
            }
            Step::Tick { ms } => {
                self.set_now(self.now_ms + ms);
                true
            }
            Step::SwitchTtl => {
                self.ttl = !self.ttl;
                for item in self.items() {
                    self.put(&item);
                }
                true
            }
            Step::Background | Step::Flush | Step::SwitchIndex => true,
        }
    }
}

/// Does the step to a database; `Ok(false)` if it was refused.
pub fn run(machine: &Machine, db: &Database, step: &Step) -> Result<bool, Error> {
    let table = || TABLE.to_owned();
    let done = match step {
        Step::Put { item, only } => {
            let (item, condition) = (item.clone(), condition(*only));
            let request = PutItem { table: table(), item, condition, ..PutItem::default() };
            db.put_item(&request).wait().map(drop)
        }
        Step::Update { key, change } => {
            let (update, placeholders) = update(change);
            let request = UpdateItem {
                table: table(),
                key: key.clone(),
                update: Some(update),
                placeholders,
                ..UpdateItem::default()
            };
            db.update_item(&request).wait().map(drop)
        }
        Step::Delete { key, only } => {
            let (key, condition) = (key.clone(), condition(*only));
            let request = DeleteItem { table: table(), key, condition, ..DeleteItem::default() };
            db.delete_item(&request).wait().map(drop)
        }
        Step::Batch(writes) => {
            let writes = writes.iter().map(|write| match write {
                Write::Put(item) => WriteRequest::Put(item.clone()),
                Write::Delete(key) => WriteRequest::Delete(key.clone()),
                Write::Update(..) => panic!("a batch has no updates"),
            });
            let tables = vec![(table(), writes.collect())];
            db.batch_write(&BatchWrite { tables, ..BatchWrite::default() }).wait().map(drop)
        }
        Step::Transact(writes) => {
            let actions = writes.iter().map(|(write, only)| action(write, *only)).collect();
            let request = TransactWrite { actions, ..TransactWrite::default() };
            db.transact_write(&request).wait().map(drop)
        }
        Step::Tick { ms } => {
            machine.clock.advance(*ms);
            Ok(())
        }
        Step::Background => db.run_background(),
        Step::Flush => db.engine().flush().map_err(Error::from),
        Step::SwitchIndex => {
            let has = crate::indexes::table::index_status(db, "late").is_some();
            let change = if has { delete_index("late") } else { create_index(late_index()) };
            db.update_table(TABLE, &change).and_then(|_| db.run_background())
        }
        Step::SwitchTtl => {
            let state = db.describe_table(TABLE)?.ttl;
            let on = matches!(state, kstone::table::TtlState::Off);
            db.update_ttl(TABLE, "ttl", on).and_then(|()| db.run_background())
        }
    };
    match done {
        Ok(()) => Ok(true),
        Err(Error::ConditionFailed { .. } | Error::TransactionCanceled { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

fn condition(only: Only) -> Option<Condition> {
    let text = match only {
        Only::Always => return None,
        Only::IfThere => "attribute_exists(pk)",
        Only::IfAbsent => "attribute_not_exists(pk)",
    };
    Some(Condition::Text(text.to_owned()))
}

fn update(change: &Change) -> (Update, Placeholders) {
    match change {
        Change::Set(name, value) => (
            Update::Text("SET #a = :v".to_owned()),
            placeholders([("#a", Value::from(*name)), (":v", value.clone())]),
        ),
        Change::Remove(name) => {
            (Update::Text("REMOVE #a".to_owned()), placeholders([("#a", *name)]))
        }
    }
}

fn action(write: &Write, only: Only) -> TransactAction {
    let (kind, placeholders) = match write {
        Write::Put(item) => (TransactKind::Put(item.clone()), Placeholders::default()),
        Write::Delete(key) => (TransactKind::Delete(key.clone()), Placeholders::default()),
        Write::Update(key, change) => {
            let (update, placeholders) = update(change);
            (TransactKind::Update(key.clone(), update), placeholders)
        }
    };
    let condition = condition(only);
    TransactAction { condition, placeholders, ..TransactAction::new(TABLE, kind) }
}
