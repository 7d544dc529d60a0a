//! BatchWriteItem.

use kstone::ops::{BatchWrite, WriteRequest};

use super::capacity::{self, CapacityFields};
use super::parameters::{self, TableNames};
use super::{Context, Response};
use crate::error::Fault;
use crate::json::Json;
use crate::wire::{JsonWriter, SEVERAL_TYPES};

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let tables = parameters::tables_of_batch(json)?;
    if tables.is_empty() {
        return Err(Fault::validation("The requestItems parameter is required for BatchWriteItem"));
    }
    let mut request = BatchWrite {
        tables: Vec::with_capacity(tables.len()),
        capacity: parameters::capacity(json),
        collection_metrics: parameters::collection_metrics(json),
    };
    for (name, writes) in &tables {
        let writes = writes.elements().iter().map(read_write).collect::<Result<_, _>>()?;
        request.tables.push((parameters::table_of(name).to_owned(), writes));
    }
    let names = TableNames::new(tables.iter().map(|(name, _)| *name));
    Response::when_durable(context.database.batch_write(&request), |out, output| {
        out.object_member("UnprocessedItems", |out| {
            for (table, at) in &output.unprocessed {
                let asked = request.tables.iter().find(|(name, _)| name == table);
                let writes = asked.map_or(&[][..], |(_, writes)| writes);
                let left = at.iter().filter_map(|at| writes.get(*at));
                out.name(names.name_of(table)).list(left, write_write);
            }
        });
        capacity::write_collections(out, &output.collections, &names);
        capacity::write_all(out, &output.consumed, &names, CapacityFields::Units);
    })
}

fn read_write(json: &Json<'_>) -> Result<WriteRequest, Fault> {
    match (json.get("PutRequest"), json.get("DeleteRequest")) {
        (Some(put), None) => Ok(WriteRequest::Put(parameters::item(put, "Item")?)),
        (None, Some(delete)) => Ok(WriteRequest::Delete(parameters::item(delete, "Key")?)),
        // The message is about attribute values; AWS uses it here too.
        (None, None) | (Some(_), Some(_)) => Err(Fault::validation(SEVERAL_TYPES)),
    }
}

fn write_write(out: &mut JsonWriter, write: &WriteRequest) {
    out.object(|out| match write {
        WriteRequest::Put(item) => {
            out.object_member("PutRequest", |out| out.name("Item").tree(item));
        }
        WriteRequest::Delete(key) => {
            out.object_member("DeleteRequest", |out| out.name("Key").tree(key));
        }
    });
}
