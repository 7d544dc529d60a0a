//! UpdateTable.

use kstone::table::{RawIndexChange, RawTableChange};

use super::{Context, Response, create_table, description, parameters};
use crate::error::Fault;
use crate::json::Json;

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let updates = json.get("GlobalSecondaryIndexUpdates");
    let requested = RawTableChange {
        attributes: create_table::attributes(json),
        billing: create_table::billing(json),
        throughput: create_table::throughput(json),
        on_demand: create_table::on_demand(json),
        global: updates.map(|updates| updates.elements().iter().map(index_change).collect()),
        stream: create_table::stream(json),
        encryption: create_table::encryption(json),
        deletion_protection: json.boolean("DeletionProtectionEnabled"),
        table_class: parameters::text(json, "TableClass"),
    };
    let name = parameters::table_name(json);
    let table = context.database.update_table_as_requested(&name, &requested)?;
    Response::ready(|out| {
        out.name("TableDescription");
        description::write(out, &table, &context.region);
    })
}

fn index_change(json: &Json<'_>) -> RawIndexChange {
    let name = |json: &Json<'_>| parameters::text(json, "IndexName").unwrap_or_default();
    RawIndexChange {
        create: json.get("Create").map(create_table::index),
        update: json.get("Update").map(|update| (name(update), create_table::throughput(update))),
        delete: json.get("Delete").map(name),
    }
}
