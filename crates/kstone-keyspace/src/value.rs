//! Borrowed views of values for the rules: which fields there are and of which type, without
//! copying them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The value of a field as the rules see it.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue<'v> {
    /// Bytes that may mean anything: all that Redis knows.
    Raw(&'v [u8]),
    /// Text.
    Text(Cow<'v, str>),
    /// A whole number.
    Int(i64),
    /// Another number.
    Number(f64),
    /// True or false.
    Bool(bool),
    /// Null.
    Null,
    /// A list. What its members hold in turn is not looked at.
    List(Vec<FieldValue<'v>>),
    /// A map.
    Map,
    /// Bytes that are known to be no text.
    Binary,
}

impl<'v> FieldValue<'v> {
    /// A number from its decimal digits, as DynamoDB writes it.
    pub fn number(digits: &str) -> FieldValue<'v> {
        if let Ok(whole) = digits.parse::<i64>() {
            return FieldValue::Int(whole);
        }
        digits.parse::<f64>().map_or(FieldValue::Binary, FieldValue::Number)
    }

    pub(crate) fn as_number(&self) -> Option<f64> {
        match self {
            FieldValue::Int(number) => Some(*number as f64),
            FieldValue::Number(number) => Some(*number),
            FieldValue::Raw(bytes) => (std::str::from_utf8(bytes).ok())
                .and_then(|text| text.parse::<f64>().ok())
                .filter(|number| number.is_finite()),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            FieldValue::Raw(bytes) => std::str::from_utf8(bytes).ok(),
            FieldValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The id that it may be: text, or a whole number by its digits.
    pub(crate) fn as_id(&self) -> Option<Cow<'_, str>> {
        match self {
            FieldValue::Int(number) => Some(Cow::Owned(number.to_string())),
            _ => self.as_text().map(Cow::Borrowed),
        }
    }

    /// A description of the value, for messages.
    pub(crate) fn describe(&self) -> String {
        /// Enough to recognise a value by; the rest of it stays out of logs.
        const SHOWN: usize = 40;
        let shorten = |text: &str| match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
            None => format!("{text:?}"),
        };
        match self {
            FieldValue::Raw(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => shorten(text),
                Err(_) => format!("{} bytes", bytes.len()),
            },
            FieldValue::Text(text) => shorten(text),
            FieldValue::Int(number) => number.to_string(),
            FieldValue::Number(number) => number.to_string(),
            FieldValue::Bool(truth) => truth.to_string(),
            FieldValue::Null => "null".to_owned(),
            FieldValue::List(_) => "a list".to_owned(),
            FieldValue::Map => "a map".to_owned(),
            FieldValue::Binary => "bytes".to_owned(),
        }
    }
}

/// A JSON text, one level deep.
#[derive(Debug, PartialEq)]
pub(crate) enum Json<'v> {
    Object(Vec<(Cow<'v, str>, FieldValue<'v>)>),
    Other(FieldValue<'v>),
}

impl<'v> Json<'v> {
    /// Reads a JSON text; says what is wrong with it, if anything is.
    pub(crate) fn parse(bytes: &'v [u8]) -> Result<Json<'v>, String> {
        let mut fields = Vec::new();
        let other = Json::read_whole(bytes, |name, value| fields.push((name, value)))?;
        Ok(other.map_or(Json::Object(fields), Json::Other))
    }

    /// Shows the fields of a JSON text that is an object, in their order and as far as it can be
    /// read, and keeps none of them; answers what it is if it is no object.
    pub(crate) fn read(
        bytes: &'v [u8],
        mut see: impl FnMut(&str, FieldValue<'v>),
    ) -> Result<Option<FieldValue<'v>>, String> {
        Json::read_whole(bytes, |name, value| see(&name, value))
    }

    /// Whether a JSON text is an object with such a field.
    pub(crate) fn has_field(bytes: &[u8], name: &str) -> bool {
        let mut has = false;
        Json::read(bytes, |given, _| has |= given == name).is_ok_and(|_| has)
    }

    #[inline]
    fn read_whole(
        bytes: &'v [u8],
        see: impl FnMut(Cow<'v, str>, FieldValue<'v>),
    ) -> Result<Option<FieldValue<'v>>, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = match text.trim_ascii_start().starts_with('{') {
            true => reader.deserialize_map(Object(see)).map(|()| None),
            false => Part { members: true }.deserialize(&mut reader).map(Some),
        };
        let whole = read.and_then(|json| reader.end().map(|()| json));
        whole.map_err(|error| error.to_string())
    }
}

/// The digits of a JSON text that is a whole number, of any length.
pub(crate) fn whole_number(json: &str) -> Option<&str> {
    let json = json.trim_ascii();
    let digits = json.strip_prefix('-').unwrap_or(json);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then_some(json)
}

/// Shows the fields of an object.
struct Object<S>(S);

impl<'de, S: FnMut(Cow<'de, str>, FieldValue<'de>)> Visitor<'de> for Object<S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Part { members: false })? {
            let FieldValue::Text(name) = name else {
                return Err(serde::de::Error::custom("a field's name is text"));
            };
            let value = map.next_value_seed(Part { members: true })?;
            (self.0)(name, value);
        }
        Ok(())
    }
}

/// Reads one value, of a list also its members.
#[derive(Clone, Copy)]
struct Part {
    members: bool,
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = FieldValue<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<FieldValue<'de>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = FieldValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FieldValue<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(FieldValue::Map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<FieldValue<'de>, A::Error> {
        let mut members = Vec::new();
        if !self.members {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
        }
        while let Some(member) = seq.next_element_seed(Part { members: false })? {
            members.push(member);
        }
        Ok(FieldValue::List(members))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<FieldValue<'de>, E> {
        Ok(match i64::try_from(number) {
            Ok(whole) => FieldValue::Int(whole),
            Err(_) => FieldValue::Number(number as f64),
        })
    }

    fn visit_f64<E>(self, number: f64) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Number(number))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Bool(truth))
    }

    fn visit_unit<E>(self) -> Result<FieldValue<'de>, E> {
        Ok(FieldValue::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_object_is_read_one_level_deep() {
        let text = br#"{"a": 1, "b": 0.5, "c\n": "x", "d": [1, [2]], "e": {"f": 1}, "g": null, "h": true}"#;
        let Json::Object(fields) = Json::parse(text).unwrap() else { panic!("an object") };
        let nested = FieldValue::List(vec![FieldValue::Int(1), FieldValue::List(Vec::new())]);
        let expected = [
            ("a", FieldValue::Int(1)),
            ("b", FieldValue::Number(0.5)),
            ("c\n", FieldValue::Text("x".into())),
            ("d", nested),
            ("e", FieldValue::Map),
            ("g", FieldValue::Null),
            ("h", FieldValue::Bool(true)),
        ];
        assert_eq!(fields.len(), expected.len());
        for ((name, value), (right_name, right)) in fields.iter().zip(expected) {
            assert_eq!((name.as_ref(), value), (right_name, &right));
        }
    }

    #[test]
    fn other_json_is_read_too_and_what_is_none_is_not() {
        assert_eq!(Json::parse(b"0.85"), Ok(Json::Other(FieldValue::Number(0.85))));
        assert_eq!(
            Json::parse(b"\"a\\u00e4\""),
            Ok(Json::Other(FieldValue::Text("a\u{e4}".into())))
        );
        let big = Json::parse(b"18446744073709551615").unwrap();
        assert_eq!(big, Json::Other(FieldValue::Number(18_446_744_073_709_551_615.0)));
        for wrong in [&b"{"[..], b"", b"{} {}", b"{\"a\":\xff}", b"nul", b"[1,]"] {
            assert!(Json::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn nesting_without_end_is_an_error_and_no_crash() {
        assert!(Json::parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn numbers_of_any_length_are_numbers() {
        assert_eq!(FieldValue::number("7"), FieldValue::Int(7));
        assert_eq!(FieldValue::number("1.5"), FieldValue::Number(1.5));
        assert!(matches!(FieldValue::number("12345678901234567890123"), FieldValue::Number(_)));
    }
}
