//! DeleteItem.

use kstone::ops::DeleteItem;

use super::put_item::STYLES;
use super::{Context, Response, legacy, parameters};
use crate::error::Fault;
use crate::json::Json;

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    STYLES.check(json)?;
    let request = DeleteItem {
        table: parameters::table_name(json),
        key: parameters::item(json, "Key")?,
        return_values: parameters::return_old(json)?,
        condition: legacy::condition(json)?,
        placeholders: parameters::placeholders(json)?,
        return_on_failure: parameters::return_on_failure(json),
        capacity: parameters::capacity(json),
        collection_metrics: parameters::collection_metrics(json),
    };
    Response::of_write(context.database.delete_item(&request), json)
}
