//! When keys were used last, in a table of bounded size: for `OBJECT IDLETIME`.
//!
//! Every command notes the keys that it uses, which costs one hash and one store without a lock.
//! Several keys share a slot of the table; the one used last owns it. A key that lost its slot, or
//! was not used since the server started, counts as unused since then.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::DefaultHashBuilder;

/// How many keys are remembered at most: half a megabyte of them.
const PLACES: usize = 1 << 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Accesses {
    hasher: DefaultHashBuilder,
    opened_at_ms: u64,
    /// Half of the key's hash, and the second since `opened_at_ms` at which it was used, plus one.
    /// Zero is a free place.
    places: Vec<AtomicU64>,
}

impl Accesses {
    pub(crate) fn new(now_ms: u64) -> Accesses {
        let places = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        Accesses { hasher: DefaultHashBuilder::default(), opened_at_ms: now_ms, places }
    }

    /// The key is used now.
    #[inline]
    pub(crate) fn note(&self, slot: u8, key: &[u8], now_ms: u64) {
        let second = now_ms.saturating_sub(self.opened_at_ms) / 1000 + 1;
        let (place, tag) = self.place(slot, key);
        if let Some(place) = place {
            place.store(tag | second.min(u64::from(u32::MAX)), Ordering::Relaxed);
        }
    }

    /// The key counts as used so many seconds ago.
    pub(crate) fn set_idle(&self, slot: u8, key: &[u8], now_ms: u64, idle_s: u64) {
        // What was before the start cannot be told from never.
        self.note(slot, key, now_ms.saturating_sub(idle_s.saturating_mul(1000)));
    }

    /// How many seconds ago the key was used.
    pub(crate) fn idle_s(&self, slot: u8, key: &[u8], now_ms: u64) -> u64 {
        let now = now_ms.saturating_sub(self.opened_at_ms) / 1000;
        let (place, tag) = self.place(slot, key);
        let noted = place.map_or(0, |place| place.load(Ordering::Relaxed));
        if noted == 0 || noted & TAG != tag {
            return now;
        }
        now.saturating_sub((noted & !TAG) - 1)
    }

    fn place(&self, slot: u8, key: &[u8]) -> (Option<&AtomicU64>, u64) {
        let hash = self.hasher.hash_one((slot, key));
        (self.places.get(hash as usize % PLACES), hash & TAG)
    }
}

/// The half of a place that tells keys apart.
const TAG: u64 = 0xffff_ffff_0000_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_idle_since_it_was_used_or_since_the_start() {
        let accesses = Accesses::new(10_000);
        assert_eq!(accesses.idle_s(0, b"a", 15_000), 5);
        accesses.note(0, b"a", 13_000);
        assert_eq!(accesses.idle_s(0, b"a", 15_999), 2);
        assert_eq!(accesses.idle_s(1, b"a", 15_000), 5, "another database's key is another key");
        accesses.set_idle(0, b"a", 20_000, 8);
        assert_eq!(accesses.idle_s(0, b"a", 20_000), 8);
    }
}
