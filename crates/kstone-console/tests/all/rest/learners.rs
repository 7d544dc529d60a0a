//! Profiles, consent, export, what is known of somebody.

use std::time::Duration;

use serde_json::json;

use crate::rest::mastery::event;
use crate::rest::support::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_says_who_a_learner_is() {
    let fixture = Fixture::new().await;
    let path = "/api/v1/students/s1/profile";
    fixture.get(path).await.refused(404, "not_found", None);
    let body = json!({"display_name": "Ada", "time_zone": "Europe/Berlin", "school_id": "north"});
    let put = fixture.send("PUT", path, &body).await.with_status(200);
    assert_eq!((&put["display_name"], &put["student_id"]), (&json!("Ada"), &json!("s1")));
    assert_eq!(fixture.get(path).await.with_status(200), put);
    let zone = json!({"time_zone": "Europe/Atlantis"});
    fixture.send("PUT", path, &zone).await.refused(400, "invalid", Some("time_zone"));
    let odd = json!({"nickname": "x"});
    fixture.send("PUT", path, &odd).await.refused(400, "invalid", Some("nickname"));
    let many: Vec<String> = (0..=40).map(|n| format!("c{n}")).collect();
    for (classes, field) in [
        (json!(["7b", "7a", "7b"]), "class_ids[2]"),
        (json!(["7b", "a:b"]), "class_ids[1]"),
        (json!(many), "class_ids"),
        (json!(["7b", 7]), "class_ids[1]"),
        (json!("7b"), "class_ids"),
    ] {
        let body = json!({"school_id": "north", "class_ids": classes});
        fixture.send("PUT", path, &body).await.refused(400, "invalid", Some(field));
    }
    assert_eq!(fixture.get(path).await.with_status(200), put, "nothing of it was written");
    let log = fixture.get("/api/v1/audit").await.with_status(200);
    assert_eq!(log["items"][0]["action"], "profile", "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_consent_nothing_is_taken_in_and_nothing_predicted() {
    let fixture = Fixture::new().await;
    let path = "/api/v1/students/s1/consent";
    let no = json!({"analytics": false, "prediction": false});
    assert_eq!(fixture.send("PUT", path, &no).await.with_status(200)["analytics"], false);
    assert_eq!(fixture.get(path).await.with_status(200)["prediction"], false);
    let visit = event("e1", "s1", json!({"type": "visit"}));
    let refused = fixture.send("POST", "/api/v1/events", &visit).await;
    refused.refused(403, "refused", None);
    assert!(refused.body.contains("consent"), "{refused:?}");
    fixture.get("/api/v1/students/s1/prediction").await.refused(403, "refused", None);
    fixture.send("PUT", path, &json!({"analytics": 1})).await.refused(
        400,
        "invalid",
        Some("analytics"),
    );
    let yes = json!({"analytics": true, "prediction": true});
    fixture.send("PUT", path, &yes).await.with_status(200);
    fixture.send("POST", "/api/v1/events", &visit).await.with_status(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_learner_is_gone_until_they_are_admitted_again() {
    let fixture = Fixture::new().await;
    let visit = |id: &str| event(id, "s1", json!({"type": "visit"}));
    fixture.send("POST", "/api/v1/events", &visit("e1")).await.with_status(200);
    // It is cached from now on.
    fixture.get("/api/v1/students/s1/mastery").await.with_status(200);
    let export = fixture.get("/api/v1/students/s1/export").await;
    assert!(export.with_status(200).to_string().contains("e1"));
    assert!(export.header("content-disposition").unwrap().contains("s1.json"));
    let keys = fixture.get("/api/v1/students/s1/debug").await.with_status(200);
    let keys = keys["keys"].as_array().unwrap();
    assert!(keys.iter().any(|it| it["key"] == "student:s1:profile:current_mastery"), "{keys:?}");
    assert!(fixture.get("/api/v1/metrics").await.with_status(200)["counts"].is_object());

    let begun = fixture.ask("DELETE", "/api/v1/students/s1", &[], None).await;
    let location = begun.header("location").unwrap().to_owned();
    while fixture.get(&location).await.with_status(200)["state"] != "done" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fixture.get("/api/v1/students/s1/mastery").await.refused(404, "not_found", None);
    let left = fixture.get("/api/v1/students/s1/debug").await.with_status(200);
    assert_eq!(left["keys"], json!([]));
    let refused = fixture.send("POST", "/api/v1/events", &visit("e2")).await;
    refused.refused(403, "refused", None);
    let admit = "/api/v1/students/s1/admit";
    let key = [("Idempotency-Key", "again")];
    let admitted = fixture.ask("POST", admit, &key, Some("{}")).await.with_status(200);
    assert_eq!(admitted["was_erased"], true);
    fixture.send("POST", "/api/v1/events", &visit("e3")).await.with_status(200);
    fixture.ask("DELETE", "/api/v1/students/a*b", &[], None).await.refused(
        400,
        "invalid",
        Some("student_id"),
    );
}
