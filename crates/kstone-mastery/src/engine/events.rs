//! The event log of a learner, and the snapshot from which a state can be rebuilt.
//!
//! Events are kept for 90 days. Before they go, the state that they came to is kept as a snapshot;
//! so the state can be computed anew at any age, and comes out the same.

use std::sync::Arc;
use std::time::Duration;

use kstone_keyspace::keys::mastery::{
    DailyMastery, Event, EventSnapshot, HistoryDay, HistoryType, LearnerState as StateKey,
    StudentId,
};
use kstone_keyspace::typed::TypedKey;
use serde::{Deserialize, Serialize};

use super::change::{KnownLearner, conflict};
use super::{Error, MasteryEngine, Page, PageRequest, Result, student};
use crate::domain::{AcceptedEvent, LearnerState, MasteryResult, Outcome};
use kstone_base::store::{
    self, Precondition, Range, Versioned, key_of, parse, put_text, put_version,
};
use kstone_base::time::{Date, Moment};

/// How long events are kept, less an hour for clocks that differ.
const EVENTS_KEPT: Duration = Duration::from_secs(90 * 24 * 3600 - 3600);
/// How many days are put aside in one transaction.
const DAYS_TOGETHER: usize = 90;

/// The state after all events up to some moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Snapshot {
    state: LearnerState,
}

impl MasteryEngine {
    /// The events of a learner, the newest first.
    pub async fn events(
        &self,
        student_id: &str,
        page: &PageRequest,
    ) -> Result<Page<AcceptedEvent>> {
        let student = student(student_id)?;
        let range = Range::of::<Event>(Event::partition(&student))
            .newest_first()
            .limit(page.limit())
            .after(page.cursor.clone());
        let (rows, more) = self.store().list(&range).await?;
        let next = rows.last().filter(|_| more).map(|row| row.sk.clone());
        let items = rows.iter().map(parse).collect::<Result<_>>()?;
        Ok(Page { items, next })
    }

    /// Computes a learner's state anew from the snapshot and the events after it, and puts it in
    /// the place of the one that is kept, if they differ. Answers with the mastery that it says.
    ///
    /// # Errors
    /// [`Error::Refused`] if events expired before a snapshot was made: then the state that is kept
    /// knows more than can be computed.
    pub async fn rebuild_mastery_from_events(&self, student_id: &str) -> Result<MasteryResult> {
        let student = student(student_id)?;
        let _only_one = self.inner.learners.lock(&student).await;
        for _ in 0..3 {
            let known = self.read_known(&student).await?;
            let rebuilt = self.folded(&student, None, &mut |_| {}).await?.1;
            if rebuilt.version() == 0 {
                return Err(Error::not_found(format!("event of learner {student}")));
            }
            if rebuilt == known.state {
                return Ok(known.mastery());
            }
            if rebuilt.version() < known.state.version() {
                return Err(Error::refused(format!(
                    "{} events of learner {student} expired before a snapshot was made; the state \
                     that is kept knows them and stays",
                    known.state.version() - rebuilt.version()
                )));
            }
            let version = known.state.version();
            let rebuilt = KnownLearner { state: rebuilt, ..KnownLearner::clone(&known) };
            if self.restore(&student, &rebuilt, version).await? {
                return Ok(rebuilt.mastery());
            }
        }
        Err(conflict(&student, self.read_known(&student).await?.state.version()))
    }

    /// Moves the snapshot on to the events before a moment, and puts aside the days before it and
    /// recommendations that are old, so that nothing is lost when they expire. The answers among those events teach how hard their
    /// questions are. Answers whether there was anything to do.
    pub async fn advance_snapshot(&self, student_id: &str, before: Moment) -> Result<bool> {
        let student = student(student_id)?;
        let mut aside = self.archive_days(&student, before.date()).await?;
        aside |= self.archive_recommendations(&student).await?;
        let mut answers = Vec::new();
        let mut collect = |outcome: Outcome| answers.extend(outcome.answer);
        let (kept, mut state) = self.folded(&student, Some(before), &mut collect).await?;
        if let Some(whole) = self.if_events_are_missing(&student, kept.as_ref()).await? {
            state = whole;
        }
        let (from, version) = kept.map_or((0, 0), |it| (it.value.state.version(), it.version));
        if state.version() == from {
            return Ok(aside);
        }
        // An interruption between the two makes some answers count twice: a rating is an estimate,
        // and one that counts twice is better than one that is lost.
        self.rate_items(&answers).await?;
        let key = EventSnapshot { student_id: student.clone() };
        let snapshot = Snapshot { state };
        let write = put_version(&key, &snapshot, version + 1, Precondition::Version(version))?;
        self.store().put(write).await?;
        Ok(true)
    }

    /// The stored state, if events expired before the snapshot included them, because no background
    /// job ran for as long as events live. Then only that state has their effect, and a snapshot of
    /// the remaining events would be wrong for good.
    async fn if_events_are_missing(
        &self,
        student: &StudentId,
        snapshot: Option<&Versioned<Snapshot>>,
    ) -> Result<Option<LearnerState>> {
        let snapshot = snapshot.map(|it| &it.value.state);
        if snapshot.is_some_and(|it| it.accepted_at().plus(EVENTS_KEPT) > self.now()) {
            // All that came after it is still there.
            return Ok(None);
        }
        // No event may come in between the state and the events.
        let _only_one = self.inner.learners.lock(student).await;
        let known = self.read_known(student).await?;
        if snapshot.map_or(0, LearnerState::version) == known.state.version() {
            return Ok(None);
        }
        let (_, whole) = self.folded(student, None, &mut |_| {}).await?;
        Ok((whole.version() < known.state.version()).then(|| known.state.clone()))
    }

    /// Folds the snapshot and the events after it, up to a moment or all of them.
    async fn folded(
        &self,
        student: &StudentId,
        before: Option<Moment>,
        each: &mut (dyn FnMut(Outcome) + Send),
    ) -> Result<(Option<Versioned<Snapshot>>, LearnerState)> {
        let key = EventSnapshot { student_id: student.clone() };
        let kept: Option<Versioned<Snapshot>> = self.store().get(&key).await?;
        let mut state = match &kept {
            Some(kept) => kept.value.state.clone(),
            None => LearnerState::new(student.as_str()),
        };
        if before.is_some_and(|before| before <= state.accepted_at()) {
            // The snapshot has gone further.
            return Ok((kept, state));
        }
        let prefix = Event::FACTS.sort_prefix;
        let first = format!("{prefix}{}", state.accepted_at().plus(super::change::ONE_MS).millis());
        let last = match before {
            // What is accepted at that very moment comes behind `{millis}` alone.
            Some(before) => format!("{prefix}{}", before.millis()),
            None => format!("{prefix}~"),
        };
        let mut after = None;
        loop {
            let range =
                Range::between::<Event>(Event::partition(student), first.clone(), last.clone())
                    .limit(EVENTS_AT_ONCE)
                    .after(after.take());
            let (rows, more) = self.store().list(&range).await?;
            for row in &rows {
                let event: AcceptedEvent = parse(row)?;
                each(state.apply(&event));
            }
            match rows.last().filter(|_| more) {
                Some(row) => after = Some(row.sk.clone()),
                None => return Ok((kept, state)),
            }
        }
    }

    /// Replaces the stored state of this version.
    async fn restore(
        &self,
        student: &StudentId,
        known: &KnownLearner,
        version: u64,
    ) -> Result<bool> {
        let key = StateKey { student_id: student.clone() };
        let (state, mastery) = (&known.state, known.mastery());
        let guard = Precondition::Version(version);
        let mut actions = vec![put_version(&key, state, state.version(), guard)?];
        super::change::add_mastery(&mut actions, student, &mastery, state.day())?;
        self.inner.learners.forget(student);
        self.inner.cache.begin_write(student, mastery.version);
        match self.store().commit(actions).await {
            Ok(()) => {
                self.inner.cache.finish_write(student, &Arc::new(mastery)).await;
                Ok(true)
            }
            Err(stopped) => {
                self.inner.cache.cancel_write(student, state.version());
                match stopped {
                    store::CommitError::Error(error) => Err(error),
                    store::CommitError::PreconditionsFailed(_) | store::CommitError::Busy => {
                        Ok(false)
                    }
                }
            }
        }
    }

    /// Archives the days before one day.
    async fn archive_days(&self, student: &StudentId, before: Date) -> Result<bool> {
        let day = |date| DailyMastery { student_id: student.clone(), date };
        let aside = |date| HistoryDay {
            student_id: student.clone(),
            history_type: HistoryType::Full,
            date,
        };
        // The newest that was put aside says how far that has gone.
        let prefix = format!("{}{}:", HistoryDay::FACTS.sort_prefix, HistoryType::Full.as_str());
        let newest = Range::with_prefix::<HistoryDay>(HistoryDay::partition(student), &prefix);
        let (rows, _) = self.store().list(&newest.newest_first().limit(1)).await?;
        let done = rows.first().and_then(key_of::<HistoryDay>).map(|key| key.date);
        let first = done.map_or(Date::default(), |date| date.plus_days(1));
        let range = Range::between::<DailyMastery>(
            DailyMastery::partition(student),
            day(first).sort_key(),
            day(before).sort_key(),
        );
        let (rows, _) = self.store().list(&range).await?;
        let mut actions = Vec::new();
        for row in rows {
            match key_of::<DailyMastery>(&row) {
                Some(key) if key.date < before => {
                    actions.push(put_text(&aside(key.date), row.text));
                }
                _ => {}
            }
        }
        let any = !actions.is_empty();
        while !actions.is_empty() {
            let rest = actions.split_off(actions.len().min(DAYS_TOGETHER));
            let done = self.store().commit(std::mem::replace(&mut actions, rest)).await;
            done.map_err(|stopped| stopped.into_error("the history"))?;
        }
        Ok(any)
    }
}

/// How many events are read at once when they are folded.
const EVENTS_AT_ONCE: u32 = 2000;
