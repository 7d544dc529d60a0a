//! Each key of the section's table, made by its builder: the same item at both doors, and gone at the
//! very second that its pattern says.

use kstone_keyspace::keys::mastery::*;
use kstone_keyspace::typed::TypedKey;
use kstone_keyspace::{Date, Millis};
use kstone_redis::Value;
use serde_json::{Value as Json, json};

use crate::mastery::doors::{DAY_S, Doors, START_S, item, text, value};

pub const TIME: &str = "2026-01-14T09:00:00Z";

pub fn student(name: &str) -> StudentId {
    StudentId::new(name).unwrap()
}

/// The day this many days before the first.
pub fn day(before: u64) -> Date {
    Date::from_epoch_ms((START_S - before * DAY_S) * 1000).unwrap()
}

pub fn mastery(name: &str, score: f64) -> Json {
    json!({
        "student_id": name, "mastery_score": score, "level": "proficient", "timestamp": TIME,
        "components": {"completion": 0.9, "quiz": 0.8, "quality": 0.9, "consistency": 0.85},
        "version": 1,
    })
}

/// The key, where its item is, and its life, are as the section says, whichever door wrote it.
fn check<K: TypedKey>(key: &K, wanted: &str, place: (&str, &str), holds: &Json, life: Option<u64>) {
    assert_eq!(key.key(), wanted);
    let doors = Doors::open();
    doors.dapr().save_one(key, holds);
    is_there_until(&doors, key, place, holds, life);
    let doors = Doors::open();
    doors.dynamo().call("PutItem", json!({"Item": item(key, holds)})).unwrap();
    is_there_until(&doors, key, place, holds, life);
}

fn is_there_until<K: TypedKey>(
    doors: &Doors,
    key: &K,
    place: (&str, &str),
    holds: &Json,
    life: Option<u64>,
) {
    let (mut dapr, mut dynamo, name) = (doors.dapr(), doors.dynamo(), key.key());
    let item = dynamo.item(key).unwrap_or_else(|| panic!("{name}: DynamoDB has no such item"));
    assert_eq!((text(&item, "pk"), text(&item, "sk")), place);
    assert_eq!(value(&item), *holds, "{name}");
    let expires = item.get("ttl").map(|ttl| ttl["N"].as_str().unwrap().parse::<u64>().unwrap());
    assert_eq!(expires, life.map(|life| START_S + life), "{name}");
    doors.clock.advance(life.unwrap_or(10_000 * DAY_S) * 1000 - 1);
    assert_eq!(dapr.value(&name).as_ref(), Some(holds), "{name} is gone too early");
    assert_eq!(dynamo.item(key), Some(item), "{name} is gone too early");
    doors.clock.advance(1);
    assert_eq!(dapr.value(&name).is_some(), life.is_none(), "{name} at the end of its life");
    assert_eq!(dynamo.item(key).is_some(), life.is_none(), "{name} at the end of its life");
}

#[test]
fn the_current_mastery_has_no_end() {
    let key = CurrentMastery { student_id: student("s1") };
    let place = ("student:s1", "profile:current_mastery");
    check(&key, "student:s1:profile:current_mastery", place, &mastery("s1", 0.862), None);
}

#[test]
fn a_day_of_mastery_and_its_components_live_for_90_days() {
    let key = DailyMastery { student_id: student("s1"), date: day(0) };
    let place = ("student:s1", "mastery:2026-01-14");
    let holds = mastery("s1", 0.862);
    check(&key, "student:s1:mastery:2026-01-14", place, &holds, Some(7_776_000));
    for (component, name) in [
        (Component::Completion, "completion"),
        (Component::Quiz, "quiz"),
        (Component::Quality, "quality"),
        (Component::Consistency, "consistency"),
    ] {
        let key = ComponentScore { student_id: student("s1"), date: day(0), component };
        let sort = format!("mastery:2026-01-14:{name}");
        let wanted = format!("student:s1:{sort}");
        check(&key, &wanted, ("student:s1", &sort), &json!(0.85), Some(7_776_000));
    }
}

#[test]
fn recent_activity_lives_for_30_days() {
    let key = ActivityRecent { student_id: student("s1") };
    let place = ("student:s1", "activity:recent");
    let holds =
        json!({"last_activity": TIME, "current_streak": 1, "max_streak": 2, "activity_log": []});
    check(&key, "student:s1:activity:recent", place, &holds, Some(2_592_000));
}

#[test]
fn histories_have_no_end() {
    for (history_type, name) in [
        (HistoryType::Full, "full"),
        (HistoryType::Components, "components"),
        (HistoryType::Recommendations, "recommendations"),
    ] {
        let key = History { student_id: student("s1"), history_type };
        let sort = format!("history:{name}");
        check(
            &key,
            &format!("student:s1:{sort}"),
            ("student:s1", &sort),
            &json!({"days": 1}),
            None,
        );
    }
}

#[test]
fn a_prediction_lives_for_an_hour_and_a_path_for_a_day() {
    let key = Prediction { student_id: student("s1"), days: Days::new(7).unwrap() };
    let holds = json!({
        "predicted_score": 0.9, "confidence": 0.8, "trend": "improving",
        "intervention_needed": false, "calculated_at": TIME,
    });
    let place = ("student:s1", "prediction:7days");
    check(&key, "student:s1:prediction:7days", place, &holds, Some(3600));
    let key = AdaptivePath { student_id: student("s1") };
    let place = ("student:s1", "path:adaptive");
    check(&key, "student:s1:path:adaptive", place, &json!([{"step": 1}]), Some(86_400));
}

#[test]
fn an_event_and_its_marker_live_for_90_days() {
    let at = Millis::new(START_S * 1000).unwrap();
    let event_id = EventId::new("e1").unwrap();
    let key = Event { student_id: student("s1"), at, event_id: event_id.clone() };
    let place = ("student:s1", "events:1768381200000:e1");
    let wanted = "student:s1:events:1768381200000:e1";
    check(&key, wanted, place, &json!({"kind": "quiz"}), Some(7_776_000));
    let key = ProcessedEvent { event_id };
    let holds = json!({"event_id": "e1", "processed_at": TIME, "result": "success"});
    check(&key, "processed:e1", ("processed:e1", "#"), &holds, Some(7_776_000));
}

#[test]
fn the_status_of_a_batch_lives_for_7_days() {
    let key = BatchStatus { batch_id: BatchId::new("b1").unwrap() };
    let holds = json!({
        "batch_id": "b1", "total_requests": 2, "completed": 1, "failed": 0, "in_progress": 1,
        "started_at": TIME, "status": "processing",
    });
    check(&key, "batch:b1:status", ("batch:b1", "status"), &holds, Some(604_800));
}

#[test]
fn what_a_school_knows_has_no_end() {
    let school_id = SchoolId::new("u1").unwrap();
    let key = SchoolMastery { school_id: school_id.clone(), student_id: student("s1") };
    let place = ("school:u1:student:s1", "profile:current_mastery");
    let wanted = "school:u1:student:s1:profile:current_mastery";
    check(&key, wanted, place, &mastery("s1", 0.5), None);
    let key = SchoolAggregation { school_id, date: day(0) };
    let place = ("school:u1:aggregation", "mastery:2026-01-14");
    let wanted = "school:u1:aggregation:mastery:2026-01-14";
    check(&key, wanted, place, &json!({"average": 0.5}), None);
}

#[test]
fn the_second_level_cache_lives_for_five_minutes() {
    let doors = Doors::open();
    let mut redis = doors.redis();
    let key = MasteryCache { student_id: student("s1") };
    assert_eq!(key.key(), "mastery:s1");
    redis.say(&format!("SET mastery:s1 {}", mastery("s1", 0.5))).unwrap();
    assert_eq!(redis.say("PTTL mastery:s1").unwrap(), Value::Integer(300_000));
    doors.clock.advance(299_999);
    assert_eq!(redis.say("EXISTS mastery:s1").unwrap(), Value::Integer(1));
    doors.clock.advance(1);
    assert_eq!(redis.say("EXISTS mastery:s1").unwrap(), Value::Integer(0));
}

#[test]
fn a_life_may_be_named_and_be_shorter_or_as_long_as_the_rule_at_any_moment_of_a_second() {
    let doors = Doors::open();
    let mut dapr = doors.dapr();
    let key = DailyMastery { student_id: student("s1"), date: day(0) }.key();
    for into_ms in [0, 1, 499, 500, 999] {
        doors.clock.advance(into_ms);
        for (seconds, status) in [("60", 204), ("7776000", 204), ("7776002", 400), ("-1", 400)] {
            let metadata = json!({ "ttlInSeconds": seconds });
            let state = json!({"key": key, "value": mastery("s1", 0.5), "metadata": metadata});
            assert_eq!(dapr.try_save(&json!([state])), status, "{seconds} at {into_ms} ms");
        }
        doors.clock.advance(1000 - into_ms);
    }
}
