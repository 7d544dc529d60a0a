//! Events in, mastery out.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::rest::support::Fixture;

/// Something that a learner did a little while ago.
pub fn event(id: &str, student: &str, what: Json) -> Json {
    let mut event = json!({"event_id": id, "student_id": student,
                           "occurred_at": "2026-01-14T10:30:00Z"});
    let fields = what.as_object().unwrap().clone();
    event.as_object_mut().unwrap().extend(fields);
    event
}

fn quiz(id: &str, student: &str, score: f64) -> Json {
    event(id, student, json!({"type": "quiz_finished", "quiz_id": "q1", "score": score}))
}

/// What the seed's example says.
fn components() -> Json {
    json!({"completion": 0.85, "quiz": 0.90, "quality": 0.85, "consistency": 0.82})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_counts_once_however_often_it_is_sent() {
    let fixture = Fixture::new().await;
    let first =
        fixture.send("POST", "/api/v1/events", &quiz("e1", "s1", 0.9)).await.with_status(200);
    assert_eq!((&first["duplicate"], &first["mastery"]["version"]), (&json!(false), &json!(1)));
    let again =
        fixture.send("POST", "/api/v1/events", &quiz("e1", "s1", 0.9)).await.with_status(200);
    assert_eq!((&again["duplicate"], &again["mastery"]["version"]), (&json!(true), &json!(1)));
    let now = fixture.get("/api/v1/students/s1/mastery").await;
    assert_eq!(now.header("etag"), Some("\"1\""));
    assert_eq!(now.with_status(200), first["mastery"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_list_each_event_is_taken_in_or_refused_for_itself() {
    let fixture = Fixture::new().await;
    let list = json!([quiz("e1", "s1", 0.9), quiz("e2", "s1", 7.0), {"event_id": "e3"}, 1]);
    let answer = fixture.send("POST", "/api/v1/events", &list).await.with_status(200);
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(1), &json!(3)));
    let error = |at: usize| answer["results"][at]["error"]["field"].as_str().map(str::to_owned);
    assert_eq!(answer["results"][0]["result"]["mastery"]["student_id"], "s1");
    assert_eq!(error(1).as_deref(), Some("score"));
    assert!(error(2).is_some());
    assert_eq!(error(3).as_deref(), Some("events"));
    let too_many: Vec<Json> = (0..101).map(|n| quiz(&format!("e{n}"), "s1", 0.5)).collect();
    let refused = fixture.send("POST", "/api/v1/events", &json!(too_many)).await;
    refused.refused(400, "invalid", Some("events"));
    fixture.send("POST", "/api/v1/events", &json!([])).await.refused(
        400,
        "invalid",
        Some("events"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_is_named() {
    let fixture = Fixture::new().await;
    let path = "/api/v1/events";
    let cases = [
        (quiz("e:1", "s1", 0.5), "event_id"),
        (quiz("e1", "s*", 0.5), "student_id"),
        (quiz("e1", "s1", 1.5), "score"),
        (event("e1", "s1", json!({"type": "quiz_finished", "score": 1})), "quiz_id"),
        (event("e1", "s1", json!({"type": "nonsense"})), "type"),
        (
            event("e1", "s1", json!({"type": "visit", "occurred_at": "2999-01-01T00:00:00Z"})),
            "occurred_at",
        ),
    ];
    for (body, field) in cases {
        fixture.send("POST", path, &body).await.refused(400, "invalid", Some(field));
    }
    fixture.ask("POST", path, &[], Some("{")).await.refused(400, "bad_body", None);
    let form = [("Content-Type", "text/plain")];
    let body = quiz("e1", "s1", 0.5).to_string();
    let refused = fixture.ask("POST", path, &form, Some(&body)).await;
    refused.refused(415, "unsupported_media_type", Some("Content-Type"));
    fixture.get("/api/v1/students/a%2Ab/mastery").await.refused(400, "invalid", Some("student_id"));
    fixture.get("/api/v1/students/nobody/mastery").await.refused(404, "not_found", None);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_say_how_far_a_learner_is_the_second_must_have_read_the_first() {
    let fixture = Fixture::new().await;
    let path = "/api/v1/students/s1/mastery";
    let body = components().to_string();
    let first = [("If-None-Match", "*")];
    let said = fixture.ask("PUT", path, &first, Some(&body)).await;
    assert_eq!(said.with_status(200)["mastery_score"], 0.862);
    assert_eq!(said.header("etag"), Some("\"1\""));
    let late = fixture.ask("PUT", path, &first, Some(&body)).await;
    late.refused(412, "version_mismatch", Some("If-None-Match"));
    let second = fixture.ask("PUT", path, &[("If-Match", "\"1\"")], Some(&body)).await;
    assert_eq!((second.status, second.header("etag")), (200, Some("\"2\"")));
    let late = fixture.ask("PUT", path, &[("If-Match", "\"1\"")], Some(&body)).await;
    late.refused(412, "version_mismatch", Some("If-Match"));
    assert_eq!(late.header("etag"), Some("\"2\""));
    let odd = fixture.ask("PUT", path, &[("If-Match", "two")], Some(&body)).await;
    odd.refused(400, "invalid", Some("If-Match"));
    let known = fixture.ask("GET", path, &[("If-None-Match", "\"2\"")], None).await;
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    let wrong = json!({"completion": 2.0, "quiz": 0.9, "quality": 0.8, "consistency": 0.8});
    let refused = fixture.send("PUT", path, &wrong).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.json()["error"]["field"].as_str().unwrap().ends_with("completion"));
    let missing = fixture.send("PUT", path, &json!({"quiz": 0.9})).await;
    missing.refused(400, "invalid", Some("completion"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_a_learner_can_be_asked_for_in_many_ways() {
    let fixture = Fixture::new().await;
    let at = |path: &str| format!("/api/v1/students/s1/{path}");
    let answer = |n: u32, correct: bool| {
        let what = json!({"type": "answer", "skill_id": "algebra", "item_id": "i1",
                          "correct": correct, "took_ms": 900});
        event(&format!("a{n}"), "s1", what)
    };
    let events: Vec<Json> = (0..5).map(|n| answer(n, n % 2 == 0)).collect();
    fixture.send("POST", "/api/v1/events", &json!(events)).await.with_status(200);
    fixture.send("PUT", &at("mastery"), &components()).await.with_status(200);

    let skills = fixture.get(&at("skills")).await.with_status(200);
    assert_eq!(skills["skills"][0]["skill_id"], "algebra");
    let activity = fixture.get(&at("activity")).await.with_status(200);
    assert_eq!(activity["time_zone"], "UTC");
    assert!(fixture.get(&at("struggles")).await.with_status(200)["struggles"].is_array());
    let history = fixture.get(&at("history?from=2026-01-01&to=2026-12-31")).await.with_status(200);
    assert_eq!(history["days"].as_array().unwrap()[0]["date"], "2026-01-14");
    let backwards = fixture.get(&at("history?from=2026-02-01&to=2026-01-01")).await;
    backwards.refused(400, "invalid", Some("from"));
    fixture.get(&at("history?from=yesterday")).await.refused(400, "invalid", Some("from"));
    fixture.get(&at("history?form=1")).await.refused(400, "invalid", Some("form"));
    let trend = fixture.get(&at("components/quiz/trend?days=7")).await.with_status(200);
    assert_eq!(trend["component"], "quiz");
    fixture.get(&at("components/luck/trend")).await.refused(400, "invalid", Some("component"));
    fixture.get(&at("components/quiz/trend?days=0")).await.refused(400, "invalid", Some("days"));
    fixture.get(&at("components/quiz/trend?days=x")).await.refused(400, "invalid", Some("days"));
    let rebuilt = fixture.send("POST", &at("rebuild"), &json!({})).await.with_status(200);
    assert_eq!(rebuilt, fixture.get(&at("mastery")).await.with_status(200));

    let asked = json!({"student_ids": ["s1", "nobody"]});
    let found = fixture.send("POST", "/api/v1/mastery/query", &asked).await.with_status(200);
    assert_eq!(found["mastery"]["s1"]["mastery_score"], 0.862);
    assert_eq!(found["unknown"], json!(["nobody"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_come_in_pages() {
    let fixture = Fixture::new().await;
    let events: Vec<Json> = (0..7).map(|n| quiz(&format!("e{n}"), "s1", 0.5)).collect();
    fixture.send("POST", "/api/v1/events", &json!(events)).await.with_status(200);
    let path = "/api/v1/students/s1/events";
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = fixture.get(&format!("{path}?limit=3{cursor}")).await.with_status(200);
        let ids = page["items"].as_array().unwrap().iter();
        seen.extend(ids.map(|it| it["event"]["event_id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["e6", "e5", "e4", "e3", "e2", "e1", "e0"]);
    for (bad, field) in [("limit=0", "limit"), ("limit=1001", "limit"), ("cursor=%21", "cursor")] {
        fixture.get(&format!("{path}?{bad}")).await.refused(400, "invalid", Some(field));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prediction_a_path_and_recommendations_follow_from_it() {
    let fixture = Fixture::new().await;
    let at = |path: &str| format!("/api/v1/students/s1/{path}");
    let weak = json!({"completion": 0.3, "quiz": 0.4, "quality": 0.6, "consistency": 0.2});
    fixture.send("PUT", &at("mastery"), &weak).await.with_status(200);
    assert!(fixture.get(&at("path")).await.with_status(200)["steps"].is_array());
    fixture.get(&at("prediction?days=0")).await.refused(400, "invalid", Some("days"));
    // A day is not enough to see where it goes.
    fixture.get(&at("prediction")).await.refused(409, "too_early", None);
    let made = fixture.send("POST", &at("recommendations"), &json!({})).await.with_status(200);
    let id = made["recommendations"][0]["id"].as_str().unwrap().to_owned();
    let kept = fixture.get(&at("recommendations?limit=1")).await.with_status(200);
    assert_eq!(kept["items"].as_array().unwrap().len(), 1);
    let said = json!({"helpful": true, "comment": "thanks"});
    let path = at(&format!("recommendations/{id}/feedback"));
    let told = fixture.send("POST", &path, &said).await.with_status(200);
    assert_eq!(told["feedback"]["helpful"], true);
    let nothing = fixture.send("POST", &at("recommendations/none/feedback"), &said).await;
    nothing.refused(404, "not_found", None);
    fixture.send("POST", &path, &json!({"helpful": "yes"})).await.refused(
        400,
        "invalid",
        Some("helpful"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_done_in_the_background_and_tells_how_far_it_is() {
    let fixture = Fixture::new().await;
    let one = |n: u32| json!({"student_id": format!("s{n}"), "components": components()});
    let requests: Vec<Json> = (0..30).map(one).collect();
    let begun = fixture.send("POST", "/api/v1/batches", &json!({"requests": requests})).await;
    assert_eq!(begun.with_status(202)["total_requests"], 30);
    let location = begun.header("location").unwrap();
    let mut status = fixture.get(location).await.with_status(200);
    while status["status"] == "processing" {
        tokio::time::sleep(Duration::from_millis(10)).await;
        status = fixture.get(location).await.with_status(200);
        let count = |name: &str| status[name].as_u64().unwrap();
        assert_eq!(count("completed") + count("failed") + count("in_progress"), 30);
    }
    assert_eq!((&status["status"], &status["completed"]), (&json!("completed"), &json!(30)));
    let learner = fixture.get("/api/v1/students/s29/mastery").await.with_status(200);
    assert_eq!(learner["mastery_score"], 0.862);
    let empty = fixture.send("POST", "/api/v1/batches", &json!({"requests": []})).await;
    empty.refused(400, "invalid", Some("requests"));
    fixture.get("/api/v1/batches/none").await.refused(404, "not_found", None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_three_views_of_a_history_are_served_page_by_page() {
    let fixture = Fixture::new().await;
    let weak = json!({"completion": 0.1, "quiz": 0.1, "quality": 0.1, "consistency": 0.1});
    let saved = fixture.send("PUT", "/api/v1/students/s1/mastery", &weak).await.with_status(200);
    let advice = "/api/v1/students/s1/recommendations";
    let made = fixture.send("POST", advice, &json!({})).await.with_status(200);
    let view = |name: &str| format!("/api/v1/students/s1/history/{name}");
    let full = fixture.get(&view("full")).await.with_status(200);
    assert_eq!(full["items"][0]["mastery"], saved);
    assert!(full["items"][0]["date"].is_string() && full.get("next").is_none(), "{full}");
    let parts = fixture.get(&view("components")).await.with_status(200);
    assert_eq!(parts["items"][0]["components"], weak);
    assert_eq!(parts["items"][0]["date"], full["items"][0]["date"]);
    let mut path = view("recommendations?limit=3");
    let mut found = Vec::new();
    for expected in [3, 1] {
        let page = fixture.get(&path).await.with_status(200);
        let items = page["items"].as_array().unwrap().clone();
        assert_eq!(items.len(), expected, "{page}");
        found.extend(items.into_iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        if let Some(next) = page["next"].as_str() {
            path = view(&format!("recommendations?limit=3&cursor={next}"));
        }
    }
    found.sort();
    let made = made["recommendations"].as_array().unwrap().iter();
    let mut made: Vec<_> = made.map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    made.sort();
    assert_eq!(found, made);
    for name in ["full", "components", "recommendations"] {
        let path = view(&format!("{name}?cursor=bm9uc2Vuc2U"));
        fixture.get(&path).await.refused(400, "invalid", Some("cursor"));
    }
    fixture.get(&view("other")).await.refused(404, "not_found", None);
}
