//! Hints: a small hash table, in memory only, that says where in a block a key is.
//!
//! A search by halves reads an entry at every step, each of which lies somewhere else in memory, and
//! then all entries from the restart on. With hints a lookup goes straight to the one entry that may
//! be it. That entry has only the end of its key, so it also says which entry in front of it has the
//! bytes before that, and so on until the key is whole: two or three entries, however many there are
//! between two restarts. They are hints: every byte of the key is compared, so two keys that look
//! alike here cost time and nothing else.
//!
//! Made by a block of its entries, for those lookups that meet it again.

use super::block::Block;
use super::filter::key_hash;

/// No key belongs here. No hint can look like it: its entry would lie behind the longest block.
const EMPTY: u32 = u32::MAX;
/// A longer block gets no hints: where an entry begins takes 16 bits. It has few entries, or is no
/// usual one.
const ENTRIES_LEN_MAX: usize = u16::MAX as usize;

/// The most places of a table: enough for the keys of a block of 4 KiB with entries of 50 bytes.
const PLACES_MAX: usize = 128;

/// For every key of a block the entry of its newest version.
///
/// Of a fixed size, to be a part of the block itself: a lookup waits for memory and for little else,
/// and a table of its own would be one more place to wait for.
///
/// In this order: the lengths, which every lookup needs, are where the block's own are.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Hints {
    /// How many of the slots are in use, a power of two.
    places: u16,
    /// How long an entry is, on average.
    entry_len: u16,
    /// From the top: 9 bits of a key's hash, the place of its parent (7 bits), and where its entry begins.
    /// A key is at the place that its hash says; where that is taken, at the next one. At least one of
    /// those in use is empty.
    slots: [u32; PLACES_MAX],
}

/// A key that [`Hints`] know of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hint {
    /// Where the entry of its newest version begins.
    pub(super) at: usize,
    /// The place of the key whose entry has the bytes that come before that entry's own; its own place
    /// if there are none before. The entries between the two share at least as much as this one does.
    parent: usize,
    place: usize,
}

impl Hints {
    /// `None` for a block that is too long, or has too many keys for the table, or whose entries are
    /// malformed (as a lookup will tell).
    pub(super) fn of(block: &Block) -> Option<Hints> {
        if block.entries_len() > ENTRIES_LEN_MAX {
            return None;
        }
        // Hash, entry, and the number of the parent.
        let mut keys: Vec<(u64, u32, usize)> = Vec::new();
        let mut key: Vec<u8> = Vec::new();
        // Who has which bytes of the current key: what each shares with the one before it, ascending.
        let mut parents: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        while at < block.entries_len() {
            let entry = block.entry(at).ok()?;
            if entry.shared > key.len() {
                return None;
            }
            // A further version of a key is found behind the first.
            let is_version = entry.shared == key.len() && entry.suffix.is_empty()
                || entry.shared == 0 && key == entry.suffix;
            if !is_version || at == 0 {
                key.truncate(entry.shared);
                key.extend_from_slice(entry.suffix);
                while parents.pop_if(|(shared, _)| *shared >= entry.shared).is_some() {}
                let nth = keys.len();
                let parent = parents.last().map_or(nth, |(_, parent)| *parent);
                parents.push((entry.shared, nth));
                keys.push((key_hash(&key), at as u32, parent));
            }
            at = entry.end;
        }
        let places = (keys.len() + keys.len() / 2 + 1).next_power_of_two();
        if places > PLACES_MAX {
            return None;
        }
        let mut slots = [EMPTY; PLACES_MAX];
        let mut place_of = Vec::with_capacity(keys.len());
        for (hash, at, parent) in &keys {
            let mut place = *hash as usize & (places - 1);
            while slots.get(place) != Some(&EMPTY) {
                place = (place + 1) & (places - 1);
            }
            place_of.push(place);
            // Its parent is in front of it, or itself.
            let parent = *place_of.get(*parent)? as u32;
            *slots.get_mut(place)? = Self::tag(*hash) | parent << PARENT_SHIFT | at;
        }
        let entry_len = (block.entries_len() / keys.len().max(1)) as u16;
        Some(Hints { slots, places: places as u16, entry_len })
    }

    /// How long an entry is, on average.
    #[inline]
    pub(super) fn entry_len(&self) -> usize {
        usize::from(self.entry_len)
    }

    /// A key with this hash, or one that looks like it, from the `nth` place on where it may be noted,
    /// and the place to go on with; `None` if there is none.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut nth: usize) -> Option<(Hint, usize)> {
        loop {
            let place = (hash as usize).wrapping_add(nth) & (usize::from(self.places) - 1);
            let slot = self.slots.get(place).copied().filter(|&slot| slot != EMPTY)?;
            nth += 1;
            if slot & TAG_MASK == Self::tag(hash) {
                return Some((Hint::of(slot, place), nth));
            }
        }
    }

    /// The key whose entry has the bytes in front of this one's; `None` if this one's has all.
    #[inline]
    pub(super) fn parent(&self, hint: Hint) -> Option<Hint> {
        if hint.parent == hint.place {
            return None;
        }
        self.slots.get(hint.parent).map(|&slot| Hint::of(slot, hint.parent))
    }

    /// Other bits than those that say where the place and the filter's line are.
    #[inline]
    fn tag(hash: u64) -> u32 {
        hash as u32 & TAG_MASK
    }
}

impl Hint {
    #[inline]
    fn of(slot: u32, place: usize) -> Self {
        let parent = (slot & !TAG_MASK) >> PARENT_SHIFT;
        Hint { at: (slot & AT_MASK) as usize, parent: parent as usize, place }
    }
}

const AT_MASK: u32 = 0xffff;
const PARENT_SHIFT: u32 = 16;
const TAG_MASK: u32 = 0xff80_0000;

#[cfg(test)]
mod tests {
    use super::super::block::{BlockBuilder, common_prefix_len};
    use super::*;
    use crate::entry::{EntryRef, Kind, Seq};
    use bytes::Bytes;
    use std::sync::Arc;

    /// Keys `k000`, `k002`, …, every seventh with so many versions that it goes over restarts.
    fn block(restart_interval: usize) -> Arc<Block> {
        let mut builder = BlockBuilder::new(restart_interval);
        let mut last = Vec::new();
        for n in (0..100u32).step_by(2) {
            let key = format!("k{n:03}").into_bytes();
            let versions: Seq = if n % 7 == 0 { 9 } else { 1 };
            for seq in (1..=versions).rev() {
                let value = [n as u8 ^ seq as u8; 100];
                let entry =
                    EntryRef { key: &key, seq, kind: Kind::Put, expires_at_ms: 0, value: &value };
                builder.add(&entry, common_prefix_len(&last, &key));
                last.clone_from(&key);
            }
        }
        Block::parse(Bytes::copy_from_slice(builder.finish())).unwrap()
    }

    #[test]
    fn with_hints_a_lookup_finds_what_it_finds_without() {
        for restart_interval in [1, 4, 16, 1000] {
            let block = block(restart_interval);
            assert!(Hints::of(&block).is_some());
            for n in 0..101u32 {
                let key = format!("k{n:03}").into_bytes();
                for seq in 0..11 {
                    let with = block.get_again(&key, key_hash(&key), seq).unwrap();
                    let without = block.get(&key, seq).unwrap();
                    let seen = |found: Option<super::super::block::Found>| {
                        found.map(|found| (found.seq, found.value))
                    };
                    assert_eq!(seen(with), seen(without), "k{n:03} at {seq}");
                }
            }
        }
    }

    #[test]
    fn keys_that_take_many_pieces_to_put_together_are_found() {
        // Each begins with the one before; then tens and ones, as numbers go.
        let nested = (1..40).map(|len| vec![b'a'; len]);
        let numbers = (1000..1040).map(|n| format!("b{n}").into_bytes());
        let keys: Vec<Vec<u8>> = nested.chain(numbers).collect();
        for restart_interval in [1, 2, 16, 1000] {
            let mut builder = BlockBuilder::new(restart_interval);
            let mut last: &[u8] = &[];
            for (nth, key) in keys.iter().enumerate() {
                let (seq, value) = (nth as Seq + 1, &key[key.len() / 2..]);
                let entry = EntryRef { key, seq, kind: Kind::Put, expires_at_ms: 0, value };
                builder.add(&entry, common_prefix_len(last, key));
                last = key;
            }
            let block = Block::parse(Bytes::copy_from_slice(builder.finish())).unwrap();
            assert!(Hints::of(&block).is_some());
            for (nth, key) in keys.iter().enumerate() {
                let found = block.get_again(key, key_hash(key), Seq::MAX).unwrap();
                assert_eq!(found.map(|found| found.seq), Some(nth as Seq + 1));
                // With another's hash it is that other's entry which is compared, and not answered.
                for other in &keys {
                    let found = block.get_again(key, key_hash(other), Seq::MAX).unwrap();
                    assert!(found.is_none_or(|found| found.seq == nth as Seq + 1));
                }
            }
        }
    }

    #[test]
    fn keys_that_look_alike_are_told_apart() {
        let block = block(4);
        // Whatever the hash says, another key than the one asked for is never answered.
        for n in (0..100u32).step_by(2) {
            let other = key_hash(format!("k{n:03}").as_bytes());
            assert!(block.get_again(b"k001", other, 99).unwrap().is_none());
        }
    }

    #[test]
    fn a_block_of_many_short_entries_has_none() {
        let mut builder = BlockBuilder::new(4);
        for n in 0..120u8 {
            let entry =
                EntryRef { key: &[n], seq: 1, kind: Kind::Put, expires_at_ms: 0, value: b"" };
            builder.add(&entry, 0);
        }
        let block = Block::parse(Bytes::copy_from_slice(builder.finish())).unwrap();
        assert!(Hints::of(&block).is_none());
        assert!(block.get_again(&[7], key_hash(&[7]), 1).unwrap().is_some());
    }

    #[test]
    fn a_block_that_is_too_long_has_none() {
        let mut builder = BlockBuilder::new(4);
        let value = vec![7; ENTRIES_LEN_MAX];
        let entry =
            EntryRef { key: b"a", seq: 1, kind: Kind::Put, expires_at_ms: 0, value: &value };
        builder.add(&entry, 0);
        let block = Block::parse(Bytes::copy_from_slice(builder.finish())).unwrap();
        assert!(Hints::of(&block).is_none());
        assert!(block.get_again(b"a", key_hash(b"a"), 1).unwrap().is_some());
    }
}
