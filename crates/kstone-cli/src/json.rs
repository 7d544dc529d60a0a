//! Items as JSON text and back, exactly: no digit of a number is lost. JSON has no bytes and no
//! sets; they are printed as base64 text and as arrays.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kstone::{Item, Value};
use serde_json::value::RawValue;

/// The item that `text` is. The message of an error in the JSON ends with line and column.
pub fn item(text: &str) -> Result<Item> {
    let raw = serde_json::from_str::<&RawValue>(text).map_err(|error| anyhow!("{error}"))?;
    item_of(raw)
}

/// The same of a part of some JSON.
pub fn item_of(raw: &RawValue) -> Result<Item> {
    match value(raw, Value::DEPTH_MAX + 1)? {
        Value::M(item) => Ok(item),
        _ => bail!("an item is a JSON object: {{\"value\":{}}}", shortened(raw.get())),
    }
}

fn value(raw: &RawValue, levels: usize) -> Result<Value> {
    let text = raw.get();
    let Some(below) = levels.checked_sub(1) else {
        bail!("it is nested more than {} levels deep", Value::DEPTH_MAX);
    };
    Ok(match text.bytes().next() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            let mut map = Item::new();
            for (name, member) in members {
                map.insert(name, value(member, below)?);
            }
            Value::M(map)
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(text)?;
            let elements = elements.into_iter().map(|element| value(element, below));
            Value::L(elements.collect::<Result<_>>()?)
        }
        Some(b'"') => Value::S(serde_json::from_str(text)?),
        Some(b't') => Value::Bool(true),
        Some(b'f') => Value::Bool(false),
        Some(b'n') => Value::Null,
        _ => Value::N(text.parse()?),
    })
}

/// An item as compact JSON, its attributes in the order of their names.
pub fn text(item: &Item) -> String {
    let mut out = String::new();
    write_item(item, &mut out);
    out
}

fn write_item(item: &Item, out: &mut String) {
    write_list('{', item.iter(), '}', out, |(name, value), out| {
        out.push_str(&quote(name));
        out.push(':');
        write_value(value, out);
    });
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::S(text) => out.push_str(&quote(text)),
        Value::N(number) => out.push_str(number.decimal().as_str()),
        Value::B(bytes) => out.push_str(&quote(&BASE64.encode(bytes))),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
        Value::M(map) => write_item(map, out),
        Value::L(list) => write_list('[', list, ']', out, write_value),
        Value::Ss(set) => write_list('[', set, ']', out, |text, out| out.push_str(&quote(text))),
        Value::Ns(set) => {
            write_list('[', set, ']', out, |number, out| out.push_str(number.decimal().as_str()));
        }
        Value::Bs(set) => write_list('[', set, ']', out, |bytes, out| {
            out.push_str(&quote(&BASE64.encode(bytes)));
        }),
    }
}

fn write_list<T>(
    open: char,
    elements: impl IntoIterator<Item = T>,
    close: char,
    out: &mut String,
    mut write: impl FnMut(T, &mut String),
) {
    out.push(open);
    for (n, element) in elements.into_iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        write(element, out);
    }
    out.push(close);
}

/// The beginning of a text, on one line, for a message.
pub fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    let one_line = text.replace('\n', " ");
    match one_line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", one_line.get(..end).unwrap_or_default()),
        None => one_line,
    }
}

/// A JSON string.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Compact JSON, indented by two blanks a level.
pub fn pretty(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let (mut depth, mut string) = (0usize, StringState::default());
    let mut chars = compact.chars().peekable();
    let new_line = |out: &mut String, depth: usize| {
        let _ = write!(out, "\n{:1$}", "", depth * 2);
    };
    while let Some(c) = chars.next() {
        if string.step(c) {
            out.push(c);
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                if let Some(end) = chars.next_if(|&next| next == '}' || next == ']') {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => out.push(c),
        }
    }
    out
}

/// Knows which characters are part of a string.
#[derive(Default)]
struct StringState {
    inside: bool,
    escaped: bool,
}

impl StringState {
    /// Takes the next character; whether it belongs to a string, quotes included.
    fn step(&mut self, c: char) -> bool {
        let was_inside = self.inside;
        if self.escaped {
            self.escaped = false;
        } else if c == '\\' && self.inside {
            self.escaped = true;
        } else if c == '"' {
            self.inside = !self.inside;
        }
        was_inside || self.inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_every_digit_and_attributes_are_in_order() {
        let given = " { \"b\" : [ 1 , 2.50,\n{ } ], \"a b\": \"x \\\" , \\\\\", \"n\": 1234567890123456789012.5e-1 } ";
        assert_eq!(
            text(&item(given).unwrap()),
            r#"{"a b":"x \" , \\","b":[1,2.5,{}],"n":123456789012345678901.25}"#
        );
        assert_eq!(
            text(&item(r#"{"t":true,"f":false,"z":null}"#).unwrap()),
            r#"{"f":false,"t":true,"z":null}"#
        );
    }

    #[test]
    fn what_is_no_item_is_refused_with_the_form_that_is_one() {
        let said = |text: &str| item(text).unwrap_err().to_string();
        assert_eq!(said("7"), "an item is a JSON object: {\"value\":7}");
        assert!(said("{\n  \"a\": yes\n}").contains("line 2 column"));
        assert!(said("{\"a\":1e999}").contains("overflow"));
        assert!(item("").is_err() && item("{} 2").is_err() && item("{'a':1}").is_err());
    }

    #[test]
    fn nesting_of_any_depth_is_no_danger() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(item(&deep).unwrap_err().to_string().contains("32 levels"));
    }

    #[test]
    fn indented_json_is_the_same_value() {
        let compacted = r#"{"a":[1,{"b":"{,:}"},[]],"c":{},"d":null}"#;
        let indented = pretty(compacted);
        assert_eq!(text(&item(&indented).unwrap()), compacted);
        assert_eq!(
            indented,
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"{,:}\"\n    },\n    []\n  ],\n  \"c\": {},\n  \"d\": null\n}"
        );
    }
}
