//! Every family of commands: what it wrote is shown as it was written, and what breaks a rule is
//! not done.

use std::sync::Arc;

use kstone::policy::{Effect, KeyKind, PatternId};

use crate::governed::Governed;
use crate::governed::policy::Rules;
use crate::support::{error, int};

/// What is expected to be asked: key, kind, effect, fields as `name=value`, members, removed.
type Expected = (&'static str, KeyKind, Effect, &'static str, &'static str, &'static str);

#[test]
fn what_a_command_wrote_is_shown_as_it_was_written() {
    use Effect::{Changes, Makes};
    use KeyKind::{Hash, List, Set, Stream, String, Zset};
    let mut governed = Governed::new();
    let script: &[(&str, &[Expected])] = &[
        ("HSET h a 1 b 2", &[("h", Hash, Makes, "a=1 b=2", "", "")]),
        ("HSET h a 3", &[("h", Hash, Changes, "a=3", "", "")]),
        ("HINCRBY h a 4", &[("h", Hash, Changes, "a=7", "", "")]),
        ("HINCRBYFLOAT h b 0.5", &[("h", Hash, Changes, "b=2.5", "", "")]),
        ("HSETNX h c 1", &[("h", Hash, Changes, "c=1", "", "")]),
        ("HMSET h d 1 e 2", &[("h", Hash, Changes, "d=1 e=2", "", "")]),
        ("HDEL h a b", &[("h", Hash, Changes, "", "", "a b")]),
        ("HSETEX h EX 9 FIELDS 1 f 1", &[("h", Hash, Changes, "f=1", "", "")]),
        ("HGETDEL h FIELDS 1 f", &[("h", Hash, Changes, "", "", "f")]),
        ("RPUSH l a b", &[("l", List, Makes, "", "a b", "")]),
        ("LPUSH l c", &[("l", List, Changes, "", "c", "")]),
        ("LSET l 0 d", &[("l", List, Changes, "", "d", "")]),
        ("LINSERT l AFTER b e", &[("l", List, Changes, "", "e", "")]),
        ("LINSERT l BEFORE b a2", &[("l", List, Changes, "", "a2", "")]),
        ("LREM l 0 a2", &[("l", List, Changes, "", "", "a2")]),
        ("LREM l 1 d", &[("l", List, Changes, "", "", "")]),
        ("LPOP l", &[("l", List, Changes, "", "", "")]),
        (
            "LMOVE l k LEFT LEFT",
            &[("l", List, Changes, "", "", ""), ("k", List, Makes, "", "b", "")],
        ),
        ("SADD s a b", &[("s", Set, Makes, "", "a b", "")]),
        ("SADD s b c", &[("s", Set, Changes, "", "c", "")]),
        ("SREM s a", &[("s", Set, Changes, "", "", "a")]),
        ("SADD t c d", &[("t", Set, Makes, "", "c d", "")]),
        ("SMOVE s t b", &[("s", Set, Changes, "", "", "b"), ("t", Set, Changes, "", "b", "")]),
        ("SINTERSTORE u s t", &[("u", Set, Makes, "", "c", "")]),
        ("SUNIONSTORE u s t", &[("u", Set, Makes, "", "b c d", "")]),
        ("ZADD z 1 a 2 b", &[("z", Zset, Makes, "", "a b", "")]),
        ("ZINCRBY z 5 a", &[("z", Zset, Changes, "", "a", "")]),
        ("ZREM z b", &[("z", Zset, Changes, "", "", "b")]),
        ("ZUNIONSTORE y 2 z s", &[("y", Zset, Makes, "", "a c", "")]),
        ("ZRANGESTORE y z 0 -1", &[("y", Zset, Makes, "", "a", "")]),
        ("ZPOPMIN y", &[]),
        ("GEOADD g 13 38 p", &[("g", Zset, Makes, "", "p", "")]),
        ("GEOSEARCHSTORE i g FROMMEMBER p BYRADIUS 1 km", &[("i", Zset, Makes, "", "p", "")]),
        ("XADD x 1-0 a 1 b 2", &[("x", Stream, Makes, "a=1 b=2", "", "")]),
        ("XADD x 2-0 c 3", &[("x", Stream, Changes, "c=3", "", "")]),
        ("XDEL x 1-0", &[("x", Stream, Changes, "", "", "")]),
        ("XGROUP CREATE x group 0", &[("x", Stream, Changes, "", "", "")]),
        ("XREADGROUP GROUP group me STREAMS x >", &[("x", Stream, Changes, "", "", "")]),
        ("XACK x group 2-0", &[("x", Stream, Changes, "", "", "")]),
        ("XTRIM x MAXLEN 0", &[("x", Stream, Changes, "", "", "")]),
        ("PFADD p a", &[("p", String, Makes, "", "", "")]),
        ("PFMERGE q p", &[("q", String, Makes, "", "", "")]),
        ("COPY h h2", &[("h2", Hash, Makes, "c=1 d=1 e=2", "", "")]),
        ("RENAME h2 h3", &[("h3", Hash, Makes, "c=1 d=1 e=2", "", "")]),
        ("COPY t t2", &[("t2", Set, Makes, "", "b c d", "")]),
        ("SORT t ALPHA STORE sorted", &[("sorted", List, Makes, "", "b c d", "")]),
        ("BITFIELD bits SET u8 0 65", &[("bits", String, Makes, "", "", "")]),
    ];
    for (line, expected) in script {
        governed.do_(line);
        let mut asked = governed.rules.asked();
        asked.iter_mut().for_each(|asked| {
            asked.fields.sort();
            asked.members.sort();
            asked.removed.sort();
        });
        let seen: Vec<_> = asked
            .iter()
            .map(|asked| {
                let fields = asked.fields.iter().map(|(name, value)| format!("{name}={value}"));
                let fields = fields.collect::<Vec<_>>().join(" ");
                let (members, removed) = (asked.members.join(" "), asked.removed.join(" "));
                (asked.key.clone(), asked.kind, asked.effect, fields, members, removed)
            })
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(key, kind, effect, fields, members, removed)| {
                let texts = [key, fields, members, removed].map(|text| (*text).to_owned());
                let [key, fields, members, removed] = texts;
                (key, *kind, *effect, fields, members, removed)
            })
            .collect();
        assert_eq!(seen, expected, "{line}");
    }
    governed.rules.released();
    for gone in ["DEL h h3", "GETDEL p", "SPOP t 9", "LPOP k", "MOVE u 3", "UNLINK z"] {
        governed.do_(gone);
        assert!(!governed.rules.released().is_empty(), "{gone}");
    }
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
}

#[test]
fn nothing_of_a_refused_command_is_done() {
    let mut governed = Governed::new();
    for line in ["SET s v", "HSET h f v", "SADD S a b", "ZADD z 1 a", "RPUSH l a", "SET k1 v"] {
        governed.do_(line);
    }
    let dump = governed.client.call(&["DUMP", "h"]);
    let kstone_redis::Value::Bulk(dump) = dump else { panic!("no dump") };
    let before = governed.look();
    for line in [
        "SET no:1 v",
        "SETNX no:1 v",
        "SETEX no:1 5 v",
        "MSET k1 w no:1 v k2 w",
        "MSETNX k2 w no:1 v",
        "GETSET no:1 v",
        "INCR no:1",
        "INCRBYFLOAT no:1 1",
        "APPEND no:1 v",
        "SETRANGE no:1 3 v",
        "SETBIT no:1 3 1",
        "BITFIELD no:1 SET u8 0 1",
        "BITOP NOT no:1 s",
        "PFADD no:1 a",
        "PFMERGE no:1",
        "HSET no:1 f v",
        "HINCRBY no:1 f 1",
        "RPUSH no:1 v",
        "LMOVE l no:1 LEFT LEFT",
        "RPOPLPUSH l no:1",
        "BLMOVE l no:1 LEFT LEFT 1",
        "SADD no:1 v",
        "SMOVE S no:1 a",
        "SUNIONSTORE no:1 S",
        "SINTERSTORE no:1 S",
        "SDIFFSTORE no:1 S",
        "ZADD no:1 1 v",
        "ZUNIONSTORE no:1 1 z",
        "ZRANGESTORE no:1 z 0 -1",
        "GEOADD no:1 13 38 p",
        "XADD no:1 * f v",
        "XGROUP CREATE no:1 group $ MKSTREAM",
        "RENAME s no:1",
        "RENAMENX s no:1",
        "COPY h no:1",
        "SORT l ALPHA STORE no:1",
        "HSET number:1 f v",
        "SET number:1 text",
    ] {
        let told = error(governed.say(line));
        assert!(told.starts_with("ERR ") && told.contains(" breaks a rule: "), "{line}: {told}");
    }
    let told = error(governed.client.call(&[b"RESTORE", &b"no:1"[..], b"0", &dump]));
    assert!(told.contains(" breaks a rule: "), "{told}");
    assert_eq!(governed.look(), before);
    assert_eq!(governed.rules.totals(), before);
    assert_eq!(governed.say("GET k1"), crate::support::bulk("v"));
    // MOVE, too, makes a key.
    governed.do_("SET number:2 1");
    governed.do_("APPEND number:2 2");
    error(governed.say("APPEND number:2 x"));
    assert_eq!(governed.say("GET number:2"), crate::support::bulk("12"));
}

#[test]
fn a_policy_hears_which_pattern_it_had_for_a_key_and_another_policy_does_not() {
    let mut governed = Governed::new();
    let known = Some(PatternId(1));
    let hears = |governed: &mut Governed, line: &str, patterns: &[Option<PatternId>]| {
        governed.do_(line);
        let asked: Vec<_> = governed.rules.asked().iter().map(|asked| asked.pattern).collect();
        assert_eq!(asked, patterns, "{line}");
    };
    for (line, patterns) in [
        ("SET a 1", &[None][..]),
        ("SET a 2", &[known]),
        ("INCR a", &[known]),
        ("EXPIRE a 100", &[known]),
        ("MSET a 1 b 2", &[known, None]),
        ("HSET h f 1", &[None]),
        ("HSET h f 2", &[known]),
        // What is stored under the new name is another key's.
        ("RENAME a c", &[None]),
        ("SET a 1", &[None]),
        // Nothing is noted for a key that has no pattern.
        ("SET free:a 1", &[None]),
        ("SET free:a 2", &[None]),
    ] {
        hears(&mut governed, line, patterns);
    }
    governed.rules = Arc::new(Rules::default());
    governed.database.govern(Arc::clone(&governed.rules) as _).unwrap();
    for (line, patterns) in [("SET a 1", &[None][..]), ("SET a 2", &[known]), ("INCR b", &[None])] {
        hears(&mut governed, line, patterns);
    }
}

#[test]
fn a_key_outside_all_patterns_is_asked_about_and_not_counted() {
    let mut governed = Governed::new();
    governed.do_("SET free:a v");
    assert_eq!(governed.rules.asked().len(), 1);
    governed.do_("DEL free:a");
    assert_eq!(governed.rules.counted(), []);
}

#[test]
fn whole_databases_are_emptied_and_swapped_in_their_order() {
    let mut governed = Governed::new();
    governed.do_("SET a v");
    governed.do_("SELECT 1");
    governed.do_("SET b v");
    governed.do_("SET c v");
    governed.do_("SWAPDB 0 1");
    governed.do_("SET d v");
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
    for line in ["MULTI", "SET e v", "FLUSHDB", "SET f v", "SWAPDB 0 2", "SET g v", "EXEC"] {
        governed.do_(line);
    }
    let totals = governed.look();
    assert_eq!(totals.len(), 3);
    assert_eq!(governed.rules.totals(), totals);
    governed.do_("MOVE g 4");
    governed.do_("COPY g g DB 5");
    let totals = governed.look();
    assert_eq!(governed.rules.totals(), totals);
    governed.do_("FLUSHALL");
    assert_eq!(governed.rules.totals(), []);
    assert_eq!(governed.say("DBSIZE"), int(0));
}
