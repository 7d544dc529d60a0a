//! Simulates answers of learners with known ability, as a table for [`evaluate`](crate::evaluate).

use std::io::{self, Write};

use crate::simulate::chance::{Chance, logistic};
use crate::simulate::course::Difficulties;

/// How many answers to draw, and of whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerSet {
    /// The same seed gives the same answers.
    pub seed: u64,
    /// How many learners.
    pub learners: u32,
    /// How many skills.
    pub skills: u32,
    /// How many items a skill has.
    pub items_per_skill: u32,
    /// How many answers each learner gives.
    pub answers_per_learner: u32,
}

impl Default for AnswerSet {
    /// 60,000 answers.
    fn default() -> AnswerSet {
        AnswerSet {
            seed: 1,
            learners: 400,
            skills: 20,
            items_per_skill: 25,
            answers_per_learner: 150,
        }
    }
}

/// Practice helps less each time.
const PRACTICE_GAIN: f64 = 0.25;

/// A simulated learner as far as answers go: able in general, more or less so in each skill, and
/// better with practice.
struct Answerer {
    ability: f64,
    by_skill: Vec<f64>,
    practised: Vec<u32>,
}

impl Answerer {
    fn draw(chance: &mut Chance, skills: u32) -> Answerer {
        Answerer {
            ability: chance.normal(0.0, 1.0),
            by_skill: (0..skills).map(|_| chance.normal(0.0, 0.4)).collect(),
            practised: vec![0; skills as usize],
        }
    }

    fn ability(&self, skill: usize) -> f64 {
        let practised = self.practised.get(skill).copied().unwrap_or(0);
        let own = self.by_skill.get(skill).copied().unwrap_or(0.0);
        self.ability + own + PRACTICE_GAIN * f64::from(practised).ln_1p()
    }
}

/// Writes the table: `order_id, user_id, skill_id, problem_id, correct, true_ability, true_chance`.
/// The learners take turns; each stays with a skill for a while and comes back to it.
pub fn write_answers(set: &AnswerSet, to: &mut dyn Write) -> io::Result<()> {
    let mut chance = Chance::new(set.seed);
    let (skills, items) = (set.skills.max(1) as usize, set.items_per_skill.max(1) as usize);
    let difficulties = Difficulties::draw(&mut chance, skills, items);
    let mut learners: Vec<(Answerer, Chance, usize)> = (0..set.learners)
        .map(|number| {
            let mut own = Chance::for_each(set.seed, u64::from(number) + 1);
            (Answerer::draw(&mut own, set.skills.max(1)), own, 0)
        })
        .collect();
    writeln!(to, "order_id,user_id,skill_id,problem_id,correct,true_ability,true_chance")?;
    let mut order = 0u64;
    for _ in 0..set.answers_per_learner {
        for (number, (learner, own, skill)) in learners.iter_mut().enumerate() {
            if own.happens(0.2) {
                *skill = own.below(skills);
            }
            let item = own.below(items);
            let ability = learner.ability(*skill);
            let success = logistic(ability - difficulties.of(*skill, item));
            let correct = u8::from(own.happens(success));
            if let Some(practised) = learner.practised.get_mut(*skill) {
                *practised += 1;
            }
            order += 1;
            writeln!(
                to,
                "{order},u{number:04},skill-{:02},p{:02}-{:02},{correct},{ability:.4},{success:.4}",
                *skill + 1,
                *skill + 1,
                item + 1,
            )?;
        }
    }
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::read_answers;

    #[test]
    fn the_table_is_the_same_for_a_seed_and_can_be_read() {
        let set = AnswerSet { learners: 7, answers_per_learner: 11, ..AnswerSet::default() };
        let text = |set: &AnswerSet| {
            let mut bytes = Vec::new();
            write_answers(set, &mut bytes).unwrap();
            bytes
        };
        assert_eq!(text(&set), text(&set));
        assert_ne!(text(&set), text(&AnswerSet { seed: 2, ..set }));
        let answers = read_answers(text(&set).as_slice()).unwrap();
        assert_eq!((answers.answers.len(), answers.learners), (77, 7));
        assert!(answers.answers.iter().all(|answer| answer.truth.is_some()));
    }
}
