//! Placeholders: the types of values that may stand for `{name}` in a pattern.

use std::fmt;

use crate::date::{Date, MILLIS_DIGITS, MILLIS_MAX, Millis};
use crate::text;

/// The type of a placeholder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 1 to 128 of `A-Z a-z 0-9 _ . @ -`.
    Id,
    /// Any text of 1 to 128 bytes; what no id may have is percent-escaped in the key.
    Text,
    /// A day: `2026-01-14`.
    Date,
    /// A UUID: `550e8400-e29b-41d4-a716-446655440000`.
    Uuid,
    /// Milliseconds since 1970, in 13 digits.
    Millis,
    /// A whole number without leading zeros.
    Int {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// One of these words.
    OneOf(Vec<String>),
}

impl Kind {
    /// Any whole number.
    pub const INT: Kind = Kind::Int { min: 0, max: u64::MAX };
    /// The types that a catalogue can name, without the words of a choice.
    pub(crate) const NAMES: [&str; 6] = ["id", "text", "date", "uuid", "millis", "int"];

    /// The type as a catalogue writes it: `id`, `int 1..365`.
    pub(crate) fn parse(text: &str) -> Option<Kind> {
        Some(match text.trim() {
            "id" => Kind::Id,
            "text" => Kind::Text,
            "date" => Kind::Date,
            "uuid" => Kind::Uuid,
            "millis" => Kind::Millis,
            "int" => Kind::INT,
            other => {
                let (min, max) = other.strip_prefix("int ")?.trim().split_once("..")?;
                let (min, max) = (min.parse().ok()?, max.parse().ok()?);
                (min <= max).then_some(Kind::Int { min, max })?
            }
        })
    }

    /// Whether this part of a key is of the type. Does not allocate.
    pub fn accepts(&self, part: &[u8]) -> bool {
        match self {
            Kind::Id => text::is_id(part),
            Kind::Text => text::is_escaped(part),
            Kind::Date => Date::from_bytes(part).is_some(),
            Kind::Uuid => is_uuid(part),
            Kind::Millis => Millis::from_bytes(part).is_some(),
            Kind::Int { min, max } => {
                whole_number(part).is_some_and(|value| (*min..=*max).contains(&value))
            }
            Kind::OneOf(words) => words.iter().any(|word| word.as_bytes() == part),
        }
    }

    /// What this value looks like in a key; `None` when it is not of the type.
    pub(crate) fn write(&self, value: &str) -> Option<String> {
        let mut part = String::with_capacity(value.len());
        match self {
            Kind::Text => text::escape_into(value, &mut part),
            _ => part.push_str(value),
        }
        self.accepts(part.as_bytes()).then_some(part)
    }

    /// The value that this part of a key stands for; `None` when it is not of the type.
    pub(crate) fn read(&self, part: &[u8]) -> Option<String> {
        match self {
            Kind::Text => text::unescaped(part),
            _ if self.accepts(part) => Some(String::from_utf8_lossy(part).into_owned()),
            _ => None,
        }
    }

    /// A value of the type, for examples.
    pub(crate) fn example(&self) -> String {
        match self {
            Kind::Id => "abc1".to_owned(),
            Kind::Text => "any%20text".to_owned(),
            Kind::Date => "2026-01-14".to_owned(),
            Kind::Uuid => "550e8400-e29b-41d4-a716-446655440000".to_owned(),
            Kind::Millis => "1768386600000".to_owned(),
            Kind::Int { min, max } => 7.clamp(*min, *max).to_string(),
            Kind::OneOf(words) => words.first().cloned().unwrap_or_default(),
        }
    }

    /// Whether some value is of both types.
    fn meets(&self, other: &Kind) -> bool {
        use Kind::{Date, Id, Int, Millis, OneOf, Text, Uuid};
        match (self, other) {
            (OneOf(words), kind) | (kind, OneOf(words)) => {
                words.iter().any(|word| kind.accepts(word.as_bytes()))
            }
            (Id | Text, _) | (_, Id | Text) => true,
            (Int { min: a, max: b }, Int { min: c, max: d }) => a <= d && c <= b,
            (Int { min, max }, Millis) | (Millis, Int { min, max }) => {
                *min <= MILLIS_MAX && *max >= 10_u64.pow(MILLIS_DIGITS as u32 - 1)
            }
            (Date, Date) | (Uuid, Uuid) | (Millis, Millis) => true,
            (Date | Uuid | Int { .. } | Millis, _) => false,
        }
    }

    /// Whether a value of the type may have this letter in it.
    fn may_hold(&self, byte: u8) -> bool {
        match self {
            Kind::Id => text::is_id_byte(byte),
            Kind::Text => text::is_id_byte(byte) || byte == b'%',
            Kind::Date => byte.is_ascii_digit() || byte == b'-',
            Kind::Uuid => byte.is_ascii_hexdigit() || byte == b'-',
            Kind::Millis | Kind::Int { .. } => byte.is_ascii_digit(),
            Kind::OneOf(words) => words.iter().any(|word| word.as_bytes().contains(&byte)),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Id => f.write_str("id"),
            Kind::Text => f.write_str("text"),
            Kind::Date => f.write_str("date"),
            Kind::Uuid => f.write_str("uuid"),
            Kind::Millis => f.write_str("millis"),
            Kind::Int { min: 0, max: u64::MAX } => f.write_str("int"),
            Kind::Int { min, max } => write!(f, "int {min}..{max}"),
            Kind::OneOf(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

/// A named placeholder of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Placeholder {
    /// Its name, as in `{student_id}`.
    pub name: String,
    /// What may stand there.
    pub kind: Kind,
    /// Parts that may not stand there, though they are of the type. One that ends in `*` means all
    /// that begin so.
    pub except: Vec<String>,
}

impl Placeholder {
    /// Whether this part of a key may stand here. Does not allocate.
    pub fn accepts(&self, part: &[u8]) -> bool {
        self.kind.accepts(part) && (self.except.is_empty() || !excepts(&self.except, part))
    }

    /// What may stand here, in words.
    pub fn expected(&self) -> String {
        let kind = match &self.kind {
            Kind::Id => "1 to 128 of A-Z a-z 0-9 _ . @ -".to_owned(),
            Kind::Text => "1 to 128 bytes of text".to_owned(),
            Kind::Date => "a day such as 2026-01-14".to_owned(),
            Kind::Uuid => "a UUID".to_owned(),
            Kind::Millis => "milliseconds since 1970, in 13 digits".to_owned(),
            Kind::Int { min, max: u64::MAX } => format!("a whole number from {min}"),
            Kind::Int { min, max } => format!("a whole number from {min} to {max}"),
            kind @ Kind::OneOf(_) => kind.to_string(),
        };
        match self.except.is_empty() {
            true => kind,
            false => format!("{kind}, but not {}", self.except.join(", ")),
        }
    }

    /// What this value looks like in a key.
    pub fn write(&self, value: &str) -> Result<String, PartError> {
        (self.kind.write(value).filter(|part| self.accepts(part.as_bytes())))
            .ok_or_else(|| PartError::new(&self.name, self.expected(), value))
    }
}

pub(crate) fn excepts<S: AsRef<str>>(except: &[S], part: &[u8]) -> bool {
    except.iter().any(|word| match word.as_ref().as_bytes() {
        [prefix @ .., b'*'] => part.starts_with(prefix),
        whole => part == whole,
    })
}

/// The error that a value is not allowed for a placeholder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{placeholder}: must be {expected}, and is {found:?}")]
pub struct PartError {
    /// Which placeholder.
    pub placeholder: String,
    /// What may stand there.
    pub expected: String,
    /// What was given.
    pub found: String,
}

impl PartError {
    pub(crate) fn new(placeholder: &str, expected: String, found: &str) -> PartError {
        PartError { placeholder: placeholder.to_owned(), expected, found: found.to_owned() }
    }
}

/// A placeholder with what stands around it in its segment: `album-{index}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Slot {
    /// What comes before, often nothing.
    pub prefix: String,
    /// The placeholder.
    pub placeholder: Placeholder,
    /// What comes after, often nothing.
    pub suffix: String,
}

impl Slot {
    /// What stands in the placeholder's place in this segment; `None` when the segment is another.
    pub fn capture<'k>(&self, segment: &'k [u8]) -> Option<&'k [u8]> {
        let part =
            (segment.strip_prefix(self.prefix.as_bytes()))?.strip_suffix(self.suffix.as_bytes())?;
        self.placeholder.accepts(part).then_some(part)
    }

    fn is_bare(&self) -> bool {
        self.prefix.is_empty() && self.suffix.is_empty()
    }

    /// How literal the segment is, compared with one that is only a placeholder. See
    /// [`Segment::rank`](crate::Segment).
    pub(crate) fn rank(&self) -> u32 {
        match (&self.placeholder.kind, self.is_bare()) {
            (Kind::OneOf(_), _) => 2,
            (_, false) => 1,
            (_, true) => 0,
        }
    }

    /// Whether some segment may be of both. Says yes when it is not sure.
    pub(crate) fn meets(&self, other: &Slot) -> bool {
        let (ours, theirs) = (&self.placeholder, &other.placeholder);
        for (one, another) in [(self, other), (other, self)] {
            if let Kind::OneOf(words) = &one.placeholder.kind {
                let whole = |word: &String| format!("{}{word}{}", one.prefix, one.suffix);
                let both = |word: &String| {
                    one.placeholder.accepts(word.as_bytes())
                        && another.capture(whole(word).as_bytes()).is_some()
                };
                return words.iter().any(both);
            }
            let shut_out = |word: &String| {
                let prefix = word.strip_suffix('*');
                prefix.is_some_and(|prefix| {
                    another.prefix.starts_with(&format!("{}{prefix}", one.prefix))
                })
            };
            if one.placeholder.except.iter().any(shut_out) {
                return false;
            }
        }
        if self.prefix == other.prefix && self.suffix == other.suffix {
            return ours.kind.meets(&theirs.kind);
        }
        // What one of them spells out must fit into the other's placeholder.
        let holds = |kind: &Kind, extra: &str| extra.bytes().all(|byte| kind.may_hold(byte));
        let prefixes = match (
            self.prefix.strip_prefix(&other.prefix),
            other.prefix.strip_prefix(&self.prefix),
        ) {
            (Some(extra), _) => holds(&theirs.kind, extra),
            (None, Some(extra)) => holds(&ours.kind, extra),
            (None, None) => false,
        };
        let suffixes = match (
            self.suffix.strip_suffix(&other.suffix),
            other.suffix.strip_suffix(&self.suffix),
        ) {
            (Some(extra), _) => holds(&theirs.kind, extra),
            (None, Some(extra)) => holds(&ours.kind, extra),
            (None, None) => false,
        };
        prefixes && suffixes
    }
}

fn is_uuid(part: &[u8]) -> bool {
    part.len() == 36
        && part.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A number in the one form that keys allow: no sign, no leading zero.
fn whole_number(part: &[u8]) -> Option<u64> {
    if part.is_empty() || part.len() > 1 && part[0] == b'0' {
        return None;
    }
    part.iter().try_fold(0_u64, |sum, digit| match digit {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(prefix: &str, kind: &str, suffix: &str) -> Slot {
        let placeholder =
            Placeholder { name: "x".into(), kind: Kind::parse(kind).unwrap(), except: Vec::new() };
        Slot { prefix: prefix.into(), placeholder, suffix: suffix.into() }
    }

    #[test]
    fn each_type_accepts_its_own_form_only() {
        let accepts = |kind: &str, part: &str| Kind::parse(kind).unwrap().accepts(part.as_bytes());
        assert!(accepts("int", "0") && accepts("int", "18446744073709551615"));
        assert!(!accepts("int", "007") && !accepts("int", "-1") && !accepts("int", ""));
        assert!(!accepts("int", "18446744073709551616"));
        assert!(accepts("int 1..365", "365") && !accepts("int 1..365", "366"));
        assert!(accepts("uuid", "550e8400-e29b-41d4-a716-446655440000"));
        assert!(!accepts("uuid", "550e8400-e29b-41d4-a716-44665544000g"));
        assert!(!accepts("uuid", "550e8400e29b41d4a716446655440000"));
        assert!(accepts("millis", "1768386600000") && !accepts("millis", "1768386600"));
        assert!(accepts("text", "a%3Ab") && !accepts("text", "a b") && !accepts("id", "a%3Ab"));
        assert_eq!(Kind::parse("int 5..1"), None);
        assert_eq!(Kind::parse("number"), None);
    }

    #[test]
    fn a_refused_value_is_named_with_its_placeholder() {
        let placeholder = slot("", "id", "").placeholder;
        let error = placeholder.write("a:b").unwrap_err().to_string();
        assert_eq!(error, "x: must be 1 to 128 of A-Z a-z 0-9 _ . @ -, and is \"a:b\"");
    }

    #[test]
    fn types_that_share_no_value_do_not_meet() {
        for (one, other, both) in [
            ("id", "date", true),
            ("text", "uuid", true),
            ("date", "uuid", false),
            ("date", "int", false),
            ("int", "millis", true),
            ("int 0..999", "millis", false),
            ("int 0..5", "int 5..9", true),
            ("int 0..4", "int 5..9", false),
        ] {
            assert_eq!(slot("", one, "").meets(&slot("", other, "")), both, "{one} {other}");
            assert_eq!(slot("", other, "").meets(&slot("", one, "")), both, "{other} {one}");
        }
    }

    #[test]
    fn what_is_spelled_out_must_fit_into_the_other_placeholder() {
        assert!(slot("album-", "int", "").meets(&slot("", "id", "")));
        assert!(!slot("album-", "int", "").meets(&slot("", "int", "")));
        assert!(!slot("album-", "int", "").meets(&slot("task-", "id", "")));
        assert!(!slot("", "int", "days").meets(&slot("", "int", "weeks")));
        assert!(slot("", "int", "days").meets(&slot("", "id", "s")));
        let mut execution = slot("", "id", "");
        execution.placeholder.except = vec!["task-*".into()];
        assert!(!execution.meets(&slot("task-", "id", "")));
        assert!(execution.meets(&slot("t", "id", "")));
    }
}
