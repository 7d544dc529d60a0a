//! TagResource, UntagResource and ListTagsOfResource.

use kstone::Error;

use super::{Context, Response, create_table};
use crate::error::Fault;
use crate::json::Json;

pub(super) fn add(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let (arn, table) = resource(json)?;
    let tagged = context.database.tag(table, &create_table::tags(json));
    tagged.map_err(|error| not_found(error, arn))?;
    Response::ready(|_| {})
}

pub(super) fn remove(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let (arn, table) = resource(json)?;
    let keys = json.get("TagKeys").map_or(&[][..], Json::elements).iter();
    let keys: Vec<String> = keys.filter_map(Json::as_str).map(str::to_owned).collect();
    context.database.untag(table, &keys).map_err(|error| not_found(error, arn))?;
    Response::ready(|_| {})
}

pub(super) fn list(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let (arn, table) = resource(json)?;
    let tags = context.database.tags(table).map_err(|error| match error {
        // AWS does not reveal whether the table is missing or the client lacks permission.
        Error::NotFound(_) => Fault::access_denied(format!(
            "User is not authorized to perform: dynamodb:ListTagsOfResource on resource: {arn} \
             because no resource-based policy allows the dynamodb:ListTagsOfResource action"
        )),
        other => other.into(),
    })?;
    // A table has at most 50: they are one page.
    Response::ready(|out| {
        out.name("Tags").list(&tags, |out, (key, value)| {
            out.object(|out| {
                out.text_member("Key", key);
                out.text_member("Value", value);
            });
        });
    })
}

/// The ARN, and the table that it names.
fn resource<'j>(json: &'j Json<'_>) -> Result<(&'j str, &'j str), Fault> {
    let arn = json.text("ResourceArn").unwrap_or_default();
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let table = match parts.as_slice() {
        ["arn", _, "dynamodb", _, _, resource] => resource.strip_prefix("table/"),
        _ => None,
    };
    match table {
        Some(table) if !table.is_empty() && !table.contains('/') => Ok((arn, table)),
        _ => Err(Fault::validation(format!(
            "Invalid TableArn: Invalid ResourceArn provided as input {arn}"
        ))),
    }
}

fn not_found(error: Error, arn: &str) -> Fault {
    match error {
        // The misspelling is AWS's.
        Error::NotFound(_) => {
            Error::NotFound(format!("Requested resource not found: ResourcArn: {arn} not found"))
                .into()
        }
        other => other.into(),
    }
}
