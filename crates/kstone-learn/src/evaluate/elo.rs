//! Elo by the very steps that the mastery engine takes.

use std::collections::HashMap;

use crate::evaluate::answers::Answer;
use crate::evaluate::model::Model;

/// A rating and how many answers it comes from.
#[derive(Debug, Clone, Copy, Default)]
struct Rating {
    value: f64,
    answers: u32,
}

impl Rating {
    fn step(&mut self, by: f64) {
        self.value += 0.4 / (1.0 + 0.05 * f64::from(self.answers)) * by;
        self.answers += 1;
    }
}

/// The ratings of everybody and everything.
#[derive(Debug, Default)]
pub(super) struct Elo {
    learners: HashMap<u32, Rating>,
    skills: HashMap<(u32, u32), Rating>,
    items: HashMap<u32, Rating>,
}

impl Elo {
    /// How able the learner is in the skill, in logits, if it was practised at least so often.
    pub(super) fn ability(&self, learner: u32, skill: u32, answers_min: u32) -> Option<f64> {
        let general = self.learners.get(&learner)?;
        let own = self.skills.get(&(learner, skill))?;
        (own.answers >= answers_min).then_some(general.value + own.value)
    }
}

impl Model for Elo {
    fn chance(&self, answer: &Answer) -> f64 {
        let of = |rating: Option<&Rating>| rating.map_or(0.0, |rating| rating.value);
        let ability = of(self.learners.get(&answer.learner))
            + of(self.skills.get(&(answer.learner, answer.skill)));
        1.0 / (1.0 + (of(self.items.get(&answer.item)) - ability).exp())
    }

    fn learn(&mut self, answer: &Answer) {
        let by = f64::from(u8::from(answer.correct)) - self.chance(answer);
        self.learners.entry(answer.learner).or_default().step(by);
        self.skills.entry((answer.learner, answer.skill)).or_default().step(by);
        self.items.entry(answer.item).or_default().step(-by);
    }
}
