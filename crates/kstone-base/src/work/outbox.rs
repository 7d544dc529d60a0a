//! Enqueues jobs, alone or within the transaction that causes them, so that neither is stored
//! without the other.

use std::sync::Arc;

use kstone_core::env::{Clock, Random};
use kstone_ports::items::{Items, write_together};
use kstone_ports::items::{TransactAction, TransactKind, Update};
use tokio::sync::Notify;

use super::job::{Due, Job, NewJob, job_key};
use super::request::{Bindings, action, key_of};
use crate::error::Result;
use crate::field::check_id;
use crate::time::Moment;

/// Enqueues jobs.
#[derive(Debug, Clone)]
pub struct Outbox {
    items: Arc<dyn Items>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    wake: Arc<Notify>,
}

/// When a job starts that is enqueued again while it waits.
#[derive(Debug, Clone, Copy)]
enum RepeatStart {
    /// When it would have, or after it has ended.
    AsScheduled,
    /// At the time that is asked for now.
    Anew,
}

impl Outbox {
    /// An outbox on these items.
    pub fn new(items: Arc<dyn Items>, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Outbox {
        Outbox { items, clock, random, wake: Arc::new(Notify::new()) }
    }

    /// The write that enqueues a job, for the caller's own transaction. It has no condition, so it
    /// does not make that transaction fail, unless it is about a learner who was erased.
    ///
    /// Jobs with one key are one item: a transaction that is written often should not ask for the
    /// same key each time, or all of them wait for each other.
    ///
    /// # Errors
    /// If queue, kind or learner is no id.
    pub fn action(&self, job: &NewJob) -> Result<TransactAction> {
        let id = job.id_by_key().unwrap_or_else(|| self.new_id());
        self.ask(job, &id, None, RepeatStart::AsScheduled)
    }

    /// The same for a job that may wait for a time that a wrong clock gave it: it begins now.
    pub(crate) fn action_now(&self, job: &NewJob) -> Result<TransactAction> {
        let id = job.id_by_key().unwrap_or_else(|| self.new_id());
        self.ask(job, &id, None, RepeatStart::Anew)
    }

    /// Enqueues a job by itself, and wakes the workers of this process.
    ///
    /// # Errors
    /// If it is wrong, or the store refuses.
    pub async fn enqueue(&self, job: NewJob) -> Result<()> {
        let actions = vec![self.action(&job)?];
        write_together(&*self.items, actions).await?;
        self.wake();
        Ok(())
    }

    /// Wakes the workers of this process. Call it after a transaction with an
    /// [`action`](Outbox::action) in it; without it a job only starts a little later.
    pub fn wake(&self) {
        self.wake.notify_waiters();
    }

    pub(crate) fn woken(&self) -> &Arc<Notify> {
        &self.wake
    }

    /// The write that enqueues a dead job again.
    pub(crate) fn ask_again(&self, job: &Job) -> Result<TransactAction> {
        let Job { queue, kind, payload, student_id, .. } = job.clone();
        let new = NewJob { student_id, ..NewJob::new(queue, kind, payload) };
        self.ask(&new, &job.id, Some(job.created_at), RepeatStart::AsScheduled)
    }

    fn ask(
        &self,
        job: &NewJob,
        id: &str,
        created: Option<Moment>,
        start: RepeatStart,
    ) -> Result<TransactAction> {
        check_id("kind", &job.kind)?;
        if let Some(student_id) = &job.student_id {
            check_id("student_id", student_id)?;
        }
        let now = Moment::from_epoch_ms(self.clock.now_ms());
        let at = job.run_at.max(now);
        let set = ["queue", "kind", "payload", "due", "again_at", "created_at", "attempt", "asks"];
        let mut bindings = Bindings::names(&set)
            .value("queue", job.queue.as_str())
            .value("kind", job.kind.as_str())
            .value("payload", job.payload.to_string())
            .value("due", Due::Waiting(at).write())
            .value("at", at.epoch_ms())
            .value("created", created.unwrap_or(now).epoch_ms())
            .value("none", 0_u64)
            .value("one", 1_u64);
        let due = match start {
            RepeatStart::AsScheduled => "if_not_exists(#due, :due)",
            RepeatStart::Anew => ":due",
        };
        let mut update = format!(
            "SET #queue = :queue, #kind = :kind, #payload = :payload, #due = {due}, \
             #again_at = :at, #created_at = if_not_exists(#created_at, :created), \
             #attempt = if_not_exists(#attempt, :none)"
        );
        if let Some(student_id) = &job.student_id {
            bindings = bindings.name("student_id").value("student", student_id.as_str());
            update += ", #student_id = :student";
        }
        update += " ADD #asks :one";
        let key = key_of(&job_key(&job.queue, id)?);
        Ok(action(TransactKind::Update(key, Update::Text(update)), None, bindings))
    }

    /// Ids sort by time, so that older jobs come first.
    pub(crate) fn new_id(&self) -> String {
        format!("{:013}-{:016x}", self.clock.now_ms(), self.random.next_u64())
    }
}
