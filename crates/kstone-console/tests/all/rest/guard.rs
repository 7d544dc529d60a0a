//! Repeated requests, and rate limits.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kstone::ops::{PutItem, Scan};
use kstone_core::env::ManualClock;
use kstone_keyspace::Subject;
use serde_json::json;
use tower::ServiceExt as _;

use crate::rest::mastery::event;
use crate::rest::support::{Fixture, token};

const PATH: &str = "/api/v1/students/s1/recommendations";

async fn with_weak_learner() -> Fixture {
    let fixture = Fixture::new().await;
    let weak = json!({"completion": 0.3, "quiz": 0.4, "quality": 0.6, "consistency": 0.2});
    fixture.send("PUT", "/api/v1/students/s1/mastery", &weak).await.with_status(200);
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_key_is_carried_out_once() {
    let fixture = with_weak_learner().await;
    let key = [("Idempotency-Key", "k1")];
    let first = fixture.ask("POST", PATH, &key, Some("{}")).await;
    first.with_status(200);
    assert_eq!(first.header("idempotent-replayed"), None);
    let again = fixture.ask("POST", PATH, &key, Some("{}")).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.with_status(200), first.json(), "it made no new ones");
    let other = fixture.ask("POST", PATH, &key, Some(r#"{"a":1}"#)).await;
    other.refused(422, "key_reused", Some("Idempotency-Key"));
    let elsewhere = fixture.ask("POST", "/api/v1/students/s1/rebuild", &key, Some("{}")).await;
    elsewhere.refused(422, "key_reused", Some("Idempotency-Key"));
    let long = "k".repeat(300);
    let refused = fixture.ask("POST", PATH, &[("Idempotency-Key", &long)], Some("{}")).await;
    refused.refused(400, "invalid", Some("Idempotency-Key"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_may_be_tried_again_with_the_same_key() {
    let fixture = Fixture::new().await;
    let key = [("Idempotency-Key", "k1")];
    let wrong = event("e1", "s1", json!({"type": "quiz_finished", "quiz_id": "q", "score": 9}));
    let path = "/api/v1/events";
    for _ in 0..2 {
        let refused = fixture.ask("POST", path, &key, Some(&wrong.to_string())).await;
        refused.refused(400, "invalid", Some("score"));
    }
    let right = event("e1", "s1", json!({"type": "quiz_finished", "quiz_id": "q", "score": 0.9}));
    let taken = fixture.ask("POST", path, &key, Some(&right.to_string())).await;
    assert_eq!(taken.with_status(200)["duplicate"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_given_again_says_which_version_it_made_and_where_to_look() {
    let fixture = Fixture::new().await;
    let components = json!({"completion": 0.9, "quiz": 0.9, "quality": 0.9, "consistency": 0.9});
    let batch = json!({"requests": [{"student_id": "s2", "components": components}]});
    for (method, path, body, header) in [
        ("PUT", "/api/v1/students/s1/mastery", &components, "etag"),
        ("POST", "/api/v1/batches", &batch, "location"),
    ] {
        let body = body.to_string();
        let key = [("Idempotency-Key", method)];
        let first = fixture.ask(method, path, &key, Some(&body)).await;
        assert!(first.header(header).is_some(), "{first:?}");
        let again = fixture.ask(method, path, &key, Some(&body)).await;
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!((again.status, &again.body), (first.status, &first.body));
        assert_eq!(again.header(header), first.header(header));
    }
}

/// Makes the store as it is when a process ended after the effects of its requests, and before their
/// answers were kept; more than a minute ago.
async fn lose_kept_answers(fixture: &Fixture) {
    let items = &fixture.console.items;
    let table = "platform".to_owned();
    let scan = Scan { table: table.clone(), ..Scan::default() };
    let mut lost = 0;
    for item in items.scan(&scan).await.unwrap().items.unwrap() {
        let mut item = item.decode().unwrap();
        if item.remove("answer").is_none() {
            continue;
        }
        item.remove("status");
        item.insert("state", "in_flight");
        item.insert("busy_until", 0_u64);
        items.put(&PutItem { table: table.clone(), item, ..PutItem::default() }).await.unwrap();
        lost += 1;
    }
    assert!(lost > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_answer_was_lost_in_a_crash_finds_what_it_made() {
    let fixture = with_weak_learner().await;
    let components = json!({"completion": 0.9, "quiz": 0.9, "quality": 0.9, "consistency": 0.9});
    let requests = json!({"requests": [{"student_id": "s2", "components": components}]});
    let calls = [
        ("PUT", "/api/v1/students/s1/mastery", components, vec![("Idempotency-Key", "k1")]),
        (
            "PUT",
            "/api/v1/students/s1/mastery",
            json!({"completion": 0.1, "quiz": 0.1, "quality": 0.1, "consistency": 0.1}),
            vec![("Idempotency-Key", "k2"), ("If-Match", "\"2\"")],
        ),
        ("POST", "/api/v1/batches", requests, vec![("Idempotency-Key", "k3")]),
        ("POST", PATH, json!({}), vec![("Idempotency-Key", "k4")]),
    ];
    for (method, path, body, headers) in calls {
        let body = body.to_string();
        let ask = async || fixture.ask(method, path, &headers, Some(&body)).await;
        let first = ask().await;
        lose_kept_answers(&fixture).await;
        let again = ask().await;
        assert_eq!(again.status, first.status, "{again:?}");
        assert_eq!(again.header("idempotent-replayed"), None, "it is carried out");
        match first.json()["batch_id"].as_str() {
            // It may be further by now.
            Some(id) => assert_eq!(again.json()["batch_id"].as_str(), Some(id)),
            None => assert_eq!(again.json(), first.json()),
        }
        assert_eq!(again.header("etag"), first.header("etag"));
        assert_eq!(again.header("location"), first.header("location"));
    }
    let version = async |id: &str| {
        let path = format!("/api/v1/students/{id}/mastery");
        fixture.get(&path).await.json()["version"].as_u64()
    };
    assert_eq!(version("s1").await, Some(3));
    let advice = fixture.get(PATH).await.with_status(200);
    assert_eq!(advice["items"].as_array().unwrap().len(), 4, "{advice}");
    // The batch is done in the background, once.
    while version("s2").await.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let events = fixture.get("/api/v1/students/s2/events").await.with_status(200);
    assert_eq!(events["items"].as_array().unwrap().len(), 1, "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_racing_requests_with_one_key_one_is_carried_out() {
    let fixture = with_weak_learner().await;
    let key = [("Idempotency-Key", "k1")];
    let racing = (0..8).map(|_| fixture.ask("POST", PATH, &key, Some("{}")));
    let mut made = Vec::new();
    for answer in futures_all(racing).await {
        match answer.status {
            200 => made.push(answer.json()),
            _ => answer.refused(409, "in_flight", Some("Idempotency-Key")),
        }
    }
    made.dedup();
    assert_eq!(made.len(), 1, "{made:?}");
}

/// All of them at once.
async fn futures_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|it| (Box::pin(it), None)).collect();
    std::future::poll_fn(move |context| {
        for (future, done) in &mut waiting {
            if done.is_none()
                && let std::task::Poll::Ready(answer) = future.as_mut().poll(context)
            {
                *done = Some(answer);
            }
        }
        match waiting.iter().all(|(_, done)| done.is_some()) {
            true => std::task::Poll::Ready(
                waiting.iter_mut().filter_map(|(_, done)| done.take()).collect(),
            ),
            false => std::task::Poll::Pending,
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_too_often_is_told_when_to_ask_again() {
    let fixture = Fixture::with(|console| console.options.has_rate_limits = true).await;
    let path = "/api/v1/batches";
    let mut left = Vec::new();
    // Nothing is in them, and they count all the same. The window slides, so that a sixth may pass
    // when the minute before is old enough: there is none here.
    for _ in 0..5 {
        let answer = fixture.send("POST", path, &json!({"requests": []})).await;
        answer.refused(400, "invalid", Some("requests"));
        assert_eq!(answer.header("ratelimit-limit"), Some("5"));
        left.push(answer.header("ratelimit-remaining").unwrap().parse::<u32>().unwrap());
    }
    assert_eq!(left, [4, 3, 2, 1, 0]);
    let refused = fixture.send("POST", path, &json!({"requests": []})).await;
    refused.refused(429, "rate_limited", None);
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=120).contains(&wait), "{wait}");
    assert_eq!(refused.header("ratelimit-remaining"), Some("0"));
    // Other calls are of other kinds, and some are of none.
    assert_eq!(fixture.get("/api/v1/batches/none").await.status, 404);
    assert_eq!(fixture.get("/api/v1/health").await.header("ratelimit-limit"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_answer_is_found_under_its_learner_however_the_address_spells_them() {
    let fixture = Fixture::new().await;
    let known = json!({"completion": 0.3, "quiz": 0.4, "quality": 0.6, "consistency": 0.2});
    let path = "/api/v1/students/anna%40x.org/mastery";
    let key = [("Idempotency-Key", "k1")];
    fixture.ask("PUT", path, &key, Some(&known.to_string())).await.with_status(200);
    // A class may be called what a part of the address is called.
    let path = "/api/v1/schools/a/classes/members";
    fixture.send("PUT", path, &json!({"name": "A"})).await.with_status(200);
    let path = format!("{path}/members/anna%40x.org");
    let key = [("Idempotency-Key", "k2")];
    assert_eq!(fixture.ask("PUT", &path, &key, None).await.status, 204);
    let subject = Subject::canonical("anna@x.org", None);
    let eraser = fixture.console.erasures.as_ref().unwrap().eraser();
    let holdings = eraser.stores().holdings(&subject).await.unwrap();
    let kept = holdings.iter().filter(|it| it.pattern == "platform.idempotency").count();
    assert_eq!(kept, 2, "{holdings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_moves_to_another_network_is_still_the_same() {
    let fixture = with_weak_learner().await;
    let router = kstone_console::router(&fixture.console);
    let mut replayed = Vec::new();
    for from in ["10.0.0.1:1000", "192.168.7.7:2000", "[2001:db8::1]:3000"] {
        let mut request = Request::post(PATH)
            .header("content-type", "application/json")
            .header("idempotency-key", "k1")
            .body(Body::from("{}"))
            .unwrap();
        let from: SocketAddr = from.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(from));
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        replayed.push(response.headers().contains_key("idempotent-replayed"));
    }
    assert_eq!(replayed, [false, true, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_tokens_is_not_listened_to_until_the_minute_is_over() {
    let clock = Arc::new(ManualClock::at(1_773_144_000_000));
    let its_clock = Arc::clone(&clock);
    let fixture = Fixture::with(|console| {
        console.options.token = token("right");
        console.clock = its_clock;
    })
    .await;
    let ask = async |path: &str, token: &str| {
        let said = format!("Bearer {token}");
        fixture.ask("GET", path, &[("Authorization", &said)], None).await
    };
    for _ in 0..20 {
        // Who is mistaken stays so, and locks nobody out.
        assert_eq!(ask("/", "old").await.status, 401);
    }
    assert_eq!(ask("/api/v1/keyspaces", "right").await.status, 200);
    for n in 1..10 {
        let path = if n % 2 == 0 { "/" } else { "/api/v1/keyspaces" };
        assert_eq!(ask(path, &format!("guess{n}")).await.status, 401, "{n}");
    }
    let refused = ask("/", "right").await;
    refused.refused(429, "rate_limited", None);
    assert_eq!(refused.header("retry-after"), Some("60"));
    assert_eq!(fixture.get("/api/v1/health").await.status, 200);
    clock.advance(60_000);
    assert_eq!(ask("/", "right").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_changes_what_is_known_of_learners_is_in_the_audit_log() {
    let fixture = with_weak_learner().await;
    let class = "/api/v1/schools/a/classes/b";
    fixture.send("PUT", class, &json!({"name": "B"})).await.with_status(200);
    let member = format!("{class}/members/s1");
    assert_eq!(fixture.ask("PUT", &member, &[], None).await.status, 204);
    assert_eq!(fixture.ask("DELETE", &member, &[], None).await.status, 204);
    let components = json!({"completion": 0.3, "quiz": 0.4, "quality": 0.6, "consistency": 0.2});
    let batch = json!({"requests": [{"student_id": "s2", "components": components}]});
    let begun = fixture.send("POST", "/api/v1/batches", &batch).await.with_status(202);
    let log = fixture.get("/api/v1/audit").await.with_status(200);
    let mut noted: Vec<[Option<String>; 3]> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            ["action", "student_id", "detail"].map(|name| it[name].as_str().map(str::to_owned))
        })
        .collect();
    // In one millisecond there is no order.
    noted.sort();
    let s = |text: &str| Some(text.to_owned());
    let expected = [
        [s("assessment"), s("s1"), None],
        [s("batch"), None, s(begun["batch_id"].as_str().unwrap())],
        [s("class_join"), s("s1"), s("b of a")],
        [s("class_leave"), s("s1"), s("b of a")],
    ];
    assert_eq!(noted, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_says_by_which_door_and_under_which_name_something_was_done() {
    let fixture = Fixture::with(|console| console.options.token = token("secret")).await;
    let bearer = ("Authorization", "Bearer secret");
    let basic = format!("Basic {}", STANDARD.encode("anna@north.org:secret"));
    let odd = format!("Basic {}", STANDARD.encode("any body:secret"));
    let send = async |id: &str, headers: &[(&str, &str)]| {
        let path = format!("/api/v1/students/{id}/profile");
        fixture.ask("PUT", &path, headers, Some("{}")).await
    };
    send("s1", &[bearer]).await.with_status(200);
    send("s2", &[bearer, ("X-Actor", "teacher_7")]).await.with_status(200);
    send("s3", &[("Authorization", &basic)]).await.with_status(200);
    send("s4", &[("Authorization", &odd)]).await.with_status(200);
    // It would stay in the log when the learner is erased.
    send("s5", &[bearer, ("X-Actor", "s1")]).await.with_status(200);
    send("s6", &[bearer, ("X-Actor", "student_s1")]).await.with_status(200);
    // The work of a request with a key is done elsewhere.
    let named = [bearer, ("X-Actor", "teacher_7"), ("Idempotency-Key", "k1")];
    send("s7", &named).await.with_status(200);
    let wrong = send("s8", &[bearer, ("X-Actor", "two words")]).await;
    wrong.refused(400, "invalid", Some("X-Actor"));
    let page = [("Authorization", basic.as_str()), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(fixture.ask("GET", "/people/s1/export", &page, None).await.status, 200);
    let log = fixture.ask("GET", "/api/v1/audit", &[bearer], None).await.with_status(200);
    let mut noted: Vec<(String, String)> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let text = |name: &str| it[name].as_str().unwrap().to_owned();
            (format!("{} {}", text("action"), text("student_id")), text("actor"))
        })
        .collect();
    noted.sort();
    let expected = [
        ("export s1", "console:anna@north.org"),
        ("profile s1", "rest"),
        ("profile s2", "rest:teacher_7"),
        ("profile s3", "rest:anna@north.org"),
        ("profile s4", "rest"),
        ("profile s5", "rest:a learner"),
        ("profile s6", "rest:a learner"),
        ("profile s7", "rest:teacher_7"),
    ];
    assert_eq!(noted, expected.map(|(what, by)| (what.to_owned(), by.to_owned())));
}
