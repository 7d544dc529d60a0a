//! The doors that are open: what serves them, and what is said and shown about them.

use std::future::Future;

use anyhow::{Context, Result};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::process_status::OpenDoor;
use super::signals::{self, Stop};

/// All open doors.
pub struct Doors {
    stop: Stop,
    serving: JoinSet<Result<()>>,
    /// A line about each, printed at the start of the server.
    pub lines: Vec<String>,
    /// What the console shows of each.
    pub shown: Vec<OpenDoor>,
}

impl Doors {
    /// None yet. They close when `stop` becomes true.
    pub fn new(stop: Stop) -> Doors {
        Doors { stop, serving: JoinSet::new(), lines: Vec::new(), shown: Vec::new() }
    }

    /// Completes when the doors are to be closed.
    pub fn stop_asked(&self) -> impl Future<Output = ()> + Send + use<> {
        signals::asked(self.stop.clone())
    }

    /// Serves one on these threads.
    pub fn open(&mut self, serving: impl Future<Output = ()> + Send + 'static, threads: &Handle) {
        let serving = async {
            serving.await;
            Ok(())
        };
        self.open_fallible(serving, threads);
    }

    /// Serves one that may fail.
    pub fn open_fallible(
        &mut self,
        serving: impl Future<Output = Result<()>> + Send + 'static,
        threads: &Handle,
    ) {
        self.serving.spawn_on(serving, threads);
    }

    /// Waits until all are closed. One that ends by itself has failed; it does not wait to be asked
    /// to, nor for the others.
    pub async fn closed(mut self) -> Result<()> {
        while let Some(ended) = self.serving.join_next().await {
            ended.context("a door ended")??;
        }
        Ok(())
    }
}
