//! The [`Model`] trait of predictors, and the baseline models.

use std::collections::HashMap;

use crate::evaluate::answers::Answer;

/// A model that predicts answers one after the other, and learns from each.
pub(super) trait Model {
    /// The chance that this answer is right. Whether it is, must not be looked at.
    fn chance(&self, answer: &Answer) -> f64;

    /// Takes in what came of it.
    fn learn(&mut self, answer: &Answer);
}

/// The share of right answers so far.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    right: f64,
    all: f64,
}

impl Share {
    /// Starts from the share in `first`.
    fn from(self, first: f64, weight: f64) -> f64 {
        (self.right + first * weight) / (self.all + weight)
    }

    fn count(&mut self, correct: bool) {
        self.right += f64::from(u8::from(correct));
        self.all += 1.0;
    }
}

/// How many answers the share of all learners stands for, in the share of one.
const OTHERS_WEIGHT: f64 = 2.0;

/// Running accuracy: the share of right answers of this learner in this skill so far, which begins
/// at the share of the learners before, in place of the 0 or 1 after a first answer.
#[derive(Debug, Default)]
pub(super) struct RunningAccuracy {
    skills: HashMap<u32, Share>,
    learners: HashMap<(u32, u32), Share>,
}

impl Model for RunningAccuracy {
    fn chance(&self, answer: &Answer) -> f64 {
        let others = self.skills.get(&answer.skill).copied().unwrap_or_default().from(0.5, 2.0);
        let own = self.learners.get(&(answer.learner, answer.skill));
        own.copied().unwrap_or_default().from(others, OTHERS_WEIGHT)
    }

    fn learn(&mut self, answer: &Answer) {
        self.skills.entry(answer.skill).or_default().count(answer.correct);
        self.learners.entry((answer.learner, answer.skill)).or_default().count(answer.correct);
    }
}

/// The chance that the simulation drew the answer with: nothing can predict better.
pub(super) struct TrueChance;

impl Model for TrueChance {
    fn chance(&self, answer: &Answer) -> f64 {
        answer.truth.map_or(0.5, |truth| f64::from(truth.chance))
    }

    fn learn(&mut self, _: &Answer) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_accuracy_begins_with_what_others_did_and_becomes_the_learners_own() {
        let answer = |learner, correct| Answer { learner, skill: 3, item: 0, correct, truth: None };
        let mut model = RunningAccuracy::default();
        assert_eq!(model.chance(&answer(1, true)), 0.5);
        for _ in 0..50 {
            model.learn(&answer(1, true));
        }
        let newcomer = model.chance(&answer(2, true));
        assert!(newcomer > 0.95, "{newcomer}");
        for _ in 0..50 {
            model.learn(&answer(2, false));
        }
        assert!(model.chance(&answer(2, true)) < 0.05);
    }
}
