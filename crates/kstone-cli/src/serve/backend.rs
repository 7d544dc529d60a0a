//! What the doors serve: the database, and what is built on it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kstone::{Database, DatabaseOptions};
use kstone_core::Options;
use kstone_core::env::Env;
use kstone_keyspace::Governor;
use kstone_keyspace::erasure::Eraser;
use kstone_platform::Platform;
use kstone_redis::Redis;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::server_file::ServerFileGuard;
use super::settings::Settings;
use super::sockets::Sockets;
use super::{control, keyspace, platform};
use crate::database;
use crate::output::Output;

/// How long work that is under way in threads may take when the server is stopped.
const LAST_WORK_MAX: Duration = Duration::from_secs(10);

/// The database, and what is built on it. The fields that are missing are off.
pub struct Backend {
    pub db: Database,
    /// The rules of the declared keys in force.
    pub governor: Option<Arc<Governor>>,
    /// The keys of Redis. Also without a Redis door, so that keys expire, and because the console
    /// and erasures ask for keys.
    pub redis: Option<Redis>,
    pub eraser: Option<Arc<Eraser>>,
    pub platform: Option<Arc<Platform>>,
    /// Where the commands of the folder's owner reach this process.
    control: Option<control::Socket>,
    /// Where clients find this process.
    notice: Option<ServerFileGuard>,
    /// What is to be said about the declared keys.
    pub lines: Vec<String>,
}

/// Has the runtime do this thread's other tasks on another thread while this one is busy.
fn run_beside_other_tasks(work: &mut dyn FnMut()) {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

impl Backend {
    /// Opens the database, and starts what is built on it.
    pub fn open(
        settings: &Settings,
        sockets: &Sockets,
        runtime: &Runtime,
        out: &mut Output,
    ) -> Result<Backend> {
        let db = open_database(settings)?;
        db.engine().run_long_work_with(run_beside_other_tasks);
        let (governor, lines) = keyspace::begin(settings, &db, out)?;
        let notice = match &settings.dir {
            Some(dir) => Some(
                sockets
                    .notice()
                    .post(dir)
                    .with_context(|| format!("cannot write to {}", dir.display()))?,
            ),
            None => None,
        };
        let redis = if sockets.redis.is_some() {
            Some(Redis::open(&db.with_durability(settings.redis_durability))?)
        } else if governor.is_some() || sockets.console.is_some() {
            Some(Redis::open(&db)?)
        } else {
            // Keys whose time is over go also while nobody can ask for them.
            Redis::open_if_any(&db)?
        };
        let mut backend = Backend {
            db,
            governor,
            redis,
            eraser: None,
            platform: None,
            control: None,
            notice,
            lines,
        };
        backend.start(settings, sockets, runtime, out)?;
        Ok(backend)
    }

    /// Starts what the declared keys make possible: erasure, the platform, the control socket.
    fn start(
        &mut self,
        settings: &Settings,
        sockets: &Sockets,
        runtime: &Runtime,
        out: &mut Output,
    ) -> Result<()> {
        let Some(governor) = &self.governor else { return Ok(()) };
        keyspace::keep_saved(Arc::clone(governor), self.redis.clone(), runtime.handle());
        let Some(redis) = &self.redis else { return Ok(()) };
        // Without it everything else can be served.
        let no_erasure = |error| format!("no erasure while this server runs: {error:#}");
        match control::eraser(settings.dir.as_deref(), &self.db, redis, governor) {
            Ok(eraser) => self.eraser = Some(eraser),
            Err(error) => out.complain(&no_erasure(error)),
        }
        if sockets.console.is_some() || settings.demo {
            let eraser = self.eraser.as_ref();
            self.platform = platform::start(settings, &self.db, redis, governor, eraser, runtime)?;
        }
        if let (Some(dir), Some(eraser)) = (&settings.dir, &self.eraser) {
            let served = (Arc::clone(eraser), Arc::clone(governor), self.platform.clone());
            match control::serve(dir, &self.db, served, runtime.handle()) {
                Ok(socket) => self.control = Some(socket),
                Err(error) => out.complain(&no_erasure(error)),
            }
        }
        Ok(())
    }

    /// Stops what works in the background, ends the threads, and closes the database. Writes that
    /// nobody waited for are on disk afterwards.
    pub fn close(self, runtime: Runtime, redis_threads: Option<Runtime>) -> Result<()> {
        let Backend { db, governor, redis, eraser, platform, control, notice, lines: _ } = self;
        if let Some(platform) = platform {
            let _ = runtime.block_on(async { timeout(LAST_WORK_MAX, platform.stop()).await });
        }
        // Connections that outlived the door's patience may still write until here.
        for runtime in redis_threads.into_iter().chain([runtime]) {
            runtime.shutdown_timeout(LAST_WORK_MAX);
        }
        drop((redis, eraser, control));
        let saved = governor.map_or(Ok(()), |governor| governor.close());
        let synced = db.engine().sync();
        drop(notice);
        drop(db);
        synced.context("the last writes may not be on disk")?;
        saved.context("the last counts of declared keys are not kept")
    }
}

fn open_database(settings: &Settings) -> Result<Database> {
    let mut engine = Options::default();
    if let Some(budget) = settings.memory_budget {
        engine.memory_budget_bytes = budget.0;
    }
    let options = DatabaseOptions { engine, ..DatabaseOptions::default() };
    match &settings.dir {
        Some(dir) => Database::open_with(Env::system(), dir, options)
            .map_err(|error| database::explain(dir, error)),
        None => Ok(Database::open_with(Env::memory(), "memory", options)?),
    }
}
