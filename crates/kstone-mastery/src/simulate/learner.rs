//! A simulated learner: ability, diligence, and how both change over the weeks.

use crate::simulate::chance::{Chance, logistic};
use crate::simulate::course::SKILLS;
use crate::simulate::names;

/// How a learner develops over the weeks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Course {
    /// Gets along.
    Steady,
    /// Begins low and catches up.
    Improving,
    /// Was ahead all the time.
    Strong,
    /// Has a hard time: wrong answers, half-read lessons, the same mistakes again.
    Struggling,
    /// Began well, and comes less and less.
    Fading,
}

impl Course {
    /// Of 20 learners.
    const TURNS: [Course; 20] = {
        use Course::{Fading, Improving, Steady, Strong, Struggling};
        [
            Steady, Improving, Strong, Steady, Struggling, Steady, Fading, Steady, Improving,
            Steady, Steady, Struggling, Improving, Steady, Strong, Steady, Struggling, Steady,
            Improving, Steady,
        ]
    };

    /// How able such a learner is in the beginning and in the end, in logits.
    fn abilities(self) -> (f64, f64) {
        match self {
            Course::Steady => (0.4, 0.9),
            Course::Improving => (-0.9, 1.5),
            Course::Strong => (1.8, 2.3),
            Course::Struggling => (-1.1, -1.3),
            Course::Fading => (0.8, -0.2),
        }
    }

    /// How likely such a learner is there on a school day, in the beginning and in the end.
    fn presence(self) -> (f64, f64) {
        match self {
            Course::Steady => (0.8, 0.8),
            Course::Improving => (0.6, 0.92),
            Course::Strong => (0.92, 0.92),
            Course::Struggling => (0.65, 0.55),
            Course::Fading => (0.85, 0.12),
        }
    }
}

/// Zones, with the hours between them and UTC about half of the year: lessons are in the daytime
/// also when that is an hour off.
const ZONES: [(&str, i64); 6] = [
    ("Europe/Berlin", 1),
    ("Europe/Lisbon", 0),
    ("America/New_York", -5),
    ("America/Sao_Paulo", -3),
    ("Asia/Kolkata", 5),
    ("Australia/Sydney", 10),
];

/// One simulated learner.
#[derive(Debug, Clone, PartialEq)]
pub struct Learner {
    /// The learner's id: `s001`, …
    pub student_id: String,
    /// An invented name.
    pub display_name: String,
    /// The class.
    pub class_id: String,
    /// The time zone's IANA name.
    pub time_zone: &'static str,
    /// What becomes of the learner.
    pub course: Course,
    pub(super) number: u64,
    pub(super) hours_east: i64,
    /// The local hour at which a day's work begins.
    pub(super) begins_at: f64,
    /// Days of the term on which the learner is ill.
    pub(super) ill: std::ops::Range<u32>,
    talent: f64,
    by_skill: Vec<f64>,
}

impl Learner {
    pub(super) fn draw(seed: u64, number: usize, class_id: String) -> Learner {
        let mut chance = Chance::for_each(seed, number as u64 + 1);
        let course = Course::TURNS.get(number % Course::TURNS.len());
        // Most learners are where the school is.
        let zone = if chance.happens(0.7) { 0 } else { chance.below(ZONES.len()) };
        let (time_zone, hours_east) = ZONES.get(zone).copied().unwrap_or(("UTC", 0));
        let ill_from = 5 + chance.below(45) as u32;
        Learner {
            student_id: format!("s{:03}", number + 1),
            display_name: names::name(number),
            class_id,
            time_zone,
            course: course.copied().unwrap_or(Course::Steady),
            number: number as u64,
            hours_east,
            begins_at: chance.between(8.0, 17.0),
            ill: ill_from..ill_from + chance.below(7) as u32,
            talent: chance.normal(0.0, 0.35),
            by_skill: SKILLS.iter().map(|_| chance.normal(0.0, 0.4)).collect(),
        }
    }

    /// How able the learner is in a skill at a point of the term from 0 to 1, in logits; after some
    /// practice of it.
    pub(super) fn ability(&self, skill: usize, term: f64, practised: u32) -> f64 {
        let (first, last) = self.course.abilities();
        let own = self.by_skill.get(skill).copied().unwrap_or(0.0);
        first + (last - first) * term + self.talent + own + 0.15 * f64::from(practised).ln_1p()
    }

    /// The chance that something of this difficulty succeeds.
    pub(super) fn success(&self, skill: usize, term: f64, practised: u32, difficulty: f64) -> f64 {
        logistic(self.ability(skill, term, practised) - difficulty)
    }

    /// How likely the learner is there on a school day.
    pub(super) fn presence(&self, term: f64) -> f64 {
        let (first, last) = self.course.presence();
        first + (last - first) * term
    }

    pub(super) fn is_struggling(&self, term: f64) -> bool {
        self.course == Course::Struggling || self.course == Course::Fading && term > 0.7
    }
}
