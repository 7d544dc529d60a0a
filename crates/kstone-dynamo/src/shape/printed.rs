//! Prints a value as DynamoDB repeats it in a constraint error: in the format of Java's `toString`.

use std::fmt::Write as _;

use crate::json::Json;
use crate::shape::constraints::lower_first;
use crate::shape::{Member, Shape};

/// The length at which a printed value is cut. Absent members are printed too, so a small request
/// could print a very large value.
const PRINTED_MAX: usize = 8 * 1024;

/// The members of an attribute value in the order of printing.
const VALUE_MEMBERS: [&str; 10] = ["S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL"];

pub(super) fn printed(value: &Json<'_>, shape: &Shape) -> String {
    let mut out = String::new();
    match value {
        // The size of the request limits a single text.
        Json::Str(text) => out.push_str(text),
        _ => print(value, Some(shape), &mut out),
    }
    out
}

fn print(value: &Json<'_>, shape: Option<&Shape>, out: &mut String) {
    if out.len() > PRINTED_MAX {
        return;
    }
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::Int(number) => print_display(number, out),
        Json::Float(number) => match shape {
            // DynamoDB has converted it to an integer before it checks the constraint.
            Some(Shape::Integer(_) | Shape::Long(_)) => print_display(*number as i64, out),
            _ => print_display(number, out),
        },
        Json::Str(text) => out.push_str(text),
        Json::List(elements) => {
            let of = match shape {
                Some(Shape::List(of, _)) => Some(*of),
                _ => None,
            };
            out.push('[');
            for (at, one) in elements.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                print(one, of, out);
                if out.len() > PRINTED_MAX {
                    out.push_str(", ...");
                    break;
                }
            }
            out.push(']');
        }
        Json::Object(_) => match shape {
            Some(Shape::Structure(structure)) => {
                print_structure(value, structure.name, structure.members, out);
            }
            Some(Shape::Value) => print_attribute_value(value, out),
            Some(Shape::Map(entries)) => print_map(value, Some(entries.value), out),
            _ => print_map(value, None, out),
        },
    }
}

fn print_display(number: impl std::fmt::Display, out: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(out, "{number}");
}

fn print_structure(value: &Json<'_>, name: &str, members: &'static [Member], out: &mut String) {
    out.push_str(name);
    out.push('(');
    for (at, member) in members.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        out.push_str(&lower_first(member.name));
        out.push('=');
        print(value.get(member.name).unwrap_or(&Json::Null), Some(&member.shape), out);
    }
    out.push(')');
}

fn print_attribute_value(value: &Json<'_>, out: &mut String) {
    out.push_str("AttributeValue(");
    for (at, name) in VALUE_MEMBERS.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        out.push_str(&lower_first(name));
        out.push('=');
        let of = match *name {
            "M" => Some(&ATTRIBUTE_MAP),
            "L" => Some(&ATTRIBUTE_LIST),
            _ => None,
        };
        print(value.get(name).unwrap_or(&Json::Null), of, out);
    }
    out.push(')');
}

static ATTRIBUTE_MAP: Shape = super::items::ATTRIBUTES;
static ATTRIBUTE_LIST: Shape = Shape::List(&Shape::Value, &[]);

fn print_map(value: &Json<'_>, of: Option<&Shape>, out: &mut String) {
    out.push('{');
    for (at, (key, one)) in value.members().iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        out.push_str(key);
        out.push('=');
        print(one, of, out);
        if out.len() > PRINTED_MAX {
            out.push_str(", ...");
            break;
        }
    }
    out.push('}');
}
