//! Updates with real names and values.

mod apply;
mod arithmetic;

pub use apply::too_large;

use std::sync::Arc;

use crate::expr::ast::{Action, Call, Operand, SetValue, Update};
use crate::expr::bind::Bindings;
use crate::expr::condition::{needs_path, wrong_count, wrong_type};
use crate::expr::function::Function;
use crate::expr::path::{DocumentPath, check_apart};
use crate::expr::projection::BoundProjection;
use crate::value::{ItemBytes, ItemRef, Value};

/// What to change in an item. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct BoundUpdate {
    pub(super) changes: Arc<[Change]>,
    /// The targets as a projection.
    touched: BoundProjection,
    /// What to say when `ADD` or `DELETE` meets a value of another type.
    mismatch: &'static str,
}

/// The message about a value in the item that an operator or function cannot take.
const WRONG_OPERAND: &str = "An operand in the update expression has an incorrect data type";

#[derive(Debug)]
pub(super) struct Change {
    pub(super) target: DocumentPath,
    pub(super) kind: ChangeKind,
}

#[derive(Debug)]
pub(super) enum ChangeKind {
    Set(Source),
    Remove,
    /// Adds a number to a number, or elements to a set or to a list.
    Add(Arc<Value>),
    /// Takes elements out of a set.
    Delete(Arc<Value>),
}

/// Where a new value comes from.
#[derive(Debug)]
pub(super) enum Source {
    Value(Arc<Value>),
    Path(DocumentPath),
    IfNotExists(DocumentPath, Box<Source>),
    ListAppend(Box<[Source; 2]>),
    Sum(Box<[Source; 2]>),
    Difference(Box<[Source; 2]>),
}

impl BoundUpdate {
    pub(super) fn of(changes: Vec<Change>, mismatch: &'static str) -> Self {
        let targets = changes.iter().map(|change| change.target.clone()).collect();
        let touched = BoundProjection::of_paths(targets);
        BoundUpdate { changes: changes.into(), touched, mismatch }
    }

    pub(super) fn bind(tree: &Update, bindings: &mut Bindings<'_>) -> Result<Self, String> {
        // All targets, then all values, both from the last to the first, as DynamoDB does: it
        // shows in which of several errors it tells.
        let mut targets = Vec::with_capacity(tree.actions.len());
        for action in tree.actions.iter().rev() {
            let target = bindings.path(action.target())?;
            check_apart(&target, &targets)?;
            targets.push(target);
        }
        let mut changes = Vec::with_capacity(targets.len());
        for (action, target) in tree.actions.iter().rev().zip(targets) {
            changes.push(Change { target, kind: change_kind(action, bindings)? });
        }
        changes.reverse();
        Ok(BoundUpdate::of(changes, WRONG_OPERAND))
    }

    /// What it changes, in the order of the text.
    pub fn paths(&self) -> impl Iterator<Item = &DocumentPath> {
        self.changes.iter().map(|change| &change.target)
    }

    /// The names of the attributes that it changes; one may come several times.
    pub fn top_level_names(&self) -> impl Iterator<Item = &str> {
        self.paths().map(DocumentPath::attribute_name)
    }

    /// Whether all it does is to take something away; then it makes no item where there is none.
    pub fn only_removes(&self) -> bool {
        let removes =
            |change: &Change| matches!(change.kind, ChangeKind::Remove | ChangeKind::Delete(_));
        !self.changes.is_empty() && self.changes.iter().all(removes)
    }

    /// Of the item before the update, what the update names: `UPDATED_OLD`.
    pub fn touched_old(&self, before: ItemRef<'_>) -> ItemBytes {
        self.touched.apply(before)
    }

    /// Of the item after the update, what the update names: `UPDATED_NEW`.
    pub fn touched_new(&self, after: ItemRef<'_>) -> ItemBytes {
        self.touched.apply(after)
    }
}

fn change_kind(action: &Action, bindings: &mut Bindings<'_>) -> Result<ChangeKind, String> {
    Ok(match action {
        Action::Set(_, SetValue::Operand(operand)) => ChangeKind::Set(source(operand, bindings)?),
        Action::Set(_, SetValue::Sum(left, right)) => {
            ChangeKind::Set(Source::Sum(numbers("+", [left, right], bindings)?))
        }
        Action::Set(_, SetValue::Difference(left, right)) => {
            ChangeKind::Set(Source::Difference(numbers("-", [left, right], bindings)?))
        }
        Action::Remove(_) => ChangeKind::Remove,
        Action::Add(_, key) => {
            let value = bindings.value(key)?;
            match value {
                Value::N(_) | Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => {
                    ChangeKind::Add(bindings.tree(key)?)
                }
                _ => return Err(wrong_action_type("ADD", value)),
            }
        }
        Action::Delete(_, key) => {
            let value = bindings.value(key)?;
            match value {
                Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => {
                    ChangeKind::Delete(bindings.tree(key)?)
                }
                _ => return Err(wrong_action_type("DELETE", value)),
            }
        }
    })
}

fn source(operand: &Operand, bindings: &mut Bindings<'_>) -> Result<Source, String> {
    match operand {
        Operand::Path(path) => Ok(Source::Path(bindings.path(path)?)),
        Operand::Value(key) => Ok(Source::Value(bindings.tree(key)?)),
        Operand::Call(call) => called(call, bindings),
    }
}

fn called(call: &Call, bindings: &mut Bindings<'_>) -> Result<Source, String> {
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for argument in &call.arguments {
        arguments.push(source(argument, bindings)?);
    }
    let Ok([first, second]) = <[Source; 2]>::try_from(arguments) else {
        return Err(wrong_count(call));
    };
    match (call.function, first) {
        (Function::IfNotExists, Source::Path(path)) => {
            Ok(Source::IfNotExists(path, Box::new(second)))
        }
        (Function::IfNotExists, _) => Err(needs_path(call.function)),
        (_, first) => {
            let lists = [first, second];
            check_types(call.function.name(), &lists, |value| matches!(value, Value::L(_)))?;
            Ok(Source::ListAppend(Box::new(lists)))
        }
    }
}

fn numbers(
    operator: &str,
    [left, right]: [&Operand; 2],
    bindings: &mut Bindings<'_>,
) -> Result<Box<[Source; 2]>, String> {
    let numbers = [source(left, bindings)?, source(right, bindings)?];
    check_types(operator, &numbers, |value| matches!(value, Value::N(_)))?;
    Ok(Box::new(numbers))
}

fn check_types(
    operator: &str,
    sources: &[Source],
    is_allowed: fn(&Value) -> bool,
) -> Result<(), String> {
    let wrong = sources.iter().find_map(|source| match source {
        Source::Value(value) if !is_allowed(value) => Some(value.type_name()),
        _ => None,
    });
    wrong.map_or(Ok(()), |type_name| Err(wrong_type(operator, type_name)))
}

fn wrong_action_type(action: &str, value: &Value) -> String {
    let type_name = match value {
        Value::S(_) => "STRING",
        Value::N(_) => "NUMBER",
        Value::B(_) => "BINARY",
        Value::Bool(_) => "BOOLEAN",
        Value::Null => "NULL",
        Value::M(_) => "MAP",
        Value::L(_) => "LIST",
        Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => value.type_name(),
    };
    format!(
        "Incorrect operand type for operator or function; operator: {action}, operand type: \
         {type_name}"
    )
}
