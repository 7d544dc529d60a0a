//! The B+tree over the arena's records: nodes in vectors, referring to each other by index.
//!
//! It only grows. Full inner nodes are split on the way down, so a leaf's parent always has room
//! and no path is kept. An inner node's separator is the location of the record that was first in
//! the child to its right when that child was split off; records never move, so neither do
//! separators. Leaves are linked in both directions.
//!
//! Calls the arena and the nodes; called by the memtable and its cursors, under its lock.

use super::arena::{Arena, Loc, Record};
use super::node::{CAPACITY, Slots};
use crate::entry::{EntryRef, Seq};

const NONE: u32 = u32::MAX;
const NOWHERE: u8 = u8::MAX;

#[derive(Debug)]
struct Leaf {
    slots: Slots,
    prev: u32,
    next: u32,
    /// Where the latest entry was inserted, which tells a run of neighbours from random keys.
    latest: u8,
}

#[derive(Debug)]
struct Inner {
    /// `slots` separates `children`: the entries of `children[i + 1]` start at separator `i`.
    slots: Slots,
    children: [u32; CAPACITY + 1],
}

/// Where an entry is; good until [`Tree::shape`] changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    leaf: u32,
    index: u32,
}

#[derive(Debug)]
pub(super) struct Tree {
    arena: Arena,
    leaves: Vec<Leaf>,
    inners: Vec<Inner>,
    /// A leaf if `height` is 0, else an inner node.
    root: u32,
    height: u32,
    /// The leaf with the highest entries; the one with the lowest is always number 0.
    last_leaf: u32,
    shape: u64,
}

impl Tree {
    pub(super) fn new() -> Self {
        let leaf = Leaf { slots: Slots::new(), prev: NONE, next: NONE, latest: NOWHERE };
        Tree {
            arena: Arena::default(),
            leaves: vec![leaf],
            inners: Vec::new(),
            root: 0,
            height: 0,
            last_leaf: 0,
            shape: 0,
        }
    }

    /// Changes whenever an entry may have moved to another position.
    pub(super) fn shape(&self) -> u64 {
        self.shape
    }

    /// Memory held outside this struct.
    pub(super) fn bytes(&self) -> usize {
        self.arena.bytes()
            + self.leaves.capacity() * size_of::<Leaf>()
            + self.inners.capacity() * size_of::<Inner>()
    }

    /// Adds an entry. If there was one with the same key and sequence number, the new one takes
    /// its place, `replaced` sees the old one, and the answer is false.
    pub(super) fn insert(
        &mut self,
        entry: EntryRef<'_>,
        replaced: impl FnOnce(Record<'_>),
    ) -> bool {
        let loc = self.arena.push(entry);
        let (key, seq) = (entry.key, entry.seq);

        // Keys that arrive in order need no search, and move nothing.
        let last = &mut self.leaves[self.last_leaf as usize];
        if last.slots.all_before(&self.arena, key, seq) && !last.slots.is_full() {
            last.latest = last.slots.len() as u8;
            last.slots.insert(last.slots.len(), key, loc);
            return true;
        }

        let (leaf, parent) = self.leaf_for_insert(key, seq);
        let slots = &mut self.leaves[leaf as usize].slots;
        match slots.search(&self.arena, key, seq) {
            Ok(index) => {
                let old = slots.replace(index, loc);
                replaced(self.arena.record(old));
                self.arena.release(old);
                return false;
            }
            Err(index) if slots.is_full() => self.split_leaf(parent, index, key, loc),
            Err(index) => {
                slots.insert(index, key, loc);
                self.leaves[leaf as usize].latest = index as u8;
            }
        }
        self.shape += 1;
        true
    }

    #[inline]
    pub(super) fn record(&self, at: Position) -> Record<'_> {
        self.arena.record(self.leaves[at.leaf as usize].slots.loc(at.index as usize))
    }

    /// The first entry that is not before `(key, seq)`.
    #[inline]
    pub(super) fn at_or_after(&self, key: &[u8], seq: Seq) -> Option<Position> {
        let (leaf, index) = self.search(key, seq);
        if index < self.leaves[leaf as usize].slots.len() {
            return Some(Position { leaf, index: index as u32 });
        }
        self.first_of(self.leaves[leaf as usize].next)
    }

    /// The last entry that is before `(key, seq)`.
    pub(super) fn before(&self, key: &[u8], seq: Seq) -> Option<Position> {
        let (leaf, index) = self.search(key, seq);
        self.prev(Position { leaf, index: index as u32 })
    }

    #[cfg(test)]
    pub(super) fn first(&self) -> Option<Position> {
        self.first_of(0)
    }

    #[cfg(test)]
    pub(super) fn last(&self) -> Option<Position> {
        self.last_of(self.last_leaf)
    }

    #[inline]
    pub(super) fn next(&self, at: Position) -> Option<Position> {
        let leaf = &self.leaves[at.leaf as usize];
        if (at.index as usize) + 1 < leaf.slots.len() {
            return Some(Position { index: at.index + 1, ..at });
        }
        self.first_of(leaf.next)
    }

    #[inline]
    pub(super) fn prev(&self, at: Position) -> Option<Position> {
        match at.index.checked_sub(1) {
            Some(index) => Some(Position { index, ..at }),
            None => self.last_of(self.leaves[at.leaf as usize].prev),
        }
    }

    fn first_of(&self, leaf: u32) -> Option<Position> {
        let slots = &self.leaves.get(leaf as usize)?.slots;
        (slots.len() > 0).then_some(Position { leaf, index: 0 })
    }

    fn last_of(&self, leaf: u32) -> Option<Position> {
        let slots = &self.leaves.get(leaf as usize)?.slots;
        Some(Position { leaf, index: slots.len().checked_sub(1)? as u32 })
    }

    /// The leaf where `(key, seq)` is or belongs, and the place in it.
    #[inline]
    fn search(&self, key: &[u8], seq: Seq) -> (u32, usize) {
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = &self.inners[node as usize];
            node = inner.children[inner.child_index(&self.arena, key, seq)];
        }
        match self.leaves[node as usize].slots.search(&self.arena, key, seq) {
            Ok(index) | Err(index) => (node, index),
        }
    }

    /// `(key, seq)` is about to be inserted: asks for the leaf where it belongs.
    pub(super) fn expect(&self, key: &[u8], seq: Seq) {
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = &self.inners[node as usize];
            node = inner.children[inner.child_index(&self.arena, key, seq)];
        }
        self.leaves[node as usize].slots.expect();
    }

    /// The leaf where `(key, seq)` belongs, and its parent with the leaf's index among the
    /// children. If the leaf is full, the parent exists and has room.
    fn leaf_for_insert(&mut self, key: &[u8], seq: Seq) -> (u32, (u32, usize)) {
        let root_is_full = match self.height {
            0 => self.leaves[self.root as usize].slots.is_full(),
            _ => self.inners[self.root as usize].slots.is_full(),
        };
        if root_is_full {
            let mut children = [NONE; CAPACITY + 1];
            children[0] = self.root;
            self.root = self.inners.len() as u32;
            self.inners.push(Inner { slots: Slots::new(), children });
            self.height += 1;
        }

        let mut node = self.root;
        let mut parent = (NONE, 0);
        for level in (1..=self.height).rev() {
            let inner = &self.inners[node as usize];
            let mut index = inner.child_index(&self.arena, key, seq);
            let child = inner.children[index];
            let child_is_inner = level > 1;
            if child_is_inner && self.inners[child as usize].slots.is_full() {
                self.split_inner(node, index, key, seq);
                index = self.inners[node as usize].child_index(&self.arena, key, seq);
            }
            parent = (node, index);
            node = self.inners[node as usize].children[index];
        }
        (node, parent)
    }

    /// Splits the full inner node that is child `index` of `parent`.
    fn split_inner(&mut self, parent: u32, index: usize, key: &[u8], seq: Seq) {
        let child = self.inners[parent as usize].children[index];
        let left = &mut self.inners[child as usize];
        let len = left.slots.len();
        // Ascending inserts never come back to the left half: leave it full.
        let is_run = left.child_index(&self.arena, key, seq) == len;
        let keep = if is_run { len - 1 } else { len / 2 };

        let slots = left.slots.split_off(&self.arena, keep + 1);
        let mut children = [NONE; CAPACITY + 1];
        children[..len - keep].copy_from_slice(&left.children[keep + 1..=len]);
        let separator = left.slots.pop();
        let right = self.inners.len() as u32;
        self.inners.push(Inner { slots, children });
        self.inners[parent as usize].insert(&self.arena, index, separator, right);
    }

    /// Splits the full leaf that is child `child_index` of `parent`, and adds the entry, which
    /// belongs at `index` of that leaf.
    ///
    /// Where entries keep arriving side by side (keys in order; or ever newer versions of one key,
    /// which sort in front of each other), a split in the middle would leave half-empty leaves
    /// behind. There the leaf is split where the run is, on the side that keeps at least half.
    fn split_leaf(
        &mut self,
        (parent, child_index): (u32, usize),
        index: usize,
        key: &[u8],
        loc: Loc,
    ) {
        let leaf = self.inners[parent as usize].children[child_index];
        let right = self.leaves.len() as u32;
        let left = &mut self.leaves[leaf as usize];
        let (len, middle) = (left.slots.len(), left.slots.len() / 2);
        let latest = usize::from(left.latest);
        let at = if index == latest + 1 {
            index.max(middle)
        } else if index == latest {
            index.min(middle)
        } else {
            middle
        };

        let mut slots = left.slots.split_off(&self.arena, at);
        let mut right_latest = NOWHERE;
        left.latest = NOWHERE;
        // At the border either side is right, but neither may stay empty.
        if index < at || (index == at && at < len) {
            left.slots.insert(index, key, loc);
            left.latest = index as u8;
        } else {
            slots.insert(index - at, key, loc);
            right_latest = (index - at) as u8;
        }

        let separator = slots.loc(0);
        let next = std::mem::replace(&mut left.next, right);
        match self.leaves.get_mut(next as usize) {
            Some(next) => next.prev = right,
            None => self.last_leaf = right,
        }
        if self.leaves.len() == self.leaves.capacity() {
            // Not doubled: a leaf is large, and unused ones count against the memory budget.
            self.leaves.reserve_exact((self.leaves.len() / 2).max(1));
        }
        self.leaves.push(Leaf { slots, prev: leaf, next, latest: right_latest });
        self.inners[parent as usize].insert(&self.arena, child_index, separator, right);
    }
}

impl Inner {
    /// Which child holds `(key, seq)`, or would.
    #[inline]
    fn child_index(&self, arena: &Arena, key: &[u8], seq: Seq) -> usize {
        match self.slots.search(arena, key, seq) {
            Ok(index) => index + 1,
            Err(index) => index,
        }
    }

    /// Adds the child that was split off from child `index`.
    fn insert(&mut self, arena: &Arena, index: usize, separator: Loc, child: u32) {
        let len = self.slots.len();
        self.slots.insert(index, arena.key(separator), separator);
        self.children.copy_within(index + 1..len + 1, index + 2);
        self.children[index + 1] = child;
    }
}
