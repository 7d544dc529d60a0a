//! UpdateTimeToLive and DescribeTimeToLive.

use kstone::table::TtlState;

use super::{Answering, Context, parameters};
use crate::error::Fault;
use crate::json::Json;

pub(super) fn update(json: &Json<'_>, context: &Context) -> Result<Answering, Fault> {
    let wanted = json.get("TimeToLiveSpecification").unwrap_or(&Json::Null);
    let attribute = wanted.text("AttributeName").unwrap_or_default();
    let enabled = wanted.boolean("Enabled").unwrap_or(false);
    context.database.update_ttl(&parameters::table_name(json), attribute, enabled)?;
    Answering::now(|out| {
        out.object_member("TimeToLiveSpecification", |out| {
            out.text_member("AttributeName", attribute);
            out.name("Enabled").boolean(enabled);
        });
    })
}

pub(super) fn describe(json: &Json<'_>, context: &Context) -> Result<Answering, Fault> {
    let table = context.database.describe_table(&parameters::table_name(json))?;
    // Items expire from the moment of the change; what may still go on concerns old ones only.
    let attribute = match &table.ttl {
        TtlState::Enabling(attribute) | TtlState::On(attribute) => Some(attribute),
        TtlState::Off | TtlState::Disabling(_) => None,
    };
    Answering::now(|out| {
        out.object_member("TimeToLiveDescription", |out| match attribute {
            Some(attribute) => {
                out.text_member("TimeToLiveStatus", "ENABLED");
                out.text_member("AttributeName", attribute);
            }
            None => out.text_member("TimeToLiveStatus", "DISABLED"),
        });
    })
}
