//! The catalogue of tables. Kept in an engine table of its own, read whole when the
//! database is opened, and changed one table at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kstone_core::sync::{Mutex, RwLock};
use kstone_core::{Durability, Engine, Key, ScanCursor, TableId, WriteBatch};

use crate::error::{Error, Result};
use crate::table::live::Table;
use crate::table::record::TableRecord;

/// The engine's table with the catalogue and the tokens of transactions: the first one that a new
/// database creates.
pub(crate) const SYSTEM: TableId = TableId(1);
/// The partition of [`SYSTEM`] with one record for each table, under its name.
const TABLES: &[u8] = b"tables";
/// The record of [`SYSTEM`] that tells the form of the catalogue: of the tables' records and of the
/// notes. It is there before any of them.
const FORM: &[u8] = b"form";
/// The form that this build reads and writes.
const VERSION: u8 = 1;
/// The record of [`SYSTEM`] that is there while engine tables are made: the newest id before.
const MAKING: &[u8] = b"making";
/// The partition of [`SYSTEM`] with a record for each engine table that is to be dropped.
const DROPPING: &[u8] = b"dropping";
/// A version that no table has: what a dropped one is set to.
const DROPPED: u64 = u64::MAX;

/// All tables by name.
#[derive(Debug)]
pub(crate) struct Catalog {
    tables: RwLock<HashMap<String, Arc<Table>>>,
    /// Held while a table is changed, so that changes follow one another.
    changing: Mutex<()>,
}

/// The exclusive right to change tables.
pub(crate) struct Changing<'a> {
    catalog: &'a Catalog,
    engine: &'a Engine,
    /// Whether engine tables have been made that no record names yet.
    making: bool,
    _guard: kstone_core::sync::MutexGuard<'a, ()>,
}

impl Catalog {
    /// Reads the catalogue, or makes an empty one in a new database.
    pub fn load(engine: &Engine) -> Result<Catalog> {
        if !engine.tables().contains(&SYSTEM) {
            let made = engine.create_table()?;
            if made != SYSTEM {
                return Err(Error::Engine(kstone_core::Error::ForeignFile {
                    path: engine.path().to_owned(),
                    what: format!(
                        "its tables were made by the engine alone: table 1 is missing, {} is the next",
                        made.0
                    ),
                }));
            }
        }
        Self::check_form(engine)?;
        let mut tables = HashMap::new();
        for record in engine.partition(SYSTEM, TABLES).iter()? {
            let record = record?;
            let table: TableRecord =
                serde_json::from_slice(&record.record.value).map_err(|error| {
                    let name =
                        String::from_utf8_lossy(record.key.sk.as_deref().unwrap_or_default())
                            .into_owned();
                    damaged(engine, &name, &error)
                })?;
            tables.insert(
                table.spec.name.clone(),
                Arc::new(Table::new(table, 0, Arc::new(AtomicU64::new(0)))),
            );
        }
        let catalog = Catalog { tables: RwLock::new(tables), changing: Mutex::new(()) };
        catalog.drop_orphans(engine)?;
        Ok(catalog)
    }

    /// Drops engine tables that a crash left between being made and being entered here. Others may
    /// have made tables of their own: only what came after the note is ours to drop.
    fn drop_orphans(&self, engine: &Engine) -> Result<()> {
        for noted in engine.partition(SYSTEM, DROPPING).iter()? {
            let noted = noted?.key.sk.unwrap_or_default();
            let id = noted.as_ref().try_into().map_or(u32::MAX, u32::from_be_bytes);
            drop_noted(engine, TableId(id))?;
        }
        let Some(note) = engine.get(SYSTEM, &Key::new(MAKING))? else { return Ok(()) };
        let newest = note.value.as_ref().try_into().map_or(u32::MAX, u32::from_le_bytes);
        let tables = self.tables.read();
        let known: HashSet<TableId> =
            tables.values().flat_map(|table| table.record.engine_tables()).collect();
        for table in engine.tables() {
            if table.0 > newest && !known.contains(&table) {
                engine.drop_table(table)?;
            }
        }
        let mut batch = WriteBatch::new();
        batch.delete(SYSTEM, &Key::new(MAKING))?;
        Ok(engine.write(&batch, Durability::Sync)?.wait()?)
    }

    /// Looks whether table 1 is a catalogue of a form that this version knows. The first note marks
    /// it as one.
    fn check_form(engine: &Engine) -> Result<()> {
        let key = Key::new(FORM);
        let foreign = || {
            Error::Engine(kstone_core::Error::ForeignFile {
                path: engine.path().to_owned(),
                what: "its table 1 holds something else than a catalogue".to_owned(),
            })
        };
        match engine.get(SYSTEM, &key)? {
            Some(form) if *form.value == [VERSION] => Ok(()),
            Some(form) => match *form.value {
                [found] => Err(Error::UnknownVersion { what: "catalogue", found, known: VERSION }),
                _ => Err(foreign()),
            },
            None => {
                let mut records = engine.snapshot().scan(SYSTEM, ScanCursor::start());
                if records.next_ref()?.is_some() { Err(foreign()) } else { Ok(()) }
            }
        }
    }

    /// The table with this name.
    pub fn get(&self, name: &str) -> Option<Arc<Table>> {
        self.tables.read().get(name).cloned()
    }

    /// Every table, in no order.
    pub fn all(&self) -> Vec<Arc<Table>> {
        self.tables.read().values().cloned().collect()
    }

    /// The names of all tables after `after`, in order.
    pub fn names(&self, after: Option<&str>) -> Vec<String> {
        let tables = self.tables.read();
        let mut names: Vec<String> = tables
            .keys()
            .filter(|name| after.is_none_or(|after| name.as_str() > after))
            .cloned()
            .collect();
        names.sort_unstable();
        names
    }

    /// Waits for the right to change tables.
    pub fn change<'a>(&'a self, engine: &'a Engine) -> Changing<'a> {
        Changing { catalog: self, engine, making: false, _guard: self.changing.lock() }
    }
}

impl Changing<'_> {
    /// Marks the catalogue as one of this form, with whatever else the batch writes to it.
    pub fn note_form(&self, batch: &mut WriteBatch) -> Result<()> {
        Ok(batch.put(SYSTEM, &Key::new(FORM), &[VERSION])?)
    }

    pub fn get(&self, name: &str) -> Option<Arc<Table>> {
        self.catalog.get(name)
    }

    /// Writes a table's record, new or changed; durable when this returns, and no write that began
    /// under the old record is still under way. Then the engine tables that the record names no
    /// more are dropped: noted in the same commit, so that a crash in between leaves none behind.
    pub fn put(&self, record: TableRecord, dropped: &[TableId]) -> Result<Arc<Table>> {
        let name = record.spec.name.clone();
        let mut batch = WriteBatch::new();
        for &table in dropped {
            batch.put(SYSTEM, &dropping_key(table), b"")?;
        }
        let json =
            serde_json::to_vec(&record).map_err(|error| damaged(self.engine, &name, &error))?;
        batch.put(SYSTEM, &record_key(&name), &json)?;
        if self.making {
            batch.delete(SYSTEM, &Key::new(MAKING))?;
        }
        self.engine.write(&batch, Durability::Sync)?.wait()?;
        let old = self.catalog.get(&name);
        let (version, current) = match &old {
            Some(old) => (old.version() + 1, old.current()),
            None => (0, Arc::new(AtomicU64::new(0))),
        };
        let table = Arc::new(Table::new(record, version, Arc::clone(&current)));
        self.catalog.tables.write().insert(name, Arc::clone(&table));
        current.store(version, Ordering::Release);
        // Who locked a stripe before this, and looked at a table's version then, is done after it.
        self.engine.fence();
        for &table in dropped {
            drop_noted(self.engine, table)?;
        }
        Ok(table)
    }

    /// Takes a table out of the catalogue and drops its data.
    pub fn remove(&self, table: &Table) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete(SYSTEM, &record_key(table.name()))?;
        for id in table.record.engine_tables() {
            batch.drop_table(id)?;
        }
        // First out of sight: a writer that looks again finds no table, instead of an engine table
        // that is gone.
        let removed = self.catalog.tables.write().remove(table.name());
        let current = table.current();
        current.store(DROPPED, Ordering::Release);
        self.engine.fence();
        match self.engine.write(&batch, Durability::Sync) {
            Ok(dropped) => Ok(dropped.wait()?),
            Err(error) => {
                // Nothing was dropped: the table goes on.
                if let Some(removed) = removed {
                    current.store(removed.version(), Ordering::Release);
                    self.catalog.tables.write().insert(removed.name().to_owned(), removed);
                }
                Err(error.into())
            }
        }
    }

    /// Makes an engine table that the next [`put`](Changing::put) enters into the catalogue. If a
    /// crash comes between the two, opening the database drops it again.
    pub fn engine_table(&mut self) -> Result<TableId> {
        if !self.making {
            let newest = self.engine.tables().into_iter().max().unwrap_or(SYSTEM);
            let mut batch = WriteBatch::new();
            batch.put(SYSTEM, &Key::new(FORM), &[VERSION])?;
            batch.put(SYSTEM, &Key::new(MAKING), &newest.0.to_le_bytes())?;
            self.engine.write(&batch, Durability::Sync)?.wait()?;
            self.making = true;
        }
        Ok(self.engine.create_table()?)
    }
}

fn dropping_key(table: TableId) -> Key {
    Key::with_sk(DROPPING, table.0.to_be_bytes().to_vec())
}

/// Drops an engine table together with the note that it is to be dropped.
fn drop_noted(engine: &Engine, table: TableId) -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.delete(SYSTEM, &dropping_key(table))?;
    if engine.tables().contains(&table) {
        batch.drop_table(table)?;
    }
    Ok(engine.write(&batch, Durability::Sync)?.wait()?)
}

fn record_key(name: &str) -> Key {
    Key::with_sk(TABLES, name.as_bytes().to_vec())
}

fn damaged(engine: &Engine, name: &str, error: &serde_json::Error) -> Error {
    Error::Engine(kstone_core::Error::Corruption {
        path: engine.path().to_owned(),
        offset: 0,
        what: format!("the catalogue's record of table {name:?} cannot be read: {error}"),
        advice: "it may come from a newer kstone; else restore the database from a checkpoint",
    })
}
