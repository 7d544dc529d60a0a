//! Prints a value as DynamoDB repeats it in a constraint error: in the format of Java's `toString`.

use std::fmt::Write as _;

use crate::input_schema::Shape;
use crate::input_schema::constraints::lower_first;
use crate::json::Json;

/// The length at which a printed value is cut. Absent members are printed too, so a small request
/// could print a very large value.
const PRINTED_MAX: usize = 8 * 1024;

/// The members of an attribute value, in the order of printing.
static VALUE_MEMBERS: [(&str, Option<&Shape>); 10] = [
    ("S", None),
    ("N", None),
    ("B", None),
    ("SS", None),
    ("NS", None),
    ("BS", None),
    ("M", Some(&ATTRIBUTE_MAP)),
    ("L", Some(&ATTRIBUTE_LIST)),
    ("NULL", None),
    ("BOOL", None),
];

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
            Some(Shape::Structure(name, members)) => {
                let members = members.iter().map(|it| (it.name, Some(&it.shape)));
                print_members(value, name, members, out);
            }
            Some(Shape::Value) => print_members(value, "AttributeValue", VALUE_MEMBERS, out),
            Some(Shape::Map(of, _)) => print_map(value, Some(*of), out),
            _ => print_map(value, None, out),
        },
    }
}

fn print_display(number: impl std::fmt::Display, out: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(out, "{number}");
}

/// Prints an object as `Name(member=value, …)`, with all members that its class has.
fn print_members(
    value: &Json<'_>,
    class: &str,
    members: impl IntoIterator<Item = (&'static str, Option<&'static Shape>)>,
    out: &mut String,
) {
    out.push_str(class);
    out.push('(');
    for (at, (name, shape)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        out.push_str(&lower_first(name));
        out.push('=');
        print(value.get(name).unwrap_or(&Json::Null), shape, out);
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
