//! A database with the shipped catalogues in force and an engine on it.

use std::sync::Arc;
use std::time::Duration;

use kstone::ops::GetItem;
use kstone::{Database, Item};
use kstone_base::audit::AuditLog;
use kstone_base::persons::LocalPersons;
use kstone_base::time::Moment;
use kstone_core::env::{ManualClock, SeededRandom};
use kstone_fixture::Store;
use kstone_mastery::domain::{Components, EventDetail, LearningEvent};
use kstone_mastery::engine::{CacheOptions, EngineParts, MasteryEngine};
use kstone_redis::Redis;
use kstone_sim::SimDisk;

pub use kstone_fixture::START_MS;
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// The components of the specification's example, which come to 0.862.
pub const EXAMPLE: Components =
    Components { completion: 0.85, quiz: 0.90, quality: 0.85, consistency: 0.82 };

pub struct Fixture {
    pub db: Database,
    pub redis: Redis,
    pub engine: MasteryEngine,
    pub audit: AuditLog,
    pub clock: Arc<ManualClock>,
}

impl Fixture {
    /// A new one in memory.
    pub async fn new() -> Fixture {
        Fixture::on(&SimDisk::new(1)).await
    }

    /// What is on a disk, or a new one.
    pub async fn on(disk: &SimDisk) -> Fixture {
        Fixture::try_on(disk).await.unwrap()
    }

    /// The same on a disk that may stop.
    pub async fn try_on(disk: &SimDisk) -> Result<Fixture, String> {
        Fixture::of(Store::open(disk.clone(), START_MS)?).await
    }

    /// An engine on a store.
    pub async fn of(store: Store) -> Result<Fixture, String> {
        store.db.run_background().map_err(text)?;
        let eraser = Arc::new(store.eraser());
        let persons = LocalPersons { eraser, governor: Arc::clone(&store.governor) };
        let Store { db, redis, keys, governor, clock, .. } = store;
        let engine = MasteryEngine::new(EngineParts {
            items: Arc::new(db.clone()),
            keys: Arc::new(keys),
            clock: Arc::clone(&clock) as _,
            random: Arc::new(SeededRandom::new(3)),
            work: None,
            persons: Some(Arc::new(persons)),
            counts: Some(governor as _),
            cache: CacheOptions::default(),
        });
        engine.prepare().await.map_err(text)?;
        let audit = AuditLog::new(Arc::new(db.clone()), Arc::new(SeededRandom::new(5)));
        Ok(Fixture { db, redis, engine, audit, clock })
    }

    /// A second engine on the same store, as another process would have it.
    pub fn another_engine(&self) -> MasteryEngine {
        MasteryEngine::new(EngineParts {
            items: Arc::new(self.db.clone()),
            keys: Arc::new(self.redis.keys(0).unwrap()),
            clock: Arc::clone(&self.clock) as _,
            random: Arc::new(SeededRandom::new(4)),
            work: None,
            persons: None,
            counts: None,
            cache: CacheOptions::default(),
        })
    }

    pub fn later(&self, time: Duration) {
        self.clock.advance(time.as_millis() as u64);
    }

    /// An item of the table of learners' state.
    pub fn item(&self, pk: &str, sk: &str) -> Option<Item> {
        let key = Item::new().with("pk", pk).with("sk", sk);
        let get = GetItem { table: "state".to_owned(), key, ..GetItem::default() };
        let found = self.db.get_item(&get).wait().unwrap().item;
        found.map(|item| item.decode().unwrap())
    }

    /// The text of an item.
    pub fn value(&self, pk: &str, sk: &str) -> Option<String> {
        self.item(pk, sk).and_then(|item| item.get("value")?.as_str().map(str::to_owned))
    }

    /// How many seconds an item has left.
    pub fn ttl_s(&self, pk: &str, sk: &str) -> Option<u64> {
        let item = self.item(pk, sk)?;
        let end = item.get("ttl")?.as_number()?.to_u64()?;
        Some(end - self.engine.now().epoch_ms() / 1000)
    }

    /// Something that a learner did just now.
    pub fn event(&self, event_id: &str, student_id: &str, what: EventDetail) -> LearningEvent {
        event_at(event_id, student_id, self.engine.now(), what)
    }
}

pub fn event_at(event_id: &str, student_id: &str, at: Moment, what: EventDetail) -> LearningEvent {
    LearningEvent {
        event_id: event_id.to_owned(),
        student_id: student_id.to_owned(),
        school_id: None,
        occurred_at: at,
        what,
    }
}

pub fn answer(skill: &str, item: &str, correct: bool) -> EventDetail {
    EventDetail::Answer {
        skill_id: skill.to_owned(),
        item_id: item.to_owned(),
        correct,
        took_ms: None,
        error_kind: None,
    }
}

pub fn quiz(score: f64) -> EventDetail {
    EventDetail::QuizFinished { quiz_id: "q-1".to_owned(), score }
}

pub fn lesson(id: &str, fraction: f64) -> EventDetail {
    EventDetail::LessonProgress { lesson_id: id.to_owned(), fraction }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
