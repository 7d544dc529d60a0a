//! Purges items: deletes them, and removes their bytes from every file that can hold them.
//!
//! First everything goes in the ordinary way, under the locks: items with their index entries, told
//! to the policy in force but to no stream; then the records that streams keep of them. The same in
//! every checkpoint that was made from this database, because a checkpoint is a database of its
//! own, in which the item may have been different. After that nobody can read any of it, and the
//! engine removes the bytes that nobody can read ([`PurgeTarget::RemainsIn`]), here and in the
//! checkpoints, from the stripes of the items. Local index entries and stream records are in the
//! item's own stripe.
//!
//! An entry of a global index is elsewhere, and has been in other places before, each time when the
//! attribute changed that it is found by. Those places are not recorded. So of a table that
//! has global indexes, or that is gone, every stripe is rewritten. (Of an index that was dropped, or
//! of a table that was dropped and made again, no record is left: a caller that must be sure asks for the
//! remains.)
//!
//! All of it can be interrupted anywhere. Asked for again, it finds nothing to delete any more where
//! that was done, and the stripes follow from the keys alone.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kstone_core::env::Env;
use kstone_core::{
    Durability, Key, Options, PurgeSnapshots, PurgeTarget, StripeSet, TableId, WriteBatch,
    stripe_of,
};

use crate::cost::Costs;
use crate::database::locking::Stop;
use crate::database::{Database, DatabaseOptions};
use crate::error::{Error, Result};
use crate::staging::{Cause, Staged};
use crate::stream::partition_of;
use crate::stream::record::{self, StoredChange};
use crate::table::live::Table;
use crate::value::ItemBytes;
use crate::write_policy::key_text;
use kstone_ports::items::{PurgeItems, PurgeReport, StreamImage, StreamImageFilter};

/// Items or stream records of one commit. Why not more: other writers wait for the locks of all
/// their stripes.
const CHUNK: usize = 128;
/// How long readers have who began before. After that their snapshots are ended.
const READERS_WAIT: Duration = Duration::from_secs(5);

/// What a request means to one database: the live one, or a checkpoint.
#[derive(Default)]
struct Plan {
    /// By name; `None` for tables that are gone.
    tables: BTreeMap<String, Option<TablePlan>>,
    stripes: StripeSet,
}

/// What is to go from one table.
struct TablePlan {
    table: Arc<Table>,
    items: Vec<Key>,
    partitions: Vec<Bytes>,
}

impl Plan {
    /// The keys of a request by table, and the stripes that hold or held anything of them.
    fn new(db: &Database, request: &PurgeItems) -> Result<Plan> {
        let mut plan = Plan::default();
        for (name, item) in &request.items {
            if let Some((planned, stripes)) = plan.of(db, name)? {
                let key = planned.table.key_of_tree(item)?;
                stripes.insert(key.stripe());
                planned.items.push(key);
            }
        }
        for (name, value) in &request.partitions {
            if let Some((planned, stripes)) = plan.of(db, name)? {
                let pk = planned.table.partition_of_value(value)?;
                stripes.insert(stripe_of(&pk));
                planned.partitions.push(pk);
            }
        }
        Ok(plan)
    }

    fn of(
        &mut self,
        db: &Database,
        name: &str,
    ) -> Result<Option<(&mut TablePlan, &mut StripeSet)>> {
        if !self.tables.contains_key(name) {
            let planned = match db.table_to_write(name) {
                Ok(table) => Some(TablePlan { table, items: Vec::new(), partitions: Vec::new() }),
                Err(Error::NotFound(_)) => None,
                Err(error) => return Err(error),
            };
            self.tables.insert(name.to_owned(), planned);
        }
        let planned = self.tables.get_mut(name).and_then(Option::as_mut);
        Ok(planned.map(|planned| (planned, &mut self.stripes)))
    }

    fn planned(&self) -> impl Iterator<Item = &TablePlan> {
        self.tables.values().flatten()
    }

    /// Whether a table is gone. Its bytes are there until compaction passes, those of its indexes
    /// among them.
    fn has_gone(&self) -> bool {
        self.tables.values().any(Option::is_none)
    }

    /// Whether entries of indexes are in other stripes than their items.
    fn has_global(&self) -> bool {
        self.planned().any(|one| one.table.has_global)
    }
}

impl Database {
    /// See [`Items::purge`](kstone_ports::items::Items::purge).
    pub(crate) fn purge_now(&self, request: &PurgeItems) -> Result<PurgeReport> {
        let first_seq = self.engine().applied_seq() + 1;
        if *request == PurgeItems::default() {
            // Who asks for nothing wants to know the number.
            return Ok(PurgeReport { first_seq, last_seq: first_seq, ..PurgeReport::default() });
        }
        let db = self.with_durability(Durability::Sync);
        let plan = Plan::new(&db, request)?;
        let mut is_everywhere = request.remains
            || request.stream_images.is_some()
            || plan.has_gone()
            || plan.has_global();
        let delete_images = |db: &Database| match &request.stream_images {
            Some(filter) => db.delete_stream_records_of(filter),
            None => Ok(0),
        };
        let mut records = db.delete_planned(&plan)? + delete_images(&db)?;
        for path in db.engine().checkpoints() {
            let Some(copy) = db.open_checkpoint(&path)? else { continue };
            let planned = match Plan::new(&copy, request) {
                // A table of this name with another key is another table.
                Err(Error::Validation(_)) => Plan::default(),
                planned => planned?,
            };
            is_everywhere |= planned.has_global();
            records += copy.delete_planned(&planned)? + delete_images(&copy)?;
        }
        let targets: Vec<PurgeTarget> = match is_everywhere {
            true => vec![PurgeTarget::Remains],
            false => plan.stripes.iter().map(|stripe| PurgeTarget::RemainsIn { stripe }).collect(),
        };
        let purged = db.engine().purge(&targets, PurgeSnapshots::EndAfter(READERS_WAIT))?;
        Ok(PurgeReport {
            records,
            stripes: purged.stripes,
            checkpoints: purged.checkpoints.len() as u64,
            missing_checkpoints: purged.missing,
            first_seq,
            last_seq: purged.last_seq.max(first_seq),
            read_bytes: purged.read_bytes,
            took: purged.took,
        })
    }

    /// Deletes what is planned; answers how many records that were.
    fn delete_planned(&self, plan: &Plan) -> Result<u64> {
        let mut deleted = 0;
        for planned in plan.planned() {
            let table = &planned.table;
            deleted += self.delete_items(table, &planned.items)?;
            for pk in &planned.partitions {
                deleted += self.delete_items(table, &self.keys_of_partition(table, pk)?)?;
            }
            deleted += self.delete_stream_records(planned)?;
        }
        Ok(deleted)
    }

    /// Every key of a partition, also of items whose time is over.
    fn keys_of_partition(&self, table: &Table, pk: &Bytes) -> Result<Vec<Key>> {
        let snapshot = self.engine().snapshot_even_expired();
        let mut found = snapshot.partition(table.id(), pk.clone()).iter()?;
        let mut keys = Vec::new();
        while let Some(record) = found.next_ref()? {
            let sk = record.sk.map(Bytes::copy_from_slice);
            keys.push(Key { pk: pk.clone(), sk });
        }
        Ok(keys)
    }

    /// Deletes items without telling the table's stream.
    fn delete_items(&self, table: &Arc<Table>, keys: &[Key]) -> Result<u64> {
        let mut keys: Vec<&Key> = keys.iter().collect();
        keys.sort_unstable_by_key(|key| key.stripe());
        let mut deleted = 0;
        for chunk in keys.chunks(CHUNK) {
            deleted += self.again_on(
                table,
                |staged, table| {
                    let mut deleted = 0;
                    for key in chunk {
                        if let Some(stored) = staged.stored(table.id(), key)? {
                            staged.delete(table, key, &stored, Cause::Purge)?;
                            deleted += 1 + index_entries(table, key, &stored.item);
                        }
                    }
                    Ok(deleted)
                },
                chunk.iter().map(|key| key.stripe()).collect(),
            )?;
        }
        Ok(deleted)
    }

    /// Deletes the records of a table's streams that tell of these items.
    fn delete_stream_records(&self, planned: &TablePlan) -> Result<u64> {
        let TablePlan { table, items, partitions } = planned;
        let keys: HashSet<&Key> = items.iter().collect();
        let partitions: HashSet<&Bytes> = partitions.iter().collect();
        let stripes: StripeSet = keys
            .iter()
            .map(|key| key.stripe())
            .chain(partitions.iter().map(|pk| stripe_of(pk)))
            .collect();
        let is_theirs = |change: &StoredChange| {
            let key = table.key_of_request(change.keys.as_ref())?;
            Ok(keys.contains(&key) || partitions.contains(&key.pk))
        };
        self.delete_records(table, stripes, &is_theirs)
    }

    /// Deletes the records of all streams that tell of what is named so.
    fn delete_stream_records_of(&self, filter: &StreamImageFilter) -> Result<u64> {
        let mut deleted = 0;
        for table in self.inner().catalog.all() {
            let is_meant = |change: &StoredChange| {
                let key = table.key_of_request(change.keys.as_ref())?;
                let (pk, sk) = key_text(&table, &key);
                let images = [Some(&change.keys), change.old.as_ref(), change.new.as_ref()];
                Ok(images.into_iter().flatten().any(|image| {
                    let (table, sk) = (table.name(), sk.as_deref());
                    (filter.0)(&StreamImage { table, pk: &pk, sk, image: image.as_ref() })
                }))
            };
            deleted += self.delete_records(&table, StripeSet::ALL, &is_meant)?;
        }
        Ok(deleted)
    }

    /// Deletes records of a table's streams.
    fn delete_records(
        &self,
        table: &Table,
        stripes: StripeSet,
        goes: &dyn Fn(&StoredChange) -> Result<bool>,
    ) -> Result<u64> {
        let mut deleted = 0;
        for stream in &table.record.streams {
            let stream = TableId(stream.id);
            for stripe in stripes.iter() {
                let partition = Bytes::from_static(partition_of(stripe));
                let snapshot = self.engine().snapshot_even_expired();
                let mut stream_keys = Vec::new();
                let mut records = snapshot.partition(stream, partition.clone()).iter()?;
                while let Some(found) = records.next_ref()? {
                    if goes(&record::decode(&Bytes::copy_from_slice(found.value))?)? {
                        let sk = found.sk.map(Bytes::copy_from_slice);
                        stream_keys.push(Key { pk: partition.clone(), sk });
                    }
                }
                for chunk in stream_keys.chunks(CHUNK) {
                    let mut batch = WriteBatch::new();
                    for key in chunk {
                        batch.delete(stream, key)?;
                    }
                    self.engine().write(&batch, Durability::Os)?.wait()?;
                    deleted += chunk.len() as u64;
                }
            }
        }
        Ok(deleted)
    }

    /// Runs `work` under locks on the table as it is, again when it was changed meanwhile. Of a
    /// table that is gone by then, nothing is left to do.
    fn again_on<T: Default>(
        &self,
        table: &Arc<Table>,
        work: impl Fn(&mut Staged<'_>, &Table) -> Result<T>,
        stripes: StripeSet,
    ) -> Result<T> {
        let mut table = Arc::clone(table);
        loop {
            let changed = self.change(stripes, Costs::default, |staged| {
                Stop::unless_current(&table)?;
                Ok(work(staged, &table)?)
            })?;
            if let Some(changed) = changed {
                return changed.result;
            }
            table = match self.table_for_items(table.name()) {
                Ok(table) => table,
                Err(Error::NotFound(_)) => return Ok(T::default()),
                Err(error) => return Err(error),
            };
        }
    }

    /// Opens a checkpoint of this database as a database of its own; `None` if it is not where it was
    /// made. No background work runs in it.
    pub fn open_checkpoint(&self, path: impl AsRef<Path>) -> Result<Option<Database>> {
        // Without threads there is no background work.
        let env = Env { threads: None, ..self.inner().env.clone() };
        let engine = Options { create_if_missing: false, ..self.inner().options.clone() };
        let options = DatabaseOptions { engine, durability: Durability::Sync };
        match Database::open_with(env, path, options) {
            Ok(copy) if copy.engine().id() == self.engine().id() => Ok(Some(copy.internal())),
            Ok(_another) => Ok(None),
            Err(Error::Engine(kstone_core::Error::NotFound { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// How many entries of indexes an item has.
fn index_entries(table: &Table, key: &Key, item: &ItemBytes) -> u64 {
    let entries = table.indexes.iter().filter_map(|index| index.entry_key(key, item.as_ref()));
    entries.count() as u64
}
