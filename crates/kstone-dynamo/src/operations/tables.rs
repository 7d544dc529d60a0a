//! DeleteTable, DescribeTable and ListTables.

use super::{Context, Response, description, parameters};
use crate::error::Fault;
use crate::json::Json;
use crate::wire::JsonWriter;

/// How many names a page has if the client does not say.
const PAGE_NAMES: i64 = 100;

pub(super) fn delete(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let table = context.database.delete_table(&parameters::table_name(json))?;
    Response::ready(|out| {
        out.name("TableDescription");
        description::write(out, &table, &context.region);
    })
}

pub(super) fn describe(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let table = context.database.describe_table(&parameters::table_name(json))?;
    Response::ready(|out| {
        out.name("Table");
        description::write(out, &table, &context.region);
    })
}

pub(super) fn list(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let limit = usize::try_from(json.integer("Limit").unwrap_or(PAGE_NAMES)).unwrap_or(0);
    let after = json.text("ExclusiveStartTableName");
    let (names, has_more) = context.database.list_tables(after, limit);
    Response::ready(|out| {
        out.name("TableNames").list(&names, |out: &mut JsonWriter, name| out.text(name));
        if let Some(last) = names.last().filter(|_| has_more) {
            out.text_member("LastEvaluatedTableName", last);
        }
    })
}
