//! A seeded source of the simulator's choices.

use kstone_core::env::{Random, SeededRandom};

/// A sequence of choices.
#[derive(Debug)]
pub(crate) struct Dice(SeededRandom);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(SeededRandom::new(seed))
    }

    pub(crate) fn seed(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, or 0 if there is none. (The bias of the remainder does not matter
    /// for a choice of test cases.)
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64().checked_rem(end).unwrap_or(0)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// How likely one thing among many is to survive. Drawn once for all of them: with an even
    /// chance for each, "everything but one" and "nothing but one", where bugs hide, would never
    /// come up among hundreds.
    pub(crate) fn survival_percent(&mut self) -> u64 {
        self.pick(&[0, 3, 20, 50, 80, 97, 100]).copied().unwrap_or(50)
    }
}
