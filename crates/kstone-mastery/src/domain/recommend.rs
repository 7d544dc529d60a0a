//! Recommendations with their reasons, and adaptive paths of next steps.

use super::results::{
    Component, Components, Level, Priority, Recommendation, SkillRating, Struggle,
};
use super::score::to_millionths;
use kstone_base::time::Moment;

/// The number of answers before a skill is recommended.
const ANSWERS_MIN: u32 = 3;
/// Below this chance of success a skill is to be practised first.
const SKILL_WEAK: f64 = 0.5;
/// Below this it is to be strengthened.
const SKILL_FIRM: f64 = 0.75;
/// How many skills a path names.
const SKILLS_IN_PATH: usize = 3;
/// How many struggles a path names.
const STRUGGLES_IN_PATH: usize = 3;

impl Component {
    /// What is expected; below it something is recommended.
    pub fn threshold(self) -> f64 {
        match self {
            Component::Completion => 0.8,
            Component::Quiz => 0.75,
            Component::Quality | Component::Consistency => 0.7,
        }
    }
}

impl Priority {
    /// How urgent it is to close a gap.
    pub fn of_gap(gap: f64) -> Priority {
        match to_millionths(gap) {
            gap if gap >= 0.2 => Priority::High,
            gap if gap >= 0.1 => Priority::Medium,
            _ => Priority::Low,
        }
    }
}

/// Recommendations for the components below what is expected, the widest gap first.
pub fn recommend(
    components: &Components,
    skills: &[SkillRating],
    made_at: Moment,
) -> Vec<Recommendation> {
    let one = |(area, gap): (Component, f64)| Recommendation {
        id: format!("{area}-{}", made_at.millis()),
        area,
        action: action(area, skills),
        reason: format!(
            "{} is {:.0} %; {:.0} % is expected",
            title(area),
            components.get(area) * 100.0,
            area.threshold() * 100.0
        ),
        gap,
        priority: Priority::of_gap(gap),
        made_at,
        feedback: None,
    };
    gaps(components).into_iter().map(one).collect()
}

/// When a recommendation was made, by its id.
pub fn made_at(recommendation_id: &str) -> Option<Moment> {
    let (_, millis) = recommendation_id.rsplit_once('-')?;
    millis.parse().ok().map(Moment::from_epoch_ms)
}

/// The next steps for a learner, the most urgent first: out of struggles, then weak skills, then the
/// gaps in the score, then skills to strengthen; who needs none of it gets harder work.
///
/// A step is a word, or a word and what it is about: `finish_lessons`, `practise:fractions`.
/// [`step_in_words`] says it to a learner.
pub fn adaptive_path(
    components: &Components,
    skills: &[SkillRating],
    struggles: &[Struggle],
) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    let mut add = |step: String| {
        if !steps.contains(&step) {
            steps.push(step);
        }
    };
    for struggle in struggles.iter().take(STRUGGLES_IN_PATH) {
        add(format!("get_help:{}", struggle.subject_of));
    }
    let weak = by_chance(skills, 0.0, SKILL_WEAK);
    weak.iter().take(SKILLS_IN_PATH).for_each(|skill| add(format!("practise:{}", skill.skill_id)));
    for (area, _) in gaps(components) {
        add(match area {
            Component::Completion => "finish_lessons",
            Component::Quiz => "repeat_quiz",
            Component::Quality => "improve_work",
            Component::Consistency => "come_regularly",
        }
        .to_owned());
    }
    let shaky = by_chance(skills, SKILL_WEAK, SKILL_FIRM);
    let room = SKILLS_IN_PATH.saturating_sub(weak.len());
    shaky.iter().take(room).for_each(|skill| add(format!("strengthen:{}", skill.skill_id)));
    if steps.is_empty() {
        steps.extend(["practice_advanced_topics", "code_review_exercises"].map(str::to_owned));
        if Level::of(components.score()) >= Level::Proficient {
            steps.push("mock_assessment".to_owned());
        }
    }
    steps
}

/// A step of a path in words for a learner.
pub fn step_in_words(step: &str) -> String {
    let (word, about) = step.split_once(':').unwrap_or((step, ""));
    match word {
        "get_help" => format!("Get help with {about}"),
        "practise" => format!("Practise {about}"),
        "strengthen" => format!("Strengthen {about}"),
        "finish_lessons" => "Finish the lessons you began".to_owned(),
        "repeat_quiz" => "Take a quiz again".to_owned(),
        "improve_work" => "Improve a work that was reviewed".to_owned(),
        "come_regularly" => "Study a little on five days a week".to_owned(),
        "practice_advanced_topics" => "Go on to harder topics".to_owned(),
        "code_review_exercises" => "Review somebody's work".to_owned(),
        "mock_assessment" => "Try a mock assessment".to_owned(),
        _ => step.replace('_', " "),
    }
}

/// The components below what is expected, the widest gap first.
fn gaps(components: &Components) -> Vec<(Component, f64)> {
    let gap = |area: Component| (area, to_millionths(area.threshold() - components.get(area)));
    let mut gaps: Vec<(Component, f64)> =
        Component::ALL.into_iter().map(gap).filter(|(_, gap)| *gap > 0.0).collect();
    gaps.sort_by(|one, other| other.1.total_cmp(&one.1));
    gaps
}

/// The skills whose chance of success lies in a range, the weakest first.
fn by_chance(skills: &[SkillRating], from: f64, below: f64) -> Vec<&SkillRating> {
    let known = |skill: &&SkillRating| {
        skill.answers >= ANSWERS_MIN && skill.probability >= from && skill.probability < below
    };
    let mut found: Vec<&SkillRating> = skills.iter().filter(known).collect();
    found.sort_by(|one, other| one.probability.total_cmp(&other.probability));
    found
}

fn action(area: Component, skills: &[SkillRating]) -> String {
    let weakest = by_chance(skills, 0.0, SKILL_FIRM).first().map(|skill| &skill.skill_id);
    match (area, weakest) {
        (Component::Completion, _) => "Finish the lessons that were begun".to_owned(),
        (Component::Quiz, Some(skill)) => format!("Practise {skill}, then take a quiz again"),
        (Component::Quiz, None) => "Practise, then take a quiz again".to_owned(),
        (Component::Quality, _) => "Go through the last reviews and improve the work".to_owned(),
        (Component::Consistency, _) => "Study a little on five days a week".to_owned(),
    }
}

fn title(area: Component) -> &'static str {
    match area {
        Component::Completion => "Completion",
        Component::Quiz => "Quiz",
        Component::Quality => "Quality",
        Component::Consistency => "Consistency",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::results::StruggleKind;

    const FINE: Components =
        Components { completion: 0.8, quiz: 0.75, quality: 0.7, consistency: 0.7 };

    fn skill(skill_id: &str, probability: f64, answers: u32) -> SkillRating {
        let last = Moment::default();
        let skill_id = skill_id.to_owned();
        SkillRating { skill_id, rating: 0.0, answers, correct: 0, probability, last }
    }

    fn found(components: Components) -> Vec<(Component, Priority, f64)> {
        let all = recommend(&components, &[], Moment::from_epoch_ms(5));
        all.into_iter().map(|it| (it.area, it.priority, it.gap)).collect()
    }

    #[test]
    fn nothing_is_recommended_at_the_thresholds_and_something_just_below() {
        assert_eq!(found(FINE), []);
        for area in Component::ALL {
            let mut below = FINE;
            *match area {
                Component::Completion => &mut below.completion,
                Component::Quiz => &mut below.quiz,
                Component::Quality => &mut below.quality,
                Component::Consistency => &mut below.consistency,
            } -= 1e-6;
            assert_eq!(found(below), [(area, Priority::Low, 1e-6)]);
        }
    }

    #[test]
    fn a_gap_of_two_tenths_is_urgent_and_the_widest_comes_first() {
        let components =
            Components { completion: 0.7, quiz: 0.55, quality: 0.61, consistency: 0.0 };
        let expected = [
            (Component::Consistency, Priority::High, 0.7),
            (Component::Quiz, Priority::High, 0.2),
            (Component::Completion, Priority::Medium, 0.1),
            (Component::Quality, Priority::Low, 0.09),
        ];
        assert_eq!(found(components), expected);
    }

    #[test]
    fn a_recommendation_says_what_to_do_and_why() {
        let skills = [skill("decimals", 0.6, 9), skill("fractions", 0.3, 3), skill("new", 0.1, 2)];
        let low = Components { quiz: 0.4, ..FINE };
        let made = recommend(&low, &skills, Moment::from_epoch_ms(1_768_386_600_000));
        assert_eq!(made[0].id, "quiz-1768386600000");
        assert_eq!(made[0].action, "Practise fractions, then take a quiz again");
        assert_eq!(made[0].reason, "Quiz is 40 %; 75 % is expected");
    }

    #[test]
    fn a_path_leads_out_of_struggles_first_then_to_weak_skills_then_to_gaps() {
        let skills = [skill("firm", 0.8, 9), skill("shaky", 0.6, 9), skill("weak", 0.3, 9)];
        let stuck = Struggle {
            kind: StruggleKind::Stuck,
            since: Moment::default(),
            detail: String::new(),
            subject_of: "loops".to_owned(),
        };
        let low = Components { completion: 0.5, ..FINE };
        let path = adaptive_path(&low, &skills, &[stuck.clone(), stuck]);
        assert_eq!(path, ["get_help:loops", "practise:weak", "finish_lessons", "strengthen:shaky"]);
        let words: Vec<String> = path.iter().map(|step| step_in_words(step)).collect();
        assert_eq!(words[0], "Get help with loops");
        assert_eq!(words[2], "Finish the lessons you began");
    }

    #[test]
    fn who_is_as_expected_gets_harder_work() {
        let strong = Components { completion: 1.0, quiz: 0.9, quality: 0.9, consistency: 0.9 };
        let all = ["practice_advanced_topics", "code_review_exercises", "mock_assessment"];
        assert_eq!(adaptive_path(&strong, &[], &[]), all);
        // The sum of what is expected is 0.755.
        assert_eq!(adaptive_path(&FINE, &[], &[]), all);
    }

    #[test]
    fn every_step_has_words_of_its_own() {
        let low = Components::default();
        for step in adaptive_path(&low, &[], &[]) {
            assert_ne!(step_in_words(&step), step.replace('_', " "), "{step}");
        }
        assert_eq!(step_in_words("some_older_step"), "some older step");
    }
}
