//! What a write to a declared key must keep to.

use std::sync::LazyLock;

use kstone_keyspace::{
    Effect, Expiry, FieldValue, KeyStore, Keyspace, Pattern, Refusal, RequestedTtl, Rule,
    StoredType, Subject, Subjects, Write, shipped,
};

static SHIPPED: LazyLock<Keyspace> = LazyLock::new(|| shipped().unwrap());

fn pattern(name: &str) -> &'static Pattern {
    SHIPPED.pattern(name).unwrap()
}

fn bytes(value: &[u8]) -> Write<'_> {
    Write { value: Some(value), ..Write::makes(b"key", StoredType::Bytes) }
}

fn raw<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, FieldValue<'a>)> {
    fields.iter().map(|(name, value)| (*name, FieldValue::Raw(value.as_bytes()))).collect()
}

fn refused(name: &str, write: &Write<'_>) -> Refusal {
    pattern(name).admit(write).unwrap_err()
}

#[test]
fn a_write_that_names_no_time_gets_the_patterns() {
    let score = pattern("mastery.component_score").admit(&bytes(b"0.85")).unwrap();
    assert_eq!(score.expiry, Expiry::InMs(7_776_000_000));
    let json = br#"{"student_id":"s1","mastery_score":0.862,"level":"proficient",
        "components":{"quiz":0.9},"timestamp":"2026-01-14T10:30:00Z"}"#;
    let current = pattern("mastery.current_mastery").admit(&bytes(json)).unwrap();
    assert_eq!(current.expiry, Expiry::Never);
}

#[test]
fn a_counter_keeps_the_time_it_was_made_with_and_a_session_renews_it() {
    let count = Write { effect: Effect::Changes, ..bytes(b"2") };
    let limit = pattern("practice.ratelimit_user");
    assert_eq!(limit.admit(&bytes(b"1")).unwrap().expiry, Expiry::InMs(60_000));
    assert_eq!(limit.admit(&count).unwrap().expiry, Expiry::Keep);
    let hints = pattern("practice.hints_used");
    assert_eq!(hints.admit(&count).unwrap().expiry, Expiry::InMs(3_600_000));
}

#[test]
fn a_refusal_names_the_pattern_and_the_rule() {
    let write = Write { ttl: RequestedTtl::Ms(7_776_000_001), ..bytes(b"0.5") };
    let refusal = refused("mastery.component_score", &write);
    assert_eq!(refusal.rule, Rule::Ttl);
    let shown = "mastery.component_score: ttl: must be at most 7776000 s, and is 7776000.001 s";
    assert_eq!(refusal.to_string(), shown);
    let forever = Write { ttl: RequestedTtl::Never, ..bytes(b"0.5") };
    assert_eq!(refused("mastery.component_score", &forever).rule, Rule::Ttl);
}

#[test]
fn a_block_lasts_from_15_minutes_to_a_day_and_a_task_5_minutes_or_more() {
    let block = |ms| Write { ttl: RequestedTtl::Ms(ms), ..bytes(b"blocked") };
    for ms in [900_000, 1_800_000, 3_600_000, 86_400_000] {
        let admitted = pattern("practice.anticheat_block").admit(&block(ms)).unwrap();
        assert_eq!(admitted.expiry, Expiry::InMs(ms));
    }
    assert_eq!(refused("practice.anticheat_block", &block(899_000)).rule, Rule::Ttl);
    assert_eq!(refused("practice.anticheat_block", &block(86_401_000)).rule, Rule::Ttl);
    let task = |ms| Write { ttl: RequestedTtl::Ms(ms), ..bytes(b"{}") };
    assert!(pattern("practice.task_pending").admit(&task(3_000_000)).is_ok());
    assert_eq!(refused("practice.task_pending", &task(299_000)).rule, Rule::Ttl);
}

#[test]
fn the_wrong_type_is_refused() {
    let refusal = refused("practice.session", &bytes(b"x"));
    assert_eq!(refusal.to_string(), "practice.session: type: must be hash, and is bytes");
    for shape in [
        StoredType::Hash,
        StoredType::List,
        StoredType::Set,
        StoredType::Stream,
        StoredType::Bytes,
        StoredType::Item,
    ] {
        assert_eq!(refused("reviews.schedule", &Write::makes(b"k", shape)).rule, Rule::Type);
    }
    assert!(pattern("reviews.schedule").admit(&Write::makes(b"k", StoredType::Zset)).is_ok());
}

#[test]
fn json_is_json_with_the_declared_fields() {
    let refuse = |json: &[u8]| refused("mastery.processed_event", &bytes(json)).rule;
    assert_eq!(refuse(b"{"), Rule::Value);
    assert_eq!(refuse(b"[1]"), Rule::Value);
    assert_eq!(refuse(b"{}"), Rule::Field("event_id".to_owned()));
    let with = |field: &str| {
        format!(
            r#"{{"event_id":"e","processed_at":"2026-01-14T10:30:00Z","result":"success"{field}}}"#
        )
    };
    let admit = |json: &str| pattern("mastery.processed_event").admit(&bytes(json.as_bytes()));
    assert!(admit(&with("")).is_ok());
    assert!(admit(&with(r#","mastery_score":null,"more":[1,2]"#)).is_ok());
    let refusal = admit(&with(r#","mastery_score":1.5"#)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "mastery.processed_event: fields.mastery_score: must be a number from 0 to 1, and is 1.5"
    );
    assert!(admit(&with(r#","mastery_score":"0.5""#)).is_err());
}

#[test]
fn json_among_items_may_be_an_item_with_the_same_fields() {
    let fields = [
        ("event_id", FieldValue::Text("e".into())),
        ("processed_at", FieldValue::Text("2026-01-14T10:30:00Z".into())),
        ("result", FieldValue::Text("success".into())),
    ];
    let item = Write { fields: &fields, ..Write::makes(b"processed:e", StoredType::Item) };
    assert!(pattern("mastery.processed_event").admit(&item).is_ok());
    let partial = Write { fields: &fields[..2], ..item.clone() };
    assert_eq!(refused("mastery.processed_event", &partial).rule, Rule::Field("result".to_owned()));
    let update = Write { effect: Effect::Changes, ..partial };
    assert!(pattern("mastery.processed_event").admit(&update).is_ok());
    assert_eq!(refused("mastery.mastery_cache", &item).rule, Rule::Type);
}

#[test]
fn fields_of_a_hash_are_declared_ones_and_may_come_one_after_the_other() {
    let admit = |fields: &[(&str, &str)]| {
        let fields = raw(fields);
        let write = Write { fields: &fields, ..Write::makes(b"session:s", StoredType::Hash) };
        pattern("practice.session").admit(&write)
    };
    assert!(admit(&[("user_id", "u-1")]).is_ok());
    assert!(admit(&[("hints_used", "2"), ("started_at", "1768386600000")]).is_ok());
    let wrong = admit(&[("hints_used", "many")]).unwrap_err();
    assert_eq!(wrong.rule, Rule::Field("hints_used".to_owned()));
    let unknown = admit(&[("password", "x")]).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "practice.session: fields.password: must be one of user_id, level_id, task_id, hints_used, \
         started_at, last_activity, and is not declared"
    );
}

#[test]
fn values_are_those_that_the_pattern_allows() {
    for (name, right, wrong) in [
        ("practice.hint_cooldown", "locked", "open"),
        ("practice.feature_flag", "percentage:50", "percentage:500"),
        ("practice.feature_flag", "true", "yes"),
        ("practice.explanation_pending", "generating", "done"),
        ("practice.explanation_pending", "generating:token-1", "generating:"),
        ("practice.ratelimit_user", "17", "seventeen"),
        ("practice.session_timer", "1768386600000", "-5"),
        ("mastery.component_score", "0.82", "1.82"),
        ("mastery.adaptive_path", "[\"practice\"]", "{\"a\":1}"),
    ] {
        assert!(pattern(name).admit(&bytes(right.as_bytes())).is_ok(), "{name} {right}");
        assert_eq!(refused(name, &bytes(wrong.as_bytes())).rule, Rule::Value, "{name} {wrong}");
    }
    let flags = raw(&[("new_editor", "true"), ("dark", "percentage:5")]);
    let write = Write { fields: &flags, ..Write::makes(b"feature_flag_cache", StoredType::Hash) };
    assert!(pattern("practice.feature_flags").admit(&write).is_ok());
}

#[test]
fn a_full_series_is_trimmed_and_a_full_set_refused() {
    let push = |after| Write {
        members: &[b"1"],
        members_after: Some(after),
        ..Write::makes(b"score:series:u", StoredType::List)
    };
    let series = pattern("practice.score_series");
    assert_eq!(series.admit(&push(100)).unwrap().trim_to, None);
    assert_eq!(series.admit(&push(101)).unwrap().trim_to, Some(100));
    let wrong = Write { members: &[b"2"], ..push(1) };
    assert_eq!(series.admit(&wrong).unwrap_err().rule, Rule::Value);
    let mut strict = series.clone();
    strict.limits.over = kstone_keyspace::OverflowAction::Refuse;
    assert_eq!(strict.admit(&push(101)).unwrap_err().rule, Rule::Members);
}

#[test]
fn keys_and_values_beyond_their_limits_are_refused() {
    let long = Write { key_bytes: 1025, ..bytes(b"0.5") };
    assert_eq!(refused("mastery.component_score", &long).rule, Rule::KeyBytes);
    let large = format!("\"{}\"", "x".repeat(400 * 1024));
    assert_eq!(refused("mastery.history", &bytes(large.as_bytes())).rule, Rule::ValueBytes);
    let item = Write { whole_bytes: Some(500_000), ..Write::makes(b"k", StoredType::Item) };
    assert_eq!(refused("reviews.review", &item).rule, Rule::ValueBytes);
}

#[test]
fn a_short_form_is_read_and_not_written() {
    let refusal = refused("mastery.current_short", &bytes(b"{}"));
    assert_eq!(refusal.rule, Rule::Written);
    assert!(refusal.to_string().contains("current_mastery"), "{refusal}");
}

fn subjects(place: KeyStore<'_>, key: &str, write: &Write<'_>) -> Subjects {
    SHIPPED.find(place, key.as_bytes()).unwrap().subjects(write)
}

fn these(subjects: &[(&str, Option<&str>)]) -> Subjects {
    let subject = |(id, tenant): &(&str, Option<&str>)| Subject {
        id: (*id).to_owned(),
        tenant: tenant.map(str::to_owned),
    };
    Subjects::These(subjects.iter().map(subject).collect())
}

#[test]
fn whose_data_it_is_follows_from_the_key() {
    let state = KeyStore::Table("state");
    let nothing = bytes(b"{}");
    let learner = these(&[("12345", None)]);
    assert_eq!(subjects(state, "student:student_12345:path:adaptive", &nothing), learner);
    assert_eq!(subjects(state, "st:12345:cur", &nothing), learner);
    assert_eq!(subjects(KeyStore::Redis, "mastery:student_12345", &nothing), learner);
    let of_school = these(&[("12345", Some("university_abc"))]);
    let key = "school:university_abc:student:12345:profile:current_mastery";
    assert_eq!(subjects(state, key, &nothing), of_school);
    let key = "student:university_abc_12345:profile:current_mastery";
    assert_eq!(subjects(state, key, &nothing), of_school);
    assert_eq!(subjects(KeyStore::Redis, "content:changes", &nothing), these(&[]));
}

#[test]
fn whose_data_it_is_follows_from_the_value_where_the_key_does_not_say() {
    let state = KeyStore::Table("state");
    let json = bytes(br#"{"event_id":"e","student_id":"student_7"}"#);
    assert_eq!(subjects(state, "processed:e", &json), these(&[("7", None)]));
    let batch = bytes(br#"{"students":["student_2","student_1","student_2"]}"#);
    assert_eq!(subjects(state, "batch:b:status", &batch), these(&[("1", None), ("2", None)]));
    let fields = raw(&[("user_id", "student_3"), ("level_id", "x")]);
    let session = Write { fields: &fields, ..Write::makes(b"session:s", StoredType::Hash) };
    assert_eq!(subjects(KeyStore::Redis, "session:s", &session), these(&[("3", None)]));
    let board = Write { members: &[b"student_4"], ..Write::makes(b"l", StoredType::Zset) };
    assert_eq!(subjects(KeyStore::Redis, "leaderboard:g:1", &board), these(&[("4", None)]));
    let timer = subjects(KeyStore::Redis, "session:timer:s", &bytes(b"1"));
    assert_eq!(timer, Subjects::SameAs("session:s".to_owned()));
}
