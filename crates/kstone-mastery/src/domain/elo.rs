//! Elo ratings of learners and questions, which give the chance of a right answer.
//!
//! A learner has a rating of their own and one more for each skill; a question has one that says how
//! hard it is. All are in logits: the chance of a right answer is the logistic function of the
//! learner's two ratings less the question's. After each answer every rating moves a step towards
//! what was seen; the steps grow smaller the more answers a rating comes from. So an answer costs the
//! same however many there were, and nothing has to be trained.
//!
//! A learner's ratings change with their own events, in [`LearnerState`](super::LearnerState). The
//! rating of a question is shared by all learners, and a transaction per answer on it would make
//! them wait for each other. So it is not part of that transaction: each answer leaves an
//! [`ObservedAnswer`] behind, and somebody gathers them and folds them into the [`ItemRating`]s now and
//! then, many at a time. What a question was rated at when it was answered is kept in the event: a
//! learner's state never depends on what others did later.

use serde::{Deserialize, Serialize};

use super::score::to_millionths;

/// The first step, before anything is known.
const STEP_FIRST: f64 = 0.4;
/// How quickly steps grow smaller: after 20 answers they are half as long.
const STEP_DECAY: f64 = 0.05;
/// Ratings stay within this, where the chance is within 1 in 3000 of certainty.
const RATING_MAX: f64 = 8.0;

/// A rating in logits, and how many answers it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rating {
    /// The rating; 0 at the beginning.
    pub rating: f64,
    /// How many answers it comes from.
    pub answers: u32,
}

impl Rating {
    /// Updates the rating: `surprise` is how much more (or less) success there was than expected,
    /// from -1 to 1.
    pub fn step(&mut self, surprise: f64) {
        let step = STEP_FIRST / (1.0 + STEP_DECAY * f64::from(self.answers));
        let moved = (self.rating + step * surprise).clamp(-RATING_MAX, RATING_MAX);
        self.rating = to_millionths(moved);
        self.answers = self.answers.saturating_add(1);
    }
}

/// The chance of a right answer by someone of this ability to a question of this difficulty.
pub fn chance_of_success(ability: f64, difficulty: f64) -> f64 {
    1.0 / (1.0 + (difficulty - ability).exp())
}

/// By how much an answer is better or worse than was expected.
pub fn surprise(ability: f64, difficulty: f64, correct: bool) -> f64 {
    f64::from(u8::from(correct)) - chance_of_success(ability, difficulty)
}

/// The difficulty of a question, from the answers of all learners. It names none of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ItemRating {
    /// What the question is about.
    pub skill_id: String,
    /// Which question.
    pub item_id: String,
    /// How hard it is, and from how many answers that is known.
    #[serde(flatten)]
    pub difficulty: Rating,
}

/// An answer as evidence of the difficulty of its question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedAnswer {
    /// What the question is about.
    pub skill_id: String,
    /// Which question.
    pub item_id: String,
    /// How able the learner was just before, in logits.
    pub ability: f64,
    /// Whether the answer was right.
    pub correct: bool,
}

impl ItemRating {
    /// The rating of a question without answers.
    pub fn new(skill_id: impl Into<String>, item_id: impl Into<String>) -> ItemRating {
        let (skill_id, item_id) = (skill_id.into(), item_id.into());
        ItemRating { skill_id, item_id, difficulty: Rating::default() }
    }

    /// Learns from an answer.
    pub fn absorb(&mut self, answer: &ObservedAnswer) {
        let surprise = surprise(answer.ability, self.difficulty.rating, answer.correct);
        self.difficulty.step(-surprise);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equals_meet_at_one_half_and_three_logits_are_nineteen_in_twenty() {
        assert_eq!(chance_of_success(0.7, 0.7), 0.5);
        assert!((chance_of_success(3.0, 0.0) - 0.9526).abs() < 1e-4);
        assert!((chance_of_success(0.0, 3.0) - 0.0474).abs() < 1e-4);
    }

    #[test]
    fn the_first_step_is_four_tenths_and_the_twenty_first_half_of_it() {
        let mut new = Rating::default();
        new.step(1.0);
        assert_eq!(new, Rating { rating: 0.4, answers: 1 });
        let mut known = Rating { rating: 0.0, answers: 20 };
        known.step(-1.0);
        assert_eq!(known.rating, -0.2);
    }

    #[test]
    fn ratings_find_the_true_difference_between_learners_and_questions() {
        // Two questions, two logits apart, answered by the same learners at the chances these have.
        let (mut easy, mut hard) = (ItemRating::new("s", "easy"), ItemRating::new("s", "hard"));
        for turn in 0..4000 {
            // A fixed low-discrepancy sequence stands in for chance.
            let dice = f64::from(turn) * 0.618_033_988_75 % 1.0;
            for (item, difficulty) in [(&mut easy, -1.0), (&mut hard, 1.0)] {
                let correct = dice < chance_of_success(0.0, difficulty);
                let (skill_id, item_id) = (item.skill_id.clone(), item.item_id.clone());
                item.absorb(&ObservedAnswer { skill_id, item_id, ability: 0.0, correct });
            }
        }
        assert!((easy.difficulty.rating + 1.0).abs() < 0.1, "{easy:?}");
        assert!((hard.difficulty.rating - 1.0).abs() < 0.1, "{hard:?}");
    }

    #[test]
    fn a_rating_of_an_item_is_flat_in_json() {
        let mut item = ItemRating::new("fractions", "q-17");
        item.difficulty.step(0.5);
        let json = serde_json::to_string(&item).unwrap();
        assert_eq!(json, r#"{"skill_id":"fractions","item_id":"q-17","rating":0.2,"answers":1}"#);
        assert_eq!(serde_json::from_str::<ItemRating>(&json).unwrap(), item);
    }

    proptest! {
        #[test]
        fn success_never_lowers_a_rating_and_failure_never_lifts_it(
            rating in -8.0..8.0, answers in 0..1000_u32, difficulty in -8.0..8.0,
        ) {
            let before = Rating { rating: to_millionths(rating), answers };
            for correct in [true, false] {
                let mut after = before;
                after.step(surprise(before.rating, difficulty, correct));
                prop_assert!(after.rating.is_finite() && after.rating.abs() <= RATING_MAX);
                let moved = after.rating - before.rating;
                let towards = if correct { moved } else { -moved };
                prop_assert!(towards >= 0.0);
                prop_assert!(moved.abs() <= STEP_FIRST + 1e-6);
            }
        }
    }
}
