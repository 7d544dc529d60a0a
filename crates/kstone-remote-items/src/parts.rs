//! What requests and answers have in common, in the SDK's terms: expressions, placeholders, capacity.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{
    AttributeValue, Capacity, ConsumedCapacity, ItemCollectionMetrics, ReturnConsumedCapacity,
    ReturnItemCollectionMetrics, ReturnValue, ReturnValuesOnConditionCheckFailure,
};
use kstone_ports::items::{
    CapacityDetail, CapacityKind, CollectionMetrics, Condition, Consumed, KeyCondition,
    Placeholders, Projection, ReturnValues, Update,
};
use kstone_ports::{Error, Result};

use crate::value::{attribute, item};

fn only_text(what: &str) -> Error {
    Error::Unsupported(format!(
        "a remote store takes {what} only as the text of an expression, not as built from a legacy \
         parameter"
    ))
}

/// The text of a condition or filter.
pub(crate) fn condition(condition: Option<&Condition>) -> Result<Option<String>> {
    match condition {
        None => Ok(None),
        Some(Condition::Text(text) | Condition::Statement(text)) => Ok(Some(text.clone())),
        Some(Condition::Built(_)) => Err(only_text("a condition")),
    }
}

/// The text of a key condition.
pub(crate) fn key_condition(condition: Option<&KeyCondition>) -> Result<Option<String>> {
    match condition {
        None => Ok(None),
        Some(KeyCondition::Text(text)) => Ok(Some(text.clone())),
        Some(KeyCondition::Built(_)) => Err(only_text("a key condition")),
    }
}

/// The text of an update.
pub(crate) fn update(update: &Update) -> Result<String> {
    match update {
        Update::Text(text) | Update::Statement(text) => Ok(text.clone()),
        Update::Built(_) => Err(only_text("an update")),
    }
}

/// A projection: as an expression, or as names of attributes. At most one of the two is there.
pub(crate) fn projection(projection: Option<&Projection>) -> (Option<String>, Option<Vec<String>>) {
    match projection {
        None => (None, None),
        Some(Projection::Text(text)) => (Some(text.clone()), None),
        Some(Projection::Attributes(names)) => (None, Some(names.clone())),
    }
}

/// What placeholders of names stand for.
pub(crate) fn names(placeholders: &Placeholders) -> Option<HashMap<String, String>> {
    placeholders.names.as_ref().map(|pairs| pairs.iter().cloned().collect())
}

/// What placeholders of values stand for.
pub(crate) fn values(placeholders: &Placeholders) -> Option<HashMap<String, AttributeValue>> {
    let pairs = placeholders.values.as_ref()?;
    Some(pairs.iter().map(|(name, value)| (name.clone(), attribute(value))).collect())
}

/// What a write returns, unless that is nothing.
pub(crate) fn return_values(values: ReturnValues) -> Option<ReturnValue> {
    match values {
        ReturnValues::None => None,
        ReturnValues::AllOld => Some(ReturnValue::AllOld),
        ReturnValues::UpdatedOld => Some(ReturnValue::UpdatedOld),
        ReturnValues::AllNew => Some(ReturnValue::AllNew),
        ReturnValues::UpdatedNew => Some(ReturnValue::UpdatedNew),
    }
}

/// Whether a failed condition comes with the item.
pub(crate) fn on_failure(asked: bool) -> Option<ReturnValuesOnConditionCheckFailure> {
    asked.then_some(ReturnValuesOnConditionCheckFailure::AllOld)
}

/// Whether the size of item collections is asked for.
pub(crate) fn metrics(asked: bool) -> Option<ReturnItemCollectionMetrics> {
    asked.then_some(ReturnItemCollectionMetrics::Size)
}

/// How much to say about capacity.
pub(crate) fn capacity(detail: CapacityDetail) -> Option<ReturnConsumedCapacity> {
    match detail {
        CapacityDetail::None => None,
        CapacityDetail::Total => Some(ReturnConsumedCapacity::Total),
        CapacityDetail::Indexes => Some(ReturnConsumedCapacity::Indexes),
    }
}

/// How capacity was asked for, which its answer does not say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// How much detail.
    pub(crate) detail: CapacityDetail,
    /// For reading or for writing.
    pub(crate) kind: CapacityKind,
    /// Whether by a transaction.
    pub(crate) transactional: bool,
}

impl Asked {
    /// By a request that reads.
    pub(crate) fn reading(detail: CapacityDetail) -> Asked {
        Asked { detail, kind: CapacityKind::Read, transactional: false }
    }

    /// By a request that writes.
    pub(crate) fn writing(detail: CapacityDetail) -> Asked {
        Asked { detail, kind: CapacityKind::Write, transactional: false }
    }

    /// The same by a transaction.
    pub(crate) fn in_transaction(self) -> Asked {
        Asked { transactional: true, ..self }
    }

    /// What was consumed.
    pub(crate) fn consumed(self, answer: &ConsumedCapacity) -> Consumed {
        let units = |capacity: &Capacity| capacity.capacity_units.unwrap_or_default();
        let by_name = |indexes: &Option<HashMap<String, Capacity>>| {
            let mut named: Vec<(String, f64)> = indexes
                .iter()
                .flatten()
                .map(|(name, capacity)| (name.clone(), units(capacity)))
                .collect();
            named.sort_by(|(a, _), (b, _)| a.cmp(b));
            named
        };
        // Without detail there is only the sum.
        let of_table = answer.table.as_ref().map(units);
        Consumed {
            table: answer.table_name.clone().unwrap_or_default(),
            detail: self.detail,
            table_units: of_table.or(answer.capacity_units).unwrap_or_default(),
            local: by_name(&answer.local_secondary_indexes),
            global: by_name(&answer.global_secondary_indexes),
            kind: self.kind,
            transactional: self.transactional,
        }
    }

    /// What was consumed, of each table.
    pub(crate) fn consumed_all(self, answers: Option<&[ConsumedCapacity]>) -> Vec<Consumed> {
        answers.unwrap_or_default().iter().map(|it| self.consumed(it)).collect()
    }
}

/// The size of one item collection.
pub(crate) fn collection(
    table: &str,
    metrics: &ItemCollectionMetrics,
) -> Result<Option<CollectionMetrics>> {
    let Some(key) = &metrics.item_collection_key else { return Ok(None) };
    let [low, high] = metrics.size_estimate_range_gb() else { return Ok(None) };
    Ok(Some(CollectionMetrics {
        table: table.to_owned(),
        key: item(key)?,
        size_estimate_gb: [*low, *high],
    }))
}

/// The sizes of item collections by table.
pub(crate) fn collections(
    tables: Option<&HashMap<String, Vec<ItemCollectionMetrics>>>,
) -> Result<Vec<CollectionMetrics>> {
    let all = tables.into_iter().flatten();
    let each = all.flat_map(|(table, metrics)| metrics.iter().map(move |it| collection(table, it)));
    Ok(each.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}
