//! Legacy parameters, which expressions have replaced, such as `Expected` and `KeyConditions`.

use kstone::expr::BoundCondition;
use kstone::expr::legacy::{
    AttributeAction, AttributeUpdate, ComparisonOperator, ConditionalOperator, Expected,
    LegacyCondition, attribute_updates, expected, filter, key_conditions,
};
use kstone::ops::{Condition, KeyCondition, Update};

use crate::error::Fault;
use crate::json::Json;
use crate::wire::{read_value, read_values};

/// `ConditionExpression` or `Expected`.
pub(super) fn condition(json: &Json<'_>) -> Result<Option<Condition>, Fault> {
    if let Some(text) = json.text("ConditionExpression") {
        return Ok(Some(Condition::Text(text.to_owned())));
    }
    let operator = conditional_operator(json, "Expected")?;
    let Some(attributes) = json.get("Expected") else { return Ok(None) };
    let mut read = Vec::with_capacity(attributes.members().len());
    for (name, json) in attributes.members() {
        let expected = Expected {
            value: json.get("Value").map(read_value).transpose()?,
            exists: json.boolean("Exists"),
            operator: comparison(json),
            values: json.get("AttributeValueList").map(read_values).transpose()?,
        };
        read.push((name.clone().into_owned(), expected));
    }
    Ok(Some(Condition::Built(expected(read, operator)?)))
}

/// `FilterExpression`, or the older parameter of this name.
pub(super) fn filter_of(json: &Json<'_>, parameter: &str) -> Result<Option<Condition>, Fault> {
    if let Some(text) = json.text("FilterExpression") {
        return Ok(Some(Condition::Text(text.to_owned())));
    }
    let operator = conditional_operator(json, parameter)?;
    let Some(given) = json.get(parameter) else { return Ok(None) };
    let built: BoundCondition = filter(conditions(given)?, operator)?;
    Ok(Some(Condition::Built(built)))
}

/// `KeyConditionExpression` or `KeyConditions`.
pub(super) fn key_condition(json: &Json<'_>) -> Result<Option<KeyCondition>, Fault> {
    if let Some(text) = json.text("KeyConditionExpression") {
        return Ok(Some(KeyCondition::Text(text.to_owned())));
    }
    let Some(given) = json.get("KeyConditions") else { return Ok(None) };
    Ok(Some(KeyCondition::Built(key_conditions(conditions(given)?)?)))
}

/// `UpdateExpression` or `AttributeUpdates`.
pub(super) fn update(json: &Json<'_>) -> Result<Option<Update>, Fault> {
    if let Some(text) = json.text("UpdateExpression") {
        return Ok(Some(Update::Text(text.to_owned())));
    }
    let Some(updates) = json.get("AttributeUpdates") else { return Ok(None) };
    let mut read = Vec::with_capacity(updates.members().len());
    for (name, json) in updates.members() {
        let action = match json.text("Action") {
            Some("ADD") => AttributeAction::Add,
            Some("DELETE") => AttributeAction::Delete,
            _ => AttributeAction::Put,
        };
        let value = json.get("Value").map(read_value).transpose()?;
        read.push((name.clone().into_owned(), AttributeUpdate { action, value }));
    }
    Ok(Some(Update::Built(attribute_updates(read)?)))
}

fn conditions(json: &Json<'_>) -> Result<Vec<(String, LegacyCondition)>, Fault> {
    let condition = |(name, json): &(std::borrow::Cow<'_, str>, Json<'_>)| {
        let condition = LegacyCondition {
            // Present and valid: the constraints have been checked.
            operator: comparison(json).unwrap_or(ComparisonOperator::Eq),
            values: json.get("AttributeValueList").map_or(Ok(Vec::new()), read_values)?,
        };
        Ok((name.clone().into_owned(), condition))
    };
    json.members().iter().map(condition).collect()
}

fn comparison(json: &Json<'_>) -> Option<ComparisonOperator> {
    ComparisonOperator::named(json.text("ComparisonOperator")?)
}

fn conditional_operator(json: &Json<'_>, parameter: &str) -> Result<ConditionalOperator, Fault> {
    let Some(operator) = json.text("ConditionalOperator") else {
        return Ok(ConditionalOperator::And);
    };
    match json.get(parameter).map_or(0, |conditions| conditions.members().len()) {
        0 => {
            Err(Fault::validation("ConditionalOperator cannot be used without Filter or Expected"))
        }
        1 => Err(Fault::validation(
            "ConditionalOperator can only be used when Filter or Expected has two or more elements",
        )),
        _ => Ok(()),
    }?;
    Ok(if operator == "OR" { ConditionalOperator::Or } else { ConditionalOperator::And })
}
