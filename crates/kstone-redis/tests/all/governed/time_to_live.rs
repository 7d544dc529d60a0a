//! Times to live under a write policy.

use kstone::policy::{Effect, RequestedTtl};

use crate::governed::Governed;
use crate::governed::policy::{HOUR_MS, MINUTE_MS};
use crate::support::{bulk, error, int, ok};

#[test]
fn the_policy_is_told_what_a_command_does_to_a_string_and_says_about_its_life() {
    let mut governed = Governed::new();
    use Effect::{Changes, Makes};
    use RequestedTtl::{Keep, Ms, Never, Unsaid};
    let script = [
        ("SET a 1", Makes, Unsaid, Some("1")),
        ("SET a 2", Makes, Unsaid, Some("2")),
        ("INCR a", Changes, Unsaid, Some("3")),
        ("APPEND a 4", Changes, Unsaid, Some("34")),
        ("SET a 5 EX 10", Makes, Ms(10_000), Some("5")),
        ("INCRBY a 2", Changes, Unsaid, Some("7")),
        ("SET a 6 KEEPTTL", Makes, Keep, Some("6")),
        ("EXPIRE a 20", Changes, Ms(20_000), None),
        ("EXPIRE a 20", Changes, Ms(20_000), None),
        ("PERSIST a", Changes, Never, None),
        ("GETEX a PX 500", Changes, Ms(500), None),
        ("GETEX a PERSIST", Changes, Never, None),
        ("PSETEX a 30 8", Makes, Ms(30), Some("8")),
        ("GETSET a 9", Makes, Unsaid, Some("9")),
        ("SETRANGE a 1 0", Changes, Unsaid, Some("90")),
        ("SETNX b 1", Makes, Unsaid, Some("1")),
        ("INCR c", Makes, Unsaid, Some("1")),
        ("INCRBYFLOAT c 1.5", Changes, Unsaid, Some("2.5")),
        ("APPEND d x", Makes, Unsaid, Some("x")),
        ("SETBIT e 1 1", Makes, Unsaid, Some("@")),
        ("BITOP OR e a", Makes, Unsaid, Some("90")),
    ];
    for (line, effect, asked, value) in script {
        governed.do_(line);
        let seen = governed.rules.asked_once();
        let value = value.map(str::to_owned);
        assert_eq!((seen.effect, seen.asked, seen.value), (effect, asked, value), "{line}");
    }
    for nothing in ["SET a 1 NX", "GETEX a", "EXPIRE x 1", "PERSIST a", "GET a", "SETNX b 2"] {
        governed.do_(nothing);
        assert_eq!(governed.rules.asked(), [], "{nothing}");
    }
    governed.do_("MSET x 1 y 2");
    let seen = governed.rules.asked();
    assert_eq!(seen.iter().map(|seen| seen.key.as_str()).collect::<Vec<_>>(), ["x", "y"]);
}

#[test]
fn a_string_in_pieces_is_shown_whole_unless_a_bit_of_a_long_one_is_changed() {
    let mut governed = Governed::new();
    let long = "x".repeat(100_000);
    governed.client.call(&["SET", "long", &long]);
    let seen = governed.rules.asked_once();
    assert_eq!(seen.value.as_deref(), Some(long.as_str()));
    governed.do_("COPY long other");
    assert_eq!(governed.rules.asked_once().value.as_deref(), Some(long.as_str()));
    governed.do_("APPEND long y");
    let seen = governed.rules.asked_once();
    assert_eq!((seen.effect, seen.value), (Effect::Changes, Some(long + "y")));
    governed.do_("EXPIRE long 100");
    let seen = governed.rules.asked_once();
    assert_eq!((seen.value, seen.value_len), (None, None));
    governed.do_("SETBIT long 0 1");
    // The byte is no text any more, and is remembered as a mark of three.
    assert_eq!(governed.rules.asked_once().value.map(|value| value.len()), Some(100_003));
    // What is longer still is not read for the sake of a bit; only its length is known.
    governed.do_("SETRANGE long 2000000 y");
    governed.do_("SETBIT long 0 0");
    for seen in governed.rules.asked() {
        assert_eq!((seen.effect, seen.value), (Effect::Changes, None));
        assert_eq!(seen.value_len, Some(2_000_001));
    }
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn a_key_that_says_nothing_gets_the_life_that_is_declared() {
    let mut governed = Governed::new();
    for (n, line) in [
        "SET hour:0 v",
        "INCR hour:1",
        "HSET hour:2 f v",
        "RPUSH hour:3 v",
        "SADD hour:4 v",
        "ZADD hour:5 1 v",
        "XADD hour:6 * f v",
        "MSET hour:7 1 other 2",
    ]
    .iter()
    .enumerate()
    {
        governed.do_(line);
        assert_eq!(governed.say(&format!("PTTL hour:{n}")), int(HOUR_MS as i64), "{line}");
    }
    governed.clock.advance(1000);
    // A change leaves it; what is replaced begins anew.
    governed.do_("INCR hour:1");
    assert_eq!(governed.say("PTTL hour:1"), int(HOUR_MS as i64 - 1000));
    governed.do_("SET hour:1 0");
    assert_eq!(governed.say("PTTL hour:1"), int(HOUR_MS as i64));
    governed.do_("SET hour:1 0 PX 77");
    assert_eq!(governed.say("PTTL hour:1"), int(77));
    governed.do_("EXPIRE hour:0 5");
    assert_eq!(governed.say("PTTL hour:0"), int(5000));
    let told = error(governed.say("PERSIST hour:0"));
    assert_eq!(told, "ERR hour:0 breaks a rule: it ends after an hour");
    assert_eq!(governed.say("PTTL hour:0"), int(5000));
    // A copy comes with the life of what it is a copy of, and without one it gets its own.
    governed.do_("SET plain v");
    governed.do_("RENAME plain hour:8");
    assert_eq!(governed.say("PTTL hour:8"), int(HOUR_MS as i64));
    governed.do_("COPY hour:0 hour:9");
    assert_eq!(governed.say("PTTL hour:9"), int(5000));
    governed.clock.advance(HOUR_MS);
    assert_eq!(governed.say("DBSIZE"), int(11));
    governed.database.run_background().unwrap();
    assert_eq!(governed.say("KEYS *"), crate::support::bulks(&["other"]));
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn a_sliding_life_is_renewed_by_every_write() {
    let mut governed = Governed::new();
    for (make, change) in [
        ("SET sliding:s 1", "INCR sliding:s"),
        ("HSET sliding:h f v", "HSET sliding:h f v"),
        ("RPUSH sliding:l v", "LSET sliding:l 0 w"),
        ("SADD sliding:S v", "SADD sliding:S w"),
        ("ZADD sliding:z 1 v", "ZADD sliding:z 2 v"),
    ] {
        let key = make.split(' ').nth(1).unwrap();
        governed.do_(make);
        assert_eq!(governed.say(&format!("PTTL {key}")), int(MINUTE_MS as i64), "{make}");
        governed.clock.advance(1000);
        governed.do_(change);
        assert_eq!(governed.say(&format!("PTTL {key}")), int(MINUTE_MS as i64), "{change}");
    }
    assert_eq!(governed.say("HMGET sliding:h f"), crate::support::bulks(&["v"]));
    assert_eq!(governed.say("LRANGE sliding:l 0 -1"), crate::support::bulks(&["w"]));
}

#[test]
fn a_key_that_lives_for_ever_cannot_be_given_an_end() {
    let mut governed = Governed::new();
    assert_eq!(governed.say("SET ever:a v EX 5"), ok());
    assert_eq!(governed.say("TTL ever:a"), int(-1));
    assert_eq!(governed.say("EXPIRE ever:a 5"), int(1));
    assert_eq!(governed.say("TTL ever:a"), int(-1));
    assert_eq!(governed.say("GET ever:a"), bulk("v"));
}

#[test]
fn what_only_ended_is_no_write_and_is_heard_of_once() {
    let mut governed = Governed::new();
    for (n, asking) in [Some("GET t:0"), Some("HGET t:1 f"), None].into_iter().enumerate() {
        governed.do_(&format!("SET t:{n} v PX 10"));
        if n == 1 {
            governed.do_("DEL t:1");
            governed.do_("HSET t:1 f v");
            governed.do_("HPEXPIRE t:1 10 FIELDS 1 f");
        }
        governed.clock.advance(10);
        governed.rules.forget();
        match asking {
            Some(line) => drop(governed.do_(line)),
            None => governed.database.run_background().unwrap(),
        }
        assert_eq!(governed.rules.released(), [(0, format!("t:{n}"))]);
        let counted = governed.rules.counted();
        assert_eq!(counted.len(), 1);
        assert!(!counted[0].is_write && counted[0].before.is_some() && counted[0].after.is_none());
        governed.database.run_background().unwrap();
        assert_eq!(governed.rules.counted(), []);
    }
    assert_eq!(governed.rules.totals(), []);
    // One that is made anew was there before, with its end.
    governed.do_("SET t:9 v PX 10");
    governed.clock.advance(10);
    governed.rules.asked();
    governed.do_("SET t:9 w");
    let seen = governed.rules.asked_once();
    assert!(seen.before.is_some_and(|before| before.expires_at_ms.is_some()));
    assert_eq!((seen.effect, seen.asked), (Effect::Makes, RequestedTtl::Unsaid));
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn fields_that_end_are_told_of_and_cannot_be_refused() {
    let mut governed = Governed::new();
    governed.do_("HSET who:h person p other v");
    governed.do_("HPEXPIRE who:h 10 FIELDS 1 other");
    governed.clock.advance(10);
    governed.rules.forget();
    governed.do_("HGET who:h person");
    let seen = governed.rules.asked_once();
    assert_eq!((seen.removed, seen.members_after), (vec!["other".to_owned()], Some(1)));
    let counted = governed.rules.counted();
    assert!(!counted[0].is_write);
    // Where nothing may be written by now, time goes on all the same.
    governed.do_("HSET k a 1 b 2");
    governed.do_("HPEXPIRE k 10 FIELDS 1 a");
    governed.rules.close("k");
    governed.clock.advance(10);
    assert_eq!(governed.do_("HLEN k"), int(1));
    error(governed.say("HSET k a 1"));
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}
