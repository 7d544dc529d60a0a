//! A cursor over a memtable, in both directions, while it is written to.
//!
//! A cursor owns a copy of its current entry and holds the memtable's lock only inside a call. It
//! remembers the entry's position in the tree; if entries have moved since, it searches for the
//! entry again. The tree never loses an entry, so a step goes to the neighbour at that moment:
//! nothing that was there when the walk began is missed, and entries that arrive ahead of the
//! cursor are met (the reader's snapshot hides those it must not see).

use bytes::Bytes;

use super::Memtable;
use super::arena::{Record, Value};
use super::tree::{Position, Tree};
use crate::entry::{EntryRef, Kind, Seq};
use crate::sync::Arc;

#[derive(Debug)]
pub(crate) struct MemCursor {
    memtable: Arc<Memtable>,
    /// The current entry's position, and the tree's shape when it was found there.
    place: Option<(Position, u64)>,
    current: Current,
    /// The key that [`MemCursor::next_key`] leaves behind; kept for its memory.
    passed: Vec<u8>,
}

/// A copy of the current entry, in buffers that are used again.
#[derive(Debug)]
struct Current {
    key: Vec<u8>,
    seq: Seq,
    kind: Kind,
    expires_at_ms: u64,
    /// Empty if the value is large.
    inline: Vec<u8>,
    large: Option<Bytes>,
}

impl MemCursor {
    /// A cursor that is not on an entry yet.
    pub(super) fn new(memtable: Arc<Memtable>) -> Self {
        let current = Current {
            key: Vec::new(),
            seq: 0,
            kind: Kind::Put,
            expires_at_ms: 0,
            inline: Vec::new(),
            large: None,
        };
        MemCursor { memtable, place: None, current, passed: Vec::new() }
    }

    /// Whether the cursor is on an entry. Once it ran off either end, only a seek brings it back.
    #[cfg(test)]
    pub(crate) fn valid(&self) -> bool {
        self.place.is_some()
    }

    pub(crate) fn entry(&self) -> Option<EntryRef<'_>> {
        self.place?;
        let current = &self.current;
        Some(EntryRef {
            key: &current.key,
            seq: current.seq,
            kind: current.kind,
            expires_at_ms: current.expires_at_ms,
            value: current.large.as_deref().unwrap_or(&current.inline),
        })
    }

    /// The current value as something the caller can keep; empty if there is no current entry. A
    /// large value is shared, not copied.
    pub(crate) fn value_bytes(&self) -> Bytes {
        match (&self.place, &self.current.large) {
            (None, _) => Bytes::new(),
            (_, Some(large)) => large.clone(),
            (_, None) => Bytes::copy_from_slice(&self.current.inline),
        }
    }

    /// Goes to the first entry that is not before `(key, seq)`.
    pub(crate) fn seek(&mut self, key: &[u8], seq: Seq) {
        self.go(|tree, _| tree.at_or_after(key, seq));
    }

    /// Goes to the last entry that is before `(key, seq)`.
    pub(crate) fn seek_before(&mut self, key: &[u8], seq: Seq) {
        self.go(|tree, _| tree.before(key, seq));
    }

    #[cfg(test)]
    pub(crate) fn seek_first(&mut self) {
        self.go(|tree, _| tree.first());
    }

    #[cfg(test)]
    pub(crate) fn seek_last(&mut self) {
        self.go(|tree, _| tree.last());
    }

    pub(crate) fn next(&mut self) {
        self.go(|tree, here| {
            let next = tree.next(here?)?;
            tree.prefetch(next);
            Some(next)
        });
    }

    /// To the next entry with another key.
    pub(crate) fn next_key(&mut self) {
        let mut passed = std::mem::take(&mut self.passed);
        passed.clone_from(&self.current.key);
        loop {
            self.next();
            if self.place.is_none() || self.current.key != passed {
                break;
            }
        }
        self.passed = passed;
    }

    pub(crate) fn prev(&mut self) {
        self.go(|tree, here| tree.prev(here?));
    }

    /// Moves to where `target` says, given the tree and the current entry's position in it.
    #[inline]
    fn go(&mut self, target: impl FnOnce(&Tree, Option<Position>) -> Option<Position>) {
        let tree = self.memtable.settled();
        let Some(tree) = tree.as_deref() else { return };
        let here = match self.place {
            Some((position, shape)) if shape == tree.shape() => Some(position),
            Some(_) => tree.at_or_after(&self.current.key, self.current.seq),
            None => None,
        };
        self.place = target(tree, here).map(|position| {
            self.current.copy(tree.record(position));
            (position, tree.shape())
        });
    }
}

impl Current {
    fn copy(&mut self, record: Record<'_>) {
        self.key.clear();
        self.key.extend_from_slice(record.key);
        self.seq = record.seq;
        self.kind = record.kind;
        self.expires_at_ms = record.expires_at_ms;
        self.inline.clear();
        self.large = None;
        match record.value {
            Value::Inline(bytes) => self.inline.extend_from_slice(bytes),
            Value::Large(bytes) => self.large = Some(bytes.clone()),
        }
    }
}
