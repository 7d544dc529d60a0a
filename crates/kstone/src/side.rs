//! Side tables: tables that other crates keep on the same engine, and their hook for removing expired
//! records.
//!
//! The engine has one log, one list of what expires, and one numbering of tables for everybody. So
//! a layer beside this one (Redis's types, say) makes its tables through here, and is handed what
//! has expired in them.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use kstone_core::sync::{Mutex, RwLock};
use kstone_core::{Durability, Engine, Expired, Key, TableId, WriteBatch};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::table::catalog::SYSTEM;

/// The partition of [`SYSTEM`] that says where each layer keeps its own catalogue.
const SIDES: &[u8] = b"sides";

/// The partition of [`SYSTEM`] that lists the tables made for other layers, by their ids.
const SIDE_TABLES: &[u8] = b"side-tables";

/// Removes what has expired in tables that are not this crate's.
pub trait ExpiredRecordHandler: Send + Sync + std::fmt::Debug {
    /// Whether the table is its own.
    fn owns(&self, table: TableId) -> bool;
    /// Removes these, if they are still what they were.
    fn reclaim(&self, expired: &[&Expired]) -> kstone_core::Result<()>;
    /// Does a little of whatever else it has to do that nobody waits for; answers whether there is
    /// more. Called about once a second.
    fn tidy(&self) -> kstone_core::Result<bool> {
        Ok(false)
    }
}

/// The tables of other layers, and the layers that are open.
#[derive(Debug, Default)]
pub(crate) struct SideTables {
    reclaimers: RwLock<Vec<Arc<dyn ExpiredRecordHandler>>>,
    /// The tables made for other layers, once they were read.
    tables: RwLock<Option<HashSet<TableId>>>,
    /// Where the reclaiming goes on.
    pub reclaimed: Mutex<Position>,
    /// The layers that are open, by their names.
    open: Mutex<HashMap<String, Weak<dyn Any + Send + Sync>>>,
}

/// How far a round of reclaiming has come.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Position {
    /// The stripe to go on with.
    pub stripe: u8,
    /// So many records of it are left where they are, and looked past.
    pub left: usize,
    /// How many of this round are left because their layers are not open.
    pub left_in_round: usize,
    /// How many they were in the last round.
    pub left_in_last: usize,
}

/// Expired records in other layers' tables.
#[derive(Debug)]
pub(crate) struct ExpiredSideRecords<'e> {
    of: Vec<(Arc<dyn ExpiredRecordHandler>, Vec<&'e Expired>)>,
    /// In tables of layers that are not here.
    pub left: Vec<&'e Expired>,
}

impl SideTables {
    /// Divides what expired into what other layers own and the rest. What is in a table of a layer
    /// that is not here stays as it is: only that layer knows what belongs to it.
    pub fn divide<'e>(
        &self,
        engine: &Engine,
        expired: Vec<&'e Expired>,
    ) -> Result<(ExpiredSideRecords<'e>, Vec<&'e Expired>)> {
        let mut rest = expired;
        let mut of = Vec::new();
        for reclaimer in self.reclaimers.read().iter() {
            let (own, others) = rest.into_iter().partition(|one| reclaimer.owns(one.table));
            of.push((Arc::clone(reclaimer), own));
            rest = others;
        }
        let mut left = Vec::new();
        if !rest.is_empty() {
            self.read_tables(engine)?;
            let tables = self.tables.read();
            let is_side =
                |one: &&Expired| tables.as_ref().is_some_and(|tables| tables.contains(&one.table));
            (left, rest) = rest.into_iter().partition(is_side);
        }
        Ok((ExpiredSideRecords { of, left }, rest))
    }

    fn read_tables(&self, engine: &Engine) -> Result<()> {
        let mut tables = self.tables.write();
        if tables.is_some() {
            return Ok(());
        }
        let mut found = HashSet::new();
        let mut listed = engine.partition(SYSTEM, SIDE_TABLES).iter()?;
        while let Some(record) = listed.next_ref()? {
            let id = record.sk.and_then(|sk| sk.try_into().ok()).map(u32::from_be_bytes);
            found.extend(id.map(TableId));
        }
        *tables = Some(found);
        Ok(())
    }
}

impl SideTables {
    /// Whether there is another layer.
    pub fn any(&self) -> bool {
        !self.reclaimers.read().is_empty()
    }

    /// Lets each layer do a little of its own work; answers whether there is more.
    pub fn tidy(&self) -> Result<bool> {
        let reclaimers = self.reclaimers.read().clone();
        let mut is_more = false;
        for reclaimer in reclaimers {
            is_more |= reclaimer.tidy()?;
        }
        Ok(is_more)
    }
}

impl ExpiredSideRecords<'_> {
    /// Removes it; what fails in one layer keeps no other from it, and is left.
    pub fn reclaim(&mut self) -> Result<()> {
        let mut failure = None;
        for (reclaimer, expired) in &self.of {
            if !expired.is_empty()
                && let Err(error) = reclaimer.reclaim(expired)
            {
                self.left.extend(expired);
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(()), |error| Err(error.into()))
    }
}

impl Database {
    /// Makes an engine table for another layer, which has to remember its id. Durable when this
    /// returns.
    pub fn make_side_table(&self) -> Result<TableId> {
        // While a table of ours is made, a crash would take what was made meanwhile for its rest.
        let changing = self.inner().catalog.change(self.engine());
        self.inner().sides.read_tables(self.engine())?;
        let table = self.engine().create_table()?;
        let mut batch = WriteBatch::new();
        let key = Key::with_sk(SIDE_TABLES.to_vec(), table.0.to_be_bytes().to_vec());
        batch.put(SYSTEM, &key, b"")?;
        changing.note_form(&mut batch)?;
        self.engine().write(&batch, Durability::Sync)?.wait()?;
        if let Some(tables) = &mut *self.inner().sides.tables.write() {
            tables.insert(table);
        }
        Ok(table)
    }

    /// Adds to a batch that a table which was made for another layer is dropped, with everything in
    /// it.
    pub fn drop_side_table(&self, table: TableId, batch: &mut WriteBatch) -> Result<()> {
        let key = Key::with_sk(SIDE_TABLES.to_vec(), table.0.to_be_bytes().to_vec());
        batch.delete(SYSTEM, &key)?;
        Ok(batch.drop_table(table)?)
    }

    /// The table in which a layer keeps its own catalogue; made when it is first asked for.
    pub fn side_catalog(&self, layer: &str) -> Result<TableId> {
        let key = side_key(layer);
        let changing = self.inner().catalog.change(self.engine());
        if let Some(found) = self.engine().get(SYSTEM, &key)? {
            let id = found.value.as_ref().try_into().map_or(u32::MAX, u32::from_le_bytes);
            return Ok(TableId(id));
        }
        let table = self.engine().create_table()?;
        let mut batch = WriteBatch::new();
        batch.put(SYSTEM, &key, &table.0.to_le_bytes())?;
        changing.note_form(&mut batch)?;
        self.engine().write(&batch, Durability::Sync)?.wait()?;
        Ok(table)
    }

    /// Whether a layer was ever opened in this database.
    pub fn has_side(&self, layer: &str) -> Result<bool> {
        Ok(self.engine().get(SYSTEM, &side_key(layer))?.is_some())
    }

    /// The layer of this name: the one that is open, or the one that `open` opens. Two of a kind on
    /// the same tables would not see each other's locks.
    pub fn open_side<T: Send + Sync + 'static>(
        &self,
        layer: &str,
        open: impl FnOnce() -> Result<Arc<T>>,
    ) -> Result<Arc<T>> {
        let mut layers = self.inner().sides.open.lock();
        if let Some(layer) = layers.get(layer).and_then(Weak::upgrade) {
            let other = || Error::InUse("another layer of this name is open".to_owned());
            return layer.downcast().map_err(|_| other());
        }
        let opened = open()?;
        let weak = Arc::downgrade(&opened);
        layers.insert(layer.to_owned(), weak);
        Ok(opened)
    }

    /// From now on what expires in the tables that `reclaimer` owns is its to remove.
    pub fn reclaim_with(&self, reclaimer: Arc<dyn ExpiredRecordHandler>) {
        self.inner().sides.reclaimers.write().push(reclaimer);
        // So that its first pause is a short one already.
        self.wake();
    }

    /// Removes what has expired soon, without waiting for the next round.
    pub fn wake(&self) {
        self.wake_background();
    }
}

/// Where the system table says which table a layer's catalogue is.
fn side_key(layer: &str) -> Key {
    Key::with_sk(SIDES.to_vec(), layer.as_bytes().to_vec())
}
