//! The logical databases (SELECT 0 to 15), and which engine table each of them is.
//!
//! A database keeps its keys in a *slot*; swapping two databases swaps their slots. A slot's table
//! is made when the first key is written to it; flushing drops the table in the same commit that
//! takes it away from its slot.

use bytes::Bytes;
use kstone::Database;
use kstone::policy::IndexEntry;
use kstone_core::sync::{Mutex, RwLock};
use kstone_core::{Durability, Engine, Key, KeyRef, TableId, WriteBatch};

use crate::fault::{Fault, Result};
use crate::store::accesses::Accesses;
use crate::store::annex;
use crate::store::counts::Counts;
use crate::store::record_cache::RecordCache;

/// How many logical databases there are.
pub(crate) const DATABASES: usize = 16;

/// The name of this layer in the database's catalogue.
const LAYER: &str = "redis";
/// The record of the layer's catalogue that holds the [`Layout`].
const LAYOUT: &[u8] = b"layout";
/// The partition of the layer's catalogue that holds the libraries of functions.
const LIBRARIES: &[u8] = b"libraries";
/// The form of that record.
const VERSION: u8 = 1;

/// Which database is where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The slot of each logical database.
    pub(crate) slots: [u8; DATABASES],
    /// The table of each slot; `None` if nothing was ever written to it.
    pub(crate) tables: [Option<TableId>; DATABASES],
    /// The table of each slot for [annexes](crate::store::annex).
    annexes: [Option<TableId>; DATABASES],
}

impl Layout {
    fn new() -> Self {
        let slots = std::array::from_fn(|n| n as u8);
        let none = [None; DATABASES];
        Layout { slots, tables: none, annexes: none }
    }

    pub(crate) fn table(&self, slot: u8) -> Option<TableId> {
        self.tables.get(usize::from(slot)).copied().flatten()
    }

    fn annex_table(&self, slot: u8) -> Option<TableId> {
        self.annexes.get(usize::from(slot)).copied().flatten()
    }

    pub(crate) fn slot(&self, db: u8) -> u8 {
        self.slots.get(usize::from(db)).copied().unwrap_or_default()
    }

    /// The logical database that a slot serves as.
    pub(crate) fn db_of(&self, slot: u8) -> u8 {
        self.slots.iter().position(|have| *have == slot).unwrap_or_default() as u8
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.slots);
        for table in self.tables.iter().chain(&self.annexes) {
            out.extend_from_slice(&table.map_or(0, |table| table.0).to_le_bytes());
        }
        out
    }

    fn decode(bytes: &[u8]) -> Option<Layout> {
        let (&version, rest) = bytes.split_first()?;
        let (slots, tables) = rest.split_first_chunk::<DATABASES>()?;
        let (ids, []) = tables.as_chunks::<4>() else { return None };
        if version != VERSION || ids.len() != 2 * DATABASES {
            return None;
        }
        let mut ids =
            ids.iter().map(|id| Some(TableId(u32::from_le_bytes(*id))).filter(|id| id.0 != 0));
        let tables = std::array::from_fn(|_| ids.next().flatten());
        let annexes = std::array::from_fn(|_| ids.next().flatten());
        Some(Layout { slots: *slots, tables, annexes })
    }
}

/// The logical databases of one [`Database`].
#[derive(Debug)]
pub(crate) struct Databases {
    database: Database,
    catalog: TableId,
    layout: RwLock<Layout>,
    /// Held while a table is made, so that one is made.
    making: Mutex<()>,
    /// How many keys each slot has.
    pub(crate) counts: Counts,
    /// Held while an annex gets its number.
    pub(super) numbering: Mutex<()>,
    /// When keys were used last.
    pub(crate) accesses: Accesses,
    /// The heads of keys that were used lately.
    pub(crate) heads: RecordCache,
    /// The members and fields that were used lately.
    pub(crate) members: RecordCache,
}

impl Databases {
    /// Whether the database was ever opened by Redis.
    pub(crate) fn are_in(database: &Database) -> kstone::Result<bool> {
        database.has_side(LAYER)
    }

    pub(crate) fn open(database: &Database) -> kstone::Result<Databases> {
        let catalog = database.side_catalog(LAYER)?;
        let layout = match database.engine().get(catalog, &Key::new(LAYOUT))? {
            None => Layout::new(),
            Some(record) => Layout::decode(&record.value).ok_or_else(|| {
                kstone::Error::Engine(kstone_core::Error::ForeignFile {
                    path: database.engine().path().to_owned(),
                    what: "its list of Redis databases is of a form that this build does not know"
                        .to_owned(),
                })
            })?,
        };
        let counts = Counts::open(database.engine(), catalog, &layout)?;
        let (layout, making) = (RwLock::new(layout), Mutex::new(()));
        let accesses = Accesses::new(database.engine().now_ms());
        let (numbering, database) = (Mutex::new(()), database.clone());
        let most = recent_bytes_max(database.engine());
        let (heads, members) = (RecordCache::new(most), RecordCache::new(most));
        let databases = Databases {
            database,
            catalog,
            layout,
            making,
            counts,
            numbering,
            accesses,
            heads,
            members,
        };
        databases.drop_unfinished_annexes()?;
        Ok(databases)
    }

    /// Drops the annexes that were being filled when the machine stopped.
    fn drop_unfinished_annexes(&self) -> kstone::Result<()> {
        let engine = self.database.engine();
        let mut batch = WriteBatch::new();
        let mut notes = engine.partition(self.catalog, annex::NOTES).iter()?;
        while let Some(note) = notes.next_ref()? {
            let Some((slot, id)) = note.sk.and_then(annex::read_note) else { continue };
            // A slot that was emptied since has dropped them with their table.
            if let Some(table) = self.annex_table(slot) {
                batch.drop_partition(table, &id.partition())?;
            }
            batch.delete(self.catalog, &annex::note_key(slot, id))?;
        }
        if !batch.is_empty() {
            engine.write(&batch, Durability::Sync)?.wait()?;
        }
        Ok(())
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout.read().clone()
    }

    pub(crate) fn slot(&self, db: u8) -> u8 {
        self.layout.read().slot(db)
    }

    pub(crate) fn table(&self, slot: u8) -> Option<TableId> {
        self.layout.read().table(slot)
    }

    pub(crate) fn owns(&self, table: TableId) -> bool {
        self.layout.read().tables.contains(&Some(table))
    }

    /// The slot that a table belongs to.
    pub(crate) fn slot_of(&self, table: TableId) -> Option<u8> {
        let layout = self.layout.read();
        layout.tables.iter().position(|have| *have == Some(table)).map(|slot| slot as u8)
    }

    /// The logical database that a slot serves as.
    pub(crate) fn db_of(&self, slot: u8) -> u8 {
        self.layout.read().db_of(slot)
    }

    /// The table of the Redis layer's own catalogue.
    pub(super) fn catalog(&self) -> TableId {
        self.catalog
    }

    /// The table of a slot; made if there is none.
    pub(crate) fn table_for_writes(&self, slot: u8) -> Result<TableId> {
        match self.table(slot) {
            Some(table) => Ok(table),
            None => self.make_table(slot, || self.new_table(), |layout| &mut layout.tables),
        }
    }

    /// Whether any slot has annexes, whose bytes are in other stripes than their keys.
    pub(crate) fn have_annexes(&self) -> bool {
        self.layout.read().annexes.iter().any(Option::is_some)
    }

    /// The table of a slot's annexes, if it has ever had one.
    pub(super) fn annex_table(&self, slot: u8) -> Option<TableId> {
        self.layout.read().annex_table(slot)
    }

    /// The table of a slot's annexes; made if there is none.
    pub(super) fn annex_table_for_writes(&self, slot: u8) -> Result<TableId> {
        match self.annex_table(slot) {
            Some(table) => Ok(table),
            None => {
                let make = || Ok(self.database.make_side_table()?);
                self.make_table(slot, make, |layout| &mut layout.annexes)
            }
        }
    }

    /// Makes the table of a slot, unless somebody else just has.
    fn make_table(
        &self,
        slot: u8,
        make: impl FnOnce() -> Result<TableId>,
        of: impl Fn(&mut Layout) -> &mut [Option<TableId>; DATABASES],
    ) -> Result<TableId> {
        let _making = self.making.lock();
        let mut layout = self.layout();
        let Some(place) = of(&mut layout).get_mut(usize::from(slot)) else {
            return Err(Fault::fixed("ERR DB index is out of range"));
        };
        if let Some(table) = *place {
            return Ok(table);
        }
        let table = make()?;
        *place = Some(table);
        let mut batch = WriteBatch::new();
        batch.put(self.catalog, &Key::new(LAYOUT), &layout.encode())?;
        self.database.engine().write(&batch, Durability::Sync)?.wait()?;
        *self.layout.write() = layout;
        Ok(table)
    }

    /// A table for the keys of a slot.
    fn new_table(&self) -> Result<TableId> {
        let table = self.database.make_side_table()?;
        self.heads.begin(table);
        self.members.begin(table);
        Ok(table)
    }

    /// Adds to a batch what empties a slot: its tables are dropped, and it gets another one if it
    /// is written to in the same commit. The layout is in force from [`Databases::install`] on, and
    /// must not change meanwhile.
    pub(crate) fn flush(
        &self,
        layout: &mut Layout,
        slot: u8,
        batch: &mut WriteBatch,
        is_written_to: bool,
    ) -> Result<()> {
        let annexes = layout.annexes.get_mut(usize::from(slot)).and_then(Option::take);
        if let Some(annexes) = annexes {
            self.database.drop_side_table(annexes, batch)?;
        }
        let Some(old) = layout.table(slot) else { return Ok(()) };
        let new = is_written_to.then(|| self.new_table()).transpose()?;
        if let Some(place) = layout.tables.get_mut(usize::from(slot)) {
            *place = new;
        }
        Ok(self.database.drop_side_table(old, batch)?)
    }

    /// Gives a slot that will be written to a table, if the layout has none for it.
    pub(crate) fn ensure_table(&self, layout: &mut Layout, slot: u8) -> Result<()> {
        if let Some(place @ None) = layout.tables.get_mut(usize::from(slot)) {
            *place = Some(self.new_table()?);
        }
        Ok(())
    }

    /// Adds a changed layout to a batch.
    pub(crate) fn note(&self, layout: &Layout, batch: &mut WriteBatch) -> Result<()> {
        Ok(batch.put(self.catalog, &Key::new(LAYOUT), &layout.encode())?)
    }

    /// Adds to a batch that a library of functions is stored, or removed.
    pub(crate) fn note_library(
        &self,
        name: &str,
        text: Option<&[u8]>,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let at = KeyRef { pk: LIBRARIES, sk: Some(name.as_bytes()) };
        match text {
            Some(text) => Ok(batch.put(self.catalog, at, text)?),
            None => Ok(batch.delete(self.catalog, at)?),
        }
    }

    /// Adds to a batch that an entry of the index of persons is written, or deleted.
    pub(crate) fn note_subject(
        &self,
        entry: &IndexEntry,
        is_written: bool,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let (table, key, item) = self.database.subject_record(entry)?;
        match is_written {
            true => Ok(batch.put(table, &key, &item)?),
            false => Ok(batch.delete(table, &key)?),
        }
    }

    /// The texts of the libraries of functions that are stored, by their names.
    pub(crate) fn libraries(&self) -> Result<Vec<Vec<u8>>> {
        let engine = self.database.engine();
        let mut stored = engine.partition(self.catalog, Bytes::from_static(LIBRARIES)).iter()?;
        let mut texts = Vec::new();
        while let Some(record) = stored.next_ref()? {
            texts.push(record.value.to_vec());
        }
        Ok(texts)
    }

    /// The layout that was just committed.
    pub(crate) fn install(&self, layout: Layout, flushed: &[u8]) {
        *self.layout.write() = layout;
        for slot in flushed {
            self.counts.clear(*slot);
        }
    }
}

/// What the heads that were used lately may take, and the members again: as much as the engine was
/// given, on top of it. A million keys with values of 100 bytes fit beside the usual 256 MiB.
pub(crate) fn recent_bytes_max(engine: &Engine) -> usize {
    engine.memory_budget_bytes()
}

impl Drop for Databases {
    fn drop(&mut self) {
        // If this fails, they are counted again.
        let _ = self.counts.save(self.database.engine(), self.catalog);
    }
}

impl From<&'static str> for Fault {
    fn from(message: &'static str) -> Self {
        Fault::fixed(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_survives_being_written_down() {
        let mut layout = Layout::new();
        layout.slots.swap(0, 3);
        layout.tables[3] = Some(TableId(17));
        layout.annexes[5] = Some(TableId(19));
        assert_eq!(Layout::decode(&layout.encode()), Some(layout.clone()));
        let mut longer = layout.encode();
        longer.push(0);
        assert_eq!(Layout::decode(&longer), None);
    }
}
