//! Simulates a school over some weeks, as the events that its learners would have sent.

use std::time::Duration;

use crate::domain::LearningEvent;
use crate::simulate::Chance;
use crate::simulate::course::{Difficulties, ITEMS_PER_SKILL, SKILLS};
use crate::simulate::learner::Learner;
use crate::simulate::session::{Progress, Session};
use kstone_base::time::{Date, Moment};

/// A class has about so many learners.
const CLASS_SIZE: usize = 30;
const CLASS_IDS: [&str; 9] = ["7a", "7b", "7c", "8a", "8b", "8c", "9a", "9b", "9c"];

/// The days of the term on which the school is closed, as shares of it.
const HOLIDAY: std::ops::Range<f64> = 0.42..0.56;

/// A simulated school.
#[derive(Debug, Clone)]
pub struct School {
    seed: u64,
    classes: Vec<Class>,
    learners: Vec<Learner>,
    pub(super) difficulties: Difficulties,
}

/// A class of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its id: `7a`.
    pub class_id: String,
    /// Its name.
    pub name: String,
}

impl School {
    /// Its id.
    pub const ID: &str = "riverside";
    /// Its name.
    pub const NAME: &str = "Riverside School";

    /// A school with so many learners, the same for the same seed.
    pub fn new(seed: u64, learners: usize) -> School {
        let count = learners.div_ceil(CLASS_SIZE).clamp(1, CLASS_IDS.len());
        let classes: Vec<Class> = CLASS_IDS
            .iter()
            .take(count)
            .map(|id| Class { class_id: (*id).to_owned(), name: format!("Class {id}") })
            .collect();
        let class_of = |number: usize| {
            let at = number * count / learners.max(1);
            classes.get(at).map(|class| class.class_id.clone()).unwrap_or_default()
        };
        School {
            seed,
            learners: (0..learners).map(|n| Learner::draw(seed, n, class_of(n))).collect(),
            classes,
            difficulties: Difficulties::draw(&mut Chance::new(seed), SKILLS.len(), ITEMS_PER_SKILL),
        }
    }

    /// Its classes.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Its learners, class by class.
    pub fn learners(&self) -> &[Learner] {
        &self.learners
    }

    /// All events of a learner in this many days until now, oldest first, no two at the same
    /// millisecond.
    pub fn events_of(&self, learner: &Learner, days: u32, now: Moment) -> Vec<LearningEvent> {
        let mut chance = Chance::for_each(self.seed ^ 0x5eed, learner.number);
        let mut progress = Progress::new();
        let today = now.date();
        let mut events = Vec::new();
        for day in 0..days {
            let date = today.plus_days(i64::from(day) + 1 - i64::from(days));
            let term = f64::from(day) / f64::from(days.max(1));
            // Drawn also for who is absent, so that the days do not depend on each other.
            let is_there = chance.happens(presence(learner, date, day, term));
            let begins_at = learner.begins_at + chance.between(0.0, 2.5);
            if !is_there {
                continue;
            }
            let session = Session {
                school: self,
                learner,
                term,
                day,
                days,
                starts: moment(learner, date, begins_at),
            };
            for (number, (at, what)) in
                session.run(&mut progress, &mut chance).into_iter().enumerate()
            {
                events.push(LearningEvent {
                    event_id: format!("{}-{date}-{:02}", learner.student_id, number + 1),
                    student_id: learner.student_id.clone(),
                    school_id: Some(School::ID.to_owned()),
                    occurred_at: at,
                    what,
                });
            }
        }
        events.retain(|event| event.occurred_at <= now);
        events
    }

    /// A random event of some learner now, at the end of the term.
    pub fn something_happens(&self, now: Moment, chance: &mut Chance) -> Option<LearningEvent> {
        let learner = self.learners.get(chance.below(self.learners.len()))?;
        let session = Session { school: self, learner, term: 1.0, day: 0, days: 1, starts: now };
        Some(LearningEvent {
            event_id: format!(
                "{}-{}-{:08x}",
                learner.student_id,
                now.epoch_ms(),
                chance.any() as u32
            ),
            student_id: learner.student_id.clone(),
            school_id: Some(School::ID.to_owned()),
            occurred_at: now,
            what: session.one_thing(chance),
        })
    }
}

/// How likely a learner is there on a day.
fn presence(learner: &Learner, date: Date, day: u32, term: f64) -> f64 {
    // 1970 began on a Thursday.
    let is_weekend = (date.epoch_days() + 3) % 7 >= 5;
    let presence = learner.presence(term);
    match () {
        () if learner.ill.contains(&day) => 0.0,
        () if HOLIDAY.contains(&term) => presence * 0.07,
        () if is_weekend => presence * 0.2,
        () => presence,
    }
}

/// The moment of a local time of day in the learner's time zone.
fn moment(learner: &Learner, date: Date, local_hour: f64) -> Moment {
    let of_day = Duration::from_secs_f64(local_hour.clamp(0.0, 24.0) * 3600.0);
    let east = Duration::from_secs(learner.hours_east.unsigned_abs() * 3600);
    let local = Moment::start_of(date).plus(Duration::from_millis(of_day.as_millis() as u64));
    if learner.hours_east < 0 { local.plus(east) } else { local.minus(east) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AcceptedEvent, EventDetail, LearnerState};
    use crate::simulate::Course;
    use kstone_base::time::Zone;
    use std::collections::BTreeMap;

    fn now() -> Moment {
        "2026-03-20T15:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_school_is_the_same_for_the_same_seed_and_moment() {
        let events = |seed| {
            let school = School::new(seed, 12);
            let of = |learner| school.events_of(learner, 20, now());
            school.learners().iter().flat_map(of).collect::<Vec<_>>()
        };
        assert_eq!(events(1), events(1));
        assert_ne!(events(1), events(2));
    }

    #[test]
    fn two_hundred_learners_make_classes_of_about_thirty_with_every_course_in_each() {
        let school = School::new(1, 200);
        let mut by_class: BTreeMap<&str, Vec<Course>> = BTreeMap::new();
        for learner in school.learners() {
            by_class.entry(&learner.class_id).or_default().push(learner.course);
        }
        assert_eq!(by_class.len(), school.classes().len());
        for (class, courses) in by_class {
            assert!((25..=32).contains(&courses.len()), "{class} has {}", courses.len());
            for course in [Course::Struggling, Course::Improving, Course::Fading] {
                assert!(courses.contains(&course), "nobody in {class} is {course:?}");
            }
        }
    }

    #[test]
    fn every_event_can_be_accepted_in_its_order_under_its_own_name() {
        let school = School::new(1, 40);
        let mut names = std::collections::HashSet::new();
        let mut events = 0;
        for learner in school.learners() {
            let mut before = Moment::default();
            for event in school.events_of(learner, 60, now()) {
                event.check(event.occurred_at).unwrap();
                assert!(before < event.occurred_at && event.occurred_at <= now(), "{event:?}");
                before = event.occurred_at;
                assert!(names.insert(event.event_id.clone()), "twice: {}", event.event_id);
                events += 1;
            }
        }
        assert!((40 * 150..40 * 500).contains(&events), "{events}");
    }

    #[test]
    fn who_struggles_answers_worse_and_who_improves_gets_better() {
        let school = School::new(1, 200);
        let share = |course: Course, late: Option<bool>| {
            let (mut right, mut all) = (0.0, 0.0);
            for learner in school.learners().iter().filter(|learner| learner.course == course) {
                for event in school.events_of(learner, 60, now()) {
                    let is_late = event.occurred_at.date() > "2026-02-18".parse().unwrap();
                    if let EventDetail::Answer { correct, .. } = event.what
                        && late.is_none_or(|late| late == is_late)
                    {
                        right += f64::from(u8::from(correct));
                        all += 1.0;
                    }
                }
            }
            right / all
        };
        assert!(share(Course::Struggling, None) + 0.2 < share(Course::Steady, None));
        assert!(share(Course::Steady, None) + 0.05 < share(Course::Strong, None));
        assert!(
            share(Course::Improving, Some(false)) + 0.15 < share(Course::Improving, Some(true))
        );
    }

    #[test]
    fn the_holidays_are_quiet_and_weekends_quieter_than_school_days() {
        let school = School::new(1, 200);
        let mut by_day: BTreeMap<Date, usize> = BTreeMap::new();
        for learner in school.learners() {
            for event in school.events_of(learner, 60, now()) {
                *by_day.entry(event.occurred_at.date()).or_default() += 1;
            }
        }
        let on = |day: &str| by_day.get(&day.parse().unwrap()).copied().unwrap_or(0);
        let (wednesday, sunday, holiday) = (on("2026-03-11"), on("2026-03-15"), on("2026-02-18"));
        assert!(wednesday > 3 * sunday, "{wednesday} and {sunday}");
        assert!(wednesday > 8 * holiday, "{wednesday} and {holiday}");
    }

    #[test]
    fn the_school_has_learners_on_most_levels_and_some_who_struggle_now() {
        let school = School::new(1, 200);
        let (mut levels, mut struggling) = (BTreeMap::new(), 0);
        for learner in school.learners() {
            let zone = Zone::named(learner.time_zone).unwrap();
            let mut state = LearnerState::new(learner.student_id.as_str());
            for event in school.events_of(learner, 60, now()) {
                let at = event.occurred_at;
                state.apply(&AcceptedEvent::new(event, at, &zone, None));
            }
            *levels.entry(state.mastery().level).or_insert(0) += 1;
            struggling += i32::from(!state.struggles(now()).is_empty());
        }
        assert!(levels.values().filter(|count| **count >= 10).count() >= 3, "{levels:?}");
        assert!((20..=80).contains(&struggling), "{struggling}");
    }

    #[test]
    fn something_happens_now_that_can_be_accepted() {
        let school = School::new(1, 30);
        let mut chance = Chance::new(5);
        for _ in 0..200 {
            school.something_happens(now(), &mut chance).unwrap().check(now()).unwrap();
        }
        assert!(School::new(1, 0).something_happens(now(), &mut chance).is_none());
    }
}
