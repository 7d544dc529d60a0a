//! What is done with the golden database: the commands that write it, and what it answers.

use kstone_ports::keys::Value;

use crate::support::Client;

/// A library of functions.
pub const LIBRARY: &str = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";

/// Each line is a command.
const WRITES: &str = "
SET greeting hello
SET session s1 PXAT 1700000060000
SETRANGE sparse 40000 z
PFADD visitors ada
RPUSH tasks b c
LPUSH tasks a
SADD colors red green
ZADD board 1.5 ada -2 bob -0 zoe
GEOADD towns 13.361389 38.115556 Palermo
ZADD queue 1 a 2 b 3 c 4 d
ZPOPMIN queue
ZPOPMAX queue
HSET profile name Ada lang en
HPEXPIREAT profile 1700000090000 FIELDS 1 lang
CONFIG SET stream-node-max-entries 2
XADD events 1-1 k v
XADD events 1-2 k w
XADD events 2-0 k x
XADD events 2-1 other y
XADD events 3-0 k z
XDEL events 2-0
XGROUP CREATE events g 0
XREADGROUP GROUP g alice COUNT 3 STREAMS events >
XACK events g 1-2
XGROUP CREATECONSUMER events g bob
XGROUP CREATE events late 2-1
SELECT 1
SET other 1
SWAPDB 1 2
SELECT 3
SET gone 1
FLUSHDB
SELECT 0
";

/// A command and what is answered.
type Question = (&'static str, &'static str);

const QUESTIONS: &[Question] = &[
    ("DBSIZE", "13"),
    ("GET greeting", "hello"),
    ("PTTL greeting", "-1"),
    ("GET session", "s1"),
    ("PEXPIRETIME session", "1700000060000"),
    ("STRLEN page", "32769"),
    ("GETRANGE page 16382 16385", "aaaa"),
    ("GETRANGE page 32767 -1", "ab"),
    ("STRLEN sparse", "40001"),
    ("GETRANGE sparse 40000 -1", "z"),
    ("PFCOUNT visitors", "1"),
    ("LRANGE tasks 0 -1", "[a b c]"),
    ("LINDEX tasks -1", "c"),
    ("SCARD colors", "3"),
    ("SMISMEMBER colors red green blue", "[1 1 0]"),
    ("ZRANGE board 0 -1 WITHSCORES", "[bob -2 zoe -0 ada 1.5]"),
    ("ZSCORE board ada", "1.5"),
    ("GEOHASH towns Palermo", "[sqc8b49rny0]"),
    ("ZRANGE queue 0 -1", "[b c]"),
    ("ZCARD queue", "2"),
    ("HLEN profile", "2"),
    ("HGETALL profile", "[name Ada lang en]"),
    ("HPEXPIRETIME profile FIELDS 2 name lang", "[-1 1700000090000]"),
    ("HLEN long", "1"),
    ("XLEN events", "4"),
    ("XRANGE events - +", "[[1-1 [k v]] [1-2 [k w]] [2-1 [other y]] [3-0 [k z]]]"),
    ("XPENDING events g", "[2 1-1 2-1 [[alice 2]]]"),
    ("XPENDING events g - + 9", "[[1-1 alice 0 1] [2-1 alice 0 1]]"),
    (
        "XINFO GROUPS events",
        "[[name g consumers 2 pending 2 last-delivered-id 2-1 entries-read ~ lag ~] \
          [name late consumers 0 pending 0 last-delivered-id 2-1 entries-read ~ lag ~]]",
    ),
    (
        "XINFO STREAM events",
        "[length 4 radix-tree-keys 3 radix-tree-nodes 4 last-generated-id 3-0 \
          max-deleted-entry-id 2-0 entries-added 5 recorded-first-entry-id 1-1 groups 2 \
          first-entry [1-1 [k v]] last-entry [3-0 [k z]]]",
    ),
    ("FCALL f 0", "7"),
    ("SELECT 1", "OK"),
    ("DBSIZE", "0"),
    ("SELECT 2", "OK"),
    ("GET other", "1"),
    ("SELECT 3", "OK"),
    ("DBSIZE", "0"),
    ("SELECT 0", "OK"),
];

/// Writes to what is there.
const GOING_ON: &[Question] = &[
    ("APPEND greeting !", "6"),
    ("GET greeting", "hello!"),
    ("APPEND page c", "32770"),
    ("GETRANGE page 32767 -1", "abc"),
    ("LPUSH tasks z", "4"),
    ("RPOP tasks", "c"),
    ("LRANGE tasks 0 -1", "[z a b]"),
    ("SADD colors red blue", "1"),
    ("SCARD colors", "4"),
    ("ZADD board XX 3 zoe", "0"),
    ("ZRANGE board 0 -1", "[bob ada zoe]"),
    ("ZADD queue 0 first 9 last", "2"),
    ("ZRANGE queue 0 -1", "[first b c last]"),
    ("HSET profile lang de age 36", "1"),
    ("HGETALL profile", "[name Ada lang de age 36]"),
    ("HTTL profile FIELDS 1 lang", "[-1]"),
    ("XADD events 3-1 k new", "3-1"),
    ("XREADGROUP GROUP g bob COUNT 1 STREAMS events >", "[[events [[3-0 [k z]]]]]"),
    ("XCLAIM events g bob 0 1-1 JUSTID", "[1-1]"),
    ("XPENDING events g", "[3 1-1 3-0 [[alice 1] [bob 2]]]"),
    ("XTRIM events MAXLEN = 2", "3"),
    ("XRANGE events - +", "[[3-0 [k z]] [3-1 [k new]]]"),
    ("DEL events profile page", "3"),
    ("DBSIZE", "10"),
];

pub fn run(client: &mut Client) {
    for line in WRITES.lines().filter(|line| !line.is_empty()) {
        expect_no_error(line, client.say(line));
    }
    let page = [vec![b'a'; 32 << 10], b"b".to_vec()].concat();
    let long = vec![b'x'; 5000];
    let calls: [&[&[u8]]; 4] = [
        &[b"SET", b"page", &page],
        &[b"SADD", b"colors", &long],
        &[b"HSET", b"long", &long, b"1"],
        &[b"FUNCTION", b"LOAD", LIBRARY.as_bytes()],
    ];
    for call in calls {
        expect_no_error("a call", client.call(call));
    }
}

fn expect_no_error(command: &str, reply: Value) {
    assert!(!matches!(reply, Value::Error(_)), "{command}: {reply:?}");
}

pub fn ask(client: &mut Client) {
    for (question, answer) in QUESTIONS {
        assert_eq!(text(&client.say(question)), *answer, "{question}");
    }
    let long = vec![b'x'; 5000];
    assert_eq!(client.call(&[b"SISMEMBER", &b"colors"[..], &long]), Value::Integer(1));
    assert_eq!(client.call(&[b"HGET", &b"long"[..], &long]), Value::bulk("1"));
}

/// What was found is also good for writing.
pub fn go_on(client: &mut Client) {
    for (command, answer) in GOING_ON {
        assert_eq!(text(&client.say(command)), *answer, "{command}");
    }
}

/// A reply in few characters.
pub fn text(reply: &Value) -> String {
    let list =
        |items: &[Value]| format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" "));
    match reply {
        Value::Simple(text) => text.clone(),
        Value::Error(bytes) | Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Double(number) => kstone_redis::double_text(*number),
        Value::Null | Value::NullArray => "~".to_owned(),
        Value::Array(items) | Value::Set(items) => list(items),
        Value::Map(pairs) => list(
            &pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]).collect::<Vec<_>>(),
        ),
        other => panic!("{other:?}"),
    }
}
