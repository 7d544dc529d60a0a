//! Evaluates how well the engine's Elo ratings predict answers, compared with running accuracy and
//! Bayesian knowledge tracing: on any table in ASSISTments form, and on simulated learners, whose
//! true ability is known.
//!
//! A fifth of the learners is held back. From the others every model learns what is true of skills
//! and items (Elo their difficulties, BKT its four chances, running accuracy the share of right
//! answers); then each answer of those held back is predicted before the model sees it. So no model
//! predicts what it was fitted to, and all predict the same answers.

mod answers;
mod bkt;
mod elo;
mod measures;
mod model;
mod rows;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io;

pub use answers::{Answer, Answers, LeftOut, Truth, read_answers};
pub use measures::{Measures, Prediction, correlation};

use bkt::Bkt;
use elo::Elo;
use model::{Model, RunningAccuracy, TrueChance};

/// One learner in this many is held back.
const HELD_BACK: usize = 5;

/// A rating from fewer answers says little about the learner, and is not compared with the truth.
const COMPARED_ANSWERS_MIN: u32 = 5;

/// The error that a table cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A column that is needed is not there.
    #[error("the table has no column `{name}`")]
    MissingColumn {
        /// Its name.
        name: &'static str,
    },
    /// An `order_id` is no number.
    #[error("line {line}: order_id `{found}` is no number")]
    Order {
        /// Where.
        line: u64,
        /// What is there.
        found: String,
    },
    /// There is no answer in it.
    #[error("the table has no answer that can be used")]
    Empty,
    /// Some learners have to be held back, to be predicted.
    #[error("the answers of one learner are too few: some learners are held back to be predicted")]
    OneLearner,
}

/// The results of an evaluation.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Report {
    /// How many answers were used.
    pub answers: u64,
    /// By how many learners.
    pub learners: u32,
    /// About how many skills.
    pub skills: u32,
    /// And items.
    pub items: u32,
    /// How many learners were held back; the measures are of their answers.
    pub learners_held_back: u32,
    /// The share of right answers among theirs.
    pub share_correct: f64,
    /// What was not used.
    pub left_out: LeftOut,
    /// Each model's worth, by its name.
    pub models: BTreeMap<&'static str, Measures>,
    /// Of simulated learners: how closely the ratings in skills that Elo came to go with the
    /// learners' true abilities, from -1 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ability_correlation: Option<f64>,
}

/// The names under which [`Report::models`] has them, in the order in which they are shown.
pub const MODELS: [(&str, &str); 4] = [
    ("elo", "Elo"),
    ("bkt", "knowledge tracing"),
    ("running_accuracy", "running accuracy"),
    ("known", "the truth itself"),
];

/// Predicts the answers of some learners by what the others taught each model.
pub fn evaluate(answers: &Answers) -> Result<Report, EvaluateError> {
    if answers.learners < 2 {
        return Err(EvaluateError::OneLearner);
    }
    let held_back = hold_back(answers.learners);
    let is_held_back = |answer: &&Answer| held_back.contains(&answer.learner);
    let others = || answers.answers.iter().filter(|answer| !is_held_back(answer));
    let tested: Vec<&Answer> = answers.answers.iter().filter(is_held_back).collect();

    let mut elo = Elo::default();
    let mut accuracy = RunningAccuracy::default();
    for answer in others() {
        elo.learn(answer);
        accuracy.learn(answer);
    }
    let mut bkt = Bkt::fit(others(), answers.skills);
    let mut models = BTreeMap::new();
    let mut measure = |name: &'static str, model: &mut dyn Model| {
        let mut predictions: Vec<Prediction> = Vec::with_capacity(tested.len());
        for answer in &tested {
            predictions.push(Prediction { chance: model.chance(answer), correct: answer.correct });
            model.learn(answer);
        }
        models.extend(Measures::of(&mut predictions).map(|measures| (name, measures)));
    };
    measure("elo", &mut elo);
    measure("bkt", &mut bkt);
    measure("running_accuracy", &mut accuracy);
    if tested.iter().all(|answer| answer.truth.is_some()) {
        measure("known", &mut TrueChance);
    }
    let right = tested.iter().filter(|answer| answer.correct).count();
    Ok(Report {
        answers: answers.answers.len() as u64,
        learners: answers.learners,
        skills: answers.skills,
        items: answers.items,
        learners_held_back: held_back.len() as u32,
        share_correct: right as f64 / tested.len().max(1) as f64,
        left_out: answers.left_out,
        models,
        ability_correlation: abilities(&tested, &elo),
    })
}

/// Which learners: one in five, spread over the file, at least one and never all.
fn hold_back(learners: u32) -> HashSet<u32> {
    let mut shuffled: Vec<u32> = (0..learners).collect();
    // By a hash of the number: neighbours in a file are often of one class.
    shuffled.sort_by_key(|number| number.wrapping_mul(0x9e37_79b1).rotate_left(15));
    let count = (shuffled.len() / HELD_BACK).max(1);
    shuffled.into_iter().take(count).collect()
}

/// The last known ability of each learner in each skill, beside the rating that Elo came to.
fn abilities(tested: &[&Answer], elo: &Elo) -> Option<f64> {
    let mut last: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for answer in tested {
        last.insert((answer.learner, answer.skill), f64::from(answer.truth?.ability));
    }
    let pairs: Vec<(f64, f64)> = last
        .into_iter()
        .filter_map(|((learner, skill), truth)| {
            elo.ability(learner, skill, COMPARED_ANSWERS_MIN).map(|rating| (rating, truth))
        })
        .collect();
    correlation(&pairs)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} answers by {} learners to {} items of {} skills",
            self.answers, self.learners, self.items, self.skills
        )?;
        let LeftOut { without_skill, unclear, repeated } = self.left_out;
        if without_skill + unclear + repeated > 0 {
            writeln!(
                f,
                "left out: {without_skill} without a skill, {unclear} neither right nor wrong, \
                 {repeated} listed again for another skill"
            )?;
        }
        writeln!(
            f,
            "predicted: the answers of {} learners held back, {:.1} % of them right",
            self.learners_held_back,
            100.0 * self.share_correct
        )?;
        writeln!(f, "\n{:<18}{:>8}{:>10}{:>10}", "", "AUC", "log loss", "accuracy")?;
        for (name, title) in MODELS {
            if let Some(measures) = self.models.get(name) {
                let auc = measures.auc.map_or("-".to_owned(), |auc| format!("{auc:.3}"));
                writeln!(
                    f,
                    "{title:<18}{auc:>8}{:>10.3}{:>10.3}",
                    measures.log_loss, measures.accuracy
                )?;
            }
        }
        if let Some(correlation) = self.ability_correlation {
            writeln!(
                f,
                "\nElo's ratings go with the true abilities by {correlation:.2} (1 is best)"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{AnswerSet, write_answers};

    fn simulated(set: &AnswerSet) -> Answers {
        let mut table = Vec::new();
        write_answers(set, &mut table).unwrap();
        read_answers(table.as_slice()).unwrap()
    }

    #[test]
    fn elo_beats_running_accuracy_and_finds_the_true_ability() {
        for seed in [1, 2, 3] {
            let report = evaluate(&simulated(&AnswerSet { seed, ..AnswerSet::default() })).unwrap();
            let auc = |name: &str| report.models[name].auc.unwrap();
            assert!(auc("elo") > auc("running_accuracy") + 0.02, "{report}");
            assert!(auc("elo") > auc("bkt") + 0.02, "{report}");
            assert!(auc("known") > auc("elo"), "nothing is better than the truth: {report}");
            assert!(report.models["elo"].log_loss < report.models["running_accuracy"].log_loss);
            assert!(report.ability_correlation.unwrap() > 0.8, "{report}");
        }
    }

    #[test]
    fn who_is_held_back_is_a_fifth_and_never_everybody() {
        assert_eq!(hold_back(2).len(), 1);
        assert_eq!(hold_back(100).len(), 20);
        let one = simulated(&AnswerSet { learners: 1, ..AnswerSet::default() });
        assert!(matches!(evaluate(&one), Err(EvaluateError::OneLearner)));
    }

    #[test]
    fn a_report_says_what_was_left_out_and_shows_every_model() {
        let table = "user_id,skill_id,correct\na,s,1\na,s,0\nb,s,1\nb,s,0\nb,,1\n";
        let report = evaluate(&read_answers(table.as_bytes()).unwrap()).unwrap();
        let text = report.to_string();
        assert!(text.contains("1 without a skill"), "{text}");
        for title in ["Elo", "knowledge tracing", "running accuracy"] {
            assert!(text.contains(title), "{text}");
        }
        assert!(!text.contains("truth"), "{text}");
    }
}
