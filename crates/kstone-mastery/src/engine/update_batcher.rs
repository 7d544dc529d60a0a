//! Batches concurrent cache updates into one Redis pipeline.
//!
//! A command by itself costs several times what it costs in a pipeline. An update waits until every
//! other task that is ready to run has had a turn; then all pending updates go in one pipeline, with
//! one stream entry for all invalidations. Without other updates that is at once.
//!
//! Called by the cache; calls the port to Redis's keys, in tasks of the runtime that it is polled by.

use std::sync::Arc;

use bytes::Bytes;
use kstone_core::sync::Mutex;
use kstone_ports::keys::Keys;
use tokio::sync::oneshot;

use super::cache::{Invalidation, invalidation_command};

/// The most updates of one batch. Fewer: each costs more. More: all of them wait for one thread, and
/// the other processors for them.
const BATCH_MAX: usize = 24;

/// Collects updates and sends them in batches.
#[derive(Debug, Clone)]
pub(super) struct UpdateBatcher {
    keys: Arc<dyn Keys>,
    pending: Arc<Mutex<Vec<PendingUpdate>>>,
}

/// An update whose sender waits for the result.
#[derive(Debug)]
struct PendingUpdate {
    update: CacheUpdate,
    is_done: oneshot::Sender<bool>,
}

/// What a change of one learner does to Redis.
#[derive(Debug, Default)]
pub(super) struct CacheUpdate {
    /// Makes other processes drop what they have cached.
    pub(super) invalidation: Option<Invalidation>,
    /// Writes or deletes the learner's own key.
    pub(super) command: Option<Vec<Bytes>>,
}

impl UpdateBatcher {
    pub(super) fn new(keys: Arc<dyn Keys>) -> UpdateBatcher {
        UpdateBatcher { keys, pending: Arc::default() }
    }

    /// Sends an update with the next batch; answers whether Redis carried out all of it.
    pub(super) async fn send(&self, update: CacheUpdate) -> bool {
        let (is_done, answer) = oneshot::channel();
        let (is_first, batch) = {
            let mut pending = self.pending.lock();
            pending.push(PendingUpdate { update, is_done });
            let is_full = pending.len() >= BATCH_MAX;
            let batch = is_full.then(|| std::mem::take(&mut *pending));
            (pending.len() == 1, batch)
        };
        // Tasks of their own: the others' updates are sent even if this caller goes away.
        if let Some(batch) = batch {
            tokio::spawn(self.clone().send_batch(batch));
        } else if is_first {
            tokio::spawn(PendingSender { batcher: Some(self.clone()) }.run());
        }
        answer.await.unwrap_or(false)
    }

    async fn send_batch(self, batch: Vec<PendingUpdate>) {
        let invalidations: Vec<Invalidation> =
            batch.iter().filter_map(|it| it.update.invalidation).collect();
        let mut commands = Vec::with_capacity(batch.len() + 1);
        commands.extend((!invalidations.is_empty()).then(|| invalidation_command(&invalidations)));
        let own = commands.len();
        let mut senders = Vec::with_capacity(batch.len());
        for PendingUpdate { update, is_done } in batch {
            senders.push((update.invalidation.is_some(), update.command.is_some(), is_done));
            commands.extend(update.command);
        }
        let replies = self.keys.pipeline(&commands).await.unwrap_or_default();
        let is_invalidated = own == 0 || replies.first().is_some_and(Result::is_ok);
        let mut replies = replies.into_iter().skip(own);
        for (invalidates, has_command, sender) in senders {
            let is_done = !has_command || replies.next().is_some_and(|reply| reply.is_ok());
            // A caller that has gone away need not know.
            let _ = sender.send(is_done && (is_invalidated || !invalidates));
        }
    }
}

/// The task that sends what is pending, started with the first pending update.
///
/// If its runtime ends before it has run, no later update would be the first again: so dropping it
/// clears the pending updates, whose callers see that they failed.
#[derive(Debug)]
struct PendingSender {
    batcher: Option<UpdateBatcher>,
}

impl PendingSender {
    async fn run(mut self) {
        tokio::task::yield_now().await;
        let Some(batcher) = self.batcher.take() else { return };
        let batch = std::mem::take(&mut *batcher.pending.lock());
        if !batch.is_empty() {
            batcher.send_batch(batch).await;
        }
    }
}

impl Drop for PendingSender {
    fn drop(&mut self) {
        if let Some(batcher) = &self.batcher {
            batcher.pending.lock().clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kstone::{Database, DatabaseOptions};
    use kstone_core::env::{Env, ManualClock, SeededRandom};
    use kstone_redis::Redis;
    use kstone_sim::SimDisk;

    use super::*;

    #[test]
    fn updates_are_sent_after_a_runtime_ended_in_the_middle() {
        let env = Env {
            vfs: Arc::new(SimDisk::new(1)),
            clock: Arc::new(ManualClock::at(1_768_386_600_000)),
            random: Arc::new(SeededRandom::new(1)),
            threads: None,
        };
        let db = Database::open_with(env, "db", DatabaseOptions::default()).unwrap();
        let batcher = UpdateBatcher::new(Arc::new(Redis::open(&db).unwrap().keys(0).unwrap()));
        let update = || CacheUpdate {
            invalidation: None,
            command: Some([&b"SET"[..], b"k", b"v"].map(Bytes::from_static).to_vec()),
        };
        let runtime =
            || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let first = runtime();
        first.block_on(async {
            // Polled once, and then no more: its task has not run.
            let mut sent = Box::pin(batcher.send(update()));
            let is_ready = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(sent.as_mut().poll(cx).is_ready())
            });
            assert!(!is_ready.await);
        });
        drop(first);
        let second = runtime();
        let is_done = second.block_on(async {
            tokio::time::timeout(Duration::from_secs(60), batcher.send(update())).await
        });
        assert_eq!(is_done, Ok(true));
    }
}
