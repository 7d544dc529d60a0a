//! The keys of practice sessions: for each its type, its fields, its TTL, and that a crash takes
//! nothing of it.

use std::collections::BTreeMap;

use redis::streams::{StreamMaxlen, StreamRangeReply};
use redis::{Commands, Connection};

use crate::redis_crate::support::{Server, ask, send, survives};

/// A hash with these fields is written with its TTL in one transaction, and read back.
#[track_caller]
fn check_hash(key: &str, ttl_s: i64, fields: &[(&str, &str)]) {
    let wanted: BTreeMap<String, String> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    survives(
        key,
        Some(ttl_s as u64),
        |connection| {
            let mut both = redis::pipe();
            both.atomic().hset_multiple(key, fields).expire(key, ttl_s);
            both.query::<((), bool)>(connection).unwrap();
        },
        |connection| {
            assert_eq!(send::<String>(connection, &["TYPE", key]), "hash");
            assert_eq!(send::<BTreeMap<String, String>>(connection, &["HGETALL", key]), wanted);
        },
    );
}

/// A string is written with its TTL, and read back.
#[track_caller]
fn check_string(key: &str, ttl_s: u64, value: &str) {
    survives(
        key,
        Some(ttl_s),
        |connection| connection.set_ex(key, value, ttl_s).unwrap(),
        |connection| {
            assert_eq!(send::<String>(connection, &["TYPE", key]), "string");
            assert_eq!(send::<String>(connection, &["GET", key]), value);
        },
    );
}

/// A counter gets its TTL with its first count, and later ones leave it.
#[track_caller]
fn check_counter(key: &str, ttl_s: i64) {
    survives(
        key,
        Some(ttl_s as u64),
        |connection| {
            assert_eq!(send::<i64>(connection, &["INCR", key]), 1);
            let ttl = ttl_s.to_string();
            assert_eq!(send::<i64>(connection, &["EXPIRE", key, &ttl, "NX"]), 1);
            assert_eq!(send::<i64>(connection, &["INCR", key]), 2);
            assert_eq!(send::<i64>(connection, &["EXPIRE", key, "9999", "NX"]), 0);
        },
        |connection| assert_eq!(send::<i64>(connection, &["GET", key]), 2),
    );
}

#[test]
fn a_session_is_a_hash_of_six_fields_for_an_hour() {
    let fields = [
        ("user_id", "u1"),
        ("level_id", "l3"),
        ("task_id", "t9"),
        ("hints_used", "2"),
        ("started_at", "1768400000"),
        ("last_activity", "1768400420"),
    ];
    check_hash("session:s1", 3600, &fields);
}

#[test]
fn a_sessions_timer_and_hints_are_strings_for_an_hour() {
    check_string("session:timer:s1", 3600, "1768400000");
    check_string("hints_used:s1", 3600, "2");
}

#[test]
fn a_hints_cooldown_is_locked_for_five_seconds_and_then_gone() {
    let server = Server::start();
    let mut connection = server.connect();
    let lock = "SET hint:cooldown:u1:t9 locked EX 5 NX";
    assert_eq!(ask::<Option<String>>(&mut connection, lock).as_deref(), Some("OK"));
    assert_eq!(ask::<Option<String>>(&mut connection, lock), None);
    let left_ms: i64 = ask(&mut connection, "PTTL hint:cooldown:u1:t9");
    assert!((1..=5000).contains(&left_ms), "{left_ms}");
    // The rest of the five seconds, but for the last moment.
    let begun = std::time::Instant::now();
    assert!(ask::<bool>(&mut connection, "PEXPIRE hint:cooldown:u1:t9 40"));
    while ask::<Option<String>>(&mut connection, "GET hint:cooldown:u1:t9").is_some() {}
    assert!(begun.elapsed().as_millis() >= 39, "{:?}", begun.elapsed());
    assert_eq!(ask::<Option<String>>(&mut connection, lock).as_deref(), Some("OK"));
}

#[test]
fn a_cooldown_that_ends_while_the_server_is_down_is_over_when_it_is_back() {
    let mut server = Server::start();
    let mut connection = server.connect();
    ask::<()>(&mut connection, "SET hint:cooldown:u1:t9 locked PX 1");
    ask::<()>(&mut connection, "SET anticheat:block:u1 blocked EX 900");
    server.kill_and_restart();
    let mut connection = server.connect();
    assert_eq!(ask::<i64>(&mut connection, "PTTL hint:cooldown:u1:t9"), -2);
    assert_eq!(ask::<String>(&mut connection, "GET anticheat:block:u1"), "blocked");
}

#[test]
fn what_anticheat_knows_is_a_hash_of_four_fields_for_a_day() {
    let fields = [
        ("tab_switches", "4"),
        ("rapid_submits", "1"),
        ("last_submit_time", "1768400400"),
        ("score_pattern", "[1,1,0,1]"),
    ];
    check_hash("anticheat:u1", 86400, &fields);
}

#[test]
fn who_is_blocked_stays_so_for_a_quarter_of_an_hour_to_a_day() {
    check_string("anticheat:block:u1", 900, "blocked");
    check_string("anticheat:block:u2", 86400, "blocked");
}

#[test]
fn a_score_series_keeps_its_last_hundred_results_for_a_day() {
    let key = "score:series:u1";
    let add = |connection: &mut Connection, score: i64| {
        let mut steps = redis::pipe();
        steps.atomic().rpush(key, score).ltrim(key, -100, -1).expire(key, 86400);
        steps.query::<(i64, (), bool)>(connection).unwrap().0
    };
    survives(
        key,
        Some(86400),
        |connection| {
            for score in 1..=100 {
                assert_eq!(add(connection, score), score);
            }
            assert_eq!(send::<i64>(connection, &["LLEN", key]), 100);
            // The 101st result trims the series, and so does every other.
            assert_eq!(add(connection, 101), 101);
            assert_eq!(send::<i64>(connection, &["LLEN", key]), 100);
            assert_eq!(add(connection, 102), 101);
        },
        |connection| {
            let wanted: Vec<i64> = (3..=102).collect();
            assert_eq!(send::<Vec<i64>>(connection, &["LRANGE", key, "0", "-1"]), wanted);
        },
    );
}

#[test]
fn a_score_streak_counts_for_a_day() {
    check_counter("score:streak:u1", 86400);
}

#[test]
fn feature_flags_are_cached_for_five_minutes() {
    let flags =
        [("new_editor", "true"), ("old_hints", "false"), ("ai_explanations", "percentage:25")];
    check_hash("feature_flag_cache", 300, &flags);
    check_string("feature_flag:ai_explanations", 300, "percentage:25");
}

#[test]
fn content_changes_are_a_stream_of_about_a_thousand() {
    let key = "content:changes";
    survives(
        key,
        None,
        |connection| {
            let mut all = redis::pipe();
            for version in 1..=1500 {
                let entry = [
                    ("template_id", "tpl-1".to_owned()),
                    ("action", "update".to_owned()),
                    ("version", version.to_string()),
                    ("timestamp", (1_768_400_000 + version).to_string()),
                ];
                all.xadd_maxlen(key, StreamMaxlen::Approx(1000), "*", &entry).ignore();
            }
            all.query::<()>(connection).unwrap();
        },
        |connection| {
            let len: i64 = send(connection, &["XLEN", key]);
            assert!((1000..1200).contains(&len), "{len}");
            let newest: StreamRangeReply = connection.xrevrange_count(key, "+", "-", 1).unwrap();
            let [entry] = newest.ids.as_slice() else { panic!("{newest:?}") };
            let field = |name| entry.get::<String>(name).unwrap();
            assert_eq!(field("template_id"), "tpl-1");
            assert_eq!(field("action"), "update");
            assert_eq!(field("version"), "1500");
            assert_eq!(field("timestamp"), "1768401500");
        },
    );
}

#[test]
fn explanations_are_cached_for_an_hour() {
    check_string("explanation:cache:t9", 3600, r#"{"text":"Übung","generated_at":1768400000}"#);
}

#[test]
fn analytics_of_groups_and_levels_are_hashes_for_a_quarter_of_an_hour() {
    let group = [("avg_accuracy", "0.82"), ("total_attempts", "1204"), ("active_students", "31")];
    check_hash("analytics:group:g1", 900, &group);
    let level = [("avg_time", "74.5"), ("completion_rate", "0.61"), ("difficulty_score", "3.2")];
    check_hash("analytics:level:l3", 900, &level);
}

#[test]
fn rate_limits_count_for_a_minute_from_their_first_request() {
    check_counter("ratelimit:submit:u1", 60);
    check_counter("ratelimit:global:10.0.0.1", 60);
}

#[test]
fn a_leaderboard_is_a_sorted_set_for_ten_minutes() {
    let key = "leaderboard:level:l3";
    survives(
        key,
        Some(600),
        |connection| {
            let scores = [(120.0, "ada"), (95.0, "bob"), (120.5, "cy")];
            connection.zadd_multiple::<_, _, _, ()>(key, &scores).unwrap();
            assert!(connection.expire::<_, bool>(key, 600).unwrap());
        },
        |connection| {
            let top: Vec<(String, f64)> = connection.zrevrange_withscores(key, 0, 1).unwrap();
            assert_eq!(top, [("cy".to_owned(), 120.5), ("ada".to_owned(), 120.0)]);
            assert_eq!(send::<i64>(connection, &["ZREVRANK", key, "bob"]), 2);
        },
    );
}

#[test]
fn a_pending_task_is_kept_for_five_minutes_or_more() {
    check_string("task:pending:s1", 300, r#"{"task":"t9","seed":7}"#);
}
