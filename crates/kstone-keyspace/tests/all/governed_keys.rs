//! Keys of Redis under a keyspace in force, through the commands themselves.

use std::sync::Arc;

use kstone::Database;
use kstone_core::env::ManualClock;
use kstone_keyspace::{Governor, PatternMetrics, Recount, Subject, UnknownKeys};
use kstone_redis::{Redis, Session, Value};

use crate::support::{
    START_MS, govern, index_entries, memory_env, now, open_unsynced, refusal, say, sweep_all,
};

struct Fixture {
    session: Session,
    redis: Redis,
    governor: Arc<Governor>,
    db: Database,
    clock: Arc<ManualClock>,
}

fn fixture_with(unknown_keys: UnknownKeys) -> Fixture {
    let clock = Arc::new(ManualClock::at(START_MS));
    let db = open_unsynced(memory_env(&clock));
    let redis = Redis::open(&db).unwrap();
    let governor = govern(&db, unknown_keys);
    Fixture { session: redis.session(), redis, governor, db, clock }
}

fn fixture() -> Fixture {
    fixture_with(UnknownKeys::Allow)
}

impl Fixture {
    fn call(&mut self, command: &str) -> Value {
        say(&mut self.session, command)
    }

    fn done(&mut self, command: &str) -> Value {
        match self.call(command) {
            Value::Error(why) => panic!("{command}: {}", String::from_utf8_lossy(&why)),
            value => value,
        }
    }

    fn refusal(&mut self, command: &str) -> String {
        refusal(self.call(command))
    }

    fn ttl(&mut self, key: &str) -> i64 {
        match self.done(&format!("TTL {key}")) {
            Value::Integer(seconds) => seconds,
            other => panic!("{other:?}"),
        }
    }

    fn entries(&self, pk: &str) -> Vec<String> {
        index_entries(&self.db, pk)
    }

    fn sweep(&self) -> u64 {
        sweep_all(&self.governor, &self.redis, 3)
    }

    fn recount(&self) -> Recount {
        self.governor.recount(Some(&self.redis), &mut |_| {}).unwrap()
    }

    fn of(&self, pattern: &str) -> PatternMetrics {
        let metrics = self.governor.metrics();
        metrics.patterns.into_iter().find(|it| it.pattern == pattern).unwrap()
    }

    /// What there is, as far as a recount can know it.
    fn countable(&self) -> Vec<PatternMetrics> {
        let metrics = self.governor.metrics().patterns.into_iter();
        let mut patterns: Vec<_> = metrics.filter(|it| it.keys > 0).collect();
        for it in &mut patterns {
            it.writes_per_second = 0.0;
            it.writes = 0;
            if it.bytes_are_estimated {
                it.bytes = 0;
            }
        }
        patterns
    }
}

#[test]
fn keys_live_as_long_as_their_pattern_says() {
    let mut it = fixture();
    it.done("HSET session:s-1 user_id u-1 level_id l-1");
    it.done("INCR ratelimit:submit:u-1");
    it.done("SET session:timer:s-1 1768386600000");
    it.done("SET free as-it-is");
    assert_eq!((it.ttl("session:s-1"), it.ttl("ratelimit:submit:u-1")), (3600, 60));
    it.clock.advance(10_000);
    it.done("HSET session:s-1 hints_used 1");
    it.done("INCR ratelimit:submit:u-1");
    assert_eq!((it.ttl("session:s-1"), it.ttl("ratelimit:submit:u-1")), (3600, 50));
    assert_eq!((it.ttl("session:timer:s-1"), it.ttl("free")), (3590, -1));
    let why = it.refusal("SETEX feature_flag:x 301 true");
    assert_eq!(why, "ERR practice.feature_flag: ttl: must be at most 300 s, and is 301.000 s");
    it.refusal("PERSIST session:s-1");
    assert_eq!(it.ttl("session:s-1"), 3600);
}

#[test]
fn wrong_types_fields_and_values_are_refused_and_leave_no_trace() {
    let mut it = fixture();
    let why = it.refusal("SET session:s-1 x");
    assert_eq!(why, "ERR practice.session: type: must be hash, and is bytes");
    let why = it.refusal("HSET session:s-1 user_id u-1 colour red");
    assert!(why.starts_with("ERR practice.session: fields.colour: must be one of user_id"));
    assert!(it.refusal("SET feature_flag:x maybe").contains("practice.feature_flag: value"));
    assert!(it.refusal("SET mastery:u-1 nonsense").contains("mastery.mastery_cache: value"));
    assert!(it.refusal("SET cache:x 1").contains("kept for `mastery`"));
    assert_eq!(it.done("DBSIZE"), Value::Integer(0));
    assert!(it.entries("subject#u-1").is_empty());
    assert!(it.governor.metrics().patterns.iter().all(|it| it.keys == 0));
    let mut it = fixture_with(UnknownKeys::Refuse);
    assert!(it.refusal("SET mine 1").contains("no pattern declares the key `mine` of Redis"));
}

#[test]
fn a_collection_that_grows_too_long_loses_its_oldest_members() {
    let mut it = fixture();
    for _ in 0..100 {
        it.done("RPUSH score:series:u-1 1");
    }
    it.done("RPUSH score:series:u-1 0");
    assert_eq!(it.done("LLEN score:series:u-1"), Value::Integer(100));
    assert_eq!(it.done("LINDEX score:series:u-1 -1"), Value::Bulk(b"0"[..].into()));
    assert_eq!(it.of("practice.score_series").members, 100);
}

#[test]
fn whose_data_a_key_is_is_indexed_by_key_field_members_and_another_key() {
    let mut it = fixture();
    it.done("HSET session:s-1 user_id student_1");
    it.done("INCR hints_used:s-1");
    it.done("HSET anticheat:abc_1 tab_switches 1");
    it.done("ZADD leaderboard:level:3 10 student_1 20 2");
    assert_eq!(
        it.entries("subject#1"),
        ["abc|r0|anticheat:abc_1", "|r0|leaderboard:level:3|student_1", "|r0|session:s-1"],
    );
    assert_eq!(it.entries("via#r0#session:s-1"), ["|r0|hints_used:s-1"]);
    it.done("ZREM leaderboard:level:3 student_1");
    it.done("DEL anticheat:abc_1 hints_used:s-1");
    assert_eq!(it.entries("subject#1"), ["|r0|session:s-1"]);
    assert!(it.entries("via#r0#session:s-1").is_empty());
    it.done("SELECT 3");
    it.done("HSET anticheat:1 tab_switches 1");
    assert_eq!(it.entries("subject#1"), ["|r0|session:s-1", "|r3|anticheat:1"]);
}

#[test]
fn nothing_is_written_about_an_erased_person() {
    let mut it = fixture();
    it.done("HSET anticheat:1 tab_switches 1");
    let person = Subject { id: "1".to_owned(), tenant: None };
    now(it.governor.mark_erased(&person)).unwrap();
    now(it.governor.mark_key_erased(0, b"session:s-1")).unwrap();
    for command in [
        "HSET anticheat:1 tab_switches 2",
        "HSET anticheat:student_1 tab_switches 2",
        "HSET session:s-2 user_id student_1",
        "HSET session:s-1 hints_used 1",
        "INCR hints_used:s-1",
        "ZADD leaderboard:level:3 10 2 20 1",
    ] {
        let why = it.refusal(command);
        assert!(why.contains("was erased"), "{command}: {why}");
    }
    it.done("HSET anticheat:2 tab_switches 2");
    it.done("DEL anticheat:1");
    assert!(now(it.governor.admit_again(&person)).unwrap());
    it.done("HSET anticheat:1 tab_switches 1");
}

#[test]
fn a_recount_finds_exactly_what_was_counted_on_the_way() {
    let mut it = fixture();
    it.recount();
    for at in 0..20 {
        it.done(&format!("HSET session:s-{at} user_id u-{at} hints_used 0"));
        it.done(&format!("INCR hints_used:s-{at}"));
        it.done(&format!("ZADD leaderboard:level:{} {at} u-{at}", at % 3));
        it.done(&format!("RPUSH score:series:u-{} 1", at % 4));
    }
    it.done("XADD content:changes * template_id t-1 action new version 1 timestamp now");
    it.done("DEL session:s-3 session:s-4");
    it.done("RENAME session:s-5 session:s-30");
    it.done("ZREM leaderboard:level:1 u-4");
    it.done("SELECT 2");
    it.done("INCR hints_used:s-1");
    it.done("SELECT 0");
    let before = it.countable();
    assert_eq!(it.of("practice.session").keys, 18);
    let done = it.recount();
    assert_eq!(it.countable(), before);
    assert_eq!(done.keys, before.iter().map(|it| it.keys).sum::<u64>());
    it.done("SWAPDB 0 2");
    let sum = |it: &Fixture| it.governor.metrics().patterns.iter().map(|it| it.keys).sum::<u64>();
    let swapped = it.countable();
    assert_ne!(swapped, before);
    it.recount();
    assert_eq!(it.countable(), swapped);
    it.done("FLUSHDB");
    assert_eq!(sum(&it), done.keys - 1);
    it.done("FLUSHALL");
    assert_eq!(sum(&it), 0);
}

#[test]
fn keys_from_before_the_keyspace_are_indexed_by_a_recount() {
    let mut it = fixture();
    it.done("HSET session:s-1 user_id student_1");
    let env = (it.db.clone(), it.redis.clone());
    let fresh = Governor::resume(&env.0).unwrap().unwrap();
    assert!(!fresh.is_counted());
    let done = fresh.recount(Some(&env.1), &mut |_| {}).unwrap();
    assert_eq!((done.keys, done.entries), (1, 1));
    assert!(fresh.is_counted());
}

#[test]
fn what_has_ended_is_counted_no_more() {
    let mut it = fixture();
    it.done("SET feature_flag:x true");
    let expiring = it.of("practice.feature_flag").expiring_next_hour;
    assert_eq!((expiring.at_least, expiring.at_most), (1, 1));
    it.clock.advance(301_000);
    it.db.run_background().unwrap();
    assert_eq!(it.of("practice.feature_flag").keys, 0);
    assert_eq!(it.of("practice.feature_flag").bytes, 0);
}

#[test]
fn what_the_index_says_of_keys_that_are_gone_is_swept_away() {
    let mut it = fixture();
    for at in 0..5 {
        it.done(&format!("HSET session:s-{at} user_id student_1"));
    }
    it.done("ZADD leaderboard:level:3 10 student_1 20 2 30 3");
    it.done("ZADD leaderboard:level:4 10 student_1");
    it.done("HSET anticheat:1 tab_switches 1");
    assert_eq!(it.sweep(), 0);
    it.done("DEL session:s-0 leaderboard:level:4");
    it.done("HSET session:s-1 user_id student_2");
    it.done("HDEL session:s-2 user_id");
    it.clock.advance(1);
    assert_eq!(it.entries("subject#1").len(), 8);
    assert_eq!(it.sweep(), 4);
    assert_eq!(
        it.entries("subject#1"),
        [
            "|r0|anticheat:1",
            "|r0|leaderboard:level:3|student_1",
            "|r0|session:s-3",
            "|r0|session:s-4"
        ],
    );
    assert_eq!(it.entries("subject#2").len(), 2);
    assert_eq!(it.sweep(), 0);
}

#[test]
fn what_has_ended_is_in_the_index_as_long_as_it_is_stored() {
    let mut it = fixture();
    it.done("HSET session:s-1 user_id student_1");
    it.done("EXPIRE session:s-1 60");
    // Something else is gone, so that there is a sweep.
    it.done("HSET session:s-2 user_id student_1");
    it.clock.advance(61_000);
    it.done("DEL session:s-2");
    it.sweep();
    assert_eq!(it.entries("subject#1"), ["|r0|session:s-1"]);
    it.db.run_background().unwrap();
    it.sweep();
    assert_eq!(it.entries("subject#1"), Vec::<String>::new());
}
