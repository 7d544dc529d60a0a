//! Waits for commits to become durable, in one task for all connections.
//!
//! A sync of the log covers what many clients wrote. If each connection waited for it by itself,
//! the thread that syncs would wake the executor once for each, while the next sync waits for that
//! thread. So one task waits, and wakes the connections from inside the executor, where that costs
//! next to nothing.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use kstone_core::sync::Mutex;
use kstone_redis::Redis;
use tokio::task::JoinHandle;

/// The connections that wait, and the task that waits for the log. Dropping this ends the task.
#[derive(Debug)]
pub(crate) struct DurabilityNotifier {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    redis: Redis,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// What each waits for.
    tasks: Vec<(u64, Waker)>,
    /// The task that waits for them all, once it has run.
    notifier: Option<Waker>,
    /// It will be woken by the disk.
    is_awaited: bool,
    /// The disk failed, so waiting is pointless.
    has_failed: bool,
}

impl DurabilityNotifier {
    /// Starts the task. Must be called on an executor.
    pub(crate) fn new(redis: Redis) -> DurabilityNotifier {
        let shared = Arc::new(Shared { redis, waiting: Mutex::default() });
        let task = Arc::clone(&shared);
        let task = tokio::spawn(poll_fn(move |context| task.poll_all(context)));
        DurabilityNotifier { shared, task }
    }

    /// Waits until everything up to this number is durable; false if the disk failed.
    pub(crate) async fn wait_durable(&self, seq: u64) -> bool {
        poll_fn(|context| self.shared.poll_durable(seq, context)).await
    }
}

impl Drop for DurabilityNotifier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn poll_durable(&self, seq: u64, context: &Context<'_>) -> Poll<bool> {
        if self.redis.durable_seq() >= seq {
            return Poll::Ready(true);
        }
        let mut waiting = self.waiting.lock();
        if waiting.has_failed {
            return Poll::Ready(self.redis.durable_seq() >= seq);
        }
        waiting.tasks.push((seq, context.waker().clone()));
        // The disk begins now, and not when the task that waits for it has its turn.
        if !waiting.is_awaited
            && let Some(notifier) = waiting.notifier.clone()
        {
            waiting.is_awaited = true;
            drop(waiting);
            if self.redis.poll_durable(seq, &mut Context::from_waker(&notifier)).is_ready() {
                notifier.wake();
            }
        }
        Poll::Pending
    }

    /// Wakes those who have waited long enough, and waits for the others.
    fn poll_all(&self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let durable = self.redis.durable_seq();
            let mut waiting = self.waiting.lock();
            if !waiting.notifier.as_ref().is_some_and(|have| have.will_wake(context.waker())) {
                waiting.notifier = Some(context.waker().clone());
            }
            let has_failed = waiting.has_failed;
            let done = waiting.tasks.extract_if(.., |(seq, _)| has_failed || *seq <= durable);
            let done: Vec<Waker> = done.map(|(_, task)| task).collect();
            let next = waiting.tasks.iter().map(|(seq, _)| *seq).min();
            waiting.is_awaited = next.is_some();
            drop(waiting);
            done.into_iter().for_each(Waker::wake);
            let Some(next) = next else { return Poll::Pending };
            match self.redis.poll_durable(next, context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => self.waiting.lock().has_failed = true,
            }
        }
    }
}
