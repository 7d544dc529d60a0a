//! The access patterns of the section, each through the Dapr door and through the DynamoDB door: both
//! give the same.

use kstone_keyspace::Millis;
use kstone_keyspace::keys::mastery::*;
use kstone_keyspace::typed::TypedKey;
use serde_json::{Value as Json, json};

use crate::mastery::doors::{Doors, START_S, item, key_of, value};
use crate::mastery::keys::{day, mastery, student};

fn current(name: &str) -> CurrentMastery {
    CurrentMastery { student_id: student(name) }
}

fn daily(name: &str, before: u64) -> DailyMastery {
    DailyMastery { student_id: student(name), date: day(before) }
}

/// The six operations of `save_mastery_update`.
fn update(name: &str, score: f64) -> Vec<(String, Json)> {
    let mut all = vec![
        (current(name).key(), mastery(name, score)),
        (daily(name, 0).key(), mastery(name, score)),
    ];
    for component in
        [Component::Completion, Component::Quiz, Component::Quality, Component::Consistency]
    {
        let key = ComponentScore { student_id: student(name), date: day(0), component };
        all.push((key.key(), json!(score)));
    }
    all
}

#[test]
fn get_current_mastery_finds_what_either_door_wrote() {
    let doors = Doors::open();
    let (mut dapr, mut dynamo) = (doors.dapr(), doors.dynamo());
    let key = current("s1");
    assert_eq!((dapr.value(&key.key()), dynamo.item(&key)), (None, None));
    dapr.save_one(&key, &mastery("s1", 0.5));
    assert_eq!(value(&dynamo.item(&key).unwrap()), mastery("s1", 0.5));
    dynamo.call("PutItem", json!({"Item": item(&key, &mastery("s1", 0.75))})).unwrap();
    assert_eq!(dapr.value(&key.key()), Some(mastery("s1", 0.75)));
    assert_eq!(dapr.value("st:s1:cur"), Some(mastery("s1", 0.75)), "by its short form");
}

#[test]
fn get_mastery_history_has_both_ends_and_skips_the_days_between_that_are_missing() {
    let doors = Doors::open();
    let (mut dapr, mut dynamo) = (doors.dapr(), doors.dynamo());
    // Out of order; around the days that are asked for; with components, which are no days.
    for before in [0, 6, 5, 3, 1, 7] {
        dapr.save_one(&daily("s1", before), &mastery("s1", 0.1 * before as f64));
        let (student_id, component) = (student("s1"), Component::Quiz);
        let score = ComponentScore { student_id, date: day(before), component };
        dapr.save_one(&score, &json!(0.5));
    }
    let keys: Vec<String> = (1..=6).rev().map(|before| daily("s1", before).key()).collect();
    let at_dapr: Vec<Json> = dapr.get_many(&keys).into_iter().flatten().collect();
    let ends = (daily("s1", 6).sort_key(), daily("s1", 1).sort_key());
    let between = [(":first", ends.0.as_str()), (":last", ends.1.as_str())];
    let found = dynamo.query("student:s1", "sk BETWEEN :first AND :last", &between);
    let is_day = |found: &&Json| DailyMastery::parse(key_of(found).as_bytes()).is_some();
    let at_dynamo: Vec<Json> = found.iter().filter(is_day).map(value).collect();
    let wanted: Vec<Json> = [6, 5, 3, 1].map(|n| mastery("s1", 0.1 * f64::from(n))).to_vec();
    assert_eq!((&at_dapr, &at_dynamo), (&wanted, &wanted));
}

#[test]
fn get_component_trend_is_thirty_days_each_with_its_date() {
    let doors = Doors::open();
    let mut dapr = doors.dapr();
    let key = |before| ComponentScore {
        student_id: student("s1"),
        date: day(before),
        component: Component::Quality,
    };
    for before in [0, 2, 29, 30] {
        dapr.save_one(&key(before), &json!(before as f64 / 100.0));
    }
    let keys: Vec<ComponentScore> = (0..30).map(key).collect();
    let texts: Vec<String> = keys.iter().map(ComponentScore::key).collect();
    let trend: Vec<(String, f64)> = keys
        .iter()
        .zip(dapr.get_many(&texts))
        .filter_map(|(key, score)| Some((key.date.to_string(), score?.as_f64().unwrap())))
        .collect();
    let wanted = [("2026-01-14", 0.0), ("2026-01-12", 0.02), ("2025-12-16", 0.29)];
    assert_eq!(trend, wanted.map(|(day, score)| (day.to_owned(), score)));
    let mut dynamo = doors.dynamo();
    for (before, (_, score)) in [0, 2, 29].into_iter().zip(&trend) {
        assert_eq!(value(&dynamo.item(&key(before)).unwrap()), json!(score));
    }
}

#[test]
fn save_mastery_update_is_six_operations_or_none() {
    let doors = Doors::open();
    let (mut dapr, mut dynamo) = (doors.dapr(), doors.dynamo());
    let mut wrong = update("s1", 0.5);
    wrong[5].1 = json!(1.5);
    assert_eq!(dapr.transact(&wrong), 400);
    let put = |(key, value): &(String, Json)| {
        let (pk, sk) = key.split_at("student:s1".len());
        let item =
            json!({"pk": {"S": pk}, "sk": {"S": &sk[1..]}, "value": {"S": value.to_string()}});
        json!({"Put": {"TableName": "state", "Item": item}})
    };
    let puts: Vec<Json> = wrong.iter().map(put).collect();
    let refused = dynamo.call_all("TransactWriteItems", json!({ "TransactItems": puts }));
    assert_eq!(refused.unwrap_err(), "TransactionCanceledException");
    assert_eq!(dynamo.query("student:s1", "", &[]), [] as [Json; 0]);
    assert_eq!(dapr.transact(&update("s1", 0.5)), 204);
    let mut wanted: Vec<String> = update("s1", 0.5).into_iter().map(|it| it.0).collect();
    wanted.sort();
    let found = dynamo.query("student:s1", "", &[]);
    let mut keys: Vec<String> = found.iter().map(key_of).collect();
    keys.sort();
    assert_eq!(keys, wanted);
}

#[test]
fn save_batch_mastery_and_get_batch_mastery_know_each_learner() {
    let doors = Doors::open();
    let (mut dapr, mut dynamo) = (doors.dapr(), doors.dynamo());
    let names: Vec<String> = (0..40).map(|n| format!("s{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        assert_eq!(dapr.transact(&update(name, n as f64 / 100.0)), 204);
    }
    let keys: Vec<String> = names.iter().map(|name| current(name).key()).collect();
    let mut asked = keys.clone();
    asked.push(current("nobody").key());
    let at_dapr = dapr.get_many(&asked);
    let wanted = names.iter().enumerate().map(|(n, name)| Some(mastery(name, n as f64 / 100.0)));
    assert_eq!(at_dapr, wanted.chain([None]).collect::<Vec<_>>());
    let keys: Vec<Json> =
        names.iter().map(|name| crate::mastery::doors::place(&current(name))).collect();
    let request = json!({"RequestItems": {"state": {"Keys": keys}}});
    let found = dynamo.call_all("BatchGetItem", request).unwrap();
    let mut at_dynamo: Vec<Json> =
        found["Responses"]["state"].as_array().unwrap().iter().map(value).collect();
    at_dynamo.sort_by(|a, b| {
        a["mastery_score"].as_f64().partial_cmp(&b["mastery_score"].as_f64()).unwrap()
    });
    assert_eq!(at_dynamo, at_dapr.into_iter().flatten().collect::<Vec<_>>());
}

#[test]
fn append_mastery_event_never_changes_one_and_rebuild_reads_them_in_order() {
    let doors = Doors::open();
    let (mut dapr, mut dynamo) = (doors.dapr(), doors.dynamo());
    let event = |second: u64, name: &str| Event {
        student_id: student("s1"),
        at: Millis::new((START_S + second) * 1000).unwrap(),
        event_id: EventId::new(name).unwrap(),
    };
    let once = |key: &Event, score: f64| json!([{"key": key.key(), "value": {"score": score}, "options": {"concurrency": "first-write"}}]);
    assert_eq!(dapr.try_save(&once(&event(20, "b"), 0.2)), 204);
    assert_eq!(dapr.try_save(&once(&event(20, "b"), 0.9)), 409, "it happened already");
    let put = |key: &Event, score: f64| {
        let condition = "attribute_not_exists(pk)";
        json!({"Item": item(key, &json!({"score": score})), "ConditionExpression": condition})
    };
    dynamo.call("PutItem", put(&event(10, "z"), 0.1)).unwrap();
    dynamo.call("PutItem", put(&event(30, "a"), 0.3)).unwrap();
    for key in [event(10, "z"), event(20, "b")] {
        let refused = dynamo.call("PutItem", put(&key, 0.9)).unwrap_err();
        assert_eq!(refused, "ConditionalCheckFailedException");
    }
    dapr.save_one(&current("s1"), &mastery("s1", 0.3));
    let wanted: Vec<Json> = [0.1, 0.2, 0.3].map(|score| json!({ "score": score })).to_vec();
    let prefix = [(":prefix", Event::FACTS.sort_prefix)];
    let found = dynamo.query("student:s1", "begins_with(sk, :prefix)", &prefix);
    assert_eq!(found.iter().map(value).collect::<Vec<_>>(), wanted);
    let mut listed = dapr.list("student:s1:events:");
    listed.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(listed.into_iter().map(|it| it.1).collect::<Vec<_>>(), wanted);
}

#[test]
fn debug_student_state_is_one_query_of_one_partition() {
    let doors = Doors::open();
    let (mut dapr, mut dynamo) = (doors.dapr(), doors.dynamo());
    for name in ["s1", "s10", "s2"] {
        assert_eq!(dapr.transact(&update(name, 0.5)), 204);
        dapr.save_one(&AdaptivePath { student_id: student(name) }, &json!([]));
    }
    let mut wanted: Vec<(String, Json)> = update("s1", 0.5);
    wanted.push(("student:s1:path:adaptive".to_owned(), json!([])));
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    let found = dynamo.query("student:s1", "", &[]);
    let at_dynamo: Vec<(String, Json)> = found.iter().map(|it| (key_of(it), value(it))).collect();
    assert_eq!(at_dynamo, wanted, "all of this learner, nothing of another, in order");
    let mut at_dapr = dapr.list("student:s1:");
    at_dapr.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(at_dapr, wanted);
}
