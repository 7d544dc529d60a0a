//! Finds the pattern of a key: a tree of segments, walked once from left to right, without
//! allocating.
//!
//! At each step the more literal ways are tried first, and the first rank of ways that leads to an
//! end has the answer: patterns that are more literal in one place and less in another, and match
//! the same key, are refused when the keyspace is made. Every node of the tree is visited once at
//! most, so that no key is worse than a look at all patterns.

use memchr::memchr_iter;

use crate::pattern::Pattern;
use crate::placeholder::Slot;
use crate::segment::{SEGMENTS_MAX, Segment};

/// The segments of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segments<'k> {
    parts: [&'k [u8]; SEGMENTS_MAX],
    count: usize,
}

impl<'k> Segments<'k> {
    /// `None` when there are more than any pattern has.
    pub(crate) fn of(key: &'k [u8]) -> Option<Segments<'k>> {
        let mut segments = Segments { parts: [&[]; SEGMENTS_MAX], count: 0 };
        segments.add(key)?;
        Some(segments)
    }

    /// The segments of a key that is stored in two parts.
    pub(crate) fn of_parts(pk: &'k [u8], sk: Option<&'k [u8]>) -> Option<Segments<'k>> {
        let mut segments = Segments::of(pk)?;
        if let Some(sk) = sk {
            segments.add(sk)?;
        }
        Some(segments)
    }

    fn add(&mut self, text: &'k [u8]) -> Option<()> {
        let mut start = 0;
        for end in memchr_iter(b':', text).chain(std::iter::once(text.len())) {
            *self.parts.get_mut(self.count)? = text.get(start..end)?;
            self.count += 1;
            start = end + 1;
        }
        Some(())
    }

    pub(crate) fn as_slice(&self) -> &[&'k [u8]] {
        self.parts.get(..self.count).unwrap_or_default()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&'k [u8]> {
        self.as_slice().get(at).copied()
    }
}

/// All patterns of one place where keys live.
#[derive(Debug)]
pub(crate) struct Matcher {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// The first bytes of each word, in order, so that most words are told apart by one number.
    heads: Vec<u64>,
    /// The words, in the order of their heads, and where they lead.
    words: Vec<(Box<[u8]>, u32)>,
    /// The placeholders, the most literal first, and where they lead.
    slots: Vec<(Slot, u32)>,
    /// The pattern that ends here.
    end: Option<Ending>,
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
            node.words.sort_by_key(|(word, _)| head(word));
            node.heads = node.words.iter().map(|(word, _)| head(word)).collect();
            node.slots.sort_by_key(|(slot, _)| std::cmp::Reverse(slot.rank()));
        }
        matcher
    }

    /// The node behind a segment, made if it is not there.
    fn step(&mut self, from: u32, segment: &Segment) -> u32 {
        let next = self.nodes.len() as u32;
        let Some(node) = self.nodes.get_mut(from as usize) else { return from };
        let known = match segment {
            Segment::Literal(word) => {
                node.words.iter().find(|(known, _)| **known == *word.as_bytes()).map(|it| it.1)
            }
            Segment::Slot(slot) => {
                node.slots.iter().find(|(known, _)| same_way(known, slot)).map(|it| it.1)
            }
        };
        if let Some(known) = known {
            return known;
        }
        match segment {
            Segment::Literal(word) => node.words.push((word.as_bytes().into(), next)),
            Segment::Slot(slot) => node.slots.push((slot.clone(), next)),
        }
        self.nodes.push(Node::default());
        next
    }

    /// The pattern of a key with these segments.
    pub(crate) fn find(&self, segments: &Segments<'_>) -> Option<u32> {
        self.walk(0, segments.as_slice()).map(|end| end.pattern)
    }

    fn walk(&self, at: u32, segments: &[&[u8]]) -> Option<Ending> {
        let node = self.nodes.get(at as usize)?;
        let Some((segment, rest)) = segments.split_first() else { return node.end };
        if let Some(end) = node.word(segment).and_then(|next| self.walk(next, rest)) {
            return Some(end);
        }
        let mut best: Option<(u32, Ending)> = None;
        for (slot, next) in &node.slots {
            let rank = slot.rank();
            if best.is_some_and(|(found, _)| found > rank) {
                break;
            }
            if slot.capture(segment).is_none() {
                continue;
            }
            if let Some(end) = self.walk(*next, rest)
                && best.is_none_or(|(_, known)| end.rank > known.rank)
            {
                best = Some((rank, end));
            }
        }
        best.map(|(_, end)| end)
    }
}

impl Node {
    fn word(&self, segment: &[u8]) -> Option<u32> {
        let wanted = head(segment);
        let first = self.heads.partition_point(|head| *head < wanted);
        let candidates = self.words.get(first..)?.iter();
        (candidates.zip(self.heads.get(first..)?))
            .take_while(|(_, head)| **head == wanted)
            .find(|((word, _), _)| **word == *segment)
            .map(|((_, next), _)| *next)
    }
}

/// The first eight bytes as a number.
fn head(word: &[u8]) -> u64 {
    match word.first_chunk::<8>() {
        Some(first) => u64::from_le_bytes(*first),
        None => word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    }
}

/// Whether two placeholders accept the same: their names do not matter.
fn same_way(one: &Slot, other: &Slot) -> bool {
    (&one.prefix, &one.suffix) == (&other.prefix, &other.suffix)
        && one.placeholder.kind == other.placeholder.kind
        && one.placeholder.except == other.placeholder.except
}
