//! Workers: claim jobs, run their handlers, renew leases, retry, and give up.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kstone_core::env::{Clock, Random};
use kstone_core::sync::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::job::{Job, JobError};
use super::outbox::Outbox;
use super::queue::{Candidate, Claim, DeadJob, QueueDepth, Queues};
use crate::error::Result;
use crate::time::Moment;

type HandlerFuture = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>>;
type Handler = Arc<dyn Fn(Job) -> HandlerFuture + Send + Sync>;
type GivenUpHandler =
    Arc<dyn Fn(DeadJob) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Options of workers.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkersOptions {
    /// Jobs of one queue that this process runs at the same time.
    pub at_once: usize,
    /// How long a worker may be silent before others take its job.
    pub lease: Duration,
    /// How often a queue is looked at when nobody says that there is something. Less costs reads at
    /// a remote store, more makes jobs of other processes wait.
    pub look_every: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// The wait before the second attempt; four times as long before each one after.
    pub first_wait: Duration,
    /// How long handlers may go on after `stop`.
    pub stop_within: Duration,
}

impl Default for WorkersOptions {
    fn default() -> WorkersOptions {
        WorkersOptions {
            at_once: 4,
            lease: Duration::from_secs(30),
            look_every: Duration::from_millis(500),
            retries: 3,
            first_wait: Duration::from_secs(2),
            stop_within: Duration::from_secs(5),
        }
    }
}

/// Runs jobs. Several processes may run workers on one store.
#[derive(Clone)]
pub struct Workers {
    inner: Arc<Inner>,
}

struct Inner {
    queues: Queues,
    outbox: Outbox,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    options: WorkersOptions,
    /// By queue and kind.
    handlers: Mutex<BTreeMap<String, BTreeMap<String, Handler>>>,
    given_up_handler: Mutex<Option<GivenUpHandler>>,
    stopping: watch::Sender<bool>,
    loops: Mutex<JoinSet<()>>,
}

impl Workers {
    /// Workers on these queues. They do nothing before [`Workers::start`].
    pub fn new(
        queues: Queues,
        outbox: Outbox,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        options: WorkersOptions,
    ) -> Workers {
        let (stopping, _) = watch::channel(false);
        let inner = Inner {
            queues,
            outbox,
            clock,
            random,
            options,
            handlers: Mutex::new(BTreeMap::new()),
            given_up_handler: Mutex::new(None),
            stopping,
            loops: Mutex::new(JoinSet::new()),
        };
        Workers { inner: Arc::new(inner) }
    }

    /// Registers the handler of a kind of job. It must be idempotent: a worker can be killed after
    /// the work, before it recorded that.
    pub fn register<F, D>(&self, queue: &str, kind: &str, handler: F)
    where
        F: Fn(Job) -> D + Send + Sync + 'static,
        D: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |job| Box::pin(handler(job)));
        let mut handlers = self.inner.handlers.lock();
        handlers.entry(queue.to_owned()).or_default().insert(kind.to_owned(), handler);
    }

    /// Registers a callback for jobs that are given up, after they have become dead letters.
    pub fn on_given_up<F, D>(&self, tell: F)
    where
        F: Fn(DeadJob) -> D + Send + Sync + 'static,
        D: Future<Output = ()> + Send + 'static,
    {
        *self.inner.given_up_handler.lock() = Some(Arc::new(move |dead| Box::pin(tell(dead))));
    }

    /// Starts working on all queues that have a handler by now. To be called within a runtime.
    pub fn start(&self) {
        let queues: Vec<String> = self.inner.handlers.lock().keys().cloned().collect();
        let mut loops = self.inner.loops.lock();
        for queue in queues {
            loops.spawn(Arc::clone(&self.inner).work_on(queue));
        }
    }

    /// Stops: claims nothing more, waits a while for running jobs, and gives the others back.
    pub async fn stop(&self) {
        self.inner.stopping.send_replace(true);
        let mut loops = std::mem::take(&mut *self.inner.loops.lock());
        while loops.join_next().await.is_some() {}
    }

    /// Runs all due jobs, and returns how many were tried. Jobs that are scheduled for later stay.
    /// For tests and for programs that work in turns.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn run_due(&self) -> Result<u64> {
        let queues: Vec<String> = self.inner.handlers.lock().keys().cloned().collect();
        let mut tried = 0;
        loop {
            let mut running = JoinSet::new();
            for queue in &queues {
                for claim in self.inner.claim_some(queue, self.inner.options.at_once).await? {
                    running.spawn(Arc::clone(&self.inner).carry_out(claim));
                }
            }
            if running.is_empty() {
                return Ok(tried);
            }
            tried += running.len() as u64;
            while running.join_next().await.is_some() {}
        }
    }

    /// How much there is to do in each queue that has a handler.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn depth(&self) -> Result<Vec<QueueDepth>> {
        let mut depths = Vec::new();
        for queue in self.queues() {
            depths.push(self.inner.queues.depth(&queue).await?);
        }
        Ok(depths)
    }

    /// The queues that have a handler.
    pub fn queues(&self) -> Vec<String> {
        self.inner.handlers.lock().keys().cloned().collect()
    }
}

impl Inner {
    async fn work_on(self: Arc<Self>, queue: String) {
        let mut stopping = self.stopping.subscribe();
        let mut running = JoinSet::new();
        while !*stopping.borrow() {
            // Registered before the look, so that what is asked for after the look is not missed.
            let woken = self.outbox.woken().notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            let free = self.options.at_once.saturating_sub(running.len());
            // A store that cannot be asked now is asked again at the next turn.
            let claims = self.claim_some(&queue, free).await.unwrap_or_default();
            let found = claims.len();
            for claim in claims {
                running.spawn(Arc::clone(&self).carry_out(claim));
            }
            while running.try_join_next().is_some() {}
            if found > 0 && running.len() < self.options.at_once {
                continue;
            }
            tokio::select! {
                () = &mut woken, if running.len() < self.options.at_once => {}
                Some(_) = running.join_next() => {}
                _ = stopping.changed() => {}
                () = sleep(self.options.look_every), if running.len() < self.options.at_once => {}
            }
        }
        while running.join_next().await.is_some() {}
    }

    /// Claims up to so many jobs of a queue.
    async fn claim_some(&self, queue: &str, free: usize) -> Result<Vec<Claim>> {
        if free == 0 {
            return Ok(Vec::new());
        }
        let kinds: Vec<String> = match self.handlers.lock().get(queue) {
            Some(handlers) => handlers.keys().cloned().collect(),
            None => return Ok(Vec::new()),
        };
        let mut claims = Vec::new();
        for candidate in self.queues.due(queue, &kinds, free).await? {
            if claims.len() == free {
                break;
            }
            match self.claim(&candidate).await {
                Ok(claim) => claims.extend(claim),
                // What is claimed by now must be run.
                Err(_) if !claims.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(claims)
    }

    /// Claims a job, unless somebody else has, or it was tried too often.
    async fn claim(&self, candidate: &Candidate) -> Result<Option<Claim>> {
        let owner = format!("{:016x}", self.random.next_u64());
        let Some(claim) = self.queues.claim(candidate, &owner, self.options.lease).await? else {
            return Ok(None);
        };
        if claim.job.attempt <= self.attempts_max() {
            return Ok(Some(claim));
        }
        let last = claim.job.problem.as_deref().unwrap_or("nothing is known of it");
        self.give_up(&claim, &format!("its worker vanished; before that: {last}")).await?;
        Ok(None)
    }

    /// Runs one attempt and notes how it went. If that cannot be noted, the lease ends by itself and
    /// the job is tried again.
    async fn carry_out(self: Arc<Self>, claim: Claim) {
        let _ = self.attempt(&claim).await;
    }

    async fn attempt(&self, claim: &Claim) -> Result<()> {
        let Some(handler) = self.handler(&claim.job.queue, &claim.job.kind) else {
            return self.queues.release(claim).await;
        };
        let mut until = claim.until;
        let mut stopping = self.stopping.subscribe();
        let mut doing = JoinSet::new();
        doing.spawn(handler(claim.job.clone()));
        let outcome = loop {
            tokio::select! {
                ended = doing.join_next() => match ended {
                    Some(Ok(outcome)) => break outcome,
                    Some(Err(failed)) => break Err(JobError::Retry(failed.to_string())),
                    None => break Ok(()),
                },
                () = sleep(self.options.lease / 3) => {
                    // Once somebody else may have it, this attempt must not go on beside theirs.
                    match self.queues.renew(claim, self.options.lease).await {
                        Ok(Some(longer)) => until = longer,
                        Err(_) if self.now() < until => {}
                        Ok(None) | Err(_) => return Ok(()),
                    }
                }
                () = until_stopped(&mut stopping) => {
                    match timeout(self.options.stop_within, doing.join_next()).await {
                        Ok(Some(Ok(outcome))) => break outcome,
                        _ => return self.queues.release(claim).await,
                    }
                }
            }
        };
        match outcome {
            Ok(()) => self.queues.done(claim).await,
            Err(JobError::Fatal(problem)) => self.give_up(claim, &problem).await,
            Err(JobError::Retry(problem)) if claim.job.attempt >= self.attempts_max() => {
                self.give_up(claim, &problem).await
            }
            Err(JobError::Retry(problem)) => {
                let until = self.now().plus(self.wait_after(claim.job.attempt));
                self.queues.postpone(claim, until, &problem).await
            }
        }
    }

    async fn give_up(&self, claim: &Claim, problem: &str) -> Result<()> {
        let dead = self.queues.move_to_dead_letters(claim, problem).await?;
        let given_up_handler = self.given_up_handler.lock().clone();
        if let (Some(dead), Some(tell)) = (dead, given_up_handler) {
            tell(dead).await;
        }
        Ok(())
    }

    fn attempts_max(&self) -> u32 {
        self.options.retries.saturating_add(1)
    }

    /// The backoff with jitter, from half to all of the nominal wait, so that jobs that failed
    /// together do not retry together.
    fn wait_after(&self, attempt: u32) -> Duration {
        let longer = 4_u32.saturating_pow(attempt.saturating_sub(1).min(10));
        let whole = self.options.first_wait.saturating_mul(longer);
        let half = whole / 2;
        let extra = self.random.next_u64() % (half.as_millis() as u64 + 1);
        half + Duration::from_millis(extra)
    }

    fn handler(&self, queue: &str, kind: &str) -> Option<Handler> {
        self.handlers.lock().get(queue)?.get(kind).cloned()
    }

    fn now(&self) -> Moment {
        Moment::from_epoch_ms(self.clock.now_ms())
    }
}

async fn until_stopped(stopping: &mut watch::Receiver<bool>) {
    // The sender lives as long as the workers do.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

impl Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("queues", &self.queues()).finish_non_exhaustive()
    }
}
