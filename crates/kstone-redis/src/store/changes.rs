//! The uncommitted changes of a transaction.

use std::hash::BuildHasher;

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::store::annex::AnnexId;
use crate::store::parts::Parts;

/// Up to so many keys are found by walking over their hashes, which lie side by side; more of them
/// are in a table. As many as commands are executed together.
const FEW: usize = 64;

/// What a record takes in a commit beside its key and value, at most: what is done, the stripe, the
/// table, the ends of the key, and the lengths.
const RECORD_LEN_MAX: usize = 16;
/// What a batch keeps free for a record beside its key and value.
const HEAD_LEN: usize = 48;
/// What an expiry takes, at most.
const EXPIRY_LEN_MAX: usize = 10;
/// What the number of an annex takes as a key, at most.
const ANNEX_LEN_MAX: usize = 2 * size_of::<AnnexId>();

/// The head of a key as it will be.
#[derive(Debug, Clone)]
pub(super) struct Head {
    /// Tag and body.
    pub(super) value: Bytes,
    pub(super) expires_at_ms: Option<u64>,
}

/// The changes to one key.
#[derive(Debug, Default)]
pub(super) struct KeyChanges {
    /// The mark since which the key was changed, if any is set ([`Changes::mark`]).
    marked: u64,
    /// Everything that was there before is gone.
    pub(super) dropped: bool,
    /// The head: written, removed, or as it was.
    pub(super) head: Option<Option<Head>>,
    /// The head was removed only to be written anew.
    pub(super) is_replaced: bool,
    /// Parts written or removed.
    pub(super) parts: Parts,
    /// When the key is to be looked at even if nobody asks for it: changed to a time or to never,
    /// or as it was.
    pub(super) alarm: Option<Option<u64>>,
    /// Whether the engine has a head, expired or not; known once `head` is set.
    pub(super) existed: bool,
    /// How often parts were written or removed.
    pub(super) writes: u64,
    /// The bytes of the parts that are held back.
    pub(super) held_back_len: usize,
    /// The annex that has the parts, if it is another than the engine's head names.
    pub(super) annex: Option<AnnexId>,
    /// How often parts that were held back went to it.
    pub(super) annex_fills: u32,
    /// The head as the engine has it had no parts, so none are stored.
    pub(super) bare: bool,
    /// Parts that are looked up by their names are among those written or removed.
    pub(super) has_members: bool,
    /// Parts were copied without looking at what they are.
    pub(super) is_copied: bool,
    /// The last thing that happened to the key is that its time, or that of fields of it, was over.
    pub(super) is_timed: bool,
    /// How often everything that the key held was removed for good.
    pub(super) removals: u32,
    /// The pattern that the policy has for the key, as it is noted with its head; 0 if it has none.
    pub(super) pattern_mark: u32,
}

/// The changes of a transaction, by slot and key. A command changes one key or two; a script or a
/// transaction may change a million.
#[derive(Debug, Default)]
pub(super) struct Changes {
    keys: Vec<(u8, Vec<u8>, KeyChanges)>,
    /// The hash of each.
    hashes: Vec<u64>,
    /// Where in `keys` each is; empty while they are few.
    places: HashTable<usize>,
    hasher: DefaultHashBuilder,
    mark: Mark,
    /// Counts the changes.
    touches: u64,
}

/// Where to go back to.
#[derive(Debug, Default)]
struct Mark {
    /// 0 if none is set; otherwise each has another.
    number: u64,
    /// How many keys had changes.
    len: usize,
    /// What a commit of these would have taken.
    bytes: usize,
    /// Where those are that were changed again since, as what they were without the parts, which
    /// know that themselves, and what they would have taken in a commit.
    before: Vec<(usize, KeyChanges, usize)>,
    /// Something was done since that cannot be taken back.
    is_lost: bool,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Room for the changes of so many keys.
    pub(super) fn reserve(&mut self, keys: usize) {
        self.keys.reserve(keys);
        self.hashes.reserve(keys);
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    fn find(&self, slot: u8, key: &[u8]) -> Option<usize> {
        if self.keys.is_empty() {
            return None;
        }
        self.find_hashed(slot, key, self.hash(key))
    }

    fn find_hashed(&self, slot: u8, key: &[u8], hash: u64) -> Option<usize> {
        let is_it =
            |at: &usize| self.keys.get(*at).is_some_and(|(of, have, _)| *of == slot && have == key);
        if self.keys.len() <= FEW {
            let alike = self.hashes.iter().enumerate().filter(|(_, have)| **have == hash);
            return alike.map(|(at, _)| at).find(is_it);
        }
        self.places.find(hash, is_it).copied()
    }

    /// Lets a key be found by its hash.
    fn note_place(&mut self, at: usize) {
        let Changes { hashes, places, .. } = self;
        let hash = |at: &usize| hashes.get(*at).copied().unwrap_or(0);
        places.insert_unique(hash(&at), at, hash);
    }

    pub(super) fn get(&self, slot: u8, key: &[u8]) -> Option<&KeyChanges> {
        self.find(slot, key).and_then(|at| self.keys.get(at)).map(|(_, _, changes)| changes)
    }

    pub(super) fn at(&mut self, slot: u8, key: &[u8]) -> &mut KeyChanges {
        let hash = self.hash(key);
        let at = self.find_hashed(slot, key, hash).unwrap_or_else(|| {
            self.keys.push((slot, key.to_vec(), KeyChanges::default()));
            self.hashes.push(hash);
            let last = self.keys.len() - 1;
            match last {
                ..FEW => {}
                FEW => self.note_places(),
                _ => self.note_place(last),
            }
            last
        });
        #[expect(clippy::indexing_slicing, reason = "it was found there, or just put there")]
        let (_, key, changes) = &mut self.keys[at];
        self.touches += 1;
        changes.is_timed = false;
        if changes.marked != self.mark.number && at < self.mark.len {
            changes.marked = self.mark.number;
            self.mark.before.push((at, changes.without_parts(), changes.commit_len_max(key)));
            changes.parts.note_changes();
        }
        changes
    }

    /// From here on [`take_back`](Changes::take_back) can take back what is changed. What was
    /// marked before is forgotten.
    pub(super) fn mark(&mut self) {
        self.mark.bytes = self.commit_len_max();
        self.keep();
        self.mark.number += 1;
        self.mark.len = self.keys.len();
        self.mark.is_lost = false;
    }

    /// What was changed since the last mark is not taken back any more.
    fn keep(&mut self) {
        for (at, _, _) in self.mark.before.drain(..) {
            if let Some((_, _, changes)) = self.keys.get_mut(at) {
                changes.parts.keep_changes();
            }
        }
    }

    /// How many bytes a commit takes, at most. To know it costs nothing for keys that were not
    /// changed since the last mark.
    pub(super) fn commit_len_max(&self) -> usize {
        let before = self.mark.before.iter().map(|(_, _, bytes)| bytes).sum::<usize>();
        let changed = self.mark.before.iter().filter_map(|(at, _, _)| self.keys.get(*at));
        let new = self.keys.iter().skip(self.mark.len);
        let since = changed.chain(new).map(|(_, key, changes)| changes.commit_len_max(key));
        (self.mark.bytes + since.sum::<usize>()).saturating_sub(before)
    }

    /// A number that grows with every change.
    pub(super) fn touches(&self) -> u64 {
        self.touches
    }

    /// Where the keys are that were changed since the last mark, or at all without one: the first,
    /// the second and so on, each with what its changes were then, if it had any.
    pub(super) fn touched(&self, nth: usize) -> Option<(usize, Option<&KeyChanges>)> {
        if let Some((at, before, _)) = self.mark.before.get(nth) {
            return Some((*at, Some(before)));
        }
        let at = self.mark.len + nth.checked_sub(self.mark.before.len())?;
        (at < self.keys.len()).then_some((at, None))
    }

    /// The changes at a place.
    pub(super) fn nth(&self, at: usize) -> Option<(u8, &[u8], &KeyChanges)> {
        self.keys.get(at).map(|(slot, key, changes)| (*slot, key.as_slice(), changes))
    }

    /// Lets a head that was written, at a place, end at another time; false if there is none. The
    /// key has been changed since the last mark.
    pub(super) fn set_end(&mut self, at: usize, at_ms: Option<u64>) -> bool {
        let head = self.keys.get_mut(at).and_then(|(_, _, changes)| changes.head.as_mut());
        let Some(Some(head)) = head else { return false };
        head.expires_at_ms = at_ms;
        true
    }

    /// Notes which pattern the policy has for the key at a place. That goes by its name alone, so
    /// it is right whatever is taken back.
    pub(super) fn note_pattern(&mut self, at: usize, mark: u32) {
        if let Some((_, _, changes)) = self.keys.get_mut(at) {
            changes.pattern_mark = mark;
        }
    }

    /// What is done now cannot be taken back.
    pub(super) fn lose_mark(&mut self) {
        self.mark.is_lost = true;
    }

    /// Everything is as it was at the last mark; false if that cannot be.
    #[must_use]
    pub(super) fn take_back(&mut self) -> bool {
        if self.mark.number == 0 || self.mark.is_lost {
            return false;
        }
        self.keys.truncate(self.mark.len);
        self.hashes.truncate(self.mark.len);
        for (at, before, _) in self.mark.before.drain(..) {
            if let Some((_, _, changes)) = self.keys.get_mut(at) {
                let parts = std::mem::take(&mut changes.parts);
                *changes = KeyChanges { parts, ..before };
                changes.parts.take_back();
            }
        }
        if self.keys.len() <= FEW {
            self.places.clear();
        } else {
            self.places.retain(|at| *at < self.mark.len);
        }
        true
    }

    fn note_places(&mut self) {
        self.places.clear();
        for at in 0..self.keys.len() {
            self.note_place(at);
        }
    }

    /// Everything changed in a slot is gone.
    pub(super) fn forget_slot(&mut self, slot: u8) {
        self.lose_mark();
        self.keep();
        (self.mark.len, self.mark.bytes) = (0, 0);
        self.keys.retain(|(at, _, _)| *at != slot);
        self.hashes = self.keys.iter().map(|(_, key, _)| self.hash(key)).collect();
        self.places.clear();
        if self.keys.len() > FEW {
            self.note_places();
        }
    }

    /// The slots that have changes.
    pub(super) fn slots(&self) -> impl Iterator<Item = u8> {
        let mut slots: Vec<u8> = self.keys.iter().map(|(slot, _, _)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots.into_iter()
    }

    /// The keys of one slot.
    pub(super) fn slot(&self, slot: u8) -> impl Iterator<Item = (&Vec<u8>, &KeyChanges)> {
        let of_slot = self.keys.iter().filter(move |(at, _, _)| *at == slot);
        of_slot.map(|(_, key, changes)| (key, changes))
    }

    /// About how many bytes the heads take in a commit.
    pub(super) fn heads_len(&self) -> usize {
        let heads = self.keys.iter().filter_map(|(_, key, changes)| match &changes.head {
            Some(Some(head)) => Some(key.len() + head.value.len() + HEAD_LEN),
            _ => None,
        });
        heads.sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, &Vec<u8>, &KeyChanges)> {
        self.keys.iter().map(|(slot, key, changes)| (*slot, key, changes))
    }
}

impl KeyChanges {
    /// How many bytes a commit takes for them, at most.
    fn commit_len_max(&self, key: &[u8]) -> usize {
        // A zero in a key is stored as two bytes.
        let zeros = key.iter().filter(|byte| **byte == 0).count();
        let key_len = RECORD_LEN_MAX + key.len() + zeros;
        let head_len = self.head.as_ref().map_or(0, |head| {
            let written = head.as_ref().map_or(0, |head| head.value.len() + size_of::<AnnexId>());
            key_len + EXPIRY_LEN_MAX + written
        });
        let dropped_len = if self.dropped { key_len + RECORD_LEN_MAX + ANNEX_LEN_MAX } else { 0 };
        let alarm_len = self.alarm.map_or(0, |_| key_len + EXPIRY_LEN_MAX + 1);
        let (parts, parts_bytes) = self.parts.size();
        let part_len = key_len.max(RECORD_LEN_MAX + ANNEX_LEN_MAX);
        head_len + dropped_len + alarm_len + parts * part_len + parts_bytes
    }

    /// All but the parts.
    fn without_parts(&self) -> KeyChanges {
        KeyChanges { parts: Parts::default(), head: self.head.clone(), ..*self }
    }

    /// Whether every part that the key has was given to it by this transaction. What the engine has
    /// of it must have been noted.
    pub(super) fn is_new(&self) -> bool {
        self.dropped || self.bare || !self.existed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_whether_they_are_few_or_many() {
        let mut changes = Changes::default();
        for n in 0..100_u8 {
            changes.at(n % 3, &[n]).writes = u64::from(n);
            for m in 0..=n {
                let found = changes.get(m % 3, &[m]).map(|changes| changes.writes);
                assert_eq!(found, Some(u64::from(m)), "{m} of {n}");
            }
            assert!(changes.get((n + 1) % 3, &[n]).is_none());
            assert_eq!(changes.iter().count(), usize::from(n) + 1);
        }
        assert_eq!(changes.slots().collect::<Vec<_>>(), [0, 1, 2]);
        changes.forget_slot(1);
        assert_eq!(changes.slot(1).count(), 0);
        assert_eq!(changes.slot(2).count(), 33);
        assert!(changes.get(1, &[1]).is_none());
        assert_eq!(changes.get(2, &[98]).map(|changes| changes.writes), Some(98));
        changes.forget_slot(0);
        changes.forget_slot(2);
        assert!(changes.is_empty());
        changes.at(1, b"again").writes = 1;
        assert!(changes.get(1, b"again").is_some());
    }

    /// What a commit takes, by looking at everything.
    fn commit_len_max(changes: &Changes) -> usize {
        changes.iter().map(|(_, key, changes)| changes.commit_len_max(key)).sum()
    }

    #[test]
    fn what_was_changed_since_a_mark_can_be_taken_back() {
        for before in [0, 1, FEW as u8, FEW as u8 + 1, 40] {
            for since in [0, 1, FEW as u8, 40] {
                let mut changes = Changes::default();
                changes.mark();
                for n in 0..before {
                    changes.at(0, &[n]).parts.insert(b"old", None);
                    changes.at(0, &[n]).head = Some(None);
                }
                assert_eq!(changes.commit_len_max(), commit_len_max(&changes));
                changes.mark();
                for n in 0..before.saturating_add(since) {
                    changes.at(0, &[n]).writes += 1;
                    changes.at(0, &[n]).parts.insert(b"new", None);
                }
                assert_eq!(changes.commit_len_max(), commit_len_max(&changes));
                assert!(changes.take_back());
                assert_eq!(changes.commit_len_max(), commit_len_max(&changes));
                assert_eq!(changes.iter().count(), usize::from(before));
                for n in 0..before {
                    let now = changes.get(0, &[n]).unwrap();
                    assert!(now.parts.get(b"old").is_some() && now.parts.get(b"new").is_none());
                    assert_eq!(now.writes, 0);
                }
                // It goes on as if nothing had been.
                for n in 0..before.saturating_add(since) {
                    assert_eq!(changes.at(0, &[n]).writes, 0);
                    assert!(changes.get(0, &[n]).is_some());
                }
                changes.at(1, b"other").writes += 1;
                changes.forget_slot(0);
                changes.at(1, b"other").parts.insert(b"new", None);
                assert!(!changes.take_back());
                assert_eq!(changes.commit_len_max(), commit_len_max(&changes));
            }
        }
    }
}
