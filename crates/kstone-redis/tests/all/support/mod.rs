//! A client in the same process, for tests.

pub mod stalled;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use kstone::{Database, DatabaseOptions};
use kstone_core::env::{Env, ManualClock, MemoryVfs, SeededRandom};
use kstone_redis::{CommandOutcome, Pipeline, Redis, Session, Tree, Value, Waiting};
use kstone_sim::SimDisk;

/// One client of a database of its own.
pub struct Client {
    pub redis: Redis,
    pub session: Session,
}

impl Client {
    /// A client of an empty database in memory.
    pub fn new() -> Client {
        Client::of(&Database::memory().unwrap())
    }

    /// A client of this database.
    pub fn of(database: &Database) -> Client {
        let redis = Redis::open(database).unwrap();
        let session = redis.session();
        Client { redis, session }
    }

    /// A client of an empty database in memory on a machine without threads, where time passes only
    /// when the test says so; background work is done by [`Database::run_background`].
    pub fn with_clock() -> (Client, Database, Arc<ManualClock>) {
        let (env, clock) = machine();
        let (client, database) = Client::on(&env);
        (client, database, clock)
    }

    /// A client of the database that this machine has, which is opened.
    pub fn on(env: &Env) -> (Client, Database) {
        let database = Database::open_with(env.clone(), "db", DatabaseOptions::default()).unwrap();
        let redis = Redis::open(&database).unwrap();
        let session = redis.session();
        (Client { redis, session }, database)
    }

    /// Another client of the same database.
    pub fn another(&self) -> Client {
        Client { redis: self.redis.clone(), session: self.redis.session() }
    }

    /// The reply to a command whose words have no spaces.
    pub fn say(&mut self, line: &str) -> Value {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.session.call(&words)
    }

    /// The reply to a command.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
        self.session.call(&args)
    }

    /// A command that has begun to wait, and that nobody awaits.
    pub fn begin(&mut self, line: &str) -> Box<Waiting> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        match now(self.session.execute(&words, &mut Tree::new())) {
            CommandOutcome::Waiting(waiting) => waiting,
            other => panic!("it does not wait: {other:?}"),
        }
    }

    /// What a command that waits was served, if it was.
    pub fn served(&mut self, waiting: &mut Waiting) -> Option<Value> {
        let mut out = Tree::new();
        let is_served = pin!(waiting.served(&mut self.session, &mut out))
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready();
        is_served.then(|| out.into_value())
    }

    /// How many of these commands were carried out together, and their replies.
    pub fn together(&mut self, pipeline: &Pipeline) -> (usize, Vec<Value>) {
        let mut out = Tree::new();
        let done = now(self.session.execute_together(pipeline, &mut out));
        (done, out.into_values())
    }
}

/// The result of a future that waits for nothing.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits for something"),
    }
}

/// A machine with files in memory and without threads, where time passes only when the test says so.
pub fn machine() -> (Env, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let env = Env {
        vfs: Arc::new(MemoryVfs::new()),
        clock: Arc::clone(&clock) as _,
        random: Arc::new(SeededRandom::new(1)),
        threads: None,
    };
    (env, clock)
}

/// A machine with this disk and without threads, where time stands still.
pub fn machine_with(disk: &SimDisk) -> Env {
    let (env, _) = machine();
    Env { vfs: Arc::new(disk.clone()), ..env }
}

/// A byte string.
pub fn bulk(text: impl AsRef<[u8]>) -> Value {
    Value::bulk(text)
}

/// A list of byte strings.
pub fn bulks(texts: &[&str]) -> Value {
    Value::Array(texts.iter().map(bulk).collect())
}

/// `OK`.
pub fn ok() -> Value {
    Value::Simple("OK".to_owned())
}

/// A whole number.
pub fn int(number: i64) -> Value {
    Value::Integer(number)
}

/// The message of an error.
#[track_caller]
pub fn error(value: Value) -> String {
    match value {
        Value::Error(message) => String::from_utf8_lossy(&message).into_owned(),
        other => panic!("not an error: {other:?}"),
    }
}
