//! Sets: their constructors, with DynamoDB's checks, and equality without order.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;

use crate::request_error::{RequestError, Result};
use crate::value::{Item, Number, Value};

const INVALID: &str = "One or more parameter values were invalid: ";

impl Value {
    /// Refuses sets that are empty or hold a value twice, and names that are too long, however deep
    /// they are inside: the variants of sets can be made without the constructors that check.
    pub fn check_sets(&self) -> Result<()> {
        match self {
            Value::Ss(set) => check_strings(set),
            Value::Ns(set) => check_numbers(set),
            Value::Bs(set) => check_binaries(set),
            Value::L(list) => list.iter().try_for_each(Value::check_sets),
            Value::M(map) => map.iter().try_for_each(|(name, value)| {
                check_name(name)?;
                value.check_sets()
            }),
            Value::S(_) | Value::N(_) | Value::B(_) | Value::Bool(_) | Value::Null => Ok(()),
        }
    }

    /// A set of strings: at least one, and none twice.
    pub fn string_set(values: Vec<String>) -> Result<Value> {
        check_strings(&values)?;
        Ok(Value::Ss(values))
    }

    /// A set of numbers: at least one, and none twice.
    pub fn number_set(values: Vec<Number>) -> Result<Value> {
        check_numbers(&values)?;
        Ok(Value::Ns(values))
    }

    /// A set of byte strings: at least one, and none twice.
    pub fn binary_set(values: Vec<Bytes>) -> Result<Value> {
        check_binaries(&values)?;
        Ok(Value::Bs(values))
    }
}

fn check_strings(values: &[String]) -> Result<()> {
    if values.is_empty() {
        return Err(RequestError::Invalid(format!("{INVALID}An string set  may not be empty")));
    }
    if holds_one_twice(values) {
        let values = values.join(", ");
        return Err(RequestError::Invalid(format!(
            "{INVALID}Input collection [{values}] contains duplicates."
        )));
    }
    Ok(())
}

fn check_numbers(values: &[Number]) -> Result<()> {
    if values.is_empty() {
        return Err(RequestError::Invalid(format!("{INVALID}An number set  may not be empty")));
    }
    if holds_one_twice(values) {
        return Err(RequestError::invalid("Input collection contains duplicates"));
    }
    Ok(())
}

fn check_binaries(values: &[Bytes]) -> Result<()> {
    if values.is_empty() {
        return Err(RequestError::Invalid(format!("{INVALID}Binary sets should not be empty")));
    }
    if holds_one_twice(values) {
        let values: Vec<String> = values.iter().map(|value| BASE64.encode(value)).collect();
        let values = values.join(", ");
        return Err(RequestError::Invalid(format!(
            "{INVALID}Input collection [{values}]of type BS contains duplicates."
        )));
    }
    Ok(())
}

/// Refuses a name that is longer than DynamoDB takes.
pub fn check_name(name: &str) -> Result<()> {
    match name.len() > Item::NAME_BYTES_MAX {
        true => Err(RequestError::Invalid(format!(
            "{INVALID}Attribute name is too large, must be less than 65536 bytes"
        ))),
        false => Ok(()),
    }
}

/// The elements in order.
pub(super) fn sorted<T: Ord>(set: &[T]) -> Vec<&T> {
    let mut sorted: Vec<&T> = set.iter().collect();
    sorted.sort_unstable();
    sorted
}

fn holds_one_twice<T: Ord>(set: &[T]) -> bool {
    // What was stored before is in order, and needs no second look.
    !set.is_sorted_by(|a, b| a < b) && sorted(set).windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether two sets hold the same elements.
pub(super) fn same<T: Ord>(a: &[T], b: &[T]) -> bool {
    a.len() == b.len() && (a == b || sorted(a) == sorted(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<Value>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn an_empty_set_is_refused_in_dynamodbs_words() {
        let invalid = "One or more parameter values were invalid: ";
        let strings = message(Value::string_set(vec![]));
        assert_eq!(strings, format!("{invalid}An string set  may not be empty"));
        let numbers = message(Value::number_set(vec![]));
        assert_eq!(numbers, format!("{invalid}An number set  may not be empty"));
        let binaries = message(Value::binary_set(vec![]));
        assert_eq!(binaries, format!("{invalid}Binary sets should not be empty"));
    }

    #[test]
    fn a_set_that_holds_a_value_twice_is_refused_in_dynamodbs_words() {
        let invalid = "One or more parameter values were invalid: ";
        let strings = message(Value::string_set(vec!["b".into(), "a".into(), "b".into()]));
        assert_eq!(strings, format!("{invalid}Input collection [b, a, b] contains duplicates."));
        let numbers =
            message(Value::number_set(vec!["1".parse().unwrap(), "1.0".parse().unwrap()]));
        assert_eq!(numbers, "Input collection contains duplicates");
        let twice = vec![Bytes::from_static(b"b"), Bytes::from_static(b"b")];
        let binaries = message(Value::binary_set(twice));
        assert_eq!(
            binaries,
            format!("{invalid}Input collection [Yg==, Yg==]of type BS contains duplicates.")
        );
    }

    #[test]
    fn sets_are_equal_whatever_their_order() {
        let set = |values: &[&str]| Value::Ss(values.iter().map(|&value| value.into()).collect());
        assert_eq!(set(&["a", "b"]), set(&["b", "a"]));
        assert_ne!(set(&["a", "b"]), set(&["a", "c"]));
        assert_ne!(set(&["a"]), set(&["a", "b"]));
        assert_ne!(set(&["a"]), Value::L(vec!["a".into()]));
    }
}
