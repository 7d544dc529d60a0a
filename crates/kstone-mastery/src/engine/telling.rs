//! What is told to Redis after a change, by many at a time.
//!
//! A command by itself costs several times what it costs in a pipeline. Whoever has something to
//! tell waits until everybody else who is ready to run has had a turn, and then all of it goes in one
//! pipeline, with one entry of the stream for all. When nobody else has anything, that is at once.
//!
//! Called by the cache; calls the port to Redis's keys, in tasks of the runtime that it is polled by.

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
            tokio::spawn(Lead { telling: Some(self.clone()) }.tell_soon());
        }
        answer.await.unwrap_or(false)
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

/// The task that tells what the first who waits, and those after, have to tell.
///
/// If it ends before that, with the runtime that it is of, nobody would ever be first again: those who
/// wait learn that they were not heard.
#[derive(Debug)]
struct Lead {
    telling: Option<Telling>,
}

impl Lead {
    async fn tell_soon(mut self) {
        tokio::task::yield_now().await;
        let Some(telling) = self.telling.take() else { return };
        let group = std::mem::take(&mut *telling.waiting.lock());
        if !group.is_empty() {
            telling.tell_group(group).await;
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        if let Some(telling) = &self.telling {
            telling.waiting.lock().clear();
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
    fn who_tells_is_heard_after_a_runtime_ended_in_the_middle() {
        let env = Env {
            vfs: Arc::new(SimDisk::new(1)),
            clock: Arc::new(ManualClock::at(1_768_386_600_000)),
            random: Arc::new(SeededRandom::new(1)),
            threads: None,
        };
        let db = Database::open_with(env, "db", DatabaseOptions::default()).unwrap();
        let telling = Telling::new(Arc::new(Redis::open(&db).unwrap().keys(0).unwrap()));
        let news = || News {
            told: None,
            command: Some([&b"SET"[..], b"k", b"v"].map(Bytes::from_static).to_vec()),
        };
        let runtime =
            || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let first = runtime();
        first.block_on(async {
            // Asked once, and then no more: its task has not run.
            let mut asked = Box::pin(telling.tell(news()));
            let is_ready = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(asked.as_mut().poll(cx).is_ready())
            });
            assert!(!is_ready.await);
        });
        drop(first);
        let second = runtime();
        let told = second.block_on(async {
            tokio::time::timeout(Duration::from_secs(60), telling.tell(news())).await
        });
        assert_eq!(told, Ok(true));
    }
}
