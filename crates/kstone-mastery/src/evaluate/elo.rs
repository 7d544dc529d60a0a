//! The Elo model of the mastery engine, for evaluation. Here the rating of a question moves with
//! every answer; the engine does that in a job for many answers at once.

use std::collections::HashMap;

use crate::domain::elo::{Rating, chance_of_success, surprise};
use crate::evaluate::answers::Answer;
use crate::evaluate::model::Model;

/// The ratings of everybody and everything.
#[derive(Debug, Default)]
pub(super) struct Elo {
    learners: HashMap<u32, Rating>,
    /// By learner and skill: what they can do in it beyond what they can do in general.
    skills: HashMap<(u32, u32), Rating>,
    items: HashMap<u32, Rating>,
}

impl Elo {
    /// How able the learner is in the skill, in logits, if it was practised at least so often.
    pub(super) fn ability(&self, learner: u32, skill: u32, answers_min: u32) -> Option<f64> {
        let general = self.learners.get(&learner)?;
        let beyond = self.skills.get(&(learner, skill))?;
        (beyond.answers >= answers_min).then_some(general.rating + beyond.rating)
    }

    /// The learner's ability in the skill, and the item's difficulty.
    fn ratings(&self, answer: &Answer) -> (f64, f64) {
        let of = |rating: Option<&Rating>| rating.map_or(0.0, |rating| rating.rating);
        let general = of(self.learners.get(&answer.learner));
        let beyond = of(self.skills.get(&(answer.learner, answer.skill)));
        (general + beyond, of(self.items.get(&answer.item)))
    }
}

impl Model for Elo {
    fn chance(&self, answer: &Answer) -> f64 {
        let (ability, difficulty) = self.ratings(answer);
        chance_of_success(ability, difficulty)
    }

    fn learn(&mut self, answer: &Answer) {
        let (ability, difficulty) = self.ratings(answer);
        let surprise = surprise(ability, difficulty, answer.correct);
        self.learners.entry(answer.learner).or_default().step(surprise);
        self.skills.entry((answer.learner, answer.skill)).or_default().step(surprise);
        self.items.entry(answer.item).or_default().step(-surprise);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AcceptedEvent, EventDetail, LearnerState, LearningEvent};
    use crate::simulate::Chance;
    use kstone_base::time::{Moment, Zone};

    #[test]
    fn the_ratings_are_those_that_the_engine_would_have_come_to() {
        let (mut elo, mut chance) = (Elo::default(), Chance::new(3));
        let mut state = LearnerState::new("s");
        for number in 0..200_u64 {
            let skill = chance.below(3) as u32;
            let item = skill * 10 + chance.below(5) as u32;
            let answer =
                Answer { learner: 1, skill, item, correct: chance.happens(0.6), truth: None };
            let at = Moment::from_epoch_ms(1_768_386_600_000 + number);
            let event = LearningEvent {
                event_id: format!("e{number}"),
                student_id: "s".into(),
                school_id: None,
                occurred_at: at,
                what: EventDetail::Answer {
                    skill_id: format!("skill-{skill}"),
                    item_id: format!("item-{item}"),
                    correct: answer.correct,
                    took_ms: None,
                    error_kind: None,
                },
            };
            let (_, difficulty) = elo.ratings(&answer);
            state.apply(&AcceptedEvent::new(event, at, &Zone::UTC, Some(difficulty)));
            elo.learn(&answer);
        }
        for (skill, rating) in (0..3).zip(state.skills()) {
            let here = elo.ability(1, skill, 0).unwrap();
            assert!((here - rating.rating).abs() < 1e-4, "{here} and {}", rating.rating);
        }
    }
}
