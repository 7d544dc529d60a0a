//! Replies have the same form on every store: lists as RESP2 has them, with maps, sets and numbers
//! where a command gives such.

use kstone_ports::Error;
use kstone_ports::keys::Value;

use super::{Shelf, bulk, int, list, map, number, ok, set};

pub(super) async fn strings_and_numbers(shelf: Shelf) {
    shelf
        .expect([
            ("GET $a", Value::Null),
            ("SET $a 41", ok()),
            ("INCR $a", int(42)),
            ("INCRBYFLOAT $a 0.5", bulk("42.5")),
            ("GET $a", bulk("42.5")),
            ("SET $a x NX", Value::Null),
            ("SETNX $b x", int(1)),
            ("MGET $a $none $b", Value::Array(vec![bulk("42.5"), Value::Null, bulk("x")])),
            ("APPEND $b yz", int(3)),
            ("GETRANGE $b 1 -1", bulk("yz")),
            ("SETBIT $bits 1 1", int(0)),
            ("GET $bits", bulk("@")),
            ("EXISTS $a $b $none", int(2)),
            ("TYPE $a", Value::Simple("string".to_owned())),
            ("TYPE $none", Value::Simple("none".to_owned())),
            ("PTTL $a", int(-1)),
            ("PTTL $none", int(-2)),
            ("GETDEL $a", bulk("42.5")),
            ("UNLINK $a $b", int(1)),
            ("ECHO hello", bulk("hello")),
            ("PING", Value::Simple("PONG".to_owned())),
        ])
        .await;
}

pub(super) async fn lists_hashes_and_sets(shelf: Shelf) {
    let nil = Value::Null;
    shelf
        .expect([
            ("RPUSH $l a b c", int(3)),
            ("LRANGE $l 0 -1", list(["a", "b", "c"])),
            ("LPOS $l x", nil.clone()),
            ("LPOS $l x COUNT 2", list([])),
            ("LPOP $l 2", list(["a", "b"])),
            ("LMPOP 2 $none $l LEFT", Value::Array(vec![bulk(&shelf.key("l")), list(["c"])])),
            ("EXISTS $l", int(0)),
            ("HSET $h f v", int(1)),
            ("HGETALL $h", map([("f", "v")])),
            ("HGETALL $none", map([])),
            ("HMGET $h f g", Value::Array(vec![bulk("v"), nil.clone()])),
            ("HINCRBYFLOAT $h n 1.25", bulk("1.25")),
            ("HDEL $h n", int(1)),
            ("HSCAN $h 0", Value::Array(vec![bulk("0"), list(["f", "v"])])),
            ("HRANDFIELD $h 1 WITHVALUES", list(["f", "v"])),
            ("HRANDFIELD $none", nil.clone()),
            ("SADD $s a", int(1)),
            ("SMEMBERS $s", set(["a"])),
            ("SMEMBERS $none", set([])),
            ("SINTER $s $s", set(["a"])),
            ("SUNION $s $none", set(["a"])),
            ("SDIFF $s $s", set([])),
            ("SRANDMEMBER $s 1", list(["a"])),
            ("SMISMEMBER $s a b", Value::Array(vec![int(1), int(0)])),
            ("SRANDMEMBER $none", nil.clone()),
            ("SPOP $s", bulk("a")),
            ("SPOP $s", nil),
            ("SPOP $s 2", set([])),
        ])
        .await;
}

pub(super) async fn sorted_sets_with_scores(shelf: Shelf) {
    let scored = |all: &[(&str, f64)]| {
        Value::Array(
            all.iter().flat_map(|(member, score)| [bulk(member), number(*score)]).collect(),
        )
    };
    let popped = vec![bulk(&shelf.key("z")), Value::Array(vec![scored(&[("a", 1.0)])])];
    let infinite = f64::INFINITY;
    shelf
        .expect([
            ("ZADD $z 1 a 2.5 b inf c", int(3)),
            ("ZSCORE $z b", number(2.5)),
            ("ZSCORE $z none", Value::Null),
            ("ZMSCORE $z a none", Value::Array(vec![number(1.0), Value::Null])),
            ("ZINCRBY $z 0.25 b", number(2.75)),
            ("ZADD $z INCR 0.25 b", number(3.0)),
            ("ZADD $z NX INCR 1 b", Value::Null),
            ("ZRANGE $z 0 -1 WITHSCORES", scored(&[("a", 1.0), ("b", 3.0), ("c", infinite)])),
            ("ZREVRANGE $z 0 0 WITHSCORES", scored(&[("c", infinite)])),
            ("ZRANGEBYSCORE $z 0 1 WITHSCORES", scored(&[("a", 1.0)])),
            ("ZRANGE $z 0 -1", list(["a", "b", "c"])),
            ("ZRANK $z b", int(1)),
            ("ZRANK $z none", Value::Null),
            ("ZRANDMEMBER $none", Value::Null),
            ("ZMPOP 1 $z MIN", Value::Array(popped)),
            ("ZPOPMAX $z", scored(&[("c", infinite)])),
            ("ZPOPMAX $none", list([])),
            ("ZUNION 1 $z WITHSCORES", scored(&[("b", 3.0)])),
            ("ZRANDMEMBER $z 1 WITHSCORES", scored(&[("b", 3.0)])),
            ("ZSCAN $z 0", Value::Array(vec![bulk("0"), list(["b", "3"])])),
        ])
        .await;
}

pub(super) async fn streams_and_places(shelf: Shelf) {
    let entry = Value::Array(vec![bulk("1-1"), list(["f", "v"])]);
    let entries = Value::Array(vec![entry]);
    let read = Value::Array(vec![bulk(&shelf.key("s")), entries.clone()]);
    let group = "XREADGROUP GROUP g c STREAMS $s >";
    shelf
        .expect([
            ("XADD $s 1-1 f v", bulk("1-1")),
            ("XRANGE $s - +", entries),
            ("XREAD COUNT 1 STREAMS $s 0", Value::Array(vec![read.clone()])),
            ("XREAD COUNT 1 STREAMS $s 1-1", Value::NullArray),
            ("XGROUP CREATE $s g 0", ok()),
            (group, Value::Array(vec![read])),
            (group, Value::NullArray),
            ("XACK $s g 1-1", int(1)),
            ("GEOADD $g 13.361389 38.115556 p", int(1)),
            ("GEODIST $g p p", bulk("0.0000")),
            ("GEODIST $g p q", Value::Null),
            ("GEOHASH $g q", Value::Array(vec![Value::Null])),
            ("GEOPOS $g q", Value::Array(vec![Value::NullArray])),
        ])
        .await;
}

pub(super) async fn maps_within_replies(shelf: Shelf) {
    shelf.expect([("MSET $a abc $b abd", ok()), ("XGROUP CREATE $s g 0 MKSTREAM", ok())]).await;
    let matched = Value::Array(vec![Value::Array(vec![Value::Array(vec![int(0), int(1)]); 2])]);
    let found = Value::Map(vec![(bulk("matches"), matched), (bulk("len"), int(2))]);
    shelf.expect([("LCS $a $b IDX", found), ("LCS $a $b", bulk("ab"))]).await;
    let has = |value: &Value, name: &str, wanted: &Value| match value {
        Value::Map(pairs) => pairs.contains(&(bulk(name), wanted.clone())),
        _ => false,
    };
    let stream = shelf.say("XINFO STREAM $s").await.unwrap();
    assert!(has(&stream, "groups", &int(1)), "{stream:?}");
    let Ok(Value::Array(groups)) = shelf.say("XINFO GROUPS $s").await else { panic!("no list") };
    assert!(has(&groups[0], "name", &bulk("g")), "{groups:?}");
    let full = shelf.say("XINFO STREAM $s FULL").await.unwrap();
    let Value::Map(pairs) = &full else { panic!("{full:?}") };
    let groups = pairs.iter().find(|(name, _)| *name == bulk("groups")).map(|(_, groups)| groups);
    let Some(Value::Array(groups)) = groups else { panic!("{full:?}") };
    assert!(has(&groups[0], "name", &bulk("g")), "{full:?}");
}

pub(super) async fn scripts(shelf: Shelf) {
    let body = "return {ARGV[1], redis.call('INCR', KEYS[1]), false, 3.7, redis.status_reply('S')}";
    let mut given = shelf.words("EVAL body 1 $n x");
    given[1] = body.into();
    let expected = vec![bulk("x"), int(1), Value::Null, int(3), Value::Simple("S".to_owned())];
    assert_eq!(shelf.keys.command(&given).await, Ok(Value::Array(expected)));
    shelf.expect([("GET $n", bulk("1"))]).await;
    given[1] = "return redis.error_reply('MINE of the script')".into();
    let Err(Error::Reply(error)) = shelf.keys.command(&given).await else { panic!("no error") };
    assert_eq!(error.message(), "MINE of the script");
    let digest = "EVALSHA 0123456789012345678901234567890123456789 1 $n";
    let Err(Error::Reply(error)) = shelf.say(digest).await else { panic!("no error") };
    assert_eq!(error.code(), "NOSCRIPT");
}

pub(super) async fn nothing_has_two_forms(shelf: Shelf) {
    shelf
        .expect([
            ("LPOP $none", Value::Null),
            ("LPOP $none 2", Value::NullArray),
            ("RPOP $none 2", Value::NullArray),
            ("LMPOP 1 $none LEFT", Value::NullArray),
            ("ZMPOP 1 $none MIN", Value::NullArray),
            ("XREAD STREAMS $none 0", Value::NullArray),
            ("GEOPOS $none p", Value::Array(vec![Value::NullArray])),
            ("LRANGE $none 0 -1", list([])),
            ("HGET $none f", Value::Null),
            ("RPOPLPUSH $none $other", Value::Null),
        ])
        .await;
}

pub(super) async fn an_error_of_a_command_is_an_error(shelf: Shelf) {
    shelf.expect([("SET $a text", ok())]).await;
    for (line, code) in [
        ("LPUSH $a x", "WRONGTYPE"),
        ("INCR $a", "ERR"),
        ("SET $a 1 PX 0", "ERR"),
        ("SET $a", "ERR"),
        ("RENAME $none $b", "ERR"),
        ("XREADGROUP GROUP g c STREAMS $none >", "NOGROUP"),
    ] {
        let answer = shelf.say(line).await;
        let Err(Error::Reply(error)) = answer else { panic!("{line}: {answer:?}") };
        assert_eq!(error.code(), code, "{line}: {error}");
    }
    shelf.expect([("GET $a", bulk("text"))]).await;
}
