//! UpdateItem.

use kstone_core::{Key, StripeSet};

use crate::cost::Costs;
use crate::database::locking::{Changed, Stop};
use crate::database::{Database, Reply};
use crate::error::{Error, Result};
use crate::expr::{BoundUpdate, too_large};
use crate::ops::binding::{Unbound, check};
use crate::ops::put::{check_values, is_too_large};
use crate::ops::write_output::collection_metrics;
use crate::ops::{ReturnValues, UpdateItem, WriteOutput};
use crate::policy::Effect;
use crate::staging::{Staged, Stored};
use crate::table::live::Table;
use crate::value::ItemBytes;

impl Database {
    /// Changes attributes of an item; makes the item if there is none.
    pub fn update_item(&self, request: &UpdateItem) -> Reply<WriteOutput> {
        self.reply_written(self.try_update(request))
    }

    fn try_update(&self, request: &UpdateItem) -> Result<Changed<WriteOutput>> {
        let unbound = Unbound {
            condition: request.condition.as_ref(),
            update: request.update.as_ref(),
            ..Unbound::default()
        };
        let bound = self.bind(&unbound, &request.placeholders)?;
        let (condition, update) = (bound.condition.as_ref(), bound.update.as_ref());
        let costs = || Costs::writes(request.capacity);
        let key_item = ItemBytes::encode(&request.key);
        self.on_table(&request.table, |table| {
            let key = table.key_of_request(key_item.as_ref())?;
            check_keeps_key(table, update)?;
            let stripes: StripeSet = [key.stripe()].into_iter().collect();
            self.change(stripes, costs, |staged| {
                Stop::unless_current(table)?;
                let old = staged.stored(table.id(), &key)?;
                let before = old.as_ref().and_then(Stored::live);
                check(condition, before, request.return_on_failure)?;
                let after = staged.update(table, &key, &key_item, old.as_ref(), update)?;
                Ok(WriteOutput {
                    attributes: returned(request.return_values, update, before, after.as_ref()),
                    consumed: None,
                    collection: collection_metrics(table, &key_item, request.collection_metrics),
                })
            })
        })
    }
}

/// Refuses an update of a key attribute.
pub(crate) fn check_keeps_key(table: &Table, update: Option<&BoundUpdate>) -> Result<()> {
    let names = update.into_iter().flat_map(BoundUpdate::top_level_names);
    for name in names {
        if table.key().contains(name) {
            return Err(Error::validation(format!(
                "One or more parameter values were invalid: Cannot update attribute {name}. This attribute is part of the key"
            )));
        }
    }
    Ok(())
}

impl Staged<'_> {
    /// Applies an update to what is stored, or to a new item with this key. Gives what is stored
    /// then: nothing, if there was no item and the update only takes something away.
    pub fn update(
        &mut self,
        table: &Table,
        key: &Key,
        key_item: &ItemBytes,
        old: Option<&Stored>,
        update: Option<&BoundUpdate>,
    ) -> Result<Option<ItemBytes>> {
        let before = old.and_then(Stored::live);
        // Not even a path that leads nowhere is wrong then.
        if before.is_none() && update.is_some_and(BoundUpdate::only_removes) {
            self.costs.write(table, None, 0);
            return Ok(None);
        }
        let mut item = before.unwrap_or(key_item).decode()?;
        if let Some(update) = update {
            update.apply(&mut item)?;
        }
        check_values(&item)?;
        let after = ItemBytes::encode(&item);
        if is_too_large(&after) {
            return Err(too_large().into());
        }
        if table.check_index_keys(after.as_ref()).is_err() {
            check_updated_index_keys(table, &after)?;
        }
        let effect = if before.is_some() { Effect::Changes } else { Effect::Makes };
        let ruled = self.put(table, key, old, &after, effect)?;
        Ok(Some(ruled.unwrap_or(after)))
    }
}

/// What DynamoDB says when an update gives an index key a wrong value.
fn check_updated_index_keys(table: &Table, after: &ItemBytes) -> Result<()> {
    match table.check_index_keys(after.as_ref()) {
        Err(Error::Validation(message)) if message.contains("Type mismatch for Index Key") => {
            Err(Error::validation(
                "The update expression attempted to update the secondary index key to unsupported type",
            ))
        }
        Err(Error::Validation(message)) if message.contains("empty string") => {
            Err(Error::validation(
                "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty string value.",
            ))
        }
        other => other,
    }
}

fn returned(
    wanted: ReturnValues,
    update: Option<&BoundUpdate>,
    before: Option<&ItemBytes>,
    after: Option<&ItemBytes>,
) -> Option<ItemBytes> {
    let some = |item: ItemBytes| (!item.as_ref().is_empty()).then_some(item);
    match wanted {
        ReturnValues::None => None,
        ReturnValues::AllOld => before.cloned(),
        ReturnValues::AllNew => after.cloned(),
        ReturnValues::UpdatedOld => some(update?.touched_old(before?.as_ref())),
        ReturnValues::UpdatedNew => some(update?.touched_new(after?.as_ref())),
    }
}
