//! The server: what all clients share. The keys and their locks, configuration, statistics, and
//! everything through which one client reaches another.

pub(crate) mod acl;
pub(crate) mod blocked;
pub(crate) mod clients;
pub(crate) mod config;
pub(crate) mod cursors;
mod governed;
pub(crate) mod hot_keys;
pub(crate) mod latency;
pub(crate) mod locks;
mod monitor;
mod notify;
pub(crate) mod pause;
pub(crate) mod process;
pub(crate) mod pubsub;
mod reclaim;
pub(crate) mod remote_commands;
pub(crate) mod slowlog;
pub(crate) mod stats;
pub(crate) mod survey;
pub(crate) mod task_handoff;
pub(crate) mod tracking;
pub(crate) mod watches;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use kstone::Database;
use kstone::policy::WritePolicy;
use kstone_core::env::{Random, SeededRandom, SystemRandom};
use kstone_core::sync::Mutex;
use kstone_core::{Durability, Engine};

use crate::commands::scripting::Scripts;
use crate::fault::Result;
use crate::store::databases::{Databases, recent_bytes_max};
use crate::store::{Committed, Listeners, PolicyRef, Txn};
use acl::Acl;
use blocked::{Blocked, Ready};
use clients::{Clients, Peer};
use config::Config;
use cursors::Cursors;
use governed::PolicyReport;
use hot_keys::HotKeys;
use latency::Latency;
use locks::Locks;
use monitor::Monitors;
use pause::{Pause, Paused};
use pubsub::{DeliveryLimit, Pubsub};
use remote_commands::RunRemoteCommands;
use slowlog::Slowlog;
use stats::Stats;
use task_handoff::TaskHandoff;
use tracking::{Delivery, Tracking};
use watches::Watches;

/// No server works with less memory than this.
const MEMORY_BYTES_MIN: i64 = 1 << 20;

/// Ends the process, or whatever the server runs in.
pub(crate) struct ShutdownHook(pub(crate) Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for ShutdownHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stop")
    }
}

/// What scripts use, for INFO.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ScriptUsage {
    /// What Lua itself has allocated.
    pub(crate) lua_bytes: u64,
    /// The texts of the scripts that are kept.
    pub(crate) script_bytes: u64,
    pub(crate) scripts: usize,
    pub(crate) functions: usize,
    pub(crate) libraries: usize,
}

/// The state that all sessions of a database share.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) database: Database,
    pub(crate) engine: Engine,
    pub(crate) databases: Databases,
    pub(crate) locks: Locks,
    pub(crate) task_handoff: TaskHandoff,
    pub(crate) blocked: Blocked,
    pub(crate) watches: Watches,
    pub(crate) clients: Clients,
    pub(crate) config: Config,
    pub(crate) pubsub: Pubsub,
    pub(crate) stats: Stats,
    pub(crate) acl: Acl,
    pub(crate) tracking: Tracking,
    pub(crate) monitors: Monitors,
    pub(crate) slowlog: Slowlog,
    pub(crate) latency: Latency,
    pub(crate) pause: Pause,
    /// Keys kept in memory in a quicker form.
    pub(crate) hot: HotKeys,
    pub(crate) durability: Durability,
    /// Positions of scans.
    pub(crate) cursors: Cursors,
    /// For random members and keys, and where cursors begin.
    pub(crate) random: SeededRandom,
    next_client: AtomicU64,
    /// Changes since the server started, as Redis counts them.
    pub(crate) dirty: AtomicU64,
    /// When the server started, in milliseconds since 1970.
    pub(crate) started_ms: u64,
    /// A random id of this run of the server.
    pub(crate) run_id: String,
    /// When SAVE was asked for last, in milliseconds since 1970.
    pub(crate) saved_ms: AtomicU64,
    /// Scripts and functions.
    pub(crate) scripts: Scripts,
    /// What SHUTDOWN does.
    pub(crate) shutdown_hook: Mutex<Option<ShutdownHook>>,
    /// How other servers are reached, if they can be.
    pub(crate) run_remote_commands: OnceLock<RunRemoteCommands>,
}

impl Server {
    /// The server of the database: the one that is there, or a new one.
    pub(crate) fn open(database: &Database) -> kstone::Result<Arc<Server>> {
        let server = database.open_side("redis", || Server::start(database))?;
        if server.durability != database.durability() {
            let message = "the keys are open already, with another promise of durability";
            return Err(kstone::Error::InUse(message.to_owned()));
        }
        Ok(server)
    }

    fn start(database: &Database) -> kstone::Result<Arc<Server>> {
        let server = Arc::new(Server {
            engine: database.engine().clone(),
            databases: Databases::open(database)?,
            database: database.clone(),
            locks: Locks::new(),
            task_handoff: TaskHandoff::default(),
            blocked: Blocked::default(),
            watches: Watches::default(),
            clients: Clients::default(),
            config: Config::default(),
            pubsub: Pubsub::default(),
            stats: Stats::default(),
            acl: Acl::default(),
            tracking: Tracking::default(),
            monitors: Monitors::default(),
            slowlog: Slowlog::default(),
            latency: Latency::default(),
            pause: Pause::default(),
            hot: HotKeys::for_engine(database.engine()),
            durability: database.durability(),
            cursors: Cursors::new(&SystemRandom),
            random: SeededRandom::new(SystemRandom.next_u64()),
            next_client: AtomicU64::new(1),
            dirty: AtomicU64::new(0),
            started_ms: database.engine().now_ms(),
            run_id: process::run_id(),
            saved_ms: AtomicU64::new(database.engine().now_ms()),
            scripts: Scripts::default(),
            shutdown_hook: Mutex::default(),
            run_remote_commands: OnceLock::new(),
        });
        let fsync = match server.durability {
            Durability::Sync => "always",
            Durability::Interval => "everysec",
            Durability::Os => "no",
        };
        server.config.note(config::APPENDFSYNC, fsync);
        server.config.note(config::DIR, &server.engine.path().to_string_lossy());
        reclaim::register(&server);
        server.scripts.open(&server);
        Ok(server)
    }

    /// A number for another client.
    pub(crate) fn client_id(&self) -> u64 {
        self.next_client.fetch_add(1, Ordering::Relaxed)
    }

    /// How many clients wait: for a key, or for the end of a pause.
    pub(crate) fn blocked_clients(&self) -> usize {
        self.blocked.count() + self.pause.waiting()
    }

    /// Whether `maxmemory` leaves less than the server can work with. It bounds what is kept in
    /// memory of the data, never the data.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        (1..MEMORY_BYTES_MIN).contains(&self.config.number(config::MAXMEMORY))
    }

    /// Whether writes are to be refused because there are no replicas.
    pub(crate) fn lacks_replicas(&self) -> bool {
        self.config.number(config::MIN_REPLICAS_TO_WRITE) > 0
    }

    /// CONFIG SET: all of it or nothing.
    pub(crate) fn configure(&self, pairs: &[&[u8]]) -> Result<()> {
        let changed = self.config.set(pairs)?;
        if changed.contains(&config::REQUIREPASS) {
            self.acl.require_password(&self.config.text(config::REQUIREPASS));
        }
        if changed.contains(&config::MAXMEMORY) {
            self.bound_caches();
        }
        if changed.contains(&config::TRACKING_KEYS_MAX) {
            let keys_max = self.config.size(config::TRACKING_KEYS_MAX);
            let keys_max = usize::try_from(keys_max).unwrap_or(usize::MAX);
            self.tracking.remember(0, std::iter::empty(), keys_max, self.delivery());
        }
        Ok(())
    }

    /// Limits what is cached of keys beside the engine's own caches to `maxmemory`, if that is set.
    fn bound_caches(&self) {
        let (recent, hot) = (recent_bytes_max(&self.engine), HotKeys::share_of(&self.engine));
        let third = match usize::try_from(self.config.number(config::MAXMEMORY)) {
            Ok(0) | Err(_) => usize::MAX,
            Ok(most) => most / 3,
        };
        self.databases.heads.set_bytes_max(recent.min(third));
        self.databases.members.set_bytes_max(recent.min(third));
        self.hot.set_bytes_max(hot.min(third));
    }

    /// What delivering an invalidation needs.
    pub(crate) fn delivery(&self) -> Delivery<'_> {
        Delivery {
            clients: &self.clients,
            pubsub: &self.pubsub,
            delivery_limit: self.delivery_limit(false),
        }
    }

    /// A client as CLIENT LIST shows it.
    pub(crate) fn show_client(&self, peer: &Peer) -> String {
        peer.show(self.engine.monotonic(), peer.command().map_or("NULL", |command| command.name))
    }

    /// What scripts use.
    pub(crate) fn script_usage(&self) -> ScriptUsage {
        self.scripts.usage()
    }

    /// A transaction in a logical database. The caller has locked what it will touch.
    pub(crate) fn begin(&self, db: u8) -> Txn<'_> {
        let mut txn = self.begin_under(None, 0, db);
        if let Some(policy) = self.database.policy() {
            txn.govern_by(PolicyRef::Own(policy), 0);
        }
        txn
    }

    /// The same for a caller that knows the policy in force and its number.
    pub(crate) fn begin_under<'s>(
        &'s self,
        policy: Option<&'s dyn WritePolicy>,
        policy_number: u64,
        db: u8,
    ) -> Txn<'s> {
        let mut txn = Txn::new(&self.engine, &self.databases, &self.hot, db);
        txn.set_task_handoff(&self.task_handoff);
        txn.set_listeners(Listeners {
            changes: !self.watches.is_idle() || self.tracking.count() > 0,
            events: self.config.number(config::NOTIFY_KEYSPACE_EVENTS) != 0
                && !self.pubsub.is_idle(),
            waits: self.blocked.count() > 0,
        });
        if let Some(policy) = policy {
            txn.govern_by(PolicyRef::Lent(policy), policy_number);
        }
        txn
    }

    /// Commits, and notifies watchers, subscribers and caching clients. Returns the number that has
    /// to be durable before a reply that shows the commit is sent, and the keys that it wrote and
    /// clients are blocked on.
    pub(crate) fn commit(&self, mut txn: Txn<'_>) -> Result<(u64, Ready)> {
        let changes_libraries = txn.changes_libraries();
        // What is only removed because its time is over is nobody's write.
        if !txn.is_governed() && txn.has_counted_changes() {
            self.database.note_unruled()?;
        }
        let mut report = PolicyReport::default();
        let committed = match self.check_transaction(&mut txn, &mut report) {
            Ok(()) => txn.commit(self.durability),
            Err(fault) => Err(fault),
        };
        let committed = committed.inspect_err(|_| {
            if changes_libraries {
                self.scripts.forget_libraries();
            }
        })?;
        report.send();
        self.dirty.fetch_add(committed.dirty, Ordering::Relaxed);
        if committed.expired > 0 {
            self.stats.expired_keys.fetch_add(committed.expired, Ordering::Relaxed);
        }
        self.notify_listeners(&committed);
        let mut ready = committed.ready;
        for db in committed.flushed {
            ready.extend(self.blocked.awaited(db).into_iter().map(|key| (db, key)));
        }
        if !ready.is_empty() {
            ready.retain(|(db, key)| self.blocked.is_awaited(*db, std::iter::once(key.as_slice())));
        }
        Ok((committed.seq, ready))
    }

    /// Commits, or ends a transaction of commands that cannot write
    /// ([`end_reading`](Server::end_reading)).
    pub(crate) fn end(
        &self,
        txn: Txn<'_>,
        only_reads: impl FnOnce() -> bool,
    ) -> Result<(u64, Ready)> {
        match self.pause.is_possible() && only_reads() {
            true => self.end_reading(txn),
            false => self.commit(txn),
        }
    }

    /// Ends a transaction that only looked at keys. Expired ones are removed, but not while clients
    /// are paused: then they stay stored, and are only hidden.
    pub(crate) fn end_reading(&self, txn: Txn<'_>) -> Result<(u64, Ready)> {
        if txn.is_clean() || !self.is_paused() {
            return self.commit(txn);
        }
        Ok((self.engine.applied_seq(), Vec::new()))
    }

    /// Whether any commands have to wait because of CLIENT PAUSE.
    pub(crate) fn is_paused(&self) -> bool {
        self.pause.is_possible() && self.pause.now(self.engine.now_ms()).0 != Paused::Nothing
    }

    fn notify_listeners(&self, committed: &Committed) {
        self.watches.touch(&committed.touched, &committed.flushed);
        self.notify(&committed.events);
        if self.tracking.count() > 0 {
            if committed.flushed.is_empty() {
                self.tracking.changed(&committed.touched, committed.origin, self.delivery());
            } else {
                self.tracking.flushed(self.delivery());
            }
        }
    }

    /// How much a client, or a subscriber, may leave unread.
    pub(crate) fn delivery_limit(&self, is_subscribed: bool) -> DeliveryLimit {
        DeliveryLimit {
            limit: self.config.output_limit(is_subscribed),
            now_ms: self.engine.now_ms(),
        }
    }

    /// Sends a message to everybody who listens; returns to how many.
    pub(crate) fn publish(&self, channel: &[u8], message: &[u8]) -> usize {
        if self.pubsub.is_idle() {
            return 0;
        }
        self.pubsub.publish(channel, message, self.delivery_limit(true))
    }
}

impl From<crate::fault::Fault> for crate::reply::Value {
    fn from(fault: crate::fault::Fault) -> Self {
        crate::reply::Value::Error(fault.message().as_bytes().to_vec())
    }
}
