//! UpdateItem.

use kstone::ops::UpdateItem;

use super::parameters::{self, ParameterStyles};
use super::{Context, Response, legacy};
use crate::error::Fault;
use crate::json::Json;

const STYLES: ParameterStyles = ParameterStyles {
    expressions: &["UpdateExpression", "ConditionExpression"],
    legacy: &["AttributeUpdates", "Expected", "ConditionalOperator"],
};

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    STYLES.check(json)?;
    let request = UpdateItem {
        table: parameters::table_name(json),
        key: parameters::item(json, "Key")?,
        update: legacy::update(json)?,
        condition: legacy::condition(json)?,
        placeholders: parameters::placeholders(json)?,
        return_values: parameters::return_values(json),
        return_on_failure: parameters::return_on_failure(json),
        capacity: parameters::capacity(json),
        collection_metrics: parameters::collection_metrics(json),
    };
    Response::of_write(context.database.update_item(&request), json)
}
