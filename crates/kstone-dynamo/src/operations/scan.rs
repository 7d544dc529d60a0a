//! Scan.

use kstone::ops::{Scan, Segment};

use super::parameters::{self, ParameterStyles};
use super::query::write_page;
use super::{Context, Response, legacy};
use crate::error::Fault;
use crate::json::Json;

const STYLES: ParameterStyles = ParameterStyles {
    expressions: &["ProjectionExpression", "FilterExpression"],
    legacy: &["AttributesToGet", "ScanFilter", "ConditionalOperator"],
};

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    STYLES.check(json)?;
    let request = Scan {
        table: parameters::table_name(json),
        index: parameters::text(json, "IndexName"),
        projection: parameters::projection(json)?,
        filter: legacy::filter_of(json, "ScanFilter")?,
        start: parameters::start_key(json)?,
        segment: segment(json)?,
        placeholders: parameters::placeholders(json)?,
        select: parameters::select(json),
        limit: parameters::limit(json),
        consistent_read: parameters::consistent_read(json),
        capacity: parameters::capacity(json),
    };
    Response::when_durable(context.database.scan_items(&request), |out, page| {
        write_page(out, page, json);
    })
}

fn segment(json: &Json<'_>) -> Result<Option<Segment>, Fault> {
    let number = |name| json.integer(name).map(|number| u32::try_from(number).unwrap_or(0));
    match (number("Segment"), number("TotalSegments")) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(Fault::validation(
            "The TotalSegments parameter is required but was not present in the request when \
             Segment parameter is present",
        )),
        (None, Some(_)) => Err(Fault::validation(
            "The Segment parameter is required but was not present in the request when parameter \
             TotalSegments is present",
        )),
        (Some(index), Some(total)) if index >= total => Err(Fault::validation(format!(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: \
             Segment: {index} is not less than TotalSegments: {total}"
        ))),
        (Some(index), Some(total)) => Ok(Some(Segment { index, total })),
    }
}
