//! A seeded random sequence.

use kstone_core::env::{Random, SeededRandom};

/// A sequence of draws.
#[derive(Debug)]
pub struct Chance {
    random: SeededRandom,
}

impl Chance {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Chance {
        Chance { random: SeededRandom::new(seed) }
    }

    /// A sequence of its own for each thing of a seed, so that one more draw for one learner changes
    /// nothing for the next.
    pub fn for_each(seed: u64, thing: u64) -> Chance {
        let mixed = SeededRandom::new(seed ^ thing.wrapping_mul(0xd6e8_feb8_6659_fd93)).next_u64();
        Chance::new(mixed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// From 0 to just below 1.
    pub fn unit(&mut self) -> f64 {
        const STEPS: f64 = (1u64 << 53) as f64;
        (self.any() >> 11) as f64 / STEPS
    }

    /// Whether something of this chance happens.
    pub fn happens(&mut self, chance: f64) -> bool {
        self.unit() < chance
    }

    /// Between these two.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A whole number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.unit() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// From a bell curve of this middle and standard deviation (Box and Muller's way).
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        mean + deviation * radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// One of these.
    pub fn one_of<'a, T>(&mut self, things: &'a [T]) -> Option<&'a T> {
        things.get(self.below(things.len()))
    }
}

/// The chance of success that goes with a distance in logits.
pub(super) fn logistic(logits: f64) -> f64 {
    1.0 / (1.0 + (-logits).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_the_same_for_a_seed_and_others_for_another() {
        let draws = |seed| -> Vec<u64> {
            let mut chance = Chance::for_each(seed, 3);
            (0..5).map(|_| chance.any()).collect()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }

    #[test]
    fn a_bell_curve_has_its_middle_and_its_width() {
        let mut chance = Chance::new(9);
        let draws: Vec<f64> = (0..20_000).map(|_| chance.normal(2.0, 0.5)).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!((mean - 2.0).abs() < 0.02 && (variance.sqrt() - 0.5).abs() < 0.02);
    }

    #[test]
    fn whole_numbers_stay_below_their_end() {
        let mut chance = Chance::new(4);
        let mut seen = [0; 3];
        for _ in 0..300 {
            seen[chance.below(3)] += 1;
        }
        assert!(seen.iter().all(|times| *times > 60), "{seen:?}");
        assert_eq!(chance.below(0), 0);
        assert!(chance.one_of::<u8>(&[]).is_none());
    }
}
