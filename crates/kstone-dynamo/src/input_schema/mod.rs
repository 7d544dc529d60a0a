//! The schemas of the operations' inputs, and the two checks that DynamoDB makes against them before
//! anything else: JSON types (a `SerializationException` for the first wrong one), then constraints
//! (one `ValidationException` that lists all violations).
//!
//! A valid request costs little here: the types inside attribute values, which are most of a request,
//! are checked during their conversion ([`crate::wire`]). They are checked here only after an error,
//! so that errors come in DynamoDB's order: a wrong type at the end of a request is reported before
//! an invalid value at its beginning.

mod constraints;
mod items;
mod printed;
mod statements;
mod streams;
mod tables;
mod types;

pub(crate) use items::*;
pub(crate) use statements::*;
pub(crate) use streams::*;
pub(crate) use tables::*;

use crate::error::Fault;
use crate::json::Json;

/// The input of an operation.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) members: &'static [Member],
    pub(crate) table_name: TableNameCheck,
}

/// How an operation checks its `TableName`. If it is invalid, nothing else is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableNameCheck {
    /// Like any other member, if the operation has one.
    Ordinary,
    /// First, if it is present. If it is missing, that is reported together with other members.
    IfPresent,
    /// First: if it is missing, nothing else is reported.
    Required,
    /// As for `Required`, and as the name of a new table: at least 3 characters, not an ARN.
    NewTable,
}

/// One member of a structure, in the order in which DynamoDB reports constraints.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
}

/// The expected JSON type, with the rules for its values.
#[derive(Debug)]
pub(crate) enum Shape {
    Text(&'static [Rule]),
    Integer(&'static [Rule]),
    Long(&'static [Rule]),
    Boolean,
    /// An attribute value: `{"S": …}`.
    Value,
    List(&'static Shape, &'static [Rule]),
    /// Any names, values of one shape.
    Map(&'static Shape, &'static MapRules),
    /// Known names, each with its own shape; first what the structure itself is called.
    Structure(&'static str, &'static [Member]),
}

/// The rules for a map, for its keys and for its values.
#[derive(Debug)]
pub(crate) struct MapRules {
    pub(crate) whole: &'static [Rule],
    pub(crate) keys: &'static [Rule],
    pub(crate) values: &'static [Rule],
}

const NO_RULES: &MapRules = &MapRules { whole: &[], keys: &[], values: &[] };

/// A constraint on a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    MinLength(usize),
    MaxLength(usize),
    Min(i64),
    Max(i64),
    /// The characters of names: `[a-zA-Z0-9_.-]+`.
    NamePattern,
    OneOf(&'static [&'static str]),
}

const fn optional(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, required: false }
}

const fn required(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, required: true }
}

/// Checks a body against an operation's input. Types inside attribute values are checked only after
/// an error.
pub(crate) fn check(input: &Input, body: &Json<'_>) -> Result<(), Fault> {
    let quick = types::check(input, body, types::Depth::OutsideValues)
        .and_then(|()| constraints::check(input, body));
    quick.map_err(|fault| first_type_error(input, body).unwrap_or(fault))
}

/// The error for the first wrong type anywhere in the body, which precedes any other error.
pub(crate) fn first_type_error(input: &Input, body: &Json<'_>) -> Option<Fault> {
    types::check(input, body, types::Depth::Everything).err()
}

#[cfg(test)]
mod tests;
