//! Lists and describes streams and their shards.

use std::sync::Arc;

use kstone_core::{Snapshot, TableId};

use crate::database::Database;
use crate::error::{Error, Result, table_gone};
use crate::stream::{RETENTION_MS, SHARDS, label, number, partition_of, stripes_of};
use crate::table::live::Table;
use crate::table::record::StreamRecord as Kept;
use crate::table::{KeySchema, StreamView};

/// The name of a stream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamName {
    /// The table's name.
    pub table: String,
    /// When the stream was opened, as ISO time: tells apart the streams that a table had.
    pub label: String,
}

/// A stream as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamDescription {
    /// Its name.
    pub name: StreamName,
    /// Whether changes still go to it. A closed stream can be read for another 24 hours.
    pub open: bool,
    /// What it holds of each item.
    pub view: StreamView,
    /// When it was opened.
    pub created_ms: u64,
    /// The table's key.
    pub key: KeySchema,
    /// Its shards, in order: the page that was asked for.
    pub shards: Vec<Shard>,
    /// Whether there are more shards after these.
    pub more: bool,
}

/// A part of a stream that one consumer reads. All changes of an item are in one shard, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// Its name.
    pub id: String,
    /// No record that can still be read has a smaller sequence number.
    pub first: String,
    /// The last sequence number of a closed stream's shard; `None` while more may come.
    pub last: Option<String>,
}

/// A stream that was looked up.
pub(crate) struct Found {
    pub table: Arc<Table>,
    pub kept: Kept,
}

impl Database {
    /// The streams after `after`, in order of table and label, at most `limit`, of all tables or
    /// of one; and whether there are more. Closed streams are listed for as long as they can be
    /// read.
    pub fn list_streams(
        &self,
        table: Option<&str>,
        after: Option<&StreamName>,
        limit: usize,
    ) -> (Vec<StreamName>, bool) {
        let catalog = &self.inner().catalog;
        let tables = match table {
            Some(name) => catalog.get(name).into_iter().collect(),
            None => catalog.all(),
        };
        let mut names: Vec<StreamName> = tables
            .iter()
            .flat_map(|table| table.record.streams.iter().map(|kept| name_of(table, kept)))
            .filter(|name| after.is_none_or(|after| name > after))
            .collect();
        names.sort_unstable();
        let more = names.len() > limit;
        names.truncate(limit);
        (names, more)
    }

    /// What a stream is like now, with its shards after `after_shard`, at most `limit`.
    pub fn describe_stream(
        &self,
        name: &StreamName,
        after_shard: Option<&str>,
        limit: usize,
    ) -> Result<StreamDescription> {
        let found = self.find_stream(name)?;
        let kept = &found.kept;
        let ended = match kept.closed_ms {
            Some(_) => Some(self.snapshot_after_change()?),
            None => None,
        };
        let horizon_ms = self.engine().now_ms().saturating_sub(RETENTION_MS);
        let first = number::first_of(kept.created_ms.max(horizon_ms));
        let after = |id: &String| after_shard.is_none_or(|after| id.as_str() > after);
        let ids = (0..SHARDS).map(|shard| (shard, shard_id(kept, shard)));
        let mut wanted: Vec<(u8, String)> = ids.filter(|(_, id)| after(id)).collect();
        let more = wanted.len() > limit;
        wanted.truncate(limit);
        let describe = |(shard, id): (u8, String)| {
            let last = match &ended {
                Some(snapshot) => last_number(snapshot, kept, shard)?.unwrap_or(first).max(first),
                None => return Ok(Shard { id, first: number::to_text(first), last: None }),
            };
            Ok(Shard { id, first: number::to_text(first), last: Some(number::to_text(last)) })
        };
        Ok(StreamDescription {
            name: name_of(&found.table, kept),
            open: kept.closed_ms.is_none(),
            view: kept.view,
            created_ms: kept.created_ms,
            key: found.table.key().clone(),
            shards: wanted.into_iter().map(describe).collect::<Result<_>>()?,
            more,
        })
    }

    pub(crate) fn find_stream(&self, name: &StreamName) -> Result<Found> {
        self.find_stream_by(&name.table, |kept| label(kept.created_ms) == name.label)
            .ok_or_else(|| no_such_stream(name))
    }

    pub(crate) fn find_stream_by(
        &self,
        table: &str,
        wanted: impl Fn(&Kept) -> bool,
    ) -> Option<Found> {
        let table = self.inner().catalog.get(table)?;
        let kept = table.record.streams.iter().find(|kept| wanted(kept))?.clone();
        Some(Found { table, kept })
    }
}

/// The largest sequence number in a shard.
fn last_number(snapshot: &Snapshot, kept: &Kept, shard: u8) -> Result<Option<u64>> {
    let mut last = None;
    for stripe in stripes_of(shard) {
        last = last.max(last_of_stripe(snapshot, TableId(kept.id), stripe)?);
    }
    Ok(last)
}

/// The largest sequence number of a stream's records in a stripe.
pub(crate) fn last_of_stripe(
    snapshot: &Snapshot,
    stream: TableId,
    stripe: u8,
) -> Result<Option<u64>> {
    let partition = snapshot.partition(stream, &partition_of(stripe)[..]).reverse();
    let mut records = partition.iter().map_err(table_gone)?;
    let newest = records.next_ref()?;
    Ok(newest.and_then(|record| record.sk?.try_into().ok()).map(u64::from_be_bytes))
}

fn name_of(table: &Table, kept: &Kept) -> StreamName {
    StreamName { table: table.name().to_owned(), label: label(kept.created_ms) }
}

/// The name of a shard.
pub(crate) fn shard_id(kept: &Kept, shard: u8) -> String {
    format!("shardId-{:020}-{shard:08x}", kept.created_ms)
}

/// What DynamoDB says of a stream that does not exist; it puts the whole resource name.
pub(crate) fn no_such_stream(name: &StreamName) -> Error {
    let StreamName { table, label } = name;
    Error::NotFound(format!(
        "Requested resource not found: Stream: table/{table}/stream/{label} not found"
    ))
}
