//! TransactWriteItems.

use kstone::ops::{Condition, TransactAction, TransactKind, TransactWrite, Update};

use super::capacity::{self, CapacityFields};
use super::parameters::{self, ParameterStyles, TableNames};
use super::{Context, Response};
use crate::error::Fault;
use crate::json::Json;

const CONDITION: ParameterStyles =
    ParameterStyles { expressions: &["ConditionExpression"], legacy: &[] };
const UPDATE: ParameterStyles =
    ParameterStyles { expressions: &["UpdateExpression", "ConditionExpression"], legacy: &[] };

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Response, Fault> {
    let actions = json.get("TransactItems").map_or(&[][..], Json::elements);
    let request = TransactWrite {
        actions: actions.iter().map(read_action).collect::<Result<_, _>>()?,
        token: parameters::text(json, "ClientRequestToken"),
        capacity: parameters::capacity(json),
        collection_metrics: parameters::collection_metrics(json),
    };
    let kinds = actions.iter().flat_map(Json::members);
    let names = TableNames::new(kinds.filter_map(|(_, action)| action.text("TableName")));
    Response::when_durable(context.database.transact_write(&request), |out, output| {
        capacity::write_all(out, &output.consumed, &names, CapacityFields::UnitsByKind);
        capacity::write_collections(out, &output.collections, &names);
    })
}

fn read_action(json: &Json<'_>) -> Result<TransactAction, Fault> {
    let kinds = ["ConditionCheck", "Put", "Delete", "Update"];
    let mut given = kinds.into_iter().filter_map(|kind| Some((kind, json.get(kind)?)));
    let (Some((kind, action)), None) = (given.next(), given.next()) else {
        return Err(Fault::validation(
            "TransactItems can only contain one of Check, Put, Update or Delete",
        ));
    };
    let styles = if kind == "Update" { UPDATE } else { CONDITION };
    styles.check(action)?;
    let kind = match kind {
        "ConditionCheck" => TransactKind::Check(parameters::item(action, "Key")?),
        "Put" => TransactKind::Put(parameters::item(action, "Item")?),
        "Delete" => TransactKind::Delete(parameters::item(action, "Key")?),
        _ => TransactKind::Update(
            parameters::item(action, "Key")?,
            Update::Text(parameters::text(action, "UpdateExpression").unwrap_or_default()),
        ),
    };
    Ok(TransactAction {
        table: parameters::table_name(action),
        kind,
        condition: parameters::text(action, "ConditionExpression").map(Condition::Text),
        placeholders: parameters::placeholders(action)?,
        return_on_failure: parameters::return_on_failure(action),
    })
}
