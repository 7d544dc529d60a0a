//! ETags and concurrency modes: which of several writes wins.

use serde_json::{Value as Json, json};

use crate::server::Server;

fn save(value: i32, etag: Option<&str>, concurrency: &str) -> String {
    let mut one = json!({"key": "k", "value": value, "options": {"concurrency": concurrency}});
    if let Some(etag) = etag {
        one["etag"] = Json::from(etag);
    }
    json!([one]).to_string()
}

#[tokio::test]
async fn the_etag_changes_with_every_write_and_an_old_one_is_refused() {
    let server = Server::start().await;
    server.save(&save(1, None, "last-write")).await.done();
    let first = server.etag("k").await;
    server.save(&save(1, Some(&first), "last-write")).await.done();
    let second = server.etag("k").await;
    assert_ne!(first, second, "the same value written again is another state");
    let refused = server.save(&save(2, Some(&first), "last-write")).await;
    assert!(refused.refused(409, "ERR_STATE_SAVE").contains("etag mismatch"));
    server.save(&save(2, Some(&first), "first-write")).await.refused(409, "ERR_STATE_SAVE");
    assert_eq!(server.get("k").await.text(), "1");
    server.save(&save(3, Some(&second), "first-write")).await.done();
    assert_eq!(server.get("k").await.text(), "3");
    server.save(&save(4, Some(""), "last-write")).await.done();
    assert_eq!(server.get("k").await.text(), "4", "an empty ETag is none");
}

#[tokio::test]
async fn an_etag_for_a_key_that_is_not_there_is_a_mismatch_and_a_bad_one_is_bad() {
    let server = Server::start().await;
    server.save(&save(1, Some("12345"), "last-write")).await.refused(409, "ERR_STATE_SAVE");
    server.save(&save(1, Some("bad-etag"), "last-write")).await.refused(400, "ERR_STATE_SAVE");
    server.delete("k", "If-Match: 12345\r\n").await.refused(409, "ERR_STATE_DELETE");
    server.delete("k", "If-Match: bad-etag\r\n").await.refused(400, "ERR_STATE_DELETE");
    server.get("k").await.done();
}

#[tokio::test]
async fn a_first_write_without_an_etag_makes_a_key_and_never_changes_one() {
    let server = Server::start().await;
    server.save(&save(1, None, "first-write")).await.done();
    server.save(&save(2, None, "first-write")).await.refused(409, "ERR_STATE_SAVE");
    assert_eq!(server.get("k").await.text(), "1");
    server.save(&save(3, None, "last-write")).await.done();
    server.delete("k", "").await.done();
    server.save(&save(4, None, "first-write")).await.done();
    assert_eq!(server.get("k").await.text(), "4");
}

#[tokio::test]
async fn a_delete_with_an_etag_deletes_only_what_was_read() {
    let server = Server::start().await;
    server.save(&save(1, None, "")).await.done();
    let read = server.etag("k").await;
    server.save(&save(2, None, "")).await.done();
    let stale = format!("If-Match: {read}\r\n");
    server.delete("k", &stale).await.refused(409, "ERR_STATE_DELETE");
    assert_eq!(server.get("k").await.text(), "2");
    let fresh = format!("If-Match: {}\r\n", server.etag("k").await);
    server.delete("k", &fresh).await.done();
    server.save(&save(3, None, "")).await.done();
    server.delete("k", &fresh).await.refused(409, "ERR_STATE_DELETE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_100_racing_updates_with_the_same_etag_exactly_one_wins() {
    let server = std::sync::Arc::new(Server::start().await);
    server.save(&save(-1, None, "")).await.done();
    let etag = server.etag("k").await;
    let mut racing = tokio::task::JoinSet::new();
    for n in 0..100 {
        let (server, body) = (server.clone(), save(n, Some(&etag), "first-write"));
        racing.spawn(async move { (n, server.save(&body).await.status) });
    }
    let done = racing.join_all().await;
    let winners: Vec<i32> = done.iter().filter(|it| it.1 == 204).map(|it| it.0).collect();
    assert_eq!(winners.len(), 1, "{done:?}");
    assert!(done.iter().all(|it| it.1 == 204 || it.1 == 409), "{done:?}");
    assert_eq!(server.get("k").await.text(), winners[0].to_string());
}
