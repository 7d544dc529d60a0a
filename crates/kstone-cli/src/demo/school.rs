//! The demo's school: sixty days of simulated learning, taken in as if each day had been today, and
//! then kept alive.
//!
//! The past goes through the same door as the present: every event is ingested, by an engine whose
//! clock stands at the moment of the event. Each learner is one row of events that must stay in
//! order; so several engines, each with its own clock, take one learner after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kstone::{Database, Durability, Item, Value};
use kstone_base::time::Moment;
use kstone_core::env::{Clock, ManualClock, Random, SystemRandom};
use kstone_mastery::domain::LearnerProfile;
use kstone_mastery::engine::{CacheOptions, EngineParts, Error, MasteryEngine};
use kstone_mastery::simulate::{Chance, Learner, School};
use kstone_ports::keys::Keys;
use tokio::task::JoinSet;

use crate::demo::keys;

/// In the default table: whether the school is the demo's, and as of when it was filled.
const MARK: &str = "kstone demo school";

/// The same school for everybody.
const SEED: u64 = 2026;
const LEARNERS: usize = 200;
const DAYS: u32 = 60;

/// How many learners are taken in at the same time.
const TOGETHER: usize = 8;

/// How often a simulated learner does something, once the school is filled.
const SOMETHING_EVERY: Duration = Duration::from_millis(400);
/// How often the Redis keys are looked after: the first of them ends after ten minutes.
const KEYS_EVERY: Duration = Duration::from_secs(60);

/// What filling came to.
#[derive(Debug)]
pub struct FillReport {
    /// How many events were taken in; 0 if the school had been filled before.
    pub events: u64,
    pub took: Duration,
}

/// A learner to look at.
#[derive(Debug, PartialEq)]
pub struct SampleLearner {
    pub student_id: String,
    pub name: String,
    pub class_id: String,
    /// What REST answers about them.
    pub mastery: Option<String>,
}

/// A school to be filled and kept alive.
#[derive(Debug, Clone)]
pub struct DemoSchool {
    school: Arc<School>,
    keys: Arc<dyn Keys>,
}

impl DemoSchool {
    /// The school of the demo. `keys` is where what is known of learners is cached.
    pub fn new(keys: Arc<dyn Keys>) -> DemoSchool {
        DemoSchool { school: Arc::new(School::new(SEED, LEARNERS)), keys }
    }

    /// How many learners and classes it has.
    pub fn size(&self) -> (usize, usize) {
        (self.school.learners().len(), self.school.classes().len())
    }

    /// Whose page to open first: who struggles most, in the first class where somebody does.
    pub async fn sample_learner(&self, engine: &MasteryEngine) -> Result<Option<SampleLearner>> {
        for class in self.school.classes() {
            let learners = engine.class(School::ID, &class.class_id).await?.learners;
            let most = learners.into_iter().max_by_key(|row| row.struggles.len());
            if let Some(row) = most.filter(|row| !row.struggles.is_empty()) {
                let name = row.display_name.unwrap_or_else(|| row.student_id.clone());
                let mastery = row.mastery.as_ref().map(serde_json::to_string).transpose()?;
                let (student_id, class_id) = (row.student_id, class.class_id.clone());
                return Ok(Some(SampleLearner { student_id, name, class_id, mastery }));
            }
        }
        Ok(None)
    }

    /// Whether an earlier start has filled it.
    pub fn is_filled(&self, db: &Database) -> Result<bool> {
        Ok(db.get(MARK)?.is_some_and(|mark| mark.get("filled").is_some()))
    }

    /// Fills the school, or goes on where filling was interrupted; does nothing if that is done.
    /// `None` if there are learners here that are not the demo's.
    pub async fn fill(&self, db: &Database, now: Moment) -> Result<Option<FillReport>> {
        let started = Instant::now();
        let mark = db.get(MARK)?;
        let number = |name: &str| {
            let mark = mark.as_ref()?;
            mark.get(name).and_then(Value::as_str).and_then(|text| text.parse().ok())
        };
        if number("filled").is_some() {
            return Ok(Some(FillReport { events: 0, took: started.elapsed() }));
        }
        // What was interrupted goes on with the same events: they depend on the moment.
        let until = number("filling").map_or(now, Moment::from_epoch_ms);
        // One sync for all of it, by the mark.
        let quick = Arc::new(db.with_durability(Durability::Os));
        let (engine, _) = self.engine_at(&quick, until);
        engine.prepare().await?;
        if mark.is_none() && !engine.schools().await?.is_empty() {
            return Ok(None);
        }
        let at = until.epoch_ms().to_string();
        db.put(MARK, Item::new().with("filling", at.as_str()))?;
        for class in self.school.classes() {
            engine.put_class(School::ID, &class.class_id, &class.name).await?;
        }
        let events = self.take_in(&quick, until).await?;
        for day in 0..i64::from(DAYS) {
            engine.aggregate(School::ID, until.date().plus_days(-day)).await?;
        }
        db.put(MARK, Item::new().with("filled", at.as_str()))?;
        Ok(Some(FillReport { events, took: started.elapsed() }))
    }

    async fn take_in(&self, db: &Arc<Database>, until: Moment) -> Result<u64> {
        let (next, events) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let mut workers = JoinSet::new();
        for _ in 0..TOGETHER {
            let (engine, clock) = self.engine_at(db, until);
            let school = Arc::clone(&self.school);
            let (next, events) = (Arc::clone(&next), Arc::clone(&events));
            workers.spawn(async move {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(learner) = school.learners().get(at) else { return Ok(()) };
                    let count = take_in(&engine, &clock, &school, learner, until).await?;
                    events.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
        while let Some(ended) = workers.join_next().await {
            let done: Result<()> = ended.context("filling the school was interrupted")?;
            done?;
        }
        Ok(events.load(Ordering::Relaxed))
    }

    /// An engine whose clock can be set.
    fn engine_at(&self, db: &Arc<Database>, now: Moment) -> (MasteryEngine, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(now.epoch_ms()));
        let engine = MasteryEngine::new(EngineParts {
            items: Arc::clone(db) as _,
            keys: Arc::clone(&self.keys),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            random: Arc::new(SystemRandom),
            work: None,
            persons: None,
            counts: None,
            cache: CacheOptions { memory_entries: 0, ..CacheOptions::default() },
        });
        (engine, clock)
    }

    /// Lets somebody do something a few times a second, and keeps the demo's Redis keys, until it
    /// is dropped.
    pub async fn keep_alive(self, engine: MasteryEngine) {
        let mut chance = Chance::new(SystemRandom.next_u64());
        let mut ticks = tokio::time::interval(SOMETHING_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut keys_at = Instant::now();
        loop {
            ticks.tick().await;
            if let Some(event) = self.school.something_happens(engine.now(), &mut chance) {
                // A learner may have been erased, or have withdrawn the consent: that is what a
                // demo is for. Other errors are reported to the client that asks.
                drop(engine.ingest(&event).await);
            }
            if keys_at.elapsed() >= KEYS_EVERY {
                keys_at = Instant::now();
                drop(keys::write_again(&*self.keys).await);
            }
        }
    }
}

/// Everything that one learner did, with the clock at the moment of each event.
async fn take_in(
    engine: &MasteryEngine,
    clock: &ManualClock,
    school: &School,
    learner: &Learner,
    until: Moment,
) -> Result<u64> {
    let events = school.events_of(learner, DAYS, until);
    let first = events.first().map_or(until, |event| event.occurred_at);
    clock.set(first.epoch_ms());
    let profile = LearnerProfile {
        display_name: Some(learner.display_name.clone()),
        time_zone: learner.time_zone.to_owned(),
        school_id: Some(School::ID.to_owned()),
        class_ids: vec![learner.class_id.clone()],
        ..LearnerProfile::new(learner.student_id.as_str(), first)
    };
    engine.put_profile(&profile).await?;
    for event in &events {
        clock.set(event.occurred_at.epoch_ms());
        match engine.ingest(event).await {
            Ok(_) => {}
            Err(Error::Refused { .. }) => return Ok(0),
            Err(error) => bail!("event {} of the demo was not taken in: {error}", event.event_id),
        }
    }
    Ok(events.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kstone_keyspace::{Governor, GovernorOptions};

    fn at() -> Moment {
        "2026-03-20T15:00:00Z".parse().unwrap()
    }

    /// A school of few, in a database that keeps to the shipped catalogues.
    fn small(learners: usize) -> (Database, DemoSchool) {
        let db = Database::memory().unwrap();
        let shipped = Arc::new(kstone_keyspace::shipped().unwrap());
        Governor::govern(&db, shipped, GovernorOptions::default()).unwrap();
        let redis = kstone_redis::Redis::open(&db).unwrap();
        let school = Arc::new(School::new(SEED, learners));
        (db, DemoSchool { school, keys: Arc::new(redis.keys(0).unwrap()) })
    }

    #[tokio::test]
    async fn a_school_is_filled_once_and_its_learners_have_their_past() {
        let (db, school) = small(5);
        assert!(!school.is_filled(&db).unwrap());
        let filled = school.fill(&db, at()).await.unwrap().unwrap();
        assert!(school.is_filled(&db).unwrap());
        assert!(filled.events > 500, "{filled:?}");
        let (engine, _) = school.engine_at(&Arc::new(db.clone()), at());
        let struggling = school.sample_learner(&engine).await.unwrap().unwrap();
        let (id, today) = (struggling.student_id.as_str(), at().date());
        let history = engine.get_mastery_history(id, today.plus_days(-60), today).await.unwrap();
        assert!(history.len() >= 15, "{}", history.len());
        let profile = engine.profile(id).await.unwrap();
        assert_eq!(profile.display_name.as_ref(), Some(&struggling.name));
        assert_eq!(profile.class_ids, std::slice::from_ref(&struggling.class_id));

        let before = engine.get_current_mastery(id).await.unwrap();
        let again = school.fill(&db, at().plus(Duration::from_secs(3600))).await.unwrap().unwrap();
        assert_eq!(again.events, 0);
        assert_eq!(engine.get_current_mastery(id).await.unwrap(), before);
    }

    #[tokio::test]
    async fn filling_that_was_interrupted_goes_on_to_the_same_end() {
        let (whole_db, whole) = small(3);
        whole.fill(&whole_db, at()).await.unwrap();
        let (db, school) = small(3);
        // One learner and a half were there.
        let (engine, clock) = school.engine_at(&Arc::new(db.clone()), at());
        engine.prepare().await.unwrap();
        db.put(MARK, Item::new().with("filling", at().epoch_ms().to_string().as_str())).unwrap();
        let learners = school.school.learners();
        take_in(&engine, &clock, &school.school, &learners[0], at()).await.unwrap();
        for event in school.school.events_of(&learners[1], DAYS, at()).iter().take(40) {
            clock.set(event.occurred_at.epoch_ms());
            engine.ingest(event).await.unwrap();
        }
        let later = at().plus(Duration::from_secs(86_400));
        school.fill(&db, later).await.unwrap().unwrap();

        let (left, _) = school.engine_at(&Arc::new(db), at());
        let (right, _) = whole.engine_at(&Arc::new(whole_db), at());
        for learner in learners {
            let id = learner.student_id.as_str();
            let of = |engine: MasteryEngine| async move {
                (engine.get_current_mastery(id).await.unwrap(), engine.skills(id).await.unwrap())
            };
            assert_eq!(of(left.clone()).await, of(right.clone()).await);
        }
    }

    #[tokio::test]
    async fn learners_of_somebody_else_are_left_alone() {
        let (db, school) = small(3);
        let (engine, _) = school.engine_at(&Arc::new(db.clone()), at());
        engine.prepare().await.unwrap();
        engine.put_class("university", "c1", "First").await.unwrap();
        assert!(school.fill(&db, at()).await.unwrap().is_none());
        assert_eq!(engine.schools().await.unwrap(), ["university"]);
    }
}
