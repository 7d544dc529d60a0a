//! Detects patterns that match the same keys, and decides which of the two wins.

use crate::pattern::Pattern;
use crate::problem::Problem;
use crate::segment::Segment;

/// How the key sets of two patterns relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// No key matches both.
    Apart,
    /// The first is more literal somewhere and less nowhere.
    FirstWins,
    /// The second is.
    SecondWins,
    /// Neither is.
    Undecided,
}

pub(crate) fn overlap(one: &[Segment], other: &[Segment]) -> Overlap {
    let pairs = || one.iter().zip(other);
    if one.len() != other.len() || !pairs().all(|(a, b)| a.meets(b)) {
        return Overlap::Apart;
    }
    let first = pairs().any(|(a, b)| a.rank() > b.rank());
    let second = pairs().any(|(a, b)| a.rank() < b.rank());
    match (first, second) {
        (true, false) => Overlap::FirstWins,
        (false, true) => Overlap::SecondWins,
        _ => Overlap::Undecided,
    }
}

/// The problem of two overlapping patterns of one store, of which `later` is declared later.
pub(crate) fn check(earlier: &Pattern, later: &Pattern) -> Option<Problem> {
    let (winner, loser) = match overlap(&earlier.segments, &later.segments) {
        Overlap::Apart => return None,
        Overlap::FirstWins => (earlier, later),
        Overlap::SecondWins => (later, earlier),
        Overlap::Undecided => {
            let example = match example(earlier, later) {
                Some(key) => format!(", as `{key}` does"),
                None => String::new(),
            };
            let what = format!(
                "a key may match both `{later}` ({}) and `{earlier}` ({}, {}){example}, and \
                 neither is the more literal one",
                later.full_name(),
                earlier.full_name(),
                earlier.at,
            );
            let help = "put a word of its own into one of them, or give their placeholders types \
                that exclude each other";
            return Some(Problem::error(&later.at, what, help));
        }
    };
    if !loser.written {
        return None;
    }
    let pairs = winner.segments.iter().zip(&loser.segments);
    let (said, open) = pairs.filter(|(a, b)| a.rank() > b.rank()).find_map(|(a, b)| {
        let word = match a {
            Segment::Literal(word) => word.clone(),
            Segment::Slot(slot) if slot.suffix.is_empty() && !slot.prefix.is_empty() => {
                format!("{}*", slot.prefix)
            }
            Segment::Slot(_) => a.example(),
        };
        Some((word, &b.slot()?.placeholder.name))
    })?;
    let what = format!(
        "where `{{{open}}}` is `{said}`, a key of `{loser}` ({}) belongs to `{winner}` ({})",
        loser.full_name(),
        winner.full_name(),
    );
    let help =
        format!("to keep them apart, give `{open}` except = [\"{said}\"] under [placeholders]");
    Some(Problem::warning(&loser.at, what, help))
}

/// A key that matches both, if one is easily found.
fn example(one: &Pattern, other: &Pattern) -> Option<String> {
    let mut segments = Vec::new();
    for (a, b) in one.segments.iter().zip(&other.segments) {
        let candidates = [a.example(), b.example()];
        let both = |text: &&String| a.accepts(text.as_bytes()) && b.accepts(text.as_bytes());
        segments.push(candidates.iter().find(both)?.clone());
    }
    Some(segments.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placeholder::{Kind, Placeholder};

    fn segments(pattern: &str) -> Vec<Segment> {
        crate::segment::parse(pattern, |name| {
            let kind = match name {
                "choice" => Kind::OneOf(vec!["a".into(), "b".into()]),
                _ => Kind::parse(name).unwrap(),
            };
            Ok(Placeholder { name: name.into(), kind, except: Vec::new() })
        })
        .unwrap()
    }

    fn check(one: &str, other: &str, expected: Overlap) {
        assert_eq!(overlap(&segments(one), &segments(other)), expected, "{one} {other}");
    }

    #[test]
    fn patterns_that_share_no_key_are_apart() {
        check("a:{id}", "a:{id}:b", Overlap::Apart);
        check("a:{id}", "b:{id}", Overlap::Apart);
        check("a:{date}", "a:{int}", Overlap::Apart);
        check("a:{choice}", "a:c", Overlap::Apart);
    }

    #[test]
    fn a_word_beats_a_choice_which_beats_text_around_a_placeholder_which_beats_a_placeholder() {
        check("a:b", "a:{id}", Overlap::FirstWins);
        check("a:{id}", "a:b", Overlap::SecondWins);
        check("x:a", "x:{choice}", Overlap::FirstWins);
        check("x:{choice}", "x:{id}", Overlap::FirstWins);
        check("x:n{int}", "x:{id}", Overlap::FirstWins);
        check("ratelimit:global:{text}", "ratelimit:{text}:{id}", Overlap::FirstWins);
    }

    #[test]
    fn what_no_word_separates_is_undecided() {
        check("a:{id}", "a:{text}", Overlap::Undecided);
        check("a:{id}", "a:{date}", Overlap::Undecided);
        check("a:{id}:c", "a:b:{id}", Overlap::Undecided);
        check("a:b", "a:b", Overlap::Undecided);
    }
}
