//! PutItem.

use kstone::ops::PutItem;

use super::parameters::{self, ParameterStyles};
use super::{Context, Response, legacy};
use crate::error::Fault;
use crate::json::Json;

pub(super) const STYLES: ParameterStyles = ParameterStyles {
    expressions: &["ConditionExpression"],
    legacy: &["Expected", "ConditionalOperator"],
};

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    STYLES.check(json)?;
    let request = PutItem {
        table: parameters::table_name(json),
        item: parameters::item(json, "Item")?,
        return_values: parameters::return_old(json)?,
        condition: legacy::condition(json)?,
        placeholders: parameters::placeholders(json)?,
        return_on_failure: parameters::return_on_failure(json),
        capacity: parameters::capacity(json),
        collection_metrics: parameters::collection_metrics(json),
    };
    Response::of_write(context.database.put_item(&request), json)
}
