//! Aggregates over many learners: a school on a day, learners or classes side by side.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::results::{AggregateStats, Component, Components, Level, MasteryResult};
use super::score::to_millionths;
use kstone_base::time::{Date, Moment};

/// Below so many learners, a class says more about persons than about the class.
const LEARNERS_FEW: usize = 5;

/// One learner's contribution to [`AggregateStats`].
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The learner's score.
    pub mastery_score: f64,
    /// What it is made of.
    pub components: Components,
    /// Whether the learner struggles with something.
    pub struggling: bool,
    /// Whether the learner was active on that day.
    pub active: bool,
}

/// Aggregates a school on a day.
pub fn aggregate(
    school_id: impl Into<String>,
    date: Date,
    learners: &[Counted],
    calculated_at: Moment,
) -> AggregateStats {
    let scores: Vec<f64> = learners.iter().map(|learner| learner.mastery_score).collect();
    AggregateStats {
        school_id: school_id.into(),
        date,
        students: learners.len() as u32,
        average_score: mean(&scores),
        median_score: median(&scores),
        levels: levels(&scores),
        components: mean_components(learners.iter().map(|learner| &learner.components)),
        struggling: learners.iter().filter(|learner| learner.struggling).count() as u32,
        active_today: learners.iter().filter(|learner| learner.active).count() as u32,
        calculated_at,
    }
}

/// A comparison of learners.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StudentComparison {
    /// The learners, the best first; of equals, the one whose id comes first.
    pub students: Vec<StudentStanding>,
    /// The average of their scores.
    pub average_score: f64,
    /// How far apart they are: the standard deviation of their scores.
    pub spread: f64,
    /// The averages of their components.
    pub components: Components,
}

/// One learner in a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StudentStanding {
    /// Who.
    pub student_id: String,
    /// The place among them; equals share one.
    pub rank: u32,
    /// The score.
    pub mastery_score: f64,
    /// The score in a word.
    pub level: Level,
    /// What the score is made of.
    pub components: Components,
    /// How far the score is above the average, or below if negative.
    pub above_average: f64,
    /// What this learner is best at, compared with what is expected.
    pub strongest: Component,
    /// What would help this learner most.
    pub weakest: Component,
}

/// A comparison of classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CohortComparison {
    /// The classes, the best average first; of equals, the one whose id comes first.
    pub cohorts: Vec<CohortStanding>,
    /// The average over all their learners.
    pub average_score: f64,
}

/// One class in a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CohortStanding {
    /// Which class.
    pub class_id: String,
    /// How many learners have a score.
    pub students: u32,
    /// The average of their scores; 0 without learners.
    pub average_score: f64,
    /// The score that half of them reach; 0 without learners.
    pub median_score: f64,
    /// How far apart they are: the standard deviation of their scores.
    pub spread: f64,
    /// How far the average is above that of all, or below if negative.
    pub above_average: f64,
    /// How many are on each level; every level is there.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u32>))]
    pub levels: BTreeMap<Level, u32>,
    /// The averages of the components.
    pub components: Components,
    /// There are too few learners to say something about the class.
    pub few: bool,
}

/// Learners side by side. Who is there twice is counted once.
pub fn compare_students(learners: &[MasteryResult]) -> StudentComparison {
    let learners: BTreeMap<&str, &MasteryResult> =
        learners.iter().map(|learner| (learner.student_id.as_str(), learner)).collect();
    let mut learners: Vec<&MasteryResult> = learners.into_values().collect();
    learners.sort_by(|one, other| other.mastery_score.total_cmp(&one.mastery_score));
    let scores: Vec<f64> = learners.iter().map(|learner| learner.mastery_score).collect();
    let average_score = mean(&scores);
    let standing = |learner: &&MasteryResult| {
        let score = learner.mastery_score;
        let (strongest, weakest) = extremes(&learner.components);
        StudentStanding {
            student_id: learner.student_id.clone(),
            rank: scores.iter().filter(|other| **other > score).count() as u32 + 1,
            mastery_score: score,
            level: learner.level,
            components: learner.components,
            above_average: to_millionths(score - average_score),
            strongest,
            weakest,
        }
    };
    StudentComparison {
        students: learners.iter().map(standing).collect(),
        average_score,
        spread: spread(&scores),
        components: mean_components(learners.iter().map(|learner| &learner.components)),
    }
}

/// Classes side by side: each by its id and the mastery of its learners.
pub fn compare_cohorts(classes: &[(String, Vec<MasteryResult>)]) -> CohortComparison {
    let scores_of = |learners: &[MasteryResult]| -> Vec<f64> {
        learners.iter().map(|learner| learner.mastery_score).collect()
    };
    // A learner who is in two of the classes is counted once in the average of all.
    let all: BTreeMap<&str, f64> = classes
        .iter()
        .flat_map(|(_, learners)| learners)
        .map(|learner| (learner.student_id.as_str(), learner.mastery_score))
        .collect();
    let average_score = mean(&all.into_values().collect::<Vec<f64>>());
    let standing = |(class_id, learners): &(String, Vec<MasteryResult>)| {
        let scores = scores_of(learners);
        let average = mean(&scores);
        let above = if scores.is_empty() { 0.0 } else { average - average_score };
        CohortStanding {
            class_id: class_id.clone(),
            students: learners.len() as u32,
            average_score: average,
            median_score: median(&scores),
            spread: spread(&scores),
            above_average: to_millionths(above),
            levels: levels(&scores),
            components: mean_components(learners.iter().map(|learner| &learner.components)),
            few: learners.len() < LEARNERS_FEW,
        }
    };
    let mut cohorts: Vec<CohortStanding> = classes.iter().map(standing).collect();
    cohorts.sort_by(|one, other| {
        let by_score = other.average_score.total_cmp(&one.average_score);
        by_score.then_with(|| one.class_id.cmp(&other.class_id))
    });
    CohortComparison { cohorts, average_score }
}

/// How many scores are on each level; every level is there.
pub fn levels(scores: &[f64]) -> BTreeMap<Level, u32> {
    let mut levels: BTreeMap<Level, u32> = Level::ALL.into_iter().map(|level| (level, 0)).collect();
    for score in scores {
        *levels.entry(Level::of(*score)).or_default() += 1;
    }
    levels
}

/// The average; 0 of nothing.
pub fn mean(numbers: &[f64]) -> f64 {
    match numbers.len() {
        0 => 0.0,
        count => to_millionths(numbers.iter().sum::<f64>() / count as f64),
    }
}

/// The median; 0 of nothing.
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |place: usize| sorted.get(place).copied().unwrap_or_default();
    match sorted.len() % 2 {
        1 => to_millionths(at(middle)),
        _ if sorted.is_empty() => 0.0,
        _ => to_millionths((at(middle - 1) + at(middle)) / 2.0),
    }
}

/// The averages of components; 0 of nothing.
pub fn mean_components<'c>(all: impl IntoIterator<Item = &'c Components>) -> Components {
    let all: Vec<&Components> = all.into_iter().collect();
    let of = |part| mean(&all.iter().map(|components| components.get(part)).collect::<Vec<f64>>());
    Components {
        completion: of(Component::Completion),
        quiz: of(Component::Quiz),
        quality: of(Component::Quality),
        consistency: of(Component::Consistency),
    }
}

/// The population standard deviation.
fn spread(numbers: &[f64]) -> f64 {
    if numbers.is_empty() {
        return 0.0;
    }
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squared: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    to_millionths((squared / count).sqrt())
}

/// The components that are farthest above and below what is expected.
fn extremes(components: &Components) -> (Component, Component) {
    let above = |part: &Component| to_millionths(components.get(*part) - part.threshold());
    let mut parts = Component::ALL;
    parts.sort_by(|one, other| above(other).total_cmp(&above(one)));
    let [strongest, .., weakest] = parts;
    (strongest, weakest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(share: f64) -> Components {
        Components { completion: share, quiz: share, quality: share, consistency: share }
    }

    fn learner(student_id: &str, share: f64) -> MasteryResult {
        MasteryResult::new(student_id, &equal(share), Moment::default(), 1)
    }

    fn counted(share: f64, struggling: bool, active: bool) -> Counted {
        Counted { mastery_score: share, components: equal(share), struggling, active }
    }

    #[test]
    fn a_school_is_averaged_counted_and_split_by_level() {
        let date: Date = "2026-01-14".parse().unwrap();
        let learners = [
            counted(0.95, false, true),
            counted(0.5, true, false),
            counted(0.3, true, true),
            counted(0.45, false, true),
        ];
        let school = aggregate("s", date, &learners, Moment::default());
        assert_eq!((school.students, school.average_score, school.median_score), (4, 0.55, 0.475));
        assert_eq!((school.struggling, school.active_today), (2, 3));
        let counts: Vec<u32> = school.levels.into_values().collect();
        assert_eq!(counts, [1, 2, 0, 0, 1]);
        assert_eq!(school.components, equal(0.55));
    }

    #[test]
    fn a_school_without_learners_is_all_zeros() {
        let school = aggregate("s", Date::default(), &[], Moment::default());
        assert_eq!((school.students, school.average_score, school.median_score), (0, 0.0, 0.0));
        assert_eq!(school.levels.len(), 5);
    }

    #[test]
    fn the_median_of_an_odd_number_is_the_one_in_the_middle() {
        assert_eq!(median(&[0.9, 0.1, 0.2]), 0.2);
        assert_eq!(median(&[0.4]), 0.4);
        assert_eq!(median(&[0.2, 0.4]), 0.3);
    }

    #[test]
    fn learners_are_ranked_and_equals_share_a_place() {
        let learners =
            ["c", "b", "a", "d", "a"].map(|id| learner(id, if id == "d" { 0.9 } else { 0.5 }));
        let compared = compare_students(&learners);
        let order: Vec<(&str, u32)> =
            compared.students.iter().map(|it| (it.student_id.as_str(), it.rank)).collect();
        assert_eq!(order, [("d", 1), ("a", 2), ("b", 2), ("c", 2)]);
        assert_eq!(compared.average_score, 0.6);
        assert_eq!(compared.students[0].above_average, 0.3);
        assert_eq!(compared.spread, 0.173205);
    }

    #[test]
    fn strength_is_measured_against_what_is_expected() {
        let mut one = learner("a", 0.0);
        // Completion is the highest number and yet the weakest: more is expected of it.
        one.components =
            Components { completion: 0.79, quiz: 0.77, quality: 0.78, consistency: 0.7 };
        let compared = compare_students(&[one]);
        assert_eq!(compared.students[0].strongest, Component::Quality);
        assert_eq!(compared.students[0].weakest, Component::Completion);
    }

    #[test]
    fn classes_are_compared_with_all_their_learners_each_counted_once() {
        let classes = [
            ("x".to_owned(), vec![learner("a", 0.2), learner("b", 0.4)]),
            ("y".to_owned(), vec![learner("b", 0.4), learner("c", 0.9)]),
            ("z".to_owned(), vec![]),
        ];
        let compared = compare_cohorts(&classes);
        assert_eq!(compared.average_score, 0.5);
        let order: Vec<(&str, f64)> =
            compared.cohorts.iter().map(|it| (it.class_id.as_str(), it.above_average)).collect();
        assert_eq!(order, [("y", 0.15), ("x", -0.2), ("z", 0.0)]);
        assert!(compared.cohorts.iter().all(|cohort| cohort.few));
        let five: Vec<MasteryResult> = (0..5).map(|n| learner(&n.to_string(), 0.5)).collect();
        assert!(!compare_cohorts(&[("w".to_owned(), five)]).cohorts[0].few);
    }
}
