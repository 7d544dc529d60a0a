//! TransactWriteItems.

use kstone::ops::{Condition, TransactAction, TransactKind, TransactWrite, Update};

use super::capacity::{self, Kinds};
use super::parameters::{self, Given, Styles};
use super::{Answering, Context};
use crate::error::Fault;
use crate::json::Json;

const CONDITION: Styles = Styles { expressions: &["ConditionExpression"], legacy: &[] };
const UPDATE: Styles =
    Styles { expressions: &["UpdateExpression", "ConditionExpression"], legacy: &[] };

pub(super) fn start(json: &Json<'_>, context: &Context) -> Result<Answering, Fault> {
    let actions = json.get("TransactItems").map_or(&[][..], Json::elements);
    let request = TransactWrite {
        actions: actions.iter().map(read_action).collect::<Result<_, _>>()?,
        token: parameters::text(json, "ClientRequestToken"),
        capacity: parameters::capacity(json),
        collection_metrics: parameters::collection_metrics(json),
    };
    let kinds = actions.iter().flat_map(Json::members);
    let given = Given::new(kinds.filter_map(|(_, action)| action.text("TableName")));
    Answering::later(context.database.transact_write(&request), |out, output| {
        capacity::write_all(out, &output.consumed, &given, Kinds::Named);
        capacity::write_collections(out, &output.collections, &given);
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
