//! Every row of the applications' key tables: the key belongs to the pattern, with type and TTL.

use kstone_keyspace::{KeyStore, Keyspace, Ttl, ValueType, shipped};

const STATE: KeyStore<'static> = KeyStore::Table("state");

struct Rows {
    keyspace: Keyspace,
}

impl Rows {
    fn new() -> Rows {
        Rows { keyspace: shipped().unwrap() }
    }

    /// A key belongs to this pattern and holds this for so many seconds.
    fn row(&self, place: KeyStore<'_>, key: &str, name: &str, kind: ValueType, ttl: Option<u64>) {
        let found = self.keyspace.find(place, key.as_bytes());
        let pattern = found.unwrap_or_else(|| panic!("{key} matches nothing")).pattern;
        assert_eq!(pattern.full_name(), name, "{key}");
        assert_eq!(pattern.value_type, kind, "{key}");
        assert_eq!(pattern.ttl.seconds(), ttl, "{key}");
    }

    /// The fields that a pattern declares, beside those that may be there too.
    fn fields(&self, name: &str, expected: &[&str]) {
        let fields = &self.keyspace.pattern(name).unwrap().fields;
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, expected, "{name}");
    }

    fn is_sliding(&self, name: &str) -> bool {
        matches!(self.keyspace.pattern(name).unwrap().ttl, Ttl::Sliding(_))
    }
}

#[test]
fn the_rows_of_mastery() {
    use ValueType::{Json, String};
    let rows = Rows::new();
    let row = |key: &str, name: &str, kind, ttl| rows.row(STATE, key, name, kind, ttl);
    let student = "student:student_12345";
    row(&format!("{student}:profile:current_mastery"), "mastery.current_mastery", Json, None);
    row(&format!("{student}:mastery:2026-01-14"), "mastery.daily_mastery", Json, Some(7_776_000));
    for component in ["completion", "quiz", "quality", "consistency"] {
        let key = format!("{student}:mastery:2026-01-14:{component}");
        row(&key, "mastery.component_score", String, Some(7_776_000));
    }
    row(&format!("{student}:activity:recent"), "mastery.activity_recent", Json, Some(2_592_000));
    for history in ["full", "components", "recommendations"] {
        row(&format!("{student}:history:{history}"), "mastery.history", Json, None);
    }
    row(&format!("{student}:prediction:7days"), "mastery.prediction", Json, Some(3600));
    row(&format!("{student}:path:adaptive"), "mastery.adaptive_path", Json, Some(86_400));
    row(&format!("{student}:events:1768386600000:evt-1"), "mastery.event", Json, Some(7_776_000));
    let event = "550e8400-e29b-41d4-a716-446655440000";
    row(&format!("processed:{event}"), "mastery.processed_event", Json, Some(7_776_000));
    row("batch:batch_20260114_001:status", "mastery.batch_status", Json, Some(604_800));
    let cache = ("mastery:student_12345", "mastery.mastery_cache");
    rows.row(KeyStore::Redis, cache.0, cache.1, Json, Some(300));
    let school = "school:university_abc";
    row(
        &format!("{school}:student:12345:profile:current_mastery"),
        "mastery.school_mastery",
        Json,
        None,
    );
    row(
        &format!("{school}:aggregation:mastery:2026-01-14"),
        "mastery.school_aggregation",
        Json,
        None,
    );
}

#[test]
fn the_short_patterns_of_mastery_live_as_long_as_what_they_stand_for() {
    let rows = Rows::new();
    for (short, name, long) in [
        ("st:12345:cur", "mastery.current_short", "student:12345:profile:current_mastery"),
        ("st:12345:m:2026-01-14", "mastery.daily_short", "student:12345:mastery:2026-01-14"),
        (
            "st:12345:m:2026-01-14:completion",
            "mastery.component_short",
            "student:12345:mastery:2026-01-14:completion",
        ),
        ("proc:550e8400", "mastery.processed_short", "processed:550e8400"),
        (
            "st:p1:student_12345:cur",
            "mastery.current_sharded",
            "student:student_12345:profile:current_mastery",
        ),
    ] {
        let found = rows.keyspace.find(STATE, short.as_bytes()).unwrap();
        assert_eq!(found.pattern.full_name(), name);
        assert_eq!(found.long_form().as_deref(), Some(long));
        let meant = rows.keyspace.find(STATE, long.as_bytes()).unwrap().pattern;
        assert_eq!(found.pattern.ttl, meant.ttl);
        assert!(!found.pattern.written && meant.written);
    }
}

#[test]
fn counts_of_mastery_have_the_six_names_of_the_metrics() {
    let rows = Rows::new();
    for (name, metric) in [
        ("mastery.current_mastery", "current_mastery"),
        ("mastery.daily_mastery", "daily_snapshots"),
        ("mastery.processed_event", "processed_events"),
        ("mastery.activity_recent", "activity_data"),
        ("mastery.prediction", "predictions"),
        ("mastery.adaptive_path", "paths"),
    ] {
        assert_eq!(rows.keyspace.pattern(name).unwrap().metric, metric);
    }
}

#[test]
fn the_reserved_words_of_mastery_belong_to_no_other_application() {
    let rows = Rows::new();
    for key in ["cache:x", "system:config", "cache"] {
        let by = rows.keyspace.reserved_by(key.as_bytes()).unwrap();
        assert_eq!(&*by.application, "mastery", "{key}");
    }
    assert!(rows.keyspace.reserved_by(b"cached:x").is_none());
}

#[test]
fn the_rows_of_practice() {
    use ValueType::{Counter, Hash, Json, List, Stream, String, Zset};
    let rows = Rows::new();
    let row = |key: &str, name: &str, kind, ttl| rows.row(KeyStore::Redis, key, name, kind, ttl);
    row("session:s-1", "practice.session", Hash, Some(3600));
    row("session:timer:s-1", "practice.session_timer", String, Some(3600));
    row("hints_used:s-1", "practice.hints_used", Counter, Some(3600));
    row("hint:cooldown:u-1:t-1", "practice.hint_cooldown", String, Some(5));
    row("anticheat:u-1", "practice.anticheat", Hash, Some(86_400));
    row("anticheat:block:u-1", "practice.anticheat_block", String, Some(900));
    row("score:series:u-1", "practice.score_series", List, Some(86_400));
    row("score:streak:u-1", "practice.score_streak", Counter, Some(86_400));
    row("feature_flag_cache", "practice.feature_flags", Hash, Some(300));
    row("feature_flag:new_editor", "practice.feature_flag", String, Some(300));
    row("content:changes", "practice.content_changes", Stream, None);
    row("explanation:cache:t-1", "practice.explanation_cache", Json, Some(3600));
    row("explanation:pending:t-1", "practice.explanation_pending", String, Some(30));
    row("analytics:group:g-1", "practice.analytics_group", Hash, Some(900));
    row("analytics:level:l-1", "practice.analytics_level", Hash, Some(900));
    row("ratelimit:submit:u-1", "practice.ratelimit_user", Counter, Some(60));
    row("ratelimit:global:10.0.0.1", "practice.ratelimit_ip", Counter, Some(60));
    row("ratelimit:global:2001%3Adb8%3A%3A1", "practice.ratelimit_ip", Counter, Some(60));
    row("leaderboard:group:g-1", "practice.leaderboard", Zset, Some(600));
    row("task:pending:s-1", "practice.task_pending", Json, Some(300));
}

#[test]
fn the_fields_of_practice() {
    let rows = Rows::new();
    let session = ["user_id", "level_id", "task_id", "hints_used", "started_at", "last_activity"];
    rows.fields("practice.session", &session);
    let anticheat = ["tab_switches", "rapid_submits", "last_submit_time", "score_pattern"];
    rows.fields("practice.anticheat", &anticheat);
    rows.fields("practice.content_changes", &["template_id", "action", "version", "timestamp"]);
    rows.fields("practice.explanation_cache", &["text", "generated_at"]);
    rows.fields("practice.analytics_group", &["avg_accuracy", "total_attempts", "active_students"]);
    rows.fields("practice.analytics_level", &["avg_time", "completion_rate", "difficulty_score"]);
}

#[test]
fn an_endpoint_named_global_cannot_be_taken_for_the_limit_of_an_address() {
    use kstone_keyspace::keys::practice::Endpoint;
    assert!(Endpoint::new("global").is_err());
    assert!(Endpoint::new("globally").is_ok());
    let rows = Rows::new();
    let pattern = rows.keyspace.pattern("practice.ratelimit_user").unwrap();
    let error = pattern.build(&[("endpoint", "global"), ("user_id", "u-1")]).unwrap_err();
    assert!(error.to_string().contains("but not global"), "{error}");
}

#[test]
fn activity_renews_session_timer_and_hints() {
    let rows = Rows::new();
    for name in ["practice.session", "practice.session_timer", "practice.hints_used"] {
        assert!(rows.is_sliding(name), "{name}");
    }
    for name in ["practice.ratelimit_user", "practice.anticheat"] {
        assert!(!rows.is_sliding(name), "{name}");
    }
}

#[test]
fn the_rows_of_reviews() {
    let rows = Rows::new();
    let month = Some(2_592_000);
    for key in ["srs:user@email.com:SEASON-2026", "srs:l-1:SEASON-2026"] {
        rows.row(KeyStore::Redis, key, "reviews.schedule", ValueType::Zset, month);
    }
    let marker = "srs:l-1:SEASON-2026:hydrated";
    rows.row(KeyStore::Redis, marker, "reviews.hydrated", ValueType::String, month);
    assert!(rows.is_sliding("reviews.schedule") && rows.is_sliding("reviews.hydrated"));
    let season = KeyStore::Table("reviews-SEASON-2026");
    rows.row(season, "l-1:Q-UUID-123", "reviews.memory", ValueType::Item, None);
    let archive = KeyStore::Table("archived-reviews-SEASON-2026");
    let three_years = Some(3 * 365 * 86_400);
    rows.row(archive, "l-1:Q-UUID-123", "reviews.archived_memory", ValueType::Item, three_years);
}

#[test]
fn the_rows_of_workflows() {
    let rows = Rows::new();
    let table = KeyStore::Table("workflows");
    let uuid = "550e8400-e29b-41d4-a716-446655440000:metadata";
    for (key, name) in [
        ("exec-123:metadata", "workflows.execution"),
        (uuid, "workflows.execution"),
        ("exec-123:album-1", "workflows.album"),
        ("task-abc123:metadata", "workflows.task"),
        ("2025-01-15:metrics-step-functions", "workflows.metrics"),
        ("2025-01-15:metrics-durable-functions", "workflows.metrics"),
    ] {
        rows.row(table, key, name, ValueType::Item, None);
    }
}

#[test]
fn a_pattern_matches_whole_segments_and_nothing_near_them() {
    let keyspace = shipped().unwrap();
    for key in [
        "student:s1:mastery",
        "student:s1:mastery:2026-1-14",
        "student:s1:mastery:2026-02-30",
        "student:s1:mastery:2026-01-14:other",
        "student:s1:mastery:2026-01-14:quiz:x",
        "student::mastery:2026-01-14",
        "student:s 1:mastery:2026-01-14",
        "students:s1:mastery:2026-01-14",
        "student:s1:prediction:0days",
        "student:s1:prediction:days",
        "student:s1:events:2026-01-14T10:30:00Z:e",
        "",
        ":",
        "::::::::::::::::::::",
    ] {
        assert!(keyspace.find(STATE, key.as_bytes()).is_none(), "{key}");
    }
    let daily = keyspace.find(STATE, b"student:s1:mastery:2026-01-14").unwrap();
    assert_eq!(daily.pattern.name, "daily_mastery");
    assert!(keyspace.find(KeyStore::Redis, b"student:s1:mastery:2026-01-14").is_none());
    assert!(keyspace.find(KeyStore::Table("other"), b"student:s1:mastery:2026-01-14").is_none());
}
