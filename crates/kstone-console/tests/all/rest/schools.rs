//! Classes, cohorts, aggregates; queues and alerts.

use kstone_base::work::{Alert, Severity};
use serde_json::json;

use crate::rest::support::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn a_class_shows_its_learners_and_classes_can_be_compared() {
    let fixture = Fixture::new().await;
    for class in ["7a", "7b"] {
        let path = format!("/api/v1/schools/north/classes/{class}");
        fixture.get(&path).await.refused(404, "not_found", None);
        fixture.send("PUT", &path, &json!({"name": class})).await.with_status(200);
        for n in 0..3 {
            let learner = format!("s{n}-{class}");
            let member = format!("{path}/members/{learner}");
            assert_eq!(fixture.ask("PUT", &member, &[], None).await.status, 204);
            let components = json!({"completion": 0.3 * f64::from(n), "quiz": 0.5, "quality": 0.5,
                                    "consistency": 0.5});
            let mastery = format!("/api/v1/students/{learner}/mastery");
            fixture.send("PUT", &mastery, &components).await.with_status(200);
        }
    }
    let listed = fixture.get("/api/v1/schools/north/classes").await.with_status(200);
    assert_eq!(listed["classes"].as_array().unwrap().len(), 2);
    assert_eq!(fixture.get("/api/v1/schools").await.with_status(200)["schools"], json!(["north"]));
    let learners = fixture.get("/api/v1/schools/north/learners?limit=4").await.with_status(200);
    assert_eq!(learners["items"].as_array().unwrap().len(), 4);
    assert!(learners["next"].is_string());
    let class = fixture.get("/api/v1/schools/north/classes/7a").await.with_status(200);
    assert_eq!(class["learners"].as_array().unwrap().len(), 3);
    let first = fixture.get("/api/v1/schools/north/classes/7a?limit=2").await.with_status(200);
    assert_eq!((first["learners"].as_array().unwrap().len(), &first["members"]), (2, &json!(3)));
    let rest = first["next"].as_str().unwrap();
    let rest = format!("/api/v1/schools/north/classes/7a?limit=2&cursor={rest}");
    let rest = fixture.get(&rest).await.with_status(200);
    assert_eq!(rest["learners"][0], class["learners"][2]);
    assert_eq!((rest.get("next"), &rest["averages"]), (None, &class["averages"]));
    let cohorts = fixture.get("/api/v1/schools/north/cohorts?classes=7a,7b").await.with_status(200);
    assert_eq!(cohorts["cohorts"].as_array().unwrap().len(), 2);
    let none = fixture.get("/api/v1/schools/north/cohorts?classes=,").await;
    none.refused(400, "invalid", Some("classes"));
    fixture.get("/api/v1/schools/north/cohorts").await.refused(400, "invalid", Some("classes"));
    let compared = fixture.get("/api/v1/compare?students=s0-7a,s2-7b").await.with_status(200);
    assert_eq!(compared["students"][0]["student_id"], "s2-7b");
    let gone = "/api/v1/schools/north/classes/7a/members/s0-7a";
    assert_eq!(fixture.ask("DELETE", gone, &[], None).await.status, 204);
    let class = fixture.get("/api/v1/schools/north/classes/7a").await.with_status(200);
    assert_eq!(class["learners"].as_array().unwrap().len(), 2);
    assert!(
        fixture.get("/api/v1/schools/north/aggregates").await.with_status(200)["days"].is_array()
    );
    let unnamed =
        fixture.send("PUT", "/api/v1/schools/north/classes/7c", &json!({"name": ""})).await;
    unnamed.refused(400, "invalid", Some("name"));
}

#[tokio::test(flavor = "multi_thread")]
async fn background_work_and_alerts_can_be_looked_at() {
    let fixture = Fixture::new().await;
    let queues = fixture.get("/api/v1/queues").await.with_status(200);
    assert_eq!(queues["queues"][0]["queue"], "mastery", "{queues}");
    let dead = fixture.get("/api/v1/queues/mastery/dead").await.with_status(200);
    assert_eq!(dead["items"], json!([]));
    let retry = "/api/v1/queues/mastery/dead/1768386600000-none/retry";
    fixture.ask("POST", retry, &[], None).await.refused(404, "not_found", None);
    let forget = "/api/v1/queues/mastery/dead/1768386600000-none";
    fixture.ask("DELETE", forget, &[], None).await.refused(404, "not_found", None);
    let alerts = &fixture.console.platform.as_ref().unwrap().alerts;
    for n in 0..3 {
        let alert = Alert {
            id: String::new(),
            kind: "struggle".to_owned(),
            severity: Severity::Warning,
            title: format!("alert {n}"),
            detail: String::new(),
            student_id: None,
            at: Default::default(),
        };
        alerts.raise(alert).await.unwrap();
    }
    let first = fixture.get("/api/v1/alerts?limit=2").await.with_status(200);
    assert_eq!(first["items"].as_array().unwrap().len(), 2);
    let rest = format!("/api/v1/alerts?limit=2&cursor={}", first["next"].as_str().unwrap());
    assert_eq!(fixture.get(&rest).await.with_status(200)["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_platform_its_calls_say_how_to_turn_it_on() {
    let fixture = Fixture::with(|console| console.platform = None).await;
    for path in ["students/s1/mastery", "schools", "queues", "alerts", "audit"] {
        let refused = fixture.get(&format!("/api/v1/{path}")).await;
        refused.refused(503, "platform_off", None);
        assert!(refused.body.contains("--keyspace shipped"), "{refused:?}");
    }
}
