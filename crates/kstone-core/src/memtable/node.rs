//! The sorted part of a tree node: record locations, each with the eight key bytes that tell it
//! from its neighbours.
//!
//! The keys of a node lie close together, so they begin alike: table, then often most of the
//! partition key. A node keeps that common prefix once, and for each key the eight bytes behind
//! it, its *head*. A search compares the prefix, then heads, which lie side by side; it reads a
//! record only where heads are equal. Rejected: heads at a fixed place behind the table id, which
//! are all equal as soon as partition keys start with `user#` or `student:`.
//!
//! Calls the arena; called by the tree, for leaves and inner nodes alike.

use std::cmp::Ordering;

use super::arena::{Arena, Loc};
use crate::entry::Seq;
use crate::prefetch;

/// Wide enough that 2,000 records are two levels deep, narrow enough that making room for an
/// entry moves about 512 bytes.
pub(super) const CAPACITY: usize = 64;

const BLOCK: usize = 8;

/// Not lower than any head, so that counting lower heads needs no length.
const UNUSED: u64 = u64::MAX;

/// A longer common prefix is cut: searching stays right, and reads more records.
const PREFIX_LEN_MAX: usize = 46;

/// Up to [`CAPACITY`] locations in entry order.
///
/// Invariants: every key begins with `prefix[..prefix_len]`; `heads[i]` is [`head_of`] what
/// follows it in the key at `locs[i]`; heads from `len` on are [`UNUSED`].
#[derive(Debug)]
pub(super) struct Slots {
    len: u8,
    prefix_len: u8,
    prefix: [u8; PREFIX_LEN_MAX],
    heads: [u64; CAPACITY],
    locs: [Loc; CAPACITY],
}

impl Slots {
    pub(super) fn new() -> Self {
        Slots {
            len: 0,
            prefix_len: 0,
            prefix: [0; PREFIX_LEN_MAX],
            heads: [UNUSED; CAPACITY],
            locs: [Loc::default(); CAPACITY],
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len() == CAPACITY
    }

    #[inline]
    pub(super) fn loc(&self, index: usize) -> Loc {
        self.locs[index]
    }

    /// Where `(key, seq)` is, or else where it belongs.
    #[inline]
    pub(super) fn search(&self, arena: &Arena, key: &[u8], seq: Seq) -> Result<usize, usize> {
        let Some(rest) = key.strip_prefix(self.prefix()) else {
            return Err(if key < self.prefix() { 0 } else { self.len() });
        };
        let head = head_of(rest);
        let heads = &self.heads[..self.len()];
        let mut low = self.heads_below(head);
        let equal = &heads[low..];
        let mut high = match equal {
            [first, ..] if *first != head => return Err(low),
            [] => return Err(low),
            [_] => low + 1,
            [_, second, ..] if *second != head => low + 1,
            _ => low + equal.partition_point(|&other| other == head),
        };
        // The first of them first: of a key that is written often there are many versions, and it is the
        // newest that is looked for, and that the next one is put in front of.
        let mut nth = low;
        while low < high {
            match arena.order(self.locs[nth], self.prefix().len(), rest, seq) {
                Ordering::Less => low = nth + 1,
                Ordering::Equal => return Ok(nth),
                Ordering::Greater => high = nth,
            }
            nth = low.midpoint(high);
        }
        Err(low)
    }

    /// How many heads are lower: first by the last head of each block, then inside one block. The
    /// eight comparisons of a step do not wait for each other, and neither do their cache misses;
    /// a binary search has six of each in a row.
    #[inline]
    fn heads_below(&self, head: u64) -> usize {
        let (blocks, _) = self.heads.as_chunks::<BLOCK>();
        let block = blocks.iter().filter(|block| block[BLOCK - 1] < head).count();
        match blocks.get(block) {
            Some(heads) => block * BLOCK + heads.iter().filter(|&&other| other < head).count(),
            None => CAPACITY,
        }
    }

    /// Prefetches what a search of the node reads.
    pub(super) fn prefetch_insert(&self) {
        prefetch::soon(&self.len);
        let (blocks, _) = self.heads.as_chunks::<BLOCK>();
        blocks.iter().for_each(prefetch::soon);
    }

    /// Prefetches the record with which a search for this key compares it, if heads alone do not tell; the node
    /// itself was [prefetched](Slots::prefetch_insert) before.
    pub(super) fn prefetch_comparison(&self, arena: &Arena, key: &[u8]) {
        let Some(rest) = key.strip_prefix(self.prefix()) else { return };
        let head = head_of(rest);
        let low = self.heads_below(head);
        if low < self.len() && self.heads[low] == head {
            arena.prefetch(self.locs[low]);
        }
    }

    /// Prefetches the locations of the node's records.
    pub(super) fn prefetch_locs(&self) {
        prefetch::soon(&self.len);
        prefetch::value_soon(&self.locs, size_of_val(&self.locs));
    }

    /// Whether `(key, seq)` sorts behind every entry. False for an empty node.
    #[inline]
    pub(super) fn all_before(&self, arena: &Arena, key: &[u8], seq: Seq) -> bool {
        let Some(last) = self.len().checked_sub(1) else { return false };
        let Some(rest) = key.strip_prefix(self.prefix()) else { return key > self.prefix() };
        match self.heads[last].cmp(&head_of(rest)) {
            Ordering::Equal => {
                arena.order(self.locs[last], self.prefix().len(), rest, seq) == Ordering::Less
            }
            order => order == Ordering::Less,
        }
    }

    /// Puts an entry at `index`, where a search said that it belongs. The node must have room.
    #[inline]
    pub(super) fn insert(&mut self, index: usize, key: &[u8], loc: Loc) {
        self.share_prefix_with(key);
        let len = self.len();
        self.heads.copy_within(index..len, index + 1);
        self.locs.copy_within(index..len, index + 1);
        self.heads[index] = head_of(&key[self.prefix().len()..]);
        self.locs[index] = loc;
        self.len += 1;
    }

    /// Refers to another record with the same key and sequence number.
    pub(super) fn replace(&mut self, index: usize, loc: Loc) -> Loc {
        std::mem::replace(&mut self.locs[index], loc)
    }

    /// Moves the entries from `at` on into a new node. Either half then lies closer together, so
    /// its prefix may be longer.
    pub(super) fn split_off(&mut self, arena: &Arena, at: usize) -> Slots {
        let mut right = Slots::new();
        let moved = self.len() - at;
        right.heads[..moved].copy_from_slice(&self.heads[at..at + moved]);
        right.locs[..moved].copy_from_slice(&self.locs[at..at + moved]);
        right.prefix = self.prefix;
        right.prefix_len = self.prefix_len;
        right.len = moved as u8;
        self.len = at as u8;
        self.heads[at..].fill(UNUSED);
        self.lengthen_prefix(arena);
        right.lengthen_prefix(arena);
        right
    }

    /// Removes the last entry: the one that an inner node's split hands to the parent.
    pub(super) fn pop(&mut self) -> Loc {
        self.len -= 1;
        self.heads[usize::from(self.len)] = UNUSED;
        self.locs[self.len()]
    }

    #[inline]
    fn prefix(&self) -> &[u8] {
        &self.prefix[..usize::from(self.prefix_len)]
    }

    /// Shortens the prefix to what `key` has in common with it. The bytes that leave the prefix
    /// are shifted into the front of every head, so no record is read.
    #[inline]
    fn share_prefix_with(&mut self, key: &[u8]) {
        if self.len == 0 {
            self.set_prefix(key);
        } else if !key.starts_with(self.prefix()) {
            let shared = common_len(self.prefix(), key);
            let front = head_of(&self.prefix()[shared..]);
            let shift = 8 * (self.prefix().len() - shared);
            for head in &mut self.heads[..usize::from(self.len)] {
                *head = front | head.checked_shr(shift as u32).unwrap_or(0);
            }
            self.prefix_len = shared as u8;
        }
    }

    fn lengthen_prefix(&mut self, arena: &Arena) {
        let [first, .., last] = &self.locs[..self.len()] else { return };
        let first = arena.key(*first);
        let shared = common_len(first, arena.key(*last)).min(PREFIX_LEN_MAX);
        // In a sorted node, what the first and the last key share is shared by all.
        if shared > self.prefix().len() {
            self.set_prefix(&first[..shared]);
            for (head, loc) in self.heads.iter_mut().zip(&self.locs[..usize::from(self.len)]) {
                *head = head_of(&arena.key(*loc)[shared..]);
            }
        }
    }

    fn set_prefix(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(PREFIX_LEN_MAX);
        self.prefix[..len].copy_from_slice(&bytes[..len]);
        self.prefix_len = len as u8;
    }
}

/// The first eight bytes as a number that orders like them; a shorter rest is filled with zeros,
/// so equal heads do not mean equal keys.
#[inline]
fn head_of(rest: &[u8]) -> u64 {
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(bytes)
}

fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
