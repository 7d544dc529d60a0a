//! GetItem.

use kstone::ops::GetItem;

use super::parameters::{self, ParameterStyles};
use super::{Context, Response, capacity};
use crate::error::Fault;
use crate::json::Json;

const STYLES: ParameterStyles =
    ParameterStyles { expressions: &["ProjectionExpression"], legacy: &["AttributesToGet"] };

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    STYLES.check(json)?;
    let request = GetItem {
        table: parameters::table_name(json),
        key: parameters::item(json, "Key")?,
        projection: parameters::projection(json)?,
        placeholders: parameters::names(json),
        consistent_read: parameters::consistent_read(json),
        capacity: parameters::capacity(json),
    };
    Response::when_durable(context.database.get_item(&request), |out, output| {
        if let Some(item) = &output.item {
            out.name("Item").item(item);
        }
        capacity::write(out, output.consumed.as_ref(), json);
    })
}
