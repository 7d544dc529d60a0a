use std::time::Duration;

use kstone_mastery::domain::{EventDetail, LearnerProfile, ProcessingRecord, StruggleKind};
use kstone_mastery::engine::{Error, PageRequest};

use crate::specification::fixture::{DAY, Fixture, answer, event_at, lesson, quiz};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_event_is_taken_in_once_however_often_and_by_whomever_it_is_sent() {
    let fixture = Fixture::new().await;
    let engines = [fixture.engine.clone(), fixture.another_engine()];
    // Eight senders each send all of forty events, in different orders.
    let senders: Vec<_> = (0..8_usize)
        .map(|sender| {
            let engine = engines[sender % 2].clone();
            let events: Vec<_> = (0..40_usize)
                .map(|at| (at * (2 * sender + 1) + sender) % 40)
                .map(|at| fixture.event(&format!("e-{at}"), "s", answer("x", "i", at % 4 != 0)))
                .collect();
            tokio::spawn(async move {
                let mut new = 0;
                for event in &events {
                    new += u64::from(!engine.ingest(event).await.unwrap().duplicate);
                }
                new
            })
        })
        .collect();
    let mut new = 0;
    for sender in senders {
        new += sender.await.unwrap();
    }
    assert_eq!(new, 40);
    let current = fixture.engine.get_current_mastery("s").await.unwrap().unwrap();
    assert_eq!(current.version, 40);
    let skills = fixture.engine.skills("s").await.unwrap();
    assert_eq!((skills[0].answers, skills[0].correct), (40, 30));
    let log = fixture.engine.events("s", &PageRequest { limit: 1000, cursor: None }).await.unwrap();
    assert_eq!(log.items.len(), 40);
    assert!(log.items.windows(2).all(|two| two[0].accepted_at > two[1].accepted_at));
    let rebuilt = fixture.engine.rebuild_mastery_from_events("s").await.unwrap();
    assert_eq!(rebuilt, current);
}

#[tokio::test]
async fn an_event_leaves_every_key_that_follows_from_it_and_its_mark_for_90_days() {
    let fixture = Fixture::new().await;
    let mut event = fixture.event("e-1", "12345", answer("fractions", "i-1", true));
    event.school_id = Some("university_abc".to_owned());
    let done = fixture.engine.ingest(&event).await.unwrap();
    assert!(!done.duplicate);
    let pk = "student:12345";
    for sk in [
        "profile:current_mastery",
        "profile:state",
        "profile:learner",
        "profile:streaks",
        "mastery:2026-01-14",
        "mastery:2026-01-14:quiz",
        "activity:recent",
        "skill:fractions",
        "events:1768386600000:e-1",
    ] {
        assert!(fixture.value(pk, sk).is_some(), "{sk}");
    }
    assert_eq!(fixture.ttl_s(pk, "events:1768386600000:e-1"), Some(7_776_000));
    assert_eq!(fixture.ttl_s(pk, "activity:recent"), Some(2_592_000));
    let school = "school:university_abc:student:12345";
    assert!(fixture.value(school, "profile:current_mastery").is_some());
    assert!(fixture.value("school:university_abc:roster", "12345").is_some());
    let sk = std::str::from_utf8(kstone_keyspace::WHOLE_KEY).unwrap();
    assert_eq!(fixture.ttl_s("processed:e-1", sk), Some(7_776_000));
    let mark = fixture.value("processed:e-1", sk).unwrap();
    let mark: ProcessingRecord = serde_json::from_str(&mark).unwrap();
    assert_eq!((mark.result.as_str(), mark.student_id.as_str()), ("success", "12345"));
    assert_eq!(mark.mastery_score, Some(done.mastery.mastery_score));
}

#[tokio::test]
async fn a_repeated_event_changes_nothing_and_another_learners_event_id_is_a_conflict() {
    let fixture = Fixture::new().await;
    let first = fixture.engine.ingest(&fixture.event("e-1", "s", quiz(0.8))).await.unwrap();
    fixture.later(DAY);
    let again = fixture.engine.ingest(&fixture.event("e-1", "s", quiz(0.1))).await.unwrap();
    assert!(again.duplicate);
    assert_eq!(again.mastery, first.mastery);
    let stolen = fixture.engine.ingest(&fixture.event("e-1", "t", quiz(0.8))).await.unwrap_err();
    assert!(matches!(stolen, Error::Conflict { .. }), "{stolen}");
    assert_eq!(fixture.engine.get_current_mastery("t").await.unwrap(), None);
}

#[tokio::test]
async fn events_of_many_learners_are_answered_in_their_order_and_each_for_itself() {
    let fixture = Fixture::new().await;
    let mut events: Vec<_> = (0..30)
        .map(|at| fixture.event(&format!("e-{at}"), &format!("s-{}", at % 3), quiz(0.5)))
        .collect();
    events[7].what = quiz(7.0);
    let done = fixture.engine.ingest_many(&events).await;
    assert_eq!(done.len(), 30);
    for (at, done) in done.iter().enumerate() {
        match done {
            Err(error) => assert_eq!((at, error.to_string().starts_with("score must")), (7, true)),
            Ok(done) => {
                assert_eq!(done.mastery.student_id, format!("s-{}", at % 3));
                // The events of one learner are taken in one after the other.
                let before = at / 3 + 1 - usize::from(at % 3 == 1 && at > 7);
                assert_eq!(done.mastery.version, before as u64);
            }
        }
    }
}

#[tokio::test]
async fn without_consent_to_analytics_nothing_is_taken_in_and_the_error_says_why() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    engine.ingest(&fixture.event("e-1", "s", quiz(0.8))).await.unwrap();
    // Another process hears of it at once.
    fixture.another_engine().set_consent("s", false, true).await.unwrap();
    let refused = engine.ingest(&fixture.event("e-2", "s", quiz(0.9))).await.unwrap_err();
    assert!(matches!(&refused, Error::Refused { why } if why.contains("consent")), "{refused}");
    let saved =
        engine.save_mastery_update("s", &crate::specification::fixture::EXAMPLE).await.unwrap_err();
    assert!(matches!(saved, Error::Refused { .. }));
    fixture.another_engine().set_consent("s", true, true).await.unwrap();
    assert!(!engine.ingest(&fixture.event("e-2", "s", quiz(0.9))).await.unwrap().duplicate);
}

#[tokio::test]
async fn the_days_of_a_learner_are_those_of_their_time_zone() {
    let fixture = Fixture::new().await;
    let mut profile = LearnerProfile::new("s", fixture.engine.now());
    profile.time_zone = "Pacific/Auckland".to_owned();
    fixture.engine.put_profile(&profile).await.unwrap();
    let at = "2026-01-14T11:30:00Z".parse().unwrap();
    fixture.clock.set(1_768_390_200_000);
    fixture.engine.ingest(&event_at("e-1", "s", at, EventDetail::Visit {})).await.unwrap();
    assert!(fixture.value("student:s", "mastery:2026-01-15").is_some());
    assert!(fixture.value("student:s", "mastery:2026-01-14").is_none());
    let activity = fixture.engine.activity("s").await.unwrap();
    assert_eq!(activity.activity_log, ["2026-01-15".parse().unwrap()]);
    assert_eq!(activity.time_zone, "Pacific/Auckland");
}

#[tokio::test]
async fn the_longest_streak_outlives_the_recent_activity() {
    let fixture = Fixture::new().await;
    for day in 0..5 {
        let event = fixture.event(&format!("e-{day}"), "s", EventDetail::Visit {});
        fixture.engine.ingest(&event).await.unwrap();
        fixture.later(DAY);
    }
    assert_eq!(fixture.engine.activity("s").await.unwrap().current_streak, 5);
    fixture.later(DAY * 40);
    assert_eq!(fixture.value("student:s", "activity:recent"), None);
    let activity = fixture.engine.activity("s").await.unwrap();
    assert_eq!((activity.current_streak, activity.max_streak), (0, 5));
    let streaks = fixture.value("student:s", "profile:streaks").unwrap();
    assert!(streaks.contains("\"max_streak\":5"), "{streaks}");
}

#[tokio::test]
async fn struggles_are_told_with_the_event_that_shows_them() {
    let fixture = Fixture::new().await;
    let low = fixture.engine.ingest(&fixture.event("e-1", "s", quiz(0.3))).await.unwrap();
    assert_eq!(low.struggles.len(), 1);
    assert_eq!(low.struggles[0].kind, StruggleKind::LowQuiz);
    assert_eq!(fixture.engine.struggles("s").await.unwrap(), low.struggles);
}

#[tokio::test]
async fn a_learner_who_changes_schools_is_in_the_lists_of_the_new_one_only() {
    let fixture = Fixture::new().await;
    fixture.engine.put_class("old", "7b", "Class 7b").await.unwrap();
    fixture.engine.add_member("old", "7b", "s").await.unwrap();
    for (id, school) in [("e-1", "old"), ("e-2", "new")] {
        let mut event = fixture.event(id, "s", lesson("l", 0.5));
        event.school_id = Some(school.to_owned());
        fixture.engine.ingest(&event).await.unwrap();
        fixture.later(Duration::from_secs(60));
    }
    let of = |school: &str| fixture.value(&format!("school:{school}:roster"), "s").is_some();
    assert_eq!((of("old"), of("new")), (false, true));
    let copy = |school: &str| {
        fixture.value(&format!("school:{school}:student:s"), "profile:current_mastery").is_some()
    };
    assert_eq!((copy("old"), copy("new")), (false, true));
    assert_eq!(fixture.engine.class("old", "7b").await.unwrap().learners, []);
    // An event that names no school is of the school that is known.
    let later = fixture.engine.ingest(&fixture.event("e-3", "s", lesson("l", 1.0))).await.unwrap();
    assert_eq!(later.mastery.school_id.as_deref(), Some("new"));
}

#[tokio::test]
async fn append_mastery_event_answers_with_the_key_of_the_event() {
    let fixture = Fixture::new().await;
    let event = fixture.event("evt-1", "student_12345", quiz(0.5));
    let key = fixture.engine.append_mastery_event(&event).await.unwrap();
    assert_eq!(key, "student:student_12345:events:1768386600000:evt-1");
    assert_eq!(fixture.engine.append_mastery_event(&event).await.unwrap(), key);
    assert!(fixture.value("student:student_12345", "events:1768386600000:evt-1").is_some());
}
