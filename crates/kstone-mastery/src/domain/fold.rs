//! [`LearnerState`]: the result of folding all events of a learner, in order of acceptance.
//!
//! Events are taken in one by one, in the order of acceptance. The result depends on nothing else:
//! to fold them all again gives the same state, and so does a state that was kept somewhere in the
//! middle with the events after it. Numbers are kept to the millionth, so that a state is the same
//! after a way through JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::activity::ActiveDays;
use super::elo::{ObservedAnswer, Rating, chance_of_success, surprise};
use super::event::{AcceptedEvent, EventDetail};
use super::evidence::{Decay, Lessons, RecentMean};
use super::results::{ActivityData, Components, Level, MasteryResult, SkillRating, Struggle};
use super::score::to_millionths;
use super::struggle::Signs;
use kstone_base::time::{Date, Moment, Zone};

/// An answer that lies 34 answers back counts half.
const ANSWERS: Decay = Decay(0.98);
/// A finished quiz counts as ten answers.
const QUIZ_WEIGHT: f64 = 10.0;
/// A review that lies seven reviews back counts half.
const REVIEWS: Decay = Decay(0.9);
/// An assessment from outside counts as two quizzes.
const ASSESSED_ANSWERS: f64 = 20.0;
/// An assessment from outside counts as five reviews.
const ASSESSED_REVIEWS: f64 = 5.0;
/// How many skills are remembered; beyond that, the one that was longest not answered in is
/// forgotten, and begins anew if it comes again.
const SKILLS_MAX: usize = 128;
/// How quickly the difficulty of the questions a learner gets is followed.
const DIFFICULTY: Decay = Decay(0.95);

/// The state that a learner's events fold into. Its size is bounded, however many events there
/// were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnerState {
    student_id: String,
    version: u64,
    accepted_at: Moment,
    day: Date,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    school_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<Level>,
    #[serde(default)]
    lessons: Lessons,
    #[serde(default)]
    quiz: RecentMean,
    #[serde(default)]
    quality: RecentMean,
    #[serde(default)]
    days: ActiveDays,
    /// What the learner can do in general.
    #[serde(default)]
    ability: Rating,
    #[serde(default)]
    skills: BTreeMap<String, Skill>,
    #[serde(default)]
    signs: Signs,
}

/// A learner's rating in one skill, relative to their general ability.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct Skill {
    beyond: Rating,
    correct: u32,
    /// The mean difficulty of the questions; recent ones weigh more.
    difficulty: f64,
    difficulty_weight: f64,
    last: Moment,
}

/// The effect of one event.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the learner's mastery is now.
    pub mastery: MasteryResult,
    /// The day whose snapshot this is: the newest of the learner's days. An event that comes late
    /// changes what is known now, not what was known then.
    pub day: Date,
    /// The level before, if it is another now.
    pub level_before: Option<Level>,
    /// The rating of the skill that was answered in.
    pub skill: Option<SkillRating>,
    /// What the answer says about its question, for the ratings that learners share.
    pub answer: Option<ObservedAnswer>,
    /// What the learner began to struggle with just now; nothing, if the event comes so late that it
    /// is over.
    pub struggles_begun: Vec<Struggle>,
}

impl LearnerState {
    /// The state of a learner without events.
    pub fn new(student_id: impl Into<String>) -> LearnerState {
        LearnerState {
            student_id: student_id.into(),
            version: 0,
            accepted_at: Moment::default(),
            day: Date::default(),
            school_id: None,
            level: None,
            lessons: Lessons::default(),
            quiz: RecentMean::default(),
            quality: RecentMean::default(),
            days: ActiveDays::default(),
            ability: Rating::default(),
            skills: BTreeMap::new(),
            signs: Signs::default(),
        }
    }

    /// Applies the next event, in order of acceptance.
    pub fn apply(&mut self, accepted: &AcceptedEvent) -> Outcome {
        let event = &accepted.event;
        self.version += 1;
        self.accepted_at = accepted.accepted_at;
        self.day = self.day.max(accepted.day);
        if event.school_id.is_some() {
            self.school_id.clone_from(&event.school_id);
        }
        if event.what.is_activity() {
            self.days.active(event.occurred_at, accepted.day);
        }
        let (mut skill, mut answer) = (None, None);
        match &event.what {
            EventDetail::LessonProgress { lesson_id, fraction } => {
                self.lessons.progress(lesson_id, *fraction, self.version);
            }
            EventDetail::Answer { skill_id, item_id, correct, .. } => {
                self.quiz.absorb(f64::from(u8::from(*correct)), 1.0, ANSWERS);
                let difficulty = accepted.difficulty.unwrap_or_default();
                let (rated, ability) =
                    self.answered(skill_id, *correct, difficulty, event.occurred_at);
                let (skill_id, item_id) = (skill_id.clone(), item_id.clone());
                answer = Some(ObservedAnswer { skill_id, item_id, ability, correct: *correct });
                skill = Some(rated);
            }
            EventDetail::QuizFinished { score, .. } => {
                self.quiz.absorb(*score, QUIZ_WEIGHT, ANSWERS)
            }
            EventDetail::WorkReviewed { quality, .. } => {
                self.quality.absorb(*quality, 1.0, REVIEWS)
            }
            EventDetail::Assessed { components } => {
                self.lessons.assess(components.completion);
                self.quiz.assess(components.quiz, ASSESSED_ANSWERS);
                self.quality.assess(components.quality, ASSESSED_REVIEWS);
                self.days.assess(components.consistency, self.day);
            }
            EventDetail::CodeRun { .. } | EventDetail::Stuck { .. } | EventDetail::Visit {} => {}
        }
        let told_at = accepted.accepted_at;
        let struggles_begun = self.signs.observe(&event.what, event.occurred_at, told_at);
        let mastery = self.mastery();
        let level_before =
            self.level.replace(mastery.level).filter(|before| *before != mastery.level);
        Outcome { mastery, day: self.day, level_before, skill, answer, struggles_begun }
    }

    /// Whose it is.
    pub fn student_id(&self) -> &str {
        &self.student_id
    }

    /// The version: the number of applied events.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// When the last event was accepted.
    pub fn accepted_at(&self) -> Moment {
        self.accepted_at
    }

    /// The newest of the learner's days.
    pub fn day(&self) -> Date {
        self.day
    }

    /// The mastery right after the last event.
    pub fn mastery(&self) -> MasteryResult {
        self.mastery_on(self.accepted_at, self.day)
    }

    /// The mastery as of a later moment, on that day of the learner. Without events only
    /// consistency changes: it falls.
    pub fn mastery_on(&self, now: Moment, today: Date) -> MasteryResult {
        let components = Components {
            completion: self.lessons.completion(),
            quiz: self.quiz.mean(),
            quality: self.quality.mean(),
            consistency: self.days.consistency(today),
        };
        let mut mastery =
            MasteryResult::new(self.student_id.as_str(), &components, now, self.version);
        mastery.school_id.clone_from(&self.school_id);
        mastery
    }

    /// When the learner was active, seen from now. Of a learner who never was, only assessed by
    /// others, the last activity is the last event.
    pub fn activity(&self, now: Moment, zone: &Zone) -> ActivityData {
        self.days.data(self.accepted_at, zone.date(now), zone)
    }

    /// What the learner can do, by skill, in the order of their names.
    pub fn skills(&self) -> Vec<SkillRating> {
        self.skills.iter().map(|(skill_id, skill)| skill.rating(skill_id, &self.ability)).collect()
    }

    /// What the learner struggles with now, the newest first.
    pub fn struggles(&self, now: Moment) -> Vec<Struggle> {
        self.signs.struggles(now)
    }

    /// Updates the learner's ratings. Returns that of the skill, and the ability in it before.
    fn answered(
        &mut self,
        skill_id: &str,
        correct: bool,
        difficulty: f64,
        at: Moment,
    ) -> (SkillRating, f64) {
        if !self.skills.contains_key(skill_id) && self.skills.len() >= SKILLS_MAX {
            let longest = self.skills.iter().min_by_key(|(_, skill)| skill.last);
            if let Some(id) = longest.map(|(id, _)| id.clone()) {
                self.skills.remove(&id);
            }
        }
        let skill = self.skills.entry(skill_id.to_owned()).or_default();
        let ability = to_millionths(self.ability.rating + skill.beyond.rating);
        let surprise = surprise(ability, difficulty, correct);
        self.ability.step(surprise);
        skill.beyond.step(surprise);
        skill.correct = skill.correct.saturating_add(u32::from(correct));
        let weight = skill.difficulty_weight * DIFFICULTY.0 + 1.0;
        skill.difficulty =
            to_millionths(skill.difficulty + (difficulty - skill.difficulty) / weight);
        skill.difficulty_weight = to_millionths(weight);
        skill.last = skill.last.max(at);
        (skill.rating(skill_id, &self.ability), ability)
    }
}

impl Skill {
    fn rating(&self, skill_id: &str, general: &Rating) -> SkillRating {
        let rating = to_millionths(general.rating + self.beyond.rating);
        SkillRating {
            skill_id: skill_id.to_owned(),
            rating,
            answers: self.beyond.answers,
            correct: self.correct,
            probability: to_millionths(chance_of_success(rating, self.difficulty)),
            last: self.last,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::event::LearningEvent;
    use super::super::results::StruggleKind;
    use super::*;

    fn first() -> Moment {
        "2026-01-14T10:30:00Z".parse().unwrap()
    }

    /// An event so many minutes after the first, accepted at once.
    fn event(minutes: u64, what: EventDetail) -> AcceptedEvent {
        let occurred_at = first().plus(Duration::from_secs(60 * minutes));
        let event = LearningEvent {
            event_id: format!("e{minutes}"),
            student_id: "s".into(),
            school_id: None,
            occurred_at,
            what,
        };
        AcceptedEvent::new(event, occurred_at, &Zone::UTC, None)
    }

    fn folded(events: &[AcceptedEvent]) -> LearnerState {
        let mut state = LearnerState::new("s");
        events.iter().for_each(|event| drop(state.apply(event)));
        state
    }

    fn answer(skill: &str, correct: bool) -> EventDetail {
        EventDetail::Answer {
            skill_id: skill.into(),
            item_id: "i".into(),
            correct,
            took_ms: None,
            error_kind: None,
        }
    }

    #[test]
    fn the_components_come_from_their_events() {
        let state = folded(&[
            event(0, EventDetail::LessonProgress { lesson_id: "a".into(), fraction: 1.0 }),
            event(1, EventDetail::LessonProgress { lesson_id: "b".into(), fraction: 0.5 }),
            event(2, EventDetail::QuizFinished { quiz_id: "q".into(), score: 0.8 }),
            event(3, EventDetail::WorkReviewed { task_id: "t".into(), quality: 0.6 }),
        ]);
        let found = state.mastery();
        let expected = Components { completion: 0.75, quiz: 0.8, quality: 0.6, consistency: 0.1 };
        assert_eq!(found.components, expected);
        assert_eq!(found.mastery_score, 0.67);
        assert_eq!((found.level, found.version), (Level::Competent, 4));
        assert_eq!(found.timestamp, first().plus(Duration::from_secs(180)));
    }

    #[test]
    fn an_assessment_gives_exactly_what_it_says() {
        let components =
            Components { completion: 0.85, quiz: 0.9, quality: 0.85, consistency: 0.82 };
        let mut state = folded(&[
            event(0, EventDetail::LessonProgress { lesson_id: "a".into(), fraction: 0.1 }),
            event(1, answer("x", false)),
            event(2, EventDetail::Assessed { components }),
        ]);
        assert_eq!(state.mastery().components, components);
        assert_eq!(state.mastery().mastery_score, 0.862);
        let after = state.apply(&event(3, answer("x", true))).mastery.components;
        assert!(after.quiz > 0.9 && after.completion == 0.85);
    }

    #[test]
    fn what_others_say_is_no_activity() {
        let components = Components::default();
        let mut state = folded(&[
            event(0, EventDetail::Assessed { components }),
            event(1, EventDetail::WorkReviewed { task_id: "t".into(), quality: 0.6 }),
        ]);
        assert!(state.activity(first(), &Zone::UTC).activity_log.is_empty());
        state.apply(&event(2, EventDetail::Visit {}));
        assert_eq!(state.activity(first(), &Zone::UTC).current_streak, 1);
    }

    #[test]
    fn an_event_that_comes_late_counts_now_and_not_then() {
        let mut state = folded(&[event(5000, EventDetail::Visit {})]);
        let newest = state.day();
        let outcome = state.apply(&event(0, EventDetail::Visit {}));
        assert_eq!(outcome.day, newest);
        let log =
            state.activity(first().plus(Duration::from_secs(300_000)), &Zone::UTC).activity_log;
        assert_eq!(log.len(), 2);
    }

    #[test]
    fn right_answers_lift_the_chance_in_their_skill_most() {
        let mut state = LearnerState::new("s");
        for minute in 0..20 {
            state.apply(&event(minute, answer("practised", true)));
        }
        let outcome = state.apply(&event(20, answer("other", false)));
        assert_eq!(outcome.skill.unwrap().skill_id, "other");
        let skills = state.skills();
        let [other, practised] = skills.as_slice() else { panic!("{skills:?}") };
        assert!(practised.probability > 0.85, "{practised:?}");
        assert_eq!((practised.answers, practised.correct), (20, 20));
        assert!(other.probability < practised.probability - 0.1);
        assert!(other.probability > 0.5, "who is good in general is expected to be good here too");
    }

    #[test]
    fn a_right_answer_to_a_hard_question_says_more() {
        let mut easy = LearnerState::new("s");
        let mut hard = easy.clone();
        let mut right = event(0, answer("x", true));
        right.difficulty = Some(-2.0);
        easy.apply(&right);
        right.difficulty = Some(2.0);
        let seen = hard.apply(&right).answer.unwrap();
        assert_eq!((seen.ability, seen.correct), (0.0, true));
        assert!(hard.skills()[0].rating > easy.skills()[0].rating + 0.5);
    }

    #[test]
    fn a_change_of_level_and_a_struggle_are_told_once() {
        let mut state = LearnerState::new("s");
        let lesson = |fraction| EventDetail::LessonProgress { lesson_id: "a".into(), fraction };
        assert_eq!(state.apply(&event(0, lesson(0.1))).level_before, None);
        let quiz = |score| EventDetail::QuizFinished { quiz_id: "q".into(), score };
        state.apply(&event(1, lesson(0.9)));
        let up = state.apply(&event(2, quiz(0.9)));
        assert_eq!((up.level_before, up.mastery.level), (Some(Level::Beginner), Level::Competent));
        let down = state.apply(&event(3, quiz(0.0)));
        assert_eq!(down.level_before, Some(Level::Competent));
        assert_eq!(down.struggles_begun[0].kind, StruggleKind::LowQuiz);
        let again = state.apply(&event(4, quiz(0.0)));
        assert_eq!((again.level_before, again.struggles_begun), (None, vec![]));
        assert_eq!(state.struggles(first()).len(), 1);
    }

    #[test]
    fn a_learner_of_many_years_takes_no_more_room() {
        let mut state = LearnerState::new("s");
        let mut largest = 0;
        for number in 0..6000_u64 {
            let id = format!("id-{}", number % 1500);
            state.apply(&event(
                number * 60,
                match number % 4 {
                    0 => EventDetail::LessonProgress { lesson_id: id, fraction: 0.5 },
                    1 => answer(&id, number % 3 == 0),
                    2 => EventDetail::QuizFinished { quiz_id: id, score: 0.1 },
                    _ => EventDetail::CodeRun {
                        task_id: id,
                        passed: false,
                        error_kind: Some("E".into()),
                    },
                },
            ));
            if number % 500 == 0 {
                largest = largest.max(serde_json::to_string(&state).unwrap().len());
            }
        }
        assert!(largest < 40_000, "{largest} bytes");
        assert_eq!(state.skills.len(), SKILLS_MAX);
    }

    fn any_what() -> impl Strategy<Value = EventDetail> {
        let id = || "[a-e]";
        let share = || 0.0..=1.0;
        prop_oneof![
            (id(), share()).prop_map(|(lesson_id, fraction)| EventDetail::LessonProgress {
                lesson_id,
                fraction
            }),
            (id(), id(), any::<bool>(), proptest::option::of("[x-z]")).prop_map(
                |(skill_id, item_id, correct, error_kind)| EventDetail::Answer {
                    skill_id,
                    item_id,
                    correct,
                    took_ms: None,
                    error_kind
                }
            ),
            (id(), share())
                .prop_map(|(quiz_id, score)| EventDetail::QuizFinished { quiz_id, score }),
            (id(), share())
                .prop_map(|(task_id, quality)| EventDetail::WorkReviewed { task_id, quality }),
            (id(), any::<bool>(), proptest::option::of("[x-z]")).prop_map(
                |(task_id, passed, error_kind)| EventDetail::CodeRun {
                    task_id,
                    passed,
                    error_kind
                }
            ),
            (id(), 0.0..30.0)
                .prop_map(|(task_id, minutes)| EventDetail::Stuck { task_id, minutes }),
            Just(EventDetail::Visit {}),
            (share(), share(), share(), share()).prop_map(
                |(completion, quiz, quality, consistency)| {
                    EventDetail::Assessed {
                        components: Components { completion, quiz, quality, consistency },
                    }
                }
            ),
        ]
    }

    /// Events accepted a minute apart, of which each happened up to three weeks before.
    fn any_events() -> impl Strategy<Value = Vec<AcceptedEvent>> {
        let one = (any_what(), 0..30_000_u64, proptest::option::of(-3.0..3.0));
        proptest::collection::vec(one, 1..120).prop_map(|all| {
            let each = all.into_iter().enumerate();
            each.map(|(at, (what, late, difficulty))| {
                let mut accepted = event(50_000 + 600 * at as u64 - late, what);
                accepted.accepted_at =
                    first().plus(Duration::from_secs(3_000_000 + 60 * at as u64));
                let zone =
                    if late % 2 == 0 { Zone::UTC } else { Zone::named("Asia/Tokyo").unwrap() };
                AcceptedEvent::new(accepted.event, accepted.accepted_at, &zone, difficulty)
            })
            .collect()
        })
    }

    proptest! {
        #[test]
        fn a_state_kept_anywhere_and_the_events_after_it_give_the_same_as_all_events(
            events in any_events(), at in any::<proptest::sample::Index>(),
        ) {
            let (before, after) = events.split_at(at.index(events.len()));
            let kept = serde_json::to_string(&folded(before)).unwrap();
            let mut state: LearnerState = serde_json::from_str(&kept).unwrap();
            for event in after {
                // The log keeps events as text too.
                let text = serde_json::to_string(event).unwrap();
                state.apply(&serde_json::from_str(&text).unwrap());
            }
            let all = folded(&events);
            prop_assert_eq!(&state, &all);
            prop_assert_eq!(state.mastery(), all.mastery());
        }

        #[test]
        fn a_state_and_what_it_says_are_the_same_after_a_way_through_json(events in any_events()) {
            let state = folded(&events);
            let text = serde_json::to_string(&state).unwrap();
            let read: LearnerState = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &state);
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
            let mastery = state.mastery();
            let json = serde_json::to_string(&mastery).unwrap();
            prop_assert_eq!(serde_json::from_str::<MasteryResult>(&json).unwrap(), mastery);
            for skill in state.skills() {
                let json = serde_json::to_string(&skill).unwrap();
                prop_assert_eq!(serde_json::from_str::<SkillRating>(&json).unwrap(), skill);
            }
        }

        #[test]
        fn every_component_stays_a_share_and_the_score_follows_from_them(events in any_events()) {
            let mut state = LearnerState::new("s");
            for event in &events {
                let outcome = state.apply(event);
                prop_assert_eq!(outcome.mastery.components.check(), Ok(()));
                prop_assert_eq!(outcome.mastery.mastery_score, outcome.mastery.components.score());
                prop_assert_eq!(outcome.mastery.level, Level::of(outcome.mastery.mastery_score));
                prop_assert_eq!(outcome.mastery.version, state.version());
            }
            let later = state.mastery_on(state.accepted_at(), state.day().plus_days(100));
            prop_assert_eq!(later.components.consistency, 0.0);
            for skill in state.skills() {
                prop_assert!((0.0..=1.0).contains(&skill.probability) && skill.correct <= skill.answers);
            }
        }
    }
}
