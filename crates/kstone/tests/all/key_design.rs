//! Key design requirements, tested on the embedded database's default table: ordering, prefixes,
//! ranges, direction.

use kstone::{Database, DatabaseOptions, Error, Item, Key, Query, Scan};
use kstone_core::env::Env;
use kstone_core::key_design;

fn text(value: &str) -> Item {
    Item::new().with("text", value)
}

fn sort_keys(db: &Database, query: Query) -> Vec<String> {
    let sort_key = |entry: kstone::Entry| {
        String::from_utf8(entry.key.sk.map(|sk| sk.to_vec()).unwrap_or_default()).unwrap()
    };
    db.query(query).unwrap().map(|entry| sort_key(entry.unwrap())).collect()
}

#[test]
fn put_get_and_delete_work_with_and_without_a_sort_key() {
    let db = Database::memory().unwrap();
    db.put(b"user#12345", text("profile")).unwrap();
    db.put_with_sk(b"user#12345", b"post#2024-01-15#789", text("post")).unwrap();
    assert_eq!(db.get(b"user#12345").unwrap(), Some(text("profile")));
    assert_eq!(db.get_with_sk(b"user#12345", b"post#2024-01-15#789").unwrap(), Some(text("post")));
    db.delete(b"user#12345").unwrap();
    assert_eq!(db.get(b"user#12345").unwrap(), None);
    assert_eq!(db.get_with_sk(b"user#12345", b"post#2024-01-15#789").unwrap(), Some(text("post")));
    db.delete_with_sk(b"user#12345", b"post#2024-01-15#789").unwrap();
    assert_eq!(db.query(Query::new(b"user#12345")).unwrap().count(), 0);
}

#[test]
fn an_empty_sort_key_is_refused_by_name() {
    let db = Database::memory().unwrap();
    let refused = db.put_with_sk(b"user#1", b"", text("x")).unwrap_err();
    assert!(matches!(&refused, Error::Validation(why) if why.contains("sort key is empty")));
    assert_eq!(db.scan(Scan::new()).unwrap().count(), 0);
}

#[test]
fn the_five_keys_of_the_chapter_come_in_its_order() {
    let db = Database::memory().unwrap();
    db.put_with_sk(b"user#123", b"post#002", text("3")).unwrap();
    db.put(b"user#124", text("4")).unwrap();
    db.put_with_sk(b"user#123", b"post#001", text("2")).unwrap();
    db.put_with_sk(b"user#124", b"post#001", text("5")).unwrap();
    db.put(b"user#123", text("1")).unwrap();
    assert_eq!(sort_keys(&db, Query::new(b"user#123")), ["", "post#001", "post#002"]);
    assert_eq!(sort_keys(&db, Query::new(b"user#124")), ["", "post#001"]);
}

#[test]
fn a_query_takes_prefixes_ranges_directions_and_limits() {
    let db = Database::memory().unwrap();
    for n in 1..=9 {
        db.put_with_sk(b"user#1", format!("post#{n:03}"), text("p")).unwrap();
        db.put_with_sk(b"user#1", format!("like#{n:03}"), text("l")).unwrap();
    }
    let posts = || Query::new(b"user#1").sk_begins_with(b"post#");
    assert_eq!(sort_keys(&db, posts()).len(), 9);
    assert_eq!(sort_keys(&db, posts().forward(false).limit(2)), ["post#009", "post#008"]);
    let range = Query::new(b"user#1").sk_range("post#003".."post#005");
    assert_eq!(sort_keys(&db, range), ["post#003", "post#004"]);
    let range = Query::new(b"user#1").sk_range("post#008"..);
    assert_eq!(sort_keys(&db, range), ["post#008", "post#009"]);
}

#[test]
fn the_segments_of_a_scan_are_disjoint_and_complete() {
    let db = Database::memory().unwrap();
    for n in 0..500 {
        db.put(format!("user#{n}"), text("u")).unwrap();
    }
    for total in [1, 3, 256, 1000] {
        let mut keys: Vec<Key> = Vec::new();
        for segment in 0..total {
            let entries = db.scan(Scan::new().segment(segment, total)).unwrap();
            keys.extend(entries.map(|entry| entry.unwrap().key));
        }
        keys.sort_by(|a, b| a.pk.cmp(&b.pk));
        keys.dedup();
        assert_eq!(keys.len(), 500, "in {total} segments");
    }
}

#[test]
fn items_are_there_after_the_database_was_closed_and_opened() {
    let env = Env::memory();
    let open = || Database::open_with(env.clone(), "db", DatabaseOptions::default()).unwrap();
    let db = open();
    db.put(b"user#1", text("kept")).unwrap();
    db.put(b"user#2", text("deleted")).unwrap();
    db.delete(b"user#2").unwrap();
    drop(db);
    let db = open();
    assert_eq!(db.get(b"user#1").unwrap(), Some(text("kept")));
    assert_eq!(db.get(b"user#2").unwrap(), None);
}

#[test]
fn pattern_1_hierarchical_keys_keep_tenants_apart() {
    let db = Database::memory().unwrap();
    db.put(b"tenant#acme:user#123", text("user")).unwrap();
    db.put(b"tenant#acme:order#789", text("order")).unwrap();
    db.put(b"tenant#beta:user#456", text("user")).unwrap();
    let snapshot = db.engine().snapshot();
    let acme = snapshot.partition_keys(kstone_core::TableId::DEFAULT, b"tenant#acme:").unwrap();
    let acme: Vec<_> = acme.map(Result::unwrap).collect();
    assert_eq!(acme, [&b"tenant#acme:order#789"[..], b"tenant#acme:user#123"]);
}

#[test]
fn pattern_2_time_stamps_order_readings_and_inverted_times_put_the_newest_first() {
    let db = Database::memory().unwrap();
    for time in ["2024-01-15T10:01:00Z", "2024-01-15T10:00:00Z", "2024-01-16T00:00:00Z"] {
        db.put_with_sk(b"sensor#temperature", time, text(time)).unwrap();
    }
    let day = Query::new(b"sensor#temperature").sk_begins_with(b"2024-01-15");
    assert_eq!(sort_keys(&db, day), ["2024-01-15T10:00:00Z", "2024-01-15T10:01:00Z"]);
    for time in [100, 300, 200] {
        let inverted = key_design::inverted_ms(time);
        db.put_with_sk(b"user#123:posts", inverted, Item::new().with("at", time)).unwrap();
    }
    let newest = db.query(Query::new(b"user#123:posts").limit(1)).unwrap().next().unwrap().unwrap();
    assert_eq!(newest.item, Item::new().with("at", 300));
}

#[test]
fn pattern_3_composite_sort_keys_sort_by_category_then_price() {
    let db = Database::memory().unwrap();
    for (category, price, id) in
        [("books", 19.99, "b1"), ("books", 5.0, "b2"), ("art", 900.0, "a1")]
    {
        let cents = key_design::price_cents(price, 10).unwrap();
        db.put_with_sk(b"products", format!("{category}#{cents}#{id}"), text(id)).unwrap();
    }
    let books = Query::new(b"products").sk_begins_with(b"books#");
    assert_eq!(sort_keys(&db, books), ["books#0000000500#b2", "books#0000001999#b1"]);
}

#[test]
fn pattern_4_the_latest_version_is_the_last() {
    let db = Database::memory().unwrap();
    for version in ["v1", "v2", "v3"] {
        db.put_with_sk(b"doc#readme", version, text(version)).unwrap();
    }
    assert_eq!(sort_keys(&db, Query::new(b"doc#readme").forward(false).limit(1)), ["v3"]);
}

#[test]
fn pattern_5_aggregates_live_beside_what_they_sum_up() {
    let db = Database::memory().unwrap();
    for sk in ["2024-01-15#user#123", "2024-01-15#user#456", "daily#2024-01-15", "monthly#2024-01"]
    {
        db.put_with_sk(b"stats#page:/home", sk, text(sk)).unwrap();
    }
    let day = Query::new(b"stats#page:/home").sk_begins_with(b"2024-01-15#");
    assert_eq!(sort_keys(&db, day).len(), 2);
    let daily = Query::new(b"stats#page:/home").sk_begins_with(b"daily#");
    assert_eq!(sort_keys(&db, daily), ["daily#2024-01-15"]);
}
