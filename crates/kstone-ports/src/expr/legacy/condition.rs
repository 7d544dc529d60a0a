//! `Expected`, `QueryFilter`, `ScanFilter` and `KeyConditions`.

use super::{
    COMPARISONS_MAX, ComparisonOperator, ConditionalOperator, Expected, LEGACY_BYTES_MAX,
    LegacyCondition,
};
use crate::expr::ast::Comparator;
use crate::expr::condition::{BoundCondition, Predicate, Term, is_greater};
use crate::expr::key_condition::{BoundKeyCondition, KeyClause, KeyOp};
use crate::expr::path::DocumentPath;
use crate::request_error::{RequestError, Result};
use crate::value::{EncodedValue, Value, check_name};

/// The condition that `Expected` stands for.
pub fn expected(
    attributes: Vec<(String, Expected)>,
    operator: ConditionalOperator,
) -> Result<BoundCondition> {
    let mut conditions = Vec::with_capacity(attributes.len());
    for (name, expected) in attributes {
        let condition = expected.into_condition(&name)?;
        conditions.push((name, condition));
    }
    filter(conditions, operator)
}

/// The condition that `QueryFilter` or `ScanFilter` stands for.
pub fn filter(
    conditions: Vec<(String, LegacyCondition)>,
    operator: ConditionalOperator,
) -> Result<BoundCondition> {
    check_amount(&conditions)?;
    let mut predicates = Vec::with_capacity(conditions.len());
    for (name, condition) in conditions {
        condition.check()?;
        predicates.push(condition.into_predicate(name)?);
    }
    // No condition at all holds, whichever operator would have joined them.
    let is_or = operator == ConditionalOperator::Or && !predicates.is_empty();
    Ok(BoundCondition::of(match is_or {
        true => Predicate::Or(predicates),
        false => Predicate::And(predicates),
    }))
}

/// The key condition that `KeyConditions` stands for.
pub fn key_conditions(conditions: Vec<(String, LegacyCondition)>) -> Result<BoundKeyCondition> {
    check_amount(&conditions)?;
    for (_, condition) in &conditions {
        condition.check()?;
    }
    let mut clauses = Vec::with_capacity(conditions.len());
    for (name, condition) in conditions {
        clauses.push(KeyClause { name, op: condition.key_op()? });
    }
    Ok(BoundKeyCondition { clauses })
}

/// Refuses more than can be asked of item after item.
fn check_amount(conditions: &[(String, LegacyCondition)]) -> Result<()> {
    let comparisons = conditions.iter().map(|(_, condition)| condition.values.len().max(1));
    let comparisons: usize = comparisons.sum();
    if comparisons > COMPARISONS_MAX {
        return Err(invalid(format!(
            "Number of comparisons exceeds the limit of {COMPARISONS_MAX}: {comparisons}"
        )));
    }
    let mut bytes = 0;
    for (name, condition) in conditions {
        check_name(name)?;
        bytes += name.len() + condition.values.iter().map(Value::size).sum::<usize>();
    }
    match bytes > LEGACY_BYTES_MAX {
        true => Err(invalid("Size of conditions exceeds the limit of 2 MB".to_owned())),
        false => Ok(()),
    }
}

impl Expected {
    fn into_condition(self, name: &str) -> Result<LegacyCondition> {
        let Expected { value, exists, operator, values } = self;
        let refuse = |problem: String| Err(invalid(format!("{problem} for Attribute: {name}")));
        if value.is_some() && values.is_some() {
            return refuse("Value and AttributeValueList cannot be used together".to_owned());
        }
        if let Some(operator) = operator {
            if exists.is_some() {
                return refuse("Exists and ComparisonOperator cannot be used together".to_owned());
            }
            let needs_values =
                !matches!(operator, ComparisonOperator::Null | ComparisonOperator::NotNull);
            if needs_values && value.is_none() && values.is_none() {
                return refuse(format!(
                    "Value or AttributeValueList must be used with ComparisonOperator: {}",
                    operator.as_str()
                ));
            }
            let values = values.unwrap_or_else(|| value.into_iter().collect());
            return Ok(LegacyCondition { operator, values });
        }
        if values.is_some() {
            return refuse(
                "AttributeValueList can only be used with a ComparisonOperator".to_owned(),
            );
        }
        match (exists, value) {
            (Some(false), Some(_)) => {
                refuse("Value cannot be used when Exists is false".to_owned())
            }
            (Some(false), None) => {
                Ok(LegacyCondition { operator: ComparisonOperator::Null, values: Vec::new() })
            }
            (_, Some(value)) => {
                Ok(LegacyCondition { operator: ComparisonOperator::Eq, values: vec![value] })
            }
            (Some(true), None) => refuse("Value must be provided when Exists is true".to_owned()),
            (None, None) => refuse("Value must be provided when Exists is null".to_owned()),
        }
    }
}

impl LegacyCondition {
    /// The number, the types and the order of the values.
    fn check(&self) -> Result<()> {
        let LegacyCondition { operator, values } = self;
        let is_right_count = match operator {
            ComparisonOperator::Null | ComparisonOperator::NotNull => values.is_empty(),
            ComparisonOperator::In => !values.is_empty(),
            ComparisonOperator::Between => values.len() == 2,
            _ => values.len() == 1,
        };
        values.iter().try_for_each(Value::check_sets)?;
        let name = operator.as_str();
        if !is_right_count {
            return Err(invalid(format!(
                "Invalid number of argument(s) for the {name} ComparisonOperator"
            )));
        }
        if values.windows(2).any(|pair| pair[0].type_name() != pair[1].type_name()) {
            return Err(invalid(
                "AttributeValues inside AttributeValueList must be of same type".to_owned(),
            ));
        }
        if let Some(value) = values.iter().find(|value| !operator.takes(value)) {
            return Err(invalid(format!(
                "ComparisonOperator {name} is not valid for {} AttributeValue type",
                value.type_name()
            )));
        }
        match (operator, values.as_slice()) {
            (ComparisonOperator::Between, [low, high]) if is_greater(low, high) => {
                Err(RequestError::invalid(
                    "The BETWEEN condition was provided a range where the lower bound is greater \
                     than the upper bound",
                ))
            }
            _ => Ok(()),
        }
    }

    /// The values have been checked.
    fn into_predicate(self, name: String) -> Result<Predicate> {
        let path = DocumentPath::attribute(name);
        let attribute = || Term::Path(path.clone());
        let mut values = self.values.iter().map(|value| Term::Value(EncodedValue::new(value)));
        let mut next = || values.next().ok_or_else(|| self.wrong_count());
        let comparator = match self.operator {
            ComparisonOperator::Eq => Comparator::Equal,
            ComparisonOperator::Ne => Comparator::NotEqual,
            ComparisonOperator::Lt => Comparator::Less,
            ComparisonOperator::Le => Comparator::LessOrEqual,
            ComparisonOperator::Gt => Comparator::Greater,
            ComparisonOperator::Ge => Comparator::GreaterOrEqual,
            ComparisonOperator::In => return Ok(Predicate::In(attribute(), values.collect())),
            ComparisonOperator::Between => {
                return Ok(Predicate::Between(attribute(), next()?, next()?));
            }
            ComparisonOperator::Null => return Ok(Predicate::NotExists(path)),
            ComparisonOperator::NotNull => return Ok(Predicate::Exists(path)),
            ComparisonOperator::BeginsWith => {
                return Ok(Predicate::BeginsWith(attribute(), next()?));
            }
            ComparisonOperator::Contains => return Ok(Predicate::Contains(attribute(), next()?)),
            ComparisonOperator::NotContains => {
                // Of what is not there DynamoDB says neither that it contains nor that it does not.
                let contains = Predicate::Contains(attribute(), next()?);
                let not = Predicate::Not(Box::new(contains));
                return Ok(Predicate::And(vec![Predicate::Exists(path), not]));
            }
        };
        Ok(Predicate::Compare(comparator, attribute(), next()?))
    }

    /// The values have been checked.
    fn key_op(&self) -> Result<KeyOp> {
        let mut values = self.values.iter().map(EncodedValue::new);
        let mut next = || values.next().ok_or_else(|| self.wrong_count());
        Ok(match self.operator {
            ComparisonOperator::Eq => KeyOp::Eq(next()?),
            ComparisonOperator::Lt => KeyOp::Lt(next()?),
            ComparisonOperator::Le => KeyOp::Le(next()?),
            ComparisonOperator::Gt => KeyOp::Gt(next()?),
            ComparisonOperator::Ge => KeyOp::Ge(next()?),
            ComparisonOperator::Between => KeyOp::Between(next()?, next()?),
            ComparisonOperator::BeginsWith => KeyOp::BeginsWith(next()?),
            ComparisonOperator::Ne
            | ComparisonOperator::In
            | ComparisonOperator::Null
            | ComparisonOperator::NotNull
            | ComparisonOperator::Contains
            | ComparisonOperator::NotContains => {
                return Err(RequestError::invalid(
                    "Attempted conditional constraint is not an indexable operation",
                ));
            }
        })
    }

    fn wrong_count(&self) -> RequestError {
        invalid(format!(
            "Invalid number of argument(s) for the {} ComparisonOperator",
            self.operator.as_str()
        ))
    }
}

impl ComparisonOperator {
    /// Whether it can compare with such a value.
    fn takes(self, value: &Value) -> bool {
        match self {
            ComparisonOperator::Eq
            | ComparisonOperator::Ne
            | ComparisonOperator::Null
            | ComparisonOperator::NotNull => true,
            ComparisonOperator::Contains | ComparisonOperator::NotContains => matches!(
                value,
                Value::S(_) | Value::N(_) | Value::B(_) | Value::Bool(_) | Value::Null
            ),
            ComparisonOperator::BeginsWith => matches!(value, Value::S(_) | Value::B(_)),
            ComparisonOperator::In
            | ComparisonOperator::Le
            | ComparisonOperator::Lt
            | ComparisonOperator::Ge
            | ComparisonOperator::Gt
            | ComparisonOperator::Between => {
                matches!(value, Value::S(_) | Value::N(_) | Value::B(_))
            }
        }
    }
}

fn invalid(problem: String) -> RequestError {
    RequestError::Invalid(format!("One or more parameter values were invalid: {problem}"))
}
