//! Values as people read them: JSON with its parts coloured, anything else as it is.

use maud::{Markup, html};
use serde_json::Value as Json;

use super::links;

/// So much of a value is shown.
pub(crate) const SHOWN_BYTES_MAX: usize = 64 * 1024;

/// JSON over several lines.
pub(crate) fn pretty(json: &Json) -> Markup {
    html! { pre.json tabindex="0" aria-label="Value" { (value(json, 1)) } }
}

/// Bytes: as JSON if they are, else as text.
pub(crate) fn bytes(bytes: &[u8]) -> Markup {
    match serde_json::from_slice::<Json>(bytes) {
        Ok(json @ (Json::Object(_) | Json::Array(_))) => pretty(&json),
        _ => {
            let (shown, rest) = bytes.split_at(bytes.len().min(SHOWN_BYTES_MAX));
            html! {
                pre tabindex="0" aria-label="Value" { (text(shown)) }
                @if !rest.is_empty() { p.faint { "And " (rest.len()) " bytes more." } }
            }
        }
    }
}

/// Text of several lines stays so; what cannot be printed is escaped.
fn text(bytes: &[u8]) -> String {
    let lines: Vec<String> = bytes.split(|&byte| byte == b'\n').map(links::text_of).collect();
    lines.join("\n")
}

/// One line of at most `letters`.
pub(crate) fn line(text: &str, letters: usize) -> String {
    let mut line: String = text.chars().take(letters).collect();
    if line.len() < text.len() {
        line.push('…');
    }
    line
}

fn value(json: &Json, depth: usize) -> Markup {
    let (inner, outer) = ("  ".repeat(depth), "  ".repeat(depth - 1));
    html! {
        @match json {
            Json::Null => span.l { "null" },
            Json::Bool(it) => span.l { (it) },
            Json::Number(it) => span.n { (it) },
            Json::String(it) => span.s { (quoted(it)) },
            Json::Array(list) if list.is_empty() => "[]",
            Json::Array(list) => {
                "[\n"
                @for (nth, it) in list.iter().enumerate() {
                    (inner) (value(it, depth + 1)) @if nth + 1 < list.len() { "," } "\n"
                }
                (outer) "]"
            }
            Json::Object(map) if map.is_empty() => "{}",
            Json::Object(map) => {
                "{\n"
                @for (nth, (name, it)) in map.iter().enumerate() {
                    (inner) span.k { (quoted(name)) } ": " (value(it, depth + 1))
                    @if nth + 1 < map.len() { "," } "\n"
                }
                (outer) "}"
            }
        }
    }
}

fn quoted(text: &str) -> String {
    Json::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What a browser shows of it.
    fn shown(markup: &Markup) -> String {
        let mut text = String::new();
        let mut is_tag = false;
        for letter in markup.0.chars() {
            match letter {
                '<' => is_tag = true,
                '>' => is_tag = false,
                letter if !is_tag => text.push(letter),
                _ => {}
            }
        }
        text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }

    #[test]
    fn what_is_shown_of_json_is_that_json() {
        let json = json!({
            "a": [1, 2.5, "x\"<b>", null, true, [], {}],
            "nested": { "deep": { "er": ["&amp;"] } },
        });
        let shown = shown(&pretty(&json));
        assert_eq!(serde_json::from_str::<Json>(&shown).unwrap(), json);
        assert_eq!(shown, serde_json::to_string_pretty(&json).unwrap());
    }

    #[test]
    fn bytes_that_are_no_json_are_shown_as_text_with_escapes() {
        assert_eq!(shown(&bytes(b"plain <b>\nnext\xff")), "plain <b>\nnext\\xff");
        assert!(shown(&bytes(&vec![b'x'; SHOWN_BYTES_MAX + 5])).ends_with("And 5 bytes more."));
    }

    #[test]
    fn a_line_is_cut_between_letters() {
        assert_eq!(line("äöü", 2), "äö…");
        assert_eq!(line("äöü", 3), "äöü");
    }
}
