//! The types of fields and whole values.

use std::fmt;

use crate::date::{Date, is_utc_time};
use crate::placeholder::Kind;
use crate::text;
use crate::value::FieldValue;

/// What a field may hold.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldType {
    /// Anything.
    Any,
    /// Text of so many characters.
    Text {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A whole number in this range.
    Int(Range),
    /// A number in this range.
    Number(Range),
    /// True or false.
    Bool,
    /// A moment in UTC: `2026-01-14T10:30:00Z`.
    Time,
    /// A day: `2026-01-14`.
    Date,
    /// An id, as in keys.
    Id,
    /// A list.
    List,
    /// A map.
    Map,
    /// One of these texts.
    OneOf(Vec<Choice>),
}

/// A range of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least.
    pub min: f64,
    /// Whether the least is itself outside.
    pub above_min: bool,
    /// The greatest.
    pub max: f64,
}

/// A text that a value may be: a word, or a word with something of a type in it, such as
/// `percentage:{int 0..100}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    prefix: String,
    varied: Option<(Kind, String)>,
}

/// A field of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it may hold.
    pub kind: FieldType,
    /// Whether it may be missing or null.
    pub optional: bool,
}

impl Range {
    const ALL: Range = Range { min: f64::NEG_INFINITY, above_min: false, max: f64::INFINITY };

    fn parse(text: &str) -> Option<Range> {
        let (least, most) = text.split_once("..")?;
        let (above_min, least) = match least.strip_prefix('>') {
            Some(least) => (true, least),
            None => (false, least),
        };
        let number = |text: &str, otherwise: f64| match text.trim() {
            "" => Some(otherwise),
            text => text.parse::<f64>().ok().filter(|number| number.is_finite()),
        };
        let range = Range {
            min: number(least, f64::NEG_INFINITY)?,
            above_min,
            max: number(most, f64::INFINITY)?,
        };
        (range.min <= range.max).then_some(range)
    }

    fn contains(&self, number: f64) -> bool {
        let above = if self.above_min { number > self.min } else { number >= self.min };
        above && number <= self.max
    }
}

impl FieldType {
    /// The types that a catalogue can name.
    pub(crate) const NAMES: [&str; 10] =
        ["any", "text", "int", "number", "bool", "time", "date", "id", "list", "map"];
    /// How a catalogue writes them, for its errors.
    pub(crate) const FORMS: &str = "write one of any, text, text 1..200, int, int 0..100, number, \
        number 0..1, number >0.., bool, time, date, id, list, map, or a list of words";

    /// The type as a catalogue writes it: `text`, `number 0..1`.
    pub(crate) fn parse(text: &str) -> Option<FieldType> {
        let text = text.trim();
        let (name, range) = match text.split_once(' ') {
            Some((name, range)) => (name, Some(range.trim())),
            None => (text, None),
        };
        Some(match (name, range) {
            ("any", None) => FieldType::Any,
            ("text", None) => FieldType::Text { min: 0, max: u64::MAX },
            ("text", Some(range)) => {
                let (min, max) = range.split_once("..")?;
                let (min, max) = (min.parse().ok()?, max.parse().ok()?);
                (min <= max).then_some(FieldType::Text { min, max })?
            }
            ("int", None) => FieldType::Int(Range::ALL),
            ("int", Some(range)) => FieldType::Int(Range::parse(range)?),
            ("number", None) => FieldType::Number(Range::ALL),
            ("number", Some(range)) => FieldType::Number(Range::parse(range)?),
            ("bool", None) => FieldType::Bool,
            ("time", None) => FieldType::Time,
            ("date", None) => FieldType::Date,
            ("id", None) => FieldType::Id,
            ("list", None) => FieldType::List,
            ("map", None) => FieldType::Map,
            _ => return None,
        })
    }

    /// Whether the value is of the type.
    pub fn accepts(&self, value: &FieldValue<'_>) -> bool {
        let text = || match value {
            FieldValue::Text(text) => Some(text.as_bytes()),
            FieldValue::Raw(bytes) => Some(*bytes),
            _ => None,
        };
        match self {
            FieldType::Any => true,
            FieldType::Text { min, max } => (text())
                .and_then(|text| std::str::from_utf8(text).ok())
                .is_some_and(|text| (*min..=*max).contains(&(text.chars().count() as u64))),
            FieldType::Int(range) => (value.as_number())
                .is_some_and(|number| number.fract() == 0.0 && range.contains(number)),
            FieldType::Number(range) => {
                value.as_number().is_some_and(|number| range.contains(number))
            }
            FieldType::Bool => {
                matches!(value, FieldValue::Bool(_) | FieldValue::Raw(b"true" | b"false"))
            }
            FieldType::Time => text().is_some_and(is_utc_time),
            FieldType::Date => text().is_some_and(|text| Date::from_bytes(text).is_some()),
            FieldType::Id => text().is_some_and(text::is_id),
            FieldType::List => matches!(value, FieldValue::List(_)),
            FieldType::Map => matches!(value, FieldValue::Map),
            FieldType::OneOf(choices) => {
                text().is_some_and(|text| choices.iter().any(|choice| choice.accepts(text)))
            }
        }
    }
}

impl Choice {
    pub(crate) fn parse(text: &str) -> Option<Choice> {
        let Some((prefix, rest)) = text.split_once('{') else {
            return Some(Choice { prefix: text.to_owned(), varied: None });
        };
        let (kind, suffix) = rest.split_once('}')?;
        let varied = Some((Kind::parse(kind)?, suffix.to_owned()));
        Some(Choice { prefix: prefix.to_owned(), varied })
    }

    fn accepts(&self, text: &[u8]) -> bool {
        match &self.varied {
            None => text == self.prefix.as_bytes(),
            Some((kind, suffix)) => (text.strip_prefix(self.prefix.as_bytes()))
                .and_then(|rest| rest.strip_suffix(suffix.as_bytes()))
                .is_some_and(|part| kind.accepts(part)),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.varied {
            None => f.write_str(&self.prefix),
            Some((kind, suffix)) => write!(f, "{}{{{kind}}}{suffix}", self.prefix),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = if self.above_min { "above" } else { "from" };
        match (self.min.is_finite(), self.max.is_finite()) {
            (true, true) => write!(f, " {from} {} to {}", self.min, self.max),
            (true, false) => write!(f, " {from} {}", self.min),
            (false, true) => write!(f, " up to {}", self.max),
            (false, false) => Ok(()),
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldType::Any => f.write_str("anything"),
            FieldType::Text { min: 0, max: u64::MAX } => f.write_str("text"),
            FieldType::Text { min, max } => write!(f, "text of {min} to {max} characters"),
            FieldType::Int(range) => write!(f, "a whole number{range}"),
            FieldType::Number(range) => write!(f, "a number{range}"),
            FieldType::Bool => f.write_str("true or false"),
            FieldType::Time => f.write_str("a moment such as 2026-01-14T10:30:00Z"),
            FieldType::Date => f.write_str("a day such as 2026-01-14"),
            FieldType::Id => f.write_str("an id"),
            FieldType::List => f.write_str("a list"),
            FieldType::Map => f.write_str("a map"),
            FieldType::OneOf(choices) => {
                let words: Vec<String> = choices.iter().map(|it| format!("`{it}`")).collect();
                f.write_str(&words.join(" or "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(kind: &str, value: &str) -> bool {
        FieldType::parse(kind).unwrap().accepts(&FieldValue::Raw(value.as_bytes()))
    }

    #[test]
    fn bytes_of_redis_are_read_as_what_the_field_says() {
        assert!(raw("int", "-5") && raw("int 0..9", "9") && !raw("int 0..9", "10"));
        assert!(!raw("int", "1.5") && raw("number", "1.5") && !raw("number", "NaN"));
        assert!(raw("number >0..", "0.01") && !raw("number >0..", "0"));
        assert!(raw("bool", "true") && !raw("bool", "yes"));
        assert!(raw("text 1..3", "äöü") && !raw("text 1..3", "") && !raw("text 1..3", "abcd"));
        assert!(raw("time", "2026-01-14T10:30:00Z") && raw("date", "2026-01-14"));
        assert!(!raw("list", "[]") && !raw("map", "{}"));
    }

    #[test]
    fn a_number_in_quotes_is_no_number_where_the_format_has_numbers() {
        let number = FieldType::parse("number").unwrap();
        assert!(!number.accepts(&FieldValue::Text("1".into())));
        assert!(number.accepts(&FieldValue::Int(1)));
    }

    #[test]
    fn a_choice_may_have_something_of_a_type_in_it() {
        let choices = ["true", "false", "percentage:{int 0..100}"];
        let flag = FieldType::OneOf(choices.iter().map(|it| Choice::parse(it).unwrap()).collect());
        let accepts = |value: &str| flag.accepts(&FieldValue::Raw(value.as_bytes()));
        assert!(accepts("true") && accepts("percentage:50"));
        assert!(!accepts("percentage:101") && !accepts("percentage:") && !accepts("maybe"));
        assert_eq!(flag.to_string(), "`true` or `false` or `percentage:{int 0..100}`");
    }

    #[test]
    fn what_is_no_type_is_not_read_as_one() {
        for wrong in ["", "float", "int 5..1", "text 1", "number a..b", "bool 0..1", "number ..NaN"]
        {
            assert_eq!(FieldType::parse(wrong), None, "{wrong}");
        }
    }
}
