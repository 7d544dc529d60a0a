//! The JSON parser: from bytes to the tree. It accepts exactly what `serde_json` accepts, which the
//! tests compare. It is our own because `serde_json` took two thirds of the time of reading a small
//! request, mostly to track positions for error messages that no client gets.

use std::borrow::Cow;

use super::{Json, plain_prefix};

/// The deepest nesting that is accepted.
const LEVELS_MAX: usize = 127;
/// How many times the size of its text a tree may have. Lists of the shortest typed values come close
/// to it; what exceeds it, mostly nested brackets, is not a useful request.
pub(crate) const TREE_TIMES: usize = 12;
/// The size that a tree may have in addition, for the shortest texts.
const SPARE_BYTES: usize = 128 * 1024;
/// How much of that may go to capacity that objects get in advance.
const GUESSED_BYTES_MAX: usize = 64 * 1024;
/// The typical number of members of an object that is not an attribute value.
const MEMBERS_GUESSED: usize = 4;

/// The body is not one JSON value. DynamoDB does not report more either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Reads a whole body.
pub(super) fn parse(body: &[u8]) -> Result<Json<'_>, Malformed> {
    let text = std::str::from_utf8(body).map_err(|_| Malformed)?;
    let mut parser = Parser {
        text,
        at: 0,
        levels_left: LEVELS_MAX,
        bytes_left: text.len().saturating_mul(TREE_TIMES).saturating_add(SPARE_BYTES),
        guessed_bytes_left: GUESSED_BYTES_MAX,
    };
    let first = parser.next_visible().ok_or(Malformed)?;
    let value = parser.value(first)?;
    match parser.next_visible() {
        None => Ok(value),
        Some(_) => Err(Malformed),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    levels_left: usize,
    /// How much larger the tree may become.
    bytes_left: usize,
    guessed_bytes_left: usize,
}

impl<'a> Parser<'a> {
    /// Takes the next byte that is not white space.
    #[inline]
    fn next_visible(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            self.at += 1;
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
        }
    }

    /// Parses the value whose first byte, this one, was taken.
    fn value(&mut self, first: u8) -> Result<Json<'a>, Malformed> {
        match first {
            b'"' => self.string().map(Json::Str),
            b'{' => self.nested(Parser::object),
            b'[' => self.nested(Parser::list),
            b't' => self.word("rue", Json::Bool(true)),
            b'f' => self.word("alse", Json::Bool(false)),
            b'n' => self.word("ull", Json::Null),
            b'-' | b'0'..=b'9' => self.number(first),
            _ => Err(Malformed),
        }
    }

    fn nested(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<Json<'a>, Malformed>,
    ) -> Result<Json<'a>, Malformed> {
        self.levels_left = self.levels_left.checked_sub(1).ok_or(Malformed)?;
        let value = inside(self)?;
        self.levels_left += 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Json<'a>, Malformed> {
        let mut members = Vec::new();
        let mut next = self.next_visible().ok_or(Malformed)?;
        if next == b'}' {
            return Ok(Json::Object(members));
        }
        loop {
            if next != b'"' {
                return Err(Malformed);
            }
            let name = self.string()?;
            if self.next_visible() != Some(b':') {
                return Err(Malformed);
            }
            let first = self.next_visible().ok_or(Malformed)?;
            if members.len() == members.capacity() {
                let more = match members.len() {
                    0 => self.guess_members(&name, first),
                    have => growth(have),
                };
                self.grow(&mut members, more)?;
            }
            members.push((name, self.value(first)?));
            match self.next_visible() {
                Some(b',') => next = self.next_visible().ok_or(Malformed)?,
                Some(b'}') => return Ok(Json::Object(members)),
                _ => return Err(Malformed),
            }
        }
    }

    fn list(&mut self) -> Result<Json<'a>, Malformed> {
        let mut elements = Vec::new();
        let mut first = self.next_visible().ok_or(Malformed)?;
        if first == b']' {
            return Ok(Json::List(elements));
        }
        loop {
            if elements.len() == elements.capacity() {
                let more = growth(elements.len());
                self.grow(&mut elements, more)?;
            }
            elements.push(self.value(first)?);
            match self.next_visible() {
                Some(b',') => first = self.next_visible().ok_or(Malformed)?,
                Some(b']') => return Ok(Json::List(elements)),
                _ => return Err(Malformed),
            }
        }
    }

    /// The capacity for an object whose first member has this name.
    fn guess_members(&mut self, name: &str, first: u8) -> usize {
        // An attribute value has one member, and nearly every object is one.
        if name == "M" || (name.len() <= 4 && first != b'{') {
            return 1;
        }
        // Guessing pays in small requests; in large ones it would add up.
        let unused = (MEMBERS_GUESSED - 1) * size_of::<(Cow<'a, str>, Json<'a>)>();
        match self.guessed_bytes_left.checked_sub(unused) {
            Some(left) => {
                self.guessed_bytes_left = left;
                MEMBERS_GUESSED
            }
            None => 1,
        }
    }

    /// Adds capacity to a part of the tree that is full, if the tree may become so large.
    fn grow<T>(&mut self, part: &mut Vec<T>, more: usize) -> Result<(), Malformed> {
        self.charge(more.saturating_mul(size_of::<T>()))?;
        part.reserve_exact(more);
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(Malformed)?;
        Ok(())
    }

    /// Parses a string whose opening quote was taken.
    #[inline]
    fn string(&mut self) -> Result<Cow<'a, str>, Malformed> {
        let rest = self.text.get(self.at..).ok_or(Malformed)?;
        let length = plain_prefix(rest.as_bytes());
        match rest.as_bytes().get(length) {
            Some(b'"') => {
                self.at += length + 1;
                rest.get(..length).map(Cow::Borrowed).ok_or(Malformed)
            }
            Some(b'\\') => self.escaped_string(rest, length).map(Cow::Owned),
            _ => Err(Malformed),
        }
    }

    /// Parses a string with its first escape at `escape`.
    #[cold]
    fn escaped_string(&mut self, rest: &str, mut escape: usize) -> Result<String, Malformed> {
        let bytes = rest.as_bytes();
        let end = loop {
            // An escape is two bytes at least, and the second is never what ends the string.
            let after = escape + 2;
            let end = after + plain_prefix(bytes.get(after..).ok_or(Malformed)?);
            match bytes.get(end) {
                Some(b'\\') => escape = end,
                Some(b'"') => break end,
                _ => return Err(Malformed),
            }
        };
        let start = self.at.checked_sub(1).ok_or(Malformed)?;
        let quoted = self.text.get(start..=self.at + end).ok_or(Malformed)?;
        self.at += end + 1;
        let text: String = serde_json::from_str(quoted).map_err(|_| Malformed)?;
        self.charge(text.capacity())?;
        Ok(text)
    }

    fn word(&mut self, rest: &str, value: Json<'a>) -> Result<Json<'a>, Malformed> {
        match self.text.get(self.at..).is_some_and(|text| text.starts_with(rest)) {
            true => {
                self.at += rest.len();
                Ok(value)
            }
            false => Err(Malformed),
        }
    }

    fn number(&mut self, first: u8) -> Result<Json<'a>, Malformed> {
        let start = self.at - 1;
        match first {
            b'-' if self.peek() == Some(b'0') => self.at += 1,
            b'-' => self.digits()?,
            b'0' => {}
            _ => _ = self.digits(),
        }
        // After a leading zero a digit is not part of the number, and the caller refuses it.
        let mut is_whole = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
            is_whole = false;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
            is_whole = false;
        }
        let text = self.text.get(start..self.at).ok_or(Malformed)?;
        if is_whole
            && text != "-0"
            && let Ok(number) = text.parse()
        {
            return Ok(Json::Int(number));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Json::Float(number)),
            _ => Err(Malformed),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Malformed> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(Malformed) } else { Ok(()) }
    }
}

/// By how much a part of the tree grows: by half, so that at most a third is unused.
fn growth(have: usize) -> usize {
    match have {
        0 => 1,
        _ => (have / 2).max(have.min(2)),
    }
}

#[cfg(test)]
mod tests {
    use kstone_core::env::{Random as _, SeededRandom};
    use serde_json::Value;

    use super::*;

    fn is_same(ours: &Json<'_>, theirs: &Value) -> bool {
        match (ours, theirs) {
            (Json::Null, Value::Null) => true,
            (Json::Bool(a), Value::Bool(b)) => a == b,
            (Json::Int(a), Value::Number(b)) => b.as_i64() == Some(*a),
            (Json::Float(a), Value::Number(b)) => {
                let b = b.as_f64().unwrap();
                // They differ in the last bit, which nobody sees.
                theirs.as_i64().is_none() && (a - b).abs() <= a.abs() * 1e-15
            }
            (Json::Str(a), Value::String(b)) => a == b,
            (Json::List(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
            }
            (Json::Object(a), Value::Object(b)) => {
                let last = |name: &str| a.iter().rev().find(|(have, _)| have == name);
                a.iter().all(|(name, _)| b.contains_key(&**name))
                    && b.iter().all(|(name, b)| last(name).is_some_and(|(_, a)| is_same(a, b)))
            }
            _ => false,
        }
    }

    fn check(body: &[u8]) {
        let shown = String::from_utf8_lossy(body);
        match (parse(body), serde_json::from_slice::<Value>(body)) {
            (Ok(ours), Ok(theirs)) => assert!(is_same(&ours, &theirs), "{shown}: {ours:?}"),
            (Err(Malformed), Err(_)) => {}
            (ours, theirs) => panic!("{shown}: {ours:?}, not {theirs:?}"),
        }
    }

    const GOOD: [&str; 8] = [
        r#"{"TableName":"t","Key":{"pk":{"S":"user#1"},"sk":{"N":"12"}}}"#,
        r#" { "a" : [ 1 , -2.5e+3 , "x\"y\u00e4\ud83d\ude00\\" , { } , [ ] ] , "" : null } "#,
        r#"[true,false,null,0,-0,-1,10,1.5,0.1,1e5,1E-7,9223372036854775807,-9223372036854775808]"#,
        r#"[9223372036854775808,18446744073709551616,1e308,123456789012345678901234567890]"#,
        r#""a text of more than sixty-four bytes, so that it is looked at by more than one step \n""#,
        r#"{"a":"ä€😀","ä":{"L":[{"M":{"b":{"BOOL":true}}},{"NULL":true}]}}"#,
        "\"\u{7f}\u{80}\"",
        "{\"a\":1,\"a\":2,\"b\":{\"S\":\"x\",\"N\":\"1\"}}",
    ];

    #[test]
    fn it_is_json_exactly_when_serde_json_says_so() {
        for good in GOOD {
            assert!(parse(good.as_bytes()).is_ok(), "{good}");
            check(good.as_bytes());
        }
        for body in [
            "",
            " ",
            "{",
            "}",
            "[1,]",
            "[,1]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "01",
            "-",
            "-01",
            "1.",
            ".5",
            "1e",
            "1e+",
            "+1",
            "1e999",
            "-1e999",
            "1e-999",
            "nul",
            "nulll",
            "tru",
            "\"",
            "\"\\",
            "\"\\\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\u12\"",
            "\"\u{1}\"",
            "\"\\\u{1}\"",
            "1 2",
            "[1 2]",
            "\u{feff}{}",
            "\"a\\",
            "NaN",
            "0x1",
            "--1",
        ] {
            check(body.as_bytes());
        }
        for levels in [126, 127, 128, 129] {
            check((("[".repeat(levels)) + &"]".repeat(levels)).as_bytes());
            check(("{\"a\":".repeat(levels) + "1" + &"}".repeat(levels)).as_bytes());
        }
    }

    #[test]
    fn what_would_become_a_tree_out_of_all_proportion_is_refused() {
        let nested = "[".repeat(100) + &"]".repeat(100);
        for part in ["[]", "[[]]", "[1,2]", "{\"\":{}}", "0", nested.as_str()] {
            let body = format!("[{}{part}]", format!("{part},").repeat((1 << 20) / part.len()));
            assert_eq!(parse(body.as_bytes()), Err(Malformed), "{}", part.get(..3).unwrap_or(part));
        }
    }

    #[test]
    fn typed_values_of_any_kind_and_number_are_read() {
        for value in [
            r#"{"S":""}"#,
            r#"{"N":"1"}"#,
            r#"{"S":"\n"}"#,
            r#"{"L":[]}"#,
            r#"{"M":{}}"#,
            r#"{"SS":["a"]}"#,
            r#"{"SS":["a","b"]}"#,
            r#"{"NS":["1","2","3"]}"#,
            r#"{"NS":["1","2","3","4","5"]}"#,
            r#"{"L":[{"L":[{"L":[{"S":""}]}]},{"S":""}]}"#,
            r#"{"M":{"a":{"S":""}}}"#,
            r#"{"M":{"a":{"S":""},"b":{"S":""},"c":{"S":""}}}"#,
            r#"{"M":{"a":{"M":{"a":{"M":{"a":{"NULL":true}}}}},"b":{"L":[{"M":{}}]}}}"#,
        ] {
            // Just grown is when the most of a list is not used yet.
            let mut counts = vec![1];
            while let Some(count) = counts.last().filter(|count| **count * value.len() < 1 << 20) {
                counts.push(count + growth(*count));
            }
            for count in counts {
                let list = format!("{{\"L\":[{}{value}]}}", format!("{value},").repeat(count));
                assert!(parse(list.as_bytes()).is_ok(), "{count} of {value}");
            }
        }
        let set: Vec<String> = (0..200_000).map(|n| format!("\"{n}\"")).collect();
        for count in (1..200).chain([1_000, 10_000, 65_537, 200_000]) {
            let body = format!("{{\"NS\":[{}]}}", set[..count].join(","));
            assert!(parse(body.as_bytes()).is_ok(), "{count}");
        }
    }

    #[test]
    fn a_changed_byte_makes_no_difference_between_the_two() {
        let random = SeededRandom::new(7);
        let below = |most: usize| (random.next_u64() % most as u64) as usize;
        let bytes = b"{}[]\",:\\ \n0123456789.eE+-tfnu\x00\x1f\x7f\x80\xc3\xff";
        for _ in 0..20_000 {
            let mut body = GOOD[below(GOOD.len())].as_bytes().to_vec();
            for _ in 0..=below(3) {
                let at = below(body.len());
                match below(3) {
                    0 => body[at] = bytes[below(bytes.len())],
                    1 => body.insert(at, bytes[below(bytes.len())]),
                    _ => _ = body.remove(at),
                }
            }
            check(&body);
        }
    }
}
