//! DescribeLimits and DescribeEndpoints.

use super::{Context, Response};
use crate::error::Fault;
use crate::json::Json;

/// The limits of a new AWS account. Nothing here is throttled; tools read them to plan.
const ACCOUNT_UNITS_MAX: u32 = 80_000;
const TABLE_UNITS_MAX: u32 = 40_000;

pub(super) fn describe(_: &Json<'_>, _: &Context) -> Result<Response, Fault> {
    Response::ready(|out| {
        for (name, units) in [
            ("AccountMaxReadCapacityUnits", ACCOUNT_UNITS_MAX),
            ("AccountMaxWriteCapacityUnits", ACCOUNT_UNITS_MAX),
            ("TableMaxReadCapacityUnits", TABLE_UNITS_MAX),
            ("TableMaxWriteCapacityUnits", TABLE_UNITS_MAX),
        ] {
            out.name(name).integer(units);
        }
    })
}

pub(super) fn endpoints(_: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    Response::ready(|out| {
        out.name("Endpoints").list([()], |out, ()| {
            out.object(|out| {
                // The server that was asked serves everything.
                out.text_member("Address", &context.host);
                out.name("CachePeriodInMinutes").integer(1440);
            });
        });
    })
}
