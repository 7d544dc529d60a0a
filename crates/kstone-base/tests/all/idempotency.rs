//! A request with a key is carried out once.

use std::collections::BTreeMap;
use std::sync::Arc;

use kstone_base::idempotency::{
    BeginOutcome, Idempotency, RepeatableRequest, StoredResponse, Ticket,
};
use kstone_core::env::SeededRandom;

use kstone_fixture::Store;

use crate::support::empty_store;

fn requests(store: &Store, seed: u64) -> Idempotency {
    let random = Arc::new(SeededRandom::new(seed));
    Idempotency::new(Arc::new(store.db.clone()), Arc::clone(&store.clock) as _, random)
}

fn request(key: &str, body: &str) -> RepeatableRequest {
    RepeatableRequest {
        client: "10.0.0.1".to_owned(),
        key: key.to_owned(),
        request: body.as_bytes().to_vec(),
        students: vec!["s-1".to_owned()],
    }
}

fn answer(body: &str) -> StoredResponse {
    let headers = BTreeMap::from([("etag".to_owned(), "\"7\"".to_owned())]);
    StoredResponse { status: 201, headers, body: body.to_owned() }
}

fn ticket(begun: BeginOutcome) -> Ticket {
    let BeginOutcome::New(ticket) = begun else { panic!("{begun:?}") };
    ticket
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_ones_answer_for_a_day() {
    let store = empty_store().await;
    let requests = requests(&store, 2);
    let ask = request("k-1", "POST /events {}");
    let first = ticket(requests.begin(&ask).await.unwrap());
    requests.finish(&first, &answer("done")).await.unwrap();
    assert_eq!(requests.begin(&ask).await.unwrap(), BeginOutcome::Replay(answer("done")));
    store.clock.advance(86_400_000 - 1_000);
    assert_eq!(requests.begin(&ask).await.unwrap(), BeginOutcome::Replay(answer("done")));
    store.clock.advance(1_000);
    ticket(requests.begin(&ask).await.unwrap());
}

#[tokio::test]
async fn while_the_first_one_runs_others_are_told_so() {
    let store = empty_store().await;
    let (one, two) = (requests(&store, 2), requests(&store, 3));
    let ask = request("k-1", "POST /events {}");
    let first = ticket(one.begin(&ask).await.unwrap());
    assert_eq!(two.begin(&ask).await.unwrap(), BeginOutcome::InFlight);
    one.finish(&first, &answer("done")).await.unwrap();
    assert_eq!(two.begin(&ask).await.unwrap(), BeginOutcome::Replay(answer("done")));
}

#[tokio::test]
async fn a_key_with_another_request_is_a_mistake_at_any_stage() {
    let store = empty_store().await;
    let requests = requests(&store, 2);
    let first = ticket(requests.begin(&request("k-1", "a")).await.unwrap());
    assert_eq!(requests.begin(&request("k-1", "b")).await.unwrap(), BeginOutcome::Mismatch);
    requests.finish(&first, &answer("done")).await.unwrap();
    assert_eq!(requests.begin(&request("k-1", "b")).await.unwrap(), BeginOutcome::Mismatch);
    // A minute later the first is taken for killed, and the other request is a mistake all the same.
    let second = ticket(requests.begin(&request("k-2", "a")).await.unwrap());
    store.clock.advance(60_000);
    assert_eq!(requests.begin(&request("k-2", "b")).await.unwrap(), BeginOutcome::Mismatch);
    requests.abandon(&second).await.unwrap();
}

#[tokio::test]
async fn what_was_killed_while_it_ran_can_be_carried_out_after_a_minute() {
    let store = empty_store().await;
    let ask = request("k-1", "a");
    let killed = ticket(requests(&store, 2).begin(&ask).await.unwrap());
    let later = store.after_a_crash(59_999);
    let requests = requests(&later, 3);
    assert_eq!(requests.begin(&ask).await.unwrap(), BeginOutcome::InFlight);
    later.clock.advance(1);
    let second = ticket(requests.begin(&ask).await.unwrap());
    // The first one was only slow: what it has to say comes too late.
    requests.finish(&killed, &answer("late")).await.unwrap();
    requests.abandon(&killed).await.unwrap();
    assert_eq!(requests.begin(&ask).await.unwrap(), BeginOutcome::InFlight);
    requests.finish(&second, &answer("done")).await.unwrap();
    assert_eq!(requests.begin(&ask).await.unwrap(), BeginOutcome::Replay(answer("done")));
}

#[tokio::test]
async fn what_was_not_carried_out_can_be_asked_for_again_at_once() {
    let store = empty_store().await;
    let requests = requests(&store, 2);
    let ask = request("k-1", "a");
    let first = ticket(requests.begin(&ask).await.unwrap());
    requests.abandon(&first).await.unwrap();
    ticket(requests.begin(&ask).await.unwrap());
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_kept_and_the_request_is_new_again() {
    let store = empty_store().await;
    let requests = requests(&store, 2);
    let ask = request("k-1", "a");
    for length in [256 * 1024 + 1, 500_000] {
        let first = ticket(requests.begin(&ask).await.unwrap());
        requests.finish(&first, &answer(&"x".repeat(length))).await.unwrap();
    }
    let kept = answer(&"x".repeat(256 * 1024));
    let first = ticket(requests.begin(&ask).await.unwrap());
    requests.finish(&first, &kept).await.unwrap();
    assert_eq!(requests.begin(&ask).await.unwrap(), BeginOutcome::Replay(kept));
}

#[tokio::test]
async fn keys_of_two_clients_are_two_and_a_bad_key_is_named() {
    let store = empty_store().await;
    let requests = requests(&store, 2);
    let mine = request("k-1", "a");
    ticket(requests.begin(&mine).await.unwrap());
    let theirs = RepeatableRequest { client: "10.0.0.2".to_owned(), ..mine.clone() };
    ticket(requests.begin(&theirs).await.unwrap());
    for key in [String::new(), "k".repeat(256)] {
        let error = requests.begin(&RepeatableRequest { key, ..mine.clone() }).await.unwrap_err();
        assert!(error.to_string().starts_with("Idempotency-Key must be"), "{error}");
    }
}

#[tokio::test]
async fn every_attempt_has_one_name_and_the_next_use_of_a_key_another() {
    let store = empty_store().await;
    let (one, two) = (requests(&store, 2), requests(&store, 3));
    let ask = request("k-1", "POST /batches {}");
    let killed = ticket(one.begin(&ask).await.unwrap());
    store.clock.advance(60_000);
    let again = ticket(two.begin(&ask).await.unwrap());
    assert_eq!(again.name(), killed.name());
    // What became of it is not known: a repetition need not wait.
    two.release(&again).await.unwrap();
    let third = ticket(one.begin(&ask).await.unwrap());
    assert_eq!(third.name(), killed.name());
    // The earlier holder has lost its claim.
    two.release(&again).await.unwrap();
    assert_eq!(two.begin(&ask).await.unwrap(), BeginOutcome::InFlight);
    one.finish(&third, &answer("done")).await.unwrap();
    store.clock.advance(86_400_000);
    let next_day = ticket(one.begin(&ask).await.unwrap());
    assert_ne!(next_day.name(), killed.name());
    let other = ticket(one.begin(&request("k-2", "POST /batches {}")).await.unwrap());
    assert_ne!(other.name(), next_day.name());
}

#[tokio::test]
async fn nobody_takes_the_place_of_a_request_that_says_it_still_runs() {
    let store = empty_store().await;
    let (one, two) = (requests(&store, 2), requests(&store, 3));
    let ask = request("k-1", "POST /batches {}");
    let first = ticket(one.begin(&ask).await.unwrap());
    for _ in 0..3 {
        store.clock.advance(50_000);
        one.renew(&first).await.unwrap();
        assert_eq!(two.begin(&ask).await.unwrap(), BeginOutcome::InFlight);
    }
    store.clock.advance(60_000);
    ticket(two.begin(&ask).await.unwrap());
    // The first is late: the place is no longer its own, and it cannot hold it.
    store.clock.advance(50_000);
    one.renew(&first).await.unwrap();
    store.clock.advance(10_000);
    ticket(one.begin(&ask).await.unwrap());
}
