//! Turns one event into one transaction, and keeps the resulting state in memory for the next.
//!
//! The state of learners who were active of late is in memory, so that an event costs no read. It
//! may be out of date, if another process was there meanwhile: then the condition of the transaction
//! does not hold, and the state is read again. Within the process the changes of one learner wait
//! for each other, since all but one would be in vain.

use std::sync::Arc;

use kstone_keyspace::keys::mastery::{
    ActivityRecent, ComponentScore, CurrentMastery, DailyMastery, Event, EventId, Learner,
    LearnerState as StateKey, SchoolId, SchoolMastery, Skill, SkillId, Streaks, StudentId,
};
use kstone_ports::items::TransactAction;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::{Mutex, MutexGuard};

use super::profile::add_to_lists;
use super::{Error, MasteryEngine, student};
use crate::domain::{
    AcceptedEvent, Component, LearnerProfile, LearnerState, LearningEvent, MasteryResult, Outcome,
};
use kstone_base::error::Result;
use kstone_base::store::{
    self, CommitError, Precondition, item_key, json, put, put_text, put_text_version, put_version,
    table_of,
};
use kstone_base::time::{Date, Moment, Zone};

/// How often a change is tried again when others were quicker.
const TRIES: usize = 20;
/// How many locks there are for learners: so many that two who are active seldom share one.
const LOCKS: usize = 4096;
/// How much memory the states of learners take, about.
const STATES_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The state and profile of a learner, as last read or written.
#[derive(Debug, Clone)]
pub(super) struct KnownLearner {
    pub(super) state: LearnerState,
    pub(super) profile: Option<LearnerProfile>,
    /// The version of the profile's item; 0 if there is none.
    pub(super) profile_version: u64,
    pub(super) zone: Zone,
    /// About how much memory it takes.
    pub(super) bytes: u64,
}

impl KnownLearner {
    /// The mastery right after the last event, in the school that the learner is in now.
    pub(super) fn mastery(&self) -> MasteryResult {
        let mut mastery = self.state.mastery();
        let school = self.profile.as_ref().and_then(|profile| profile.school_id.clone());
        mastery.school_id = school;
        mastery
    }
}

/// Recently active learners in memory, and the locks of those that are being changed.
#[derive(Debug)]
pub(super) struct RecentLearners {
    at_hand: Cache<StudentId, Arc<KnownLearner>, Bytes>,
    locks: Vec<Mutex<()>>,
}

#[derive(Debug, Clone, Copy)]
struct Bytes;

impl Weighter<StudentId, Arc<KnownLearner>> for Bytes {
    fn weight(&self, student: &StudentId, known: &Arc<KnownLearner>) -> u64 {
        256 + student.as_str().len() as u64 + known.bytes
    }
}

impl RecentLearners {
    pub(super) fn new() -> RecentLearners {
        let entries = (STATES_BYTES_MAX / 4096) as usize;
        RecentLearners {
            at_hand: Cache::with_weighter(entries, STATES_BYTES_MAX, Bytes),
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Locks a learner against other changes in this process.
    pub(super) async fn lock(&self, student: &StudentId) -> Option<MutexGuard<'_, ()>> {
        let hash = lock_of(student.as_str().as_bytes());
        match self.locks.get(hash as usize % LOCKS) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }

    pub(super) fn forget(&self, student: &StudentId) {
        self.at_hand.remove(student);
    }

    pub(super) fn forget_all(&self) {
        self.at_hand.clear();
    }
}

/// The cause of a change.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) event: LearningEvent,
    /// Only if the learner has this version.
    pub(super) expected_version: Option<u64>,
    /// Whether to leave a mark by which the event is known when it comes again.
    pub(super) marked: bool,
}

/// The outcome of a change.
#[derive(Debug)]
pub(super) enum ChangeOutcome {
    /// It was made.
    Done(Box<Outcome>, Arc<KnownLearner>),
    /// The event had been taken in before.
    Duplicate,
}

impl MasteryEngine {
    /// Loads a learner from memory or from the store.
    pub(super) async fn known(&self, student: &StudentId) -> Result<Arc<KnownLearner>> {
        match self.inner.learners.at_hand.get(student) {
            Some(known) => Ok(known),
            None => self.read_known(student).await,
        }
    }

    /// Loads a learner from the store.
    pub(super) async fn read_known(&self, student: &StudentId) -> Result<Arc<KnownLearner>> {
        let state = StateKey { student_id: student.clone() };
        let learner = Learner { student_id: student.clone() };
        let keys = vec![
            (table_of::<StateKey>(), item_key(&state)),
            (table_of::<Learner>(), item_key(&learner)),
        ];
        let rows = self.store().get_together(keys).await?;
        let (state, learner) = match rows.as_slice() {
            [state, learner] => (state.as_ref(), learner.as_ref()),
            _ => (None, None),
        };
        let bytes = state.map_or(0, |row| row.text.len()) + learner.map_or(0, |row| row.text.len());
        let state = match state {
            Some(row) => store::parse(row)?,
            None => LearnerState::new(student.as_str()),
        };
        let profile: Option<LearnerProfile> = learner.map(store::parse).transpose()?;
        let zone = profile.as_ref().map_or(Ok(Zone::UTC), LearnerProfile::zone)?;
        let profile_version = learner.map_or(0, |row| row.version);
        let bytes = bytes as u64;
        let known = Arc::new(KnownLearner { state, profile, profile_version, zone, bytes });
        self.inner.learners.at_hand.insert(student.clone(), Arc::clone(&known));
        Ok(known)
    }

    /// Applies an event: everything that it changes, in one transaction.
    pub(super) async fn change(&self, change: &Change) -> Result<ChangeOutcome> {
        let student = student(&change.event.student_id)?;
        let event_id = EventId::new(change.event.event_id.as_str())?;
        let _only_one = self.inner.learners.lock(&student).await;
        let mut known = self.known(&student).await?;
        if !consents(&known) {
            // It may have been given again, in another process.
            known = self.read_known(&student).await?;
        }
        for _ in 0..TRIES {
            if let Some(expected) = change.expected_version
                && known.state.version() != expected
            {
                // What is in memory may be out of date.
                known = self.read_known(&student).await?;
                if known.state.version() != expected {
                    return Err(conflict(&student, known.state.version()));
                }
            }
            let step = self.step(&student, &event_id, &known, change).await?;
            let version = step.outcome.mastery.version;
            self.inner.cache.begin_write(&student, version);
            let done = self.store().commit(step.actions).await;
            if done.is_err() {
                self.inner.cache.cancel_write(&student, version);
                if let Some(work) = &self.inner.work {
                    work.cancel(&step.outcome);
                }
            }
            match done {
                Ok(()) => {
                    let known = Arc::new(step.known);
                    self.inner.learners.at_hand.insert(student.clone(), Arc::clone(&known));
                    let mastery = Arc::new(step.outcome.mastery.clone());
                    self.inner.cache.finish_write(&student, &mastery).await;
                    if let Some(work) = &self.inner.work
                        && !step.outcome.struggles_begun.is_empty()
                    {
                        work.wake();
                    }
                    return Ok(ChangeOutcome::Done(Box::new(step.outcome), known));
                }
                Err(CommitError::PreconditionsFailed(failed))
                    if step.mark.is_some_and(|at| failed.contains(&at)) =>
                {
                    return Ok(ChangeOutcome::Duplicate);
                }
                Err(CommitError::PreconditionsFailed(_) | CommitError::Busy) => {
                    known = self.read_known(&student).await?;
                }
                Err(CommitError::Error(error)) => {
                    // Whatever was at hand may be what was wrong.
                    self.inner.learners.forget(&student);
                    return Err(error);
                }
            }
        }
        Err(conflict(&student, known.state.version()))
    }

    /// Plans the writes of a change.
    async fn step(
        &self,
        student: &StudentId,
        event_id: &EventId,
        known: &KnownLearner,
        change: &Change,
    ) -> Result<PlannedChange> {
        let now = self.now();
        // Events of one learner never have the same moment, even if the clock stands still.
        let accepted_at = now.max(known.state.accepted_at().plus(ONE_MS));
        require_analytics(known)?;
        let difficulty = self.difficulty_of(&change.event.what).await?;
        let mut event = change.event.clone();
        if event.school_id.is_none() {
            event.school_id = known.profile.as_ref().and_then(|it| it.school_id.clone());
        }
        let accepted = AcceptedEvent::new(event, accepted_at, &known.zone, difficulty);
        let mut state = known.state.clone();
        let version = state.version();
        let mut outcome = state.apply(&accepted);
        // A learner may have left a school without an event that says so.
        outcome.mastery.school_id.clone_from(&accepted.event.school_id);

        let mut actions = Vec::with_capacity(20);
        let state_key = StateKey { student_id: student.clone() };
        let guard = Precondition::Version(version);
        let state_put = put_version(&state_key, &state, state.version(), guard)?;
        let bytes = store::text_len(&state_put) as u64 + 512;
        actions.push(state_put);
        let mark = change.marked.then_some(actions.len());
        if change.marked {
            actions.push(super::ingest::mark(event_id, &outcome.mastery, accepted_at)?);
        }
        let key = Event {
            student_id: student.clone(),
            at: accepted_at.millis(),
            event_id: event_id.clone(),
        };
        actions.push(put(&key, &accepted)?);
        add_mastery(&mut actions, student, &outcome.mastery, outcome.day)?;
        if accepted.event.what.is_activity() {
            let activity = state.activity(accepted_at, &known.zone);
            actions.push(put(&ActivityRecent { student_id: student.clone() }, &activity)?);
            let streaks = serde_json::json!({
                "max_streak": activity.max_streak,
                "last_activity": activity.last_activity,
            });
            actions.push(put(&Streaks { student_id: student.clone() }, &streaks)?);
        }
        if let Some(skill) = &outcome.skill {
            let skill_id = SkillId::new(skill.skill_id.as_str())?;
            actions.push(put(&Skill { student_id: student.clone(), skill_id }, skill)?);
        }
        let (profile, profile_version) =
            self.add_profile(&mut actions, student, known, &change.event, now)?;
        if let Some(work) = &self.inner.work {
            work.add(&mut actions, &outcome, now)?;
        }
        let zone = known.zone.clone();
        let known = KnownLearner { state, profile, profile_version, zone, bytes };
        Ok(PlannedChange { actions, outcome, known, mark })
    }

    /// Creates the profile of a learner who is new, or new at this school; otherwise makes the
    /// transaction fail if the profile, which holds the consent, changes meanwhile.
    fn add_profile(
        &self,
        actions: &mut Vec<TransactAction>,
        student: &StudentId,
        known: &KnownLearner,
        event: &LearningEvent,
        now: Moment,
    ) -> Result<(Option<LearnerProfile>, u64)> {
        let learner = Learner { student_id: student.clone() };
        let guard = Precondition::Version(known.profile_version);
        let school_before = known.profile.as_ref().and_then(|it| it.school_id.as_deref());
        let school = event.school_id.as_deref().or(school_before);
        if known.profile.is_some() && school == school_before {
            actions.push(store::check(&learner, guard));
            return Ok((known.profile.clone(), known.profile_version));
        }
        let mut profile = match &known.profile {
            Some(profile) => profile.clone(),
            None => LearnerProfile::new(student.as_str(), now),
        };
        if school != school_before {
            profile.school_id = school.map(str::to_owned);
            // Classes are those of the school.
            profile.class_ids.clear();
        }
        let version = known.profile_version + 1;
        actions.push(put_version(&learner, &profile, version, guard)?);
        add_to_lists(actions, student, known.profile.as_ref(), &profile)?;
        Ok((Some(profile), version))
    }
}

/// The writes of a change, and the learner after it.
struct PlannedChange {
    actions: Vec<TransactAction>,
    outcome: Outcome,
    known: KnownLearner,
    /// Where among the actions the mark of the event is.
    mark: Option<usize>,
}

pub(super) const ONE_MS: std::time::Duration = std::time::Duration::from_millis(1);

/// The six operations of an update: the mastery now, that of the day, and its four components; and
/// the school's copy, if there is a school.
pub(super) fn add_mastery(
    actions: &mut Vec<TransactAction>,
    student: &StudentId,
    mastery: &MasteryResult,
    date: Date,
) -> Result<()> {
    let current = CurrentMastery { student_id: student.clone() };
    let text = json(&current, mastery)?;
    actions.push(put_text_version(&current, &text, mastery.version));
    if let Some(school_id) = &mastery.school_id {
        let school_id = SchoolId::new(school_id.as_str())?;
        let key = SchoolMastery { school_id, student_id: student.clone() };
        actions.push(put_text_version(&key, &text, mastery.version));
    }
    actions.push(put_text(&DailyMastery { student_id: student.clone(), date }, text));
    for component in Component::ALL {
        let score = mastery.components.get(component).to_string();
        let component = component.into();
        let key = ComponentScore { student_id: student.clone(), date, component };
        actions.push(put_text(&key, score));
    }
    Ok(())
}

/// Refuses what may only be done with the learner's consent to analytics.
pub(super) fn require_analytics(known: &KnownLearner) -> Result<()> {
    match consents(known) {
        true => Ok(()),
        false => Err(Error::refused(
            "the learner has withdrawn the consent to analytics; nothing about them is taken in or \
             computed until it is given again",
        )),
    }
}

fn consents(known: &KnownLearner) -> bool {
    known.profile.as_ref().is_none_or(|profile| profile.consent.analytics)
}

pub(super) fn conflict(student: &StudentId, current: u64) -> Error {
    Error::Conflict { what: format!("the mastery of learner {student}"), current: Some(current) }
}

/// Which lock a learner has.
fn lock_of(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
