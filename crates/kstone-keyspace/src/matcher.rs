//! Finds the pattern of a key: a tree of segments, walked once from left to right, without
//! allocating.
//!
//! At each step the more literal ways are tried first, and the first rank of ways that leads to an
//! end has the answer: patterns that are more literal in one place and less in another, and match
//! the same key, are refused when the keyspace is made. Every node of the tree is visited once at
//! most, so that no key is worse than a look at all patterns.

use memchr::memchr_iter;

use crate::pattern::Pattern;
use crate::placeholder::{Kind, Slot};
use crate::segment::{SEGMENTS_MAX, Segment};
use crate::words::Words;

/// The segments of a key. Small, because it is copied into every match: where segments end is kept,
/// not where they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segments<'k> {
    /// The key, or its partition key.
    first: &'k [u8],
    /// The sort key, of a key that is stored in two parts.
    second: &'k [u8],
    /// How many segments are in the first part.
    first_count: u8,
    count: u8,
    /// Where each segment ends in its part.
    ends: [u16; SEGMENTS_MAX],
}

impl<'k> Segments<'k> {
    /// `None` when there are more than any pattern has.
    pub(crate) fn of(key: &'k [u8]) -> Option<Segments<'k>> {
        let ends = [0; SEGMENTS_MAX];
        let mut segments = Segments { first: key, second: &[], first_count: 0, count: 0, ends };
        segments.add(key)?;
        segments.first_count = segments.count;
        Some(segments)
    }

    /// The segments of a key that is stored in two parts.
    pub(crate) fn of_parts(pk: &'k [u8], sk: Option<&'k [u8]>) -> Option<Segments<'k>> {
        let mut segments = Segments::of(pk)?;
        if let Some(sk) = sk {
            segments.second = sk;
            segments.add(sk)?;
        }
        Some(segments)
    }

    fn add(&mut self, text: &[u8]) -> Option<()> {
        let length = u16::try_from(text.len()).ok()?;
        for end in memchr_iter(b':', text) {
            self.end(end as u16)?;
        }
        self.end(length)
    }

    fn end(&mut self, at: u16) -> Option<()> {
        *self.ends.get_mut(usize::from(self.count))? = at;
        self.count += 1;
        Some(())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// How many bytes the first of them have, with the colons between them.
    pub(crate) fn bytes_of_first(&self, count: usize) -> Option<usize> {
        let last = self.ends.get(..self.count())?.get(count.checked_sub(1)?)?;
        (count <= usize::from(self.first_count)).then_some(usize::from(*last))
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&'k [u8]> {
        if at >= self.count() {
            return None;
        }
        let end = usize::from(*self.ends.get(at)?);
        let first_count = usize::from(self.first_count);
        let part = if at < first_count { self.first } else { self.second };
        let start = match at == 0 || at == first_count {
            true => 0,
            false => usize::from(*self.ends.get(at - 1)?) + 1,
        };
        part.get(start..end)
    }
}

/// All patterns of one place where keys live.
#[derive(Debug)]
pub(crate) struct Matcher {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// The words that may come here, and where they lead.
    words: Words,
    /// The placeholders, the most literal first, and where they lead.
    ways: Vec<Way>,
    /// The pattern that ends here.
    end: Option<Ending>,
}

#[derive(Debug)]
struct Way {
    slot: Slot,
    rank: u32,
    /// Whether there is nothing to look at but the type.
    plain: bool,
    next: u32,
}

#[derive(Debug, Clone, Copy)]
struct Ending {
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
                node.end = Some(Ending { pattern: index, rank: pattern.rank() });
            }
        }
        for node in &mut matcher.nodes {
            node.ways.sort_by_key(|way| std::cmp::Reverse(way.rank));
        }
        matcher
    }

    /// The node behind a segment, made if it is not there.
    fn step(&mut self, from: u32, segment: &Segment) -> u32 {
        let next = self.nodes.len() as u32;
        let Some(node) = self.nodes.get_mut(from as usize) else { return from };
        let known = match segment {
            Segment::Literal(word) => node.words.get(word.as_bytes()),
            Segment::Slot(slot) => {
                node.ways.iter().find(|way| same_way(&way.slot, slot)).map(|way| way.next)
            }
        };
        if let Some(known) = known {
            return known;
        }
        match segment {
            Segment::Literal(word) => node.words.insert(word.as_bytes(), next),
            Segment::Slot(slot) => node.ways.push(Way {
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

    fn walk(&self, mut at: u32, segments: &Segments<'_>, mut depth: usize) -> Option<Ending> {
        loop {
            let node = self.nodes.get(at as usize)?;
            let Some(segment) = segments.get(depth) else { return node.end };
            depth += 1;
            if let Some(next) = node.words.get(segment) {
                if node.ways.is_empty() {
                    at = next;
                    continue;
                }
                if let Some(end) = self.walk(next, segments, depth) {
                    return Some(end);
                }
            }
            match node.ways.as_slice() {
                [] => return None,
                [only] => match only.accepts(segment) {
                    true => at = only.next,
                    false => return None,
                },
                ways => return self.best(ways, segment, segments, depth),
            }
        }
    }

    /// The most literal end behind several ways: of the first rank that has one.
    fn best(
        &self,
        ways: &[Way],
        segment: &[u8],
        segments: &Segments<'_>,
        depth: usize,
    ) -> Option<Ending> {
        let mut best: Option<(u32, Ending)> = None;
        for way in ways {
            if best.is_some_and(|(rank, _)| rank > way.rank) {
                break;
            }
            if !way.accepts(segment) {
                continue;
            }
            if let Some(end) = self.walk(way.next, segments, depth)
                && best.is_none_or(|(_, known)| end.rank > known.rank)
            {
                best = Some((way.rank, end));
            }
        }
        best.map(|(_, end)| end)
    }
}

impl Way {
    #[inline]
    fn accepts(&self, segment: &[u8]) -> bool {
        let kind: &Kind = &self.slot.placeholder.kind;
        match self.plain {
            true => kind.accepts(segment),
            false => self.slot.capture(segment).is_some(),
        }
    }
}

/// Whether two placeholders accept the same: their names do not matter.
fn same_way(one: &Slot, other: &Slot) -> bool {
    (&one.prefix, &one.suffix) == (&other.prefix, &other.suffix)
        && one.placeholder.kind == other.placeholder.kind
        && one.placeholder.except == other.placeholder.except
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(segments: &Segments<'_>) -> Vec<String> {
        let text = |at| segments.get(at).map(|it| String::from_utf8_lossy(it).into_owned());
        (0..segments.count()).filter_map(text).collect()
    }

    #[test]
    fn a_key_is_cut_at_its_colons() {
        assert_eq!(parts(&Segments::of(b"a:bc::d").unwrap()), ["a", "bc", "", "d"]);
        assert_eq!(parts(&Segments::of(b"").unwrap()), [""]);
        let both = Segments::of_parts(b"a:b", Some(b"c:d")).unwrap();
        assert_eq!(parts(&both), ["a", "b", "c", "d"]);
        assert_eq!(both.get(4), None);
        assert_eq!((both.bytes_of_first(2), both.bytes_of_first(3)), (Some(3), None));
    }

    #[test]
    fn a_key_of_too_many_segments_or_bytes_has_no_pattern() {
        let colons = |count: usize| ":".repeat(count).into_bytes();
        assert!(Segments::of(&colons(SEGMENTS_MAX - 1)).is_some());
        assert!(Segments::of(&colons(SEGMENTS_MAX)).is_none());
        assert!(Segments::of(&[b'x'; 65_535]).is_some());
        assert!(Segments::of(&[b'x'; 65_536]).is_none());
        assert!(Segments::of_parts(&colons(6), Some(&colons(6))).is_none());
    }
}
