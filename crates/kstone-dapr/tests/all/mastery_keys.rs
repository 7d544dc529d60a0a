//! The mastery engine's keys and their times to live, through the Dapr door.

use kstone::ops::KeyCondition;
use kstone::{Item, Value};
use serde_json::{Value as Json, json};

use crate::server::{START_S, Server};

const DAY: u64 = 86_400;
const TIME: &str = "2026-01-14T09:00:00Z";

fn mastery() -> Json {
    json!({
        "student_id": "s1", "mastery_score": 0.85, "level": "proficient",
        "components": {"completion": 0.9}, "timestamp": TIME, "version": 1,
    })
}

/// Each key of the table with a value that it may hold, where its item is, and its time to live in seconds.
fn rows() -> Vec<(&'static str, Json, &'static str, &'static str, Option<u64>)> {
    let prediction = json!({
        "predicted_score": 0.9, "confidence": 0.8, "trend": "up",
        "intervention_needed": false, "calculated_at": TIME,
    });
    let activity =
        json!({"last_activity": TIME, "current_streak": 1, "max_streak": 2, "activity_log": []});
    let processed = json!({"event_id": "e1", "processed_at": TIME, "result": "ok"});
    let batch = json!({
        "batch_id": "b1", "total_requests": 2, "completed": 1, "failed": 0, "in_progress": 1,
        "started_at": TIME, "status": "running",
    });
    let s1 = "student:s1";
    vec![
        ("student:s1:profile:current_mastery", mastery(), s1, "profile:current_mastery", None),
        ("student:s1:mastery:2026-01-14", mastery(), s1, "mastery:2026-01-14", Some(90 * DAY)),
        (
            "student:s1:mastery:2026-01-14:completion",
            json!(0.9),
            s1,
            "mastery:2026-01-14:completion",
            Some(7_776_000),
        ),
        ("student:s1:activity:recent", activity, s1, "activity:recent", Some(2_592_000)),
        ("student:s1:history:full", json!({}), s1, "history:full", None),
        ("student:s1:prediction:7days", prediction, s1, "prediction:7days", Some(3600)),
        ("student:s1:path:adaptive", json!([]), s1, "path:adaptive", Some(86_400)),
        (
            "student:s1:events:1768381200000:e1",
            json!({"kind": "quiz"}),
            s1,
            "events:1768381200000:e1",
            Some(7_776_000),
        ),
        ("processed:e1", processed, "processed:e1", "#", Some(7_776_000)),
        ("batch:b1:status", batch, "batch:b1", "status", Some(604_800)),
        (
            "school:u1:student:s1:profile:current_mastery",
            mastery(),
            "school:u1:student:s1",
            "profile:current_mastery",
            None,
        ),
        (
            "school:u1:aggregation:mastery:2026-01-14",
            json!({"average": 0.5}),
            "school:u1:aggregation",
            "mastery:2026-01-14",
            None,
        ),
    ]
}

#[tokio::test]
async fn every_key_of_the_table_gets_its_exact_life_and_is_the_same_item_at_the_dynamodb_door() {
    let server = Server::governed().await;
    let table = server.db.table("state");
    for (key, value, pk, sk, ttl) in rows() {
        server.save(&json!([{"key": key, "value": value}]).to_string()).await.done();
        assert_eq!(server.get(key).await.json(), value, "{key}");
        let item = table.get(Item::new().with("pk", pk).with("sk", sk)).unwrap().expect(key);
        let expires = item.get("ttl").and_then(Value::as_number).and_then(|it| it.to_u64());
        assert_eq!(expires, ttl.map(|ttl| START_S + ttl), "{key}");
        assert_eq!(item.get("value").unwrap().as_str(), Some(value.to_string().as_str()));
    }
}

#[tokio::test]
async fn all_of_a_learners_days_are_one_query_in_order() {
    let server = Server::governed().await;
    for day in ["2026-01-15", "2026-01-13", "2026-01-14"] {
        let key = format!("student:s1:mastery:{day}");
        server.save(&json!([{"key": key, "value": mastery()}]).to_string()).await.done();
    }
    let request = kstone::ops::Query {
        table: "state".to_owned(),
        key_condition: Some(KeyCondition::Text("pk = :pk AND begins_with(sk, :prefix)".to_owned())),
        placeholders: kstone::placeholders([(":pk", "student:s1"), (":prefix", "mastery:")]),
        ..kstone::ops::Query::default()
    };
    let items = server.db.query_items(&request).wait().unwrap().items.unwrap();
    let days: Vec<String> = items
        .iter()
        .map(|item| item.decode().unwrap().get("sk").unwrap().as_str().unwrap().to_owned())
        .collect();
    assert_eq!(days, ["mastery:2026-01-13", "mastery:2026-01-14", "mastery:2026-01-15"]);
}

#[tokio::test]
async fn save_mastery_update_is_six_operations_all_or_nothing() {
    let server = Server::governed().await;
    let day = "student:s1:mastery:2026-01-14";
    let mut operations = vec![
        json!({"operation": "upsert",
               "request": {"key": "student:s1:profile:current_mastery", "value": mastery()}}),
        json!({"operation": "upsert", "request": {"key": day, "value": mastery()}}),
    ];
    for component in ["completion", "quiz", "quality", "consistency"] {
        let request = json!({"key": format!("{day}:{component}"), "value": 0.5});
        operations.push(json!({"operation": "upsert", "request": request}));
    }
    let mut wrong = operations.clone();
    wrong[5]["request"]["value"] = json!(1.5);
    let refused = server.transact(&json!({"operations": wrong}).to_string()).await;
    let message = refused.refused(400, "ERR_STATE_TRANSACTION");
    assert!(message.contains("mastery.component_score"), "{message}");
    server.get(day).await.done();
    server.transact(&json!({"operations": operations}).to_string()).await.done();
    for component in ["completion", "quiz", "quality", "consistency"] {
        assert_eq!(server.get(&format!("{day}:{component}")).await.text(), "0.5");
    }
}

#[tokio::test]
async fn a_declared_life_may_be_shortened_but_not_lengthened_or_taken_away() {
    let server = Server::governed().await;
    let save = |ttl: i64| {
        let metadata = json!({"ttlInSeconds": ttl.to_string()});
        let key = "student:s1:mastery:2026-01-14";
        json!([{"key": key, "value": mastery(), "metadata": metadata}]).to_string()
    };
    server.save(&save(60)).await.done();
    for wrong in [7_776_001, -1] {
        let refused = server.save(&save(wrong)).await.refused(400, "ERR_STATE_SAVE");
        assert!(refused.contains("mastery.daily_mastery: ttl"), "{refused}");
    }
}

#[tokio::test]
async fn a_short_form_reads_its_long_form_and_is_not_written() {
    let server = Server::governed().await;
    let long = json!([{"key": "student:s1:mastery:2026-01-14", "value": mastery()}]);
    server.save(&long.to_string()).await.done();
    assert_eq!(server.get("st:s1:m:2026-01-14").await.json(), mastery());
    let short = json!([{"key": "st:s1:m:2026-01-14", "value": mastery()}]);
    server.save(&short.to_string()).await.refused(400, "ERR_STATE_SAVE");
}
