//! Finds the pattern of a key: a tree of segments, walked once from left to right, without
//! allocating.
//!
//! At each node the more literal edges are tried first, and the first rank of edges that leads to an
//! end has the answer: patterns that are more literal in one place and less in another, and match
//! the same key, are refused when the keyspace is made. Every node of the tree is visited once at
//! most, so that no key is worse than a look at all patterns.

use crate::pattern::Pattern;
use crate::placeholder::{Kind, Slot};
use crate::segment::Segment;
use crate::words::LiteralTable;

/// A key, or a part of one, that is longer belongs to no pattern.
const PART_LEN_MAX: usize = 65_535;

/// The segments of a key, which is stored in one part or two. They are split lazily, since finding
/// the pattern is one walk over the key and positions of segments are rarely needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segments<'k> {
    /// The key, or its partition key.
    first: &'k [u8],
    /// The sort key, of a key that is stored in two parts.
    second: Option<&'k [u8]>,
}

impl<'k> Segments<'k> {
    /// `None` when the key is longer than any that is declared.
    #[inline]
    pub(crate) fn of(key: &'k [u8]) -> Option<Segments<'k>> {
        Segments::of_parts(key, None)
    }

    /// The segments of a key that is stored in two parts.
    #[inline]
    pub(crate) fn of_parts(pk: &'k [u8], sk: Option<&'k [u8]>) -> Option<Segments<'k>> {
        let is_short = |part: &[u8]| part.len() <= PART_LEN_MAX;
        (is_short(pk) && sk.is_none_or(is_short)).then_some(Segments { first: pk, second: sk })
    }

    /// The segment that begins at a position, and the position after its colon. Between the two
    /// parts there is a colon, too. `None` behind the last segment.
    #[inline]
    fn at(&self, place: usize) -> Option<(&'k [u8], usize)> {
        let rest = match place.checked_sub(self.first.len() + 1) {
            None => self.first.get(place..)?,
            Some(place) => self.second?.get(place..)?,
        };
        let segment = match memchr::memchr(b':', rest) {
            None => rest,
            Some(end) => rest.get(..end)?,
        };
        Some((segment, place + segment.len() + 1))
    }

    fn iter(&self) -> impl Iterator<Item = &'k [u8]> + '_ {
        let mut place = 0;
        std::iter::from_fn(move || {
            let (segment, behind) = self.at(place)?;
            place = behind;
            Some(segment)
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.iter().count()
    }

    /// How many bytes the first of them have, with the colons between them; `None` if they are not
    /// all in the first part.
    #[inline]
    pub(crate) fn bytes_of_first(&self, count: usize) -> Option<usize> {
        let mut place = 0;
        for _ in 0..count {
            (_, place) = self.at(place)?;
        }
        place.checked_sub(1).filter(|bytes| *bytes <= self.first.len())
    }

    /// Whether the first part has so many of them.
    #[inline]
    pub(crate) fn are_in_first(&self, count: usize) -> bool {
        self.first.iter().filter(|byte| **byte == b':').count() + 1 == count
    }

    pub(crate) fn get(&self, at: usize) -> Option<&'k [u8]> {
        self.iter().nth(at)
    }
}

/// The search tree of all patterns of one store.
#[derive(Debug)]
pub(crate) struct Matcher {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// The words that may come here, and where they lead.
    words: LiteralTable,
    /// The placeholders, the most literal first, and where they lead.
    slots: Vec<SlotEdge>,
    /// The pattern that ends here.
    end: Option<PatternEnd>,
}

#[derive(Debug)]
struct SlotEdge {
    slot: Slot,
    rank: u32,
    /// Whether there is nothing to look at but the type.
    plain: bool,
    next: u32,
}

#[derive(Debug, Clone, Copy)]
struct PatternEnd {
    pattern: u32,
    /// How literal the pattern is.
    rank: u32,
}

impl Matcher {
    pub(crate) fn new<'p>(patterns: impl IntoIterator<Item = (u32, &'p Pattern)>) -> Matcher {
        let mut matcher = Matcher { nodes: vec![Node::default()] };
        for (index, pattern) in patterns {
            let mut at = 0;
            for segment in &pattern.segments {
                at = matcher.step(at, segment);
            }
            if let Some(node) = matcher.nodes.get_mut(at as usize) {
                node.end = Some(PatternEnd { pattern: index, rank: pattern.rank() });
            }
        }
        for node in &mut matcher.nodes {
            node.slots.sort_by_key(|edge| std::cmp::Reverse(edge.rank));
        }
        matcher
    }

    /// The child node for a segment, added if it is not there.
    fn step(&mut self, from: u32, segment: &Segment) -> u32 {
        let next = self.nodes.len() as u32;
        let Some(node) = self.nodes.get_mut(from as usize) else { return from };
        let known = match segment {
            Segment::Literal(word) => node.words.get(word.as_bytes()),
            Segment::Slot(slot) => {
                node.slots.iter().find(|edge| is_same_slot(&edge.slot, slot)).map(|edge| edge.next)
            }
        };
        if let Some(known) = known {
            return known;
        }
        match segment {
            Segment::Literal(word) => node.words.insert(word.as_bytes(), next),
            Segment::Slot(slot) => node.slots.push(SlotEdge {
                slot: slot.clone(),
                rank: slot.rank(),
                plain: slot.prefix.is_empty()
                    && slot.suffix.is_empty()
                    && slot.placeholder.except.is_empty(),
                next,
            }),
        }
        self.nodes.push(Node::default());
        next
    }

    /// The pattern of a key with these segments.
    pub(crate) fn find(&self, segments: &Segments<'_>) -> Option<u32> {
        self.walk(0, segments, 0).map(|end| end.pattern)
    }

    /// The pattern end that the segments from a position on lead to.
    fn walk(&self, mut at: u32, segments: &Segments<'_>, mut place: usize) -> Option<PatternEnd> {
        loop {
            let node = self.nodes.get(at as usize)?;
            let Some((segment, behind)) = segments.at(place) else { return node.end };
            place = behind;
            if let Some(next) = node.words.get(segment) {
                if node.slots.is_empty() {
                    at = next;
                    continue;
                }
                if let Some(end) = self.walk(next, segments, place) {
                    return Some(end);
                }
            }
            match node.slots.as_slice() {
                [] => return None,
                [only] => match only.accepts(segment) {
                    true => at = only.next,
                    false => return None,
                },
                slots => return self.best(slots, segment, segments, place),
            }
        }
    }

    /// The most literal pattern end behind several placeholder edges: of the first rank that has
    /// one.
    fn best(
        &self,
        slots: &[SlotEdge],
        segment: &[u8],
        segments: &Segments<'_>,
        place: usize,
    ) -> Option<PatternEnd> {
        let mut best: Option<(u32, PatternEnd)> = None;
        for edge in slots {
            if best.is_some_and(|(rank, _)| rank > edge.rank) {
                break;
            }
            if !edge.accepts(segment) {
                continue;
            }
            if let Some(end) = self.walk(edge.next, segments, place)
                && best.is_none_or(|(_, known)| end.rank > known.rank)
            {
                best = Some((edge.rank, end));
            }
        }
        best.map(|(_, end)| end)
    }
}

impl SlotEdge {
    #[inline]
    fn accepts(&self, segment: &[u8]) -> bool {
        let kind: &Kind = &self.slot.placeholder.kind;
        match self.plain {
            true => kind.accepts(segment),
            false => self.slot.capture(segment).is_some(),
        }
    }
}

/// Whether two placeholders accept the same values; their names do not matter.
fn is_same_slot(one: &Slot, other: &Slot) -> bool {
    (&one.prefix, &one.suffix) == (&other.prefix, &other.suffix)
        && one.placeholder.kind == other.placeholder.kind
        && one.placeholder.except == other.placeholder.except
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(segments: &Segments<'_>) -> Vec<String> {
        let text = |at| segments.get(at).map(|it| String::from_utf8_lossy(it).into_owned());
        (0..segments.count()).map_while(text).collect()
    }

    #[test]
    fn a_key_is_cut_at_its_colons() {
        assert_eq!(parts(&Segments::of(b"a:bc::d").unwrap()), ["a", "bc", "", "d"]);
        assert_eq!(parts(&Segments::of(b"").unwrap()), [""]);
        let both = Segments::of_parts(b"a:b", Some(b"c:d")).unwrap();
        assert_eq!(parts(&both), ["a", "b", "c", "d"]);
        assert_eq!(both.get(4), None);
        assert_eq!((both.bytes_of_first(2), both.bytes_of_first(3)), (Some(3), None));
        for (pk, sk, all) in [
            ("a:", "", &["a", "", ""][..]),
            ("", "b", &["", "b"]),
            ("a", ":b", &["a", "", "b"]),
            ("", "", &["", ""]),
        ] {
            let both = Segments::of_parts(pk.as_bytes(), Some(sk.as_bytes())).unwrap();
            assert_eq!(parts(&both), all, "{pk} and {sk}");
            let of_first = pk.matches(':').count() + 1;
            assert_eq!(both.bytes_of_first(of_first), Some(pk.len()), "{pk} and {sk}");
            assert_eq!(both.bytes_of_first(of_first + 1), None, "{pk} and {sk}");
        }
        assert_eq!(Segments::of(b"a:b").unwrap().bytes_of_first(3), None);
        assert_eq!(Segments::of(b"a:b").unwrap().bytes_of_first(0), None);
    }

    #[test]
    fn a_key_of_too_many_bytes_has_no_pattern() {
        let (most, more) = ([b'x'; PART_LEN_MAX], [b'x'; PART_LEN_MAX + 1]);
        assert!(Segments::of(&most).is_some() && Segments::of(&more).is_none());
        assert!(Segments::of_parts(&most, Some(&most)).is_some());
        assert!(Segments::of_parts(&most, Some(&more)).is_none());
    }
}
