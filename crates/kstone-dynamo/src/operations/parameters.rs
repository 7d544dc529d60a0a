//! Parameters that many operations share.

use kstone::Item;
use kstone::ops::{CapacityDetail, Placeholders, Projection, ReturnValues, Select};

use crate::error::Fault;
use crate::json::Json;
use crate::wire::{read_item, read_value};

/// The table's name, also if it is given as an ARN.
pub(super) fn table_name(json: &Json<'_>) -> String {
    table_of(json.text("TableName").unwrap_or_default()).to_owned()
}

/// The name in an ARN, `arn:aws:dynamodb:us-east-1:000000000000:table/NAME`; any other text is the
/// name itself.
pub(super) fn table_of(name: &str) -> &str {
    match name.strip_prefix("arn:").and_then(|arn| arn.split_once(":table/")) {
        Some((_, resource)) => resource.split('/').next().unwrap_or(resource),
        None => name,
    }
}

/// The names by which a request refers to its tables. A response uses the same ones, be they names
/// or ARNs.
#[derive(Debug, Default)]
pub(super) struct TableNames<'a> {
    names: Vec<&'a str>,
}

impl<'a> TableNames<'a> {
    pub(super) fn new(names: impl IntoIterator<Item = &'a str>) -> Self {
        TableNames { names: names.into_iter().collect() }
    }

    /// The first name by which the request refers to this table.
    pub(super) fn name_of<'t>(&self, table: &'t str) -> &'t str
    where
        'a: 't,
    {
        self.names.iter().find(|name| table_of(name) == table).copied().unwrap_or(table)
    }
}

/// The part of a batch that is about one table: its name in the request, and its parameters.
pub(super) type TablePart<'j, 'a> = (&'j str, &'j Json<'a>);

/// The parts of a batch, one for each table. Of members with the same name the last counts, as
/// everywhere; a table under two different names is refused.
pub(super) fn tables_of_batch<'j, 'a>(json: &'j Json<'a>) -> Result<Vec<TablePart<'j, 'a>>, Fault> {
    let members = json.get("RequestItems").map_or(&[][..], Json::members);
    let mut parts: Vec<TablePart<'j, 'a>> = Vec::with_capacity(members.len());
    for (name, part) in members {
        match parts.iter_mut().find(|(have, _)| table_of(have) == table_of(name)) {
            None => parts.push((name, part)),
            Some(same) if same.0 == name => same.1 = part,
            Some((other, _)) => {
                return Err(Fault::validation(format!(
                    "One or more parameter values were invalid: {other} and {name} name the same \
                     table"
                )));
            }
        }
    }
    Ok(parts)
}

/// A required map of attribute values.
pub(super) fn item(json: &Json<'_>, name: &str) -> Result<Item, Fault> {
    json.get(name).map_or_else(|| Ok(Item::new()), read_item)
}

/// An optional text.
pub(super) fn text(json: &Json<'_>, name: &str) -> Option<String> {
    json.text(name).map(str::to_owned)
}

pub(super) fn capacity(json: &Json<'_>) -> CapacityDetail {
    match json.text("ReturnConsumedCapacity") {
        Some("INDEXES") => CapacityDetail::Indexes,
        Some("TOTAL") => CapacityDetail::Total,
        _ => CapacityDetail::None,
    }
}

pub(super) fn collection_metrics(json: &Json<'_>) -> bool {
    json.text("ReturnItemCollectionMetrics") == Some("SIZE")
}

pub(super) fn return_on_failure(json: &Json<'_>) -> bool {
    json.text("ReturnValuesOnConditionCheckFailure") == Some("ALL_OLD")
}

pub(super) fn consistent_read(json: &Json<'_>) -> bool {
    json.boolean("ConsistentRead").unwrap_or(false)
}

pub(super) fn return_values(json: &Json<'_>) -> ReturnValues {
    match json.text("ReturnValues") {
        Some("ALL_OLD") => ReturnValues::AllOld,
        Some("UPDATED_OLD") => ReturnValues::UpdatedOld,
        Some("ALL_NEW") => ReturnValues::AllNew,
        Some("UPDATED_NEW") => ReturnValues::UpdatedNew,
        _ => ReturnValues::None,
    }
}

/// `ReturnValues` of a put or a delete, which can only return the old item.
pub(super) fn return_old(json: &Json<'_>) -> Result<ReturnValues, Fault> {
    match return_values(json) {
        values @ (ReturnValues::None | ReturnValues::AllOld) => Ok(values),
        _ => Err(Fault::validation("ReturnValues can only be ALL_OLD or NONE")),
    }
}

pub(super) fn select(json: &Json<'_>) -> Option<Select> {
    Some(match json.text("Select")? {
        "ALL_ATTRIBUTES" => Select::AllAttributes,
        "ALL_PROJECTED_ATTRIBUTES" => Select::AllProjectedAttributes,
        "COUNT" => Select::Count,
        _ => Select::SpecificAttributes,
    })
}

pub(super) fn limit(json: &Json<'_>) -> Option<u32> {
    json.integer("Limit").map(|limit| u32::try_from(limit).unwrap_or(u32::MAX))
}

/// `ExclusiveStartKey`: the key with which the previous page ended.
pub(super) fn start_key(json: &Json<'_>) -> Result<Option<Item>, Fault> {
    let Some(key) = json.get("ExclusiveStartKey") else { return Ok(None) };
    read_item(key).map(Some).map_err(|fault| {
        // DynamoDB adds that the starting key is invalid, except for errors inside numbers and sets.
        let message = fault.message();
        let inner = ["contains duplicates", "number set", "numeric value", "significant digits"];
        let is_inner = inner.iter().any(|part| message.contains(part))
            || message.contains("number with magnitude");
        match is_inner || message.is_empty() {
            true => fault,
            false => Fault::validation(format!("The provided starting key is invalid: {message}")),
        }
    })
}

/// `ProjectionExpression` or `AttributesToGet`.
pub(super) fn projection(json: &Json<'_>) -> Result<Option<Projection>, Fault> {
    if let Some(text) = text(json, "ProjectionExpression") {
        return Ok(Some(Projection::Text(text)));
    }
    let Some(names) = json.get("AttributesToGet") else { return Ok(None) };
    let mut attributes: Vec<String> = Vec::with_capacity(names.elements().len());
    for name in names.elements().iter().filter_map(Json::as_str) {
        if attributes.iter().any(|have| have == name) {
            return Err(Fault::validation(format!(
                "One or more parameter values were invalid: Duplicate value in attribute name: \
                 {name}"
            )));
        }
        attributes.push(name.to_owned());
    }
    Ok(Some(Projection::Attributes(attributes)))
}

/// The expression parameters and the legacy parameters of an operation, which exclude each other.
pub(super) struct ParameterStyles {
    /// Each of these except a projection may use values.
    pub(super) expressions: &'static [&'static str],
    pub(super) legacy: &'static [&'static str],
}

impl ParameterStyles {
    /// Refuses a request with both, and placeholders that no expression could use.
    pub(super) fn check(&self, json: &Json<'_>) -> Result<(), Fault> {
        let has = |name: &&str| json.get(name).is_some();
        let has_expression = self.expressions.iter().any(has);
        if has_expression && self.legacy.iter().any(has) {
            self.check_mixed(json)?;
        }
        if !has_expression && json.get("ExpressionAttributeNames").is_some() {
            return Err(Fault::validation(
                "ExpressionAttributeNames can only be specified when using expressions",
            ));
        }
        if json.get("ExpressionAttributeValues").is_some() {
            let with_values = self.expressions.iter().filter(|name| **name != PROJECTION);
            let with_values: Vec<&str> = with_values.copied().collect();
            if !with_values.is_empty() && !with_values.iter().any(has) {
                let are = if with_values.len() > 1 { "are" } else { "is" };
                return Err(Fault::validation(format!(
                    "ExpressionAttributeValues can only be specified when using expressions: {} \
                     {are} null",
                    with_values.join(" and ")
                )));
            }
        }
        Ok(())
    }

    fn check_mixed(&self, json: &Json<'_>) -> Result<(), Fault> {
        let given = |names: &[&'static str]| -> Vec<&'static str> {
            names.iter().filter(|name| json.get(name).is_some()).copied().collect()
        };
        let mut legacy = given(self.legacy);
        if json.get("KeyConditionExpression").is_none() {
            // Legacy key conditions are allowed together with a filter expression.
            legacy.retain(|name| *name != "KeyConditions");
        }
        if legacy.is_empty() {
            return Ok(());
        }
        Err(Fault::validation(format!(
            "Can not use both expression and non-expression parameters in the same request: \
             Non-expression parameters: {{{}}} Expression parameters: {{{}}}",
            legacy.join(", "),
            given(self.expressions).join(", ")
        )))
    }
}

const PROJECTION: &str = "ProjectionExpression";

/// `ExpressionAttributeNames`, for the operations that have no expression with values.
pub(super) fn names(json: &Json<'_>) -> Placeholders {
    let names = json.get("ExpressionAttributeNames").map(|names| {
        let name = |(key, name): &(std::borrow::Cow<'_, str>, Json<'_>)| {
            Some((key.clone().into_owned(), name.as_str()?.to_owned()))
        };
        names.members().iter().filter_map(name).collect::<Vec<_>>()
    });
    Placeholders { names, values: None }
}

/// `ExpressionAttributeNames` and `ExpressionAttributeValues`.
pub(super) fn placeholders(json: &Json<'_>) -> Result<Placeholders, Fault> {
    let mut placeholders = names(json);
    let Some(values) = json.get("ExpressionAttributeValues") else { return Ok(placeholders) };
    let mut read = Vec::with_capacity(values.members().len());
    for (key, value) in values.members() {
        let value = read_value(value).map_err(|fault| bad_value(json, key, fault))?;
        read.push((key.clone().into_owned(), value));
    }
    placeholders.values = Some(read);
    Ok(placeholders)
}

/// The error for an invalid value of a placeholder. An invalid placeholder name precedes it, but the
/// database, which checks names, is called only if all values are valid; so they are checked here.
fn bad_value(json: &Json<'_>, key: &str, fault: Fault) -> Fault {
    let check = |parameter: &str, sign: char| {
        let members = json.get(parameter)?.members();
        if members.is_empty() {
            return Some(Fault::validation(format!("{parameter} must not be empty")));
        }
        let is_good = |key: &str| {
            let name = key.strip_prefix(sign).unwrap_or("");
            !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
        };
        let (bad, _) = members.iter().find(|(key, _)| !is_good(key))?;
        Some(Fault::validation(format!(
            "{parameter} contains invalid key: Syntax error; key: \"{bad}\""
        )))
    };
    let earlier =
        check("ExpressionAttributeNames", '#').or_else(|| check("ExpressionAttributeValues", ':'));
    match earlier {
        Some(earlier) => earlier,
        // A wrong JSON type: the caller replaces the error by one with a message.
        None if fault.message().is_empty() => fault,
        None => Fault::validation(format!(
            "ExpressionAttributeValues contains invalid value: {} for key {key}",
            fault.message()
        )),
    }
}
