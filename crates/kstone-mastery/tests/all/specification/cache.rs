use std::time::Duration;

use bytes::Bytes;
use kstone::Item;
use kstone_mastery::domain::{Components, MasteryResult};
use kstone_ports::keys::Keys;
use kstone_ports::keys::Value as Reply;
use sha2::{Digest, Sha256};

use crate::specification::fixture::{EXAMPLE, Fixture};

async fn redis(fixture: &Fixture, line: &str) -> Reply {
    let words: Vec<Bytes> = line.split(' ').map(|word| Bytes::from(word.to_owned())).collect();
    fixture.redis.keys(0).unwrap().command(&words).await.unwrap()
}

#[tokio::test]
async fn the_two_level_cache_is_written_through_for_300_seconds() {
    let fixture = Fixture::new().await;
    let saved = fixture.engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
    let Reply::Bulk(text) = redis(&fixture, "GET mastery:s").await else { panic!("not there") };
    assert_eq!(serde_json::from_slice::<MasteryResult>(&text).unwrap(), saved);
    assert_eq!(redis(&fixture, "TTL mastery:s").await, Reply::Integer(300));
}

#[tokio::test]
async fn what_is_asked_for_again_comes_from_memory_then_from_redis_then_from_the_store() {
    let fixture = Fixture::new().await;
    let saved = fixture.engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
    let other = fixture.another_engine();
    let read = || async { other.get_current_mastery("s").await.unwrap().unwrap() };
    let counts = || {
        let stats = other.cache_stats();
        (stats.memory_hits, stats.redis_hits, stats.misses)
    };
    assert_eq!(read().await, saved);
    assert_eq!(
        counts(),
        (0, 0, 1),
        "it cannot tell what Redis has from what it had before a crash"
    );
    assert_eq!(read().await, saved);
    assert_eq!(counts(), (1, 0, 1));
    // It goes on listening, because it is asked for others.
    for _ in 0..2 {
        fixture.later(Duration::from_secs(16));
        other.get_current_mastery("another").await.unwrap();
    }
    assert_eq!(read().await, saved);
    assert_eq!(counts(), (1, 1, 3));
    fixture.later(Duration::from_secs(300));
    assert_eq!(read().await, saved);
    assert_eq!(counts(), (1, 1, 4));
    assert_eq!(redis(&fixture, "TTL mastery:s").await, Reply::Integer(300));
    assert_eq!(other.cache_stats().failures, 0);
}

#[tokio::test]
async fn another_process_sees_a_change_after_50_ms_at_most() {
    let fixture = Fixture::new().await;
    let other = fixture.another_engine();
    for round in 0..5_u32 {
        let components = Components { completion: f64::from(round) / 5.0, ..EXAMPLE };
        let saved = fixture.engine.save_mastery_update("s", &components).await.unwrap();
        fixture.later(Duration::from_millis(50));
        assert_eq!(other.get_current_mastery("s").await.unwrap().unwrap(), saved);
        assert_eq!(other.get_current_mastery("s").await.unwrap().unwrap(), saved);
    }
}

#[tokio::test]
async fn a_writer_who_reaches_redis_late_with_something_older_is_not_believed() {
    let fixture = Fixture::new().await;
    let other = fixture.another_engine();
    let old = fixture.engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
    other.get_current_mastery("s").await.unwrap();
    let new = fixture.engine.save_mastery_update("s", &Components::default()).await.unwrap();
    let late = serde_json::to_string(&old).unwrap();
    redis(&fixture, &format!("SET mastery:s {late} EX 300")).await;
    fixture.later(Duration::from_millis(60));
    assert_eq!(other.get_current_mastery("s").await.unwrap().unwrap(), new);
    assert_eq!(fixture.engine.get_current_mastery("s").await.unwrap().unwrap(), new);
}

#[tokio::test]
async fn no_entry_of_the_invalidations_names_a_learner() {
    let fixture = Fixture::new().await;
    fixture.engine.save_mastery_update("student_SECRET", &EXAMPLE).await.unwrap();
    let entries = redis(&fixture, "XRANGE cache:mastery:invalidations - +").await;
    assert!(matches!(&entries, Reply::Array(entries) if entries.len() == 1));
    assert!(!format!("{entries:?}").contains("SECRET"));
    let fields = fields_of(&entries);
    assert!(fields.iter().all(|text| !text.contains("SECRET")));
    // A guessed id does not find it by its hash.
    let guessed = Sha256::digest(b"student_SECRET");
    let guessed: String = guessed.iter().map(|byte| format!("{byte:02x}")).collect();
    let place_of = fields.iter().skip_while(|text| *text != "l").nth(1).unwrap();
    assert_eq!(place_of.len(), 16);
    assert!(!guessed.starts_with(place_of.as_str()), "the hash is not salted");
}

/// Names and values of the first entry of a stream.
fn fields_of(entries: &Reply) -> Vec<String> {
    let Reply::Array(entries) = entries else { panic!("{entries:?}") };
    let Reply::Array(entry) = &entries[0] else { panic!() };
    let Reply::Array(fields) = &entry[1] else { panic!() };
    let text = |it: &Reply| match it {
        Reply::Bulk(text) => String::from_utf8(text.clone()).unwrap(),
        other => panic!("{other:?}"),
    };
    fields.iter().map(text).collect()
}

#[tokio::test]
async fn a_change_is_seen_even_if_the_salt_was_lost_and_another_has_been_made() {
    let fixture = Fixture::new().await;
    let other = fixture.another_engine();
    fixture.engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
    other.get_current_mastery("s").await.unwrap();
    redis(&fixture, "DEL cache:mastery:salt").await;
    let new = fixture.another_engine().save_mastery_update("s", &Components::default()).await;
    fixture.later(Duration::from_millis(60));
    assert_eq!(other.get_current_mastery("s").await.unwrap(), Some(new.unwrap()));
}

#[tokio::test]
async fn after_a_crash_redis_is_not_believed_where_it_is_behind_the_items() {
    let fixture = Fixture::new().await;
    let old = fixture.engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
    let new = fixture.engine.save_mastery_update("s", &Components::default()).await.unwrap();
    // The items are synced before they are answered for; Redis has lost its last second.
    redis(&fixture, "DEL cache:mastery:invalidations").await;
    let lost = serde_json::to_string(&old).unwrap();
    redis(&fixture, &format!("SET mastery:s {lost} EX 300")).await;
    let restarted = fixture.another_engine();
    for _ in 0..12 {
        assert_eq!(restarted.get_current_mastery("s").await.unwrap().as_ref(), Some(&new));
        fixture.later(Duration::from_secs(10));
    }
    let Reply::Bulk(text) = redis(&fixture, "GET mastery:s").await else { panic!("not there") };
    assert_eq!(serde_json::from_slice::<MasteryResult>(&text).unwrap(), new, "it is put right");
}

#[tokio::test]
async fn a_learner_who_is_forgotten_is_forgotten_in_every_process() {
    let fixture = Fixture::new().await;
    let other = fixture.another_engine();
    fixture.engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
    for engine in [&fixture.engine, &other] {
        assert!(engine.get_current_mastery("s").await.unwrap().is_some());
    }
    let key = Item::new().with("pk", "student:s").with("sk", "profile:current_mastery");
    fixture.db.table("state").delete(key).unwrap();
    fixture.engine.forget("s").await.unwrap();
    fixture.later(Duration::from_millis(60));
    for engine in [&fixture.engine, &other] {
        assert_eq!(engine.get_current_mastery("s").await.unwrap(), None);
    }
    assert!(fixture.engine.forget("no id").await.is_err());
}

#[tokio::test]
async fn a_writer_who_is_cut_off_before_it_tells_leaves_nothing_old_to_be_believed() {
    let fixture = Fixture::new().await;
    let engine = &fixture.engine;
    engine.save_mastery_update("s", &EXAMPLE).await.unwrap();
    engine.get_current_mastery("s").await.unwrap();
    // The item is written at the first poll; the cache is updated later.
    let nothing = Components::default();
    let mut save = Box::pin(engine.save_mastery_update("s", &nothing));
    let once = std::future::poll_fn(|context| {
        std::task::Poll::Ready(save.as_mut().poll(context).is_ready())
    });
    once.await;
    drop(save);
    let kept = engine.get_current_mastery("s").await.unwrap().unwrap();
    let text = fixture.value("student:s", "profile:current_mastery").unwrap();
    assert_eq!(serde_json::to_string(&kept).unwrap(), text);
}
