//! The output of PutItem, UpdateItem and DeleteItem.

use crate::database::locking::Changed;
use crate::database::{Database, Reply};
use crate::error::{Error, Result};
use crate::ops::{CollectionMetrics, ReturnValues, WriteOutput};
use crate::table::live::Table;
use crate::value::{Item, ItemBytes};

impl Database {
    /// The answer to a write, with what it cost.
    pub(crate) fn reply_written(
        &self,
        changed: Result<Changed<WriteOutput>>,
    ) -> Reply<WriteOutput> {
        match changed {
            Ok(Changed { result, seq, consumed }) => {
                let consumed = consumed.into_iter().next();
                self.reply(result.map(|output| WriteOutput { consumed, ..output }), seq)
            }
            Err(error) => Reply::ready(Err(error)),
        }
    }
}

/// Whether a put or delete returns the old item: it has nothing else to return.
pub(crate) fn returns_old(wanted: ReturnValues) -> Result<bool> {
    match wanted {
        ReturnValues::None => Ok(false),
        ReturnValues::AllOld => Ok(true),
        ReturnValues::UpdatedOld | ReturnValues::AllNew | ReturnValues::UpdatedNew => {
            Err(Error::validation("ReturnValues can only be ALL_OLD or NONE"))
        }
    }
}

/// The item collection that an item belongs to, on tables that have such (those with local
/// indexes), when asked for.
pub(crate) fn collection_metrics(
    table: &Table,
    item: &ItemBytes,
    wanted: bool,
) -> Option<CollectionMetrics> {
    if !wanted || table.record.local.is_empty() {
        return None;
    }
    let hash = table.key().hash.first()?;
    let value = item.as_ref().get(&hash.name)?.decode().ok()?;
    Some(CollectionMetrics {
        table: table.name().to_owned(),
        key: Item::new().with(hash.name.clone(), value),
        size_estimate_gb: [0.0, 1.0],
    })
}
