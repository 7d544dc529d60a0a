//! The database: opening it, and what all operations share.

pub(crate) mod locking;
mod reply;

pub use reply::{Reply, ReplyFuture};

use std::path::Path;
use std::sync::Arc;

use kstone_core::env::{Env, JoinHandle};
use kstone_core::{Durability, Engine, Options, Seq};

use crate::background::{self, Background};
use crate::database::locking::Changed;
use crate::error::{Error, Result};
use crate::expr::ExpressionCache;
use crate::side::SideTables;
use crate::stream::{self, StreamClock};
use crate::table::catalog::Catalog;
use crate::table::live::Table;
use crate::write_policy::ActivePolicy;

/// How many different expressions are kept parsed. An application has some dozens; each takes
/// about a kilobyte.
const EXPRESSIONS_MAX: usize = 1024;

/// How a database is opened.
#[derive(Debug, Clone, Default)]
pub struct DatabaseOptions {
    /// The engine's options: memory budget, compression, threads.
    pub engine: Options,
    /// What [`Database`] promises before it answers; [`Database::with_durability`] gives a handle
    /// with another promise.
    pub durability: Durability,
}

/// A KeystoneDB database in this process.
///
/// Cloning is cheap and gives another handle to the same database. All methods work on the calling
/// thread, and mostly take microseconds. What can take longer:
/// - Waiting for a [`Reply`] to a write with [`Durability::Sync`] waits for the disk. On an async
///   executor, `.await` it instead: no thread waits then.
/// - A write waits, before there is a [`Reply`], while writers are ahead of the flushes and
///   compactions: up to seconds on a slow disk. [`Engine::has_room`] tells whether it would.
/// - Reading what is not in memory reads files.
/// - Everything that creates, changes or deletes a table waits for the disk.
///
/// So on an async executor, call them on a blocking thread where one of these is to be expected.
///
/// The database is closed when the last handle is dropped.
#[derive(Debug, Clone)]
pub struct Database {
    handle: Arc<Handle>,
    durability: Durability,
    /// Whether it may write the database's own tables.
    is_internal: bool,
}

/// What the last handle to go closes.
#[derive(Debug)]
struct Handle {
    inner: Arc<Inner>,
    /// Whether the database is closed with it.
    is_owner: bool,
    thread: Option<JoinHandle>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.is_owner {
            return;
        }
        self.inner.background.stop();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
        // It may hold an internal handle, and so the database itself.
        self.inner.policy.end();
    }
}

/// What the handles share with the background thread.
#[derive(Debug)]
pub(crate) struct Inner {
    pub engine: Engine,
    pub catalog: Catalog,
    pub expressions: ExpressionCache,
    pub streams: StreamClock,
    pub background: Background,
    pub env: Env,
    /// What the engine was opened with.
    pub options: Options,
    pub sides: SideTables,
    pub policy: ActivePolicy,
}

impl Database {
    /// Opens the database in a folder, or makes one.
    pub fn open(dir: impl AsRef<Path>) -> Result<Database> {
        Self::open_with(Env::system(), dir, DatabaseOptions::default())
    }

    /// A database that lives in memory and is gone with its last handle.
    pub fn memory() -> Result<Database> {
        Self::open_with(Env::memory(), "memory", DatabaseOptions::default())
    }

    /// Opens a database with options, on this or on a simulated machine.
    pub fn open_with(
        env: Env,
        dir: impl AsRef<Path>,
        options: DatabaseOptions,
    ) -> Result<Database> {
        let engine = Engine::open_with(env.clone(), dir, options.engine.clone())?;
        let catalog = Catalog::load(&engine)?;
        let last_number = stream::last_number(&engine, &catalog)?;
        let inner = Arc::new(Inner {
            streams: StreamClock::new(last_number, engine.now_ms()),
            expressions: ExpressionCache::new(EXPRESSIONS_MAX),
            background: Background::default(),
            sides: SideTables::default(),
            policy: ActivePolicy::default(),
            catalog,
            engine,
            env,
            options: options.engine,
        });
        let thread = background::start(&inner)?;
        let handle = Arc::new(Handle { inner, is_owner: true, thread });
        Ok(Database { handle, durability: options.durability, is_internal: false })
    }

    /// The handle that the background thread works with: closing is not its business, and nobody
    /// waits for its commits.
    pub(crate) fn background(inner: Arc<Inner>) -> Database {
        let handle = Arc::new(Handle { inner, is_owner: false, thread: None });
        Database { handle, durability: Durability::Os, is_internal: true }
    }

    /// A handle for the layers of this product above the database: it may write the tables whose
    /// names begin with `kstone.`, which others only read.
    ///
    /// It does not keep the database open: a policy may hold one. When the last ordinary handle
    /// goes, the background thread ends and the policy is let go of.
    #[must_use]
    pub fn internal(&self) -> Database {
        let inner = Arc::clone(&self.handle.inner);
        let handle = Arc::new(Handle { inner, is_owner: false, thread: None });
        Database { handle, durability: self.durability, is_internal: true }
    }

    /// Whether this handle may write the database's own tables.
    pub(crate) fn is_internal(&self) -> bool {
        self.is_internal
    }

    /// A handle to the same database that promises something else before it answers.
    #[must_use]
    pub fn with_durability(&self, durability: Durability) -> Database {
        Database { handle: Arc::clone(&self.handle), durability, is_internal: self.is_internal }
    }

    /// What this handle promises before it answers.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The engine underneath, for statistics, checkpoints and checks.
    pub fn engine(&self) -> &Engine {
        &self.inner().engine
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.handle.inner
    }

    /// The table with this name, for an operation on items.
    pub(crate) fn table_for_items(&self, name: &str) -> Result<Arc<Table>> {
        self.inner()
            .catalog
            .get(name)
            .ok_or_else(|| Error::NotFound("Requested resource not found".to_owned()))
    }

    /// The table with this name, for a write to its items.
    pub(crate) fn table_to_write(&self, name: &str) -> Result<Arc<Table>> {
        self.check_may_write(name)?;
        self.table_for_items(name)
    }

    /// An answer that rests on everything up to `seq`.
    pub(crate) fn reply<T>(&self, result: Result<T>, seq: Seq) -> Reply<T> {
        let engine = self.engine();
        let owed = self.durability == Durability::Sync && engine.durable_seq() < seq;
        Reply::new(result, owed.then(|| engine.durable(seq)))
    }
}

impl Database {
    /// Does something to the table with this name, again when the table was changed meanwhile.
    pub(crate) fn on_table<T>(
        &self,
        name: &str,
        mut work: impl FnMut(&Table) -> Result<Option<Changed<T>>>,
    ) -> Result<Changed<T>> {
        loop {
            let table = self.table_to_write(name)?;
            if let Some(changed) = work(&table)? {
                return Ok(changed);
            }
        }
    }

    /// The answer to a read of a table or of one of its indexes, again when an index was dropped
    /// after it was looked up: the table is still there, and says that it has no such index.
    pub(crate) fn reply_read<T>(
        &self,
        table: &str,
        read: impl Fn() -> Result<(T, Seq)>,
    ) -> Reply<T> {
        loop {
            match read() {
                Ok((output, seq)) => return self.reply(Ok(output), seq),
                Err(Error::NotFound(_)) if self.inner().catalog.get(table).is_some() => {}
                Err(error) => return Reply::ready(Err(error)),
            }
        }
    }
}

// Every thread of a program works with the same handle, or with a clone of it.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Database>();
};
