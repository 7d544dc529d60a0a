//! The data pages: by prefix, page by page, whatever the bytes.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use kstone::Item;

use crate::pages::fixture::{Fixture, links};

/// Goes on from page to page, and answers with the links to single things.
async fn all(fixture: &Fixture, first: &str, single: &str) -> Vec<String> {
    let (mut found, mut next) = (Vec::new(), Some(first.to_owned()));
    while let Some(path) = next.take() {
        let page = fixture.page(&path).await;
        let links = links(&page);
        next = links.iter().find(|link| link.contains("&after=")).cloned();
        let rows: BTreeSet<String> =
            links.into_iter().filter(|it| it.starts_with(single)).collect();
        found.extend(rows);
    }
    found
}

#[tokio::test]
async fn items_are_found_by_partition_and_by_prefix_and_each_is_shown_once() {
    let fixture = Fixture::bare().await;
    fixture.make_table("state").await;
    for n in 0..130 {
        let item =
            Item::new().with("pk", format!("student:s{}", n % 3)).with("sk", format!("day:{n:03}"));
        fixture.put("state", item.with("value", r#"{"score":0.5}"#)).await;
    }
    let single = "/data/tables/state/item?";
    for (query, expected) in [
        ("", 130),
        ("?pk=student:s1", 43),
        ("?pk=student", 130),
        ("?pk=student:s1&sk=day:01", 4),
        ("?sk=day:12", 10),
        ("?pk=other", 0),
    ] {
        let found = all(&fixture, &format!("/data/tables/state{query}"), single).await;
        let different: BTreeSet<&String> = found.iter().collect();
        assert_eq!((found.len(), different.len()), (expected, expected), "{query}");
    }
    let page = fixture.page("/data/tables/state/item?pk=student:s1&sk=day:001").await;
    assert!(
        page.contains(r#"<span class="k">&quot;score&quot;</span>"#),
        "JSON is shown as what it says"
    );
    let gone = fixture.get("/data/tables/state/item?pk=student:s1&sk=day:999").await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    let nonsense = fixture.get("/data/tables/state?after=nonsense").await;
    assert_eq!(nonsense.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn keys_are_found_by_what_they_begin_with_and_shown_by_their_type() {
    let fixture = Fixture::bare().await;
    for n in 0..130 {
        fixture.redis(&[b"SET", format!("a*:{n}").as_bytes(), b"1"]).await;
        fixture.redis(&[b"SET", format!("ab:{n}").as_bytes(), b"1", b"EX", b"100"]).await;
    }
    for (prefix, expected) in [("", 260), ("a*", 130), ("ab:", 130), ("c", 0)] {
        let found = all(&fixture, &format!("/data/keys?db=0&prefix={prefix}"), "/data/key?").await;
        let different: BTreeSet<&String> = found.iter().collect();
        assert_eq!(different.len(), expected, "{prefix}");
    }
    assert!(fixture.page("/data/keys?db=3").await.contains("No key found"));
    assert_eq!(fixture.get("/data/keys?db=99").await.status, StatusCode::NOT_FOUND);

    fixture.redis(&[b"ZADD", b"board", b"2.5", b"ada", b"1", b"bob"]).await;
    let board = fixture.page("/data/key?db=0&key=board").await;
    assert!(
        board.contains("ada") && board.contains("2.5") && board.contains("2 members"),
        "{board}"
    );
    fixture.redis(&[b"SET", b"json", br#"{"a":[1,2]}"#]).await;
    let json = fixture.page("/data/key?key=json").await;
    assert!(json.contains(r#"<span class="n">2</span>"#), "{json}");
    fixture.redis(&[b"SET", b"\xff\x00", b"bytes"]).await;
    let odd = fixture.page("/data/key?key=%5Cxff%5Cx00").await;
    assert!(odd.contains("bytes") && odd.contains("\\xff\\x00"), "{odd}");
}

#[tokio::test]
async fn of_a_long_value_the_beginning_is_shown() {
    let fixture = Fixture::bare().await;
    let list = format!("[{}1]", "1,".repeat(200_000));
    fixture.redis(&[b"SET", b"list", list.as_bytes()]).await;
    fixture.redis(&[b"HSET", b"hash", b"field", list.as_bytes()]).await;
    fixture.make_table("state").await;
    let item = Item::new().with("pk", "a").with("sk", "b").with("value", &list[200_002..]);
    fixture.put("state", item.with("list", vec![1_u64.into(); 50_000])).await;
    let page = fixture.page("/data/key?key=list").await;
    assert!(page.contains("And 334467 bytes more."), "{}", page.len());
    for path in ["/data/key?key=list", "/data/key?key=hash", "/data/tables/state/item?pk=a&sk=b"] {
        let page = fixture.page(path).await;
        assert!(page.len() < 80_000, "{path}: {}", page.len());
        assert!(!page.contains("<span class=\"n\">"), "{path}");
    }
}
