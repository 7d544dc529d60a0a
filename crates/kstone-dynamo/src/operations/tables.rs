//! DeleteTable, DescribeTable and ListTables.

use super::{Answering, Context, description, parameters};
use crate::error::Fault;
use crate::json::Json;
use crate::wire::Out;

/// How many names a page has if the client does not say.
const PAGE_NAMES: i64 = 100;

pub(super) fn delete(json: &Json<'_>, context: &Context) -> Result<Answering, Fault> {
    let table = context.database.delete_table(&parameters::table_name(json))?;
    Answering::now(|out| {
        out.name("TableDescription");
        description::write(out, &table, &context.region);
    })
}

pub(super) fn describe(json: &Json<'_>, context: &Context) -> Result<Answering, Fault> {
    let table = context.database.describe_table(&parameters::table_name(json))?;
    Answering::now(|out| {
        out.name("Table");
        description::write(out, &table, &context.region);
    })
}

pub(super) fn list(json: &Json<'_>, context: &Context) -> Result<Answering, Fault> {
    let limit = usize::try_from(json.integer("Limit").unwrap_or(PAGE_NAMES)).unwrap_or(0);
    let after = json.text("ExclusiveStartTableName");
    let (names, has_more) = context.database.list_tables(after, limit);
    Answering::now(|out| {
        out.name("TableNames").list(&names, |out: &mut Out, name| out.text(name));
        if let Some(last) = names.last().filter(|_| has_more) {
            out.text_member("LastEvaluatedTableName", last);
        }
    })
}
