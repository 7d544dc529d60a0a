//! Checks JSON types. The errors are those of DynamoDB's Java deserializer, which stops at the first
//! wrong type in the order of the text.

use std::borrow::Cow;

use crate::error::Fault;
use crate::input_schema::{Input, Member, Shape};
use crate::json::Json;
use crate::wire::base64_fault;

/// How deep types are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Not inside attribute values, whose conversion checks them.
    OutsideValues,
    /// Inside attribute values too.
    Everything,
}

/// The position of a value, on which some messages depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The member of a structure.
    Field,
    /// In a list or map.
    Element,
}

const PACKAGE: &str = "com.amazonaws.dynamodb.v20120810.";
const MAP_NOT_EXPECTED: &str = "Start of structure or map found where not expected";
const NOT_A_FIELD: &str = "Unexpected field type";
const NOT_A_VALUE: &str = "Unexpected value type in payload";
/// The message for a scalar in place of a list or map inside another collection.
const NOT_A_COLLECTION: &str = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl \
     cannot be cast to class java.lang.Class \
     (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in \
     module java.base of loader 'bootstrap')";

pub(super) fn check(input: &Input, body: &Json<'_>, depth: Depth) -> Result<(), Fault> {
    match body {
        Json::Object(members) => check_members(members, input.members, depth),
        _ => Err(Fault::malformed()),
    }
}

fn check_members(
    given: &[(Cow<'_, str>, Json<'_>)],
    members: &'static [Member],
    depth: Depth,
) -> Result<(), Fault> {
    for (name, value) in given {
        if let Some(member) = members.iter().find(|member| member.name == name) {
            check_value(value, &member.shape, Position::Field, depth)?;
        }
    }
    Ok(())
}

fn check_value(
    value: &Json<'_>,
    shape: &Shape,
    position: Position,
    depth: Depth,
) -> Result<(), Fault> {
    match (shape, value) {
        (_, Json::Null) => Ok(()),
        (Shape::Value, _) => match depth {
            Depth::OutsideValues => Ok(()),
            Depth::Everything => check_attribute_value(value, position),
        },
        (Shape::Text(_), Json::Str(_)) => Ok(()),
        (Shape::Text(_), _) => Err(not_convertible(value, "String")),
        (Shape::Integer(_) | Shape::Long(_), Json::Int(_) | Json::Float(_)) => Ok(()),
        (Shape::Integer(_), _) => Err(not_convertible(value, "Integer")),
        (Shape::Long(_), _) => Err(not_convertible(value, "Long")),
        (Shape::Boolean, _) => check_boolean(value),
        (Shape::List(of, _), _) => {
            let elements = list(value, position)?;
            elements.iter().try_for_each(|one| check_value(one, of, Position::Element, depth))
        }
        (Shape::Map(of, _), _) => {
            let members = map(value, position, of)?;
            if depth == Depth::OutsideValues && matches!(of, Shape::Value) {
                return Ok(());
            }
            let mut values = members.iter().map(|(_, value)| value);
            values.try_for_each(|one| check_value(one, of, Position::Element, depth))
        }
        (Shape::Structure(name, members), _) => {
            check_members(members_of(value, position, name)?, members, depth)
        }
    }
}

/// Checks an attribute value with everything inside it.
fn check_attribute_value(value: &Json<'_>, position: Position) -> Result<(), Fault> {
    for (name, value) in members_of(value, position, "AttributeValue")? {
        if matches!(value, Json::Null) {
            continue;
        }
        match name.as_ref() {
            "S" | "N" => check_text(value)?,
            "B" => check_blob(value)?,
            "BOOL" | "NULL" => check_boolean(value)?,
            "SS" | "NS" => list(value, Position::Field)?.iter().try_for_each(check_text)?,
            "BS" => list(value, Position::Field)?.iter().try_for_each(check_blob)?,
            "L" => {
                let mut elements = list(value, Position::Field)?.iter();
                elements.try_for_each(|one| check_element(one))?;
            }
            "M" => {
                let mut members = map(value, Position::Field, &Shape::Value)?.iter();
                members.try_for_each(|(_, one)| check_element(one))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_element(value: &Json<'_>) -> Result<(), Fault> {
    match value {
        Json::Null => Ok(()),
        _ => check_attribute_value(value, Position::Element),
    }
}

fn check_text(value: &Json<'_>) -> Result<(), Fault> {
    match value {
        Json::Str(_) | Json::Null => Ok(()),
        _ => Err(not_convertible(value, "String")),
    }
}

fn check_blob(value: &Json<'_>) -> Result<(), Fault> {
    match value {
        Json::Null => Ok(()),
        Json::Str(text) => base64_fault(text).map_or(Ok(()), Err),
        Json::Bool(_) | Json::Int(_) | Json::Float(_) => {
            Err(Fault::serialization("only base-64-encoded strings are convertible to bytes"))
        }
        Json::List(_) => {
            Err(Fault::serialization("Unrecognized collection type class java.nio.ByteBuffer"))
        }
        Json::Object(_) => Err(Fault::serialization(MAP_NOT_EXPECTED)),
    }
}

fn check_boolean(value: &Json<'_>) -> Result<(), Fault> {
    match value {
        Json::Null | Json::Bool(_) => Ok(()),
        Json::Str(_) if value.as_boolean().is_some() => Ok(()),
        Json::Str(_) => Err(Fault::serialization("Unexpected token received from parser")),
        _ => Err(not_convertible(value, "Boolean")),
    }
}

/// The error for a value in place of a scalar of a Java class.
fn not_convertible(value: &Json<'_>, class: &str) -> Fault {
    let what = match value {
        Json::Bool(true) => "TRUE_VALUE",
        Json::Bool(false) => "FALSE_VALUE",
        Json::Int(_) => "NUMBER_VALUE",
        Json::Float(_) => "DECIMAL_VALUE",
        Json::Str(_) | Json::Null => "STRING_VALUE",
        Json::List(_) => {
            let class = format!("Unrecognized collection type class java.lang.{class}");
            return Fault::serialization(class);
        }
        Json::Object(_) => return Fault::serialization(MAP_NOT_EXPECTED),
    };
    Fault::serialization(format!("{what} cannot be converted to {class}"))
}

fn list<'j, 'a>(value: &'j Json<'a>, position: Position) -> Result<&'j [Json<'a>], Fault> {
    match value {
        Json::List(elements) => Ok(elements),
        Json::Object(_) => Err(Fault::serialization(MAP_NOT_EXPECTED)),
        _ => Err(not_a_collection(position)),
    }
}

fn map<'j, 'a>(
    value: &'j Json<'a>,
    position: Position,
    of: &Shape,
) -> Result<&'j [(Cow<'a, str>, Json<'a>)], Fault> {
    match value {
        Json::Object(members) => Ok(members),
        Json::List(_) => Err(Fault::serialization(format!(
            "Unrecognized collection type java.util.Map<java.lang.String, {}>",
            java_class(of)
        ))),
        _ => Err(not_a_collection(position)),
    }
}

/// The Java class of a map's values.
fn java_class(shape: &Shape) -> String {
    match shape {
        Shape::Value => format!("{PACKAGE}AttributeValue"),
        Shape::Structure(name, _) => format!("{PACKAGE}{name}"),
        Shape::List(of, _) => format!("java.util.List<{}>", java_class(of)),
        // The only others are texts.
        _ => "java.lang.String".to_owned(),
    }
}

fn not_a_collection(position: Position) -> Fault {
    Fault::serialization(match position {
        Position::Field => NOT_A_FIELD,
        Position::Element => NOT_A_COLLECTION,
    })
}

fn members_of<'j, 'a>(
    value: &'j Json<'a>,
    position: Position,
    structure: &str,
) -> Result<&'j [(Cow<'a, str>, Json<'a>)], Fault> {
    match value {
        Json::Object(members) => Ok(members),
        Json::List(_) => Err(Fault::serialization(format!(
            "Unrecognized collection type class {PACKAGE}{structure}"
        ))),
        _ => Err(Fault::serialization(match position {
            Position::Field => NOT_A_FIELD,
            Position::Element => NOT_A_VALUE,
        })),
    }
}
