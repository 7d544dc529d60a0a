//! Bayesian knowledge tracing, for comparison: a learner either knows a skill or does not, may
//! learn it at each practice, never forgets, sometimes slips and sometimes guesses. The four
//! probabilities of a skill are fitted to other learners' answers by expectation-maximisation.

use std::collections::HashMap;

use crate::evaluate::answers::Answer;
use crate::evaluate::model::Model;

/// What is assumed of a skill of which nothing is known, and how many observations that is worth:
/// enough that a skill of three answers is not fitted to its accidents.
const PRIOR: Skill = Skill { known_first: 0.4, learned: 0.15, guessed: 0.25, slipped: 0.1 };
const PRIOR_WEIGHT: f64 = 4.0;

/// From one half on, to know a skill would mean to answer wrongly.
const GUESS_OR_SLIP_MAX: f64 = 0.49;

/// Fitting ends when nothing moves by more than this, or after so many rounds.
const STEP_MIN: f64 = 1e-4;
const ROUNDS_MAX: usize = 60;

/// The four chances of a skill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Skill {
    /// That it is known before any practice.
    pub known_first: f64,
    /// That one practice makes it known.
    pub learned: f64,
    /// That who does not know it answers rightly.
    pub guessed: f64,
    /// That who knows it answers wrongly.
    pub slipped: f64,
}

/// Sums over all answers to one skill, from which the next round's chances follow.
#[derive(Default)]
struct Sums {
    sequences: f64,
    known_first: f64,
    chances_to_learn: f64,
    learned: f64,
    unknown: f64,
    guessed: f64,
    known: f64,
    slipped: f64,
}

impl Skill {
    /// The chance of a right answer by who knows the skill with this chance.
    fn right(self, known: f64) -> f64 {
        known * (1.0 - self.slipped) + (1.0 - known) * self.guessed
    }

    /// The chance of an answer by who knows it, and by who does not.
    fn likelihood(self, correct: bool) -> (f64, f64) {
        match correct {
            true => (1.0 - self.slipped, self.guessed),
            false => (self.slipped, 1.0 - self.guessed),
        }
    }

    /// The chance that the skill is known after an answer and the practice that it was.
    fn after(self, known: f64, correct: bool) -> f64 {
        let (if_known, if_not) = self.likelihood(correct);
        let (a, b) = (known * if_known, (1.0 - known) * if_not);
        let known = if a + b > 0.0 { a / (a + b) } else { known };
        known + (1.0 - known) * self.learned
    }

    /// The chances that explain these learners' answers best, as far as the prior lets them.
    pub(super) fn fit(sequences: &[Vec<bool>]) -> Skill {
        let mut skill = PRIOR;
        let mut forward = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let mut sums = Sums::default();
            for sequence in sequences {
                sums.add(skill, sequence, &mut forward);
            }
            let next = sums.chances();
            let moved = [
                next.known_first - skill.known_first,
                next.learned - skill.learned,
                next.guessed - skill.guessed,
                next.slipped - skill.slipped,
            ];
            skill = next;
            if moved.iter().all(|step| step.abs() < STEP_MIN) {
                break;
            }
        }
        skill
    }
}

impl Sums {
    /// One learner's answers, by the forward and backward passes of a hidden Markov model with two
    /// states. `forward` is room to work in.
    fn add(&mut self, skill: Skill, sequence: &[bool], forward: &mut Vec<f64>) {
        forward.clear();
        let mut known = skill.known_first;
        for correct in sequence {
            forward.push(known);
            known = skill.after(known, *correct);
        }
        // What the rest of the answers says for knowing and against it, up to a factor.
        let (mut rest_known, mut rest_not) = (1.0, 1.0);
        for (at, (correct, before)) in sequence.iter().zip(forward.iter()).enumerate().rev() {
            let (if_known, if_not) = skill.likelihood(*correct);
            let (known, not) = (before * if_known, (1.0 - before) * if_not);
            // Who does not know it now may have learned it before the next answer.
            let stays = (1.0 - skill.learned) * rest_not;
            let learns = skill.learned * rest_known;
            let (after_known, after_not) = (rest_known, stays + learns);
            let total = known * after_known + not * after_not;
            if total <= 0.0 {
                return;
            }
            let (is_known, is_not) = (known * after_known / total, not * after_not / total);
            self.known += is_known;
            self.unknown += is_not;
            match correct {
                true => self.guessed += is_not,
                false => self.slipped += is_known,
            }
            if at + 1 < sequence.len() {
                self.chances_to_learn += is_not;
                self.learned += not * learns / total;
            }
            if at == 0 {
                self.sequences += 1.0;
                self.known_first += is_known;
            }
            let (next_known, next_not) = (if_known * after_known, if_not * after_not);
            let scale = next_known + next_not;
            (rest_known, rest_not) = (next_known / scale, next_not / scale);
        }
    }

    fn chances(&self) -> Skill {
        let share = |part: f64, whole: f64, prior: f64| {
            (part + prior * PRIOR_WEIGHT) / (whole + PRIOR_WEIGHT)
        };
        Skill {
            known_first: share(self.known_first, self.sequences, PRIOR.known_first),
            learned: share(self.learned, self.chances_to_learn, PRIOR.learned),
            guessed: share(self.guessed, self.unknown, PRIOR.guessed).min(GUESS_OR_SLIP_MAX),
            slipped: share(self.slipped, self.known, PRIOR.slipped).min(GUESS_OR_SLIP_MAX),
        }
    }
}

/// The fitted skills, and how likely each learner knows each.
pub(super) struct Bkt {
    skills: Vec<Skill>,
    known: HashMap<(u32, u32), f64>,
}

impl Bkt {
    /// Fits every skill to these answers.
    pub(super) fn fit<'a>(answers: impl Iterator<Item = &'a Answer>, skills: u32) -> Bkt {
        let mut by_learner: HashMap<(u32, u32), Vec<bool>> = HashMap::new();
        for answer in answers {
            by_learner.entry((answer.skill, answer.learner)).or_default().push(answer.correct);
        }
        let mut by_skill = vec![Vec::new(); skills as usize];
        for ((skill, _), sequence) in by_learner {
            if let Some(sequences) = by_skill.get_mut(skill as usize) {
                sequences.push(sequence);
            }
        }
        // In one order always: sums of floating-point numbers depend on it.
        for sequences in &mut by_skill {
            sequences.sort_unstable();
        }
        let skills = by_skill.iter().map(|sequences| Skill::fit(sequences)).collect();
        Bkt { skills, known: HashMap::new() }
    }

    fn skill(&self, answer: &Answer) -> Skill {
        self.skills.get(answer.skill as usize).copied().unwrap_or(PRIOR)
    }
}

impl Model for Bkt {
    fn chance(&self, answer: &Answer) -> f64 {
        let skill = self.skill(answer);
        let known = self.known.get(&(answer.learner, answer.skill));
        skill.right(known.copied().unwrap_or(skill.known_first))
    }

    fn learn(&mut self, answer: &Answer) {
        let skill = self.skill(answer);
        let known = self.known.entry((answer.learner, answer.skill)).or_insert(skill.known_first);
        *known = skill.after(*known, answer.correct);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Chance;

    #[test]
    fn fitting_finds_the_chances_that_the_answers_were_drawn_with() {
        let truth = Skill { known_first: 0.3, learned: 0.2, guessed: 0.2, slipped: 0.08 };
        let mut chance = Chance::new(7);
        let sequences: Vec<Vec<bool>> = (0..2000)
            .map(|_| {
                let mut known = chance.happens(truth.known_first);
                (0..12)
                    .map(|_| {
                        let correct = match known {
                            true => !chance.happens(truth.slipped),
                            false => chance.happens(truth.guessed),
                        };
                        known = known || chance.happens(truth.learned);
                        correct
                    })
                    .collect()
            })
            .collect();
        let found = Skill::fit(&sequences);
        for (found, truth) in [
            (found.known_first, truth.known_first),
            (found.learned, truth.learned),
            (found.guessed, truth.guessed),
            (found.slipped, truth.slipped),
        ] {
            assert!((found - truth).abs() < 0.04, "{found} for {truth}");
        }
    }

    #[test]
    fn a_skill_nobody_answered_keeps_the_prior_and_one_answer_moves_it_little() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let none = Skill::fit(&[]);
        assert!(close(none.known_first, PRIOR.known_first) && close(none.slipped, PRIOR.slipped));
        let one = Skill::fit(&[vec![false]]);
        assert!(one.guessed < PRIOR.guessed && one.guessed > 0.1, "{one:?}");
    }

    #[test]
    fn right_answers_raise_the_chance_and_wrong_ones_lower_it() {
        let answer = |correct| Answer { learner: 1, skill: 0, item: 0, correct, truth: None };
        let mut bkt = Bkt::fit([].iter(), 1);
        let first = bkt.chance(&answer(true));
        bkt.learn(&answer(true));
        let after_right = bkt.chance(&answer(true));
        bkt.learn(&answer(false));
        let after_wrong = bkt.chance(&answer(true));
        assert!(
            first < after_right && after_wrong < after_right,
            "{first} {after_right} {after_wrong}"
        );
    }
}
