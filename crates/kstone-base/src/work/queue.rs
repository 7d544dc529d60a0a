//! The stored queues: due jobs, claims, dead letters, depth.

use std::sync::Arc;
use std::time::Duration;

use kstone_core::env::Clock;
use kstone_keyspace::Millis;
use kstone_keyspace::keys::platform::{DeadJob as DeadKey, JobId, Queue};
use kstone_ports::items::Items;
use kstone_ports::items::{Query, Select, TransactKind, Update};
use kstone_ports::value::Item;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::job::{Due, Job, Record, job_key, partitions};
use super::outbox::Outbox;
use super::request::{
    Bindings, action, between, decoded, delete_if, get, key_of, text, transact_if, update_if,
};
use super::table::{BY_DUE, DUE, PK, SK};
use crate::error::{Error, Result};
use crate::field::Invalid;
use crate::page::Page;
use crate::time::Moment;

/// How many are counted of one state and partition: beyond, a depth says "at least".
const COUNTED_MAX: u64 = 100_000;
/// How many due jobs of a partition are read at once, and how often at most: jobs of kinds that this
/// process does not do may come before its own.
const LOOK_AT_LEAST: u32 = 20;
const PAGES_MAX: usize = 50;
/// A problem's text may come from anywhere.
const PROBLEM_CHARS_MAX: usize = 2000;
/// The condition that a job is still its worker's, and was not asked for again since it was claimed.
const NOT_ASKED_AGAIN: &str = "#owner = :me AND #asks = :asks";

/// Reads and changes the stored queues.
#[derive(Debug, Clone)]
pub struct Queues {
    items: Arc<dyn Items>,
    clock: Arc<dyn Clock>,
    outbox: Outbox,
}

/// The depth of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueDepth {
    /// The queue.
    pub queue: String,
    /// Jobs that could begin now, those whose worker vanished included.
    pub ready: u64,
    /// Jobs whose time has not come.
    pub delayed: u64,
    /// Jobs in the hands of a worker.
    pub running: u64,
    /// Jobs that were given up.
    pub dead: u64,
    /// How long the first of the ready ones has been ready, in milliseconds.
    pub lag_ms: u64,
}

/// A dead letter: a job that was given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadJob {
    /// By which it can be asked for again or dropped.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// Its kind.
    pub kind: String,
    /// What it was about.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Json,
    /// How often it was tried.
    pub attempts: u32,
    /// Why the last attempt failed.
    pub problem: String,
    /// When it was asked for.
    pub created_at: Moment,
    /// When it was given up.
    pub died_at: Moment,
    /// Whose data it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student_id: Option<String>,
}

/// A due job, as the index shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) queue: String,
    pub(crate) id: String,
    pub(crate) due: String,
}

/// A job that this worker has claimed.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) job: Job,
    pub(crate) owner: String,
    /// When the lease ends, unless the worker renews it.
    pub(crate) until: Moment,
}

impl Queues {
    /// The queues of these items.
    pub fn new(items: Arc<dyn Items>, clock: Arc<dyn Clock>, outbox: Outbox) -> Queues {
        Queues { items, clock, outbox }
    }

    /// How much there is to do.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn depth(&self, queue: &str) -> Result<QueueDepth> {
        let now = self.now();
        let waiting = |ms: u64| Due::Waiting(Moment::from_epoch_ms(ms)).write();
        let running = |ms: u64| Due::Running(Moment::from_epoch_ms(ms)).write();
        let now_ms = now.epoch_ms();
        let mut depth = QueueDepth { queue: queue.to_owned(), ..QueueDepth::default() };
        for partition in partitions(queue)? {
            let count = async |first: String, last: String| {
                let query = between(&partition, DUE, &first, &last);
                self.count(Query { index: Some(BY_DUE.to_owned()), ..query }).await
            };
            let vanished = count(running(0), running(now_ms)).await?;
            depth.ready += vanished + count(waiting(0), waiting(now_ms)).await?;
            depth.delayed += count(waiting(now_ms + 1), waiting(u64::MAX)).await?;
            depth.running += count(running(now_ms + 1), running(u64::MAX)).await?;
            for first in self.due_in(&partition, queue, now, None, 1).await? {
                let (Some(Due::Waiting(since)) | Some(Due::Running(since))) = Due::read(&first.due)
                else {
                    continue;
                };
                let lag = now.since(since).as_millis();
                depth.lag_ms = depth.lag_ms.max(u64::try_from(lag).unwrap_or(u64::MAX));
            }
        }
        let dead = DeadKey::partition(&Queue::new(queue)?);
        depth.dead = self.count(between(&dead, SK, "0", "~")).await?;
        Ok(depth)
    }

    /// Jobs that were given up, the last first.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn dead_letters(
        &self,
        queue: &str,
        limit: u32,
        after: Option<&str>,
    ) -> Result<Page<DeadJob>> {
        let partition = DeadKey::partition(&Queue::new(queue)?);
        let start = match after {
            Some(id) => Some(self.dead_key(queue, id).map_err(|_| wrong_cursor(id))?),
            None => None,
        };
        let query = Query {
            backward: true,
            limit: Some(limit.max(1)),
            start: start.map(|key| key_of(&key)),
            ..between(&partition, SK, "0", "~")
        };
        let page = self.items.query(&query).await?;
        let mut items = Vec::new();
        for item in page.items.iter().flatten() {
            items.push(dead_job(&decoded(item)?)?);
        }
        let next = page.next.and(items.last().map(|job: &DeadJob| job.id.clone()));
        Ok(Page { items, next })
    }

    /// Enqueues a dead job again, with as many attempts as a new one.
    ///
    /// # Errors
    /// If there is no such job.
    pub async fn retry_dead(&self, queue: &str, id: &str) -> Result<()> {
        let key = key_of(&self.dead_key(queue, id)?);
        let missing = || no_dead_job(queue, id);
        let item = get(&*self.items, key.clone()).await?.ok_or_else(missing)?;
        let job = Record::read(&item)?.job;
        let delete = TransactKind::Delete(key);
        let bindings = Bindings::names(&[PK]);
        let actions = vec![
            action(delete, Some("attribute_exists(#pk)"), bindings),
            self.outbox.ask_again(&job)?,
        ];
        if !transact_if(&*self.items, actions).await? {
            return Err(missing());
        }
        self.outbox.wake();
        Ok(())
    }

    /// Removes a dead job.
    ///
    /// # Errors
    /// If there is no such job.
    pub async fn drop_dead(&self, queue: &str, id: &str) -> Result<()> {
        let key = key_of(&self.dead_key(queue, id)?);
        let bindings = Bindings::names(&[PK]);
        match delete_if(&*self.items, key, "attribute_exists(#pk)", bindings).await? {
            true => Ok(()),
            false => Err(no_dead_job(queue, id)),
        }
    }

    /// Due jobs of these kinds: those whose time has come, and those whose worker has lost its
    /// lease.
    pub(crate) async fn due(
        &self,
        queue: &str,
        kinds: &[String],
        limit: usize,
    ) -> Result<Vec<Candidate>> {
        let now = self.now();
        let mut found = Vec::new();
        for partition in partitions(queue)? {
            found.extend(self.due_in(&partition, queue, now, Some(kinds), limit).await?);
        }
        // What has waited longest goes first, whichever part it is in.
        let at = |it: &Candidate| it.due.split_once(':').map(|(_, at)| at.to_owned());
        found.sort_by_cached_key(|it| (at(it), it.id.clone()));
        Ok(found)
    }

    /// The same in one partition; of all kinds, if none are named.
    async fn due_in(
        &self,
        partition: &str,
        queue: &str,
        now: Moment,
        kinds: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Candidate>> {
        let mut found = Vec::new();
        let start = Moment::default();
        for (first, last) in
            [(Due::Running(start), Due::Running(now)), (Due::Waiting(start), Due::Waiting(now))]
        {
            let mut query = Query {
                index: Some(BY_DUE.to_owned()),
                limit: Some(u32::try_from(limit).unwrap_or(u32::MAX).max(LOOK_AT_LEAST)),
                ..between(partition, DUE, &first.write(), &last.write())
            };
            // Jobs that nobody here does must not hide those behind them.
            for _ in 0..PAGES_MAX {
                let page = self.items.query(&query).await?;
                for item in page.items.iter().flatten() {
                    let item = decoded(item)?;
                    let kind = text(&item, "kind");
                    if kinds.is_none_or(|kinds| kinds.iter().any(|known| known == kind)) {
                        found.push(Candidate {
                            queue: queue.to_owned(),
                            id: text(&item, SK).to_owned(),
                            due: text(&item, DUE).to_owned(),
                        });
                    }
                }
                query.start = page.next;
                if query.start.is_none() || found.len() >= limit {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Claims a job, unless another worker has.
    pub(crate) async fn claim(
        &self,
        candidate: &Candidate,
        owner: &str,
        lease: Duration,
    ) -> Result<Option<Claim>> {
        let until = self.now().plus(lease);
        let bindings = Bindings::names(&["due", "owner", "attempt"])
            .value("seen", candidate.due.as_str())
            .value("running", Due::Running(until).write())
            .value("owner", owner)
            .value("one", 1_u64);
        let key = key_of(&job_key(&candidate.queue, &candidate.id)?);
        let update = "SET #due = :running, #owner = :owner ADD #attempt :one";
        let taken = update_if(&*self.items, key, update, "#due = :seen", bindings).await?;
        let Some(item) = taken else { return Ok(None) };
        Ok(Some(Claim { job: Record::read(&item)?.job, owner: owner.to_owned(), until }))
    }

    /// Renews the lease; answers when it ends now, or `None` if the job is no longer this worker's.
    pub(crate) async fn renew(&self, claim: &Claim, lease: Duration) -> Result<Option<Moment>> {
        let until = self.now().plus(lease);
        let bindings = Bindings::names(&["due"]).value("running", Due::Running(until).write());
        let mine = self.update_claimed(claim, "SET #due = :running", bindings).await?;
        Ok(mine.map(|_| until))
    }

    /// Completes a job: it is removed, or waits again if it was enqueued meanwhile.
    pub(crate) async fn done(&self, claim: &Claim) -> Result<()> {
        let key = key_of(&job_key(&claim.job.queue, &claim.job.id)?);
        if delete_if(&*self.items, key, NOT_ASKED_AGAIN, not_asked_again(claim)).await? {
            return Ok(());
        }
        let Some((update, bindings)) = self.restart(claim).await? else { return Ok(()) };
        self.update_claimed(claim, update, bindings).await?;
        self.outbox.wake();
        Ok(())
    }

    /// The write by which a job that was enqueued meanwhile waits as a new one; `None` if it is
    /// gone.
    async fn restart(&self, claim: &Claim) -> Result<Option<(&'static str, Bindings)>> {
        let key = key_of(&job_key(&claim.job.queue, &claim.job.id)?);
        let Some(item) = get(&*self.items, key).await? else { return Ok(None) };
        let due = Due::Waiting(Record::read(&item)?.again_at).write();
        let bindings = Bindings::names(&["due", "attempt", "owner", "problem"])
            .value("due", due)
            .value("none", 0_u64);
        let update = "SET #due = :due, #attempt = :none REMOVE #owner, #problem";
        Ok(Some((update, bindings)))
    }

    /// Schedules the next attempt after a failure.
    pub(crate) async fn postpone(&self, claim: &Claim, until: Moment, problem: &str) -> Result<()> {
        let bindings = Bindings::names(&["due", "problem", "owner"])
            .value("due", Due::Waiting(until).write())
            .value("problem", shortened(problem));
        let update = "SET #due = :due, #problem = :problem REMOVE #owner";
        self.update_claimed(claim, update, bindings).await.map(|_| ())
    }

    /// Gives a job back unfinished, as if it had never been claimed.
    pub(crate) async fn release(&self, claim: &Claim) -> Result<()> {
        let bindings = Bindings::names(&["due", "attempt", "owner"])
            .value("due", Due::Waiting(self.now()).write())
            .value("attempt", u64::from(claim.job.attempt.saturating_sub(1)));
        let update = "SET #due = :due, #attempt = :attempt REMOVE #owner";
        self.update_claimed(claim, update, bindings).await.map(|_| ())
    }

    /// Makes the job a dead letter: no further attempt. If it was enqueued meanwhile, that waits as
    /// a new job. `None` if it is no longer this worker's.
    pub(crate) async fn move_to_dead_letters(
        &self,
        claim: &Claim,
        problem: &str,
    ) -> Result<Option<DeadJob>> {
        let Job { queue, kind, payload, attempt, created_at, student_id, id, .. } = &claim.job;
        let key = DeadKey {
            queue: Queue::new(queue.as_str())?,
            at: self.now().millis(),
            job_id: JobId::new(id.as_str())?,
        };
        let mut letter = key_of(&key)
            .with("queue", queue.as_str())
            .with("kind", kind.as_str())
            .with("payload", payload.to_string())
            .with("attempt", u64::from(*attempt))
            .with("problem", shortened(problem))
            .with("created_at", created_at.epoch_ms());
        if let Some(student_id) = student_id {
            letter.insert("student_id", student_id.as_str());
        }
        let dead = dead_job(&letter)?;
        let job = key_of(&job_key(queue, id)?);
        let letter = action(TransactKind::Put(letter), None, Bindings::default());
        let delete = TransactKind::Delete(job.clone());
        let delete = action(delete, Some(NOT_ASKED_AGAIN), not_asked_again(claim));
        if transact_if(&*self.items, vec![delete, letter.clone()]).await? {
            return Ok(Some(dead));
        }
        let Some((update, bindings)) = self.restart(claim).await? else { return Ok(None) };
        let bindings = bindings.value("me", claim.owner.as_str());
        let update = TransactKind::Update(job, Update::Text(update.to_owned()));
        let update = action(update, Some("#owner = :me"), bindings);
        let is_mine = transact_if(&*self.items, vec![update, letter]).await?;
        if is_mine {
            self.outbox.wake();
        }
        Ok(is_mine.then_some(dead))
    }

    async fn update_claimed(
        &self,
        claim: &Claim,
        update: &str,
        bindings: Bindings,
    ) -> Result<Option<Item>> {
        let key = key_of(&job_key(&claim.job.queue, &claim.job.id)?);
        let bindings = bindings.name("owner").value("me", claim.owner.as_str());
        update_if(&*self.items, key, update, "#owner = :me", bindings).await
    }

    async fn count(&self, mut query: Query) -> Result<u64> {
        query.select = Some(Select::Count);
        let mut count = 0;
        loop {
            let page = self.items.query(&query).await?;
            count += u64::from(page.count);
            query.start = page.next;
            if query.start.is_none() || count >= COUNTED_MAX {
                return Ok(count);
            }
        }
    }

    fn dead_key(&self, queue: &str, id: &str) -> Result<DeadKey> {
        let missing = || no_dead_job(queue, id);
        let (at, job_id) = id.split_once('-').ok_or_else(missing)?;
        let at = at.parse().ok().and_then(|ms| Millis::new(ms).ok()).ok_or_else(missing)?;
        Ok(DeadKey { queue: Queue::new(queue)?, at, job_id: JobId::new(job_id)? })
    }

    fn now(&self) -> Moment {
        Moment::from_epoch_ms(self.clock.now_ms())
    }
}

fn dead_job(item: &Item) -> Result<DeadJob> {
    let job = Record::read(item)?.job;
    let (at, job_id) = text(item, SK).split_once(':').unwrap_or_default();
    Ok(DeadJob {
        id: format!("{at}-{job_id}"),
        queue: job.queue,
        kind: job.kind,
        payload: job.payload,
        attempts: job.attempt,
        problem: job.problem.unwrap_or_default(),
        created_at: job.created_at,
        died_at: Moment::from_epoch_ms(at.parse().unwrap_or_default()),
        student_id: job.student_id,
    })
}

/// What the condition [`NOT_ASKED_AGAIN`] refers to.
fn not_asked_again(claim: &Claim) -> Bindings {
    Bindings::names(&["owner", "asks"])
        .value("me", claim.owner.as_str())
        .value("asks", claim.job.asks)
}

fn no_dead_job(queue: &str, id: &str) -> Error {
    Error::not_found(format!("dead job `{id}` in `{queue}`"))
}

/// A cursor that no page has given.
pub(crate) fn wrong_cursor(cursor: &str) -> Error {
    Invalid::value("cursor", "the `next` of the page before", format!("`{cursor}`")).into()
}

fn shortened(problem: &str) -> String {
    match problem.chars().take(PROBLEM_CHARS_MAX).collect::<String>() {
        none if none.is_empty() => "it gave no reason".to_owned(),
        some => some,
    }
}
