//! Ranges of a sorted set as commands spell them: `(1 +inf`, `[a (c`, `-5 -1`.

use std::ops::Range;

use crate::args;
use crate::fault::{Fault, Result};

/// Scores from one to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScoreRange {
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Whether the ends themselves do not belong to it.
    pub(crate) min_open: bool,
    pub(crate) max_open: bool,
}

impl ScoreRange {
    pub(crate) fn parse(min: &[u8], max: &[u8]) -> Result<ScoreRange> {
        let ((min, min_open), (max, max_open)) = (score_end(min)?, score_end(max)?);
        Ok(ScoreRange { min, max, min_open, max_open })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.min > self.max || (self.min == self.max && (self.min_open || self.max_open))
    }

    /// Whether a score is too low.
    pub(crate) fn is_below(&self, score: f64) -> bool {
        if self.min_open { score <= self.min } else { score < self.min }
    }

    /// Whether a score is too high.
    pub(crate) fn is_above(&self, score: f64) -> bool {
        if self.max_open { score >= self.max } else { score > self.max }
    }
}

fn score_end(text: &[u8]) -> Result<(f64, bool)> {
    let (number, is_open) = match text.strip_prefix(b"(") {
        Some(number) => (number, true),
        None => (text, false),
    };
    // C reads nothing as zero.
    let number = if number.is_empty() { Some(0.0) } else { args::parse_float(number) };
    match number {
        Some(number) => Ok((number, is_open)),
        None => Err(Fault::fixed("ERR min or max is not a float")),
    }
}

/// One end of a range of names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LexEnd<'a> {
    /// Before all names.
    Lowest,
    /// After all names.
    Highest,
    /// At a name, which belongs to it or not.
    At { name: &'a [u8], is_open: bool },
}

/// Names from one to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LexRange<'a> {
    pub(super) min: LexEnd<'a>,
    pub(super) max: LexEnd<'a>,
}

impl<'a> LexRange<'a> {
    pub(super) fn parse(min: &'a [u8], max: &'a [u8]) -> Result<LexRange<'a>> {
        Ok(LexRange { min: lex_end(min)?, max: lex_end(max)? })
    }

    pub(super) fn is_empty(&self) -> bool {
        match (self.min, self.max) {
            (LexEnd::Highest, _) | (_, LexEnd::Lowest) => true,
            (LexEnd::At { name: min, is_open: a }, LexEnd::At { name: max, is_open: b }) => {
                min > max || (min == max && (a || b))
            }
            (LexEnd::Lowest, _) | (_, LexEnd::Highest) => false,
        }
    }

    /// Whether a name comes before it.
    pub(super) fn is_below(&self, name: &[u8]) -> bool {
        match self.min {
            LexEnd::Lowest => false,
            LexEnd::Highest => true,
            LexEnd::At { name: min, is_open: true } => name <= min,
            LexEnd::At { name: min, is_open: false } => name < min,
        }
    }

    /// Whether a name comes after it.
    pub(super) fn is_above(&self, name: &[u8]) -> bool {
        match self.max {
            LexEnd::Lowest => true,
            LexEnd::Highest => false,
            LexEnd::At { name: max, is_open: true } => name >= max,
            LexEnd::At { name: max, is_open: false } => name > max,
        }
    }
}

fn lex_end(text: &[u8]) -> Result<LexEnd<'_>> {
    match text {
        b"-" => Ok(LexEnd::Lowest),
        b"+" => Ok(LexEnd::Highest),
        [b'[', name @ ..] => Ok(LexEnd::At { name, is_open: false }),
        [b'(', name @ ..] => Ok(LexEnd::At { name, is_open: true }),
        _ => Err(Fault::fixed("ERR min or max not valid string range item")),
    }
}

/// The positions from `start` to `stop`, both counted from the end if negative, in a set of `len`.
pub(super) fn positions(start: i64, stop: i64, len: usize) -> Range<usize> {
    let len = len as i64;
    let from_end = |index: i64| if index < 0 { len.saturating_add(index) } else { index };
    let start = from_end(start).max(0);
    let stop = from_end(stop).min(len - 1);
    if start > stop {
        return 0..0;
    }
    start as usize..stop as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_clipped_to_the_set() {
        for (start, stop, expected) in [
            (0, -1, 0..5),
            (-2, -1, 3..5),
            (-100, 100, 0..5),
            (3, 2, 0..0),
            (5, 9, 0..0),
            (0, -6, 0..0),
            (i64::MIN, i64::MAX, 0..5),
        ] {
            assert_eq!(positions(start, stop, 5), expected, "{start} {stop}");
        }
        assert_eq!(positions(0, -1, 0), 0..0);
    }

    #[test]
    fn ends_of_ranges_are_read_as_redis_reads_them() {
        let range = ScoreRange::parse(b"(1", b"+inf").unwrap();
        assert!(range.is_below(1.0) && !range.is_below(1.5) && !range.is_above(f64::INFINITY));
        assert!(ScoreRange::parse(b"a", b"1").is_err());
        assert!(ScoreRange::parse(b"1", b"nan").is_err());
        assert!(LexRange::parse(b"[a", b"b").is_err());
        assert!(LexRange::parse(b"", b"+").is_err());
        assert!(LexRange::parse(b"(a", b"[a").unwrap().is_empty());
        assert!(LexRange::parse(b"+", b"-").unwrap().is_empty());
        assert!(!LexRange::parse(b"-", b"+").unwrap().is_empty());
    }
}
