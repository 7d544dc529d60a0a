//! DeleteItem.

use kstone_core::StripeSet;

use crate::cost::Costs;
use crate::database::locking::{Changed, Stop};
use crate::database::{Database, Reply};
use crate::error::Result;
use crate::ops::binding::{Unbound, check};
use crate::ops::write_output::{collection_metrics, returns_old};
use crate::ops::{DeleteItem, WriteOutput};
use crate::staging::Stored;
use crate::value::ItemBytes;

impl Database {
    /// Deletes the item with a key, if there is one.
    pub fn delete_item(&self, request: &DeleteItem) -> Reply<WriteOutput> {
        self.reply_written(self.try_delete(request))
    }

    fn try_delete(&self, request: &DeleteItem) -> Result<Changed<WriteOutput>> {
        let returns_old = returns_old(request.return_values)?;
        let unbound = Unbound { condition: request.condition.as_ref(), ..Unbound::default() };
        let condition = self.bind(&unbound, &request.placeholders)?.condition;
        let costs = || Costs::writes(request.capacity);
        let key_item = ItemBytes::encode(&request.key);
        self.on_table(&request.table, |table| {
            let key = table.key_of_request(key_item.as_ref())?;
            let stripes: StripeSet = [key.stripe()].into_iter().collect();
            self.change(stripes, costs, |staged| {
                Stop::unless_current(table)?;
                let old = staged.stored(table.id(), &key)?;
                let before = old.as_ref().and_then(Stored::live);
                check(condition.as_ref(), before, request.return_on_failure)?;
                staged.delete_asked(table, &key, old.as_ref())?;
                Ok(WriteOutput {
                    attributes: before.filter(|_| returns_old).cloned(),
                    consumed: None,
                    collection: collection_metrics(table, &key_item, request.collection_metrics),
                })
            })
        })
    }
}
