//! A JSON tree that borrows from a request's body. Lightweight: strings without escapes are not
//! copied, and objects are lists of members, because a request has few.

mod parse;

use std::borrow::Cow;

use parse::Malformed;
pub(crate) use parse::TREE_TIMES;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// A number without a fraction, if it fits.
    Int(i64),
    /// Any other number.
    Float(f64),
    Str(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Parses a whole body. Text after the value, invalid UTF-8, nesting beyond 128 levels, and a
    /// tree of more than about [`TREE_TIMES`] the size of its text are errors.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Json<'a>, Malformed> {
        parse::parse(body)
    }

    /// The member of an object; `None` if it is absent or `null`, or this is not an object. Of
    /// members with the same name the last counts.
    pub(crate) fn get(&self, name: &str) -> Option<&Json<'a>> {
        match self {
            Json::Object(members) => members
                .iter()
                .rev()
                .find(|(have, _)| have == name)
                .map(|(_, value)| value)
                .filter(|value| !matches!(value, Json::Null)),
            _ => None,
        }
    }

    /// The text of a string.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Json::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of a list; none if this is not a list.
    pub(crate) fn elements(&self) -> &[Json<'a>] {
        match self {
            Json::List(elements) => elements,
            _ => &[],
        }
    }

    /// The members of an object; none if this is not an object.
    pub(crate) fn members(&self) -> &[(Cow<'a, str>, Json<'a>)] {
        match self {
            Json::Object(members) => members,
            _ => &[],
        }
    }

    /// A member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// A member that is a number, truncated to an integer as in DynamoDB.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_integer()
    }

    /// The number, truncated to an integer.
    pub(crate) fn as_integer(&self) -> Option<i64> {
        match self {
            Json::Int(number) => Some(*number),
            Json::Float(number) => Some(*number as i64),
            _ => None,
        }
    }

    /// A member that is a boolean, or one of the strings that DynamoDB accepts for one.
    pub(crate) fn boolean(&self, name: &str) -> Option<bool> {
        self.get(name)?.as_boolean()
    }

    /// The boolean, or the one that a string stands for.
    pub(crate) fn as_boolean(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            Json::Str(word) => boolean_word(word),
            _ => None,
        }
    }
}

/// The boolean that a string stands for, as DynamoDB accepts it.
fn boolean_word(word: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 3]| words.iter().any(|have| have.eq_ignore_ascii_case(word));
    if is_one_of(["true", "1", "yes"]) {
        Some(true)
    } else if is_one_of(["false", "0", "no"]) {
        Some(false)
    } else {
        None
    }
}

/// How many bytes at the start need no escape in a JSON string. Items are mostly text, so this is
/// most of the cost of reading and writing them.
#[inline]
pub(crate) fn plain_prefix(text: &[u8]) -> usize {
    // Nearly all texts are short, and nearly all bytes are in long ones.
    let (start, rest) = text.split_at(text.len().min(16));
    match plain_bytes(start) {
        plain if plain < start.len() || rest.is_empty() => plain,
        plain => plain + plain_prefix_of_long(rest),
    }
}

fn plain_prefix_of_long(text: &[u8]) -> usize {
    let mut plain = plain_chunks::<64>(text);
    plain += plain_chunks::<16>(text.get(plain..).unwrap_or_default());
    plain + plain_bytes(text.get(plain..).unwrap_or_default())
}

#[inline]
fn plain_bytes(text: &[u8]) -> usize {
    static NEEDS_ESCAPE: [bool; 256] = {
        let mut needs = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            needs[byte] = needs_escape(byte as u8);
            byte += 1;
        }
        needs
    };
    let needs_escape = |byte: &u8| NEEDS_ESCAPE[usize::from(*byte)];
    text.iter().position(needs_escape).unwrap_or(text.len())
}

/// The same for whole chunks, without a branch for each byte, so that the compiler vectorises it.
#[inline]
fn plain_chunks<const BYTES: usize>(text: &[u8]) -> usize {
    let (chunks, _) = text.as_chunks::<BYTES>();
    let is_plain =
        |chunk: &&[u8; BYTES]| !chunk.iter().fold(false, |found, byte| found | needs_escape(*byte));
    chunks.iter().take_while(is_plain).count() * BYTES
}

#[inline]
const fn needs_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_strings_are_borrowed_and_escaped_ones_are_decoded() {
        let tree = Json::parse(br#"{"a":"plain","b":"t\u00e4b\n"}"#).unwrap();
        assert!(matches!(tree.get("a"), Some(Json::Str(Cow::Borrowed("plain")))));
        assert_eq!(tree.text("b"), Some("täb\n"));
    }

    #[test]
    fn numbers_keep_whether_they_had_a_fraction() {
        let tree = Json::parse(b"[1, -9223372036854775808, 1.5, 18446744073709551615]").unwrap();
        let numbers = [
            Json::Int(1),
            Json::Int(i64::MIN),
            Json::Float(1.5),
            Json::Float(18_446_744_073_709_551_615.0),
        ];
        assert_eq!(tree.elements(), numbers);
    }

    #[test]
    fn a_null_member_counts_as_absent_and_the_last_of_two_counts() {
        let tree = Json::parse(br#"{"a":null,"b":1,"b":2}"#).unwrap();
        assert_eq!(tree.get("a"), None);
        assert_eq!(tree.integer("b"), Some(2));
    }

    #[test]
    fn what_is_not_one_json_value_is_refused() {
        for body in ["", "{", "{} x", "{\"a\":}", "\"\\ud800\"", "nul", "{\"a\":1,}"] {
            assert!(Json::parse(body.as_bytes()).is_err(), "{body}");
        }
        assert!(Json::parse(b"\"\xff\"").is_err());
        assert!(Json::parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn words_stand_for_booleans() {
        let tree = Json::parse(br#"{"a":"YES","b":"0","c":"maybe"}"#).unwrap();
        assert_eq!(tree.boolean("a"), Some(true));
        assert_eq!(tree.boolean("b"), Some(false));
        assert_eq!(tree.boolean("c"), None);
    }
}
