//! Query.

use kstone::ops::{Query, QueryOutput};

use super::parameters::{self, ParameterStyles};
use super::{Context, Response, capacity, legacy};
use crate::error::Fault;
use crate::json::Json;
use crate::wire::JsonWriter;

const STYLES: ParameterStyles = ParameterStyles {
    expressions: &["ProjectionExpression", "FilterExpression", "KeyConditionExpression"],
    legacy: &["AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"],
};

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    if json.integer("Limit").is_some_and(|limit| limit < 1) {
        return Err(Fault::validation(
            "1 validation error detected: Value at 'Limit' failed to satisfy constraint: Member \
             must have value greater than or equal to 1",
        ));
    }
    STYLES.check(json)?;
    let filter = legacy::filter_of(json, "QueryFilter")?;
    let projection = parameters::projection(json)?;
    let start = parameters::start_key(json)?;
    let Some(key_condition) = legacy::key_condition(json)? else {
        return Err(Fault::validation(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in \
             the request.",
        ));
    };
    let request = Query {
        table: parameters::table_name(json),
        index: parameters::text(json, "IndexName"),
        key_condition: Some(key_condition),
        filter,
        projection,
        placeholders: parameters::placeholders(json)?,
        select: parameters::select(json),
        limit: parameters::limit(json),
        start,
        backward: json.boolean("ScanIndexForward") == Some(false),
        consistent_read: parameters::consistent_read(json),
        capacity: parameters::capacity(json),
    };
    Response::when_durable(context.database.query_items(&request), |out, page| {
        write_page(out, page, json);
    })
}

/// Writes the response of a query or scan.
pub(super) fn write_page(out: &mut JsonWriter, page: QueryOutput, json: &Json<'_>) {
    if let Some(items) = &page.items {
        out.name("Items").items(items);
    }
    out.name("Count").integer(page.count);
    out.name("ScannedCount").integer(page.scanned);
    if let Some(next) = &page.next {
        out.name("LastEvaluatedKey").tree(next);
    }
    capacity::write(out, page.consumed.as_ref(), json);
}
