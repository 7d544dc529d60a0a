//! Detects struggles: topics and tasks in which a learner makes no progress.
//!
//! | kind | begins | ends |
//! |---|---|---|
//! | repeated error | with the same error for the third time, in one task or skill | when the task is passed; in a skill each right answer takes one error back |
//! | failed runs | with the fifth failed run in a row of one task | when the task is passed |
//! | stuck | after ten minutes without getting further | when the task is passed |
//! | low quiz | with less than half of a quiz | when half of that quiz is reached |
//!
//! A review that finds at least half of the work good passes a task too. And all end when nothing was
//! seen of them for seven days: then it is no longer known.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::EventDetail;
use super::results::{Struggle, StruggleKind};
use kstone_base::time::Moment;

const ERRORS_MIN: u32 = 3;
/// More of the same error are not counted, so that a few right answers always end it.
const ERRORS_MAX: u32 = 5;
const RUNS_MIN: u32 = 5;
const MINUTES_MIN: f64 = 10.0;
/// What makes a quiz or a review good enough.
const HALF: f64 = 0.5;
/// How long a struggle lasts of which nothing is seen.
const LIFE: Duration = Duration::from_secs(7 * 86_400);
/// How many signs are remembered; beyond that, the one that was longest not seen is forgotten.
const SIGNS_MAX: usize = 24;

/// Counters per task and skill from which struggles are detected.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Signs(Vec<Sign>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Sign {
    kind: StruggleKind,
    /// The task, the quiz or the skill.
    subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// How many, how many minutes, or per cent.
    amount: u32,
    since: Moment,
    last: Moment,
}

impl Signs {
    /// Updates the counters with an event. Returns the struggles that began with it, unless they
    /// are over by now.
    pub(super) fn observe(
        &mut self,
        what: &EventDetail,
        at: Moment,
        told_at: Moment,
    ) -> Vec<Struggle> {
        // Whether it is over is a matter of the moments of events: the clock is not asked.
        self.0.retain(|sign| at.since(sign.last) <= LIFE);
        let mut begun = Vec::new();
        match what {
            EventDetail::Answer { skill_id, correct: true, .. } => {
                let errors = |sign: &&mut Sign| {
                    sign.kind == StruggleKind::RepeatedError && sign.subject == *skill_id
                };
                self.0
                    .iter_mut()
                    .filter(errors)
                    .for_each(|sign| sign.amount = sign.amount.saturating_sub(1));
                self.0.retain(|sign| sign.kind != StruggleKind::RepeatedError || sign.amount > 0);
            }
            EventDetail::Answer { skill_id, error_kind: Some(error), .. } => {
                begun.extend(self.count(StruggleKind::RepeatedError, skill_id, Some(error), at));
            }
            EventDetail::CodeRun { task_id, passed: true, .. } => self.passed(task_id),
            EventDetail::CodeRun { task_id, error_kind, .. } => {
                begun.extend(self.count(StruggleKind::FailedRuns, task_id, None, at));
                if let Some(error) = error_kind {
                    let kind = StruggleKind::RepeatedError;
                    begun.extend(self.count(kind, task_id, Some(error), at));
                }
            }
            EventDetail::Stuck { task_id, minutes } if *minutes >= MINUTES_MIN => {
                begun.extend(self.set(StruggleKind::Stuck, task_id, minutes.floor() as u32, at));
            }
            EventDetail::QuizFinished { quiz_id, score } if *score < HALF => {
                // Rounded down, so that less than half never reads as 50 %.
                let per_cent = (score * 100.0).floor() as u32;
                begun.extend(self.set(StruggleKind::LowQuiz, quiz_id, per_cent, at));
            }
            EventDetail::QuizFinished { quiz_id, .. } => {
                self.0.retain(|it| it.kind != StruggleKind::LowQuiz || it.subject != *quiz_id);
            }
            EventDetail::WorkReviewed { task_id, quality } if *quality >= HALF => {
                self.passed(task_id)
            }
            _ => {}
        }
        begun.retain(|_| told_at.since(at) <= LIFE);
        begun
    }

    /// The struggles that there are, the newest first.
    pub(super) fn struggles(&self, now: Moment) -> Vec<Struggle> {
        let there = self.0.iter().filter(|it| it.is_struggle() && now.since(it.last) <= LIFE);
        let mut struggles: Vec<Struggle> = there.map(Sign::told).collect();
        struggles.sort_by_key(|struggle| std::cmp::Reverse(struggle.since));
        struggles
    }

    fn passed(&mut self, task: &str) {
        self.0.retain(|sign| sign.kind == StruggleKind::LowQuiz || sign.subject != task);
    }

    /// Counts one more sign of this kind.
    fn count(
        &mut self,
        kind: StruggleKind,
        subject: &str,
        error: Option<&str>,
        at: Moment,
    ) -> Option<Struggle> {
        let sign = self.sign(kind, subject, error, at);
        let was_struggle = sign.is_struggle();
        let most = if kind == StruggleKind::RepeatedError { ERRORS_MAX } else { u32::MAX };
        sign.amount = sign.amount.saturating_add(1).min(most);
        (sign.is_struggle() && !was_struggle).then(|| sign.told())
    }

    /// Sets the count of signs of this kind.
    fn set(
        &mut self,
        kind: StruggleKind,
        subject: &str,
        amount: u32,
        at: Moment,
    ) -> Option<Struggle> {
        let known = self.0.iter().any(|it| it.is(kind, subject, None));
        let sign = self.sign(kind, subject, None, at);
        sign.amount = amount;
        (!known).then(|| sign.told())
    }

    fn sign(
        &mut self,
        kind: StruggleKind,
        subject: &str,
        error: Option<&str>,
        at: Moment,
    ) -> &mut Sign {
        let known = self.0.iter().position(|it| it.is(kind, subject, error));
        let mut sign = match known {
            Some(place) => self.0.swap_remove(place),
            None => Sign {
                kind,
                subject: subject.to_owned(),
                error: error.map(str::to_owned),
                amount: 0,
                since: at,
                last: at,
            },
        };
        sign.since = sign.since.min(at);
        sign.last = sign.last.max(at);
        if self.0.len() >= SIGNS_MAX {
            let longest = self.0.iter().enumerate().min_by_key(|(_, sign)| sign.last);
            if let Some(place) = longest.map(|(place, _)| place) {
                self.0.swap_remove(place);
            }
        }
        self.0.push(sign);
        let place = self.0.len() - 1;
        &mut self.0[place]
    }
}

impl Sign {
    fn is(&self, kind: StruggleKind, subject: &str, error: Option<&str>) -> bool {
        self.kind == kind && self.subject == subject && self.error.as_deref() == error
    }

    fn is_struggle(&self) -> bool {
        match self.kind {
            StruggleKind::RepeatedError => self.amount >= ERRORS_MIN,
            StruggleKind::FailedRuns => self.amount >= RUNS_MIN,
            StruggleKind::Stuck | StruggleKind::LowQuiz => true,
        }
    }

    fn told(&self) -> Struggle {
        let Sign { subject, amount, .. } = self;
        let detail = match self.kind {
            StruggleKind::RepeatedError => {
                let error = self.error.as_deref().unwrap_or_default();
                let or_more = if *amount >= ERRORS_MAX { " or more" } else { "" };
                format!("The error “{error}” came {amount}{or_more} times in {subject}")
            }
            StruggleKind::FailedRuns => format!("{amount} runs of {subject} failed in a row"),
            StruggleKind::Stuck => {
                format!("{amount} minutes without getting further with {subject}")
            }
            StruggleKind::LowQuiz => format!("Only {amount} % of quiz {subject}"),
        };
        Struggle { kind: self.kind, since: self.since, detail, subject_of: subject.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(number: u64) -> Moment {
        Moment::from_epoch_ms(1_768_386_600_000 + number * 60_000)
    }

    fn run(passed: bool, error: Option<&str>) -> EventDetail {
        let error_kind = error.map(str::to_owned);
        EventDetail::CodeRun { task_id: "loops".into(), passed, error_kind }
    }

    fn answer(correct: bool, error: Option<&str>) -> EventDetail {
        EventDetail::Answer {
            skill_id: "fractions".into(),
            item_id: "q".into(),
            correct,
            took_ms: None,
            error_kind: error.map(str::to_owned),
        }
    }

    fn quiz(score: f64) -> EventDetail {
        EventDetail::QuizFinished { quiz_id: "week-1".into(), score }
    }

    /// Observes one after another, a minute apart; answers how many struggles began with each.
    fn observe(signs: &mut Signs, from: u64, what: &[EventDetail]) -> Vec<usize> {
        let each = what.iter().zip(from..);
        each.map(|(what, at)| signs.observe(what, minute(at), minute(at)).len()).collect()
    }

    #[test]
    fn the_same_error_for_the_third_time_is_a_struggle_and_another_error_is_not() {
        let mut signs = Signs::default();
        let errors = [Some("TypeError"), Some("NameError"), Some("TypeError"), Some("TypeError")];
        let runs: Vec<EventDetail> = errors.map(|error| run(false, error)).into();
        assert_eq!(observe(&mut signs, 0, &runs), [0, 0, 0, 1]);
        let found = signs.struggles(minute(4));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, StruggleKind::RepeatedError);
        assert_eq!(found[0].since, minute(0));
        assert_eq!(found[0].subject_of, "loops");
        assert_eq!(found[0].detail, "The error “TypeError” came 3 times in loops");
        assert_eq!(observe(&mut signs, 5, &[run(true, None)]), [0]);
        assert_eq!(signs, Signs::default());
    }

    #[test]
    fn five_failed_runs_in_a_row_are_a_struggle_until_one_passes() {
        let mut signs = Signs::default();
        let mut runs = vec![run(false, None); 4];
        runs.push(run(true, None));
        runs.extend(vec![run(false, None); 5]);
        assert_eq!(observe(&mut signs, 0, &runs), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(signs.struggles(minute(10))[0].detail, "5 runs of loops failed in a row");
        observe(&mut signs, 11, &[run(true, None)]);
        assert!(signs.struggles(minute(11)).is_empty());
    }

    #[test]
    fn ten_minutes_are_stuck_and_fewer_are_not() {
        let mut signs = Signs::default();
        let stuck = |minutes| EventDetail::Stuck { task_id: "loops".into(), minutes };
        let begun = observe(&mut signs, 0, &[stuck(9.99), stuck(10.0), stuck(17.5)]);
        assert_eq!(begun, [0, 1, 0]);
        let detail = &signs.struggles(minute(3))[0].detail;
        assert_eq!(detail, "17 minutes without getting further with loops");
        let review = |quality| EventDetail::WorkReviewed { task_id: "loops".into(), quality };
        observe(&mut signs, 3, &[review(0.49)]);
        assert_eq!(signs.struggles(minute(4)).len(), 1);
        observe(&mut signs, 4, &[review(0.5)]);
        assert!(signs.struggles(minute(5)).is_empty());
    }

    #[test]
    fn less_than_half_of_a_quiz_is_a_struggle_until_half_of_it_is_reached() {
        let mut signs = Signs::default();
        assert_eq!(observe(&mut signs, 0, &[quiz(0.5)]), [0]);
        assert_eq!(observe(&mut signs, 1, &[quiz(0.499_999), quiz(0.3)]), [1, 0]);
        assert_eq!(signs.struggles(minute(3))[0].detail, "Only 30 % of quiz week-1");
        let other = EventDetail::QuizFinished { quiz_id: "week-2".into(), score: 1.0 };
        assert_eq!(observe(&mut signs, 3, &[other]), [0]);
        assert_eq!(signs.struggles(minute(4)).len(), 1);
        assert_eq!(observe(&mut signs, 4, &[quiz(0.5)]), [0]);
        assert!(signs.struggles(minute(5)).is_empty());
    }

    #[test]
    fn each_right_answer_takes_one_mistake_back() {
        let mut signs = Signs::default();
        observe(&mut signs, 0, &vec![answer(false, Some("sign")); 40]);
        assert_eq!(signs.struggles(minute(40)).len(), 1);
        observe(&mut signs, 40, &vec![answer(true, None); 2]);
        assert_eq!(signs.struggles(minute(42)).len(), 1);
        observe(&mut signs, 42, &[answer(true, None)]);
        assert!(signs.struggles(minute(43)).is_empty());
        observe(&mut signs, 43, &vec![answer(true, None); 2]);
        assert_eq!(signs, Signs::default());
    }

    #[test]
    fn a_struggle_of_which_nothing_is_seen_for_seven_days_is_over() {
        let week = 7 * 24 * 60;
        let mut signs = Signs::default();
        observe(&mut signs, 0, &[quiz(0.2)]);
        assert_eq!(signs.struggles(minute(week)).len(), 1);
        assert!(signs.struggles(minute(week + 1)).is_empty());
        assert_eq!(observe(&mut signs, week + 1, &[quiz(0.2)]), [1], "it begins anew");
        assert_eq!(signs.struggles(minute(week + 1))[0].since, minute(week + 1));
    }

    #[test]
    fn a_struggle_that_is_told_of_too_late_is_no_news() {
        let week = 7 * 24 * 60;
        let mut signs = Signs::default();
        assert_eq!(signs.observe(&quiz(0.2), minute(0), minute(week)).len(), 1);
        let mut signs = Signs::default();
        assert_eq!(signs.observe(&quiz(0.2), minute(0), minute(week + 1)), []);
        assert!(signs.struggles(minute(week + 1)).is_empty());
    }

    #[test]
    fn signs_beyond_the_last_are_forgotten() {
        let mut signs = Signs::default();
        for number in 0..100 {
            let what = EventDetail::QuizFinished { quiz_id: format!("q{number}"), score: 0.1 };
            observe(&mut signs, number, &[what]);
        }
        let left = signs.struggles(minute(100));
        assert_eq!(left.len(), SIGNS_MAX);
        assert_eq!((&*left[0].subject_of, &*left[SIGNS_MAX - 1].subject_of), ("q99", "q76"));
    }
}
