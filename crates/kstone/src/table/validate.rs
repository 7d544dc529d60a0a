//! Validates the definition of a table, in DynamoDB's words and in its order of checks.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::table::constraint::Constraints;
use crate::table::raw::{BillingMode, KeyElement, KeyRole, ProjectionType, RawIndex, RawTable};
use crate::table::{KeyAttribute, Throughput, tags};

/// Local indexes of a table.
pub(crate) const LOCAL_MAX: usize = 5;
/// Global indexes of a table.
pub(crate) const GLOBAL_MAX: usize = 20;
/// Attributes of the partition key of a global index, and of its sort key.
const KEY_PART_MAX: usize = 4;
/// Attributes that all indexes of a table together may name as included.
const INCLUDED_MAX: usize = 100;
/// More units than this are taken for a mistake.
const UNITS_MAX: u64 = 1_000_000_000_000;
/// The classes that a table can be of.
const CLASSES: [&str; 2] = ["STANDARD", "STANDARD_INFREQUENT_ACCESS"];

/// Refuses a table that DynamoDB would refuse.
pub(crate) fn table(raw: &RawTable) -> Result<()> {
    constraints(raw)?;
    billing(raw)?;
    on_demand_range(raw.on_demand, 1)?;
    defined_once(&raw.attributes)?;
    table_key(raw)?;
    if raw.local.is_none() && raw.global.is_none() && raw.key.len() != raw.attributes.len() {
        return Err(invalid(
            "Number of attributes in KeySchema does not exactly match number of attributes \
             defined in AttributeDefinitions",
        ));
    }
    if let Some(indexes) = &raw.local {
        if indexes.is_empty() {
            return Err(invalid("List of LocalSecondaryIndexes is empty"));
        }
        if raw.key.len() < 2 {
            return Err(invalid(
                "Table KeySchema does not have a range key, which is required when specifying a \
                 LocalSecondaryIndex",
            ));
        }
        for index in indexes {
            defined(&index.key, &raw.attributes)?;
            pair(&index.key)?;
        }
    }
    if let Some(indexes) = &raw.global {
        if indexes.is_empty() {
            return Err(invalid("List of GlobalSecondaryIndexes is empty"));
        }
        for index in indexes {
            defined(&index.key, &raw.attributes)?;
            global_key(&index.key)?;
        }
    }
    all_used(raw)?;
    let mut names = HashSet::new();
    for index in raw.local.iter().flatten() {
        local_key(raw, index)?;
        projection(index)?;
        unique(&mut names, &index.name)?;
    }
    if raw.local.as_ref().is_some_and(|indexes| indexes.len() > LOCAL_MAX) {
        return Err(invalid(format!(
            "Number of LocalSecondaryIndexes exceeds per-table limit of {LOCAL_MAX}"
        )));
    }
    for index in raw.global.iter().flatten() {
        projection(index)?;
        index_throughput(raw.billing, index)?;
        unique(&mut names, &index.name)?;
    }
    if raw.global.as_ref().is_some_and(|indexes| indexes.len() > GLOBAL_MAX) {
        return Err(invalid(format!(
            "GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_MAX}"
        )));
    }
    included(raw.local.iter().chain(&raw.global).flatten().map(|index| index.non_key.as_deref()))?;
    if let Some(stream) = raw.stream {
        match (stream.enabled, stream.view) {
            (true, None) => {
                return Err(invalid(
                    "Table is being created with a stream enabled, UpdateViewType is required",
                ));
            }
            (false, Some(_)) => {
                return Err(invalid(
                    "Table is being created with a stream disabled, UpdateViewType should not be \
                     specified",
                ));
            }
            _ => {}
        }
    }
    table_class(raw.table_class.as_deref())?;
    tags::check(&raw.tags)
}

/// Lengths, characters and smallest values: all that is wrong, in one message. A name that no
/// table can have is reported alone.
fn constraints(raw: &RawTable) -> Result<()> {
    let mut found = Constraints::default();
    found.resource_name("tableName", &raw.name);
    found.refuse()?;
    let mut found = Constraints::default();
    for (at, attribute) in (1..).zip(&raw.attributes) {
        let member = format!("attributeDefinitions.{at}.member.attributeName");
        found.attribute_name(&member, &attribute.name);
    }
    found.throughput("provisionedThroughput", raw.throughput);
    found.key("keySchema", &raw.key, 2);
    for (list, indexes, key_max) in [
        ("localSecondaryIndexes", &raw.local, 2),
        ("globalSecondaryIndexes", &raw.global, 2 * KEY_PART_MAX),
    ] {
        for (at, index) in (1..).zip(indexes.iter().flatten()) {
            found.index(&format!("{list}.{at}.member"), index, key_max);
        }
    }
    found.refuse()
}

fn billing(raw: &RawTable) -> Result<()> {
    match (raw.billing.unwrap_or(BillingMode::Provisioned), raw.throughput) {
        (BillingMode::PayPerRequest, Some(_)) => return Err(throughput_on_demand()),
        (BillingMode::Provisioned, None) => {
            return Err(invalid(
                "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode \
                 is PROVISIONED",
            ));
        }
        (BillingMode::Provisioned, Some(units)) => units_in_bounds(units)?,
        (BillingMode::PayPerRequest, None) => return Ok(()),
    }
    maximum_on_provisioned(raw.on_demand)
}

/// Maximum on-demand throughput means nothing where units are provisioned.
pub(crate) fn maximum_on_provisioned(maximum: Option<(Option<i64>, Option<i64>)>) -> Result<()> {
    let named = match maximum {
        Some((Some(_), _)) => "MaxReadRequestUnits",
        Some((None, Some(_))) => "MaxWriteRequestUnits",
        _ => return Ok(()),
    };
    Err(invalid(format!(
        "{named} for OnDemandThroughput cannot be specified when the table BillingMode is \
         PROVISIONED"
    )))
}

/// `smallest` is 1, or -1 where that takes a maximum away.
pub(crate) fn on_demand_range(
    maximum: Option<(Option<i64>, Option<i64>)>,
    smallest: i64,
) -> Result<()> {
    let (read, write) = maximum.unwrap_or_default();
    for (name, units) in [("MaxReadRequestUnits", read), ("MaxWriteRequestUnits", write)] {
        if units.is_some_and(|units| units < smallest || units == 0) {
            return Err(invalid(format!(
                "Requested {name} for OnDemandThroughput for table is outside of valid range"
            )));
        }
    }
    Ok(())
}

pub(crate) fn throughput_on_demand() -> Error {
    invalid(
        "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is \
         PAY_PER_REQUEST",
    )
}

pub(crate) fn units_in_bounds(units: Throughput) -> Result<()> {
    for (name, units) in [("ReadCapacityUnits", units.read), ("WriteCapacityUnits", units.write)] {
        if units > UNITS_MAX {
            return Err(Error::validation(format!(
                "Given value {units} for {name} is out of bounds"
            )));
        }
    }
    Ok(())
}

pub(crate) fn defined_once(attributes: &[KeyAttribute]) -> Result<()> {
    let mut names = HashSet::new();
    match attributes.iter().find(|attribute| !names.insert(attribute.name.as_str())) {
        Some(twice) => {
            Err(Error::validation(format!("Attribute Name is duplicated: {}", twice.name)))
        }
        None => Ok(()),
    }
}

fn table_key(raw: &RawTable) -> Result<()> {
    if raw.key.len() > raw.attributes.len() {
        return Err(Error::validation(
            "Invalid KeySchema: Some index key attribute have no definition",
        ));
    }
    defined(&raw.key, &raw.attributes)?;
    pair(&raw.key)
}

/// The key's attributes have types.
pub(crate) fn defined(key: &[KeyElement], attributes: &[KeyAttribute]) -> Result<()> {
    let names: Vec<&str> = attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    if key.iter().all(|element| names.contains(&element.name.as_str())) {
        return Ok(());
    }
    let keys: Vec<&str> = key.iter().map(|element| element.name.as_str()).collect();
    Err(undefined(&keys, &names))
}

pub(crate) fn undefined(keys: &[&str], attributes: &[&str]) -> Error {
    invalid(format!(
        "Some index key attributes are not defined in AttributeDefinitions. Keys: [{}], \
         AttributeDefinitions: [{}]",
        keys.join(", "),
        attributes.join(", ")
    ))
}

/// A key of a table or a local index: one partition key attribute, then at most one sort key
/// attribute.
fn pair(key: &[KeyElement]) -> Result<()> {
    if let [first, second, ..] = key
        && first.name == second.name
    {
        return Err(Error::validation(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        ));
    }
    first_is_hash(key)?;
    match key.get(1) {
        Some(second) if second.role != KeyRole::Range => Err(Error::validation(
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
        )),
        _ => Ok(()),
    }
}

fn first_is_hash(key: &[KeyElement]) -> Result<()> {
    match key.first() {
        Some(first) if first.role == KeyRole::Hash => Ok(()),
        _ => Err(Error::validation(
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
        )),
    }
}

/// A key of a global index: up to four attributes for each part.
pub(crate) fn global_key(key: &[KeyElement]) -> Result<()> {
    first_is_hash(key)?;
    for role in [KeyRole::Hash, KeyRole::Range] {
        if key.iter().filter(|element| element.role == role).count() > KEY_PART_MAX {
            return Err(invalid(format!(
                "The KeySchema exceeds the maximum allowed number of {} key attributes",
                role.name()
            )));
        }
    }
    let after_first_range = key.iter().skip_while(|element| element.role == KeyRole::Hash);
    if after_first_range.into_iter().any(|element| element.role == KeyRole::Hash) {
        return Err(invalid(
            "All HASH key attributes must precede RANGE key attributes in the KeySchema",
        ));
    }
    let mut names = HashSet::new();
    if key.iter().all(|element| names.insert(element.name.as_str())) {
        return Ok(());
    }
    Err(Error::validation("The KeySchema contains multiple key attributes with the same name"))
}

/// With indexes, every definition must be used by some key.
fn all_used(raw: &RawTable) -> Result<()> {
    let indexes = raw.local.iter().chain(&raw.global).flatten();
    let mut used: Vec<&str> = Vec::new();
    for element in raw.key.iter().chain(indexes.flat_map(|index| &index.key)) {
        if !used.contains(&element.name.as_str()) {
            used.push(&element.name);
        }
    }
    let names: Vec<&str> = raw.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
    if names.iter().all(|name| used.contains(name)) {
        return Ok(());
    }
    Err(invalid(format!(
        "Some AttributeDefinitions are not used. AttributeDefinitions: [{}], keys used: [{}]",
        names.join(", "),
        used.join(", ")
    )))
}

fn local_key(raw: &RawTable, index: &RawIndex) -> Result<()> {
    if index.key.len() < 2 {
        return Err(invalid(format!(
            "Index KeySchema does not have a range key for index: {}",
            index.name
        )));
    }
    match (index.key.first(), raw.key.first()) {
        (Some(own), Some(table)) if own.name != table.name => Err(invalid(format!(
            "Index KeySchema does not have the same leading hash key as table KeySchema for \
             index: {}. index hash key: {}, table hash key: {}",
            index.name, own.name, table.name
        ))),
        _ => Ok(()),
    }
}

/// Only `INCLUDE` names attributes, each once.
pub(crate) fn projection(index: &RawIndex) -> Result<()> {
    let Some(projection) = index.projection else {
        return Err(invalid("Unknown ProjectionType: null"));
    };
    match (projection, &index.non_key) {
        (ProjectionType::Include, None) => {
            Err(invalid("ProjectionType is INCLUDE, but NonKeyAttributes is not specified"))
        }
        (ProjectionType::Include, Some(names)) => {
            let mut seen = HashSet::new();
            match names.iter().find(|name| !seen.insert(name.as_str())) {
                Some(twice) => {
                    Err(invalid(format!("Duplicate element in NonKeyAttributes: {twice}")))
                }
                None => Ok(()),
            }
        }
        (other, Some(_)) => Err(invalid(format!(
            "ProjectionType is {}, but NonKeyAttributes is specified",
            other.name()
        ))),
        (_, None) => Ok(()),
    }
}

/// The same attribute in two indexes counts twice.
pub(crate) fn included<'a>(lists: impl Iterator<Item = Option<&'a [String]>>) -> Result<()> {
    let count: usize = lists.map(|names| names.map_or(0, <[String]>::len)).sum();
    if count > INCLUDED_MAX {
        return Err(invalid(format!(
            "Number of NonKeyAttributes in all indexes exceeds per-table limit of {INCLUDED_MAX}"
        )));
    }
    Ok(())
}

fn index_throughput(billing: Option<BillingMode>, index: &RawIndex) -> Result<()> {
    match (billing.unwrap_or(BillingMode::Provisioned), index.throughput) {
        (BillingMode::PayPerRequest, Some(_)) => Err(invalid(format!(
            "ProvisionedThroughput should not be specified for index: {} when BillingMode is \
             PAY_PER_REQUEST",
            index.name
        ))),
        (BillingMode::Provisioned, None) => Err(invalid(format!(
            "ProvisionedThroughput is not specified for index: {}",
            index.name
        ))),
        (BillingMode::Provisioned, Some(units)) => units_in_bounds(units),
        (BillingMode::PayPerRequest, None) => Ok(()),
    }
}

fn unique<'a>(names: &mut HashSet<&'a str>, name: &'a str) -> Result<()> {
    if names.insert(name) {
        return Ok(());
    }
    Err(invalid(format!("Duplicate index name: {name}")))
}

pub(crate) fn table_class(class: Option<&str>) -> Result<()> {
    match class {
        Some(class) if !CLASSES.contains(&class) => Err(Error::validation(format!(
            "Invalid table-class parameter provided. Please try again with a valid table-class \
             value: [{}].",
            CLASSES.join(", ")
        ))),
        _ => Ok(()),
    }
}

/// What DynamoDB begins most of its refusals with.
pub(crate) fn invalid(what: impl std::fmt::Display) -> Error {
    Error::validation(format!("One or more parameter values were invalid: {what}"))
}
