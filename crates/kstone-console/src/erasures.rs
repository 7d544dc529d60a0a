//! Erasures of persons that run in the background.
//!
//! That somebody is to be erased is on the disk before the request is answered; what follows may take
//! minutes, and after a restart the server goes on with it. Only its progress is in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kstone_core::sync::Mutex;
use kstone_keyspace::Subject;
use kstone_keyspace::erasure::{Eraser, ErasureError, ErasureRecord, Progress};
use kstone_mastery::engine::MasteryEngine;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// How long to wait before asking again when somebody else erases, by the command line perhaps.
const AGAIN: Duration = Duration::from_millis(200);
/// Of so many that failed it is remembered why.
const FAILURES_MAX: usize = 1000;

/// Erases persons in the background.
#[derive(Debug)]
pub struct Erasures {
    eraser: Arc<Eraser>,
    /// It has learners at hand, of whom it must know no more than what is stored.
    engine: Option<MasteryEngine>,
    /// One is asked for, and one is carried out, at a time.
    asking: tokio::sync::Mutex<()>,
    carrying_out: tokio::sync::Mutex<()>,
    progress: Mutex<HashMap<String, ErasureProgress>>,
}

/// How far an erasure of this process is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ErasureProgress {
    /// What is being done.
    pub stage: Stage,
    /// Places found so far that hold data of the person.
    pub places: u64,
    /// Checkpoints that are cleared, once that has begun.
    pub checkpoints_done: u64,
    /// Checkpoints that there are to clear.
    pub checkpoints: u64,
    /// Why it could not go on. It goes on when the server starts again, or when it is asked for again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What an erasure is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It waits for another one.
    Waiting,
    /// Writes about the person are being refused, and those under way waited for.
    Refusing,
    /// What was found is being deleted.
    Deleting,
    /// Files are being rewritten without it.
    Purging,
    /// Checkpoints are being cleared.
    Checkpoints,
    /// The receipt is being written.
    Sealing,
    /// It could not go on.
    Stopped,
}

impl ErasureProgress {
    const WAITING: ErasureProgress = ErasureProgress {
        stage: Stage::Waiting,
        places: 0,
        checkpoints_done: 0,
        checkpoints: 0,
        problem: None,
    };

    fn update(&mut self, progress: Progress) {
        self.stage = match progress {
            Progress::Refusing => Stage::Refusing,
            Progress::Found(places) => {
                self.places = places;
                Stage::Deleting
            }
            Progress::Deleting => Stage::Deleting,
            Progress::Purging => Stage::Purging,
            Progress::Checkpoint(done, all) => {
                (self.checkpoints_done, self.checkpoints) = (done, all);
                Stage::Checkpoints
            }
            Progress::Sealing => Stage::Sealing,
        };
    }
}

impl Erasures {
    /// Erasures by this eraser, which this engine is notified of.
    pub fn new(eraser: Arc<Eraser>, engine: Option<MasteryEngine>) -> Arc<Erasures> {
        Arc::new(Erasures {
            eraser,
            engine,
            asking: tokio::sync::Mutex::default(),
            carrying_out: tokio::sync::Mutex::default(),
            progress: Mutex::default(),
        })
    }

    /// What erases persons.
    pub fn eraser(&self) -> &Arc<Eraser> {
        &self.eraser
    }

    /// Remembers that a person is to be erased, begins with it, and answers with the erasure's id.
    ///
    /// # Errors
    /// If it could not be remembered.
    pub async fn begin(self: &Arc<Self>, subject: &Subject) -> Result<String, ErasureError> {
        let _one_at_a_time = self.asking.lock().await;
        let id = self.eraser.ask(subject).await?;
        let is_under_way = {
            let mut progress = self.progress.lock();
            let known = progress.get(&id).is_some_and(|it| it.stage != Stage::Stopped);
            if !known {
                progress.insert(id.clone(), ErasureProgress::WAITING);
            }
            known
        };
        if !is_under_way {
            let (erasures, id, subject) = (Arc::clone(self), id.clone(), subject.clone());
            tokio::spawn(async move { erasures.carry_out(id, &subject).await });
        }
        Ok(id)
    }

    /// How far an erasure is that this process carries out; `None` of others, and of those that are
    /// over.
    pub fn progress(&self, id: &str) -> Option<ErasureProgress> {
        self.progress.lock().get(id).cloned()
    }

    /// One of the erasures that there were.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn find(&self, id: &str) -> Result<Option<ErasureRecord>, ErasureError> {
        self.eraser.erasure(id).await
    }

    /// All erasures that there were, the earliest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn all(&self) -> Result<Vec<ErasureRecord>, ErasureError> {
        self.eraser.erasures().await
    }

    /// Has no process keep the person in memory, under the names that are likely.
    async fn forget(&self, subject: &Subject) {
        let Some(engine) = &self.engine else { return };
        let id = &subject.id;
        let mut names = vec![id.clone(), format!("student_{id}")];
        if let Some(tenant) = &subject.tenant {
            names.extend([format!("{tenant}_{id}"), format!("{tenant}_student_{id}")]);
        }
        for name in names {
            // What is no learner's id is nobody who could be there.
            let _ = engine.forget(&name).await;
        }
    }

    async fn carry_out(self: Arc<Self>, id: String, subject: &Subject) {
        let _one_at_a_time = self.carrying_out.lock().await;
        let runtime = Handle::current();
        loop {
            self.forget(subject).await;
            let (erasures, runtime, its) = (Arc::clone(&self), runtime.clone(), id.clone());
            // Rewriting files takes a thread for as long as it takes.
            let work = spawn_blocking(move || {
                let tell = |progress| {
                    if let Some(known) = erasures.progress.lock().get_mut(&its) {
                        known.update(progress);
                    }
                };
                runtime.block_on(erasures.eraser.carry_out(&its, &tell))
            });
            let worked = work.await;
            // Again: what was read before the erasure began may have been remembered after it did. Who
            // is meant in all schools may be known here under the name of any.
            if let Some(engine) = &self.engine {
                engine.forget_all();
            }
            self.forget(subject).await;
            let problem = match worked {
                Ok(Ok(_receipt)) => {
                    self.progress.lock().remove(&id);
                    return;
                }
                Ok(Err(ErasureError::Running)) => {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it ended in the middle".to_owned(),
            };
            let mut progress = self.progress.lock();
            if progress.len() > FAILURES_MAX {
                progress.retain(|_, it| it.stage != Stage::Stopped);
            }
            let stopped = progress.entry(id).or_insert(ErasureProgress::WAITING);
            (stopped.stage, stopped.problem) = (Stage::Stopped, Some(problem));
            return;
        }
    }
}
