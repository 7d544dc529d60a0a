//! The uncommitted parts of one key, written or removed, in order of their sort keys.
//!
//! Nearly every command changes a few: those are a sorted vector, cheap to make and to drop. A
//! script or a transaction may change a million: then they are a map.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

/// More parts than that are a map.
const FEW: usize = 32;

/// What becomes of a part: its value, or nothing.
pub(super) type Part = Option<Bytes>;

/// See the module. One of the two is empty.
#[derive(Debug, Default)]
pub(super) struct Parts {
    few: Vec<(Vec<u8>, Part)>,
    many: BTreeMap<Vec<u8>, Part>,
    /// The bytes of all sort keys and values.
    bytes: usize,
    /// How to undo the changes since the mark, newest last; `None` without a mark.
    undo: Option<Vec<Undo>>,
}

/// What a change is taken back with.
#[derive(Debug)]
enum Undo {
    /// What was to become of a part, if anything was.
    One(Vec<u8>, Option<Part>),
    /// All parts, and their bytes.
    All(Vec<(Vec<u8>, Part)>, BTreeMap<Vec<u8>, Part>, usize),
}

/// The bytes of a value, if there is one.
fn value_len(part: &Part) -> usize {
    part.as_ref().map_or(0, Bytes::len)
}

impl Parts {
    pub(super) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    pub(super) fn clear(&mut self) {
        let (few, many) = (std::mem::take(&mut self.few), std::mem::take(&mut self.many));
        let bytes = std::mem::take(&mut self.bytes);
        if let Some(undo) = &mut self.undo {
            undo.push(Undo::All(few, many, bytes));
        }
    }

    /// How many there are, and the bytes of their sort keys and values.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.few.len() + self.many.len(), self.bytes)
    }

    /// Hands over all parts to `other`, which loses those that it had.
    pub(super) fn move_to(&mut self, other: &mut Parts) {
        other.clear();
        other.bytes = self.bytes;
        if self.undo.is_some() {
            (other.few, other.many) = (self.few.clone(), self.many.clone());
            self.clear();
        } else {
            (other.few, other.many) =
                (std::mem::take(&mut self.few), std::mem::take(&mut self.many));
            self.bytes = 0;
        }
    }

    /// From now on it is noted how to [take back](Parts::take_back) every change.
    pub(super) fn note_changes(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// Shows the parts that were changed since changes began to be noted, all of them if they are
    /// not noted. One that was changed twice may be shown twice.
    pub(super) fn each_changed<'p>(&'p self, mut see: impl FnMut(&'p [u8], Option<&'p Bytes>)) {
        let undo = self.undo.as_deref();
        let is_all = undo.is_none_or(|undo| undo.iter().any(|undo| matches!(undo, Undo::All(..))));
        if is_all {
            return self.iter().for_each(|(sk, part)| see(sk, part.as_ref()));
        }
        for undo in undo.unwrap_or_default() {
            if let Undo::One(sk, _) = undo
                && let Some(part) = self.get(sk)
            {
                see(sk, part.as_ref());
            }
        }
    }

    /// Whether anything was changed since changes began to be noted, or at all if they are not.
    pub(super) fn has_changed(&self) -> bool {
        self.undo.as_ref().map_or(!self.is_empty(), |undo| !undo.is_empty())
    }

    /// What was noted is not needed any more.
    pub(super) fn keep_changes(&mut self) {
        self.undo = None;
    }

    /// Everything is as it was when changes began to be noted.
    pub(super) fn take_back(&mut self) {
        for undo in self.undo.take().unwrap_or_default().into_iter().rev() {
            match undo {
                Undo::One(sk, Some(part)) => self.insert(&sk, part),
                Undo::One(sk, None) => {
                    let part = match self.find(&sk) {
                        Ok(at) => Some(self.few.remove(at).1),
                        Err(_) => self.many.remove(&sk),
                    };
                    self.bytes -= part.map_or(0, |part| sk.len() + value_len(&part));
                }
                Undo::All(few, many, bytes) => {
                    (self.few, self.many, self.bytes) = (few, many, bytes);
                }
            }
        }
    }

    fn find(&self, sk: &[u8]) -> Result<usize, usize> {
        self.few.binary_search_by(|(have, _)| have.as_slice().cmp(sk))
    }

    /// What becomes of a part, if it was changed.
    pub(super) fn get(&self, sk: &[u8]) -> Option<&Part> {
        if !self.many.is_empty() {
            return self.many.get(sk);
        }
        self.find(sk).ok().and_then(|at| self.few.get(at)).map(|(_, part)| part)
    }

    pub(super) fn insert(&mut self, sk: &[u8], part: Part) {
        if self.undo.is_some() {
            let one = Undo::One(sk.to_vec(), self.get(sk).cloned());
            self.undo.get_or_insert_default().push(one);
        }
        self.bytes += sk.len() + value_len(&part);
        let replaced = if !self.many.is_empty() {
            self.many.insert(sk.to_vec(), part)
        } else {
            match self.find(sk) {
                Ok(at) => self.few.get_mut(at).map(|(_, have)| std::mem::replace(have, part)),
                Err(at) if self.few.len() < FEW => {
                    self.few.insert(at, (sk.to_vec(), part));
                    None
                }
                Err(_) => {
                    self.many.extend(self.few.drain(..));
                    self.many.insert(sk.to_vec(), part)
                }
            }
        };
        if let Some(replaced) = replaced {
            self.bytes -= sk.len() + value_len(&replaced);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &Part)> {
        self.few.iter().map(|(sk, part)| (sk, part)).chain(&self.many)
    }

    /// The parts in a range, in order or in reverse order.
    pub(super) fn range<'a>(
        &'a self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        reverse: bool,
    ) -> Box<dyn Iterator<Item = (&'a Vec<u8>, &'a Part)> + 'a> {
        if self.is_empty() || is_empty_range(low, high) {
            return Box::new(std::iter::empty());
        }
        if !self.many.is_empty() {
            let range = self.many.range::<[u8], _>((low, high));
            return if reverse { Box::new(range.rev()) } else { Box::new(range) };
        }
        let start = self.few.partition_point(|(sk, _)| match low {
            Bound::Included(low) => sk.as_slice() < low,
            Bound::Excluded(low) => sk.as_slice() <= low,
            Bound::Unbounded => false,
        });
        let end = self.few.partition_point(|(sk, _)| match high {
            Bound::Included(high) => sk.as_slice() <= high,
            Bound::Excluded(high) => sk.as_slice() < high,
            Bound::Unbounded => true,
        });
        let range = self.few.get(start..end).unwrap_or_default();
        let range = range.iter().map(|(sk, part)| (sk, part));
        if reverse { Box::new(range.rev()) } else { Box::new(range) }
    }
}

/// A range that holds nothing, which a map would panic at.
fn is_empty_range(low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low), Bound::Excluded(high))
        | (Bound::Excluded(low), Bound::Included(high))
        | (Bound::Excluded(low), Bound::Excluded(high)) => low >= high,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the parts in a range.
    fn range(parts: &Parts, low: Bound<&[u8]>, high: Bound<&[u8]>, reverse: bool) -> Vec<u8> {
        parts.range(low, high, reverse).map(|(sk, _)| sk[0]).collect()
    }

    #[test]
    fn changes_that_were_noted_can_be_taken_back() {
        let shown = |parts: &Parts| -> Vec<_> {
            let bytes = parts.iter().map(|(sk, part)| sk.len() + value_len(part)).sum();
            assert_eq!(parts.size(), (parts.iter().count(), bytes));
            parts.iter().map(|(sk, part)| (sk.clone(), part.clone())).collect()
        };
        for count in [0, 1, FEW, 3 * FEW] {
            let mut parts = Parts::default();
            for n in 0..count {
                parts.insert(&[n as u8], Some(Bytes::from_static(b"old")));
            }
            let before = shown(&parts);
            for is_cleared in [false, true] {
                parts.note_changes();
                parts.insert(&[0], Some(Bytes::from_static(b"new")));
                parts.insert(&[0], None);
                if is_cleared {
                    parts.clear();
                }
                for n in 1..=2 * FEW {
                    parts.insert(&[1, n as u8], Some(Bytes::from_static(b"new")));
                }
                let mut other = Parts::default();
                parts.move_to(&mut other);
                assert!(shown(&parts).is_empty() && !shown(&other).is_empty());
                parts.take_back();
                assert_eq!(shown(&parts), before, "{count}, {is_cleared}");
            }
            parts.note_changes();
            parts.insert(&[0], None);
            parts.keep_changes();
            parts.take_back();
            assert_eq!(parts.get(&[0]), Some(&None));
        }
    }

    #[test]
    fn few_and_many_parts_are_the_same_to_who_reads_them() {
        // Every second number, before and after there are many.
        for count in [FEW, 3 * FEW] {
            let mut parts = Parts::default();
            for n in (0..count).rev() {
                parts.insert(&[2 * n as u8], Some(Bytes::from_static(b"old")));
            }
            parts.insert(&[4], None);
            assert_eq!(parts.many.is_empty(), count == FEW);
            assert_eq!(parts.iter().count(), count);
            assert_eq!(parts.get(&[2]), Some(&Some(Bytes::from_static(b"old"))));
            assert_eq!(parts.get(&[4]), Some(&None));
            assert_eq!(parts.get(&[5]), None);
            let (two, nine, ten): (&[u8], &[u8], &[u8]) = (&[2], &[9], &[10]);
            let (included, excluded) = (Bound::Included, Bound::Excluded);
            assert_eq!(range(&parts, included(two), included(ten), false), [2, 4, 6, 8, 10]);
            assert_eq!(range(&parts, excluded(two), excluded(ten), true), [8, 6, 4]);
            assert_eq!(range(&parts, excluded(nine), included(ten), false), [10]);
            assert_eq!(range(&parts, Bound::Unbounded, excluded(two), false), [0]);
            assert!(range(&parts, included(ten), included(two), false).is_empty());
            assert!(range(&parts, excluded(ten), excluded(ten), false).is_empty());
            let all = range(&parts, Bound::Unbounded, Bound::Unbounded, true);
            assert_eq!(all.len(), count);
            parts.clear();
            assert!(parts.is_empty());
        }
    }
}
