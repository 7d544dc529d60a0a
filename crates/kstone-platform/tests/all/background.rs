//! What the platform does in the background of the mastery engine.

use std::sync::Arc;
use std::time::Duration;

use kstone::Item;
use kstone_base::time::Moment;
use kstone_base::work::{Alert, AlertSink, JobError, NewJob, Severity, Webhook, WorkersOptions};
use kstone_core::env::{Clock, SeededRandom};
use kstone_fixture::{START_MS, Store};
use kstone_mastery::domain::{BatchState, Components, EventDetail, LearningEvent};
use kstone_mastery::engine::{BatchRequest, QUEUE, RUN_BATCH};
use kstone_mastery::jobs::UPKEEP;
use kstone_platform::{Platform, PlatformParts};
use serde_json::json;
use tokio::sync::Notify;

const DAY_MS: u64 = 86_400_000;

fn parts(store: &Store) -> PlatformParts {
    PlatformParts::new(
        Arc::new(store.db.clone()),
        Arc::new(store.keys.clone()),
        Arc::clone(&store.clock) as _,
        Arc::new(SeededRandom::new(5)),
    )
}

fn event(store: &Store, number: u32, what: EventDetail) -> LearningEvent {
    LearningEvent {
        event_id: format!("e-{number}"),
        student_id: "s-1".to_owned(),
        school_id: Some("riverside".to_owned()),
        occurred_at: Moment::from_epoch_ms(store.clock.now_ms()),
        what,
    }
}

fn failed_run() -> EventDetail {
    let error_kind = Some("NameError".to_owned());
    EventDetail::CodeRun { task_id: "t-1".to_owned(), passed: false, error_kind }
}

async fn struggle(store: &Store, platform: &Platform) {
    for number in 0..3 {
        platform.mastery.ingest(&event(store, number, failed_run())).await.unwrap();
    }
}

async fn alerts(platform: &Platform) -> Vec<Alert> {
    platform.alerts.recent(100, None).await.unwrap().items
}

#[tokio::test]
async fn a_learner_who_begins_to_struggle_becomes_one_alert() {
    let store = Store::new();
    let platform = Platform::prepare(parts(&store)).await.unwrap();
    struggle(&store, &platform).await;
    assert!(alerts(&platform).await.is_empty(), "that is for the workers");
    platform.turn().await.unwrap();
    platform.turn().await.unwrap();
    let raised = alerts(&platform).await;
    assert_eq!(raised.len(), 1, "{raised:?}");
    assert_eq!((raised[0].kind.as_str(), raised[0].severity), ("struggle", Severity::Warning));
    assert_eq!(raised[0].student_id.as_deref(), Some("s-1"));
}

#[derive(Debug, Default)]
struct Bell(Notify);

impl AlertSink for Bell {
    fn raised(&self, _: &Alert) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn a_platform_that_is_started_does_all_this_by_itself_until_it_is_stopped() {
    let store = Store::new();
    let bell = Arc::new(Bell::default());
    let mut parts = parts(&store);
    parts.sinks = vec![Arc::clone(&bell) as _];
    let platform = Platform::start(parts).await.unwrap();
    struggle(&store, &platform).await;
    bell.0.notified().await;
    platform.stop().await;
    assert_eq!(alerts(&platform).await.len(), 1);
    // From now on nobody works.
    let job = NewJob::new("mastery", "aggregate", json!({ "school_id": "riverside" }));
    platform.outbox.enqueue(job).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(platform.queues.depth("mastery").await.unwrap().ready, 1);
}

#[tokio::test]
async fn a_batch_that_was_started_is_done_by_a_job() {
    let store = Store::new();
    let platform = Platform::prepare(parts(&store)).await.unwrap();
    let components = Components { completion: 0.85, quiz: 0.9, quality: 0.85, consistency: 0.82 };
    let requests: Vec<BatchRequest> =
        (0..40).map(|n| BatchRequest { student_id: format!("s-{n}"), components }).collect();
    let started = platform.mastery.start_batch(&requests).await.unwrap();
    assert_eq!((started.status, started.in_progress), (BatchState::Processing, 40));
    platform.turn().await.unwrap();
    let status = platform.mastery.batch_status(&started.batch_id).await.unwrap();
    assert_eq!((status.status, status.completed), (BatchState::Completed, 40));
    let mastery = platform.mastery.get_current_mastery("s-7").await.unwrap().unwrap();
    assert_eq!(mastery.mastery_score, 0.862);
}

#[tokio::test]
async fn with_its_nightly_upkeep_a_learner_is_rebuilt_after_the_events_have_expired() {
    let store = Store::new();
    let platform = Platform::prepare(parts(&store)).await.unwrap();
    for day in 0..130 {
        if day % 3 == 0 && day < 120 {
            let what = EventDetail::QuizFinished { quiz_id: format!("q-{day}"), score: 0.8 };
            platform.mastery.ingest(&event(&store, day, what)).await.unwrap();
        }
        store.clock.advance(DAY_MS);
        platform.turn().await.unwrap();
    }
    let known = platform.mastery.get_current_mastery("s-1").await.unwrap().unwrap();
    assert_eq!(known.version, 40);
    let left = platform.mastery.events("s-1", &Default::default()).await.unwrap().items.len();
    assert!(left < 30, "{left} events are left of 40");
    assert_eq!(platform.mastery.rebuild_mastery_from_events("s-1").await.unwrap(), known);
    for depth in platform.workers.depth().await.unwrap() {
        assert_eq!((depth.ready, depth.running, depth.dead), (0, 0, 0), "{depth:?}");
    }
}

#[tokio::test]
async fn somebody_is_asked_to_look_after_a_learner_once_a_week() {
    let store = Store::new();
    let platform = Platform::prepare(parts(&store)).await.unwrap();
    let mut number = 0;
    // From a Wednesday to the Sunday of the week after.
    for _ in 0..11 {
        number += 1;
        let what = EventDetail::LessonProgress { lesson_id: "l-1".to_owned(), fraction: 0.1 };
        platform.mastery.ingest(&event(&store, number, what)).await.unwrap();
        store.clock.advance(DAY_MS);
        platform.turn().await.unwrap();
    }
    let raised = alerts(&platform).await;
    let asked: Vec<&Alert> = raised.iter().filter(|it| it.kind == "intervention").collect();
    assert_eq!(asked.len(), 2, "{raised:?}");
    assert!(asked.iter().all(|it| it.student_id.as_deref() == Some("s-1")));
}

#[tokio::test]
async fn a_day_that_ends_before_its_figures_were_computed_gets_them_after() {
    let store = Store::new();
    let platform = Platform::prepare(parts(&store)).await.unwrap();
    store.clock.set(START_MS / DAY_MS * DAY_MS + DAY_MS - 1_000);
    platform.mastery.ingest(&event(&store, 1, failed_run())).await.unwrap();
    let day = platform.mastery.now().date();
    store.clock.advance(20_000);
    platform.turn().await.unwrap();
    let days = platform.mastery.aggregates("riverside", day, day.plus_days(1)).await.unwrap();
    assert_eq!(days.iter().map(|it| it.students).collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test]
async fn work_that_is_given_up_becomes_an_alert() {
    let store = Store::new();
    let platform = Platform::prepare(parts(&store)).await.unwrap();
    platform.workers.register("q", "hopeless", |_| async { Err(JobError::fatal("no way")) });
    let job = NewJob::new("q", "hopeless", json!({})).about("s-1");
    platform.outbox.enqueue(job).await.unwrap();
    platform.turn().await.unwrap();
    let raised = alerts(&platform).await;
    assert_eq!((raised.len(), raised[0].kind.as_str()), (1, "dead_job"));
    assert_eq!(raised[0].detail, "hopeless in queue q, after 1 attempts: no way");
}

#[tokio::test]
async fn a_batch_whose_job_is_given_up_is_shown_as_failed() {
    let store = Store::new();
    let platform = Platform::prepare(parts(&store)).await.unwrap();
    platform.workers.register(QUEUE, RUN_BATCH, |_| async { Err(JobError::fatal("no way")) });
    let components = Components::default();
    let request = BatchRequest { student_id: "s-1".to_owned(), components };
    let started = platform.mastery.start_batch(&[request]).await.unwrap();
    platform.turn().await.unwrap();
    let status = platform.mastery.batch_status(&started.batch_id).await.unwrap();
    assert_eq!((status.status, status.in_progress, status.failed), (BatchState::Failed, 0, 1));
}

#[tokio::test]
async fn a_webhook_that_is_out_of_order_is_one_alert_a_day_and_that_one_is_not_sent() {
    let store = Store::new();
    let mut parts = parts(&store);
    // Nobody listens there.
    parts.webhook = Some(Webhook::new("http://127.0.0.1:9/hook").unwrap());
    parts.workers = WorkersOptions { retries: 0, ..WorkersOptions::default() };
    let platform = Platform::prepare(parts).await.unwrap();
    for title in ["one", "two", "three"] {
        platform.alerts.raise(alert(title)).await.unwrap();
        platform.turn().await.unwrap();
        store.clock.advance(1_000);
    }
    let raised = alerts(&platform).await;
    let about_itself = raised.iter().filter(|it| it.kind == "webhook").count();
    assert_eq!((raised.len(), about_itself), (4, 1), "{raised:?}");
    let depth = platform.queues.depth("alerts").await.unwrap();
    assert_eq!((depth.ready, depth.dead), (0, 3));
    assert!(Duration::from_millis(depth.lag_ms).is_zero());
}

#[tokio::test]
async fn what_is_kept_of_work_for_many_names_no_learner() {
    let store = Store::new();
    let platform = Platform::prepare(parts(&store)).await.unwrap();
    platform.mastery.ingest(&event(&store, 1, failed_run())).await.unwrap();
    platform.turn().await.unwrap();
    let spoilt = Item::new()
        .with("pk", "student:s-1")
        .with("sk", "profile:event_snapshot")
        .with("version", 1_u64)
        .with("value", r#"{"version":1,"state":"nonsense"}"#);
    store.db.table("state").put(spoilt).unwrap();
    for _ in 0..24 {
        store.clock.advance(DAY_MS / 24);
        platform.turn().await.unwrap();
    }
    let dead = platform.queues.dead_letters(UPKEEP, 10, None).await.unwrap().items;
    assert_eq!(dead.len(), 1, "{dead:?}");
    assert!(dead[0].problem.contains("what is stored cannot be read"), "{dead:?}");
    assert!(!format!("{dead:?}").contains("s-1"), "{dead:?}");
    let raised = alerts(&platform).await;
    let about_it = raised.iter().find(|it| it.kind == "dead_job").unwrap();
    assert!(!format!("{about_it:?}").contains("s-1"), "{about_it:?}");
}

fn alert(title: &str) -> Alert {
    Alert {
        id: String::new(),
        kind: "struggle".to_owned(),
        severity: Severity::Warning,
        title: title.to_owned(),
        detail: "the same error three times".to_owned(),
        student_id: Some("s-1".to_owned()),
        at: Moment::default(),
    }
}
