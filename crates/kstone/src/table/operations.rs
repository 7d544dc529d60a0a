//! Creates, changes, describes and drops tables.

use std::sync::Arc;

use kstone_core::{ScanCursor, TableId, stripe_of};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::table::catalog::Changing;
use crate::table::live::Table;
use crate::table::raw::{RawTable, RawTableChange};
use crate::table::record::{IndexRecord, StreamRecord, TableRecord};
use crate::table::{
    IndexSpec, IndexState, Status, StreamView, TableDescription, TableSpec, Throughput, TtlState,
};

/// Up to how many items a description counts them; above, it goes by the part that was counted.
const COUNTED_MAX: u64 = 5_000;

/// A change to a table. What is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct TableChange {
    /// Provisioned throughput, or on demand.
    pub billing: Option<Billing>,
    /// Opens a change stream, or closes the one that is open.
    pub stream: Option<Option<StreamView>>,
    /// Makes a global index and fills it from the items that are there.
    pub create_index: Option<IndexSpec>,
    /// Drops a global index.
    pub delete_index: Option<String>,
    /// Changes an index's throughput.
    pub index_throughput: Vec<(String, Throughput)>,
    /// Whether deleting the table is refused.
    pub deletion_protection: Option<bool>,
    /// `STANDARD` or `STANDARD_INFREQUENT_ACCESS`.
    pub table_class: Option<String>,
    /// Server-side encryption as asked for.
    pub encryption: Option<bool>,
    /// Maximum on-demand throughput. What is `None` inside stays as it is; -1 is no maximum.
    pub on_demand: Option<(Option<i64>, Option<i64>)>,
}

/// How a table's throughput is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Billing {
    /// By request.
    OnDemand,
    /// By provisioned units.
    Provisioned(Throughput),
}

impl Database {
    /// Makes a table. It can be used when this returns.
    pub fn create_table(&self, spec: &TableSpec) -> Result<TableDescription> {
        let spec = &RawTable::from(spec).resolve()?;
        self.check_may_write(&spec.name)?;
        let inner = self.inner();
        let mut changing = inner.catalog.change(&inner.engine);
        if changing.get(&spec.name).is_some() {
            return Err(Error::InUse(format!("Table already exists: {}", spec.name)));
        }
        let index = |changing: &mut Changing<'_>| -> Result<IndexRecord> {
            Ok(IndexRecord { id: changing.engine_table()?.0, status: Status::Active })
        };
        let now_ms = inner.engine.now_ms();
        let mut record = TableRecord {
            id: changing.engine_table()?.0,
            uuid: self.random_uuid(),
            local: spec.local.iter().map(|_| index(&mut changing)).collect::<Result<_>>()?,
            global: spec.global.iter().map(|_| index(&mut changing)).collect::<Result<_>>()?,
            streams: Vec::new(),
            status: Status::Active,
            created_ms: now_ms,
            ttl: TtlState::Off,
            on_demand_since_ms: spec.throughput.is_none().then_some(now_ms),
            throughput_changed_ms: [None, None],
            spec: spec.clone(),
        };
        if let Some(view) = spec.stream {
            record.streams.push(self.new_stream(&mut changing, view, None)?);
        }
        let table = changing.put(record, &[])?;
        Ok(self.describe(&table))
    }

    /// Drops a table and everything in it.
    pub fn delete_table(&self, name: &str) -> Result<TableDescription> {
        let inner = self.inner();
        let changing = inner.catalog.change(&inner.engine);
        let table = self.existing(&changing, name)?;
        self.check_may_write(name)?;
        if table.record.spec.deletion_protection {
            return Err(Error::validation(
                "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.",
            ));
        }
        if table.record.global.iter().any(|index| index.status != Status::Active) {
            return Err(Error::InUse(
                "Attempt to change a resource which is still in use: Cannot delete table while \
                 indexes are being created, updated, or deleted."
                    .to_owned(),
            ));
        }
        let description = self.describe(&table);
        changing.remove(&table)?;
        if let Some(policy) = self.policy() {
            policy.dropped(name);
        }
        Ok(TableDescription { status: Status::Deleting, ..description })
    }

    /// What a table is like now.
    pub fn describe_table(&self, name: &str) -> Result<TableDescription> {
        let table = self.inner().catalog.get(name).ok_or_else(|| no_such_table(name))?;
        Ok(self.describe(&table))
    }

    /// The names of all tables after `after`, in order, at most `limit`; and whether there are more.
    pub fn list_tables(&self, after: Option<&str>, limit: usize) -> (Vec<String>, bool) {
        let mut names = self.inner().catalog.names(after);
        let more = names.len() > limit;
        names.truncate(limit);
        (names, more)
    }

    /// Changes a table. A new index is filled in the background; the table can be used meanwhile.
    pub fn update_table(&self, name: &str, change: &TableChange) -> Result<TableDescription> {
        self.update_table_as_requested(name, &RawTableChange::from(change))
    }

    /// Makes the change that `resolve` gives for the table as it is.
    pub(crate) fn change_table(
        &self,
        name: &str,
        resolve: impl FnOnce(&TableRecord) -> Result<TableChange>,
    ) -> Result<TableDescription> {
        let inner = self.inner();
        let mut changing = inner.catalog.change(&inner.engine);
        let table = self.existing(&changing, name)?;
        self.check_may_write(name)?;
        let change = &resolve(&table.record)?;
        let mut record = table.record.clone();
        let now_ms = inner.engine.now_ms();
        match change.billing {
            Some(Billing::OnDemand) => {
                if record.spec.throughput.take().is_some() {
                    record.on_demand_since_ms = Some(now_ms);
                }
                for index in &mut record.spec.global {
                    index.throughput = None;
                }
            }
            Some(Billing::Provisioned(throughput)) => {
                let before = record.spec.throughput.unwrap_or_default();
                let raised = throughput.read > before.read || throughput.write > before.write;
                record.throughput_changed_ms[usize::from(!raised)] = Some(now_ms);
                record.spec.throughput = Some(throughput);
            }
            None => {}
        }
        for (name, throughput) in &change.index_throughput {
            if let Some(index) = record.spec.global.iter_mut().find(|index| index.name == *name) {
                index.throughput = Some(*throughput);
            }
        }
        if let Some(view) = change.stream {
            self.change_stream(&mut changing, &mut record, view)?;
        }
        if let Some(protection) = change.deletion_protection {
            record.spec.deletion_protection = protection;
        }
        if let Some(class) = &change.table_class {
            record.spec.table_class = Some(class.clone());
        }
        if let Some(encryption) = change.encryption {
            record.spec.encryption = Some(encryption);
        }
        if let Some((read, write)) = change.on_demand {
            let (read_before, write_before) = record.spec.on_demand.unwrap_or_default();
            record.spec.on_demand = Some((read.or(read_before), write.or(write_before)));
        }
        let mut dropped = None;
        if let Some(name) = &change.delete_index
            && let Some(at) = record.spec.global.iter().position(|index| index.name == *name)
        {
            record.spec.global.remove(at);
            dropped = Some(TableId(record.global.remove(at).id));
        }
        if let Some(spec) = &change.create_index {
            let id = changing.engine_table()?.0;
            record.spec.global.push(spec.clone());
            record.global.push(IndexRecord { id, status: Status::Creating });
        }
        let shown_before = self.describe(&table);
        let changed = changing.put(record, dropped.as_slice())?;
        drop(changing);
        let mut shown = self.describe(&changed);
        if change.create_index.is_some() {
            self.wake_background();
        }
        if let Some(name) = &change.delete_index {
            show_deleting(&mut shown, shown_before, name);
        }
        if change.billing.is_some() || change.delete_index.is_some() || change.stream.is_some() {
            shown.status = Status::Updating;
        }
        Ok(shown)
    }

    fn existing(&self, changing: &Changing<'_>, name: &str) -> Result<Arc<Table>> {
        changing.get(name).ok_or_else(|| no_such_table(name))
    }

    fn new_stream(
        &self,
        changing: &mut Changing<'_>,
        view: StreamView,
        last: Option<&StreamRecord>,
    ) -> Result<StreamRecord> {
        // Two streams of one table must not have the same label.
        let after_ms = last.map_or(0, |last| last.created_ms + 1);
        let created_ms = self.inner().engine.now_ms().max(after_ms);
        Ok(StreamRecord { id: changing.engine_table()?.0, view, created_ms, closed_ms: None })
    }

    fn change_stream(
        &self,
        changing: &mut Changing<'_>,
        record: &mut TableRecord,
        view: Option<StreamView>,
    ) -> Result<()> {
        let now_ms = self.inner().engine.now_ms();
        match view {
            Some(view) => {
                let stream = self.new_stream(changing, view, record.streams.first())?;
                record.streams.insert(0, stream);
            }
            None => {
                if let Some(open) = record.streams.first_mut() {
                    open.closed_ms = Some(now_ms);
                }
            }
        }
        record.spec.stream = view;
        Ok(())
    }

    pub(crate) fn describe(&self, table: &Table) -> TableDescription {
        let record = &table.record;
        let (items, bytes) = self.count(table.id());
        let backfilling = self.inner().background.progress(table.id());
        let state = |index: &IndexRecord| {
            let (items, bytes) = match index.status {
                Status::Creating => (0, 0),
                _ => self.count(TableId(index.id)),
            };
            let backfilled = (index.status == Status::Creating)
                .then(|| backfilling.get(&index.id).copied().unwrap_or(0));
            IndexState { status: index.status, backfilled, items, bytes }
        };
        let global: Vec<IndexState> = record.global.iter().map(state).collect();
        let busy = global.iter().any(|index| index.status != Status::Active);
        TableDescription {
            spec: record.spec.clone(),
            id: record.uuid.clone(),
            status: if busy { Status::Updating } else { record.status },
            created_ms: record.created_ms,
            items,
            bytes,
            global,
            local: record.local.iter().map(state).collect(),
            stream_label: record.streams.first().map(|s| crate::stream::label(s.created_ms)),
            on_demand_since_ms: record.on_demand_since_ms,
            throughput_changed_ms: record.throughput_changed_ms,
            ttl: record.ttl.clone(),
        }
    }

    /// How many items a table or index has, and their bytes; exact up to [`COUNTED_MAX`], an
    /// estimate from the first stripes above.
    fn count(&self, table: TableId) -> (u64, u64) {
        let (mut items, mut bytes) = (0, 0);
        let mut scan = self.inner().engine.snapshot().scan(table, ScanCursor::start());
        while let Ok(Some(record)) = scan.next_ref() {
            items += 1;
            bytes += record.value.len() as u64;
            if items >= COUNTED_MAX {
                let stripes = u64::from(stripe_of(record.pk)) + 1;
                return (items * 256 / stripes, bytes * 256 / stripes);
            }
        }
        (items, bytes)
    }

    fn random_uuid(&self) -> String {
        let random = &self.inner().env.random;
        let bits = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        // Version 4, variant 1.
        let bits = bits & !(0xF000 << 64) & !(0xC000 << 48) | 0x4000 << 64 | 0x8000 << 48;
        let hex = format!("{bits:032x}");
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
    }
}

/// An index that is gone already is shown once more, as DynamoDB does while it drops one.
fn show_deleting(shown: &mut TableDescription, before: TableDescription, name: &str) {
    let Some(at) = before.spec.global.iter().position(|index| index.name == name) else { return };
    let (mut specs, mut states) = (before.spec.global, before.global);
    let (spec, state) = (specs.swap_remove(at), states.swap_remove(at));
    shown.spec.global.push(spec);
    shown.global.push(IndexState { status: Status::Deleting, ..state });
}

/// What DynamoDB says of a table that does not exist, in operations on tables.
pub(crate) fn no_such_table(name: &str) -> Error {
    Error::NotFound(format!("Requested resource not found: Table: {name} not found"))
}
