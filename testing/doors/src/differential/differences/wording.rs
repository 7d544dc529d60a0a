//! What an error says, and whether a pattern fits it.

use serde_json::Value as Json;

pub(super) const INVALID: &str = "ValidationException";
pub(super) const CANCELLED: &str = "TransactionCanceledException";
pub(super) const MALFORMED: &str = "SerializationException";

/// A difference between two errors.
pub(super) struct Wording {
    /// What it is about.
    pub(super) name: &'static str,
    /// The door's error: type and message.
    pub(super) ours: (&'static str, &'static str),
    /// DynamoDB Local's.
    pub(super) theirs: (&'static str, &'static str),
}

impl Wording {
    pub(super) fn fits(&self, ours: &Json, theirs: &Json) -> bool {
        is(ours, self.ours) && is(theirs, self.theirs)
    }
}

/// Whether an answer is an error of this type, with a message of this pattern.
pub(super) fn is(error: &Json, (name, message): (&str, &str)) -> bool {
    // An error without a message has an empty one.
    error["type"] == name && matches(message, error["message"].as_str().unwrap_or(""))
}

/// Whether a text is what the pattern says.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            rest.is_empty()
                || text.char_indices().any(|(at, _)| matches(rest, &text[at..]))
                || matches(rest, "")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(matches("a*c", "abc"));
        assert!(matches("a*c", "ac"));
        assert!(matches("*", ""));
        assert!(matches("a*", "a"));
        assert!(!matches("a*c", "abd"));
        assert!(!matches("a", "ab"));
        assert!(!matches("a*c*e", "abcd"));
    }
}
