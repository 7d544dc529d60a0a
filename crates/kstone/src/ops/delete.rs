//! DeleteItem.

use kstone_core::StripeSet;

use crate::cost::Costs;
use crate::database::locking::{Changed, Stop};
use crate::database::{Database, Reply};
use crate::error::{Error, Result};
use crate::ops::binding::{Unbound, check};
use crate::ops::put::collection_metrics;
use crate::ops::{
    CapacityDetail, CollectionMetrics, Condition, Consumed, Placeholders, ReturnValues,
};
use crate::staging::Cause;
use crate::value::{Item, ItemBytes};

/// Deletes the item with a key, if there is one.
#[derive(Debug, Clone, Default)]
pub struct DeleteItem {
    /// The table's name.
    pub table: String,
    /// The key attributes.
    pub key: Item,
    /// What the item must be like.
    pub condition: Option<Condition>,
    /// What the condition's placeholders stand for.
    pub placeholders: Placeholders,
    /// [`ReturnValues::None`] or [`ReturnValues::AllOld`].
    pub return_values: ReturnValues,
    /// Whether a failed condition's error carries the item.
    pub return_on_failure: bool,
    /// How much to say about consumed capacity.
    pub capacity: CapacityDetail,
    /// Whether to estimate the item collection's size.
    pub collection_metrics: bool,
}

/// The answer to [`DeleteItem`].
#[derive(Debug, Clone, Default)]
pub struct DeleteItemOutput {
    /// The item that was deleted, when asked for.
    pub attributes: Option<ItemBytes>,
    /// Capacity units, when asked for.
    pub consumed: Option<Consumed>,
    /// The item collection's size, when asked for.
    pub collection: Option<CollectionMetrics>,
}

impl Database {
    /// Deletes the item with a key, if there is one.
    pub fn delete_item(&self, request: &DeleteItem) -> Reply<DeleteItemOutput> {
        self.reply_changed(self.try_delete(request), |output, consumed| output.consumed = consumed)
    }

    fn try_delete(&self, request: &DeleteItem) -> Result<Changed<DeleteItemOutput>> {
        if !matches!(request.return_values, ReturnValues::None | ReturnValues::AllOld) {
            return Err(Error::validation("ReturnValues can only be ALL_OLD or NONE"));
        }
        let unbound = Unbound { condition: request.condition.as_ref(), ..Unbound::default() };
        let condition = self.bind(&unbound, &request.placeholders)?.condition;
        let returns_old = request.return_values == ReturnValues::AllOld;
        let costs = || Costs::writes(request.capacity);
        let key_item = ItemBytes::encode(&request.key);
        self.on_table(&request.table, |table| {
            let key = table.key_of_request(key_item.as_ref())?;
            let stripes: StripeSet = [key.stripe()].into_iter().collect();
            self.change(stripes, costs, |staged| {
                if !table.is_current() {
                    return Err(Stop::TableChanged);
                }
                let old = staged.stored(table.id(), &key)?;
                let before = old.as_ref().filter(|old| !old.expired).map(|old| &old.item);
                check(condition.as_ref(), before, request.return_on_failure)?;
                match &old {
                    Some(old) => staged.delete(table, &key, old, Cause::User)?,
                    None => staged.costs.write(table, None, 0),
                }
                Ok(DeleteItemOutput {
                    attributes: before.filter(|_| returns_old).cloned(),
                    consumed: None,
                    collection: collection_metrics(table, &key_item, request.collection_metrics),
                })
            })
        })
    }
}
