//! Background jobs of the mastery engine: batches, school aggregates, alerts about learners, and
//! nightly maintenance.
//!
//! Nightly maintenance goes over all learners, in 16 parallel jobs: each can be killed and run again,
//! alone. An error with one learner does not stop the others.

use std::sync::Arc;
use std::time::Duration;

use kstone_ports::items::Items;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::domain::StruggleKind;
use crate::engine::{
    AGGREGATE, Error, MasteryEngine, QUEUE, RUN_BATCH, Result, STRUGGLE, StruggleBegun,
};
use crate::learners::{LearnerPages, SHARDS};
use kstone_base::time::Moment;
use kstone_base::work::schedule::Weekday;
use kstone_base::work::short_hash;
use kstone_base::work::{
    Alert, Alerts, Cadence, DeadJob, Job, JobError, NewJob, Outbox, Schedules, Severity, Workers,
    alert,
};

/// The queue of what is done at night.
pub const UPKEEP: &str = "upkeep";
/// The schedule and the job that move snapshots on, so that events can expire.
pub const SNAPSHOTS: &str = "advance_snapshots";
/// The schedule and the job that find learners somebody should look after.
pub const INTERVENTIONS: &str = "find_interventions";
/// The schedule and the job that compute the aggregates of every school.
const SCHOOLS: &str = "aggregate_schools";
/// The jobs that do the same for one part of the learners.
const SNAPSHOTS_OF_PART: &str = "advance_snapshots_of_part";
const INTERVENTIONS_OF_PART: &str = "find_interventions_of_part";

/// Events younger than this are not in the snapshot: a rebuild still goes over them one by one.
/// They teach how hard their questions are only when they pass into it.
const TAIL: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How many days ahead predictions for intervention alerts look.
const AHEAD_DAYS: u16 = 7;

/// The parts that the jobs use.
#[derive(Debug, Clone, Copy)]
pub struct JobParts<'p> {
    /// Whose jobs they are.
    pub engine: &'p MasteryEngine,
    /// Where the learners are listed.
    pub items: &'p Arc<dyn Items>,
    /// Where jobs ask for further jobs.
    pub outbox: &'p Outbox,
    /// Who runs them.
    pub workers: &'p Workers,
    /// When those that come round do.
    pub schedules: &'p Schedules,
    /// What a person should look at.
    pub alerts: &'p Alerts,
}

/// Registers the handlers of the mastery jobs, and the schedules of those that come round.
///
/// # Errors
/// If a schedule cannot be: then it is a defect here.
pub fn register(parts: JobParts<'_>) -> Result<()> {
    register_requested_jobs(parts);
    register_nightly_jobs(parts);
    register_dead_job_handler(parts);

    let job = |kind: &str| NewJob::new(UPKEEP, kind, json!({}));
    let schedules = parts.schedules;
    schedules.add(SCHOOLS, Cadence::daily(0, 5), job(SCHOOLS))?;
    schedules.add(SNAPSHOTS, Cadence::nightly(), job(SNAPSHOTS))?;
    schedules.add(INTERVENTIONS, Cadence::daily(4, 0), job(INTERVENTIONS))?;
    Ok(())
}

/// Jobs that a request or an event enqueues.
fn register_requested_jobs(JobParts { engine, workers, alerts, .. }: JobParts<'_>) {
    let run = engine.clone();
    workers.register(QUEUE, RUN_BATCH, move |job| {
        let engine = run.clone();
        async move {
            let Batch { batch_id } = read(&job)?;
            engine.run_batch(&batch_id).await.map(drop).map_err(problem)
        }
    });
    let run = engine.clone();
    workers.register(QUEUE, AGGREGATE, move |job| {
        let engine = run.clone();
        async move {
            let School { school_id } = read(&job)?;
            let (asked, today) = (job.created_at.date(), engine.now().date());
            if asked < today {
                // It was asked for before midnight: that day must not be left without a figure.
                engine.aggregate(&school_id, asked).await.map_err(problem)?;
            }
            engine.aggregate(&school_id, today).await.map(drop).map_err(problem)
        }
    });
    let raise = alerts.clone();
    workers.register(QUEUE, STRUGGLE, move |job| {
        let alerts = raise.clone();
        async move {
            let begun: StruggleBegun = read(&job)?;
            alerts.raise(struggle_alert(&job, begun)).await.map(drop).map_err(retry)
        }
    });
}

fn register_nightly_jobs(parts: JobParts<'_>) {
    let JobParts { engine, items, outbox, workers, alerts, .. } = parts;
    let run = (engine.clone(), outbox.clone());
    workers.register(UPKEEP, SCHOOLS, move |_| {
        let (engine, outbox) = run.clone();
        async move {
            for school in engine.schools().await.map_err(problem)? {
                let payload = json!({ "school_id": school });
                let job = NewJob::new(QUEUE, AGGREGATE, payload).once_per(school);
                outbox.enqueue(job).await.map_err(retry)?;
            }
            Ok(())
        }
    });
    for (whole, part) in [(SNAPSHOTS, SNAPSHOTS_OF_PART), (INTERVENTIONS, INTERVENTIONS_OF_PART)] {
        let outbox = outbox.clone();
        workers.register(UPKEEP, whole, move |job| divide(outbox.clone(), part, job));
    }
    for (part, task) in [
        (SNAPSHOTS_OF_PART, NightlyTask::Snapshot),
        (INTERVENTIONS_OF_PART, NightlyTask::LookAhead),
    ] {
        let run = NightlyRun {
            engine: engine.clone(),
            alerts: alerts.clone(),
            items: Arc::clone(items),
            task,
        };
        workers.register(UPKEEP, part, move |job| run.clone().run_for_all_learners(job));
    }
}

/// What is done about a job whose last attempt failed.
fn register_dead_job_handler(JobParts { engine, workers, alerts, .. }: JobParts<'_>) {
    let context = (engine.clone(), alerts.clone());
    workers.on_given_up(move |dead| {
        let (engine, alerts) = context.clone();
        async move {
            if dead.kind == RUN_BATCH
                && let Ok(Batch { batch_id }) = serde_json::from_value(dead.payload.clone())
            {
                // A client that polls the batch would wait for ever. If even this cannot be written,
                // the alert is what is left.
                let _ = engine.give_up_batch(&batch_id).await;
            }
            // It is a dead letter in any case: that there is no alert about it is no reason to stop.
            let _ = match dead.queue.as_str() {
                alert::QUEUE => alerts.raise_without_webhook(unsent_alert(&dead)).await,
                _ => alerts.raise(dead_alert(dead)).await,
            };
        }
    });
}

#[derive(Deserialize)]
struct Batch {
    batch_id: String,
}

#[derive(Deserialize)]
struct School {
    school_id: String,
}

/// The payload of a job about one shard of all learners.
#[derive(Deserialize)]
struct LearnerShard {
    part: u64,
    period: Moment,
}

#[derive(Deserialize)]
struct Period {
    period: Moment,
}

fn read<T: DeserializeOwned>(job: &Job) -> Result<T, JobError> {
    serde_json::from_value(job.payload.clone()).map_err(JobError::fatal)
}

/// Enqueues a job for each shard of the learners.
async fn divide(outbox: Outbox, kind: &'static str, job: Job) -> Result<(), JobError> {
    let Period { period } = read(&job)?;
    for part in 0..SHARDS {
        let payload = json!({ "part": part, "period": period });
        let job = NewJob::new(UPKEEP, kind, payload).once_per(part.to_string());
        outbox.enqueue(job).await.map_err(retry)?;
    }
    Ok(())
}

/// The nightly tasks that run for every learner.
#[derive(Debug, Clone, Copy)]
enum NightlyTask {
    /// The snapshot is moved on.
    Snapshot,
    /// Raises an alert if the prediction needs an intervention.
    LookAhead,
}

/// Runs a nightly task for one learner after another.
#[derive(Debug, Clone)]
struct NightlyRun {
    engine: MasteryEngine,
    alerts: Alerts,
    items: Arc<dyn Items>,
    task: NightlyTask,
}

impl NightlyRun {
    /// Runs a task for each learner of a shard. If it fails for some, the shard is retried after
    /// all the others have had it.
    async fn run_for_all_learners(self, job: Job) -> Result<(), JobError> {
        let LearnerShard { part, period } = read(&job)?;
        let mut learners = LearnerPages::of(&self.items, part).map_err(retry)?;
        let (mut failed, mut last) = (0, None);
        while let Some(some) = learners.next().await.map_err(retry)? {
            for student in some {
                let done = match self.task {
                    NightlyTask::Snapshot => {
                        let before = period.minus(TAIL);
                        self.engine.advance_snapshot(&student, before).await.map(drop)
                    }
                    NightlyTask::LookAhead => self.look_ahead(&student).await,
                };
                match done {
                    // Erased or without consent, perhaps since the page was read; or new.
                    Ok(())
                    | Err(
                        Error::Refused { .. } | Error::NotFound { .. } | Error::TooEarly { .. },
                    ) => {}
                    Err(error) => {
                        failed += 1;
                        last = Some(error);
                    }
                }
            }
        }
        match last {
            None => Ok(()),
            Some(error) => {
                let kind = kind_of(&error);
                Err(JobError::Retry(format!("{failed} learners failed, the last because {kind}")))
            }
        }
    }

    /// Raises an alert about a learner whose prediction needs an intervention: once a week at most.
    async fn look_ahead(&self, student: &str) -> Result<(), Error> {
        let prediction = self.engine.prediction(student, AHEAD_DAYS).await?;
        if !prediction.intervention_needed {
            return Ok(());
        }
        let week = Cadence::weekly(Weekday::Monday, 0, 0).period_of(self.engine.now());
        let alert = Alert {
            id: format!("intervention-{}", short_hash(student.as_bytes())),
            kind: "intervention".to_owned(),
            severity: Severity::Warning,
            title: "A learner needs somebody".to_owned(),
            detail: format!(
                "In {AHEAD_DAYS} days the score of {student} will be about {:.2} (between {:.2} \
                 and {:.2}).",
                prediction.predicted_score, prediction.low, prediction.high
            ),
            student_id: Some(student.to_owned()),
            at: week,
        };
        self.alerts.raise(alert).await?;
        Ok(())
    }
}

fn struggle_alert(job: &Job, begun: StruggleBegun) -> Alert {
    let title = match begun.struggle.kind {
        StruggleKind::RepeatedError => "A learner makes the same error again and again",
        StruggleKind::Stuck => "A learner is stuck",
        StruggleKind::LowQuiz => "A learner did badly in a quiz",
        StruggleKind::FailedRuns => "A learner's runs fail one after the other",
    };
    Alert {
        // The job is tried again after a kill: the alert stays one.
        id: job.id.clone(),
        kind: "struggle".to_owned(),
        severity: Severity::Warning,
        title: title.to_owned(),
        detail: begun.struggle.detail,
        student_id: Some(begun.student_id),
        at: job.created_at,
    }
}

fn dead_alert(dead: DeadJob) -> Alert {
    Alert {
        id: format!("dead-{}", short_hash(dead.id.as_bytes())),
        kind: "dead_job".to_owned(),
        severity: Severity::Critical,
        title: "Work was given up".to_owned(),
        detail: format!(
            "{} in queue {}, after {} attempts: {}",
            dead.kind, dead.queue, dead.attempts, dead.problem
        ),
        student_id: dead.student_id,
        at: dead.died_at,
    }
}

/// Once a day: while an address is out of order every alert fails to reach it.
fn unsent_alert(dead: &DeadJob) -> Alert {
    Alert {
        id: "webhook".to_owned(),
        kind: "webhook".to_owned(),
        severity: Severity::Critical,
        title: "Alerts do not reach the webhook".to_owned(),
        detail: dead.problem.clone(),
        student_id: None,
        at: Moment::start_of(dead.died_at.date()),
    }
}

/// Errors that a retry cannot mend are fatal.
fn problem(error: Error) -> JobError {
    let kind = kind_of(&error);
    match error {
        Error::Invalid(_) | Error::NotFound { .. } | Error::Refused { .. } => JobError::fatal(kind),
        _ => JobError::retry(kind),
    }
}

fn retry(error: Error) -> JobError {
    JobError::retry(kind_of(&error))
}

/// The kind of an error, without its text: that may name a learner, and the record of a job for
/// many learners is not erased with one of them.
fn kind_of(error: &Error) -> &'static str {
    match error {
        Error::Invalid(_) => "what was asked for is not as it must be",
        Error::NotFound { .. } => "what was asked about is not there",
        Error::Conflict { .. } => "somebody else kept changing the same",
        Error::Refused { .. } => "it may not be done",
        Error::Unavailable(_) => "the store cannot be used now",
        Error::Unreadable { .. } => "what is stored cannot be read",
        Error::Store(_) => "the storage refused",
        Error::TooEarly { .. } => "too little is known yet",
    }
}
