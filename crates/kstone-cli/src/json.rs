//! JSON text: checked, made compact or indented, and otherwise left exactly as it was given. No
//! digit of a number is lost and no key of an object moves.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use serde_json::value::RawValue;

/// Checks that `text` is one JSON value and answers it without blanks.
pub fn check(text: &str) -> Result<String> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => Ok(compact(raw.get())),
        // The message of `serde_json` ends with line and column.
        Err(error) => Err(anyhow!("{error}")),
    }
}

/// The stored bytes as compact JSON, if they are JSON.
pub fn from_stored(bytes: &[u8]) -> Option<String> {
    check(std::str::from_utf8(bytes).ok()?).ok()
}

/// A JSON string.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Removes the blanks between tokens. `json` must be valid.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut string = StringState::default();
    for c in json.chars() {
        if string.step(c) || !c.is_ascii_whitespace() {
            out.push(c);
        }
    }
    out
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
    fn blanks_go_and_everything_else_stays_as_it_was_given() {
        let text = " { \"b\" : [ 1 , 2.50,\n{ } ], \"a b\": \"x \\\" , \\\\\", \"n\": 12345678901234567890123 } ";
        assert_eq!(
            check(text).unwrap(),
            r#"{"b":[1,2.50,{}],"a b":"x \" , \\","n":12345678901234567890123}"#
        );
    }

    #[test]
    fn indented_json_is_the_same_value() {
        let compacted = r#"{"a":[1,{"b":"{,:}"},[]],"c":{},"d":null}"#;
        let indented = pretty(compacted);
        assert_eq!(check(&indented).unwrap(), compacted);
        assert_eq!(
            indented,
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"{,:}\"\n    },\n    []\n  ],\n  \"c\": {},\n  \"d\": null\n}"
        );
    }

    #[test]
    fn bad_json_is_refused_with_line_and_column() {
        let error = check("{\n  \"a\": yes\n}").unwrap_err().to_string();
        assert!(error.contains("line 2 column"), "{error}");
        assert!(check("").is_err() && check("1 2").is_err() && check("{'a':1}").is_err());
    }

    #[test]
    fn nesting_of_any_depth_is_no_danger() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(check(&deep).unwrap(), deep);
    }
}
