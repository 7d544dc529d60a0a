//! `ADD` and `DELETE` on values: numbers, sets, and lists for the legacy parameter.

use crate::request_error::{RequestError, Result};
use crate::value::Value;

/// What `ADD` makes of a value that is there.
pub(super) fn add(current: &Value, more: &Value) -> Option<Result<Value>> {
    Some(match (current, more) {
        (Value::N(current), Value::N(more)) => {
            current.checked_add(*more).map(Value::N).map_err(RequestError::from)
        }
        (Value::Ss(current), Value::Ss(more)) => Ok(Value::Ss(union(current, more))),
        (Value::Ns(current), Value::Ns(more)) => Ok(Value::Ns(union(current, more))),
        (Value::Bs(current), Value::Bs(more)) => Ok(Value::Bs(union(current, more))),
        (Value::L(current), Value::L(more)) => {
            Ok(Value::L(current.iter().chain(more).cloned().collect()))
        }
        _ => return None,
    })
}

/// What `DELETE` leaves of a set that is there.
pub(super) enum Left {
    Some(Value),
    Nothing,
}

/// What `DELETE` makes of a value that is there.
pub(super) fn delete(current: &Value, less: &Value) -> Option<Left> {
    let (value, is_empty) = match (current, less) {
        (Value::Ss(current), Value::Ss(less)) => {
            let left = difference(current, less);
            let is_empty = left.is_empty();
            (Value::Ss(left), is_empty)
        }
        (Value::Ns(current), Value::Ns(less)) => {
            let left = difference(current, less);
            let is_empty = left.is_empty();
            (Value::Ns(left), is_empty)
        }
        (Value::Bs(current), Value::Bs(less)) => {
            let left = difference(current, less);
            let is_empty = left.is_empty();
            (Value::Bs(left), is_empty)
        }
        _ => return None,
    };
    Some(if is_empty { Left::Nothing } else { Left::Some(value) })
}

/// Sorts what it looks for once, so that large sets are not compared each with each.
fn union<T: Ord + Clone>(current: &[T], more: &[T]) -> Vec<T> {
    let known = sorted(current);
    let new = more.iter().filter(|element| known.binary_search(element).is_err());
    current.iter().chain(new).cloned().collect()
}

fn difference<T: Ord + Clone>(current: &[T], less: &[T]) -> Vec<T> {
    let gone = sorted(less);
    current.iter().filter(|element| gone.binary_search(element).is_err()).cloned().collect()
}

fn sorted<T: Ord>(elements: &[T]) -> Vec<&T> {
    let mut sorted: Vec<&T> = elements.iter().collect();
    sorted.sort_unstable();
    sorted
}
