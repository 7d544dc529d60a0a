//! Time to live, and the expiry of keys.

use serde_json::json;

use crate::server::{START_S, Server};

fn save(key: &str, ttl: &str) -> String {
    json!([{"key": key, "value": 1, "metadata": {"ttlInSeconds": ttl}}]).to_string()
}

#[tokio::test]
async fn a_key_is_gone_at_the_second_nearest_to_the_end_of_its_life() {
    // A quarter of a second into a second its life ends early by that, and at three quarters late.
    for (into_ms, last) in [(250, "2026-01-14T09:00:02Z"), (750, "2026-01-14T09:00:03Z")] {
        let server = Server::start().await;
        server.clock.advance(into_ms);
        server.save(&save("k", "2")).await.done();
        let answer = server.get("k").await;
        assert_eq!(answer.headers["metadata.ttlexpiretime"], last);
        server.clock.advance(if into_ms < 500 { 1_749 } else { 2_249 });
        assert_eq!(server.get("k").await.status, 200, "{last} has not come yet");
        server.clock.advance(1);
        server.get("k").await.done();
        assert_eq!(server.bulk(r#"{"keys":["k"]}"#).await.json(), json!([{"key": "k"}]));
    }
}

#[tokio::test]
async fn a_key_whose_time_is_over_is_absent_to_first_writes_and_etags() {
    let server = Server::start().await;
    server.save(&save("k", "1")).await.done();
    let etag = server.etag("k").await;
    server.clock.advance(1_000);
    let with_etag = json!([{"key": "k", "value": 2, "etag": etag}]).to_string();
    server.save(&with_etag).await.refused(409, "ERR_STATE_SAVE");
    let first = r#"[{"key":"k","value":2,"options":{"concurrency":"first-write"}}]"#;
    server.save(first).await.done();
    assert_eq!(server.get("k").await.text(), "2");
}

#[tokio::test]
async fn a_later_write_sets_the_life_anew_and_minus_one_ends_it() {
    let server = Server::start().await;
    let expires =
        async |key: &str| server.get(key).await.headers.get("metadata.ttlexpiretime").cloned();
    server.save(&save("k", "10")).await.done();
    server.save(&save("k", "20")).await.done();
    assert_eq!(expires("k").await.as_deref(), Some("2026-01-14T09:00:20Z"));
    server.save(&save("k", "-1")).await.done();
    assert_eq!(expires("k").await, None);
    server.save(&save("k", "10")).await.done();
    server.save(r#"[{"key":"k","value":1}]"#).await.done();
    assert_eq!(expires("k").await, None, "a write replaces all of it");
    let number = r#"[{"key":"k","value":1,"metadata":{"ttlInSeconds":5}}]"#;
    server.save(number).await.done();
    assert_eq!(expires("k").await.as_deref(), Some("2026-01-14T09:00:05Z"));
}

#[tokio::test]
async fn a_bulk_answer_says_when_keys_end() {
    let server = Server::start().await;
    server.save(&save("k", "60")).await.done();
    let found = server.bulk(r#"{"keys":["k"]}"#).await.json();
    assert_eq!(found[0]["metadata"]["ttlExpireTime"], "2026-01-14T09:01:00Z");
    let entry = server.state.get("k").await.unwrap().unwrap();
    assert_eq!(entry.expires_at_s, Some(START_S + 60));
}
