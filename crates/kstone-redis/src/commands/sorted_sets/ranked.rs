//! The in-memory form of a sorted set that is asked about often: it finds the rank of a member and
//! the member at a rank in logarithmic time.
//!
//! Members are kept in order, in blocks of a few hundred; a Fenwick tree over the blocks' lengths
//! says how many members come before a block. A skip list or a tree with counts in its nodes would
//! do the same with a pointer or more for each member.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use crate::server::hot_keys::Resident;

/// A block is split when it would be longer. Longer blocks cost more to insert into, shorter ones
/// more to find.
const BLOCK_LEN_MAX: usize = 256;
/// A block that becomes shorter is joined with another.
const BLOCK_LEN_MIN: usize = BLOCK_LEN_MAX / 8;
/// What a member takes beside its bytes: score, pointer, length, and what the allocator adds.
pub(super) const MEMBER_BYTES: usize = 48;

#[derive(Debug)]
struct Member {
    score: f64,
    name: Box<[u8]>,
}

/// The order of a sorted set: by score, then by name.
pub(super) fn order(a: (f64, &[u8]), b: (f64, &[u8])) -> Ordering {
    a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal).then_with(|| a.1.cmp(b.1))
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    /// None of them is empty.
    blocks: Vec<Vec<Member>>,
    counts: Fenwick,
    len: usize,
    bytes: usize,
}

impl Resident for Ranked {
    fn bytes(&self) -> usize {
        self.bytes + 64
    }
}

impl Ranked {
    /// Makes it from members that come in order.
    pub(super) fn from_ordered(members: impl Iterator<Item = (Box<[u8]>, f64)>) -> Self {
        let mut ranked = Ranked::default();
        for (name, score) in members {
            ranked.bytes += name.len() + MEMBER_BYTES;
            ranked.len += 1;
            match ranked.blocks.last_mut() {
                Some(block) if block.len() < BLOCK_LEN_MAX / 2 => {
                    block.push(Member { score, name })
                }
                _ => ranked.blocks.push(vec![Member { score, name }]),
            }
        }
        ranked.recount();
        ranked
    }

    pub(super) fn insert(&mut self, score: f64, name: &[u8]) {
        let is_before =
            |member: &Member| order((member.score, &member.name), (score, name)) == Ordering::Less;
        let at = self.blocks.partition_point(|block| block.last().is_some_and(is_before));
        let at = at.min(self.blocks.len().saturating_sub(1));
        self.bytes += name.len() + MEMBER_BYTES;
        self.len += 1;
        let member = Member { score, name: name.into() };
        let Some(block) = self.blocks.get_mut(at) else {
            self.blocks.push(vec![member]);
            return self.recount();
        };
        let place = block.partition_point(is_before);
        block.insert(place, member);
        if block.len() > BLOCK_LEN_MAX {
            let upper = block.split_off(block.len() / 2);
            self.blocks.insert(at + 1, upper);
            return self.recount();
        }
        self.counts.add(at, 1);
    }

    pub(super) fn remove(&mut self, score: f64, name: &[u8]) {
        let is_before =
            |member: &Member| order((member.score, &member.name), (score, name)) == Ordering::Less;
        let at = self.blocks.partition_point(|block| block.last().is_some_and(is_before));
        let Some(block) = self.blocks.get_mut(at) else { return };
        let place = block.partition_point(is_before);
        if block.get(place).is_none_or(|member| *member.name != *name) {
            return;
        }
        block.remove(place);
        self.bytes -= name.len() + MEMBER_BYTES;
        self.len -= 1;
        if block.len() < BLOCK_LEN_MIN && self.join(at) {
            return self.recount();
        }
        self.counts.add(at, -1);
    }

    /// Puts a block that has become short together with one beside it, unless that would soon be
    /// split again; returns whether it did. A set that lost most of its members gives back their
    /// memory so.
    fn join(&mut self, at: usize) -> bool {
        let first = if at + 1 < self.blocks.len() { at } else { at.saturating_sub(1) };
        let (Some(one), Some(next)) = (self.blocks.get(first), self.blocks.get(first + 1)) else {
            // The only block.
            let is_empty = self.len == 0;
            if is_empty {
                self.blocks.clear();
            }
            return is_empty;
        };
        let len = one.len() + next.len();
        if len > BLOCK_LEN_MAX / 2 && !one.is_empty() && !next.is_empty() {
            return false;
        }
        let next = self.blocks.remove(first + 1);
        if let Some(one) = self.blocks.get_mut(first) {
            one.extend(next);
            one.shrink_to(BLOCK_LEN_MAX / 2);
        }
        true
    }

    /// How many members there are for which this holds. It holds for the first ones only.
    pub(super) fn position(&self, holds: impl Fn(f64, &[u8]) -> bool) -> usize {
        let holds = |member: &Member| holds(member.score, &member.name);
        let at = self.blocks.partition_point(|block| block.last().is_some_and(holds));
        let within = self.blocks.get(at).map_or(0, |block| block.partition_point(holds));
        self.counts.before(at) + within
    }

    /// The lowest and the highest score.
    pub(super) fn scores(&self) -> Option<(f64, f64)> {
        let first = self.blocks.first()?.first()?;
        Some((first.score, self.blocks.last()?.last()?.score))
    }

    /// Shows the members at these positions, in order or in reverse order, until told to stop.
    pub(super) fn walk(
        &self,
        positions: Range<usize>,
        reverse: bool,
        mut see: impl FnMut(&[u8], f64) -> ControlFlow<()>,
    ) {
        let end = positions.end.min(self.len);
        let mut left = end.saturating_sub(positions.start);
        if left == 0 {
            return;
        }
        let (mut at, mut within) =
            self.counts.find(if reverse { end - 1 } else { positions.start });
        while let Some(block) = self.blocks.get(at) {
            let see = |member: &Member| see(&member.name, member.score);
            let flow = if reverse {
                let members = block.get(..=within).unwrap_or(block).iter().rev().take(left);
                left -= members.len();
                members.into_iter().try_for_each(see)
            } else {
                let members = block.get(within..).unwrap_or_default().iter().take(left);
                left -= members.len();
                members.into_iter().try_for_each(see)
            };
            if flow.is_break() || left == 0 {
                return;
            }
            if reverse {
                if at == 0 {
                    return;
                }
                at -= 1;
                within = self.blocks.get(at).map_or(0, |block| block.len().saturating_sub(1));
            } else {
                (at, within) = (at + 1, 0);
            }
        }
    }

    fn recount(&mut self) {
        self.counts = Fenwick::new(self.blocks.iter().map(Vec::len));
    }
}

/// Sums of the first few of a sequence of numbers, each changed and found in logarithmic time.
#[derive(Debug, Default)]
struct Fenwick {
    sums: Vec<usize>,
}

impl Fenwick {
    fn new(numbers: impl Iterator<Item = usize>) -> Self {
        let mut sums: Vec<usize> = numbers.collect();
        for at in 1..=sums.len() {
            let parent = at + (at & at.wrapping_neg());
            let sum = sums.get(at - 1).copied().unwrap_or_default();
            if let Some(above) = sums.get_mut(parent - 1) {
                *above += sum;
            }
        }
        Fenwick { sums }
    }

    fn add(&mut self, index: usize, change: isize) {
        let mut at = index + 1;
        while let Some(sum) = self.sums.get_mut(at - 1) {
            *sum = sum.wrapping_add_signed(change);
            at += at & at.wrapping_neg();
        }
    }

    /// The sum of all before this one.
    fn before(&self, index: usize) -> usize {
        let (mut at, mut sum) = (index.min(self.sums.len()), 0);
        while at > 0 {
            sum += self.sums.get(at - 1).copied().unwrap_or_default();
            at &= at - 1;
        }
        sum
    }

    /// In which one the `rank`-th unit is, and how many units of it come before.
    fn find(&self, mut rank: usize) -> (usize, usize) {
        let mut at = 0;
        let mut step = self.sums.len().checked_ilog2().map_or(0, |log| 1usize << log);
        while step > 0 {
            if let Some(&sum) = self.sums.get(at + step - 1)
                && sum <= rank
            {
                rank -= sum;
                at += step;
            }
            step /= 2;
        }
        (at, rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ranked: &Ranked, positions: Range<usize>, reverse: bool) -> Vec<(f64, Vec<u8>)> {
        let mut seen = Vec::new();
        ranked.walk(positions, reverse, |name, score| {
            seen.push((score, name.to_vec()));
            ControlFlow::Continue(())
        });
        seen
    }

    /// A small generator, so that a failure comes again.
    fn next(state: &mut u64) -> usize {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 33) as usize
    }

    #[test]
    fn it_agrees_with_a_sorted_vector_whatever_is_done_to_it() {
        let mut state = 1;
        let mut model: Vec<(f64, Vec<u8>)> = Vec::new();
        let mut ranked = Ranked::default();
        for round in 0..12_000 {
            let grows = round < 6_000;
            if model.is_empty() || next(&mut state) % 10 < if grows { 8 } else { 2 } {
                let member = ((next(&mut state) % 50) as f64, round.to_string().into_bytes());
                ranked.insert(member.0, &member.1);
                let place = model.partition_point(|have| {
                    order((have.0, &have.1), (member.0, &member.1)).is_lt()
                });
                model.insert(place, member);
            } else {
                let member = model.remove(next(&mut state) % model.len());
                ranked.remove(member.0, &member.1);
            }
            if round % 100 == 0 {
                let (start, end) = (next(&mut state) % (model.len() + 1), next(&mut state));
                let end = start + end % (model.len() - start + 1);
                let mut expected = model[start..end].to_vec();
                assert_eq!(all(&ranked, start..end, false), expected);
                expected.reverse();
                assert_eq!(all(&ranked, start..end, true), expected);
                let score = (next(&mut state) % 50) as f64;
                let below = model.iter().filter(|member| member.0 < score).count();
                assert_eq!(ranked.position(|have, _| have < score), below);
                assert_eq!(ranked.len, model.len());
            }
        }
        assert!(ranked.blocks.len() <= 1 + 2 * model.len() / BLOCK_LEN_MIN);
        let members = model.iter().map(|(score, name)| (name.clone().into(), *score));
        let loaded = Ranked::from_ordered(members);
        assert_eq!(loaded.bytes(), ranked.bytes());
        assert_eq!(all(&loaded, 0..model.len(), false), model);
    }
}
