//! Ingests events exactly once, writes assessments, and checks optimistic versions.

use kstone_keyspace::keys::mastery::{Event, EventId, ProcessedEvent};
use kstone_keyspace::typed::TypedKey;
use kstone_ports::items::TransactAction;
use serde::{Deserialize, Serialize};

use super::change::{Change, ChangeOutcome, conflict};
use super::{Error, MasteryEngine, Result, student};
use crate::domain::{
    AcceptedEvent, Components, EventDetail, LearningEvent, MasteryResult, ProcessingRecord,
    Struggle,
};
use kstone_base::store::{Precondition, Range, parse, put, with_precondition};
use kstone_base::time::Moment;

/// How many events of several learners are taken in at the same time.
const TOGETHER: usize = 64;

/// The result of ingesting an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ingested {
    /// The event had been taken in before; nothing was changed.
    pub duplicate: bool,
    /// The learner's mastery now.
    pub mastery: MasteryResult,
    /// What the learner struggles with now.
    pub struggles: Vec<Struggle>,
}

impl MasteryEngine {
    /// Takes in an event, once, however often it is sent: its mark, the event itself, the state and
    /// everything that follows from it are one transaction.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field; [`Error::Refused`] if the learner does not consent or was
    /// erased.
    pub async fn ingest(&self, event: &LearningEvent) -> Result<Ingested> {
        event.check(self.now())?;
        let change = Change { event: event.clone(), expected_version: None, marked: true };
        match self.change(&change).await? {
            ChangeOutcome::Done(outcome, known) => Ok(Ingested {
                duplicate: false,
                struggles: known.state.struggles(outcome.mastery.timestamp),
                mastery: outcome.mastery,
            }),
            ChangeOutcome::Duplicate => self.known_already(event).await,
        }
    }

    /// Takes in several events, each for itself. Those of one learner are taken in in their order;
    /// learners do not wait for each other.
    pub async fn ingest_many(&self, events: &[LearningEvent]) -> Vec<Result<Ingested>> {
        let mut by_learner: Vec<(&str, Vec<usize>)> = Vec::new();
        for (at, event) in events.iter().enumerate() {
            match by_learner.iter_mut().find(|(student, _)| *student == event.student_id) {
                Some((_, places)) => places.push(at),
                None => by_learner.push((&event.student_id, vec![at])),
            }
        }
        let one = |(_, places): (&str, Vec<usize>)| {
            let engine = self.clone();
            let theirs: Vec<(usize, LearningEvent)> = places
                .into_iter()
                .filter_map(|at| events.get(at).map(|event| (at, event.clone())))
                .collect();
            async move {
                let mut done = Vec::with_capacity(theirs.len());
                for (at, event) in theirs {
                    done.push((at, engine.ingest(&event).await));
                }
                done
            }
        };
        let mut done: Vec<(usize, Result<Ingested>)> =
            super::batch::together(TOGETHER, by_learner.into_iter().map(one))
                .await
                .into_iter()
                .flatten()
                .collect();
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, result)| result).collect()
    }

    /// Stores an external assessment of a learner: six operations (current mastery, daily mastery,
    /// its four components) with the event of the assessment, in one transaction.
    pub async fn save_mastery_update(
        &self,
        student_id: &str,
        components: &Components,
    ) -> Result<MasteryResult> {
        self.assess(student_id, components, None).await
    }

    /// The same, if the learner's mastery still has the version that it was decided on.
    ///
    /// # Errors
    /// [`Error::Conflict`] with the version it has now: of several who try, one succeeds.
    pub async fn update_with_version(
        &self,
        student_id: &str,
        components: &Components,
        expected_version: u64,
    ) -> Result<MasteryResult> {
        self.assess(student_id, components, Some(expected_version)).await
    }

    /// The same as both, under a name: however often it is asked for by that name, it is written down
    /// once, and answered as it was then.
    pub async fn save_mastery_update_once(
        &self,
        name: &str,
        student_id: &str,
        components: &Components,
        expected_version: Option<u64>,
    ) -> Result<MasteryResult> {
        let event = self.assessment(format!("assessed-{name}"), student_id, components)?;
        let event_id = EventId::new(event.event_id.as_str())?;
        match self.change(&Change { event, expected_version, marked: true }).await {
            Ok(ChangeOutcome::Done(outcome, _)) => Ok(outcome.mastery),
            Ok(ChangeOutcome::Duplicate) => {
                let before = self.assessed_before(&event_id, student_id).await?;
                before.ok_or_else(|| Error::not_found(format!("event {event_id} any more")))
            }
            // The version may be another because it was written down before.
            Err(error @ Error::Conflict { .. }) => {
                self.assessed_before(&event_id, student_id).await?.ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds an event to the log, with its effects, and answers with its key: the log never says what
    /// the state does not know.
    pub async fn append_mastery_event(&self, event: &LearningEvent) -> Result<String> {
        self.ingest(event).await?;
        let event_id = EventId::new(event.event_id.as_str())?;
        let mark = ProcessedEvent { event_id: event_id.clone() };
        let Some(record) = self.store().get::<_, ProcessingRecord>(&mark).await? else {
            return Err(Error::not_found(format!("event {event_id}")));
        };
        let at = record.value.processed_at.millis();
        Ok(Event { student_id: student(&event.student_id)?, at, event_id }.key())
    }

    async fn assess(
        &self,
        student_id: &str,
        components: &Components,
        expected_version: Option<u64>,
    ) -> Result<MasteryResult> {
        let event_id = format!("assessed-{}", self.new_id(self.now()));
        let event = self.assessment(event_id, student_id, components)?;
        // Its name is new, so there is no need to know it again.
        let change = Change { event, expected_version, marked: false };
        match self.change(&change).await? {
            ChangeOutcome::Done(outcome, _) => Ok(outcome.mastery),
            ChangeOutcome::Duplicate => Err(conflict(&student(student_id)?, 0)),
        }
    }

    /// Stores an assessment, unless one of the same name was stored.
    pub(super) async fn assess_once(
        &self,
        event_id: String,
        student_id: &str,
        components: &Components,
    ) -> Result<()> {
        let event = self.assessment(event_id, student_id, components)?;
        self.change(&Change { event, expected_version: None, marked: true }).await.map(drop)
    }

    fn assessment(
        &self,
        event_id: String,
        student_id: &str,
        components: &Components,
    ) -> Result<LearningEvent> {
        components.check()?;
        Ok(LearningEvent {
            event_id,
            student_id: student_id.to_owned(),
            school_id: None,
            occurred_at: self.now(),
            what: EventDetail::Assessed { components: *components },
        })
    }

    /// The result of an assessment that was stored before.
    async fn assessed_before(
        &self,
        event_id: &EventId,
        student_id: &str,
    ) -> Result<Option<MasteryResult>> {
        let mark = ProcessedEvent { event_id: event_id.clone() };
        let Some(record) = self.store().get::<_, ProcessingRecord>(&mark).await? else {
            return Ok(None);
        };
        let student = student(student_id)?;
        let state = &self.read_known(&student).await?.state;
        let at = record.value.processed_at.millis();
        let key = Event { student_id: student.clone(), at, event_id: event_id.clone() };
        // Each event makes the version one more: those since then say which it was.
        let last = format!("{}{}~", Event::FACTS.sort_prefix, state.accepted_at().millis());
        let range = Range::between::<Event>(Event::partition(&student), key.sort_key(), last);
        let (rows, _) = self.store().list(&range).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let AcceptedEvent { accepted_at, event, .. } = parse(first)?;
        let EventDetail::Assessed { components } = event.what else { return Ok(None) };
        let version = (state.version() + 1).saturating_sub(rows.len() as u64);
        let mut mastery = MasteryResult::new(student_id, &components, accepted_at, version);
        mastery.school_id = event.school_id;
        Ok(Some(mastery))
    }

    /// The result of an event that was ingested before.
    async fn known_already(&self, event: &LearningEvent) -> Result<Ingested> {
        let event_id = EventId::new(event.event_id.as_str())?;
        let record = self.store().get::<_, ProcessingRecord>(&ProcessedEvent { event_id }).await?;
        if let Some(record) = record.filter(|it| it.value.student_id != event.student_id) {
            let what = format!("event {} (it is another learner's)", record.value.event_id);
            return Err(Error::Conflict { what, current: None });
        }
        let known = self.read_known(&student(&event.student_id)?).await?;
        let mastery = known.mastery();
        let struggles = known.state.struggles(mastery.timestamp);
        Ok(Ingested { duplicate: true, mastery, struggles })
    }
}

/// The marker that makes a repeated event known.
pub(super) fn mark(
    event_id: &EventId,
    mastery: &MasteryResult,
    processed_at: Moment,
) -> Result<TransactAction> {
    let record = ProcessingRecord {
        event_id: event_id.as_str().to_owned(),
        student_id: mastery.student_id.clone(),
        processed_at,
        result: "success".to_owned(),
        mastery_score: Some(mastery.mastery_score),
    };
    let key = ProcessedEvent { event_id: event_id.clone() };
    Ok(with_precondition(put(&key, &record)?, Precondition::Absent))
}
