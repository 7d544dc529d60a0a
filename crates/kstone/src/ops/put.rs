//! PutItem.

use kstone_core::StripeSet;

use crate::cost::Costs;
use crate::database::locking::{Changed, Stop};
use crate::database::{Database, Reply};
use crate::error::{Error, Result};
use crate::ops::binding::{Unbound, check};
use crate::ops::write_output::{collection_metrics, returns_old};
use crate::ops::{CapacityDetail, PutItem, WriteOutput};
use crate::policy::Effect;
use crate::staging::Stored;
use crate::table::live::Table;
use crate::value::{Item, ItemBytes, Value, check_name};

impl Database {
    /// Writes a whole item.
    pub fn put_item(&self, request: &PutItem) -> Reply<WriteOutput> {
        self.reply_written(self.try_put(request))
    }

    fn try_put(&self, request: &PutItem) -> Result<Changed<WriteOutput>> {
        let item = encode_checked(&request.item)?;
        let returns_old = returns_old(request.return_values)?;
        let unbound = Unbound { condition: request.condition.as_ref(), ..Unbound::default() };
        let condition = self.bind(&unbound, &request.placeholders)?.condition;
        let costs = || Costs::writes(request.capacity);
        self.on_table(&request.table, |table| {
            let key = table.key_of_item(item.as_ref())?;
            table.check_index_keys(item.as_ref())?;
            // What is in the item's place matters to none of this: then it is not read.
            let blind = condition.is_none()
                && !returns_old
                && table.indexes.is_empty()
                && table.stream().is_none()
                && request.capacity == CapacityDetail::None;
            let stripes = stripes_of_put(table, &key, &item);
            self.change(stripes, costs, |staged| {
                Stop::unless_current(table)?;
                let blind = blind && !staged.is_ruled(table);
                let old = if blind { None } else { staged.stored(table.id(), &key)? };
                let before = old.as_ref().and_then(Stored::live);
                check(condition.as_ref(), before, request.return_on_failure)?;
                staged.put(table, &key, old.as_ref(), &item, Effect::Makes)?;
                Ok(WriteOutput {
                    attributes: before.filter(|_| returns_old).cloned(),
                    consumed: None,
                    collection: collection_metrics(table, &item, request.collection_metrics),
                })
            })
        })
    }
}

/// An item in the form that is stored, unless it is too large or too deep.
pub(crate) fn encode_checked(item: &Item) -> Result<ItemBytes> {
    check_values(item)?;
    let bytes = ItemBytes::encode(item);
    if is_too_large(&bytes) {
        return Err(Error::validation("Item size has exceeded the maximum allowed size"));
    }
    Ok(bytes)
}

/// Refuses an item whose values are nested too deep, or which could not be read back: with names
/// that are too long, with sets that are empty or hold a value twice.
pub(crate) fn check_values(item: &Item) -> Result<()> {
    if item.iter().any(|(_, value)| value.depth() > Value::DEPTH_MAX) {
        return Err(Error::validation(
            "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit",
        ));
    }
    item.iter().try_for_each(|(name, value)| {
        check_name(name)?;
        Ok(value.check_sets()?)
    })
}

/// Whether an item is larger than DynamoDB stores.
pub(crate) fn is_too_large(item: &ItemBytes) -> bool {
    // The stored form takes at least half the bytes that DynamoDB counts.
    item.as_slice().len() > Item::SIZE_MAX / 2 && item.size() > Item::SIZE_MAX
}

/// The stripes that writing this item touches, as far as the item itself tells.
pub(crate) fn stripes_of_put(table: &Table, key: &kstone_core::Key, item: &ItemBytes) -> StripeSet {
    let mut stripes = StripeSet::EMPTY;
    stripes.insert(key.stripe());
    if table.has_global {
        let entries = table.indexes.iter().filter_map(|index| index.entry_key(key, item.as_ref()));
        for entry in entries {
            stripes.insert(entry.stripe());
        }
    }
    stripes
}
