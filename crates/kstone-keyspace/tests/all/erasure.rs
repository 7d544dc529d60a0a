//! Erasing a person: nothing of them is left for readers or in any file, and nothing of anybody else
//! is touched.

use crate::support::{Fixture, MASTERY, SECRET, fill, now, remove_folder};
use kstone::Item;
use kstone_core::Compression;
use kstone_keyspace::Subject;
use kstone_keyspace::erasure::{ErasureError, ErasureState, SignedReceipt};
use kstone_sim::SimDisk;

#[test]
fn everything_of_a_person_is_listed_wherever_it_is() {
    let fixture = Fixture::open(&SimDisk::new(1), Compression::Lz4);
    fill(&fixture);
    let subject = fixture.subject();
    let holdings = now(fixture.eraser.stores().holdings(&subject)).unwrap();
    let mut patterns: Vec<(&str, bool)> =
        holdings.iter().map(|it| (it.pattern.as_str(), it.is_shared)).collect();
    patterns.sort_unstable();
    patterns.dedup();
    let expected = [
        ("mastery.batch_status", true),
        ("mastery.current_mastery", false),
        ("mastery.daily_mastery", false),
        ("mastery.mastery_cache", false),
        ("mastery.processed_event", false),
        ("mastery.school_mastery", false),
        ("practice.anticheat", false),
        ("practice.hints_used", false),
        ("practice.leaderboard", true),
        ("practice.score_series", false),
        ("practice.session", false),
        ("practice.session_timer", false),
        ("practice.task_pending", false),
    ];
    assert_eq!(patterns, expected);
    let of_tenant = Subject::canonical(SECRET, Some("abc"));
    let holdings = now(fixture.eraser.stores().holdings(&of_tenant)).unwrap();
    assert!(holdings.iter().all(|it| it.tenant.as_deref() == Some("abc")), "{holdings:#?}");
    assert!(!holdings.is_empty());
}

#[test]
fn what_is_listed_is_what_is_there_now() {
    let fixture = Fixture::open(&SimDisk::new(1), Compression::Lz4);
    fill(&fixture);
    let subject = fixture.subject();
    let count = || now(fixture.eraser.stores().holdings(&subject)).unwrap().len();
    let before = count();
    fixture.redis("DEL session:s-1");
    fixture.redis("HSET session:s-1 user_id other level_id 1 task_id t");
    // The session is another's now, and so is what is found through it.
    assert_eq!(count(), before - 4);
    fixture.clock.advance(400_000);
    assert!(count() < before - 4, "the cache of five minutes is over");
}

#[test]
fn debug_student_state_shows_every_value_and_nothing_of_others() {
    let fixture = Fixture::open(&SimDisk::new(1), Compression::Lz4);
    fill(&fixture);
    let export =
        now(fixture.eraser.stores().export(&fixture.subject(), 1_768_386_600_000)).unwrap();
    let text = serde_json::to_string_pretty(&export).unwrap();
    assert!(!text.contains("OTHER"), "{text}");
    let find = |pattern: &str| {
        let data = export["data"].as_array().unwrap();
        let found = data.iter().find(|it| it["pattern"] == pattern).unwrap();
        found["value"].clone()
    };
    assert_eq!(find("mastery.daily_mastery")["mastery_score"], 0.5);
    assert_eq!(find("practice.session")["user_id"], SECRET);
    assert_eq!(find("practice.leaderboard")["score"], 10.0);
    assert_eq!(find("practice.score_series"), serde_json::json!(["1", "0"]));
    assert_eq!(find("mastery.batch_status")["students"], serde_json::json!([SECRET]));
    assert_eq!(export["exported_at"], "2026-01-14T10:30:00.000Z");
}

#[test]
fn delete_student_data_leaves_nothing_for_readers_and_no_byte_in_any_file() {
    for compression in [Compression::None, Compression::Zstd { level: 1 }] {
        let disk = SimDisk::new(1);
        let fixture = Fixture::open(&disk, compression);
        fill(&fixture);
        fixture.db.engine().flush().unwrap();
        fixture.db.engine().checkpoint("copy").unwrap();
        // Deleted here, and in the checkpoint still there.
        fixture.redis(&format!("DEL anticheat:{SECRET}"));
        fixture.delete_state(&format!("student:{SECRET}"), "mastery:2026-01-15");
        assert!(fixture.sightings(&disk).len() > 3);

        let receipt = fixture.erase();
        assert_eq!(fixture.sightings(&disk), Vec::<String>::new(), "{compression:?}");
        assert_eq!(now(fixture.eraser.stores().holdings(&fixture.subject())).unwrap(), []);
        fixture.check_others();
        check_receipt(&fixture, &receipt);

        drop(fixture);
        let again = Fixture::open(&disk, compression);
        again.check_others();
        assert_eq!(again.sightings(&disk), Vec::<String>::new());
    }
}

fn check_receipt(fixture: &Fixture, signed: &SignedReceipt) {
    let read = SignedReceipt::from_json(&signed.to_json()).unwrap();
    read.check_key(&fixture.eraser.public_key()).unwrap();
    let receipt = &read.receipt;
    assert!(receipt.concerns(&fixture.subject()));
    assert!(!receipt.concerns(&Subject::canonical("somebody", None)));
    assert!(!signed.to_json().contains(SECRET));
    let count = |pattern: &str| receipt.patterns.get(pattern).copied().unwrap_or_default();
    assert_eq!(count("mastery.daily_mastery").deleted, 1);
    assert_eq!(count("mastery.batch_status").changed, 1);
    assert_eq!(count("practice.leaderboard").changed, 1);
    assert_eq!(count("practice.session").deleted, 1);
    assert_eq!(count("practice.anticheat").deleted, 0);
    assert!(receipt.first_seq > 0 && receipt.last_seq > receipt.first_seq);
    assert_eq!(receipt.purge.checkpoints, 1);
    assert!(receipt.purge.missing_checkpoints.is_empty());
    let erasures = now(fixture.eraser.erasures()).unwrap();
    assert!(
        matches!(&erasures[..], [one] if one.state == ErasureState::Done(signed.clone().into()))
    );
}

#[test]
fn writes_about_an_erased_person_are_refused_until_they_are_admitted_again() {
    let disk = SimDisk::new(1);
    let fixture = Fixture::open(&disk, Compression::Lz4);
    fill(&fixture);
    fixture.erase();
    let refused = |fixture: &Fixture| {
        let item = fixture.try_state(&format!("student:{SECRET}"), "mastery:2026-02-01", MASTERY);
        let message = item.unwrap_err().to_string();
        assert!(message.contains("was erased") && !message.contains(SECRET), "{message}");
        for line in [
            format!("HSET session:s-9 user_id {SECRET}"),
            "SET session:timer:s-1 1".to_owned(),
            format!("ZADD leaderboard:level:l1 5 {SECRET}"),
            format!("SET mastery:{SECRET} {{}}"),
        ] {
            let reply = fixture.try_redis(&line).unwrap_err();
            assert!(reply.contains("was erased"), "{line}: {reply}");
        }
    };
    refused(&fixture);
    drop(fixture);
    let fixture = Fixture::open(&disk, Compression::Lz4);
    refused(&fixture);
    assert!(now(fixture.governor.admit_again(&fixture.subject())).unwrap());
    fixture.state(&format!("student:{SECRET}"), "mastery:2026-02-01", MASTERY);
    assert_eq!(now(fixture.eraser.stores().holdings(&fixture.subject())).unwrap().len(), 1);
}

#[test]
fn an_erasure_in_one_tenant_leaves_the_same_id_elsewhere() {
    let disk = SimDisk::new(1);
    let fixture = Fixture::open(&disk, Compression::None);
    fill(&fixture);
    let elsewhere = now(fixture.eraser.stores().holdings(&fixture.subject())).unwrap().len();
    let subject = Subject::canonical(SECRET, Some("abc"));
    let here = now(fixture.eraser.stores().holdings(&subject)).unwrap().len();
    let receipt = now(fixture.eraser.erase(&subject, &|_| {})).unwrap();
    assert_eq!(receipt.receipt.tenant.as_deref(), Some("abc"));
    assert_eq!(now(fixture.eraser.stores().holdings(&subject)).unwrap(), []);
    let left = now(fixture.eraser.stores().holdings(&fixture.subject())).unwrap().len();
    assert_eq!(left, elsewhere - here);
    let school = "school:abc:student";
    assert!(fixture.get_state(&format!("{school}:{SECRET}"), "profile:current_mastery").is_none());
    assert!(fixture.get_state("school:abc:student:OTHER", "profile:current_mastery").is_some());
}

#[test]
fn a_checkpoint_that_was_moved_away_is_named_in_the_receipt() {
    let disk = SimDisk::new(1);
    let fixture = Fixture::open(&disk, Compression::None);
    fill(&fixture);
    fixture.db.engine().checkpoint("copy").unwrap();
    remove_folder(&disk, "copy");
    let receipt = fixture.erase();
    assert_eq!(receipt.receipt.purge.missing_checkpoints, ["copy"]);
    assert_eq!(receipt.receipt.purge.checkpoints, 0);
}

#[test]
fn an_item_that_names_the_person_by_now_another_is_left_alone() {
    let disk = SimDisk::new(1);
    let fixture = Fixture::open(&disk, Compression::None);
    fill(&fixture);
    let processed = r#"{"event_id":"evt-1","student_id":"OTHER","processed_at":"2026-01-14T10:30:00Z","result":"ok"}"#;
    fixture.state("processed:evt-1", "#", processed);
    fixture.erase();
    let item: Item = fixture.get_state("processed:evt-1", "#").unwrap();
    assert_eq!(item.get("value").unwrap().as_str().unwrap(), processed);
    assert_eq!(fixture.sightings(&disk), Vec::<String>::new());
}

#[test]
fn a_checkpoint_from_before_the_keyspace_was_in_force_is_cleared_too() {
    let disk = SimDisk::new(1);
    let fixture = Fixture::ungoverned(&disk);
    fill(&fixture);
    fixture.db.engine().checkpoint("copy").unwrap();
    drop(fixture);
    let fixture = Fixture::open(&disk, Compression::None);
    fixture.count_anew();
    let receipt = fixture.erase();
    assert_eq!(receipt.receipt.purge.checkpoints, 1);
    assert_eq!(fixture.sightings(&disk), Vec::<String>::new());
    fixture.check_others();
}

#[test]
fn what_has_expired_and_is_still_stored_goes_too() {
    let disk = SimDisk::new(1);
    let fixture = Fixture::open(&disk, Compression::None);
    fill(&fixture);
    // Nothing is reclaimed here unless somebody asks for it.
    fixture.clock.advance(100 * 86_400_000);
    let left = now(fixture.eraser.stores().holdings(&fixture.subject())).unwrap();
    let patterns: Vec<&str> = left.iter().map(|it| it.pattern.as_str()).collect();
    assert_eq!(patterns, ["mastery.school_mastery", "mastery.current_mastery"]);
    fixture.db.engine().flush().unwrap();
    assert!(fixture.sightings(&disk).len() > 10);
    let receipt = fixture.erase();
    assert_eq!(receipt.receipt.patterns.len(), 2);
    assert_eq!(fixture.sightings(&disk), Vec::<String>::new());
}

#[test]
fn nobody_is_erased_by_asking_for_somebody_of_whom_there_is_nothing() {
    let disk = SimDisk::new(1);
    let fixture = Fixture::open(&disk, Compression::None);
    fill(&fixture);
    let before = now(fixture.eraser.stores().holdings(&fixture.subject())).unwrap();
    let nobody = Subject::canonical("nobody", None);
    let receipt = now(fixture.eraser.erase(&nobody, &|_| {})).unwrap();
    assert!(receipt.receipt.patterns.is_empty());
    assert_eq!(now(fixture.eraser.stores().holdings(&fixture.subject())).unwrap(), before);
}

#[test]
fn two_erasures_at_a_time_are_one_after_the_other() {
    let disk = SimDisk::new(1);
    let fixture = Fixture::open(&disk, Compression::None);
    fill(&fixture);
    let second = std::sync::atomic::AtomicBool::new(false);
    let progress = |_| {
        let other = now(fixture.eraser.erase(&Subject::canonical("OTHER1", None), &|_| {}));
        assert!(matches!(other, Err(ErasureError::Running)), "{other:?}");
        second.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    now(fixture.eraser.erase(&fixture.subject(), &progress)).unwrap();
    assert!(second.load(std::sync::atomic::Ordering::Relaxed));
    fixture.check_others();
    now(fixture.eraser.erase(&Subject::canonical("OTHER1", None), &|_| {})).unwrap();
    assert!(fixture.get_state("student:OTHER1", "mastery:2026-01-14").is_none());
}
