//! Simulates one learning session of a learner.

use std::time::Duration;

use crate::domain::EventDetail;
use crate::simulate::chance::Chance;
use crate::simulate::course::{ITEMS_PER_SKILL, LESSONS_PER_SKILL, SKILLS, Skill, item_id};
use crate::simulate::learner::Learner;
use crate::simulate::school::School;
use kstone_base::time::Moment;

/// How far a learner is.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    practised: Vec<u32>,
    lessons: Vec<f64>,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress {
            practised: vec![0; SKILLS.len()],
            lessons: vec![0.0; SKILLS.len() * LESSONS_PER_SKILL],
        }
    }
}

/// One sitting.
pub(super) struct Session<'a> {
    pub school: &'a School,
    pub learner: &'a Learner,
    /// How far the term is, from 0 to 1.
    pub term: f64,
    pub day: u32,
    pub days: u32,
    pub starts: Moment,
}

impl Session<'_> {
    /// Everything that happens in it, in order.
    pub(super) fn run(
        &self,
        progress: &mut Progress,
        chance: &mut Chance,
    ) -> Vec<(Moment, EventDetail)> {
        let taught = SKILLS.len() * self.day as usize / self.days.max(1) as usize;
        let next_day = SKILLS.len() * (self.day as usize + 1) / self.days.max(1) as usize;
        let Some(skill) = SKILLS.get(taught) else { return Vec::new() };
        let mut done = Vec::new();
        done.push(match chance.happens(0.3) {
            true => EventDetail::Visit {},
            false => self.read(taught, skill, progress, chance),
        });
        for _ in 0..2 + chance.below(5) {
            // What was taught before is practised at times.
            let at = if chance.happens(0.25) { chance.below(taught + 1) } else { taught };
            done.extend(self.answer(at, progress, chance));
        }
        if chance.happens(0.5) {
            self.program(taught, skill, chance, &mut done);
        }
        if next_day > taught {
            let score = self.share(taught, progress, chance, 10);
            done.push(EventDetail::QuizFinished { quiz_id: format!("{}-quiz", skill.id), score });
            let quality = (0.25 + 0.75 * self.share(taught, progress, chance, 8)).min(1.0);
            done.push(EventDetail::WorkReviewed { task_id: format!("{}-work", skill.id), quality });
        }
        let mut at = self.starts;
        let mut timed = Vec::with_capacity(done.len());
        for what in done {
            at = at.plus(Duration::from_millis(20_000 + chance.below(240_000) as u64));
            timed.push((at, what));
        }
        timed
    }

    /// One thing at the end of the term, of a learner whose progress nobody kept.
    pub(super) fn one_thing(&self, chance: &mut Chance) -> EventDetail {
        let mut progress = Progress { practised: vec![6; SKILLS.len()], ..Progress::new() };
        let at = chance.below(SKILLS.len());
        let skill = SKILLS.get(at).unwrap_or(&SKILLS[0]);
        let answer = self.answer(at, &mut progress, chance);
        match chance.below(20) {
            0 => {
                let score = self.share(at, &progress, chance, 10);
                EventDetail::QuizFinished { quiz_id: format!("{}-quiz", skill.id), score }
            }
            1..=4 => {
                let mut done = Vec::new();
                self.program(at, skill, chance, &mut done);
                done.pop().unwrap_or(EventDetail::Visit {})
            }
            5 => EventDetail::Visit {},
            _ => answer.unwrap_or(EventDetail::Visit {}),
        }
    }

    /// Reads on in a lesson: further, the better the learner gets along.
    fn read(
        &self,
        taught: usize,
        skill: &Skill,
        progress: &mut Progress,
        chance: &mut Chance,
    ) -> EventDetail {
        let lesson = chance.below(LESSONS_PER_SKILL);
        let further = 0.2 + 0.8 * self.learner.success(taught, self.term, 0, -0.5);
        let lesson_id = format!("{}-lesson-{}", skill.id, lesson + 1);
        let mut fraction = 0.0;
        if let Some(read) = progress.lessons.get_mut(taught * LESSONS_PER_SKILL + lesson) {
            *read = (*read + further * chance.between(0.4, 1.0)).min(1.0);
            fraction = rounded(*read);
        }
        EventDetail::LessonProgress { lesson_id, fraction }
    }

    fn answer(
        &self,
        at: usize,
        progress: &mut Progress,
        chance: &mut Chance,
    ) -> Option<EventDetail> {
        let (skill, practised) = (SKILLS.get(at)?, progress.practised.get_mut(at)?);
        let item = chance.below(ITEMS_PER_SKILL);
        let difficulty = self.school.difficulties.of(at, item);
        let success = self.learner.success(at, self.term, *practised, difficulty);
        *practised += 1;
        let correct = chance.happens(success);
        // The less sure, the longer.
        let seconds = chance.between(3.0, 12.0) + 40.0 * (1.0 - success) * chance.unit();
        let mistaken = !correct && chance.happens(0.7);
        Some(EventDetail::Answer {
            skill_id: skill.id.to_owned(),
            item_id: item_id(skill, item),
            correct,
            took_ms: Some((seconds * 1000.0) as u32),
            error_kind: if mistaken { self.mistake(skill, chance) } else { None },
        })
    }

    /// Who struggles makes the same mistake again.
    fn mistake(&self, skill: &Skill, chance: &mut Chance) -> Option<String> {
        let again = self.learner.is_struggling(self.term) && chance.happens(0.75);
        let kind = if again { skill.mistakes.first() } else { chance.one_of(&skill.mistakes) };
        kind.map(|kind| (*kind).to_owned())
    }

    /// Works at the skill's program: runs it until it does what it should, or gives up.
    fn program(&self, at: usize, skill: &Skill, chance: &mut Chance, done: &mut Vec<EventDetail>) {
        let task_id = format!("{}-work", skill.id);
        let success = self.learner.success(at, self.term, 3, 0.3);
        let tries = if self.learner.is_struggling(self.term) { 6 } else { 3 };
        for _ in 0..1 + chance.below(tries) {
            let passed = chance.happens(success);
            let error_kind = if passed { None } else { self.mistake(skill, chance) };
            done.push(EventDetail::CodeRun { task_id: task_id.clone(), passed, error_kind });
            if passed {
                return;
            }
        }
        if self.learner.is_struggling(self.term) && chance.happens(0.5) {
            let minutes = rounded(chance.between(4.0, 30.0));
            done.push(EventDetail::Stuck { task_id, minutes });
        }
    }

    /// The share of so many questions that the learner gets right.
    fn share(&self, at: usize, progress: &Progress, chance: &mut Chance, of: u32) -> f64 {
        let practised = progress.practised.get(at).copied().unwrap_or(0);
        let right = (0..of).filter(|_| {
            let difficulty = self.school.difficulties.of(at, chance.below(ITEMS_PER_SKILL));
            chance.happens(self.learner.success(at, self.term, practised, difficulty))
        });
        right.count() as f64 / f64::from(of)
    }
}

/// To hundredths, as a person would say it.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
