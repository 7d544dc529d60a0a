//! The B+tree over the arena's records: nodes referring to each other by index.
//!
//! It only grows. Full inner nodes are split on the way down, so a leaf's parent always has room
//! and no path is kept. An inner node's separator is the location of the record that was first in
//! the child to its right when that child was split off; records never move, so neither do
//! separators. Leaves are linked in both directions.
//!
//! Calls the arena and the nodes; called by the memtable and its cursors, under its lock.

use super::arena::{Arena, INLINE_VALUE_LEN_MAX, Loc, Record};
use super::chunk_pool::ChunkPool;
use super::node::{CAPACITY, Slots};
use crate::entry::{EntryRef, Seq};
use crate::prefetch;

/// So many records wait for their places in the tree at most. One after the other they find its
/// nodes in the processor's cache, which a record that comes alone does not: of 256 stripes, each
/// has another tree. More would let a reader wait longer that comes upon them.
const ARRIVALS_MAX: usize = 128;
/// What a record that waits is taken to need in a leaf.
const SLOT_BYTES: usize = 24;
/// So many records ahead memory is asked for: it has come by then, and is still there.
const AHEAD: usize = 6;

/// Leaves of one allocation: some KiB, so that unused ones are a small part of a stripe's memory.
const PAGE_LEAVES: usize = 4;

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
    nodes: Nodes,
    /// Records that are in the arena and not in the tree yet, in the order of their arrival.
    arrivals: Vec<Loc>,
}

/// Leaves in pages that never move and are all of one length, but for the first, which grows: most
/// stripes have a handful of records. One vector of them would be copied when it grows, and leave
/// behind a hole in the heap that is too small for the next.
#[derive(Debug)]
struct Leaves {
    pages: Vec<Vec<Leaf>>,
    len: usize,
}

/// The tree proper. Its callers pass the arena.
#[derive(Debug)]
struct Nodes {
    leaves: Leaves,
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
        let nodes = Nodes {
            leaves: Leaves { pages: vec![vec![leaf]], len: 1 },
            inners: Vec::new(),
            root: 0,
            height: 0,
            last_leaf: 0,
            shape: 0,
        };
        Tree { arena: Arena::default(), nodes, arrivals: Vec::new() }
    }

    /// Changes whenever an entry may have moved to another position.
    pub(super) fn shape(&self) -> u64 {
        self.nodes.shape
    }

    /// Memory held outside this struct.
    pub(super) fn bytes(&self) -> usize {
        self.arena.bytes()
            + self.arrivals.capacity() * size_of::<Loc>()
            + self.arrivals.len() * SLOT_BYTES
            + self.nodes.leaves.bytes()
            + self.nodes.inners.capacity() * size_of::<Inner>()
    }

    /// Takes an entry in. It is found once it is [settled](Tree::settle); answers how many are not.
    /// `replaced` is what settling wants to know.
    pub(super) fn add(
        &mut self,
        entry: EntryRef<'_>,
        at_once: bool,
        pool: &ChunkPool,
        replaced: impl FnMut(Record<'_>),
    ) -> usize {
        let loc = self.arena.push(entry, pool);
        if self.arrivals.is_empty() && self.nodes.append(&self.arena, entry.key, entry.seq, loc) {
            return 0;
        }
        self.arrivals.push(loc);
        // A large value that is replaced gives its memory back at once.
        let is_large = entry.value.len() > INLINE_VALUE_LEN_MAX;
        if at_once || is_large || self.arrivals.len() >= ARRIVALS_MAX {
            self.settle(replaced);
        }
        self.arrivals.len()
    }

    /// Gives what has arrived its places. Where there was an entry with the same key and sequence number,
    /// the new one takes its place, and `replaced` sees the old one.
    pub(super) fn settle(&mut self, mut replaced: impl FnMut(Record<'_>)) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let mut leaves = [NONE; AHEAD];
        for (nth, &loc) in arrivals.iter().enumerate() {
            if prefetch::HELPS {
                self.prefetch_arrivals(&arrivals, nth, &mut leaves);
            }
            if let Some(old) = self.nodes.insert(&self.arena, loc) {
                replaced(self.arena.record(old));
                self.arena.release(old);
            }
        }
        arrivals.clear();
        self.arrivals = arrivals;
    }

    /// The arrival with this number gets its place now: asks for what those after it need, of each the record itself, then
    /// its leaf, then the record there that it is compared with. `leaves` is where the next ones belong, unless
    /// a leaf is split until then.
    #[inline]
    fn prefetch_arrivals(&self, arrivals: &[Loc], nth: usize, leaves: &mut [u32; AHEAD]) {
        if let Some(&later) = arrivals.get(nth + 2 * AHEAD) {
            self.arena.prefetch(later);
        }
        if let Some(&soon) = arrivals.get(nth + AHEAD) {
            leaves[nth % AHEAD] = self.nodes.prefetch_insert(&self.arena, soon);
        }
        let next = nth + AHEAD / 2;
        if let (Some(&next), Some(leaf)) =
            (arrivals.get(next), self.nodes.leaves.get(leaves[next % AHEAD]))
        {
            leaf.slots.prefetch_comparison(&self.arena, self.arena.key(next));
        }
    }

    /// Prefetches the memory that adding entries of so many bytes needs.
    pub(super) fn prefetch_insert(&self, bytes: usize) {
        self.arena.prefetch_insert(bytes);
        if let Some(last) = self.arrivals.last() {
            prefetch::soon(last);
        }
    }

    #[inline]
    pub(super) fn record(&self, at: Position) -> Record<'_> {
        self.arena.record(self.nodes.leaves.at(at.leaf).slots.loc(at.index as usize))
    }

    /// The first entry that is not before `(key, seq)`.
    #[inline]
    pub(super) fn at_or_after(&self, key: &[u8], seq: Seq) -> Option<Position> {
        let (leaf, index) = self.nodes.search(&self.arena, key, seq);
        if index < self.nodes.leaves.at(leaf).slots.len() {
            return Some(Position { leaf, index: index as u32 });
        }
        self.first_of(self.nodes.leaves.at(leaf).next)
    }

    /// The last entry that is before `(key, seq)`.
    pub(super) fn before(&self, key: &[u8], seq: Seq) -> Option<Position> {
        let (leaf, index) = self.nodes.search(&self.arena, key, seq);
        self.prev(Position { leaf, index: index as u32 })
    }

    #[cfg(test)]
    pub(super) fn first(&self) -> Option<Position> {
        self.first_of(0)
    }

    #[cfg(test)]
    pub(super) fn last(&self) -> Option<Position> {
        self.last_of(self.nodes.last_leaf)
    }

    #[inline]
    pub(super) fn next(&self, at: Position) -> Option<Position> {
        let leaf = self.nodes.leaves.at(at.leaf);
        if (at.index as usize) + 1 < leaf.slots.len() {
            return Some(Position { index: at.index + 1, ..at });
        }
        self.first_of(leaf.next)
    }

    #[inline]
    pub(super) fn prev(&self, at: Position) -> Option<Position> {
        match at.index.checked_sub(1) {
            Some(index) => Some(Position { index, ..at }),
            None => self.last_of(self.nodes.leaves.at(at.leaf).prev),
        }
    }

    /// Prefetches what a walk that is here meets some steps later. Records lie as they arrived, so each
    /// is somewhere else.
    #[inline]
    pub(super) fn prefetch(&self, at: Position) {
        if !prefetch::HELPS {
            return;
        }
        let leaf = self.nodes.leaves.at(at.leaf);
        let next = self.nodes.leaves.get(leaf.next);
        if at.index == 0
            && let Some(next) = next
        {
            next.slots.prefetch_locs();
        }
        let (ahead, len) = (at.index as usize + AHEAD, leaf.slots.len());
        if ahead < len {
            self.arena.prefetch(leaf.slots.loc(ahead));
        } else if let Some(next) = next
            && ahead - len < next.slots.len()
        {
            self.arena.prefetch(next.slots.loc(ahead - len));
        }
    }

    fn first_of(&self, leaf: u32) -> Option<Position> {
        let slots = &self.nodes.leaves.get(leaf)?.slots;
        (slots.len() > 0).then_some(Position { leaf, index: 0 })
    }

    fn last_of(&self, leaf: u32) -> Option<Position> {
        let slots = &self.nodes.leaves.get(leaf)?.slots;
        Some(Position { leaf, index: slots.len().checked_sub(1)? as u32 })
    }
}

impl Leaves {
    #[inline]
    fn at(&self, leaf: u32) -> &Leaf {
        &self.pages[leaf as usize / PAGE_LEAVES][leaf as usize % PAGE_LEAVES]
    }

    #[inline]
    fn at_mut(&mut self, leaf: u32) -> &mut Leaf {
        &mut self.pages[leaf as usize / PAGE_LEAVES][leaf as usize % PAGE_LEAVES]
    }

    /// `None` for [`NONE`].
    #[inline]
    fn get(&self, leaf: u32) -> Option<&Leaf> {
        self.pages.get(leaf as usize / PAGE_LEAVES)?.get(leaf as usize % PAGE_LEAVES)
    }

    fn get_mut(&mut self, leaf: u32) -> Option<&mut Leaf> {
        self.pages.get_mut(leaf as usize / PAGE_LEAVES)?.get_mut(leaf as usize % PAGE_LEAVES)
    }

    fn push(&mut self, leaf: Leaf) {
        match self.pages.as_mut_slice() {
            [.., last] if last.len() < PAGE_LEAVES => {
                if last.len() == last.capacity() {
                    last.reserve_exact(last.len().min(PAGE_LEAVES - last.len()));
                }
                last.push(leaf);
            }
            _ => {
                let mut page = Vec::with_capacity(PAGE_LEAVES);
                page.push(leaf);
                self.pages.push(page);
            }
        }
        self.len += 1;
    }

    fn bytes(&self) -> usize {
        let first = self.pages.first().map_or(0, Vec::capacity);
        let leaves = first + (self.pages.len() - 1) * PAGE_LEAVES;
        leaves * size_of::<Leaf>() + self.pages.capacity() * size_of::<Vec<Leaf>>()
    }
}

impl Nodes {
    /// Adds a record to the last leaf, if it comes after everything and there is room: keys that
    /// arrive in order need no search, and move nothing.
    #[inline]
    fn append(&mut self, arena: &Arena, key: &[u8], seq: Seq, loc: Loc) -> bool {
        let last = self.leaves.at_mut(self.last_leaf);
        let is_behind = last.slots.all_before(arena, key, seq) && !last.slots.is_full();
        if is_behind {
            last.latest = last.slots.len() as u8;
            last.slots.insert(last.slots.len(), key, loc);
        }
        is_behind
    }

    /// Adds a record; answers the one with the same key and sequence number whose place it took.
    fn insert(&mut self, arena: &Arena, loc: Loc) -> Option<Loc> {
        let (key, seq) = arena.key_and_seq(loc);
        let (leaf, parent) = self.leaf_for_insert(arena, key, seq);
        let slots = &mut self.leaves.at_mut(leaf).slots;
        match slots.search(arena, key, seq) {
            Ok(index) => return Some(slots.replace(index, loc)),
            Err(index) if slots.is_full() => self.split_leaf(arena, parent, index, key, loc),
            Err(index) => {
                slots.insert(index, key, loc);
                self.leaves.at_mut(leaf).latest = index as u8;
            }
        }
        self.shape += 1;
        None
    }

    /// Prefetches the leaf where a record belongs, and answers which it is.
    fn prefetch_insert(&self, arena: &Arena, loc: Loc) -> u32 {
        let (key, seq) = arena.key_and_seq(loc);
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = &self.inners[node as usize];
            node = inner.children[inner.child_index(arena, key, seq)];
        }
        self.leaves.at(node).slots.prefetch_insert();
        node
    }

    /// The leaf where `(key, seq)` is or belongs, and the place in it.
    #[inline]
    fn search(&self, arena: &Arena, key: &[u8], seq: Seq) -> (u32, usize) {
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = &self.inners[node as usize];
            node = inner.children[inner.child_index(arena, key, seq)];
        }
        match self.leaves.at(node).slots.search(arena, key, seq) {
            Ok(index) | Err(index) => (node, index),
        }
    }

    /// The leaf where `(key, seq)` belongs, and its parent with the leaf's index among the
    /// children. If the leaf is full, the parent exists and has room.
    fn leaf_for_insert(&mut self, arena: &Arena, key: &[u8], seq: Seq) -> (u32, (u32, usize)) {
        let root_is_full = match self.height {
            0 => self.leaves.at(self.root).slots.is_full(),
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
            let mut index = inner.child_index(arena, key, seq);
            let child = inner.children[index];
            let child_is_inner = level > 1;
            if child_is_inner && self.inners[child as usize].slots.is_full() {
                self.split_inner(arena, node, index, key, seq);
                index = self.inners[node as usize].child_index(arena, key, seq);
            }
            parent = (node, index);
            node = self.inners[node as usize].children[index];
        }
        (node, parent)
    }

    /// Splits the full inner node that is child `index` of `parent`.
    fn split_inner(&mut self, arena: &Arena, parent: u32, index: usize, key: &[u8], seq: Seq) {
        let child = self.inners[parent as usize].children[index];
        let left = &mut self.inners[child as usize];
        let len = left.slots.len();
        // Ascending inserts never come back to the left half: leave it full.
        let is_run = left.child_index(arena, key, seq) == len;
        let keep = if is_run { len - 1 } else { len / 2 };

        let slots = left.slots.split_off(arena, keep + 1);
        let mut children = [NONE; CAPACITY + 1];
        children[..len - keep].copy_from_slice(&left.children[keep + 1..=len]);
        let separator = left.slots.pop();
        let right = self.inners.len() as u32;
        self.inners.push(Inner { slots, children });
        self.inners[parent as usize].insert(arena, index, separator, right);
    }

    /// Splits the full leaf that is child `child_index` of `parent`, and adds the entry, which
    /// belongs at `index` of that leaf.
    ///
    /// Where entries keep arriving side by side (keys in order; or ever newer versions of one key,
    /// which sort in front of each other), a split in the middle would leave half-empty leaves
    /// behind. There the leaf is split where the run is, on the side that keeps at least half.
    fn split_leaf(
        &mut self,
        arena: &Arena,
        (parent, child_index): (u32, usize),
        index: usize,
        key: &[u8],
        loc: Loc,
    ) {
        let leaf = self.inners[parent as usize].children[child_index];
        let right = self.leaves.len as u32;
        let left = self.leaves.at_mut(leaf);
        let (len, middle) = (left.slots.len(), left.slots.len() / 2);
        let latest = usize::from(left.latest);
        let at = if index == latest + 1 {
            index.max(middle)
        } else if index == latest {
            index.min(middle)
        } else {
            middle
        };

        let mut slots = left.slots.split_off(arena, at);
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
        match self.leaves.get_mut(next) {
            Some(next) => next.prev = right,
            None => self.last_leaf = right,
        }
        self.leaves.push(Leaf { slots, prev: leaf, next, latest: right_latest });
        self.inners[parent as usize].insert(arena, child_index, separator, right);
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
