//! Inputs of the score components: completion of lessons, and means that weight recent results
//! more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::score::to_millionths;

/// How many lessons are remembered one by one.
const LESSONS_MAX: usize = 128;
/// An assessment from outside counts as so many lessons.
const ASSESSED_LESSONS: u32 = 5;

/// The completion of started lessons: the best progress of each.
///
/// The last 128 are remembered by name. When one more is begun, the one that was longest left alone
/// is settled: it still counts with its best, but its name is forgotten, and should it be taken up
/// again it counts as another.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Lessons {
    best: BTreeMap<String, Lesson>,
    settled: u32,
    /// Of all of them, remembered and settled.
    sum: f64,
}

/// A lesson that is remembered: its best, and at which change of the learner it was touched last.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Lesson(f64, u64);

impl Lessons {
    /// Records progress in a lesson, at this version of the learner.
    pub(super) fn progress(&mut self, lesson_id: &str, fraction: f64, version: u64) {
        let fraction = to_millionths(fraction);
        if let Some(Lesson(best, touched)) = self.best.get_mut(lesson_id) {
            *touched = version;
            if fraction > *best {
                self.sum = to_millionths(self.sum + fraction - *best);
                *best = fraction;
            }
            return;
        }
        if self.best.len() >= LESSONS_MAX {
            let longest_alone = self.best.iter().min_by_key(|(_, Lesson(_, touched))| *touched);
            if let Some(id) = longest_alone.map(|(id, _)| id.clone()) {
                self.best.remove(&id);
                self.settled = self.settled.saturating_add(1);
            }
        }
        self.best.insert(lesson_id.to_owned(), Lesson(fraction, version));
        self.sum = to_millionths(self.sum + fraction);
    }

    /// Replaces all lessons by an external assessment.
    pub(super) fn assess(&mut self, completion: f64) {
        let sum = to_millionths(completion * f64::from(ASSESSED_LESSONS));
        *self = Lessons { best: BTreeMap::new(), settled: ASSESSED_LESSONS, sum };
    }

    /// The average of the best; 0 without lessons.
    pub(super) fn completion(&self) -> f64 {
        match self.best.len() as f64 + f64::from(self.settled) {
            0.0 => 0.0,
            count => to_millionths((self.sum / count).clamp(0.0, 1.0)),
        }
    }
}

/// A mean in which each result counts a little less with every one after it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct RecentMean {
    mean: f64,
    weight: f64,
}

/// The factor by which earlier results lose weight with each result of weight 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decay(pub(super) f64);

impl RecentMean {
    /// Adds a result with this weight.
    pub(super) fn absorb(&mut self, value: f64, weight: f64, keeping: Decay) {
        let kept = self.weight * keeping.0.powf(weight);
        let total = kept + weight;
        let moved = self.mean + (value - self.mean) * weight / total;
        self.mean = to_millionths(moved.clamp(0.0, 1.0));
        self.weight = to_millionths(total);
    }

    /// Replaces the mean by an external assessment.
    pub(super) fn assess(&mut self, mean: f64, weight: f64) {
        *self = RecentMean { mean: to_millionths(mean), weight };
    }

    /// The mean; 0 without results.
    pub(super) fn mean(&self) -> f64 {
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_each_lesson_the_best_counts() {
        let mut lessons = Lessons::default();
        assert_eq!(lessons.completion(), 0.0);
        lessons.progress("a", 0.5, 1);
        lessons.progress("b", 1.0, 2);
        assert_eq!(lessons.completion(), 0.75);
        lessons.progress("a", 0.2, 3);
        assert_eq!(lessons.completion(), 0.75);
        lessons.progress("a", 0.7, 4);
        assert_eq!(lessons.completion(), 0.85);
    }

    #[test]
    fn lessons_beyond_the_last_128_are_settled_and_still_count() {
        let mut lessons = Lessons::default();
        lessons.progress("first", 1.0, 1);
        for number in 0..127_u64 {
            lessons.progress(&format!("{number}"), 0.0, 2 + number);
        }
        lessons.progress("first", 0.5, 200);
        lessons.progress("more", 0.0, 201);
        assert_eq!(lessons.best.len(), LESSONS_MAX);
        assert!(lessons.best.contains_key("first"), "it was touched of late");
        assert!(!lessons.best.contains_key("0"), "it was longest left alone");
        assert_eq!(lessons.completion(), to_millionths(1.0 / 129.0));
    }

    #[test]
    fn an_assessment_is_met_exactly_and_moved_on_from() {
        let mut lessons = Lessons::default();
        lessons.progress("a", 0.1, 1);
        lessons.assess(0.85);
        assert_eq!(lessons.completion(), 0.85);
        lessons.progress("b", 1.0, 2);
        assert_eq!(lessons.completion(), 0.875);
    }

    #[test]
    fn what_is_recent_counts_more() {
        let mut rising = RecentMean::default();
        let mut falling = RecentMean::default();
        for turn in 0..40 {
            rising.absorb(f64::from(turn) / 40.0, 1.0, Decay(0.9));
            falling.absorb(1.0 - f64::from(turn) / 40.0, 1.0, Decay(0.9));
        }
        assert!(rising.mean() > 0.7, "{rising:?}");
        assert!(falling.mean() < 0.3, "{falling:?}");
    }

    #[test]
    fn the_first_result_is_the_mean() {
        let mut mean = RecentMean::default();
        mean.absorb(0.9, 10.0, Decay(0.98));
        assert_eq!(mean.mean(), 0.9);
    }

    proptest! {
        #[test]
        fn completion_is_the_average_of_the_best(
            steps in proptest::collection::vec((0..20_u8, 0.0..=1.0), 1..80),
        ) {
            let mut lessons = Lessons::default();
            let mut best = BTreeMap::new();
            for (version, (lesson, fraction)) in steps.into_iter().enumerate() {
                lessons.progress(&lesson.to_string(), fraction, version as u64);
                let known = best.entry(lesson).or_insert(0.0_f64);
                *known = known.max(to_millionths(fraction));
            }
            let average = best.values().sum::<f64>() / best.len() as f64;
            prop_assert!((lessons.completion() - average).abs() < 2e-6);
        }

        #[test]
        fn a_mean_stays_between_the_least_and_the_greatest(
            values in proptest::collection::vec((0.2..=0.8, 0.5..=20.0), 1..60),
        ) {
            let mut mean = RecentMean::default();
            for (value, weight) in values {
                mean.absorb(value, weight, Decay(0.98));
                prop_assert!((0.199_999..=0.800_001).contains(&mean.mean()));
            }
        }
    }
}
