//! Erasure through the API.

use std::time::Duration;

use kstone::Item;
use kstone::ops::{GetItem, PutItem};
use kstone::table::{KeyAttribute, KeySchema, TableSpec};

use serde_json::Value as Json;

use crate::rest::support::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_goes_on_by_itself_and_ends_with_a_receipt() {
    let fixture = Fixture::new().await;
    let items = &fixture.console.items;
    let key = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"));
    let spec = TableSpec { name: "state".to_owned(), key, ..TableSpec::default() };
    items.require_table(&spec, Some("ttl")).await.unwrap();
    let key = Item::new().with("pk", "student:s1").with("sk", "profile:learner");
    let value = r#"{"student_id":"s1","time_zone":"UTC","consent":{"analytics":true,"prediction":true},"class_ids":[],"created_at":"2026-01-14T10:30:00Z"}"#;
    let item = key.clone().with("value", value);
    let table = "state".to_owned();
    items.put(&PutItem { table: table.clone(), item, ..PutItem::default() }).await.unwrap();

    let begun = fixture.ask("DELETE", "/api/v1/students/s1", &[], None).await;
    let id = begun.with_status(202)["id"].as_str().unwrap().to_owned();
    let location = begun.header("location").unwrap();
    assert_eq!(location, format!("/api/v1/erasures/{id}"));
    let mut erasure = fixture.get(location).await.with_status(200);
    while erasure["state"] != "done" {
        tokio::time::sleep(Duration::from_millis(10)).await;
        erasure = fixture.get(location).await.with_status(200);
        assert_ne!(erasure["progress"]["stage"], "stopped", "{erasure}");
    }
    let receipt = &erasure["receipt"]["receipt"];
    assert_eq!(receipt["erasure"].as_str(), Some(&*id));
    assert_eq!(receipt["patterns"]["mastery.learner"]["deleted"], 1, "{receipt}");
    let listed = fixture.get("/api/v1/erasures").await.with_status(200);
    assert_eq!(listed["items"][0]["id"].as_str(), Some(&*id));
    assert!(listed.get("next").is_none(), "{listed}");
    assert_eq!(erasure["receipt"]["public_key"], listed["public_key"]);
    let left = items.get(&GetItem { table, key, ..GetItem::default() }).await.unwrap();
    assert!(left.item.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_nothing_to_see_of_an_erasure_that_never_was() {
    let fixture = Fixture::new().await;
    fixture.get("/api/v1/erasures/nothing").await.refused(404, "not_found", None);
}

#[tokio::test(flavor = "multi_thread")]
async fn erasures_are_listed_the_latest_first_in_pages() {
    let fixture = Fixture::new().await;
    let mut begun = Vec::new();
    for n in 0..5 {
        let answer = fixture.ask("DELETE", &format!("/api/v1/students/s{n}"), &[], None).await;
        begun.push(answer.with_status(202)["id"].as_str().unwrap().to_owned());
    }
    let whole = fixture.get("/api/v1/erasures").await.with_status(200);
    let ids = |list: &Json| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids(&whole);
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    assert_eq!(sorted(all.clone()), sorted(begun));
    let mut found = Vec::new();
    let mut path = "/api/v1/erasures?limit=2".to_owned();
    for expected in [2, 2, 1] {
        let page = fixture.get(&path).await.with_status(200);
        assert_eq!(page["public_key"], whole["public_key"]);
        assert_eq!(ids(&page).len(), expected, "{page}");
        assert_eq!(page["next"].is_string(), expected == 2, "{page}");
        found.extend(ids(&page));
        path = format!("/api/v1/erasures?limit=2&cursor={}", page["next"].as_str().unwrap_or("-"));
    }
    assert_eq!(found, all);
    for wrong in ["limit=0", "limit=1001"] {
        let refused = fixture.get(&format!("/api/v1/erasures?{wrong}")).await;
        refused.refused(400, "invalid", Some("limit"));
    }
    let refused = fixture.get("/api/v1/erasures?cursor=bm9uc2Vuc2U").await;
    refused.refused(400, "invalid", Some("cursor"));
}
