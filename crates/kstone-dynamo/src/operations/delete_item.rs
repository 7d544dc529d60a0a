//! DeleteItem.

use kstone::ops::DeleteItem;

use super::put_item::STYLES;
use super::{Answering, Context, legacy, parameters};
use crate::error::Fault;
use crate::json::Json;

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Answering, Fault> {
    STYLES.check(json)?;
    let request = DeleteItem {
        table: parameters::table_name(json),
        key: parameters::item(json, "Key")?,
        return_values: parameters::old_or_nothing(json)?,
        condition: legacy::condition(json)?,
        placeholders: parameters::placeholders(json)?,
        return_on_failure: parameters::return_on_failure(json),
        capacity: parameters::capacity(json),
        collection_metrics: parameters::collection_metrics(json),
    };
    Answering::written(context.database.delete_item(&request), json)
}
