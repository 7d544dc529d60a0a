//! Key conditions: a comparison for each key attribute of a query.

use crate::expr::ast::{Comparator, Condition, Operand};
use crate::expr::bind::Bindings;
use crate::expr::function::Function;
use crate::value::EncodedValue;

/// Which items a query looks at, by their key attributes.
#[derive(Debug, Clone)]
pub struct BoundKeyCondition {
    /// One for each attribute named, in the order of the text.
    pub clauses: Vec<KeyClause>,
}

/// What a query wants of one key attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyClause {
    /// The attribute's name.
    pub name: String,
    /// What it must be.
    pub op: KeyOp,
}

/// What a key attribute must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOp {
    /// `=`
    Eq(EncodedValue),
    /// `<`
    Lt(EncodedValue),
    /// `<=`
    Le(EncodedValue),
    /// `>`
    Gt(EncodedValue),
    /// `>=`
    Ge(EncodedValue),
    /// From the first to the second, both included.
    Between(EncodedValue, EncodedValue),
    /// A string or byte string that begins with this one.
    BeginsWith(EncodedValue),
}

impl BoundKeyCondition {
    /// `tree` has been bound as a condition without error.
    pub(super) fn bind(tree: &Condition, bindings: &mut Bindings<'_>) -> Result<Self, String> {
        let mut clauses = Vec::new();
        collect(tree, bindings, &mut clauses)?;
        Ok(BoundKeyCondition { clauses })
    }
}

impl KeyOp {
    /// The values that it compares with.
    pub fn values(&self) -> impl Iterator<Item = &EncodedValue> {
        let (first, second) = match self {
            KeyOp::Eq(value)
            | KeyOp::Lt(value)
            | KeyOp::Le(value)
            | KeyOp::Gt(value)
            | KeyOp::Ge(value)
            | KeyOp::BeginsWith(value) => (value, None),
            KeyOp::Between(low, high) => (low, Some(high)),
        };
        std::iter::once(first).chain(second)
    }
}

fn collect(
    tree: &Condition,
    bindings: &mut Bindings<'_>,
    clauses: &mut Vec<KeyClause>,
) -> Result<(), String> {
    let clause = match tree {
        Condition::And(parts) => {
            return parts.iter().try_for_each(|part| collect(part, bindings, clauses));
        }
        Condition::Or(_) => return Err(wrong_operator("OR")),
        Condition::Not(_) => return Err(wrong_operator("NOT")),
        Condition::In(..) => return Err(wrong_operator("IN")),
        Condition::Compare(Comparator::NotEqual, ..) => return Err(wrong_operator("<>")),
        Condition::Call(call) => match (call.function, call.arguments.as_slice()) {
            (Function::BeginsWith, [whole, prefix]) => {
                let operands = [whole, prefix];
                let name = first_is_attribute("begins_with", operands, bindings)?;
                KeyClause { name, op: KeyOp::BeginsWith(value(prefix, bindings)?) }
            }
            (function, _) => return Err(wrong_operator(function.name())),
        },
        Condition::Between(attribute, low, high) => {
            let name = first_is_attribute("BETWEEN", [attribute, low, high], bindings)?;
            let op = KeyOp::Between(value(low, bindings)?, value(high, bindings)?);
            KeyClause { name, op }
        }
        Condition::Compare(comparator, left, right) => {
            let name = attribute([left, right], bindings)?;
            // The attribute may be on either side: `:v < a` is `a > :v`.
            let is_turned = matches!(right, Operand::Path(_));
            let value = value(if is_turned { left } else { right }, bindings)?;
            let op = match (comparator, is_turned) {
                (Comparator::Equal | Comparator::NotEqual, _) => KeyOp::Eq(value),
                (Comparator::Less, false) | (Comparator::Greater, true) => KeyOp::Lt(value),
                (Comparator::Greater, false) | (Comparator::Less, true) => KeyOp::Gt(value),
                (Comparator::LessOrEqual, false) | (Comparator::GreaterOrEqual, true) => {
                    KeyOp::Le(value)
                }
                (Comparator::GreaterOrEqual, false) | (Comparator::LessOrEqual, true) => {
                    KeyOp::Ge(value)
                }
            };
            KeyClause { name, op }
        }
    };
    if clauses.iter().any(|other| other.name == clause.name) {
        return Err("KeyConditionExpressions must only contain one condition per key".to_owned());
    }
    clauses.push(clause);
    Ok(())
}

fn first_is_attribute<const N: usize>(
    operator: &str,
    operands: [&Operand; N],
    bindings: &mut Bindings<'_>,
) -> Result<String, String> {
    match operands.first() {
        Some(Operand::Path(_)) => attribute(operands, bindings),
        _ => Err(format!(
            "Invalid condition in KeyConditionExpression: {operator} operator must have the key \
             attribute as its first operand"
        )),
    }
}

/// The name of the one attribute among the operands.
fn attribute<const N: usize>(
    operands: [&Operand; N],
    bindings: &mut Bindings<'_>,
) -> Result<String, String> {
    let mut found = None;
    for operand in operands {
        match operand {
            Operand::Value(_) => {}
            Operand::Call(_) => {
                return Err("KeyConditionExpressions cannot contain nested operations".to_owned());
            }
            Operand::Path(_) if found.is_some() => {
                return Err(
                    "Invalid condition in KeyConditionExpression: Multiple attribute names \
                            used in one condition"
                        .to_owned(),
                );
            }
            Operand::Path(path) => {
                let path = bindings.path(path)?;
                if path.is_nested() {
                    return Err("KeyConditionExpressions cannot have conditions on nested \
                                attributes"
                        .to_owned());
                }
                found = Some(path.attribute_name().to_owned());
            }
        }
    }
    found.ok_or_else(|| {
        "Invalid condition in KeyConditionExpression: No key attribute specified".to_owned()
    })
}

fn value(operand: &Operand, bindings: &mut Bindings<'_>) -> Result<EncodedValue, String> {
    match operand {
        Operand::Value(key) => bindings.encoded(key),
        // `attribute` has refused these.
        Operand::Path(_) | Operand::Call(_) => {
            Err("KeyConditionExpressions cannot contain nested operations".to_owned())
        }
    }
}

fn wrong_operator(operator: &str) -> String {
    format!("Invalid operator used in KeyConditionExpression: {operator}")
}
