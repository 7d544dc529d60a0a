//! Enqueues the jobs that follow from a change, within the transaction of that change.

use std::collections::HashMap;
use std::time::Duration;

use kstone_core::sync::Mutex;
use kstone_ports::items::TransactAction;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::{Outcome, Struggle};
use kstone_base::error::Result;
use kstone_base::time::Moment;
use kstone_base::work::{NewJob, Outbox};

/// The queue of the mastery engine's jobs.
pub const QUEUE: &str = "mastery";
/// A job that computes the aggregate of a school for today: `{"school_id": …}`.
pub const AGGREGATE: &str = "aggregate";
/// A job that raises an alert about a learner who began to struggle: a [`StruggleBegun`].
pub const STRUGGLE: &str = "struggle";
/// A job that does what is left of a batch: `{"batch_id": …}`.
pub const RUN_BATCH: &str = "run_batch";

/// The shortest time between two aggregates of a school. Otherwise the changes of all its learners
/// would wait for one item.
const AGGREGATE_EVERY: Duration = Duration::from_secs(5);
/// The delay before it is computed: long enough that it includes changes which enqueued none.
const COMPUTE_AFTER: Duration = Duration::from_secs(10);
/// How many schools are remembered.
const SCHOOLS_MAX: usize = 10_000;

/// The payload of a job of kind [`STRUGGLE`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StruggleBegun {
    /// Who struggles.
    pub student_id: String,
    /// In which school.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub school_id: Option<String>,
    /// With what.
    pub struggle: Struggle,
}

/// Enqueues follow-up jobs.
#[derive(Debug)]
pub(super) struct FollowUpJobs {
    outbox: Outbox,
    requested: Mutex<HashMap<String, Moment>>,
}

impl FollowUpJobs {
    pub(super) fn new(outbox: Outbox) -> FollowUpJobs {
        FollowUpJobs { outbox, requested: Mutex::new(HashMap::new()) }
    }

    /// Adds the jobs that follow from a learner's event to its transaction.
    pub(super) fn add(
        &self,
        actions: &mut Vec<TransactAction>,
        outcome: &Outcome,
        now: Moment,
    ) -> Result<()> {
        let student_id = &outcome.mastery.student_id;
        let school_id = &outcome.mastery.school_id;
        for struggle in &outcome.struggles_begun {
            let begun = StruggleBegun {
                student_id: student_id.clone(),
                school_id: school_id.clone(),
                struggle: struggle.clone(),
            };
            let job = NewJob::new(QUEUE, STRUGGLE, json!(begun)).about(student_id.as_str());
            actions.push(self.outbox.action(&job)?);
        }
        if let Some(school) = school_id
            && self.is_due(school, now)
        {
            let payload = json!({ "school_id": school });
            let job = NewJob::new(QUEUE, AGGREGATE, payload)
                .once_per(school.as_str())
                .not_before(now.plus(COMPUTE_AFTER));
            actions.push(self.outbox.action(&job)?);
        }
        Ok(())
    }

    /// The write that enqueues a batch.
    pub(super) fn run_batch(&self, batch_id: &str) -> Result<TransactAction> {
        let job = NewJob::new(QUEUE, RUN_BATCH, json!({ "batch_id": batch_id }));
        self.outbox.action(&job.once_per(batch_id))
    }

    /// Wakes the workers.
    pub(super) fn wake(&self) {
        self.outbox.wake();
    }

    /// Undoes [`add`](Self::add) for a transaction that was not committed.
    pub(super) fn cancel(&self, outcome: &Outcome) {
        if let Some(school) = &outcome.mastery.school_id {
            self.requested.lock().remove(school);
        }
    }

    /// Whether an aggregate of the school is due; if so, records that it is enqueued now.
    fn is_due(&self, school: &str, now: Moment) -> bool {
        let mut requested = self.requested.lock();
        if requested.get(school).is_some_and(|at| now.since(*at) < AGGREGATE_EVERY && *at <= now) {
            return false;
        }
        if requested.len() >= SCHOOLS_MAX {
            requested.clear();
        }
        requested.insert(school.to_owned(), now);
        true
    }
}
