//! Transactions: all or nothing, in order.

use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn operations_take_effect_in_their_order_also_on_one_key() {
    let server = Server::start().await;
    server.save(r#"[{"key":"gone","value":0},{"key":"b","value":0}]"#).await.done();
    let operations = json!({"operations": [
        {"operation": "upsert", "request": {"key": "a", "value": 1}},
        {"operation": "delete", "request": {"key": "a"}},
        {"operation": "upsert", "request": {"key": "a", "value": 2}},
        {"operation": "upsert", "request": {"key": "b", "value": 1}},
        {"operation": "delete", "request": {"key": "b"}},
        {"operation": "delete", "request": {"key": "gone"}},
        {"operation": "delete", "request": {"key": "never there"}},
    ]});
    server.transact(&operations.to_string()).await.done();
    assert_eq!(server.get("a").await.text(), "2");
    server.get("b").await.done();
    server.get("gone").await.done();
    server.transact(r#"{"operations":[]}"#).await.done();
}

#[tokio::test]
async fn one_stale_etag_undoes_the_whole_transaction() {
    let server = Server::start().await;
    server.save(r#"[{"key":"a","value":1},{"key":"b","value":1}]"#).await.done();
    let (a, b) = (server.etag("a").await, server.etag("b").await);
    let operations = |b: &str| {
        json!({"operations": [
            {"operation": "upsert", "request": {"key": "a", "value": 2, "etag": a}},
            {"operation": "upsert", "request": {"key": "new", "value": 2}},
            {"operation": "delete", "request": {"key": "b", "etag": b}},
        ]})
        .to_string()
    };
    let refused = server.transact(&operations("12345")).await;
    let message = refused.refused(409, "ERR_STATE_TRANSACTION");
    assert!(message.contains("key b "), "it names the key: {message}");
    assert_eq!(server.get("a").await.text(), "1");
    server.get("new").await.done();
    server.transact(&operations(&b)).await.done();
    assert_eq!((server.get("a").await.text(), server.get("b").await.status), ("2", 204));
}

#[tokio::test]
async fn a_transaction_has_its_own_time_to_live_and_each_operation_may_have_another() {
    let server = Server::start().await;
    let operations = json!({
        "operations": [
            {"operation": "upsert", "request": {"key": "a", "value": 1}},
            {"operation": "upsert",
             "request": {"key": "b", "value": 1, "metadata": {"ttlInSeconds": "60"}}},
        ],
        "metadata": {"ttlInSeconds": "30"},
    });
    server.transact(&operations.to_string()).await.done();
    for (key, expires) in [("a", "2026-01-14T09:00:30Z"), ("b", "2026-01-14T09:01:00Z")] {
        assert_eq!(server.get(key).await.headers["metadata.ttlexpiretime"], expires);
    }
}

#[tokio::test]
async fn a_transaction_of_more_than_100_keys_is_refused_and_a_save_of_more_is_not() {
    let server = Server::start().await;
    let upsert =
        |n: usize| json!({"operation": "upsert", "request": {"key": format!("k{n}"), "value": n}});
    let operations =
        |count: usize| json!({"operations": (0..count).map(upsert).collect::<Vec<_>>()});
    let refused = server.transact(&operations(101).to_string()).await;
    assert!(refused.refused(413, "ERR_STATE_TRANSACTION").contains("at most 100"));
    server.get("k0").await.done();
    server.transact(&operations(100).to_string()).await.done();
    assert_eq!(server.get("k99").await.text(), "99");
    let saves: Vec<_> = (0..250).map(|n| json!({"key": format!("k{n}"), "value": -1})).collect();
    server.save(&json!(saves).to_string()).await.done();
    assert_eq!(server.get("k249").await.text(), "-1");
}
