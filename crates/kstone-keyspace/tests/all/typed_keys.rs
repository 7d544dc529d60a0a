//! Keys as types: the builders of the applications, byte for byte.

use kstone_keyspace::keys::{mastery, practice, reviews, workflows};
use kstone_keyspace::typed::TypedKey;
use kstone_keyspace::{Date, Millis, Ttl, ValueType};

fn student() -> mastery::StudentId {
    mastery::StudentId::new("student_12345").unwrap()
}

fn day() -> Date {
    "2026-01-14".parse().unwrap()
}

/// Writes a key, reads it back, and finds it among no other keys.
fn check<K: TypedKey + PartialEq + std::fmt::Debug>(key: K, text: &str) {
    assert_eq!(key.key(), text);
    assert_eq!(K::parse(text.as_bytes()).as_ref(), Some(&key));
    assert_eq!(K::parse(format!("{text}:x").as_bytes()), None);
    assert_eq!(K::parse(format!("?{text}").as_bytes()), None);
}

#[test]
fn the_nine_builders_of_mastery() {
    use mastery::*;
    check(
        CurrentMastery { student_id: student() },
        "student:student_12345:profile:current_mastery",
    );
    check(
        DailyMastery { student_id: student(), date: day() },
        "student:student_12345:mastery:2026-01-14",
    );
    check(
        ComponentScore { student_id: student(), date: day(), component: Component::Quiz },
        "student:student_12345:mastery:2026-01-14:quiz",
    );
    let event_id = EventId::new("550e8400-e29b-41d4-a716-446655440000").unwrap();
    check(ProcessedEvent { event_id }, "processed:550e8400-e29b-41d4-a716-446655440000");
    check(ActivityRecent { student_id: student() }, "student:student_12345:activity:recent");
    check(
        Prediction { student_id: student(), days: Days::new(7).unwrap() },
        "student:student_12345:prediction:7days",
    );
    check(AdaptivePath { student_id: student() }, "student:student_12345:path:adaptive");
    let batch_id = BatchId::new("batch_20260114_001").unwrap();
    check(BatchStatus { batch_id }, "batch:batch_20260114_001:status");
    let school_id = SchoolId::new("university_abc").unwrap();
    let student_id = StudentId::new("12345").unwrap();
    check(
        SchoolMastery { school_id, student_id },
        "school:university_abc:student:12345:profile:current_mastery",
    );
}

#[test]
fn an_event_sorts_by_its_time() {
    let event = |ms| mastery::Event {
        student_id: student(),
        at: Millis::new(ms).unwrap(),
        event_id: mastery::EventId::new("e").unwrap(),
    };
    check(event(1_768_386_600_000), "student:student_12345:events:1768386600000:e");
    assert!(event(999).key() < event(1_000).key());
}

#[test]
fn an_address_with_colons_is_escaped_in_the_key_and_whole_in_the_value() {
    let ip = practice::Ip::new("2001:db8::1").unwrap();
    let key = practice::RatelimitIp { ip };
    check(key.clone(), "ratelimit:global:2001%3Adb8%3A%3A1");
    let read = practice::RatelimitIp::parse(key.key().as_bytes()).unwrap();
    assert_eq!(read.ip.as_str(), "2001:db8::1");
}

#[test]
fn a_key_without_placeholders_is_a_type_too() {
    check(practice::ContentChanges {}, "content:changes");
    check(practice::FeatureFlags {}, "feature_flag_cache");
}

#[test]
fn reviews_and_workflows_have_their_keys() {
    let learner_id = reviews::LearnerId::new("user@email.com").unwrap();
    let season = reviews::Season::new("SEASON-2026").unwrap();
    check(reviews::Schedule { learner_id, season }, "srs:user@email.com:SEASON-2026");
    let album = workflows::Album {
        execution_id: workflows::ExecutionId::new("exec-123").unwrap(),
        album_index: workflows::AlbumIndex::new(10).unwrap(),
    };
    assert_eq!((album.partition_key(), album.sort_key()), ("exec-123".into(), "album-10".into()));
    check(album, "exec-123:album-10");
    assert!(workflows::ExecutionId::new("task-1").is_err());
    let workflow_type = workflows::WorkflowType::StepFunctions;
    check(workflows::Metrics { date: day(), workflow_type }, "2026-01-14:metrics-step-functions");
}

#[test]
fn an_item_is_split_where_the_catalogue_says() {
    let daily = mastery::DailyMastery { student_id: student(), date: day() };
    assert_eq!(daily.partition_key(), "student:student_12345");
    assert_eq!(daily.partition_key(), mastery::DailyMastery::partition(&student()));
    assert_eq!(daily.sort_key(), "mastery:2026-01-14");
    assert!(daily.sort_key().starts_with(mastery::DailyMastery::FACTS.sort_prefix));
    let event_id = mastery::EventId::new("e-1").unwrap();
    let whole = mastery::ProcessedEvent { event_id };
    assert_eq!((whole.partition_key().as_str(), whole.sort_key().as_str()), ("processed:e-1", "#"));
}

#[test]
fn the_facts_of_a_pattern_are_known_when_code_is_compiled() {
    const DAILY: Ttl = mastery::DailyMastery::FACTS.ttl;
    assert_eq!(DAILY.seconds(), Some(7_776_000));
    assert_eq!(mastery::DailyMastery::FACTS.table, Some("state"));
    assert_eq!(reviews::Schedule::FACTS.table, None);
    assert_eq!(reviews::Schedule::FACTS.value_type, ValueType::Zset);
}

#[test]
fn values_that_no_key_may_have_are_refused_by_name() {
    let error = mastery::StudentId::new("a:b").unwrap_err();
    assert_eq!(error.placeholder, "student_id");
    assert!(mastery::StudentId::new("").is_err());
    assert!(mastery::StudentId::new("x".repeat(129)).is_err());
    assert!(mastery::Days::new(0).is_err() && mastery::Days::new(366).is_err());
    assert_eq!("ok".parse::<mastery::StudentId>().unwrap().to_string(), "ok");
    assert_eq!(mastery::Prediction::parse(b"student:s:prediction:366days"), None);
    assert_eq!(mastery::ComponentScore::parse(b"student:s:mastery:2026-01-14:other"), None);
}
