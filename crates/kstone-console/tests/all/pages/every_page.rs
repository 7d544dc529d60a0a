//! Every page that a link leads to.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use kstone::Item;

use crate::pages::fixture::{Fixture, check, links};

const HOSTILE: &str = "<script>alert('x')</script>\"&amp;";

#[tokio::test]
async fn an_empty_store_has_pages_that_say_what_is_missing() {
    let fixture = Fixture::bare().await;
    for (path, status, says) in [
        ("/", 200, "No door is open"),
        ("/keyspaces", 200, "No keyspace is in force"),
        ("/people", 503, "kstone serve --keyspace shipped"),
        ("/data", 200, "No table yet"),
        ("/data/keys", 200, "No key found"),
        ("/data/tables/nothing", 404, "nothing"),
        ("/data/key?key=nothing", 404, "There is no such key"),
        ("/learn", 503, "--demo"),
        ("/learn/learners/s1", 503, "--keyspace shipped"),
        ("/work", 503, "The learning platform is off"),
        ("/audit", 503, "The learning platform is off"),
        ("/nowhere", 404, "There is no such page"),
    ] {
        let shown = fixture.get(path).await;
        assert_eq!(shown.status.as_u16(), status, "{path}: {}", shown.body);
        assert!(shown.body.contains(says), "{path}: {}", shown.body);
        check(path, &shown.body);
    }
}

#[tokio::test]
async fn a_governed_store_without_data_has_every_page() {
    let fixture = Fixture::governed().await;
    for (path, says) in [
        ("/", "256 stripes"),
        ("/keyspaces", "student:{student_id}:mastery:{date}"),
        ("/keyspaces/mastery.daily_mastery", "90 days"),
        ("/people", "Nobody was erased yet"),
        ("/people/s1", "Nothing is kept about this person"),
        ("/learn", "No school yet"),
        ("/work", "No alert"),
        ("/audit", "Nothing was noted on 2026-03-10"),
        ("/audit?date=2026-03-09", "Nothing was noted on 2026-03-09"),
    ] {
        let page = fixture.page(path).await;
        assert!(page.contains(says), "{path}: {page}");
        check(path, &page);
    }
    for (path, status) in [
        ("/keyspaces/no.such", StatusCode::NOT_FOUND),
        ("/learn/learners/unknown", StatusCode::NOT_FOUND),
        ("/audit?date=yesterday", StatusCode::BAD_REQUEST),
        ("/erasures/none", StatusCode::NOT_FOUND),
        ("/erasures/none/receipt", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(fixture.get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn every_link_of_a_full_store_leads_to_a_page_and_nothing_stored_becomes_markup() {
    let fixture = Fixture::governed().await;
    crate::pages::learning::fill(&fixture).await;
    fixture.make_table("odd").await;
    for (pk, sk) in [(HOSTILE, HOSTILE), ("a/b?c#d", "%2e%2e"), ("..", "."), ("\u{1}\n", "ä ö")] {
        let item = Item::new().with("pk", pk).with("sk", sk).with("value", HOSTILE);
        fixture.put("odd", item.with(HOSTILE, HOSTILE)).await;
    }
    let hostile = HOSTILE.as_bytes();
    fixture.redis(&[b"SET", hostile, hostile]).await;
    fixture.redis(&[b"SET", b"\x00\xff", b"\xff\xfe"]).await;
    fixture.redis(&[b"HSET", b"odd:hash", hostile, hostile]).await;
    fixture.redis(&[b"RPUSH", b"odd:list", hostile]).await;
    fixture.redis(&[b"SADD", b"odd:set", hostile]).await;
    fixture.redis(&[b"ZADD", b"odd:zset", b"1.5", hostile]).await;
    fixture.redis(&[b"XADD", b"odd:stream", b"*", hostile, hostile]).await;

    let mut queue = vec!["/".to_owned(), "/data/keys?db=0".to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(path) = queue.pop() {
        let path = path.split('#').next().unwrap().to_owned();
        // The API has its own tests, and its document is no page.
        if path.is_empty() || path.starts_with("/api/") || !seen.insert(path.clone()) {
            continue;
        }
        let page = fixture.page(&path).await;
        check(&path, &page);
        assert!(!page.contains("<script>"), "{path}: {page}");
        // A year of empty days before today is the same page each.
        let is_another_day = |link: &String| link.starts_with("/audit?date=2026-0");
        queue.extend(links(&page).into_iter().filter(|link| !is_another_day(link)));
    }
    for expected in
        ["/learn/learners/s1", "/learn/classes/north/7a", "/people/s1", "/work", "/audit"]
    {
        assert!(seen.contains(expected), "no link to {expected}: {seen:?}");
    }
    let keys = seen.iter().filter(|path| path.starts_with("/data/key?")).count();
    assert!(keys >= 7, "{keys} keys of Redis were looked at");
    let items = seen.iter().filter(|path| path.starts_with("/data/tables/odd/item")).count();
    assert_eq!(items, 4, "{seen:?}");
}

#[tokio::test]
async fn what_is_asked_for_again_is_a_part_of_a_page() {
    let fixture = Fixture::governed().await;
    crate::pages::learning::fill(&fixture).await;
    for path in [
        "/live/overview?by=records",
        "/live/keyspaces",
        "/live/work",
        "/live/learn/classes/north/7a",
    ] {
        let part = fixture.page(path).await;
        assert!(!part.contains("<html") && !part.contains("<h1"), "{path}: {part}");
        assert!(part.contains("<table>"), "{path}: {part}");
    }
}

#[tokio::test]
async fn the_overview_shows_the_doors_and_the_stripes_by_what_is_chosen() {
    let fixture = Fixture::governed().await;
    let page = fixture.page("/?by=records").await;
    for says in ["DynamoDB", "12,345", "Stripe 255: 255", "777", "/var/lib/&lt;kstone&gt;"] {
        assert!(page.contains(says), "{says}: {page}");
    }
    assert!(page.contains("data-live=\"/live/overview?by=records\""));
    let page = fixture.page("/?by=nonsense").await;
    assert!(page.contains("Stripe 255: 0"), "data is what is shown by default");
}

#[tokio::test]
async fn files_of_the_console_come_with_their_types() {
    let fixture = Fixture::bare().await;
    for path in ["/assets/console.css", "/assets/console.js", "/assets/icon.svg"] {
        assert!(fixture.page(path).await.len() > 50, "{path}");
    }
}

#[tokio::test]
async fn who_asks_for_pages_too_often_is_told_to_wait() {
    let fixture = Fixture::limited().await;
    let mut answers = Vec::new();
    for _ in 0..600 {
        answers.push(fixture.get("/live/overview").await.status);
    }
    assert!(answers.iter().all(|status| *status == StatusCode::OK));
    for path in ["/", "/live/overview", "/no/such/page"] {
        let refused = fixture.get(path).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{path}");
        assert!(refused.body.contains("Too many requests"), "{}", refused.body);
        assert!(refused.retry_after.is_some_and(|wait| (1..=120).contains(&wait)));
        check(path, &refused.body);
    }
    // What the refusal itself needs is there, and the API has limits of its own.
    assert_eq!(fixture.get("/assets/console.css").await.status, StatusCode::OK);
    assert_eq!(fixture.get("/api/v1/schools").await.status, StatusCode::OK);
    fixture.clock.advance(120_000);
    assert_eq!(fixture.get("/").await.status, StatusCode::OK);
}
