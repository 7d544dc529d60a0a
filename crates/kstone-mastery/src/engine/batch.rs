//! Updates many learners in one batch, each for itself, with progress that others can watch.
//!
//! A batch is a status, which counts, and a request for each learner, which says what is to be
//! written and what went wrong. They are items of their own so that a learner can be erased from a
//! batch: the status names them only in its list.

use std::future::Future;

use kstone_keyspace::Subject;
use kstone_keyspace::keys::mastery::{
    BatchId, BatchRequest as RequestKey, BatchStatus as StatusKey,
};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::{Error, MasteryEngine, Result, student};
use crate::domain::{BatchFailure, BatchState, BatchStatus, Components};
use kstone_base::field::{Invalid, check_id};
use kstone_base::store::{CommitError, Precondition, Range, Versioned, parse, put, put_version};
use kstone_base::time::Moment;
use kstone_base::work::short_hash;

/// How many learners a batch may have.
const LEARNERS_MAX: usize = 1000;
/// How many learners are written at the same time.
const TOGETHER: usize = 64;
/// After so many learners the progress is written down.
const PROGRESS_EVERY: usize = 250;
/// How many requests are written in one transaction.
const REQUESTS_TOGETHER: usize = 100;
/// What became of a learner in a batch that was given up before their turn.
const NOT_REACHED: &str = "the batch was given up before it came to them";

/// The update of one learner in a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchRequest {
    /// Which learner.
    pub student_id: String,
    /// How far they are.
    pub components: Components,
}

/// A request as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredRequest {
    #[serde(flatten)]
    request: BatchRequest,
    #[serde(default, skip_serializing_if = "is_false")]
    done: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl MasteryEngine {
    /// Updates many learners, and returns when all are done. Each learner is written completely or
    /// not at all; failures do not stop the others.
    pub async fn save_batch_mastery(&self, requests: &[BatchRequest]) -> Result<BatchStatus> {
        let now = self.now();
        let mut status = self.new_batch(&self.new_id(now), requests, now)?;
        let key = key_of(&status)?;
        self.store().put(put_version(&key, &status, 1, Precondition::Absent)?).await?;
        let mut version = 1;
        // The status never keeps them: it would name learners where erasure does not look.
        let mut all_failures = Vec::new();
        for some in requests.chunks(PROGRESS_EVERY) {
            let failures = self.save_some(&key.batch_id, some).await;
            for failure in &failures {
                let request = some.iter().find(|it| it.student_id == failure.student_id);
                if let Some(request) = request {
                    self.keep_failure(&key.batch_id, request, failure).await?;
                }
            }
            advance(&mut status, some.len(), failures.len(), self.now());
            version = self.keep_progress(&key, &mut status, version).await?;
            all_failures.extend(failures);
        }
        status.failures = all_failures;
        Ok(status)
    }

    /// Keeps a batch for later: what is to be written, a status that says that nothing is done, and
    /// a job ([`RUN_BATCH`](super::RUN_BATCH)) that does it by [`run_batch`](Self::run_batch).
    ///
    /// Erased learners have failed from the start: nothing is stored about them.
    pub async fn start_batch(&self, requests: &[BatchRequest]) -> Result<BatchStatus> {
        self.start_batch_once(&self.new_id(self.now()), requests).await
    }

    /// The same under a unique name: started again by that name, it returns the progress of the
    /// existing batch.
    pub async fn start_batch_once(
        &self,
        name: &str,
        requests: &[BatchRequest],
    ) -> Result<BatchStatus> {
        let mut status = self.new_batch(name, requests, self.now())?;
        let key = key_of(&status)?;
        // Its requests say who is done: they are not to be written over.
        if self.store().get::<_, BatchStatus>(&key).await?.is_some() {
            return self.batch_status(&status.batch_id).await;
        }
        let kept = |request: &BatchRequest| StoredRequest {
            request: request.clone(),
            done: false,
            problem: None,
        };
        let kept: Vec<StoredRequest> = requests
            .iter()
            .filter(|request| !self.is_erased(&request.student_id))
            .map(kept)
            .collect();
        let refused = self.keep_requests(&key.batch_id, &kept).await?;
        status.students.retain(|student| !refused.contains(student));
        let failed = requests.len() - kept.len() + refused.len();
        advance(&mut status, failed, failed, self.now());
        // Last, so that a batch that can be seen is complete.
        let mut writes = vec![put_version(&key, &status, 1, Precondition::Absent)?];
        if let Some(work) = &self.inner.work {
            writes.push(work.run_batch(&status.batch_id)?);
        }
        match self.store().commit(writes).await {
            Ok(()) => {}
            // Somebody else asked for it by the same name, just now.
            Err(CommitError::PreconditionsFailed(_)) => {
                return self.batch_status(&status.batch_id).await;
            }
            Err(stopped) => return Err(stopped.into_error("the batch")),
        }
        if let Some(work) = &self.inner.work {
            work.wake();
        }
        Ok(status)
    }

    /// Runs what is left of a batch. Can be interrupted anywhere and run again: finished learners
    /// are not repeated.
    pub async fn run_batch(&self, batch_id: &str) -> Result<BatchStatus> {
        let key = StatusKey { batch_id: BatchId::new(batch_id)? };
        let Some(Versioned { value: mut status, mut version }) = self.store().get(&key).await?
        else {
            return Err(Error::not_found(format!("batch {batch_id}")));
        };
        let left: Vec<StoredRequest> = self.requests(&key.batch_id).await?;
        let (done, failed) = counts(&left);
        let left: Vec<BatchRequest> = left
            .into_iter()
            .filter(|it| !it.done && it.problem.is_none())
            .map(|it| it.request)
            .collect();
        // Learners erased meanwhile are in no request any more.
        recount(&mut status, done, failed, left.len());
        if !left.is_empty() {
            // It may have been given up, and somebody wants it tried again.
            status.status = BatchState::Processing;
            status.finished_at = None;
        }
        for some in left.chunks(PROGRESS_EVERY) {
            let failures = self.save_some(&key.batch_id, some).await;
            let problem_of = |request: &BatchRequest| {
                let found = failures.iter().find(|it| it.student_id == request.student_id);
                found.map(|it| it.problem.clone())
            };
            let kept = |request: &BatchRequest| {
                let problem = problem_of(request);
                StoredRequest { request: request.clone(), done: problem.is_none(), problem }
            };
            let kept: Vec<StoredRequest> = some.iter().map(kept).collect();
            // A learner who is being erased is not written about any more.
            self.keep_requests(&key.batch_id, &kept).await?;
            advance(&mut status, some.len(), failures.len(), self.now());
            version = self.keep_progress(&key, &mut status, version).await?;
        }
        if status.in_progress == 0 && status.finished_at.is_none() {
            advance(&mut status, 0, 0, self.now());
            self.keep_progress(&key, &mut status, version).await?;
        }
        self.batch_status(batch_id).await
    }

    /// Marks an abandoned batch: learners who are not done have failed. It can still be run again.
    pub async fn give_up_batch(&self, batch_id: &str) -> Result<()> {
        let key = StatusKey { batch_id: BatchId::new(batch_id)? };
        let Some(Versioned { value: mut status, version }) =
            self.store().get::<_, BatchStatus>(&key).await?
        else {
            return Err(Error::not_found(format!("batch {batch_id}")));
        };
        if status.finished_at.is_some() {
            return Ok(());
        }
        status.failed = status.total_requests.saturating_sub(status.completed);
        status.in_progress = 0;
        status.status = BatchState::Failed;
        status.finished_at = Some(self.now());
        self.keep_progress(&key, &mut status, version).await.map(drop)
    }

    /// How far a batch is, and what went wrong.
    pub async fn batch_status(&self, batch_id: &str) -> Result<BatchStatus> {
        let key = StatusKey { batch_id: BatchId::new(batch_id)? };
        let Some(kept) = self.store().get::<_, BatchStatus>(&key).await? else {
            return Err(Error::not_found(format!("batch {batch_id}")));
        };
        let mut status = kept.value;
        let requests = self.requests(&key.batch_id).await?;
        let is_given_up = status.status == BatchState::Failed;
        let failures = requests.into_iter().filter_map(|it| {
            let student_id = it.request.student_id;
            let not_reached = || (is_given_up && !it.done).then(|| NOT_REACHED.to_owned());
            it.problem.or_else(not_reached).map(|problem| BatchFailure { student_id, problem })
        });
        status.failures = failures.collect();
        Ok(status)
    }

    fn new_batch(&self, name: &str, requests: &[BatchRequest], now: Moment) -> Result<BatchStatus> {
        check_requests(requests)?;
        let total = requests.len() as u32;
        Ok(BatchStatus {
            batch_id: format!("batch-{name}"),
            total_requests: total,
            completed: 0,
            failed: 0,
            in_progress: total,
            started_at: now,
            status: BatchState::Processing,
            // Who was erased fails later, by name; but no list may name them.
            students: requests
                .iter()
                .map(|request| &request.student_id)
                .filter(|student| !self.is_erased(student))
                .cloned()
                .collect(),
            failures: Vec::new(),
            finished_at: None,
        })
    }

    /// Writes some learners at the same time; answers with those that failed. A learner whom the
    /// batch has written before it was interrupted is known by the event, and left as they are now.
    async fn save_some(&self, batch_id: &BatchId, requests: &[BatchRequest]) -> Vec<BatchFailure> {
        let one = |request: &BatchRequest| {
            let (engine, request) = (self.clone(), request.clone());
            let event_id = event_id(batch_id, &request.student_id);
            async move {
                let BatchRequest { student_id, components } = &request;
                let done = engine.assess_once(event_id, student_id, components);
                let problem = done.await.err()?.to_string();
                Some(BatchFailure { student_id: request.student_id, problem })
            }
        };
        let done = together(TOGETHER, requests.iter().map(one)).await;
        done.into_iter().flatten().collect()
    }

    /// Stores requests; returns the learners about whom nothing may be written.
    async fn keep_requests(
        &self,
        batch_id: &BatchId,
        requests: &[StoredRequest],
    ) -> Result<Vec<String>> {
        let write =
            |kept: &StoredRequest| put(&request_key(batch_id, &kept.request.student_id)?, kept);
        let mut refused = Vec::new();
        for some in requests.chunks(REQUESTS_TOGETHER) {
            let writes = some.iter().map(write).collect::<Result<_>>()?;
            match self.store().commit(writes).await {
                Ok(()) => continue,
                // One of them was erased: the others are kept for themselves.
                Err(CommitError::Error(Error::Refused { .. })) => {}
                Err(stopped) => return Err(stopped.into_error("the batch")),
            }
            for kept in some {
                match self.store().put(write(kept)?).await {
                    Ok(()) => {}
                    Err(Error::Refused { .. }) => refused.push(kept.request.student_id.clone()),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(refused)
    }

    async fn keep_failure(
        &self,
        batch_id: &BatchId,
        request: &BatchRequest,
        failure: &BatchFailure,
    ) -> Result<()> {
        let problem = Some(failure.problem.clone());
        let kept = StoredRequest { request: request.clone(), done: false, problem };
        match self.store().put(put(&request_key(batch_id, &request.student_id)?, &kept)?).await {
            // Nothing is written about who was erased, not even this.
            Err(Error::Refused { .. }) => Ok(()),
            done => done,
        }
    }

    /// Writes down how far a batch is. If somebody in it is erased meanwhile, the list of learners
    /// has become another: then the counts go into that one.
    async fn keep_progress(
        &self,
        key: &StatusKey,
        status: &mut BatchStatus,
        mut version: u64,
    ) -> Result<u64> {
        for _ in 0..5 {
            let write = put_version(key, status, version + 1, Precondition::Version(version))?;
            match self.store().commit(vec![write]).await {
                Ok(()) => return Ok(version + 1),
                Err(CommitError::Error(error @ Error::Refused { .. })) => {
                    let Some(kept) = self.store().get::<_, BatchStatus>(key).await? else {
                        return Err(error);
                    };
                    status.students = kept.value.students;
                    status.students.retain(|student| !self.is_erased(student));
                    version = kept.version;
                }
                Err(CommitError::PreconditionsFailed(_) | CommitError::Busy) => {
                    let Some(kept) = self.store().get::<_, BatchStatus>(key).await? else {
                        return Err(Error::not_found("batch any more"));
                    };
                    status.students = kept.value.students;
                    version = kept.version;
                }
                Err(CommitError::Error(error)) => return Err(error),
            }
        }
        Err(Error::Conflict { what: "the batch".to_owned(), current: Some(version) })
    }

    /// Whether nothing may be written about a learner.
    fn is_erased(&self, student_id: &str) -> bool {
        let persons = self.inner.persons.as_ref();
        persons.is_some_and(|it| it.is_erased(&Subject::canonical(student_id, None)))
    }

    async fn requests(&self, batch_id: &BatchId) -> Result<Vec<StoredRequest>> {
        let range = Range::of::<RequestKey>(RequestKey::partition(batch_id));
        let (rows, _) = self.store().list(&range).await?;
        rows.iter().map(parse).collect()
    }
}

/// Runs futures with bounded concurrency; results come in order of completion.
pub(super) async fn together<F>(
    limit: usize,
    futures: impl IntoIterator<Item = F>,
) -> Vec<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut running = JoinSet::new();
    let mut done = Vec::new();
    let mut futures = futures.into_iter();
    loop {
        while running.len() < limit
            && let Some(future) = futures.next()
        {
            running.spawn(future);
        }
        match running.join_next().await {
            Some(Ok(output)) => done.push(output),
            Some(Err(error)) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
            None => return done,
        }
    }
}

fn key_of(status: &BatchStatus) -> Result<StatusKey> {
    Ok(StatusKey { batch_id: BatchId::new(status.batch_id.as_str())? })
}

fn request_key(batch_id: &BatchId, student_id: &str) -> Result<RequestKey> {
    Ok(RequestKey { batch_id: batch_id.clone(), student_id: student(student_id)? })
}

/// The name of the event by which a batch writes a learner: the same whenever it is tried.
fn event_id(batch_id: &BatchId, student_id: &str) -> String {
    format!("batch-{}", short_hash(format!("{batch_id}/{student_id}").as_bytes()))
}

fn check_requests(requests: &[BatchRequest]) -> Result<()> {
    if requests.is_empty() || requests.len() > LEARNERS_MAX {
        let expected = format!("a list of 1 to {LEARNERS_MAX} learners");
        return Err(Invalid::value("requests", expected, requests.len()).into());
    }
    let mut seen = std::collections::BTreeSet::new();
    for (at, request) in requests.iter().enumerate() {
        let within = |invalid: Invalid| invalid.within(&format!("requests[{at}]"));
        check_id("student_id", &request.student_id).map_err(within)?;
        request.components.check().map_err(within)?;
        if !seen.insert(&request.student_id) {
            let problem = Invalid::value("student_id", "there once", "there twice");
            return Err(within(problem).into());
        }
    }
    Ok(())
}

fn counts(requests: &[StoredRequest]) -> (u32, u32) {
    let done = requests.iter().filter(|it| it.done).count();
    let failed = requests.iter().filter(|it| it.problem.is_some()).count();
    (done as u32, failed as u32)
}

/// Counts the outcomes of all requests. Learners without a request have failed.
fn recount(status: &mut BatchStatus, done: u32, failed: u32, left: usize) {
    let left = left as u32;
    let gone = status.total_requests.saturating_sub(done + failed + left);
    status.completed = done;
    status.failed = failed + gone;
    status.in_progress = left;
}

fn advance(status: &mut BatchStatus, done: usize, failed: usize, now: Moment) {
    status.completed += (done - failed) as u32;
    status.failed += failed as u32;
    status.in_progress = status.total_requests.saturating_sub(status.completed + status.failed);
    if status.in_progress == 0 {
        status.finished_at = Some(now);
        let all_failed = status.failed == status.total_requests;
        status.status = if all_failed { BatchState::Failed } else { BatchState::Completed };
    }
}

fn is_false(it: &bool) -> bool {
    !it
}
