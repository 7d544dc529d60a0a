//! What the mastery engine does in a second, with the shipped catalogues in force, durable on a real
//! disk before each answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kstone::{Database, DatabaseOptions, Durability};
use kstone_base::time::Moment;
use kstone_core::env::{Env, SystemClock, SystemRandom};
use kstone_keyspace::{Governor, GovernorOptions, shipped};
use kstone_mastery::domain::{Components, EventDetail, LearningEvent};
use kstone_mastery::engine::{BatchRequest, CacheOptions, EngineParts, MasteryEngine};
use kstone_redis::Redis;

/// The one of the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXAMPLE: Components =
    Components { completion: 0.85, quiz: 0.90, quality: 0.85, consistency: 0.82 };
const CLIENTS: usize = 64;
const SECONDS: u64 = 5;
/// Learners of each client.
const LEARNERS: u64 = 20;

struct Fixture {
    _folder: tempfile::TempDir,
    db: Database,
    _governor: Arc<Governor>,
    engine: MasteryEngine,
}

async fn fixture() -> Fixture {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = DatabaseOptions { durability: Durability::Sync, ..DatabaseOptions::default() };
    let db = Database::open_with(Env::system(), folder.path().join("db"), options).unwrap();
    // As the server has it: what is only a cache need not be on disk.
    let redis = Redis::open(&db.with_durability(Durability::Interval)).unwrap();
    db.run_background().unwrap();
    let keyspace = Arc::new(shipped().unwrap());
    let governor = Governor::govern(&db, keyspace, GovernorOptions::default()).unwrap();
    let engine = MasteryEngine::new(EngineParts {
        items: Arc::new(db.clone()),
        keys: Arc::new(redis.keys(0).unwrap()),
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(SystemRandom),
        work: None,
        persons: None,
        counts: None,
        cache: CacheOptions::default(),
    });
    engine.prepare().await.unwrap();
    Fixture { _folder: folder, db, _governor: governor, engine }
}

/// Processor time that this process has taken, where the system says.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may have anything in it: 11 fields, then the two times in 1/100 s.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    Duration::from_millis(fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10)
}

/// Has clients do something with one learner after another for some seconds, and says how often all
/// of them did it in one. On a machine that has other work too, the processor time of each says more
/// than that.
async fn rate<F: Future<Output = ()> + Send>(
    what: &str,
    engine: &MasteryEngine,
    work: impl Fn(MasteryEngine, String, (usize, u64)) -> F + Clone + Send + 'static,
) {
    let engine = engine.clone();
    let work = move |client: usize, round: u64| {
        let student = format!("student_{}", client as u64 * LEARNERS + round % LEARNERS);
        work(engine.clone(), student, (client, round))
    };
    // All learners are there before.
    for round in 0..LEARNERS {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let work = work.clone();
                tokio::spawn(async move { work(client, round).await })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
    }
    let (start, before) = (Instant::now(), processor_time());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let work = work.clone();
            tokio::spawn(async move {
                let mut done = LEARNERS;
                while start.elapsed() < Duration::from_secs(SECONDS) {
                    work(client, done).await;
                    done += 1;
                }
                done - LEARNERS
            })
        })
        .collect();
    let mut done = 0;
    for client in clients {
        done += client.await.unwrap();
    }
    let rate = done as f64 / start.elapsed().as_secs_f64();
    let each = (processor_time() - before).as_secs_f64() * 1e6 / done as f64;
    println!("{rate:10.0} {what} a second, {CLIENTS} clients; {each:.1} us of a processor each");
}

fn answer(id: String, student_id: String, at: Moment, correct: bool) -> LearningEvent {
    let what = EventDetail::Answer {
        skill_id: "fractions".to_owned(),
        item_id: "q-1".to_owned(),
        correct,
        took_ms: Some(4000),
        error_kind: None,
    };
    LearningEvent {
        event_id: id,
        student_id,
        school_id: Some("abc".to_owned()),
        occurred_at: at,
        what,
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: run it alone, with --release and --nocapture"]
async fn updates_and_events_of_64_clients() {
    let fixture = fixture().await;
    let engine = &fixture.engine;
    rate("save_mastery_update", engine, |engine, student, _| async move {
        engine.save_mastery_update(&student, &EXAMPLE).await.unwrap();
    })
    .await;
    rate("ingest", engine, |engine, student, (client, round)| async move {
        let id = format!("e-{client}-{round}");
        let event = answer(id, student, engine.now(), round % 3 != 0);
        engine.ingest(&event).await.unwrap();
    })
    .await;
    rate("get_current_mastery", engine, |engine, student, _| async move {
        engine.get_current_mastery(&student).await.unwrap().unwrap();
    })
    .await;
    drop(fixture.db);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: run it alone, with --release and --nocapture"]
async fn a_batch_a_class_and_a_rebuild() {
    let fixture = fixture().await;
    let engine = &fixture.engine;
    let requests: Vec<BatchRequest> = (0..1000)
        .map(|at| BatchRequest { student_id: format!("student_{at}"), components: EXAMPLE })
        .collect();
    for _ in 0..3 {
        let start = Instant::now();
        let status = engine.save_batch_mastery(&requests).await.unwrap();
        assert_eq!(status.completed, 1000);
        println!("{:10.1} ms a batch of 1000", start.elapsed().as_secs_f64() * 1000.0);
    }

    engine.put_class("abc", "7b", "Class 7b").await.unwrap();
    let day = Duration::from_secs(24 * 3600);
    for learner in 0..30 {
        let student = format!("student_{learner}");
        engine.add_member("abc", "7b", &student).await.unwrap();
        for back in (0..60).rev() {
            let at = engine.now().minus(day * back);
            let event = answer(format!("d-{learner}-{back}"), student.clone(), at, true);
            engine.ingest(&event).await.unwrap();
        }
    }
    for _ in 0..3 {
        let start = Instant::now();
        let class = engine.class("abc", "7b").await.unwrap();
        assert_eq!(class.learners.len(), 30);
        println!("{:10.1} ms a class of 30", start.elapsed().as_secs_f64() * 1000.0);
    }

    for at in 0..10_000 {
        let event = answer(format!("r-{at}"), "many".to_owned(), engine.now(), at % 3 != 0);
        engine.ingest(&event).await.unwrap();
    }
    for _ in 0..3 {
        let start = Instant::now();
        let rebuilt = engine.rebuild_mastery_from_events("many").await.unwrap();
        assert_eq!(rebuilt.version, 10_000);
        println!("{:10.1} ms a rebuild of 10000 events", start.elapsed().as_secs_f64() * 1000.0);
    }
}
