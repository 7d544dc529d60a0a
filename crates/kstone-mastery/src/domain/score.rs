//! Computes a score and a level from the four components.

use super::results::{Component, Components, Level, MasteryResult};
use kstone_base::field::Invalid;
use kstone_base::time::Moment;

impl Component {
    /// How much of the score it is.
    pub fn weight(self) -> f64 {
        match self {
            Component::Completion => 0.4,
            Component::Quiz => 0.3,
            Component::Quality => 0.2,
            Component::Consistency => 0.1,
        }
    }
}

impl Components {
    /// One of them.
    pub fn get(&self, component: Component) -> f64 {
        match component {
            Component::Completion => self.completion,
            Component::Quiz => self.quiz,
            Component::Quality => self.quality,
            Component::Consistency => self.consistency,
        }
    }

    /// The score: 0.4 completion, 0.3 quiz, 0.2 quality and 0.1 consistency, from 0 to 1.
    pub fn score(&self) -> f64 {
        let sum: f64 = Component::ALL.iter().map(|part| part.weight() * self.get(*part)).sum();
        to_millionths(sum.clamp(0.0, 1.0))
    }

    /// Refuses what is no number from 0 to 1, by the name of the component.
    pub fn check(&self) -> Result<(), Invalid> {
        Component::ALL
            .iter()
            .try_for_each(|part| check_share(&format!("components.{part}"), self.get(*part)))
    }

    /// Each rounded to a millionth, so that they are unchanged by conversion to text and back.
    #[must_use]
    pub fn rounded(&self) -> Components {
        Components {
            completion: to_millionths(self.completion),
            quiz: to_millionths(self.quiz),
            quality: to_millionths(self.quality),
            consistency: to_millionths(self.consistency),
        }
    }
}

impl Level {
    /// The level of a score.
    pub fn of(score: f64) -> Level {
        match score {
            score if score >= 0.90 => Level::Expert,
            score if score >= 0.75 => Level::Proficient,
            score if score >= 0.60 => Level::Competent,
            score if score >= 0.40 => Level::Developing,
            _ => Level::Beginner,
        }
    }
}

impl MasteryResult {
    /// The mastery with these components.
    pub fn new(
        student_id: impl Into<String>,
        components: &Components,
        timestamp: Moment,
        version: u64,
    ) -> MasteryResult {
        let components = components.rounded();
        let mastery_score = components.score();
        MasteryResult {
            student_id: student_id.into(),
            mastery_score,
            level: Level::of(mastery_score),
            components,
            timestamp,
            version,
            school_id: None,
        }
    }
}

/// A number to the nearest millionth. Numbers of so few digits are the same after a way through
/// JSON, and a score that is on a border is there exactly.
pub(crate) fn to_millionths(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// Refuses what is no number from 0 to 1.
pub(crate) fn check_share(field: &str, share: f64) -> Result<(), Invalid> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(()),
        false => Err(Invalid::value(field, "a number from 0 to 1", share)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_gives_its_score() {
        let components =
            Components { completion: 0.85, quiz: 0.90, quality: 0.85, consistency: 0.82 };
        assert_eq!(components.score(), 0.862);
        assert_eq!(Level::of(components.score()), Level::Proficient);
    }

    #[test]
    fn the_weights_make_one() {
        let all = Components { completion: 1.0, quiz: 1.0, quality: 1.0, consistency: 1.0 };
        assert_eq!(all.score(), 1.0);
        assert_eq!(Components::default().score(), 0.0);
    }

    #[test]
    fn a_level_begins_exactly_at_its_border() {
        for (border, below, from) in [
            (0.40, Level::Beginner, Level::Developing),
            (0.60, Level::Developing, Level::Competent),
            (0.75, Level::Competent, Level::Proficient),
            (0.90, Level::Proficient, Level::Expert),
        ] {
            assert_eq!(Level::of(border), from);
            assert_eq!(Level::of(to_millionths(border - 1e-6)), below);
            // Sums that would miss the border by the last bit do not.
            let equal = Components {
                completion: border,
                quiz: border,
                quality: border,
                consistency: border,
            };
            assert_eq!(Level::of(equal.score()), from, "{border}");
        }
        assert_eq!(Level::of(f64::NAN), Level::Beginner);
    }

    #[test]
    fn what_is_no_share_is_refused_by_its_name() {
        for wrong in [f64::NAN, f64::INFINITY, -0.1, 1.000_001] {
            let components = Components { quality: wrong, ..Components::default() };
            assert_eq!(components.check().unwrap_err().field, "components.quality");
        }
        assert!(Components { quiz: 1.0, ..Components::default() }.check().is_ok());
    }
}
