//! BatchGetItem and BatchWriteItem: many independent reads or writes in one request.

use std::sync::Arc;

use kstone_core::{Key, StripeSet};

use crate::cost::Costs;
use crate::database::locking::{Changed, Stop};
use crate::database::{Database, Reply};
use crate::error::{Error, Result, table_gone};
use crate::ops::binding::Unbound;
use crate::ops::put::{encode_checked, stripes_of_put};
use crate::ops::write_output::collection_metrics;
use crate::ops::{
    BatchGet, BatchGetOutput, BatchWrite, BatchWriteOutput, CollectionMetrics, WriteRequest,
    add_consumed,
};
use crate::policy::Effect;
use crate::table::live::Table;
use crate::value::ItemBytes;

/// The keys of a [`BatchGet`].
const GETS_MAX: usize = 100;
/// The writes of a [`BatchWrite`].
const WRITES_MAX: usize = 25;
/// The bytes of items that a [`BatchGet`] returns.
const GET_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Database {
    /// Reads many items, each for itself, but all as of one moment.
    pub fn batch_get(&self, request: &BatchGet) -> Reply<BatchGetOutput> {
        match self.try_batch_get(request) {
            Ok((output, seq)) => self.reply(Ok(output), seq),
            Err(error) => Reply::ready(Err(error)),
        }
    }

    fn try_batch_get(&self, request: &BatchGet) -> Result<(BatchGetOutput, kstone_core::Seq)> {
        if request.tables.iter().map(|table| table.keys.len()).sum::<usize>() > GETS_MAX {
            return Err(Error::validation("Too many items requested for the BatchGetItem call"));
        }
        let mut plans = Vec::with_capacity(request.tables.len());
        for wanted in &request.tables {
            let unbound = Unbound { projection: wanted.projection.as_ref(), ..Unbound::default() };
            plans.push(self.bind(&unbound, &wanted.placeholders)?.projection);
        }
        let mut tables = Vec::with_capacity(request.tables.len());
        for wanted in &request.tables {
            let table = self.table_for_items(&wanted.table)?;
            let mut keys = Vec::with_capacity(wanted.keys.len());
            for key in &wanted.keys {
                keys.push(table.key_of_tree(key)?);
            }
            refuse_duplicates(&keys)?;
            tables.push((table, keys));
        }
        let snapshot = self.engine().snapshot();
        let mut output = BatchGetOutput::default();
        let mut costs = Costs::reads(request.capacity);
        let mut bytes = 0;
        for ((wanted, projection), (table, keys)) in request.tables.iter().zip(plans).zip(&tables) {
            let (mut found, mut unprocessed) = (Vec::new(), Vec::new());
            for (at, key) in keys.iter().enumerate() {
                if bytes > GET_BYTES_MAX {
                    unprocessed.push(at);
                    continue;
                }
                let record = snapshot.get(table.id(), key).map_err(table_gone)?;
                let item = record.map(|record| ItemBytes::from_bytes(record.value)).transpose()?;
                let size = item.as_ref().map_or(0, ItemBytes::size);
                bytes += size;
                if bytes > GET_BYTES_MAX {
                    unprocessed.push(at);
                    continue;
                }
                costs.read(table, None, size, wanted.consistent_read);
                if let Some(item) = item {
                    found.push(match &projection {
                        Some(projection) => projection.apply(item.as_ref()),
                        None => item,
                    });
                }
            }
            output.found.push((wanted.table.clone(), found));
            if !unprocessed.is_empty() {
                output.unprocessed.push((wanted.table.clone(), unprocessed));
            }
        }
        output.consumed = costs.all();
        Ok((output, snapshot.seq()))
    }

    /// Puts and deletes many items. DynamoDB may do some and not others; here they are one commit,
    /// or several if they are too large for one with their index entries and stream records.
    pub fn batch_write(&self, request: &BatchWrite) -> Reply<BatchWriteOutput> {
        match self.try_batch_write(request) {
            Ok(Changed { result, seq, consumed }) => {
                let with_costs = |output| BatchWriteOutput { consumed, ..output };
                self.reply(result.map(with_costs), seq)
            }
            Err(error) => Reply::ready(Err(error)),
        }
    }

    fn try_batch_write(&self, request: &BatchWrite) -> Result<Changed<BatchWriteOutput>> {
        if request.tables.iter().map(|(_, writes)| writes.len()).sum::<usize>() > WRITES_MAX {
            return Err(Error::validation("Too many items requested for the BatchWriteItem call"));
        }
        let mut encoded = Vec::with_capacity(WRITES_MAX);
        for (name, writes) in &request.tables {
            for write in writes {
                let (is_put, item) = match write {
                    WriteRequest::Put(item) => (true, item),
                    WriteRequest::Delete(key) => (false, key),
                };
                let item = encode_checked(item)?;
                encoded.push((name, is_put, item));
            }
        }
        self.write_part(request, &encoded)
    }

    /// Writes some of a batch in one commit, or each half for itself if that would be too large.
    fn write_part(
        &self,
        request: &BatchWrite,
        encoded: &[(&String, bool, ItemBytes)],
    ) -> Result<Changed<BatchWriteOutput>> {
        let whole = self.write_together(request, encoded)?;
        if encoded.len() < 2 || !whole.result.as_ref().is_err_and(is_batch_too_large) {
            return Ok(whole);
        }
        let (first, second) = encoded.split_at(encoded.len() / 2);
        let mut done = self.write_part(request, first)?;
        let Ok(output) = &mut done.result else { return Ok(done) };
        let more = self.write_part(request, second)?;
        done.seq = done.seq.max(more.seq);
        more.consumed.into_iter().for_each(|one| add_consumed(&mut done.consumed, one));
        match more.result {
            Ok(more) => {
                for metrics in more.collections {
                    add_collection(&mut output.collections, Some(metrics));
                }
            }
            Err(error) => done.result = Err(error),
        }
        Ok(done)
    }

    fn write_together(
        &self,
        request: &BatchWrite,
        encoded: &[(&String, bool, ItemBytes)],
    ) -> Result<Changed<BatchWriteOutput>> {
        loop {
            let mut writes: Vec<(Arc<Table>, Key, bool, &ItemBytes)> =
                Vec::with_capacity(encoded.len());
            let mut stripes = StripeSet::EMPTY;
            for (name, is_put, item) in encoded {
                let table = self.table_to_write(name)?;
                let key = match is_put {
                    true => table.key_of_item(item.as_ref())?,
                    false => table.key_of_request(item.as_ref())?,
                };
                if *is_put {
                    table.check_index_keys(item.as_ref())?;
                    stripes.extend_with(&stripes_of_put(&table, &key, item));
                } else {
                    stripes.insert(key.stripe());
                }
                if writes.iter().any(|(t, k, _, _)| t.id() == table.id() && *k == key) {
                    return Err(duplicate_keys());
                }
                writes.push((table, key, *is_put, item));
            }
            let changed = self.change(
                stripes,
                || Costs::writes(request.capacity),
                |staged| {
                    let mut output = BatchWriteOutput::default();
                    for (table, key, is_put, item) in &writes {
                        Stop::unless_current(table)?;
                        let old = staged.stored(table.id(), key)?;
                        if *is_put {
                            staged.put(table, key, old.as_ref(), item, Effect::Makes)?;
                        } else {
                            staged.delete_asked(table, key, old.as_ref())?;
                        }
                        let metrics = collection_metrics(table, item, request.collection_metrics);
                        add_collection(&mut output.collections, metrics);
                    }
                    Ok(output)
                },
            )?;
            if let Some(changed) = changed {
                return Ok(changed);
            }
        }
    }
}

/// Whether a write was refused because of all that it writes in one commit.
pub(super) fn is_batch_too_large(error: &Error) -> bool {
    matches!(error, Error::Engine(kstone_core::Error::BatchTooLarge { .. }))
}

/// Adds an item collection, unless it is there: it is reported once, however many of its items were
/// written.
pub(super) fn add_collection(all: &mut Vec<CollectionMetrics>, one: Option<CollectionMetrics>) {
    if let Some(one) = one.filter(|one| !all.contains(one)) {
        all.push(one);
    }
}

fn refuse_duplicates(keys: &[Key]) -> Result<()> {
    let mut sorted: Vec<&Key> = keys.iter().collect();
    sorted.sort_unstable_by(|a, b| (&a.pk, &a.sk).cmp(&(&b.pk, &b.sk)));
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(duplicate_keys());
    }
    Ok(())
}

fn duplicate_keys() -> Error {
    Error::validation("Provided list of item keys contains duplicates")
}
