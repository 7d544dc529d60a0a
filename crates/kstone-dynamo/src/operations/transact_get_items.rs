//! TransactGetItems.

use kstone::ops::{TransactGet, TransactGetRequest};

use super::capacity::{self, Kinds};
use super::parameters::{self, Given, Styles};
use super::{Answering, Context};
use crate::error::Fault;
use crate::json::Json;

const STYLES: Styles = Styles { expressions: &["ProjectionExpression"], legacy: &[] };

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Answering, Fault> {
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
    let given = Given::new(gets.filter_map(|get| get.text("TableName")));
    Answering::later(context.database.transact_get(&request), |out, output| {
        out.name("Responses").list(&output.items, |out, item| {
            out.object(|out| {
                if let Some(item) = item {
                    out.name("Item").item(item);
                }
            });
        });
        capacity::write_all(out, &output.consumed, &given, Kinds::Named);
    })
}
