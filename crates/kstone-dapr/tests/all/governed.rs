//! Keys that a catalogue declares: the database applies its rules for values and times to live.
//! Without a catalogue a write is stored as the client sends it.

use kstone::Item;
use kstone::ops::KeyCondition;
use serde_json::json;

use crate::component::{Sidecar, set};
use crate::server::{START_S, Server};

const DAY: &str = "student:s1:mastery:2026-01-14:quiz";
/// The time to live of such a key, in seconds.
const LIFE_S: u64 = 7_776_000;

fn save(key: &str, value: serde_json::Value, ttl: Option<&str>) -> String {
    let mut one = json!({"key": key, "value": value});
    if let Some(ttl) = ttl {
        one["metadata"] = json!({"ttlInSeconds": ttl});
    }
    json!([one]).to_string()
}

#[tokio::test]
async fn nothing_is_refused_or_given_a_life_when_no_keyspace_is_in_force() {
    let server = Server::start().await;
    server.save(&save(DAY, json!("no score"), None)).await.done();
    assert_eq!(server.state.get(DAY).await.unwrap().unwrap().expires_at_s, None);
    server.save(&save("st:s1:m:2026-01-14", json!(1), None)).await.done();
    assert_eq!(server.get("st:s1:m:2026-01-14").await.text(), "1", "a short form holds its own");
}

#[tokio::test]
async fn the_longest_life_may_be_asked_for_at_any_moment_and_nothing_beyond() {
    let server = Server::governed().await;
    for moment in [0, 1, 250, 748] {
        server.clock.advance(moment);
        let longest = LIFE_S.to_string();
        server.save(&save(DAY, json!(0.5), Some(&longest))).await.done();
        let expires = server.state.get(DAY).await.unwrap().unwrap().expires_at_s.unwrap();
        assert!(expires == START_S + LIFE_S || expires == START_S + LIFE_S + 1);
        let beyond = (LIFE_S + 2).to_string();
        let refused = server.save(&save(DAY, json!(0.5), Some(&beyond))).await;
        let message = refused.refused(400, "ERR_STATE_SAVE");
        assert!(message.starts_with(&format!("key {DAY}: ")), "{message}");
    }
}

#[tokio::test]
async fn a_key_that_need_not_end_may_be_told_not_to() {
    let server = Server::governed().await;
    // No pattern: it lives as long as the client says.
    server.save(&save("order:7", json!(1), Some("-1"))).await.done();
    let item = Item::new().with("pk", "order:7").with("sk", "#");
    let item = server.db.table("state").get(item).unwrap().unwrap();
    assert_eq!(item.get("ttl"), None, "nothing is written that nobody has to know");
    server.save(&save(DAY, json!(0.5), Some("-1"))).await.refused(400, "ERR_STATE_SAVE");
    server.get(DAY).await.done();
}

#[tokio::test]
async fn a_sidecars_keys_are_declared_behind_the_name_of_its_application() {
    let server = Server::governed().await;
    let sidecar = Sidecar::of(&server).await;
    let key = format!("shop||{DAY}");
    sidecar.set(set(&key, b"0.5")).await.unwrap();
    let item = Item::new().with("pk", "shop||student:s1").with("sk", "mastery:2026-01-14:quiz");
    assert!(server.db.table("state").get(item).unwrap().is_some());
    assert_eq!(server.state.get(&key).await.unwrap().unwrap().expires_at_s, Some(START_S + LIFE_S));
    let persons = kstone::ops::Query {
        table: kstone::policy::SUBJECTS_TABLE.to_owned(),
        key_condition: Some(KeyCondition::Text("pk = :pk".to_owned())),
        placeholders: kstone::placeholders([(":pk", "subject#s1")]),
        ..Default::default()
    };
    let found = server.db.query_items(&persons).wait().unwrap().items.unwrap();
    assert_eq!(found.len(), 1, "erasure finds it");
    let refused = sidecar.set(set(&key, b"1.5")).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(refused.message().contains("mastery.component_score"), "{refused:?}");
    let short = sidecar.set(set("shop||st:s1:m:2026-01-14", b"{}")).await.unwrap_err();
    assert!(short.message().contains("written"), "{short:?}");
}
