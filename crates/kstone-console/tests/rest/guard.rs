//! Requests that came before, and clients that ask too often.

use serde_json::json;

use crate::mastery::event;
use crate::support::Place;

const PATH: &str = "/api/v1/students/s1/recommendations";

async fn with_weak_learner() -> Place {
    let place = Place::new().await;
    let weak = json!({"completion": 0.3, "quiz": 0.4, "quality": 0.6, "consistency": 0.2});
    place.send("PUT", "/api/v1/students/s1/mastery", &weak).await.with_status(200);
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_key_is_carried_out_once() {
    let place = with_weak_learner().await;
    let key = [("Idempotency-Key", "k1")];
    let first = place.ask("POST", PATH, &key, Some("{}")).await;
    first.with_status(200);
    assert_eq!(first.header("idempotent-replayed"), None);
    let again = place.ask("POST", PATH, &key, Some("{}")).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.with_status(200), first.json(), "it made no new ones");
    let other = place.ask("POST", PATH, &key, Some(r#"{"a":1}"#)).await;
    other.refused(422, "key_reused", Some("Idempotency-Key"));
    let elsewhere = place.ask("POST", "/api/v1/students/s1/rebuild", &key, Some("{}")).await;
    elsewhere.refused(422, "key_reused", Some("Idempotency-Key"));
    let long = "k".repeat(300);
    let refused = place.ask("POST", PATH, &[("Idempotency-Key", &long)], Some("{}")).await;
    refused.refused(400, "invalid", Some("Idempotency-Key"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_may_be_tried_again_with_the_same_key() {
    let place = Place::new().await;
    let key = [("Idempotency-Key", "k1")];
    let wrong = event("e1", "s1", json!({"type": "quiz_finished", "quiz_id": "q", "score": 9}));
    let path = "/api/v1/events";
    for _ in 0..2 {
        let refused = place.ask("POST", path, &key, Some(&wrong.to_string())).await;
        refused.refused(400, "invalid", Some("score"));
    }
    let right = event("e1", "s1", json!({"type": "quiz_finished", "quiz_id": "q", "score": 0.9}));
    let taken = place.ask("POST", path, &key, Some(&right.to_string())).await;
    assert_eq!(taken.with_status(200)["duplicate"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_racing_requests_with_one_key_one_is_carried_out() {
    let place = with_weak_learner().await;
    let key = [("Idempotency-Key", "k1")];
    let racing = (0..8).map(|_| place.ask("POST", PATH, &key, Some("{}")));
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
    let place = Place::with(|console| console.options.has_rate_limits = true).await;
    let path = "/api/v1/batches";
    let mut left = Vec::new();
    // Nothing is in them, and they count all the same. The window slides, so that a sixth may pass
    // when the minute before is old enough: there is none here.
    for _ in 0..5 {
        let answer = place.send("POST", path, &json!({"requests": []})).await;
        answer.refused(400, "invalid", Some("requests"));
        assert_eq!(answer.header("ratelimit-limit"), Some("5"));
        left.push(answer.header("ratelimit-remaining").unwrap().parse::<u32>().unwrap());
    }
    assert_eq!(left, [4, 3, 2, 1, 0]);
    let refused = place.send("POST", path, &json!({"requests": []})).await;
    refused.refused(429, "rate_limited", None);
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=120).contains(&wait), "{wait}");
    assert_eq!(refused.header("ratelimit-remaining"), Some("0"));
    // Other calls are of other kinds, and some are of none.
    assert_eq!(place.get("/api/v1/batches/none").await.status, 404);
    assert_eq!(place.get("/api/v1/health").await.header("ratelimit-limit"), None);
}
