//! A seeded source of random choices.

use std::cell::Cell;

use kstone_core::env::{Random as _, SeededRandom};

/// A source of choices.
#[derive(Debug)]
pub struct Dice {
    random: SeededRandom,
    may_fault: Cell<bool>,
}

impl Dice {
    /// The same seed gives the same choices.
    pub fn new(seed: u64) -> Self {
        Dice { random: SeededRandom::new(seed), may_fault: Cell::new(true) }
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&self, n: usize) -> usize {
        (self.random.next_u64() % n.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Begins something new, in which one thing may be wrong.
    pub fn allow_fault(&self) {
        self.may_fault.set(true);
    }

    /// True once in `n` times, and then not again until [`Dice::allow_fault`]: of two mistakes in
    /// one request, two servers may well name different ones.
    pub fn fault(&self, n: usize) -> bool {
        self.one_in(n) && self.may_fault.replace(false)
    }

    /// One of several.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<'a, T>(&self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Any number.
    pub fn number(&self) -> u64 {
        self.random.next_u64()
    }
}
