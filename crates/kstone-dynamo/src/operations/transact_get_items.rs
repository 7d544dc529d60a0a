//! TransactGetItems.

use kstone::ItemBytes;
use kstone::ops::{TransactGet, TransactGetRequest};

use super::capacity::{self, CapacityFields};
use super::parameters::{self, ParameterStyles, TableNames};
use super::{Context, Response};
use crate::error::Fault;
use crate::json::Json;
use crate::wire::JsonWriter;

const STYLES: ParameterStyles =
    ParameterStyles { expressions: &["ProjectionExpression"], legacy: &[] };

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let actions = json.get("TransactItems").map_or(&[][..], Json::elements);
    let mut gets = Vec::with_capacity(actions.len());
    for get in actions.iter().filter_map(|action| action.get("Get")) {
        STYLES.check(get)?;
        gets.push(TransactGetRequest {
            table: parameters::table_name(get),
            key: parameters::item(get, "Key")?,
            projection: parameters::projection(get)?,
            placeholders: parameters::names(get),
        });
    }
    let request = TransactGet { gets, capacity: parameters::capacity(json) };
    let gets = actions.iter().filter_map(|action| action.get("Get"));
    let names = TableNames::new(gets.filter_map(|get| get.text("TableName")));
    Response::when_durable(context.database.transact_get(&request), |out, output| {
        write_items(out, &output.items);
        capacity::write_all(out, &output.consumed, &names, CapacityFields::UnitsByKind);
    })
}

/// Writes the responses of a transaction, each with its item if there is one.
pub(super) fn write_items(out: &mut JsonWriter, items: &[Option<ItemBytes>]) {
    out.name("Responses").list(items, |out, item| {
        out.object(|out| {
            if let Some(item) = item {
                out.name("Item").item(item);
            }
        });
    });
}
