//! What is told to Redis after a change, by many at a time.
//!
//! A command by itself costs several times what it costs in a pipeline. Whoever has something to
//! tell waits until everybody else who is ready to run has had a turn, and then all of it goes in one
//! pipeline, with one entry of the stream for all. When nobody else has anything, that is at once.

use std::sync::Arc;

use bytes::Bytes;
use kstone_core::sync::Mutex;
use kstone_redis::port::Keys;
use tokio::sync::oneshot;

use super::cache::{Told, invalidation};

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
    news: News,
    told: oneshot::Sender<bool>,
}

/// What somebody has to tell.
#[derive(Debug, Default)]
pub(super) struct News {
    /// What other processes must not believe any more.
    pub(super) told: Option<Told>,
    /// What is done to the learner's key.
    pub(super) command: Option<Vec<Bytes>>,
}

impl Telling {
    pub(super) fn new(keys: Arc<dyn Keys>) -> Telling {
        Telling { keys, waiting: Arc::default() }
    }

    /// Tells it; answers whether all of it was heard.
    pub(super) async fn tell(&self, news: News) -> bool {
        let (told, answer) = oneshot::channel();
        let (is_first, group) = {
            let mut waiting = self.waiting.lock();
            waiting.push(Waiting { news, told });
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
        let told: Vec<Told> = group.iter().filter_map(|waiting| waiting.news.told).collect();
        let mut commands = Vec::with_capacity(group.len() + 1);
        commands.extend((!told.is_empty()).then(|| invalidation(&told)));
        let own = commands.len();
        let mut answers = Vec::with_capacity(group.len());
        for Waiting { news, told } in group {
            answers.push((news.told.is_some(), news.command.is_some(), told));
            commands.extend(news.command);
        }
        let replies = self.keys.pipeline(&commands).await.unwrap_or_default();
        let is_heard = own == 0 || replies.first().is_some_and(Result::is_ok);
        let mut replies = replies.into_iter().skip(own);
        for (tells, has_command, answer) in answers {
            let is_done = !has_command || replies.next().is_some_and(|reply| reply.is_ok());
            // Who is gone need not know.
            let _ = answer.send(is_done && (is_heard || !tells));
        }
    }
}
