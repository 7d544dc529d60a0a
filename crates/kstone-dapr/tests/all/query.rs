//! Queries by content, with order and pages; and the keys under a prefix.

use serde_json::{Value as Json, json};

use crate::server::{HttpResponse, Server};

async fn filled() -> Server {
    let server = Server::start().await;
    let people = json!([
        {"key": "p1", "value": {"person": {"org": "Dev", "id": 1036}, "state": "WA"}},
        {"key": "p2", "value": {"person": {"org": "Hardware", "id": 1028}, "state": "OR"}},
        {"key": "p3", "value": {"person": {"org": "Finance", "id": 1071}, "state": "WA"}},
        {"key": "p4", "value": {"person": {"org": "Dev", "id": 1042.5}, "state": "CA"}},
        {"key": "text", "value": "no object"},
    ]);
    server.save(&people.to_string()).await.done();
    server
}

fn keys(answer: &HttpResponse) -> Vec<String> {
    if answer.status == 204 {
        return Vec::new();
    }
    assert_eq!(answer.status, 200, "{:?}", answer.text());
    let json = answer.json();
    let results = json["results"].as_array().unwrap();
    results.iter().map(|it| it["key"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn filters_find_what_they_say() {
    let server = filled().await;
    let cases = [
        (json!({"EQ": {"state": "WA"}}), vec!["p1", "p3"]),
        (json!({"NEQ": {"state": "WA"}}), vec!["p2", "p4", "text"]),
        (json!({"IN": {"state": ["CA", "OR"]}}), vec!["p2", "p4"]),
        (json!({"GT": {"person.id": 1036}}), vec!["p3", "p4"]),
        (json!({"GTE": {"person.id": 1036}}), vec!["p1", "p3", "p4"]),
        (json!({"LT": {"person.id": 1042.5}}), vec!["p1", "p2"]),
        (json!({"LTE": {"person.org": "Finance"}}), vec!["p1", "p3", "p4"]),
        (json!({"AND": [{"EQ": {"person.org": "Dev"}}, {"NEQ": {"state": "CA"}}]}), vec!["p1"]),
        (json!({"OR": [{"EQ": {"state": "CA"}}, {"EQ": {"person.id": 1028.0}}]}), vec!["p2", "p4"]),
        (json!({"EQ": {"nothing": 1}}), vec![]),
        (json!({}), vec!["p1", "p2", "p3", "p4", "text"]),
    ];
    for (filter, expected) in cases {
        let answer = server.query("", &json!({"filter": filter}).to_string()).await;
        let mut found = keys(&answer);
        found.sort();
        assert_eq!(found, expected, "{filter}");
    }
}

#[tokio::test]
async fn pages_in_order_and_out_of_order_hold_everything_once() {
    let server = filled().await;
    let order = json!([{"key": "state", "order": "DESC"}, {"key": "person.id"}]);
    for (sort, expected) in [(order, Some(vec!["p1", "p3", "p2", "p4", "text"])), (json!([]), None)]
    {
        let (mut found, mut token) = (Vec::new(), Json::Null);
        loop {
            let mut page = json!({"limit": 2});
            if !token.is_null() {
                page["token"] = token;
            }
            let body = json!({"filter": {}, "sort": sort, "page": page}).to_string();
            let answer = server.query("", &body).await;
            let more = keys(&answer);
            assert!(more.len() <= 2);
            found.extend(more);
            if answer.status == 204 || answer.json()["token"].is_null() {
                break;
            }
            token = answer.json()["token"].clone();
        }
        if expected.is_none() {
            found.sort();
        }
        assert_eq!(found, expected.unwrap_or(vec!["p1", "p2", "p3", "p4", "text"]));
    }
}

#[tokio::test]
async fn the_keys_under_a_prefix_are_listed() {
    let server = Server::start().await;
    for key in ["student:s1:history:full", "student:s1:path:adaptive", "student:s10:history:full"] {
        let value = if key.ends_with("adaptive") { json!([]) } else { json!({}) };
        server.save(&json!([{"key": key, "value": value}]).to_string()).await.done();
    }
    let mut found = keys(&server.query("?metadata.keyPrefix=student:s1:", "{}").await);
    found.sort();
    assert_eq!(found, ["student:s1:history:full", "student:s1:path:adaptive"]);
}

#[tokio::test]
async fn wrong_queries_are_refused() {
    let server = filled().await;
    for body in [
        "[]",
        r#"{"filter":{"LIKE":{"a":1}}}"#,
        r#"{"filter":{"EQ":{"a":1,"b":2}}}"#,
        r#"{"filter":{"EQ":{"a":1},"NEQ":{"a":1}}}"#,
        r#"{"filter":{"AND":{"EQ":{"a":1}}}}"#,
        r#"{"sort":[{"key":"a","order":"UP"}]}"#,
        r#"{"page":{"token":"nonsense"}}"#,
        r#"{"sort":[{"key":"a"}],"page":{"token":"-1"}}"#,
    ] {
        server.query("", body).await.refused(400, "ERR_MALFORMED_REQUEST");
    }
}
