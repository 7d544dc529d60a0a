//! The state API over HTTP: paths, headers and JSON, and the errors.

use kstone_dapr::DoorOptions;
use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn a_value_is_saved_and_read_byte_for_byte_and_deleted() {
    let server = Server::start().await;
    let values = ["{\"b\": 1,  \"a\":[1.0, null]}", "\"text\"", "0.85", "null", "true", "[]"];
    for (at, value) in values.iter().enumerate() {
        let method = if at % 2 == 0 { "POST" } else { "PUT" };
        let body = format!("[{{\"key\":\"k{at}\",\"value\":{value}}}]");
        server.send(method, "/v1.0/state/statestore", "", &body).await.done();
        let answer = server.get(&format!("k{at}")).await;
        assert_eq!((answer.status, answer.text()), (200, *value));
        assert_eq!(answer.headers["content-type"], "application/json");
        assert!(answer.headers["etag"].bytes().all(|byte| byte.is_ascii_digit()));
        server.delete(&format!("k{at}"), "").await.done();
        server.get(&format!("k{at}")).await.done();
    }
    server.delete("never-there", "").await.done();
}

#[tokio::test]
async fn keys_may_hold_anything_that_a_path_can_escape() {
    let server = Server::start().await;
    server.save(r#"[{"key":"a b/c?d é","value":1}]"#).await.done();
    assert_eq!(server.get("a%20b%2Fc%3Fd%20%C3%A9").await.text(), "1");
}

#[tokio::test]
async fn several_keys_are_read_at_once_in_the_order_asked_with_those_that_are_missing() {
    let server = Server::start().await;
    let saves: Vec<_> = (0..150).map(|n| json!({"key": format!("n{n}"), "value": n})).collect();
    server.save(&json!(saves).to_string()).await.done();
    let mut keys: Vec<String> = (0..150).rev().map(|n| format!("n{n}")).collect();
    keys.push("missing".to_owned());
    keys.push("n7".to_owned());
    let answer = server.bulk(&json!({"keys": keys, "parallelism": 10}).to_string()).await;
    assert_eq!(answer.status, 200);
    let found = answer.json();
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), 152);
    for (key, one) in keys.iter().zip(found) {
        assert_eq!(one["key"], **key);
    }
    assert_eq!((&found[0]["data"], &found[149]["data"]), (&json!(149), &json!(0)));
    assert_eq!(found[150], json!({"key": "missing"}));
    assert_eq!(found[151]["data"], json!(7));
    assert_eq!(found[151]["etag"], server.etag("n7").await);
    assert_eq!(server.bulk(r#"{"keys":[]}"#).await.json(), json!([]));
}

#[tokio::test]
async fn what_sdks_ask_for_when_they_start_is_answered() {
    let server = Server::start().await;
    server.send("GET", "/v1.0/healthz", "", "").await.done();
    server.send("GET", "/v1.0/healthz/outbound", "", "").await.done();
    let metadata = server.send("GET", "/v1.0/metadata", "", "").await.json();
    assert_eq!(metadata["components"][0]["name"], "statestore");
    assert_eq!(metadata["components"][0]["type"], "state.kstone");
}

#[tokio::test]
async fn malformed_requests_are_refused_with_daprs_codes() {
    let server = Server::start().await;
    let other = server.send("GET", "/v1.0/state/other/k", "", "").await;
    let message = other.refused(400, "ERR_STATE_STORE_NOT_FOUND");
    assert_eq!(message, "state store other is not found");
    let long = format!(r#"[{{"key":"{}","value":1}}]"#, "k".repeat(3000));
    for body in [
        "",
        "{",
        "{}",
        "[1]",
        r#"[{"value":1}]"#,
        r#"[{"key":"","value":1}]"#,
        r#"[{"key":"a||b","value":1}]"#,
        &long,
        r#"[{"key":"k","value":1,"options":{"concurrency":"third-write"}}]"#,
        r#"[{"key":"k","value":1,"options":{"consistency":"sometimes"}}]"#,
        r#"[{"key":"k","value":1,"metadata":{"ttlInSeconds":"soon"}}]"#,
        r#"[{"key":"k","value":1,"metadata":{"ttlInSeconds":"-2"}}]"#,
    ] {
        server.save(body).await.refused(400, "ERR_MALFORMED_REQUEST");
    }
    server.get("k").await.done();
    server.bulk(r#"{"keys":"k"}"#).await.refused(400, "ERR_MALFORMED_REQUEST");
    server.transact("[]").await.refused(400, "ERR_MALFORMED_REQUEST");
    let unknown = r#"{"operations":[{"operation":"append","request":{"key":"k"}}]}"#;
    server.transact(unknown).await.refused(400, "ERR_NOT_SUPPORTED_STATE_OPERATION");
    let path = "/v1.0/state/statestore/k?consistency=sometimes";
    server.send("GET", path, "", "").await.refused(400, "ERR_MALFORMED_REQUEST");
    server.send("GET", "/v1.0/secrets/s/k", "", "").await.refused(404, "ERR_NOT_FOUND");
    let patch = server.send("PATCH", "/v1.0/state/statestore/k", "", "").await;
    patch.refused(405, "ERR_METHOD_NOT_ALLOWED");
}

#[tokio::test]
async fn what_is_too_large_is_refused_and_nothing_of_it_is_written() {
    let server = Server::start().await;
    let save = |bytes: usize| {
        let value = "v".repeat(bytes);
        json!([{"key": "small", "value": 1}, {"key": "large", "value": value}]).to_string()
    };
    let refused = server.save(&save(410_000)).await;
    assert!(refused.refused(413, "ERR_STATE_SAVE").contains("at most 409600"));
    server.get("small").await.done();
    server.save(&save(400_000)).await.done();
    let refused = server.save(&save(5_000_000)).await;
    assert!(refused.refused(413, "ERR_STATE_SAVE").contains("at most 4194304"));
}

#[tokio::test]
async fn a_token_is_asked_for_when_there_is_one_except_for_health() {
    let options = DoorOptions { api_token: Some("s3cret".to_owned()), ..DoorOptions::default() };
    let server = Server::start_with(options).await;
    let path = "/v1.0/state/statestore/k";
    for headers in ["", "dapr-api-token: wrong!\r\n", "dapr-api-token: s3cre\r\n"] {
        server.send("GET", path, headers, "").await.refused(401, "ERR_UNAUTHORIZED");
        let metadata = server.send("GET", "/v1.0/metadata", headers, "").await;
        metadata.refused(401, "ERR_UNAUTHORIZED");
    }
    server.send("GET", path, "dapr-api-token: s3cret\r\n", "").await.done();
    server.send("GET", "/v1.0/healthz", "", "").await.done();
}
