//! Plans a query: from a key condition to a partition and a range of sort keys.

use std::ops::Bound;

use kstone_core::TableId;

use crate::error::{Error, Result};
use crate::expr::{BoundKeyCondition, KeyClause, KeyOp};
use crate::key;
use crate::table::KeyAttribute;
use crate::table::live::{Index, Scope, Table};
use crate::value::ValueRef;

/// Where a query looks.
#[derive(Debug)]
pub(crate) struct Plan {
    pub table: TableId,
    pub pk: Vec<u8>,
    pub range: SortRange,
}

/// A range of sort keys in the engine's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SortRange {
    pub low: Bound<Vec<u8>>,
    pub high: Bound<Vec<u8>>,
}

/// Finds the partition and the range, or says in DynamoDB's words why there is none.
pub(crate) fn plan(
    table: &Table,
    index: Option<&Index>,
    condition: &BoundKeyCondition,
) -> Result<Plan> {
    let schema = index.map_or(table.key(), |index| &index.key);
    let clauses = &condition.clauses;
    if schema.hash.len() > 1 || schema.range.len() > 1 {
        check_several(&schema.hash, &schema.range, clauses)?;
    } else {
        check_single(&schema.hash, &schema.range, clauses)?;
    }
    let clause_of = |attribute: &KeyAttribute| clauses.iter().find(|c| c.name == attribute.name);
    for attribute in schema.attributes() {
        for value in clause_of(attribute).into_iter().flat_map(|clause| clause.op.values()) {
            check_operand(attribute, value.as_ref(), index)?;
        }
    }
    let equal = |attribute: &KeyAttribute| match &clause_of(attribute)?.op {
        KeyOp::Eq(value) => Some(value.as_ref()),
        _ => None,
    };
    let mismatch = || Error::validation("Query key condition not supported");
    let single_pk = |attribute: &KeyAttribute| {
        let mut pk = Vec::new();
        key::write_single(attribute.kind, equal(attribute)?, &mut pk).then_some(pk)
    };
    let pk = match index {
        Some(index) if index.scope == Scope::Global => index.partition(equal),
        _ => schema.hash.first().and_then(single_pk),
    };
    let range = match (index, schema.range.first()) {
        (None, Some(attribute)) => match clause_of(attribute) {
            Some(clause) => table_range(attribute, &clause.op).ok_or_else(mismatch)?,
            None => SortRange::all(),
        },
        (None, None) => SortRange::all(),
        (Some(index), _) => index_range(&index.key.range, clause_of).ok_or_else(mismatch)?,
    };
    Ok(Plan {
        table: index.map_or(table.id(), |index| index.id),
        pk: pk.ok_or_else(mismatch)?,
        range,
    })
}

fn check_single(
    hash: &[KeyAttribute],
    range: &[KeyAttribute],
    clauses: &[KeyClause],
) -> Result<()> {
    let unsupported = || Error::validation("Query key condition not supported");
    let names = |attribute: &KeyAttribute| clauses.iter().any(|c| c.name == attribute.name);
    if clauses.len() > 2 {
        return Err(Error::validation("Conditions can be of length 1 or 2 only"));
    }
    if let Some(missed) = hash.iter().find(|attribute| !names(attribute)) {
        return Err(missed_element(missed));
    }
    if clauses.len() > 1 {
        match range {
            [] => return Err(unsupported()),
            [only] if !names(only) => return Err(missed_element(only)),
            _ => {}
        }
    }
    let hash_is_equal = clauses
        .iter()
        .filter(|c| hash.iter().any(|attribute| attribute.name == c.name))
        .all(|c| matches!(c.op, KeyOp::Eq(_)));
    if hash_is_equal { Ok(()) } else { Err(unsupported()) }
}

fn missed_element(attribute: &KeyAttribute) -> Error {
    Error::validation(format!("Query condition missed key schema element: {}", attribute.name))
}

fn check_several(
    hash: &[KeyAttribute],
    range: &[KeyAttribute],
    clauses: &[KeyClause],
) -> Result<()> {
    let attributes = hash.len() + range.len();
    if clauses.len() > attributes {
        return Err(Error::validation(format!(
            "The number of query conditions ({}) exceeds the number of key attributes defined in the schema ({attributes})",
            clauses.len()
        )));
    }
    let clause_of = |attribute: &KeyAttribute| clauses.iter().find(|c| c.name == attribute.name);
    let is_equal = |attribute: &KeyAttribute| {
        clause_of(attribute).is_some_and(|clause| matches!(clause.op, KeyOp::Eq(_)))
    };
    let list = |attributes: Vec<&KeyAttribute>| {
        attributes.iter().map(|a| a.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let unequal: Vec<_> = hash.iter().filter(|attribute| !is_equal(attribute)).collect();
    if !unequal.is_empty() {
        return Err(Error::validation(format!(
            "HASH key attributes {} must have equality conditions specified in the query",
            list(unequal)
        )));
    }
    if let Some(last) = range.iter().rposition(|attribute| clause_of(attribute).is_some()) {
        let before = range.get(..last).unwrap_or_default();
        let unequal: Vec<_> = before.iter().filter(|attribute| !is_equal(attribute)).collect();
        if !unequal.is_empty() {
            return Err(Error::validation(format!(
                "RANGE key attributes {} must have equality conditions specified in the query because a condition is present on key attribute {}",
                list(unequal),
                range.get(last).map_or("", |attribute| attribute.name.as_str())
            )));
        }
    }
    let stranger = clauses.iter().find(|c| !hash.iter().chain(range).any(|a| a.name == c.name));
    match stranger {
        Some(clause) => Err(Error::validation(format!(
            "Query condition contains an attribute that is not part of the key schema: {}",
            clause.name
        ))),
        None => Ok(()),
    }
}

fn check_operand(
    attribute: &KeyAttribute,
    value: ValueRef<'_>,
    index: Option<&Index>,
) -> Result<()> {
    if value.type_name() != attribute.kind.name() {
        return Err(Error::validation(
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        ));
    }
    let kind = match value {
        ValueRef::S("") => "string",
        ValueRef::B([]) => "binary",
        _ => return Ok(()),
    };
    Err(Error::validation(match index {
        None => format!(
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty {kind} value. Key: {}",
            attribute.name
        ),
        Some(index) => format!(
            "One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty {kind} value. IndexName: {}, IndexKey: {}",
            index.name, attribute.name
        ),
    }))
}

/// The range of a table's sort key: its bytes as they are.
fn table_range(attribute: &KeyAttribute, op: &KeyOp) -> Option<SortRange> {
    let bytes = |value: ValueRef<'_>| {
        let mut out = Vec::new();
        key::write_single(attribute.kind, value, &mut out).then_some(out)
    };
    Some(match op {
        KeyOp::Eq(v) => {
            let v = bytes(v.as_ref())?;
            SortRange { low: Bound::Included(v.clone()), high: Bound::Included(v) }
        }
        KeyOp::Lt(v) => {
            SortRange { low: Bound::Unbounded, high: Bound::Excluded(bytes(v.as_ref())?) }
        }
        KeyOp::Le(v) => {
            SortRange { low: Bound::Unbounded, high: Bound::Included(bytes(v.as_ref())?) }
        }
        KeyOp::Gt(v) => {
            SortRange { low: Bound::Excluded(bytes(v.as_ref())?), high: Bound::Unbounded }
        }
        KeyOp::Ge(v) => {
            SortRange { low: Bound::Included(bytes(v.as_ref())?), high: Bound::Unbounded }
        }
        KeyOp::Between(a, b) => SortRange {
            low: Bound::Included(bytes(a.as_ref())?),
            high: Bound::Included(bytes(b.as_ref())?),
        },
        KeyOp::BeginsWith(v) => SortRange::prefix(bytes(v.as_ref())?),
    })
}

/// The range of an index's sort key: a tuple, of which the first parts are given, and the last of
/// them perhaps as a range.
fn index_range<'c>(
    attributes: &[KeyAttribute],
    clause_of: impl Fn(&KeyAttribute) -> Option<&'c KeyClause>,
) -> Option<SortRange> {
    let mut prefix = Vec::new();
    for attribute in attributes {
        let Some(clause) = clause_of(attribute) else { break };
        let with = |value: ValueRef<'_>| {
            let mut out = prefix.clone();
            key::write_part(attribute.kind, value, &mut out).then_some(out)
        };
        let range = match &clause.op {
            KeyOp::Eq(v) => {
                prefix = with(v.as_ref())?;
                continue;
            }
            KeyOp::Lt(v) => (Bound::Included(prefix.clone()), Bound::Excluded(with(v.as_ref())?)),
            KeyOp::Le(v) => (Bound::Included(prefix.clone()), after(with(v.as_ref())?)),
            KeyOp::Gt(v) => (from_after(with(v.as_ref())?), after(prefix)),
            KeyOp::Ge(v) => (Bound::Included(with(v.as_ref())?), after(prefix)),
            KeyOp::Between(a, b) => (Bound::Included(with(a.as_ref())?), after(with(b.as_ref())?)),
            KeyOp::BeginsWith(v) => {
                let mut begin = prefix.clone();
                if !key::write_part_prefix(attribute.kind, v.as_ref(), &mut begin) {
                    return None;
                }
                return Some(SortRange::prefix(begin));
            }
        };
        return Some(SortRange { low: range.0, high: range.1 });
    }
    Some(SortRange::prefix(prefix))
}

/// The end of everything that begins with these bytes.
fn after(prefix: Vec<u8>) -> Bound<Vec<u8>> {
    match successor(prefix) {
        Some(end) => Bound::Excluded(end),
        None => Bound::Unbounded,
    }
}

/// The start of what comes after everything that begins with these bytes.
fn from_after(prefix: Vec<u8>) -> Bound<Vec<u8>> {
    match successor(prefix) {
        Some(start) => Bound::Included(start),
        // Nothing comes after: an empty range.
        None => Bound::Excluded(vec![0xFF; 64]),
    }
}

/// The least bytes that are greater than everything that begins with `prefix`.
fn successor(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.pop() {
        if last < 0xFF {
            prefix.push(last + 1);
            return Some(prefix);
        }
    }
    None
}

impl SortRange {
    pub fn all() -> Self {
        SortRange { low: Bound::Unbounded, high: Bound::Unbounded }
    }

    fn prefix(prefix: Vec<u8>) -> Self {
        let high = after(prefix.clone());
        SortRange { low: Bound::Included(prefix), high }
    }

    /// Whether a sort key lies in the range.
    pub fn contains(&self, sk: &[u8]) -> bool {
        let above = match &self.low {
            Bound::Unbounded => true,
            Bound::Included(low) => sk >= low.as_slice(),
            Bound::Excluded(low) => sk > low.as_slice(),
        };
        let below = match &self.high {
            Bound::Unbounded => true,
            Bound::Included(high) => sk <= high.as_slice(),
            Bound::Excluded(high) => sk < high.as_slice(),
        };
        above && below
    }

    /// The rest of the range after a sort key, in the direction of the query.
    #[must_use]
    pub fn after(self, sk: Vec<u8>, backward: bool) -> Self {
        if backward {
            SortRange { high: Bound::Excluded(sk), ..self }
        } else {
            SortRange { low: Bound::Excluded(sk), ..self }
        }
    }

    /// Whether no sort key can lie in the range.
    pub fn is_empty(&self) -> bool {
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (
                Bound::Included(low) | Bound::Excluded(low),
                Bound::Included(high) | Bound::Excluded(high),
            ) => low >= high,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_successor_of_a_prefix_is_above_all_that_begins_with_it() {
        assert_eq!(successor(b"a".to_vec()), Some(b"b".to_vec()));
        assert_eq!(successor(vec![1, 0xFF]), Some(vec![2]));
        assert_eq!(successor(vec![0xFF, 0xFF]), None);
        assert_eq!(successor(Vec::new()), None);
    }
}
