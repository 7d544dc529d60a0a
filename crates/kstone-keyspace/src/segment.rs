//! Segments of a pattern: `student:{student_id}:mastery:{date}` has four.

use std::fmt;

use crate::placeholder::{Placeholder, Slot};
use crate::text;

/// How many segments a pattern may have. A key with more matches none.
pub const SEGMENTS_MAX: usize = 12;

/// One segment of a pattern, between two colons.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Segment {
    /// This word.
    Literal(String),
    /// A placeholder, perhaps with something before or after it.
    Slot(Slot),
}

impl Segment {
    /// Whether this segment of a key fits. Does not allocate.
    pub fn accepts(&self, segment: &[u8]) -> bool {
        match self {
            Segment::Literal(word) => word.as_bytes() == segment,
            Segment::Slot(slot) => slot.capture(segment).is_some(),
        }
    }

    /// The placeholder, if there is one.
    pub fn slot(&self) -> Option<&Slot> {
        match self {
            Segment::Slot(slot) => Some(slot),
            Segment::Literal(_) => None,
        }
    }

    /// How literal the segment is: a word, one of a few words, a placeholder with text around it, a
    /// placeholder. Of two patterns for one key the more literal one wins.
    pub(crate) fn rank(&self) -> u32 {
        match self {
            Segment::Literal(_) => 3,
            Segment::Slot(slot) => slot.rank(),
        }
    }

    /// Whether some segment of a key may fit both. Says yes when it is not sure.
    pub(crate) fn meets(&self, other: &Segment) -> bool {
        match (self, other) {
            (Segment::Slot(one), Segment::Slot(another)) => one.meets(another),
            (Segment::Literal(word), segment) | (segment, Segment::Literal(word)) => {
                segment.accepts(word.as_bytes())
            }
        }
    }

    /// A segment that fits.
    pub(crate) fn example(&self) -> String {
        match self {
            Segment::Literal(word) => word.clone(),
            Segment::Slot(Slot { prefix, placeholder, suffix }) => {
                format!("{prefix}{}{suffix}", placeholder.kind.example())
            }
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segment::Literal(word) => f.write_str(word),
            Segment::Slot(Slot { prefix, placeholder, suffix }) => {
                write!(f, "{prefix}{{{}}}{suffix}", placeholder.name)
            }
        }
    }
}

/// An error in a pattern's text, with the bytes it is about.
#[derive(Debug)]
pub(crate) struct PatternError {
    pub(crate) span: std::ops::Range<usize>,
    pub(crate) what: String,
    pub(crate) help: String,
}

/// Reads a pattern's text; `placeholder` says what is known of a name.
pub(crate) fn parse(
    pattern: &str,
    mut placeholder: impl FnMut(&str) -> Result<Placeholder, String>,
) -> Result<Vec<Segment>, Vec<PatternError>> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut errors = Vec::new();
    let mut start = 0;
    for text in pattern.split(':') {
        let span = start..start + text.len();
        start = span.end + 1;
        match parse_segment(text, &mut placeholder) {
            Ok(segment) => segments.push(segment),
            Err((what, help)) => errors.push(PatternError { span, what, help }),
        }
    }
    for (at, segment) in segments.iter().enumerate() {
        let Some(slot) = segment.slot() else { continue };
        let name = &slot.placeholder.name;
        let same = |other: &Segment| other.slot().is_some_and(|it| it.placeholder.name == *name);
        if segments.iter().take(at).any(same) {
            errors.push(PatternError {
                span: 0..pattern.len(),
                what: format!("the placeholder `{{{name}}}` is there twice"),
                help: "give each its own name".to_owned(),
            });
        }
    }
    if segments.len() > SEGMENTS_MAX {
        errors.push(PatternError {
            span: 0..pattern.len(),
            what: format!("{} segments are too many", segments.len()),
            help: format!("at most {SEGMENTS_MAX} are matched"),
        });
    }
    match errors.is_empty() {
        true => Ok(segments),
        false => Err(errors),
    }
}

fn parse_segment(
    text: &str,
    placeholder: &mut impl FnMut(&str) -> Result<Placeholder, String>,
) -> Result<Segment, (String, String)> {
    if text.is_empty() {
        return Err((
            "an empty segment".to_owned(),
            "between two colons there is a word or a {placeholder}".to_owned(),
        ));
    }
    let literal = |part: &str| match part
        .chars()
        .find(|c| !matches!(u8::try_from(*c), Ok(b) if text::is_id_byte(b)))
    {
        Some(wrong) => Err((
            format!("`{wrong}` cannot stand in a key pattern"),
            "words are of A-Z a-z 0-9 _ . @ -, placeholders are {name}".to_owned(),
        )),
        None => Ok(part.to_owned()),
    };
    let Some((prefix, rest)) = text.split_once('{') else {
        return literal(text).map(Segment::Literal);
    };
    let Some((name, suffix)) = rest.split_once('}') else {
        return Err(("`{` without `}`".to_owned(), "a placeholder is {name}".to_owned()));
    };
    if suffix.contains('{') {
        return Err((
            "two placeholders in one segment".to_owned(),
            "put a `:` between them, so that it is clear where one ends".to_owned(),
        ));
    }
    let placeholder = placeholder(name)
        .map_err(|help| (format!("the placeholder `{{{name}}}` has no type"), help))?;
    Ok(Segment::Slot(Slot { prefix: literal(prefix)?, placeholder, suffix: literal(suffix)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placeholder::Kind;

    fn read(pattern: &str) -> Result<Vec<Segment>, Vec<PatternError>> {
        parse(pattern, |name| match name {
            "nobody" => Err("declare it".to_owned()),
            _ => Ok(Placeholder { name: name.to_owned(), kind: Kind::Id, except: Vec::new() }),
        })
    }

    #[test]
    fn a_pattern_is_words_and_placeholders() {
        let segments = read("student:{id}:prediction:{n}days").unwrap();
        let shown: Vec<String> = segments.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["student", "{id}", "prediction", "{n}days"]);
        assert_eq!(segments.iter().map(Segment::rank).collect::<Vec<_>>(), [3, 0, 3, 1]);
        assert!(segments[3].accepts(b"7days") && !segments[3].accepts(b"7weeks"));
    }

    #[test]
    fn what_is_wrong_in_a_pattern_is_pointed_at() {
        let check = |pattern: &str, span: std::ops::Range<usize>, what: &str| {
            let errors = read(pattern).unwrap_err();
            assert_eq!((errors[0].span.clone(), errors[0].what.as_str()), (span, what));
        };
        check("a::b", 2..2, "an empty segment");
        check("a:b c", 2..5, "` ` cannot stand in a key pattern");
        check("a:{b", 2..4, "`{` without `}`");
        check("a:b}", 2..4, "`}` cannot stand in a key pattern");
        check("a:{b}-{c}", 2..9, "two placeholders in one segment");
        check("a:{nobody}", 2..10, "the placeholder `{nobody}` has no type");
        check("a:{b}:{b}", 0..9, "the placeholder `{b}` is there twice");
        check("a:a:a:a:a:a:a:a:a:a:a:a:a", 0..25, "13 segments are too many");
    }
}
