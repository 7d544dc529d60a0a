//! What each operation's input looks like, as tables, and the two checks that DynamoDB makes before
//! it looks at what a request means: are the JSON types right (else a `SerializationException` for
//! the first that is not), and do the members keep their constraints (else one
//! `ValidationException` that lists all that do not).
//!
//! A good request pays little: the types inside attribute values, which are most of a request, are
//! checked by whoever converts them ([`crate::wire`]). Only when something is wrong anywhere are
//! they looked at here, so that the errors come in DynamoDB's order: a wrong type at the end of a
//! request goes before a bad value at its beginning.

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
    pub(crate) table_name: TableName,
}

/// How an operation checks its `TableName`: if that is bad, nothing else is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableName {
    /// There is none, or it is checked like any other member.
    Ordinary,
    /// It may be missing for a while: that is reported together with other missing members.
    OfItems,
    /// Without it, nothing else is looked at.
    OfTables,
    /// The same, and it is the name of a table to be: at least 3 characters, no ARN.
    ToCreate,
}

/// One member of a structure, in the order in which DynamoDB reports constraints.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
}

/// The JSON type that is expected, with what its values have to satisfy.
#[derive(Debug)]
pub(crate) enum Shape {
    Text(&'static [Rule]),
    Integer(&'static [Rule]),
    Long(&'static [Rule]),
    Boolean,
    /// An attribute value: `{"S": …}`.
    Value,
    List(&'static Shape, &'static [Rule]),
    Map(&'static Entries),
    Structure(&'static Structure),
}

/// A map: any names, values of one shape.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) value: &'static Shape,
    /// The Java class that an error about a list in place of the map names.
    pub(crate) value_class: &'static str,
    pub(crate) key_rules: &'static [Rule],
    pub(crate) value_rules: &'static [Rule],
    pub(crate) rules: &'static [Rule],
}

/// A structure: known names, each with its own shape.
#[derive(Debug)]
pub(crate) struct Structure {
    pub(crate) name: &'static str,
    pub(crate) members: &'static [Member],
}

/// One thing that a value has to satisfy.
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

/// Checks a body against an operation's input; types inside attribute values only if something
/// else is wrong.
pub(crate) fn check(input: &Input, body: &Json<'_>) -> Result<(), Fault> {
    let quick = types::check(input, body, types::Depth::OutsideValues)
        .and_then(|()| constraints::check(input, body));
    quick.map_err(|fault| first_type_error(input, body).unwrap_or(fault))
}

/// The first wrong type anywhere in the body: it goes before any other error.
pub(crate) fn first_type_error(input: &Input, body: &Json<'_>) -> Option<Fault> {
    types::check(input, body, types::Depth::Everything).err()
}

#[cfg(test)]
mod tests;
