use std::sync::Arc;

use kstone::{Database, DatabaseOptions};
use kstone_base::audit::AuditEntry;
use kstone_core::env::{Env, ManualClock};
use kstone_core::find_bytes;
use kstone_fixture::Store;
use kstone_mastery::domain::{Components, EventDetail, LearnerProfile};
use kstone_mastery::engine::{BatchRequest, Error};
use kstone_sim::SimDisk;

use crate::specification::fixture::{DAY, EXAMPLE, Fixture, START_MS, answer, quiz};

/// In every key and value of the one who is erased, and nowhere else.
const SECRET: &str = "SECRETPERSON";

/// Two learners with everything that the engine keeps of learners.
async fn live(fixture: &Fixture) {
    let engine = &fixture.engine;
    engine.put_class("abc", "7b", "Class 7b").await.unwrap();
    for id in [SECRET, "other"] {
        engine.add_member("abc", "7b", id).await.unwrap();
        for day in 0..4 {
            for (at, what) in
                [answer("x", "i", true), quiz(0.3), EventDetail::Visit {}].into_iter().enumerate()
            {
                let event = fixture.event(&format!("{id}-{day}-{at}"), id, what);
                engine.ingest(&event).await.unwrap();
            }
            fixture.later(DAY);
        }
        engine.advance_snapshot(id, engine.now().minus(DAY)).await.unwrap();
        engine.prediction(id, 7).await.unwrap();
        engine.path(id).await.unwrap();
        engine.recommendations(id).await.unwrap();
        let (action, student_id) = ("export".to_owned(), Some(id.to_owned()));
        let entry = AuditEntry { action, actor: None, student_id, detail: None, at: engine.now() };
        fixture.audit.add(&entry).await.unwrap();
    }
    let request = |id: &str| BatchRequest { student_id: id.to_owned(), components: EXAMPLE };
    engine.save_batch_mastery(&[request(SECRET), request("other")]).await.unwrap();
    engine.start_batch(&[request(SECRET), request("other")]).await.unwrap();
    engine.get_current_mastery(SECRET).await.unwrap().unwrap();
}

#[tokio::test]
async fn debug_student_state_shows_every_key_with_its_value_and_its_ttl() {
    let fixture = Fixture::new().await;
    let event = fixture.event("e-1", "student_12345", quiz(0.9));
    fixture.engine.ingest(&event).await.unwrap();
    let kept = fixture.engine.debug_student_state("student_12345").await.unwrap();
    let find = |key: &str| {
        let found = kept.iter().find(|it| it.key == key);
        found.unwrap_or_else(|| panic!("{key} is not among {kept:#?}"))
    };
    let current = find("student:student_12345:profile:current_mastery");
    assert_eq!(current.ttl_s, None);
    assert_eq!(current.value["student_id"], "student_12345");
    assert_eq!(find("processed:e-1").ttl_s, Some(7_776_000));
    assert_eq!(find("student:student_12345:mastery:2026-01-14").ttl_s, Some(7_776_000));
    assert_eq!(find("student:student_12345:activity:recent").ttl_s, Some(2_592_000));
    assert_eq!(find("mastery:student_12345").ttl_s, Some(300));
    assert!(find("student:student_12345:mastery:2026-01-14").value["mastery_score"].is_number());
}

#[tokio::test]
async fn get_key_metrics_gives_its_six_counts() {
    let fixture = Fixture::new().await;
    for id in ["1", "2"] {
        fixture.engine.ingest(&fixture.event(&format!("e-{id}"), id, quiz(0.9))).await.unwrap();
        fixture.engine.path(id).await.unwrap();
    }
    let metrics = fixture.engine.get_key_metrics().unwrap();
    let counts: Vec<(&str, u64)> =
        metrics.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    let expected = [
        ("activity_data", 2),
        ("current_mastery", 2),
        ("daily_snapshots", 2),
        ("paths", 2),
        ("predictions", 0),
        ("processed_events", 2),
    ];
    assert_eq!(counts, expected);
}

#[tokio::test]
async fn delete_student_data_leaves_nothing_for_readers_and_writes_are_refused_until_admitted() {
    let fixture = Fixture::on(&SimDisk::new(1)).await;
    live(&fixture).await;
    let engine = &fixture.engine;
    let other = engine.get_current_mastery("other").await.unwrap();
    let receipt = engine.delete_student_data(SECRET, &|_| {}).await.unwrap();
    assert!(!receipt.to_json().contains(SECRET));
    assert_eq!(engine.get_current_mastery(SECRET).await.unwrap(), None);
    assert_eq!(fixture.another_engine().get_current_mastery(SECRET).await.unwrap(), None);
    assert_eq!(engine.debug_student_state(SECRET).await.unwrap(), []);
    let gone = engine.skills(SECRET).await.unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone}");
    assert_eq!(engine.class("abc", "7b").await.unwrap().learners.len(), 1);
    assert_eq!(engine.get_current_mastery("other").await.unwrap(), other);
    let profile = LearnerProfile::new(SECRET, engine.now());
    let stale = fixture.another_engine();
    for engine in [engine, &stale] {
        for refused in [
            engine.ingest(&fixture.event("new", SECRET, quiz(0.5))).await.err(),
            engine.append_mastery_event(&fixture.event("new", SECRET, quiz(0.5))).await.err(),
            engine.save_mastery_update(SECRET, &EXAMPLE).await.err(),
            engine.save_mastery_update_once("n-1", SECRET, &EXAMPLE, None).await.err(),
            engine.update_with_version(SECRET, &EXAMPLE, 0).await.err(),
            engine.put_profile(&profile).await.err(),
            engine.set_consent(SECRET, true, true).await.err(),
            engine.add_member("abc", "7b", SECRET).await.err(),
        ] {
            let is_so = matches!(&refused, Some(Error::Refused { why }) if why.contains("erased"));
            assert!(is_so, "{refused:?}");
        }
    }
    // A batch goes on without them, and says so.
    let both = [SECRET, "other"]
        .map(|id| BatchRequest { student_id: id.to_owned(), components: Components::default() });
    let status = engine.save_batch_mastery(&both).await.unwrap();
    assert_eq!((status.completed, status.failed), (1, 1));
    assert_eq!(status.students, ["other"]);
    assert!(engine.admit(SECRET).await.unwrap());
    let anew = engine.ingest(&fixture.event("new", SECRET, quiz(0.5))).await.unwrap();
    assert_eq!(anew.mastery.version, 1);
    assert_eq!(engine.get_current_mastery(SECRET).await.unwrap(), Some(anew.mastery));
}

#[tokio::test]
async fn delete_student_data_leaves_no_byte_in_the_raw_files() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(START_MS));
    let env = Env { clock: Arc::clone(&clock) as _, ..Env::system() };
    let dir = folder.path().join("db");
    let open = async || {
        let db = Database::open_with(env.clone(), &dir, DatabaseOptions::default()).unwrap();
        let store = Store::on(db, Arc::clone(&clock), SimDisk::new(1)).unwrap();
        Fixture::of(store).await.unwrap()
    };
    // Raw, and inside of compressed blocks.
    let sightings = || find_bytes(&env, &dir, &[SECRET]).unwrap();

    let fixture = open().await;
    live(&fixture).await;
    drop(fixture);
    assert!(!sightings().is_empty());
    let fixture = open().await;
    fixture.engine.delete_student_data(SECRET, &|_| {}).await.unwrap();
    drop(fixture);
    assert_eq!(sightings(), []);
}
