//! Finds the key conditions in a `WHERE` clause, for a table or an index.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::expr::{KeyClause, KeyOp};
use crate::partiql::ast::{BinaryOp, Expr, ExprKind, Path};
use crate::partiql::values::constant;
use crate::table::{KeyAttribute, KeySchema};
use crate::value::{EncodedValue, Item, Value};

/// How many partitions one `SELECT` may read.
const PARTITIONS_MAX: usize = 50;

/// A `WHERE` clause that names one item, and what else it says.
#[derive(Debug)]
pub(super) struct OneItem<'e> {
    pub key: Item,
    /// The conditions besides the key.
    pub rest: Vec<&'e Expr>,
}

/// How a `WHERE` clause falls short of naming one item.
#[derive(Debug)]
pub(super) enum NotOneItem {
    /// A key attribute has no equality.
    Incomplete,
    /// A key attribute has two equalities.
    Twice(String),
    /// A key attribute is compared with what it cannot be.
    Mismatch(Error),
}

impl From<NotOneItem> for Error {
    fn from(fault: NotOneItem) -> Error {
        match fault {
            NotOneItem::Incomplete => Error::validation(
                "Where clause does not contain a mandatory equality on all key attributes",
            ),
            NotOneItem::Twice(name) => Error::validation(format!(
                "Multiple conditions on same key {name}. Only single item Update/Insert/Delete \
                 are supported"
            )),
            NotOneItem::Mismatch(error) => error,
        }
    }
}

/// Finds the key of the one item that a clause is about.
pub(super) fn one_item<'e>(
    condition: Option<&'e Expr>,
    schema: &KeySchema,
    parameters: &[Value],
) -> Result<OneItem<'e>, NotOneItem> {
    let mut found = OneItem { key: Item::new(), rest: Vec::new() };
    for part in conjuncts(condition) {
        let comparison = comparison(part, parameters).map_err(NotOneItem::Mismatch)?;
        let equality = comparison.filter(|comparison| {
            matches!(comparison.op, CompareOp::Eq(_)) && schema.contains(&comparison.path.root)
        });
        let Some(Comparison { path, op: CompareOp::Eq(value) }) = equality else {
            found.rest.push(part);
            continue;
        };
        if !path.steps.is_empty() {
            return Err(NotOneItem::Mismatch(nested_key(&path.root)));
        }
        match found.key.get(&path.root) {
            Some(known) if *known == value => {}
            Some(_) => return Err(NotOneItem::Twice(path.root.clone())),
            None => {
                found.key.insert(path.root.clone(), value);
            }
        }
    }
    if found.key.len() < schema.len() {
        return Err(NotOneItem::Incomplete);
    }
    for attribute in schema.attributes() {
        check_type(attribute, found.key.get(&attribute.name)).map_err(NotOneItem::Mismatch)?;
    }
    Ok(found)
}

/// The part of a table or index that a `SELECT` reads.
#[derive(Debug)]
pub(super) struct Reads {
    /// The partitions in order; `None` for all that there are.
    pub partitions: Option<Vec<Value>>,
    /// Which part of each partition.
    pub range: Option<KeyClause>,
    /// Whether the clause has, for itself, an equality or `IN` on the partition key.
    pub keyed: bool,
    /// Whether everything that is read meets the clause, so that nothing is left to check.
    pub exact: bool,
}

/// Finds the smallest part of a table or index that holds everything a clause asks for.
pub(super) fn reads(
    condition: Option<&Expr>,
    schema: &KeySchema,
    parameters: &[Value],
) -> Result<Reads> {
    let parts = conjuncts(condition);
    let mut reads = Reads { partitions: None, range: None, keyed: false, exact: parts.is_empty() };
    let Some(hash) = schema.hash.first() else { return Ok(reads) };
    let mut used = None;
    for (n, part) in parts.iter().enumerate() {
        if let Some(values) = values_of(part, &hash.name, parameters)? {
            reads.keyed |= !matches!(part.kind, ExprKind::Or(_));
            // An equality is the best there is; what else is said is checked on each item.
            let better = reads.partitions.as_ref().is_none_or(|known| values.len() < known.len());
            if better {
                reads.partitions = Some(values);
                used = Some(n);
            }
        }
    }
    let Some(partitions) = &mut reads.partitions else { return Ok(reads) };
    for value in partitions.iter() {
        check_type(hash, Some(value))?;
    }
    partitions.sort_by(order);
    partitions.dedup();
    if partitions.len() > PARTITIONS_MAX {
        return Err(Error::validation("Too many decomposed read operations for a given query."));
    }
    let mut left: Vec<&Expr> = parts;
    if let Some(used) = used {
        let or = matches!(left[used].kind, ExprKind::Or(_));
        // A branch of an OR may say more than the partition.
        if !or {
            left.remove(used);
        }
    }
    if let Some(range) = schema.range.first() {
        reads.range = sort_range(&mut left, range, parameters)?;
    }
    reads.exact = left.is_empty();
    Ok(reads)
}

/// The values that an attribute must have one of for a condition to hold, if it says so.
fn values_of(expr: &Expr, name: &str, parameters: &[Value]) -> Result<Option<Vec<Value>>> {
    match &expr.kind {
        ExprKind::Or(branches) => {
            let mut values = Vec::new();
            for branch in branches {
                match values_of(branch, name, parameters)? {
                    Some(some) => values.extend(some),
                    None => return Ok(None),
                }
            }
            Ok(Some(values))
        }
        ExprKind::And(parts) => {
            for part in parts {
                if let Some(values) = values_of(part, name, parameters)? {
                    return Ok(Some(values));
                }
            }
            Ok(None)
        }
        ExprKind::In(value, options) if is_attribute(value, name) => {
            let mut values = Vec::with_capacity(options.len());
            for option in options {
                match constant(option, parameters)? {
                    Some(value) => values.push(value),
                    None => return Ok(None),
                }
            }
            Ok(Some(values))
        }
        _ => match comparison(expr, parameters)? {
            Some(Comparison { path, op: CompareOp::Eq(value) }) if path.root == name => {
                if !path.steps.is_empty() {
                    return Err(nested_key(name));
                }
                Ok(Some(vec![value]))
            }
            _ => Ok(None),
        },
    }
}

/// The range that conditions on the sort key leave; those that it says fully are taken out.
fn sort_range(
    left: &mut Vec<&Expr>,
    attribute: &KeyAttribute,
    parameters: &[Value],
) -> Result<Option<KeyClause>> {
    let (mut low, mut high) = (None, None);
    let mut other = None;
    for (n, part) in left.iter().enumerate() {
        let Some(comparison) = comparison(part, parameters)? else { continue };
        if comparison.path.root != attribute.name || !comparison.path.steps.is_empty() {
            continue;
        }
        for value in comparison.op.values() {
            check_type(attribute, Some(value))?;
        }
        match comparison.op {
            CompareOp::Eq(value) => {
                other = Some((n, KeyOp::Eq(EncodedValue::new(&value))));
                break;
            }
            CompareOp::Lt(value) => high = high.or(Some((n, value, false))),
            CompareOp::Le(value) => high = high.or(Some((n, value, true))),
            CompareOp::Gt(value) => low = low.or(Some((n, value, false))),
            CompareOp::Ge(value) => low = low.or(Some((n, value, true))),
            CompareOp::Between(a, b) => {
                let op = KeyOp::Between(EncodedValue::new(&a), EncodedValue::new(&b));
                other = other.or(Some((n, op)));
            }
            CompareOp::BeginsWith(prefix) => {
                other = other.or(Some((n, KeyOp::BeginsWith(EncodedValue::new(&prefix)))));
            }
        }
    }
    let clause = |op| Some(KeyClause { name: attribute.name.clone(), op });
    let encoded = EncodedValue::new;
    if let Some((n, op)) = other {
        left.remove(n);
        return Ok(clause(op));
    }
    Ok(match (low, high) {
        // Whether the bounds themselves belong is checked on the items.
        (Some((_, low, _)), Some((_, high, _))) if order(&low, &high) != Ordering::Greater => {
            clause(KeyOp::Between(encoded(&low), encoded(&high)))
        }
        (Some((n, low, included)), _) => {
            left.remove(n);
            clause(if included { KeyOp::Ge(encoded(&low)) } else { KeyOp::Gt(encoded(&low)) })
        }
        (None, Some((n, high, included))) => {
            left.remove(n);
            clause(if included { KeyOp::Le(encoded(&high)) } else { KeyOp::Lt(encoded(&high)) })
        }
        (None, None) => None,
    })
}

/// A comparison of an attribute with a value.
struct Comparison<'e> {
    path: &'e Path,
    op: CompareOp,
}

enum CompareOp {
    Eq(Value),
    Lt(Value),
    Le(Value),
    Gt(Value),
    Ge(Value),
    Between(Value, Value),
    BeginsWith(Value),
}

impl CompareOp {
    fn values(&self) -> impl Iterator<Item = &Value> {
        let (first, second) = match self {
            CompareOp::Eq(value)
            | CompareOp::Lt(value)
            | CompareOp::Le(value)
            | CompareOp::Gt(value)
            | CompareOp::Ge(value)
            | CompareOp::BeginsWith(value) => (value, None),
            CompareOp::Between(low, high) => (low, Some(high)),
        };
        std::iter::once(first).chain(second)
    }
}

fn comparison<'e>(expr: &'e Expr, parameters: &[Value]) -> Result<Option<Comparison<'e>>> {
    let path = |expr: &'e Expr| match &expr.kind {
        ExprKind::Path(path) => Some(path),
        _ => None,
    };
    let found = match &expr.kind {
        ExprKind::Binary(op, left, right) if op.compares() => {
            let (path, value, op) = match (path(left), path(right)) {
                (Some(path), None) => (path, right, *op),
                (None, Some(path)) => (path, left, turned(*op)),
                _ => return Ok(None),
            };
            let op = match op {
                BinaryOp::Eq => CompareOp::Eq,
                BinaryOp::Lt => CompareOp::Lt,
                BinaryOp::Le => CompareOp::Le,
                BinaryOp::Gt => CompareOp::Gt,
                BinaryOp::Ge => CompareOp::Ge,
                _ => return Ok(None),
            };
            constant(value, parameters)?.map(|value| Comparison { path, op: op(value) })
        }
        ExprKind::Between(value, low, high) => {
            let Some(path) = path(value) else { return Ok(None) };
            let low = constant(low, parameters)?;
            let high = constant(high, parameters)?;
            low.zip(high).map(|(low, high)| Comparison { path, op: CompareOp::Between(low, high) })
        }
        ExprKind::Call(name, arguments) if name == "begins_with" => {
            let [value, prefix] = arguments.as_slice() else { return Ok(None) };
            let Some(path) = path(value) else { return Ok(None) };
            constant(prefix, parameters)?
                .map(|prefix| Comparison { path, op: CompareOp::BeginsWith(prefix) })
        }
        _ => None,
    };
    Ok(found)
}

/// The operator with its sides exchanged.
fn turned(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        other => other,
    }
}

/// The conditions that must all hold.
fn conjuncts(condition: Option<&Expr>) -> Vec<&Expr> {
    fn collect<'e>(expr: &'e Expr, parts: &mut Vec<&'e Expr>) {
        match &expr.kind {
            ExprKind::And(inner) => inner.iter().for_each(|part| collect(part, parts)),
            _ => parts.push(expr),
        }
    }
    let mut parts = Vec::new();
    if let Some(condition) = condition {
        collect(condition, &mut parts);
    }
    parts
}

fn is_attribute(expr: &Expr, name: &str) -> bool {
    matches!(&expr.kind, ExprKind::Path(path) if path.root == name && path.steps.is_empty())
}

pub(super) fn check_type(attribute: &KeyAttribute, value: Option<&Value>) -> Result<()> {
    if value.is_some_and(|value| value.type_name() == attribute.kind.name()) {
        return Ok(());
    }
    Err(Error::validation(format!(
        "Key attribute's data type should match its data type in table's schema: Key {}",
        attribute.name
    )))
}

fn nested_key(name: &str) -> Error {
    Error::validation(format!(
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not \
         allowed: Key {name}"
    ))
}

/// The order of key values; all that are compared have the same type.
pub(super) fn order(a: &Value, b: &Value) -> Ordering {
    match (a.scalar(), b.scalar()) {
        (Some(a), Some(b)) => a.compare(b).unwrap_or(Ordering::Equal),
        _ => Ordering::Equal,
    }
}
