//! Items under a keyspace in force, through the database itself.

use std::sync::Arc;

use kstone::table::{KeyAttribute, KeySchema, TableSpec};
use kstone::{Database, Error, Item, Value};
use kstone_core::env::{Env, ManualClock};
use kstone_keyspace::index::{IndexEntryKey, Location, pk_of_subject};
use kstone_keyspace::{Governor, Recount, Subject, UnknownKeys, shipped};

use crate::support::{START_MS, govern, index_entries, memory_env, now, open_unsynced};

const DAY_S: u64 = 86_400;

struct Fixture {
    db: Database,
    governor: Arc<Governor>,
    clock: Arc<ManualClock>,
    env: Env,
}

fn make_table(db: &Database, name: &str) {
    let key = KeySchema::hash_range(KeyAttribute::string("pk"), KeyAttribute::string("sk"));
    let spec = TableSpec { name: name.to_owned(), key, ..TableSpec::default() };
    db.create_table(&spec).unwrap();
    db.update_ttl(name, "ttl", true).unwrap();
    db.run_background().unwrap();
}

fn fixture_with(unknown: UnknownKeys) -> Fixture {
    let clock = Arc::new(ManualClock::at(START_MS));
    let env = memory_env(&clock);
    let db = open_unsynced(env.clone());
    make_table(&db, "state");
    let governor = govern(&db, unknown);
    Fixture { db, governor, clock, env }
}

fn fixture() -> Fixture {
    fixture_with(UnknownKeys::Allow)
}

/// An item as the Dapr door writes it.
fn state(pk: &str, sk: &str, value: &str) -> Item {
    Item::new().with("pk", pk).with("sk", sk).with("value", value).with("etag", 1)
}

const MASTERY: &str = r#"{"student_id":"s1","mastery_score":0.5,"level":"expert","components":{},"timestamp":"2026-01-14T10:30:00Z"}"#;

impl Fixture {
    fn put(&self, item: Item) -> kstone::Result<()> {
        self.db.table("state").put(item)
    }

    fn refusal(&self, item: Item) -> String {
        match self.put(item) {
            Err(Error::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    fn get(&self, pk: &str, sk: &str) -> Option<Item> {
        self.db.table("state").get(Item::new().with("pk", pk).with("sk", sk)).unwrap()
    }

    /// The places that the index names for a person.
    fn places(&self, id: &str) -> Vec<String> {
        index_entries(&self.db, &pk_of_subject(id))
    }

    fn keys(&self, pattern: &str) -> u64 {
        self.governor.metrics().usage(pattern).unwrap().keys
    }
}

fn person(id: &str) -> Subject {
    Subject { id: id.to_owned(), tenant: None }
}

#[test]
fn a_declared_item_gets_its_time_to_live_and_is_indexed_and_counted() {
    let it = fixture();
    it.put(state("student:s1", "mastery:2026-01-14", MASTERY)).unwrap();
    let item = it.get("student:s1", "mastery:2026-01-14").unwrap();
    assert_eq!(item.get("ttl"), Some(&Value::from(START_MS / 1000 + 90 * DAY_S)));
    assert_eq!(it.places("s1"), ["|tstate|student:s1|mastery:2026-01-14"]);
    assert_eq!(it.keys("mastery.daily_mastery"), 1);
    it.put(state("student:s1", "mastery:2026-01-14", MASTERY)).unwrap();
    assert_eq!(it.keys("mastery.daily_mastery"), 1);
    let key = Item::new().with("pk", "student:s1").with("sk", "mastery:2026-01-14");
    it.db.table("state").delete(key).unwrap();
    assert!(it.places("s1").is_empty());
    assert_eq!(it.keys("mastery.daily_mastery"), 0);
}

#[test]
fn a_refusal_names_pattern_and_rule() {
    let it = fixture();
    let day = |value: &str| it.refusal(state("student:s1", "mastery:2026-01-14", value));
    let why = day(&MASTERY.replace("0.5", "1.5"));
    assert_eq!(
        why,
        "mastery.daily_mastery: fields.mastery_score: must be a number from 0 to 1, and is 1.5"
    );
    assert!(day("no json").starts_with("mastery.daily_mastery: value: must be JSON"));
    let long = state("student:s1", "mastery:2026-01-14", MASTERY)
        .with("ttl", START_MS / 1000 + 91 * DAY_S);
    assert!(it.refusal(long).starts_with("mastery.daily_mastery: ttl: must be at most 7776000 s"));
    it.clock.advance(416);
    let rounded = state("student:s2", "mastery:2026-01-14", MASTERY)
        .with("ttl", START_MS / 1000 + 90 * DAY_S + 1);
    it.put(rounded).unwrap();
    let short = it.refusal(state("st:s1", "m:2026-01-14", MASTERY));
    assert!(short.contains("read only (write daily_mastery)"), "{short}");
    let misplaced = it.refusal(state("student:s1:mastery:2026-01-14", "#", MASTERY));
    assert!(misplaced.starts_with("mastery.daily_mastery: partition:"), "{misplaced}");
    let score = state("student:s1", "mastery:2026-01-14:quiz", "high");
    assert!(it.refusal(score).starts_with("mastery.component_score: value:"));
    assert!(it.places("s1").is_empty());
    assert_eq!(it.keys("mastery.daily_mastery"), 1);
}

#[test]
fn fields_may_be_attributes_of_their_own() {
    let it = fixture();
    let plain = Item::new()
        .with("pk", "student:s1")
        .with("sk", "profile:streaks")
        .with("max_streak", 7)
        .with("last_activity", Value::Null);
    it.put(plain.clone()).unwrap();
    assert!(it.refusal(plain.clone().with("max_streak", -1)).contains("fields.max_streak"));
    let mut missing = plain;
    missing.remove("max_streak");
    assert!(it.refusal(missing).contains("missing"));
    let counter = Item::new().with("pk", "student:s1").with("sk", "points:total").with("value", 7);
    it.put(counter.clone()).unwrap();
    assert!(it.put(counter.with("value", "many")).is_err());
}

#[test]
fn who_is_named_in_a_field_is_indexed_and_no_longer_when_another_is() {
    let it = fixture();
    let batch = |students: &[&str]| {
        let students: Vec<Value> = students.iter().map(|it| Value::from(*it)).collect();
        Item::new()
            .with("pk", "batch:b1")
            .with("sk", "status")
            .with("batch_id", "b1")
            .with("total_requests", 2)
            .with("completed", 0)
            .with("failed", 0)
            .with("in_progress", 2)
            .with("started_at", "2026-01-14T10:30:00Z")
            .with("status", "running")
            .with("students", Value::L(students))
    };
    it.put(batch(&["student_1", "abc_2"])).unwrap();
    assert_eq!(it.places("1"), ["|tstate|batch:b1|status"]);
    assert_eq!(it.places("2"), ["abc|tstate|batch:b1|status"]);
    it.put(batch(&["1", "student_3"])).unwrap();
    assert_eq!((it.places("1").len(), it.places("2").len(), it.places("3").len()), (1, 0, 1));
    it.put(state("processed:e1", "#", r#"{"event_id":"e1","student_id":"student_4","processed_at":"2026-01-14T10:30:00Z","result":"ok"}"#)).unwrap();
    let place = IndexEntryKey::parse(&it.places("4")[0]).unwrap();
    let sk = Some(b"#".to_vec());
    let item = Location::Item { table: "state".to_owned(), pk: b"processed:e1".to_vec(), sk };
    assert_eq!(place, IndexEntryKey { tenant: None, location: item });
}

#[test]
fn an_erased_person_is_refused_until_admitted_again_also_after_a_restart() {
    let it = fixture();
    it.put(state("student:student_12345", "mastery:2026-01-14", MASTERY)).unwrap();
    now(it.governor.mark_erased(&person("12345"))).unwrap();
    let why = it.refusal(state("student:12345", "mastery:2026-01-15", MASTERY));
    assert_eq!(
        why,
        "mastery.daily_mastery: subject: was erased; admit it again with `kstone subject admit`"
    );
    it.refusal(state("student:student_12345", "mastery:2026-01-14", MASTERY));
    it.put(state("student:12346", "mastery:2026-01-15", MASTERY)).unwrap();
    let named = r#"{"event_id":"e1","student_id":"abc_12345","processed_at":"2026-01-14T10:30:00Z","result":"ok"}"#;
    it.refusal(state("processed:e1", "#", named));

    let it = it.reopened();
    it.refusal(state("student:12345", "mastery:2026-01-15", MASTERY));
    assert!(it.governor.is_erased(&person("12345")));
    assert!(now(it.governor.admit_again(&person("12345"))).unwrap());
    assert!(!now(it.governor.admit_again(&person("12345"))).unwrap());
    it.put(state("student:12345", "mastery:2026-01-15", MASTERY)).unwrap();
}

#[test]
fn keys_outside_every_pattern_are_allowed_warned_about_or_refused() {
    let it = fixture_with(UnknownKeys::Allow);
    it.put(state("order:7", "#", "x")).unwrap();
    assert!(it.refusal(state("cache:7", "#", "x")).contains("kept for `mastery`"));
    make_table(&it.db, "others");
    it.db.table("others").put(state("cache:7", "#", "x")).unwrap();
    assert_eq!(it.governor.metrics().unknown.writes, 0);
    let it = fixture_with(UnknownKeys::Warn);
    it.put(state("order:7", "#", "x")).unwrap();
    it.put(state("order:7", "#", "y")).unwrap();
    let seen = it.governor.metrics().unknown;
    assert_eq!(seen.writes, 2);
    assert_eq!(seen.examples, ["`order:…` in table `state`"]);
    let it = fixture_with(UnknownKeys::Refuse);
    assert!(it.refusal(state("order:7", "#", "x")).contains("no pattern declares"));
    assert!(matches!(it.db.put("mine", Item::new().with("a", 1)), Err(Error::Refused(_))));
}

const PREDICTION: &str = r#"{"predicted_score":0.5,"confidence":1,"trend":"up","intervention_needed":false,"calculated_at":"2026-01-14T10:30:00Z"}"#;

impl Fixture {
    fn put_days(&self, days: std::ops::Range<u32>) {
        for day in days {
            self.put(state("student:s1", &format!("mastery:2026-01-{day}"), MASTERY)).unwrap();
        }
    }

    fn recount(&self) -> Recount {
        self.governor.recount(None, &mut |_| {}).unwrap()
    }

    /// The database closed, without what was counted last, and opened again.
    fn reopened(self) -> Fixture {
        let Fixture { db, governor, clock, env } = self;
        drop((db, governor));
        let db = open_unsynced(env.clone());
        let governor = govern(&db, UnknownKeys::Allow);
        Fixture { db, governor, clock, env }
    }

    /// The same with what was counted last.
    fn saved_and_reopened(self) -> Fixture {
        self.governor.close().unwrap();
        self.reopened()
    }
}

#[test]
fn counts_are_kept_and_say_how_far_they_may_be_off_after_a_crash() {
    let it = fixture();
    assert!(!it.governor.is_counted());
    assert_eq!(it.recount(), Recount::default());
    it.put_days(10..20);
    it.put(state("student:s1", "prediction:7days", PREDICTION)).unwrap();
    assert!(it.governor.save().unwrap());
    assert!(!it.governor.save().unwrap());
    it.put_days(10..12);
    assert!(it.governor.save().unwrap());
    // What no pattern declares takes sequence numbers too.
    it.put(state("order:7", "#", "x")).unwrap();
    let before = it.governor.metrics();
    let it = it.saved_and_reopened();
    assert!(it.governor.is_counted());
    let after = it.governor.metrics();
    assert_eq!(after.patterns, before.patterns);
    assert_eq!(after.off_by_changes_max, 0);
    assert_eq!(after.keys_by_metric()["daily_snapshots"], 10);
    assert_eq!(after.keys_by_metric()["predictions"], 1);
    assert_eq!(after.patterns.iter().map(|it| it.expiring_next_hour.at_most).sum::<u64>(), 1);

    it.put_days(20..25);
    let it = it.reopened();
    let off_by = it.governor.metrics().off_by_changes_max;
    assert_eq!(it.keys("mastery.daily_mastery"), 10);
    assert!((5..20).contains(&off_by), "{off_by}");
    let counted = it.recount();
    assert_eq!((counted.items, counted.entries, counted.off_by_changes_max), (16, 16, 0));
    assert_eq!(it.keys("mastery.daily_mastery"), 15);
    assert_eq!(it.governor.metrics().off_by_changes_max, 0);
}

#[test]
fn a_recount_finds_exactly_what_was_counted_on_the_way() {
    let it = fixture();
    it.recount();
    it.put_days(10..20);
    it.put_days(12..14);
    it.put(state("student:s1", "prediction:7days", PREDICTION)).unwrap();
    it.put(state(
        "processed:e1",
        "#",
        r#"{"event_id":"e1","processed_at":"2026-01-14T10:30:00Z","result":"ok"}"#,
    ))
    .unwrap();
    let key = Item::new().with("pk", "student:s1").with("sk", "mastery:2026-01-15");
    it.db.table("state").delete(key).unwrap();
    let before = it.governor.metrics();
    it.recount();
    assert_eq!(it.governor.metrics(), before);
    it.clock.advance(3_601_000);
    it.db.run_background().unwrap();
    assert_eq!(it.keys("mastery.prediction"), 0);
    let before = it.governor.metrics();
    it.recount();
    assert_eq!(it.governor.metrics(), before);
}

#[test]
fn what_was_written_without_the_keyspace_is_counted_and_indexed_when_it_is_back() {
    let it = fixture();
    it.recount();
    it.put_days(10..12);
    it.governor.save().unwrap();
    let Fixture { db, governor, clock, env } = it;
    drop((db, governor));
    let db = open_unsynced(env.clone());
    assert!(Governor::suspend(&db).unwrap());
    db.table("state").put(state("student:s2", "mastery:2026-01-14", MASTERY)).unwrap();
    drop(db);
    let db = open_unsynced(env.clone());
    let governor = Governor::resume(&db).unwrap().unwrap();
    assert_eq!(governor.keyspace().patterns().len(), shipped().unwrap().patterns().len());
    let it = Fixture { db, governor, clock, env };
    assert!(!it.governor.is_counted() && it.places("s2").is_empty());
    it.recount();
    assert!(it.governor.is_counted());
    assert_eq!(it.places("s2"), ["|tstate|student:s2|mastery:2026-01-14"]);
    assert_eq!(it.keys("mastery.daily_mastery"), 3);
}

#[test]
fn a_table_that_is_dropped_takes_its_counts_with_it() {
    let it = fixture();
    make_table(&it.db, "reviews-s2026");
    make_table(&it.db, "reviews-s2027");
    for table in ["reviews-s2026", "reviews-s2027"] {
        let due = "2026-01-14T10:30:00Z";
        let memory = Item::new().with("pk", "l-1").with("sk", "q-1").with("next_review_date", due);
        it.db.table(table).put(memory).unwrap();
    }
    let keys = |it: &Fixture| it.keys("reviews.memory");
    assert_eq!((keys(&it), it.places("l-1").len()), (2, 2));
    assert_eq!(it.governor.prune_if_due().unwrap(), 0);
    it.db.delete_table("reviews-s2026").unwrap();
    assert_eq!(keys(&it), 1);
    // What the index says of its items goes at the next start.
    let it = it.saved_and_reopened();
    assert_eq!(it.places("l-1").len(), 2);
    assert_eq!(it.governor.metrics().off_by_changes_max, 0);
    assert_eq!(it.governor.prune_if_due().unwrap(), 1);
    assert_eq!(it.places("l-1"), ["|treviews-s2027|l-1|q-1"]);
    assert_eq!(it.governor.prune_if_due().unwrap(), 0);
}

#[test]
fn get_key_metrics_gives_the_six_counts() {
    let it = fixture();
    it.put_days(10..14);
    it.put(state("student:s1", "mastery:2026-01-10:quiz", "0.9")).unwrap();
    it.put(state("student:s1", "profile:current_mastery", MASTERY)).unwrap();
    it.put(state("student:s1", "prediction:7days", PREDICTION)).unwrap();
    it.put(state("student:s1", "prediction:30days", PREDICTION)).unwrap();
    it.put(state("student:s1", "path:adaptive", "[]")).unwrap();
    let activity = r#"{"last_activity":"2026-01-14T10:30:00Z","current_streak":1,"max_streak":2,"activity_log":[]}"#;
    it.put(state("student:s1", "activity:recent", activity)).unwrap();
    for event in ["e1", "e2", "e3"] {
        let processed = format!(
            r#"{{"event_id":"{event}","processed_at":"2026-01-14T10:30:00Z","result":"ok"}}"#
        );
        it.put(state(&format!("processed:{event}"), "#", &processed)).unwrap();
    }
    let metrics = it.governor.metrics();
    let keys = metrics.keys_by_metric();
    let six = [
        ("current_mastery", 1),
        ("daily_snapshots", 4),
        ("processed_events", 3),
        ("activity_data", 1),
        ("predictions", 2),
        ("paths", 1),
    ];
    for (metric, count) in six {
        assert_eq!(keys[metric], count, "{metric}");
    }
}
