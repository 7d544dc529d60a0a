//! UpdateTimeToLive and DescribeTimeToLive.

use kstone::table::TtlState;

use super::{Context, Response, parameters};
use crate::error::Fault;
use crate::json::Json;

pub(super) fn update(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let wanted = json.get("TimeToLiveSpecification").unwrap_or(&Json::Null);
    let attribute = wanted.text("AttributeName").unwrap_or_default();
    let enabled = wanted.boolean("Enabled").unwrap_or(false);
    context.database.update_ttl(&parameters::table_name(json), attribute, enabled)?;
    Response::ready(|out| {
        out.object_member("TimeToLiveSpecification", |out| {
            out.text_member("AttributeName", attribute);
            out.name("Enabled").boolean(enabled);
        });
    })
}

pub(super) fn describe(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let table = context.database.describe_table(&parameters::table_name(json))?;
    // New items follow a change at once; work that may still go on is about older ones.
    let attribute = match &table.ttl {
        TtlState::Enabling(attribute) | TtlState::On(attribute) => Some(attribute),
        TtlState::Off | TtlState::Disabling(_) => None,
    };
    Response::ready(|out| {
        out.object_member("TimeToLiveDescription", |out| match attribute {
            Some(attribute) => {
                out.text_member("TimeToLiveStatus", "ENABLED");
                out.text_member("AttributeName", attribute);
            }
            None => out.text_member("TimeToLiveStatus", "DISABLED"),
        });
    })
}
