//! A school on a simulated disk, with one person who is going to be erased and others who are not.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use kstone::ops::{KeyCondition, Query};
use kstone::table::{KeyAttribute, KeySchema, StreamView, TableSpec};
use kstone::{Database, DatabaseOptions, Durability, Item, placeholders};
use kstone_core::env::{Env, ManualClock, SeededRandom};
use kstone_core::{Compression, Options, find_bytes};
use kstone_keyspace::erasure::{Eraser, ReceiptKey, SignedReceipt};
use kstone_keyspace::{
    Catalogue, Governor, GovernorOptions, Keyspace, Recount, Subject, UnknownKeys, shipped,
};
use kstone_ports::keys::Keys;
use kstone_redis::port::LocalKeys;
use kstone_redis::{Redis, Session, Value as Reply};
use kstone_sim::{CrashPolicy, SimDisk};

pub const START_MS: u64 = 1_768_386_600_000;
/// The id of the person. It is in every key and value of theirs, and nowhere else.
pub const SECRET: &str = "SECRETPERSON";

/// What is stored about somebody's mastery.
pub const MASTERY: &str = r#"{"student_id":"SECRETPERSON","mastery_score":0.5,"level":"expert","components":{},"timestamp":"2026-01-14T10:30:00Z"}"#;

/// A database with everything that erasing takes.
pub struct Fixture {
    pub db: Database,
    pub redis: Redis,
    pub keys: LocalKeys,
    pub governor: Arc<Governor>,
    pub eraser: Eraser,
    pub clock: Arc<ManualClock>,
}

/// The answer of something that waits for nothing.
pub fn now<T>(answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits for something"),
    }
}

/// The keyspace of one catalogue.
pub fn keyspace_of(catalogue: &str) -> Keyspace {
    let catalogue = Catalogue::parse("test.toml", catalogue).unwrap_or_else(|it| panic!("{it}"));
    Keyspace::new(vec![catalogue]).unwrap_or_else(|it| panic!("{it}"))
}

/// A pattern of strings in Redis, as a catalogue declares it.
pub fn redis_pattern(name: &str, pattern: &str) -> String {
    format!(
        "[pattern.{name}]\npattern = \"{pattern}\"\nstore = \"redis\"\ntype = \"string\"\n\
         ttl = \"none\"\nsubject = \"none\"\ndescription = \"c\"\n"
    )
}

/// A machine without threads whose files are in memory.
pub fn memory_env(clock: &Arc<ManualClock>) -> Env {
    Env { clock: Arc::clone(clock) as _, threads: None, ..Env::memory() }
}

/// A database whose writes wait for no disk.
pub fn open_unsynced(env: Env) -> Database {
    let options = DatabaseOptions { durability: Durability::Os, ..DatabaseOptions::default() };
    Database::open_with(env, "db", options).unwrap()
}

/// Puts the shipped catalogues in force.
pub fn govern(db: &Database, unknown_keys: UnknownKeys) -> Arc<Governor> {
    let options = GovernorOptions { unknown_keys, ..GovernorOptions::default() };
    Governor::govern(db, Arc::new(shipped().unwrap()), options).unwrap()
}

/// The sort keys that the index of persons has under a partition key.
pub fn index_entries(db: &Database, pk: &str) -> Vec<String> {
    let query = Query {
        table: "kstone.subjects".to_owned(),
        key_condition: Some(KeyCondition::Text("pk = :pk".to_owned())),
        placeholders: placeholders([(":pk", pk)]),
        ..Query::default()
    };
    let found = db.query_items(&query).wait().unwrap().items.unwrap();
    let sk = |item: &kstone::ItemBytes| item.decode().unwrap().get("sk").unwrap().clone();
    found.iter().map(|item| sk(item).as_str().unwrap().to_owned()).collect()
}

/// Goes over the index of persons until nothing is left to look at. Answers how many entries went.
pub fn sweep_all(governor: &Governor, redis: &Redis, at_a_time: u32) -> u64 {
    let mut removed = 0;
    for _ in 0..10_000 {
        let swept = governor.sweep(redis, at_a_time).unwrap();
        removed += swept.removed;
        if swept.is_done {
            return removed;
        }
    }
    panic!("the sweep never ends");
}

/// A command as its words.
pub fn words(line: &str) -> Vec<Bytes> {
    line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

/// What a session of Redis replies to a command.
pub fn say(session: &mut Session, line: &str) -> Reply {
    session.call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
}

/// The message of a reply that is an error.
#[track_caller]
pub fn refusal(reply: Reply) -> String {
    match reply {
        Reply::Error(why) => String::from_utf8_lossy(&why).into_owned(),
        other => panic!("{other:?}"),
    }
}

/// The machine around a disk.
pub fn env(disk: &SimDisk, clock: &Arc<ManualClock>) -> Env {
    Env {
        vfs: Arc::new(disk.clone()),
        clock: Arc::clone(clock) as _,
        random: Arc::new(SeededRandom::new(1)),
        threads: None,
    }
}

impl Fixture {
    /// Opens the database on a disk, or makes it.
    pub fn open(disk: &SimDisk, compression: Compression) -> Fixture {
        Fixture::try_open(disk, compression).unwrap()
    }

    /// The same under one catalogue.
    pub fn of_catalogue(disk: &SimDisk, catalogue: &str) -> Fixture {
        Fixture::with_keyspace(disk, Compression::None, keyspace_of(catalogue)).unwrap()
    }

    /// A database in which nothing is in force, so that nothing is indexed.
    pub fn ungoverned(disk: &SimDisk) -> Fixture {
        let fixture = Fixture::open(disk, Compression::None);
        Governor::suspend(&fixture.db).unwrap();
        fixture.db.ungovern();
        fixture
    }

    /// Indexes what was written while nothing was in force.
    pub fn count_anew(&self) {
        assert!(!self.governor.is_counted());
        self.recount();
    }

    pub fn recount(&self) -> Recount {
        self.governor.recount(Some(&self.redis), &mut |_| {}).unwrap()
    }

    /// The same on a disk that may stop.
    pub fn try_open(disk: &SimDisk, compression: Compression) -> Result<Fixture, String> {
        Fixture::with_keyspace(disk, compression, shipped().unwrap())
    }

    /// The same with other keys.
    pub fn with_keyspace(
        disk: &SimDisk,
        compression: Compression,
        keyspace: Keyspace,
    ) -> Result<Fixture, String> {
        let clock = Arc::new(ManualClock::at(START_MS));
        let env = env(disk, &clock);
        // A small log is quickly overwritten.
        let engine = Options {
            compression,
            bottom_compression: compression,
            memory_budget_bytes: 1 << 20,
            ..Options::default()
        };
        let options = DatabaseOptions { engine, durability: Durability::Sync };
        let text = |error: kstone::Error| error.to_string();
        let db = Database::open_with(env.clone(), "db", options).map_err(text)?;
        make_table(&db).map_err(text)?;
        let redis = Redis::open(&db).map_err(text)?;
        // After a crash keys are counted anew, by what was there.
        db.run_background().map_err(text)?;
        let keyspace = Arc::new(keyspace);
        let options =
            GovernorOptions { random: Arc::clone(&env.random), ..GovernorOptions::default() };
        let governor = Governor::govern(&db, keyspace, options).map_err(text)?;
        let key = ReceiptKey::from_secret(&[9; 32]);
        let eraser = Eraser::embedded(&db, &redis, Arc::clone(&governor), key, env.random);
        let eraser = eraser.map_err(|error| error.to_string())?;
        let keys = redis.keys(0).unwrap();
        Ok(Fixture { db, redis, keys, governor, eraser, clock })
    }

    pub fn subject(&self) -> Subject {
        Subject::canonical(SECRET, None)
    }

    pub fn erase(&self) -> SignedReceipt {
        now(self.eraser.erase(&self.subject(), &|_| {})).unwrap()
    }

    /// Another of the databases of Redis.
    pub fn redis_in(&self, db: u8, line: &str) -> Reply {
        now(self.redis.keys(db).unwrap().command(&words(line))).unwrap()
    }

    pub fn redis(&self, line: &str) -> Reply {
        self.try_redis(line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub fn try_redis(&self, line: &str) -> Result<Reply, String> {
        now(self.keys.command(&words(line))).map_err(|error| error.to_string())
    }

    pub fn make_table(&self, name: &str, key: KeySchema) {
        let spec = TableSpec { name: name.to_owned(), key, ..TableSpec::default() };
        self.db.create_table(&spec).unwrap();
    }

    /// Writes state as the Dapr door does.
    pub fn state(&self, pk: &str, sk: &str, value: &str) {
        self.try_state(pk, sk, value).unwrap();
    }

    pub fn try_state(&self, pk: &str, sk: &str, value: &str) -> kstone::Result<()> {
        let key = Item::new().with("pk", pk).with("sk", sk);
        self.db.table("state").put(key.with("value", value).with("etag", 1))
    }

    pub fn get_state(&self, pk: &str, sk: &str) -> Option<Item> {
        self.db.table("state").get(Item::new().with("pk", pk).with("sk", sk)).unwrap()
    }

    pub fn delete_state(&self, pk: &str, sk: &str) {
        self.db.table("state").delete(Item::new().with("pk", pk).with("sk", sk)).unwrap();
    }

    /// Where the person's id is on the disk: raw in any file, and decoded in each database.
    pub fn sightings(&self, disk: &SimDisk) -> Vec<String> {
        sightings(disk)
    }

    /// What is not the person's is as it was.
    pub fn check_others(&self) {
        let batch = self.get_state("batch:b-1", "status").unwrap();
        let value = batch.get("value").unwrap().as_str().unwrap().to_owned();
        assert!(value.contains(r#""students":["OTHER1","OTHER2"]"#), "{value}");
        assert!(self.get_state("student:OTHER1", "mastery:2026-01-14").is_some());
        assert!(self.get_state("school:abc:student:OTHER", "profile:current_mastery").is_some());
        assert_eq!(self.redis("ZSCORE leaderboard:level:l1 OTHER1"), Reply::Double(20.0));
        assert_eq!(self.redis("HGET session:s-2 user_id"), Reply::bulk("OTHER1"));
        assert_eq!(self.redis("GET session:timer:s-2"), Reply::bulk("2000"));
    }
}

/// Where the person's id is on a disk.
pub fn sightings(disk: &SimDisk) -> Vec<String> {
    let mut found = BTreeSet::new();
    for path in disk.paths() {
        let bytes = disk.read_file(&path).unwrap();
        if memchr::memmem::find(&bytes, SECRET.as_bytes()).is_some() {
            found.insert(format!("{} raw", path.display()));
        }
    }
    // The same files where nobody holds the lock.
    let copy = disk.crash(CrashPolicy::KeepAll);
    let env = env(&copy, &Arc::new(ManualClock::at(START_MS)));
    for dir in ["db", "copy"] {
        if disk.paths().iter().any(|path| path.starts_with(dir)) {
            for sighting in find_bytes(&env, dir, &[SECRET]).unwrap() {
                found.insert(format!("{} {}", sighting.path.display(), sighting.place));
            }
        }
    }
    found.into_iter().collect()
}

/// Takes a folder away, as somebody would who moves a checkpoint.
pub fn remove_folder(disk: &SimDisk, folder: &str) {
    use kstone_core::env::Vfs as _;
    for path in disk.paths().into_iter().filter(|path| path.starts_with(folder)) {
        disk.remove(&path).unwrap();
    }
    disk.sync_dir(Path::new(folder)).unwrap();
}

fn make_table(db: &Database) -> kstone::Result<()> {
    if db.describe_table("state").is_ok() {
        return Ok(());
    }
    let key = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"));
    let spec = TableSpec {
        name: "state".to_owned(),
        key,
        stream: Some(StreamView::NewAndOldImages),
        ..TableSpec::default()
    };
    db.create_table(&spec)?;
    db.update_ttl("state", "ttl", true)?;
    db.run_background().map(drop)
}

/// One person's data in every store, beside that of others.
pub fn fill(fixture: &Fixture) {
    let mastery = |id: &str| MASTERY.replace(SECRET, id);
    for id in [SECRET, "OTHER1"] {
        fixture.state(&format!("student:{id}"), "profile:current_mastery", &mastery(id));
        fixture.state(&format!("student:{id}"), "mastery:2026-01-14", &mastery(id));
        fixture.state(&format!("student:{id}"), "mastery:2026-01-15", &mastery(id));
    }
    for id in [SECRET, "OTHER"] {
        let pk = format!("school:abc:student:{id}");
        fixture.state(&pk, "profile:current_mastery", &mastery(id));
    }
    for (event, id) in [("evt-1", SECRET), ("evt-2", "OTHER1")] {
        let value = format!(
            r#"{{"event_id":"{event}","student_id":"{id}","processed_at":"2026-01-14T10:30:00Z","result":"ok"}}"#
        );
        fixture.state(&format!("processed:{event}"), "#", &value);
    }
    let batch = format!(
        r#"{{"batch_id":"b-1","total_requests":3,"completed":1,"failed":0,"in_progress":2,"students":["OTHER1","{SECRET}","OTHER2"],"started_at":"2026-01-14T10:30:00Z","status":"running"}}"#
    );
    fixture.state("batch:b-1", "status", &batch);
    for (session, id, score) in [("s-1", SECRET, 10), ("s-2", "OTHER1", 20)] {
        for line in [
            format!("HSET session:{session} user_id {id} level_id l1 task_id t1"),
            format!("SET session:timer:{session} {score}00"),
            format!("INCR hints_used:{session}"),
            format!("SET task:pending:{session} {{\"user\":\"{id}\"}}"),
            format!("SET mastery:{id} {{\"old\":\"{id}\"}}"),
            format!("SET mastery:{id} {{\"new\":\"{id}\"}}"),
            format!("HSET anticheat:{id} tab_switches 1"),
            format!("RPUSH score:series:{id} 1 0"),
            format!("ZADD leaderboard:level:l1 {score} {id}"),
        ] {
            fixture.redis(&line);
        }
    }
}
