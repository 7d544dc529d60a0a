//! What is told to Redis after a change, by many at a time.
//!
//! A command by itself costs several times what it costs in a pipeline. Whoever has something to
//! tell waits until everybody else who is ready to run has had a turn, and then all of it goes in one
//! pipeline. When nobody else has anything, that is at once.

use std::sync::Arc;

use bytes::Bytes;
use kstone_core::sync::Mutex;
use kstone_redis::port::Keys;
use tokio::sync::oneshot;

/// So many go together. Fewer: each costs more. More: all of them wait for one thread, and the other
/// processors for them.
const GROUP_MAX: usize = 24;

/// Those who wait to be heard, and whom they tell.
#[derive(Debug, Clone)]
pub(super) struct Telling {
    keys: Arc<dyn Keys>,
    waiting: Arc<Mutex<Vec<Waiting>>>,
}

#[derive(Debug)]
struct Waiting {
    commands: Vec<Vec<Bytes>>,
    told: oneshot::Sender<bool>,
}

impl Telling {
    pub(super) fn new(keys: Arc<dyn Keys>) -> Telling {
        Telling { keys, waiting: Arc::default() }
    }

    /// Carries out commands; answers whether all of them succeeded.
    pub(super) async fn tell(&self, commands: Vec<Vec<Bytes>>) -> bool {
        let (told, answer) = oneshot::channel();
        let (is_first, group) = {
            let mut waiting = self.waiting.lock();
            waiting.push(Waiting { commands, told });
            let is_full = waiting.len() >= GROUP_MAX;
            let group = is_full.then(|| std::mem::take(&mut *waiting));
            (waiting.len() == 1, group)
        };
        // Tasks of their own: the others are heard even if this one is not waited for.
        if let Some(group) = group {
            tokio::spawn(self.clone().tell_group(group));
        } else if is_first {
            tokio::spawn(self.clone().tell_soon());
        }
        answer.await.unwrap_or(false)
    }

    async fn tell_soon(self) {
        tokio::task::yield_now().await;
        let group = std::mem::take(&mut *self.waiting.lock());
        if !group.is_empty() {
            self.tell_group(group).await;
        }
    }

    async fn tell_group(self, group: Vec<Waiting>) {
        let mut commands = Vec::with_capacity(group.len() * 2);
        let mut answers = Vec::with_capacity(group.len());
        for Waiting { commands: more, told } in group {
            answers.push((more.len(), told));
            commands.extend(more);
        }
        let replies = self.keys.pipeline(&commands).await.unwrap_or_default();
        let mut replies = replies.into_iter();
        for (count, told) in answers {
            let succeeded = replies.by_ref().take(count).filter(Result::is_ok).count();
            // Who is gone need not know.
            let _ = told.send(succeeded == count);
        }
    }
}
