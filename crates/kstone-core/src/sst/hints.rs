//! Where in a block a key may be: a small hash table, in memory only.
//!
//! A search by halves reads an entry at every step, each of which lies somewhere else in memory, and
//! then all entries from the restart on. With hints it reads one place of the table, and from the
//! right restart on. They are hints: what is found there is compared as ever, so two keys that look
//! alike here cost time and nothing else.
//!
//! Made by a block of its entries, for those lookups that meet it again.

use super::block::Block;
use super::filter::key_hash;

/// No key belongs here. No start can look like it: it would lie behind the longest block.
const EMPTY: u32 = u32::MAX;
/// A longer block gets no hints: a start takes 16 bits. It has few entries, or is no usual one.
const ENTRIES_LEN_MAX: usize = u16::MAX as usize;

/// The most places of a table: enough for the keys of a block of 4 KiB with entries of 50 bytes.
const PLACES_MAX: usize = 128;

/// For every key of a block the restart from which on to look for it.
///
/// Of a fixed size, to be a part of the block itself: a lookup waits for memory and for little else,
/// and a table of its own would be one more place to wait for.
#[derive(Debug)]
pub(super) struct Hints {
    /// 16 bits of a key's hash, then its restart. Where that place is taken, the next one. At least
    /// one of those in use is empty.
    slots: [u32; PLACES_MAX],
    /// How many are in use, a power of two.
    places: usize,
}

impl Hints {
    /// `None` for a block that is too long, or has too many keys for the table, or whose entries are
    /// malformed (as a lookup will tell).
    pub(super) fn of(block: &Block) -> Option<Hints> {
        if block.entries_len() > ENTRIES_LEN_MAX {
            return None;
        }
        let mut keys: Vec<(u64, u32)> = Vec::new();
        let mut key: Vec<u8> = Vec::new();
        let (mut at, mut start) = (0, 0);
        while at < block.entries_len() {
            let entry = block.entry(at).ok()?;
            if entry.shared > key.len() {
                return None;
            }
            if entry.shared == 0 {
                start = at as u32;
            }
            // A further version of a key is found behind the first.
            let is_version = entry.shared == key.len() && entry.suffix.is_empty()
                || entry.shared == 0 && key == entry.suffix;
            if !is_version || at == 0 {
                key.truncate(entry.shared);
                key.extend_from_slice(entry.suffix);
                keys.push((key_hash(&key), start));
            }
            at = entry.end;
        }
        let places = (keys.len() + keys.len() / 2 + 1).next_power_of_two();
        if places > PLACES_MAX {
            return None;
        }
        let mut slots = [EMPTY; PLACES_MAX];
        for (hash, start) in keys {
            let mut place = hash as usize;
            while slots.get(place & (places - 1)) != Some(&EMPTY) {
                place = place.wrapping_add(1);
            }
            *slots.get_mut(place & (places - 1))? = Self::tag(hash) | start;
        }
        Some(Hints { slots, places })
    }

    /// Where to look for a key with this hash, from the `nth` place on that it may be noted at, and the
    /// place to go on with; `None` if nowhere else.
    #[inline]
    pub(super) fn start(&self, hash: u64, mut nth: usize) -> Option<(usize, usize)> {
        let tag = Self::tag(hash);
        loop {
            let place = (hash as usize).wrapping_add(nth) & (self.places - 1);
            let slot = self.slots.get(place).copied().filter(|&slot| slot != EMPTY)?;
            nth += 1;
            if slot & !START_MASK == tag {
                return Some(((slot & START_MASK) as usize, nth));
            }
        }
    }

    #[inline]
    fn tag(hash: u64) -> u32 {
        (hash >> 32) as u32 & !START_MASK
    }
}

const START_MASK: u32 = 0xffff;

#[cfg(test)]
mod tests {
    use super::super::block::{BlockBuilder, common_prefix_len};
    use super::*;
    use crate::entry::{EntryRef, Kind, Seq};
    use bytes::Bytes;

    /// Keys `k000`, `k002`, …, every seventh with so many versions that it goes over restarts.
    fn block(restart_interval: usize) -> Block {
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
