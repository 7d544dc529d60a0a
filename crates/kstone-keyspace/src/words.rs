//! Hash table from literal key segments to matcher nodes. Segments are compared by their length and
//! both ends, so up to 16 bytes need no byte-by-byte comparison.

/// A hash table with open addressing; at most half of it is in use.
#[derive(Debug, Default)]
pub(crate) struct LiteralTable {
    slots: Vec<Option<Entry>>,
    count: usize,
}

#[derive(Debug, Clone)]
struct Entry {
    fingerprint: Fingerprint,
    word: Box<[u8]>,
    leads_to: u32,
}

/// The length of a word, its first eight bytes and its last eight. Words of up to 16 bytes with the
/// same mark are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    length: usize,
    first: u64,
    last: u64,
}

impl Fingerprint {
    #[inline]
    fn of(word: &[u8]) -> Fingerprint {
        let (first, last) = match (word.first_chunk::<8>(), word.last_chunk::<8>()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => match (word.first_chunk::<4>(), word.last_chunk::<4>()) {
                (Some(first), Some(last)) => {
                    (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
                }
                _ => match word {
                    [] => (0, 0),
                    [a] => (u64::from(*a), 0),
                    [a, b] => (u64::from(*a), u64::from(*b)),
                    [a, b, c, ..] => (u64::from(*a), u64::from(*b) << 8 | u64::from(*c)),
                },
            },
        };
        Fingerprint { length: word.len(), first, last }
    }

    #[inline]
    fn hash(self) -> usize {
        // Odd numbers without pattern; only the spread matters.
        let mixed = (self.first ^ self.last.rotate_left(29) ^ self.length as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize
    }
}

impl LiteralTable {
    #[inline]
    pub(crate) fn get(&self, word: &[u8]) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let fingerprint = Fingerprint::of(word);
        let mask = self.slots.len() - 1;
        let mut at = fingerprint.hash() & mask;
        while let Some(known) = self.slots.get(at)? {
            if known.fingerprint == fingerprint
                && (fingerprint.length <= 16 || *known.word == *word)
            {
                return Some(known.leads_to);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Adds a word that is not there.
    pub(crate) fn insert(&mut self, word: &[u8], leads_to: u32) {
        if (self.count + 1) * 2 > self.slots.len() {
            let larger = vec![None; (self.slots.len() * 2).max(4)];
            for word in std::mem::replace(&mut self.slots, larger).into_iter().flatten() {
                self.place(word);
            }
        }
        self.place(Entry { fingerprint: Fingerprint::of(word), word: word.into(), leads_to });
        self.count += 1;
    }

    fn place(&mut self, word: Entry) {
        let mask = self.slots.len() - 1;
        let start = word.fingerprint.hash();
        let free = (0..=mask).map(|step| (start + step) & mask);
        for at in free {
            if let Some(slot) = self.slots.get_mut(at).filter(|slot| slot.is_none()) {
                *slot = Some(word);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_leads_where_it_was_said_to_lead_and_others_lead_nowhere() {
        let mut words = LiteralTable::default();
        assert_eq!(words.get(b""), None);
        let text = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
        let all: Vec<&str> =
            (0..26).flat_map(|from| (from..text.len()).map(move |to| &text[from..to])).collect();
        let distinct: std::collections::BTreeSet<&str> = all.into_iter().collect();
        for (at, word) in distinct.iter().enumerate() {
            assert_eq!(words.get(word.as_bytes()), None, "{word}");
            words.insert(word.as_bytes(), at as u32);
        }
        for (at, word) in distinct.iter().enumerate() {
            assert_eq!(words.get(word.as_bytes()), Some(at as u32), "{word}");
            assert_eq!(words.get(format!("{word}!").as_bytes()), None);
        }
    }

    #[test]
    fn words_that_differ_in_any_one_byte_are_told_apart() {
        for length in 1..40 {
            let word = vec![b'x'; length];
            let mut words = LiteralTable::default();
            words.insert(&word, 7);
            for at in 0..length {
                let mut other = word.clone();
                other[at] = b'y';
                assert_eq!(words.get(&other), None, "length {length}, byte {at}");
            }
            assert_eq!(words.get(&word), Some(7));
        }
    }
}
