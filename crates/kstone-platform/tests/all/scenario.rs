//! A class of 30 over 60 days, through the engine and the work behind it. Once without trouble, once
//! in a process that is killed with `kill -9` again and again: both come to the same.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kstone::{Database, DatabaseOptions, Durability};
use kstone_base::time::Moment;
use kstone_base::work::WorkersOptions;
use kstone_core::Options;
use kstone_core::env::{Env, ManualClock, SystemRandom};
use kstone_keyspace::{Date, Governor, GovernorOptions, shipped};
use kstone_mastery::domain::{LearnerProfile, LearningEvent};
use kstone_mastery::engine::{Error, PageRequest};
use kstone_mastery::simulate::School;
use kstone_platform::{Platform, PlatformParts};
use kstone_redis::Redis;
use serde_json::{Value as Json, json};
use tokio::task::JoinSet;

const LEARNERS: usize = 30;
const DAYS: u32 = 60;
const SEED: u64 = 6;
/// Tells a child where to live, and from which day on.
const FOLDER: &str = "KSTONE_SCENARIO_FOLDER";
const FROM_DAY: &str = "KSTONE_SCENARIO_FROM_DAY";

fn the_end() -> Moment {
    "2026-03-31T23:00:00Z".parse().unwrap()
}

/// What each learner does, day by day.
fn term(school: &School) -> BTreeMap<Date, Vec<Vec<LearningEvent>>> {
    let mut days: BTreeMap<Date, Vec<Vec<LearningEvent>>> = BTreeMap::new();
    for day in 0..DAYS {
        days.insert(the_end().date().plus_days(i64::from(day) + 1 - i64::from(DAYS)), Vec::new());
    }
    for learner in school.learners() {
        let mut by_day: BTreeMap<Date, Vec<LearningEvent>> = BTreeMap::new();
        for event in school.events_of(learner, DAYS, the_end()) {
            by_day.entry(event.occurred_at.date()).or_default().push(event);
        }
        for (date, events) in by_day {
            days.entry(date).or_default().push(events);
        }
    }
    days
}

/// Lives through the term from a day on, in a folder or in memory, and answers with what it has come
/// to. `tell` hears how far it is.
async fn live(folder: Option<&Path>, from_day: usize, tell: fn(&str)) -> Json {
    let school = School::new(SEED, LEARNERS);
    let days = term(&school);
    let first = *days.keys().next().unwrap();
    let clock = Arc::new(ManualClock::at(Moment::start_of(first).epoch_ms()));
    let (machine, durability) = match folder {
        Some(_) => (Env::system(), Durability::Sync),
        None => (Env::memory(), Durability::Os),
    };
    let env = Env { clock: Arc::clone(&clock) as _, ..machine };
    let options = DatabaseOptions { engine: Options::default(), durability };
    let db = Database::open_with(env, folder.unwrap_or(Path::new("db")), options).unwrap();
    let redis = Redis::open(&db).unwrap();
    let governor =
        Governor::govern(&db, Arc::new(shipped().unwrap()), GovernorOptions::default()).unwrap();
    let mut parts = PlatformParts::new(
        Arc::new(db.clone()),
        Arc::new(redis.keys(0).unwrap()),
        Arc::clone(&clock) as _,
        Arc::new(SystemRandom),
    );
    // One job after the other: what a question's difficulty comes to depends on the order in which
    // learners' answers are heard.
    parts.workers = WorkersOptions { at_once: 1, ..WorkersOptions::default() };
    parts.counts = Some(governor);
    let platform = Platform::prepare(parts).await.unwrap();
    if from_day == 0 {
        enrol(&platform, &school).await;
    }
    let sent = Arc::new(AtomicU64::new(0));
    for (number, (date, learners)) in days.into_iter().enumerate().skip(from_day) {
        tell(&format!("day {number}"));
        let evening = Moment::start_of(date).plus(Duration::from_secs((23 * 60 + 50) * 60));
        clock.set(evening.epoch_ms());
        let mut sending = JoinSet::new();
        for events in learners {
            let (platform, sent) = (Arc::clone(&platform), Arc::clone(&sent));
            sending.spawn(async move {
                for event in events {
                    platform.mastery.ingest(&event).await.unwrap();
                    if sent.fetch_add(1, Ordering::Relaxed).is_multiple_of(50) {
                        tell("sent");
                    }
                }
            });
        }
        while let Some(done) = sending.join_next().await {
            done.unwrap();
        }
        tell("evening");
        // The second turn does what a worker held that was killed.
        for _ in 0..2 {
            clock.advance(60_000);
            platform.turn().await.unwrap();
        }
        // In most nights nothing is on: what was missed is caught up once.
        if number % 5 == 4 {
            tell("night");
            clock.set(Moment::start_of(date).plus(Duration::from_secs(29 * 60 * 60)).epoch_ms());
            platform.turn().await.unwrap();
        }
    }
    clock.set(the_end().epoch_ms());
    what_it_came_to(&platform, &school).await
}

async fn enrol(platform: &Platform, school: &School) {
    let engine = &platform.mastery;
    for class in school.classes() {
        engine.put_class(School::ID, &class.class_id, &class.name).await.unwrap();
    }
    for learner in school.learners() {
        let profile = LearnerProfile {
            display_name: Some(learner.display_name.clone()),
            time_zone: learner.time_zone.to_owned(),
            ..LearnerProfile::new(&learner.student_id, engine.now())
        };
        engine.put_profile(&profile).await.unwrap();
        engine.add_member(School::ID, &learner.class_id, &learner.student_id).await.unwrap();
    }
}

async fn what_it_came_to(platform: &Platform, school: &School) -> Json {
    let engine = &platform.mastery;
    let today = the_end().date();
    let from = today.plus_days(-i64::from(DAYS));
    let mut learners = BTreeMap::new();
    for learner in school.learners() {
        let id = learner.student_id.as_str();
        let mastery = engine.get_current_mastery(id).await.unwrap();
        let rebuilt = engine.rebuild_mastery_from_events(id).await;
        match (&mastery, &rebuilt) {
            (Some(mastery), Ok(rebuilt)) => assert_eq!(mastery, rebuilt, "rebuilt from events"),
            (None, Err(Error::NotFound { .. })) => {}
            both => panic!("{both:?}"),
        }
        let (mut events, mut page) = (0, PageRequest { limit: 1000, cursor: None });
        loop {
            let some = engine.events(id, &page).await.unwrap();
            events += some.items.len();
            page.cursor = some.next;
            if page.cursor.is_none() {
                break;
            }
        }
        assert_eq!(events, school.events_of(learner, DAYS, the_end()).len(), "each event once");
        let all = json!({
            "mastery": mastery,
            "history": engine.get_mastery_history(id, from, today).await.unwrap(),
            "skills": engine.skills(id).await.ok(),
            "activity": engine.activity(id).await.ok(),
            "struggles": engine.struggles(id).await.ok(),
        });
        learners.insert(id.to_owned(), all);
    }
    let mut aggregates = json!(engine.aggregates(School::ID, from, today).await.unwrap());
    for day in aggregates.as_array_mut().unwrap() {
        // When a job ran depends on when a worker was killed; what it found does not.
        day.as_object_mut().unwrap().remove("calculated_at");
    }
    let mut alerts: Vec<Json> = platform
        .alerts
        .recent(1000, None)
        .await
        .unwrap()
        .items
        .iter()
        .map(|alert| json!([alert.at, alert.kind, alert.title, alert.student_id, alert.detail]))
        .collect();
    alerts.sort_by_key(Json::to_string);
    for depth in platform.workers.depth().await.unwrap() {
        assert_eq!((depth.ready, depth.running, depth.dead), (0, 0, 0), "{depth:?}");
    }
    json!({ "learners": learners, "aggregates": aggregates, "alerts": alerts })
}

#[test]
#[ignore = "the process that the other test kills"]
fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let from_day = std::env::var(FROM_DAY).unwrap().parse().unwrap();
    let came_to = runtime().block_on(live(Some(Path::new(&folder)), from_day, say));
    println!("\nresult {came_to}");
}

/// Tells the other process, and waits for its word before a night: who is killed while questions'
/// difficulties are learned may learn from some answers twice, and estimates would differ a little.
fn say(line: &str) {
    println!("\n{line}");
    if line == "night" {
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }
}

fn child(folder: &Path, from_day: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "scenario::the_process_that_is_killed"])
        .env(FOLDER, folder)
        .env(FROM_DAY, from_day.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

/// Where to kill: after so many lines of a kind on a day or later.
const KILLS: [(usize, &str, u32); 4] =
    [(9, "sent", 1), (22, "evening", 1), (37, "sent", 2), (48, "evening", 1)];

#[test]
fn a_class_of_30_over_60_days_comes_to_the_same_whether_or_not_it_is_killed() {
    let calm = runtime().block_on(live(None, 0, |_| {}));
    assert_eq!(calm["learners"].as_object().unwrap().len(), LEARNERS);
    assert!(calm["aggregates"].as_array().unwrap().len() >= DAYS as usize - 1);
    assert!(!calm["alerts"].as_array().unwrap().is_empty(), "somebody struggles");

    let folder = tempfile::tempdir().unwrap();
    let (mut from_day, mut kills, mut result) = (0, KILLS.iter(), None);
    while result.is_none() {
        let kill = kills.next();
        let mut child = child(folder.path(), from_day);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut heard = 0;
        for line in lines.map_while(Result::ok) {
            if let Some(day) = line.strip_prefix("day ") {
                from_day = day.parse().unwrap();
            }
            if let Some(json) = line.strip_prefix("result ") {
                result = Some(serde_json::from_str::<Json>(json).unwrap());
            }
            if let Some((day, what, times)) = kill {
                heard += u32::from(from_day >= *day && line == *what);
                if heard >= *times {
                    break;
                }
            }
            if line == "night" {
                child.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
            }
        }
        if kill.is_some() {
            child.kill().unwrap();
        }
        assert_eq!(child.wait().unwrap().success(), kill.is_none());
    }
    assert_eq!(kills.len(), 0, "it was killed as often as it should be");
    let killed = result.unwrap();
    for (student, expected) in calm["learners"].as_object().unwrap() {
        assert_eq!(&killed["learners"][student], expected, "{student}");
    }
    assert_eq!(killed["aggregates"], calm["aggregates"]);
    assert_eq!(killed["alerts"], calm["alerts"]);
}
