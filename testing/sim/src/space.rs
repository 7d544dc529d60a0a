//! Which sectors of a file have room on the disk.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of sectors, kept as ranges, because a preallocated file is one long range.
#[derive(Debug, Clone, Default)]
pub(crate) struct Space {
    /// Start to end; ranges neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
}

impl Space {
    pub(crate) fn count(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// How many of `wanted` are not in the set.
    pub(crate) fn missing(&self, wanted: &Range<u64>) -> u64 {
        let here: u64 = self
            .ranges
            .range(..wanted.end)
            .rev()
            .map(|(&start, &end)| (start.max(wanted.start), end.min(wanted.end)))
            .take_while(|(start, end)| start < end)
            .map(|(start, end)| end - start)
            .sum();
        (wanted.end.saturating_sub(wanted.start)) - here
    }

    pub(crate) fn insert(&mut self, added: &Range<u64>) {
        if added.is_empty() {
            return;
        }
        let (mut start, mut end) = (added.start, added.end);
        let touching: Vec<(u64, u64)> = self
            .ranges
            .range(..=end)
            .rev()
            .map(|(&s, &e)| (s, e))
            .take_while(|&(_, e)| e >= added.start)
            .collect();
        for (s, e) in touching {
            self.ranges.remove(&s);
            start = start.min(s);
            end = end.max(e);
        }
        self.ranges.insert(start, end);
    }

    /// Removes everything from sector `end` on.
    pub(crate) fn truncate(&mut self, end: u64) {
        self.ranges.split_off(&end);
        if let Some(mut last) = self.ranges.last_entry() {
            let cut = end.min(*last.get());
            last.insert(cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;
    use std::collections::BTreeSet;

    #[test]
    fn ranges_count_like_a_set_of_sectors() {
        for seed in 0..200 {
            let mut dice = Dice::new(seed);
            let mut space = Space::default();
            let mut model = BTreeSet::new();
            for _ in 0..30 {
                let start = dice.below(60);
                let range = start..start + dice.below(12);
                if dice.chance(15) {
                    space.truncate(start);
                    model.retain(|&sector| sector < start);
                } else {
                    space.insert(&range);
                    model.extend(range);
                }
                assert_eq!(space.count(), model.len() as u64);
                let start = dice.below(60);
                let asked = start..start + dice.below(12);
                let missing = asked.clone().filter(|sector| !model.contains(sector)).count();
                assert_eq!(space.missing(&asked), missing as u64, "seed {seed}");
                let mut ends = space.ranges.iter().zip(space.ranges.iter().skip(1));
                assert!(ends.all(|((_, end), (next, _))| end < next), "seed {seed}");
            }
        }
    }
}
