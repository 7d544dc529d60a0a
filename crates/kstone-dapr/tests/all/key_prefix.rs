//! The prefix of keys: Dapr's `keyPrefix`.

use kstone::Item;
use kstone_dapr::{DoorOptions, KeyPrefix};
use serde_json::json;

use crate::server::Server;

async fn start(key_prefix: KeyPrefix) -> Server {
    let stores = vec!["statestore".to_owned(), "other".to_owned()];
    Server::start_with(DoorOptions { stores, key_prefix, ..DoorOptions::default() }).await
}

#[tokio::test]
async fn a_key_is_stored_with_its_prefix_and_known_without_it() {
    let server = start(KeyPrefix::Text("shop".to_owned())).await;
    server.save(r#"[{"key":"k","value":1},{"key":"l","value":{"a":1}}]"#).await.done();
    let item = Item::new().with("pk", "shop||k").with("sk", "#");
    assert!(server.db.table("state").get(item).unwrap().is_some());
    assert_eq!(server.get("k").await.text(), "1");
    let found = server.query("", r#"{"filter":{"EQ":{"a":1}}}"#).await.json();
    assert_eq!(found["results"][0]["key"], "l");
    let found = server.query("?metadata.partitionKey=l", "{}").await.json();
    assert_eq!(found["results"].as_array().unwrap().len(), 1);
    server.save(r#"[{"key":"shop||k","value":2}]"#).await.refused(400, "ERR_MALFORMED_REQUEST");
    server.get("shop%7C%7Ck").await.refused(400, "ERR_MALFORMED_REQUEST");
    let operations = json!({"operations": [{"operation": "delete", "request": {"key": "k"}}]});
    server.transact(&operations.to_string()).await.done();
    assert_eq!(server.bulk(r#"{"keys":["k"]}"#).await.json(), json!([{"key": "k"}]));
}

#[tokio::test]
async fn stores_are_apart_when_their_names_stand_before_keys_and_one_otherwise() {
    for (prefix, is_shared) in [(KeyPrefix::Store, false), (KeyPrefix::None, true)] {
        let server = start(prefix).await;
        server.save(r#"[{"key":"k","value":1}]"#).await.done();
        let other = server.send("GET", "/v1.0/state/other/k", "", "").await;
        assert_eq!(other.status, if is_shared { 200 } else { 204 });
        let path = "/v1.0-alpha1/state/other/query";
        let found = server.send("POST", path, "", "{}").await;
        assert_eq!(found.status, if is_shared { 200 } else { 204 });
    }
}
