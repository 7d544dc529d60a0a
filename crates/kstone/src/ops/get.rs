//! GetItem.

use kstone_core::Seq;

use crate::cost::Costs;
use crate::database::{Database, Reply};
use crate::error::{Result, table_gone};
use crate::ops::binding::Unbound;
use crate::ops::{GetItem, GetItemOutput};
use crate::value::ItemBytes;

impl Database {
    /// Reads one item by its key.
    pub fn get_item(&self, request: &GetItem) -> Reply<GetItemOutput> {
        match self.try_get(request) {
            Ok((output, seq)) => self.reply(Ok(output), seq),
            Err(error) => Reply::ready(Err(error)),
        }
    }

    fn try_get(&self, request: &GetItem) -> Result<(GetItemOutput, Seq)> {
        let unbound = Unbound { projection: request.projection.as_ref(), ..Unbound::default() };
        let bound = self.bind(&unbound, &request.placeholders)?;
        let table = self.table_for_items(&request.table)?;
        let key = table.key_of_tree(&request.key)?;
        let engine = self.engine();
        let (item, seq) = match engine.get(table.id(), &key).map_err(table_gone)? {
            Some(record) => (Some(ItemBytes::from_bytes(record.value)?), record.version),
            // Whatever hides the record was visible to the read, so it is below this number.
            None => (None, engine.applied_seq()),
        };
        let mut costs = Costs::reads(request.capacity);
        if costs.wanted() {
            let bytes = item.as_ref().map_or(0, ItemBytes::size);
            costs.read(&table, None, bytes, request.consistent_read);
        }
        let item = match bound.projection {
            Some(projection) => item.map(|item| projection.apply(item.as_ref())),
            None => item,
        };
        Ok((GetItemOutput { item, consumed: costs.one() }, seq))
    }
}
