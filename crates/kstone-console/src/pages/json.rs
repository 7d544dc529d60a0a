//! Formats values for people: JSON with its parts coloured, anything else as it is.

use maud::{Markup, html};
use serde_json::Value as Json;

use super::links;

/// So much of a value is shown.
pub(crate) const SHOWN_BYTES_MAX: usize = 64 * 1024;

/// JSON over several lines; cut, and without colours, if it is long.
pub(crate) fn pretty(json: &Json) -> Markup {
    let plain = format!("{json:#}");
    if plain.len() > SHOWN_BYTES_MAX {
        return beginning(plain.as_bytes(), plain.len() as u64);
    }
    html! { pre.json tabindex="0" aria-label="Value" { (value(json, 1)) } }
}

/// Bytes: as JSON if they are, else as text.
pub(crate) fn bytes(bytes: &[u8]) -> Markup {
    let json = (bytes.len() <= SHOWN_BYTES_MAX).then(|| serde_json::from_slice::<Json>(bytes));
    match json {
        Some(Ok(json @ (Json::Object(_) | Json::Array(_)))) => pretty(&json),
        _ => beginning(bytes, bytes.len() as u64),
    }
}

/// The beginning of a value that has so many bytes in all.
pub(crate) fn beginning(bytes: &[u8], all: u64) -> Markup {
    let shown = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
    let rest = all.saturating_sub(shown.len() as u64);
    html! {
        pre tabindex="0" aria-label="Value" { (text(shown)) }
        @if rest > 0 { p.faint { "And " (rest) " bytes more." } }
    }
}

/// Text of several lines stays so; what cannot be printed is escaped.
fn text(bytes: &[u8]) -> String {
    let lines: Vec<String> = bytes.split(|&byte| byte == b'\n').map(links::text_of).collect();
    lines.join("\n")
}

/// One line of at most `letters` from bytes, of which no more are read than are shown.
pub(crate) fn line_of_bytes(bytes: &[u8], letters: usize) -> String {
    // A letter has at most four bytes.
    let beginning = &bytes[..bytes.len().min(4 * (letters + 1))];
    line(&links::text_of(beginning), letters)
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
    fn of_long_json_the_beginning_is_shown_as_text() {
        let list = json!(vec![1; SHOWN_BYTES_MAX]);
        for markup in [bytes(list.to_string().as_bytes()), pretty(&list)] {
            assert!(!markup.0.contains("<span"), "no element for each of its values");
            assert!(markup.0.len() < SHOWN_BYTES_MAX + 1000, "{}", markup.0.len());
            assert!(shown(&markup).ends_with("bytes more."));
        }
        assert_eq!(line_of_bytes(&[b'x'; 100_000], 3), "xxx…");
        assert_eq!(line_of_bytes("äöü".as_bytes(), 3), "äöü");
    }

    #[test]
    fn a_line_is_cut_between_letters() {
        assert_eq!(line("äöü", 2), "äö…");
        assert_eq!(line("äöü", 3), "äöü");
    }
}
