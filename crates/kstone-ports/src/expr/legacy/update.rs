//! `AttributeUpdates`.

use super::{AttributeAction, AttributeUpdate, LEGACY_BYTES_MAX};
use crate::expr::path::DocumentPath;
use crate::expr::update::{BoundUpdate, Change, ChangeKind, Source, too_large};
use crate::request_error::{RequestError, Result};
use crate::value::{Value, check_name};

/// The update that `AttributeUpdates` stands for.
pub fn attribute_updates(updates: Vec<(String, AttributeUpdate)>) -> Result<BoundUpdate> {
    let mut changes = Vec::with_capacity(updates.len());
    let mut bytes = 0;
    for (name, update) in updates {
        check_name(&name)?;
        if let Some(value) = &update.value {
            value.check_sets()?;
        }
        bytes += name.len() + update.value.as_ref().map_or(0, Value::size);
        if bytes > LEGACY_BYTES_MAX {
            return Err(too_large());
        }
        let kind = update.into_change()?;
        changes.push(Change { target: DocumentPath::attribute(name), kind });
    }
    Ok(BoundUpdate::of(changes, "Type mismatch for attribute to update"))
}

impl AttributeUpdate {
    fn into_change(self) -> Result<ChangeKind> {
        match (self.action, self.value) {
            (AttributeAction::Put, Some(value)) => Ok(ChangeKind::Set(Source::Value(value.into()))),
            (AttributeAction::Add, Some(value)) => match value {
                Value::N(_) | Value::Ss(_) | Value::Ns(_) | Value::Bs(_) | Value::L(_) => {
                    Ok(ChangeKind::Add(value.into()))
                }
                _ => Err(invalid("ADD action is not supported for the type ", value.type_name())),
            },
            (AttributeAction::Delete, Some(value)) => match value {
                Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => Ok(ChangeKind::Delete(value.into())),
                _ => Err(invalid(
                    "DELETE action with value is not supported for the type ",
                    value.type_name(),
                )),
            },
            (AttributeAction::Delete, None) => Ok(ChangeKind::Remove),
            (AttributeAction::Put | AttributeAction::Add, None) => Err(invalid(
                "Only DELETE action is allowed when no attribute value is specified",
                "",
            )),
        }
    }
}

fn invalid(problem: &str, type_name: &str) -> RequestError {
    RequestError::Invalid(format!(
        "One or more parameter values were invalid: {problem}{type_name}"
    ))
}
