//! BatchGetItem.

use kstone::Item;
use kstone::ops::{BatchGet, BatchGetTable};

use super::capacity::{self, CapacityFields};
use super::parameters::{self, ParameterStyles, TableNames};
use super::{Context, Response};
use crate::error::Fault;
use crate::json::Json;
use crate::wire::{JsonWriter, read_item};

const KEYS_MAX: usize = 100;
const STYLES: ParameterStyles =
    ParameterStyles { expressions: &["ProjectionExpression"], legacy: &["AttributesToGet"] };

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let tables = parameters::tables_of_batch(json)?;
    if tables.is_empty() {
        return Err(Fault::validation("The requestItems parameter is required for BatchGetItem"));
    }
    let mut request = BatchGet { tables: Vec::new(), capacity: parameters::capacity(json) };
    for (name, json) in &tables {
        let keys = json.get("Keys").map_or(&[][..], Json::elements);
        if keys.len() > KEYS_MAX {
            return Err(Fault::validation(format!(
                "1 validation error detected: Value at 'RequestItems.{name}.member.Keys' failed \
                 to satisfy constraint: Member must have length less than or equal to {KEYS_MAX}"
            )));
        }
        STYLES.check(json)?;
        request.tables.push(BatchGetTable {
            table: parameters::table_of(name).to_owned(),
            projection: parameters::projection(json)?,
            placeholders: parameters::names(json),
            keys: keys.iter().map(read_item).collect::<Result<Vec<Item>, Fault>>()?,
            consistent_read: parameters::consistent_read(json),
        });
    }
    let reply = context.database.batch_get(&request);
    // Unprocessed keys are returned under the table names that the request used.
    let names = TableNames::new(tables.iter().map(|(name, _)| *name));
    let left_over = |name: &str| tables.iter().find(|(have, _)| parameters::table_of(have) == name);
    Response::when_durable(reply, |out, output| {
        out.object_member("Responses", |out| {
            for (table, items) in &output.found {
                out.name(names.name_of(table)).items(items);
            }
        });
        out.object_member("UnprocessedKeys", |out| {
            for (table, at) in &output.unprocessed {
                let asked = request.tables.iter().find(|asked| asked.table == *table);
                if let (Some(asked), Some((name, json))) = (asked, left_over(table)) {
                    out.object_member(name, |out| write_unprocessed(out, json, asked, at));
                }
            }
        });
        capacity::write_all(out, &output.consumed, &names, CapacityFields::Units);
    })
}

fn write_unprocessed(out: &mut JsonWriter, json: &Json<'_>, asked: &BatchGetTable, at: &[usize]) {
    out.name("Keys").list(at.iter().filter_map(|at| asked.keys.get(*at)), JsonWriter::tree);
    if let Some(consistent) = json.boolean("ConsistentRead") {
        out.name("ConsistentRead").boolean(consistent);
    }
    if let Some(text) = json.text("ProjectionExpression") {
        out.text_member("ProjectionExpression", text);
    }
    if let Some(names) = json.get("ExpressionAttributeNames") {
        out.object_member("ExpressionAttributeNames", |out| {
            for (name, stands_for) in names.members() {
                out.text_member(name, stands_for.as_str().unwrap_or_default());
            }
        });
    }
    if let Some(names) = json.get("AttributesToGet") {
        let names = names.elements().iter().filter_map(Json::as_str);
        out.name("AttributesToGet").list(names, JsonWriter::text);
    }
}
