//! Streams.

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone_ports::keys::Value;

/// An entry as replies show it.
fn entry(id: &str, fields: &[&str]) -> Value {
    Value::Array(vec![bulk(id), bulks(fields)])
}

fn array(items: Vec<Value>) -> Value {
    Value::Array(items)
}

/// The value under a name of a map.
#[track_caller]
fn at(value: &Value, name: &str) -> Value {
    let Value::Map(pairs) = value else { panic!("not a map: {value:?}") };
    let found = pairs.iter().find(|(key, _)| *key == bulk(name));
    found.map(|(_, value)| value.clone()).unwrap_or_else(|| panic!("no {name} in {value:?}"))
}

/// The value under a name of the first map in a list.
#[track_caller]
fn of_first(value: &Value, name: &str) -> Value {
    match value {
        Value::Array(items) => at(&items[0], name),
        other => panic!("not a list: {other:?}"),
    }
}

#[test]
fn entries_are_kept_in_the_order_of_their_ids() {
    let mut client = Client::new();
    assert_eq!(client.say("XADD s 1-1 a 1"), bulk("1-1"));
    assert_eq!(client.say("XADD s 1-* a 2 b 3"), bulk("1-2"));
    assert_eq!(client.say("XADD s 5 a 4"), bulk("5-0"));
    assert_eq!(client.say("XLEN s"), int(3));
    let (one, two, three) =
        (entry("1-1", &["a", "1"]), entry("1-2", &["a", "2", "b", "3"]), entry("5-0", &["a", "4"]));
    let all = array(vec![one.clone(), two.clone(), three.clone()]);
    assert_eq!(client.say("XRANGE s - +"), all);
    assert_eq!(client.say("XRANGE s 1 1"), array(vec![one, two.clone()]));
    assert_eq!(client.say("XRANGE s (1-1 (5"), array(vec![two.clone(), three.clone()]));
    assert_eq!(client.say("XREVRANGE s + (1-1 COUNT 1"), array(vec![three]));
    assert_eq!(client.say("XRANGE s - + COUNT 0"), Value::NullArray);
    assert_eq!(client.say("XRANGE none - + COUNT 0"), array(vec![]));
    assert_eq!(client.say("XDEL s 1-1 7-7 5"), int(2));
    assert_eq!(client.say("XRANGE s - +"), array(vec![two]));
    assert_eq!(client.say("TYPE s"), Value::Simple("stream".to_owned()));
}

#[test]
fn an_id_has_to_be_behind_all_others() {
    let mut client = Client::new();
    let too_small =
        "ERR The ID specified in XADD is equal or smaller than the target stream top item";
    assert_eq!(
        error(client.say("XADD s 0-0 a b")),
        "ERR The ID specified in XADD must be greater than 0-0"
    );
    assert_eq!(client.say("EXISTS s"), int(0));
    assert_eq!(client.say("XADD s 0-* a b"), bulk("0-1"));
    client.say("XADD s 9-18446744073709551615 a b");
    for id in ["9-18446744073709551615", "3-3", "9-*"] {
        assert_eq!(error(client.say(&format!("XADD s {id} a b"))), too_small);
    }
    client.say("XADD s 18446744073709551615-18446744073709551615 a b");
    let exhausted = "ERR The stream has exhausted the last possible ID, unable to add more items";
    assert_eq!(error(client.say("XADD s * a b")), exhausted);
    for id in ["", "a", "1-2-3", "-", "+", "(1", "1-a", "18446744073709551616"] {
        let reply = client.call(&["XADD", "s", id, "a", "b"]);
        let invalid = "ERR Invalid stream ID specified as stream command argument";
        assert_eq!(error(reply), invalid, "{id}");
    }
}

#[test]
fn time_gives_ids_and_never_goes_back() {
    let (mut client, _database, clock) = Client::with_clock();
    assert_eq!(client.say("XADD s * a b"), bulk("1700000000000-0"));
    assert_eq!(client.say("XADD s * a b"), bulk("1700000000000-1"));
    clock.advance(5);
    assert_eq!(client.say("XADD s * a b"), bulk("1700000000005-0"));
    client.say("XADD s 1800000000000-3 a b");
    assert_eq!(client.say("XADD s * a b"), bulk("1800000000000-4"));
}

#[test]
fn options_that_do_not_go_together_are_refused_before_anything_changes() {
    let mut client = Client::new();
    for (line, message) in [
        ("XADD s MAXLEN -1 * a b", "ERR The MAXLEN argument must be >= 0."),
        (
            "XADD s MAXLEN 1 MINID 1 * a b",
            "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
        ),
        (
            "XADD s LIMIT 1 * a b",
            "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
        ),
        (
            "XADD s MAXLEN 1 LIMIT 1 * a b",
            "ERR syntax error, LIMIT cannot be used without the special ~ option",
        ),
        ("XADD s * a b c", "ERR wrong number of arguments for 'xadd' command"),
        ("XTRIM s LIMIT 0", "ERR syntax error, XTRIM must be called with a trimming strategy"),
        ("XTRIM s MAXLEN", "ERR wrong number of arguments for 'xtrim' command"),
        ("XTRIM s MAXLEN 1 x", "ERR syntax error"),
        ("XSETID s 1-1", "ERR no such key"),
        (
            "XSETID s 1-1 ENTRIESADDED 1 MAXDELETEDID 2-0",
            "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
        ),
        ("XREAD STREAMS s", "ERR wrong number of arguments for 'xread' command"),
        (
            "XREAD STREAMS a b 0",
            "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be \
             specified.",
        ),
        ("XREAD BLOCK -1 STREAMS a 0", "ERR timeout is negative"),
        ("XREAD BLOCK x STREAMS a 0", "ERR timeout is not an integer or out of range"),
        ("XINFO STREAM s", "ERR no such key"),
        ("XCLAIM s g c 0 1-1", "NOGROUP No such key 's' or consumer group 'g'"),
    ] {
        assert_eq!(error(client.say(line)), message, "{line}");
    }
    assert_eq!(client.say("EXISTS s"), int(0));
    client.say("SET s x");
    for line in ["XADD s * a b", "XLEN s", "XRANGE s - +", "XREAD STREAMS s 0", "XACK s g 1"] {
        assert!(error(client.say(line)).starts_with("WRONGTYPE"), "{line}");
    }
}

#[test]
fn an_exact_trim_leaves_just_what_was_asked_for() {
    let mut client = Client::new();
    for id in 1..=250 {
        client.say(&format!("XADD s {id} f {id}"));
    }
    assert_eq!(client.say("XTRIM s MAXLEN 120"), int(130));
    assert_eq!(at_info(&mut client, "recorded-first-entry-id"), bulk("131-0"));
    assert_eq!(client.say("XTRIM s MINID 200-0"), int(69));
    assert_eq!(client.say("XRANGE s - + COUNT 1"), array(vec![entry("200-0", &["f", "200"])]));
    assert_eq!(client.say("XADD s MAXLEN = 2 251 f 251"), bulk("251-0"));
    assert_eq!(client.say("XLEN s"), int(2));
    assert_eq!(client.say("XADD s MAXLEN 0 252 f 252"), bulk("252-0"));
    assert_eq!(client.say("XLEN s"), int(0));
    assert_eq!(at_info(&mut client, "last-generated-id"), bulk("252-0"));
    assert_eq!(at_info(&mut client, "radix-tree-keys"), int(0));
    assert_eq!(client.say("XADD s 253 f 253"), bulk("253-0"));
    assert_eq!(at_info(&mut client, "recorded-first-entry-id"), bulk("253-0"));
}

#[track_caller]
fn at_info(client: &mut Client, name: &str) -> Value {
    at(&client.say("XINFO STREAM s"), name)
}

#[test]
fn an_approximate_trim_removes_whole_nodes() {
    let mut client = Client::new();
    for id in 1..=1000 {
        client.say(&format!("XADD s MAXLEN ~ 555 {id} f {id}"));
    }
    assert_eq!(client.say("XLEN s"), int(600));
    assert_eq!(at_info(&mut client, "radix-tree-keys"), int(6));
    assert_eq!(client.say("XTRIM s MAXLEN ~ 0 LIMIT 99"), int(0));
    assert_eq!(client.say("XTRIM s MAXLEN ~ 0 LIMIT 199"), int(100));
    assert_eq!(client.say("XTRIM s MINID ~ 650"), int(100));
    assert_eq!(at_info(&mut client, "recorded-first-entry-id"), bulk("601-0"));
}

#[test]
fn a_node_ends_where_it_has_too_many_entries_or_bytes() {
    let mut client = Client::new();
    client.say("CONFIG SET stream-node-max-entries 3");
    for id in 1..=7 {
        client.say(&format!("XADD s {id} f v"));
    }
    assert_eq!(at_info(&mut client, "radix-tree-keys"), int(3));
    // Deleted ones take room until their node goes with the last of them.
    assert_eq!(client.say("XDEL s 7 2"), int(2));
    assert_eq!(at_info(&mut client, "radix-tree-keys"), int(2));
    assert_eq!(client.say("XTRIM s MAXLEN ~ 3"), int(2));
    assert_eq!(client.say("XLEN s"), int(3));
    let mut client = Client::new();
    client.say("CONFIG SET stream-node-max-bytes 100");
    for id in 1..=4 {
        client.say(&format!("XADD s {id} f aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    }
    assert_eq!(at_info(&mut client, "radix-tree-keys"), int(2));
}

#[test]
fn every_entry_can_be_deleted_in_any_order() {
    let mut client = Client::new();
    client.say("CONFIG SET stream-node-max-entries 4");
    for id in 1..=50 {
        client.say(&format!("XADD s {id} f v"));
    }
    let mut left: Vec<u32> = (1..=50).collect();
    // 17 and 50 have no common divisor, so that this comes by all of them.
    for step in 0..50u32 {
        let id = (step * 17 + 25) % 50 + 1;
        assert_eq!(client.say(&format!("XDEL s {id}")), int(1));
        left.retain(|have| *have != id);
        let ids: Vec<_> = left.iter().map(|id| entry(&format!("{id}-0"), &["f", "v"])).collect();
        let first = left.first().map_or("0-0".to_owned(), |id| format!("{id}-0"));
        assert_eq!(client.say("XRANGE s - +"), array(ids));
        assert_eq!(at_info(&mut client, "recorded-first-entry-id"), bulk(first));
    }
    assert_eq!(at_info(&mut client, "radix-tree-keys"), int(0));
    assert_eq!(at_info(&mut client, "entries-added"), int(50));
}

#[test]
fn a_long_stream_can_be_trimmed_to_a_short_one_at_once() {
    let mut client = Client::new();
    client.say("MULTI");
    let key = "k".repeat(16_000);
    for id in 1..=1200 {
        client.say(&format!("XADD {key} {id} f v"));
    }
    client.say("EXEC");
    client.say(&format!("XGROUP CREATE {key} g 0"));
    client.say(&format!("XREADGROUP GROUP g c COUNT 3 STREAMS {key} >"));
    assert_eq!(client.say(&format!("XTRIM {key} MAXLEN 2")), int(1198));
    let left = array(vec![entry("1199-0", &["f", "v"]), entry("1200-0", &["f", "v"])]);
    assert_eq!(client.say(&format!("XRANGE {key} - +")), left);
    let pending = client.say(&format!("XPENDING {key} g"));
    let consumers = array(vec![bulks(&["c", "3"])]);
    assert_eq!(pending, array(vec![int(3), bulk("1-0"), bulk("3-0"), consumers]));
}

#[test]
fn a_group_delivers_each_entry_once_and_remembers_who_has_it() {
    let (mut client, _database, clock) = Client::with_clock();
    for id in 1..=3 {
        client.say(&format!("XADD s {id} f {id}"));
    }
    assert_eq!(client.say("XGROUP CREATE s g 0"), ok());
    assert_eq!(
        error(client.say("XGROUP CREATE s g 0")),
        "BUSYGROUP Consumer Group name already exists"
    );
    let (one, two, three) =
        (entry("1-0", &["f", "1"]), entry("2-0", &["f", "2"]), entry("3-0", &["f", "3"]));
    let of = |entries: Vec<Value>| array(vec![array(vec![bulk("s"), array(entries)])]);
    let read = client.say("XREADGROUP GROUP g alice COUNT 2 STREAMS s >");
    assert_eq!(read, of(vec![one.clone(), two]));
    let read = client.say("XREADGROUP GROUP g bob STREAMS s >");
    assert_eq!(read, of(vec![three]));
    assert_eq!(client.say("XREADGROUP GROUP g bob STREAMS s >"), Value::NullArray);
    clock.advance(40);
    let one_pending = |id: &str, who: &str, idle: i64, count: i64| {
        array(vec![bulk(id), bulk(who), int(idle), int(count)])
    };
    assert_eq!(
        client.say("XPENDING s g - + 10 alice"),
        array(vec![one_pending("1-0", "alice", 40, 1), one_pending("2-0", "alice", 40, 1)])
    );
    assert_eq!(client.say("XACK s g 2-0 2-0 9-9"), int(1));
    assert_eq!(client.say("XREADGROUP GROUP g alice STREAMS s 0"), of(vec![one.clone()]));
    assert_eq!(
        client.say("XPENDING s g IDLE 10 - + 10"),
        array(vec![one_pending("3-0", "bob", 40, 1)])
    );
    // Bob is gone, and alice takes what he had.
    assert_eq!(client.say("XCLAIM s g alice 30 1-0 3-0 JUSTID"), bulks(&["3-0"]));
    assert_eq!(client.say("XCLAIM s g alice 1000 3-0"), array(vec![]));
    client.say("XDEL s 3-0");
    let moved = client.say("XAUTOCLAIM s g carol 0 - COUNT 5");
    assert_eq!(moved, array(vec![bulk("0-0"), array(vec![one]), bulks(&["3-0"])]));
    assert_eq!(client.say("XPENDING s g - + 10"), array(vec![one_pending("1-0", "carol", 0, 3)]));
    assert_eq!(client.say("XGROUP DELCONSUMER s g carol"), int(1));
    assert_eq!(client.say("XGROUP DELCONSUMER s g carol"), int(0));
    let nothing = array(vec![int(0), Value::Null, Value::Null, Value::NullArray]);
    assert_eq!(client.say("XPENDING s g"), nothing);
}

#[test]
fn a_group_that_is_destroyed_leaves_nothing_to_the_next_of_its_name() {
    let mut client = Client::new();
    client.say("XADD s 1 f v");
    client.say("XGROUP CREATE s g 0");
    client.say("XREADGROUP GROUP g c STREAMS s >");
    assert_eq!(client.say("XGROUP DESTROY s g"), int(1));
    assert_eq!(client.say("XGROUP DESTROY s g"), int(0));
    assert_eq!(client.say("XINFO GROUPS s"), array(vec![]));
    let none = "NOGROUP No such consumer group 'g' for key name 's'";
    assert_eq!(error(client.say("XINFO CONSUMERS s g")), none);
    client.say("XGROUP CREATE s g $");
    assert_eq!(client.say("XINFO CONSUMERS s g"), array(vec![]));
    assert_eq!(of_first(&client.say("XINFO GROUPS s"), "pending"), int(0));
}

#[test]
fn consumers_whose_names_begin_alike_do_not_share_what_is_pending() {
    let mut client = Client::new();
    for id in 1..=3 {
        client.say(&format!("XADD s {id} f v"));
    }
    client.say("XGROUP CREATE s g 0");
    for name in ["", "a", "a\0\0\0"] {
        client.call(&["XREADGROUP", "GROUP", "g", name, "COUNT", "1", "STREAMS", "s", ">"]);
    }
    for (name, id) in [("", "1-0"), ("a", "2-0"), ("a\0\0\0", "3-0")] {
        let read = client.call(&["XREADGROUP", "GROUP", "g", name, "STREAMS", "s", "0"]);
        let own = array(vec![entry(id, &["f", "v"])]);
        assert_eq!(read, array(vec![array(vec![bulk("s"), own])]));
    }
}

#[test]
fn a_group_knows_how_many_entries_it_has_not_seen() {
    let mut client = Client::new();
    for id in 1..=5 {
        client.say(&format!("XADD s {id} f v"));
    }
    client.say("XGROUP CREATE s g 0");
    let counts = |client: &mut Client| {
        let groups = client.say("XINFO GROUPS s");
        (of_first(&groups, "entries-read"), of_first(&groups, "lag"))
    };
    assert_eq!(counts(&mut client), (Value::Null, int(5)));
    client.say("XREADGROUP GROUP g c COUNT 1 STREAMS s >");
    assert_eq!(counts(&mut client), (int(1), int(4)));
    // Whether the one that goes was read cannot be told from the counts.
    client.say("XDEL s 3");
    assert_eq!(counts(&mut client), (int(1), Value::Null));
    client.say("XREADGROUP GROUP g c STREAMS s >");
    assert_eq!(counts(&mut client), (int(5), int(0)));
    client.say("XGROUP SETID s g 1 ENTRIESREAD 1");
    client.say("XTRIM s MINID 4");
    assert_eq!(counts(&mut client), (int(1), int(4)));
}

#[test]
fn a_copy_and_a_renamed_stream_have_everything_of_the_old_one() {
    let mut client = Client::new();
    client.say("CONFIG SET stream-node-max-entries 2");
    for id in 1..=9 {
        client.say(&format!("XADD s {id} f v"));
    }
    client.say("XGROUP CREATE s g 0");
    client.say("XREADGROUP GROUP g c COUNT 4 STREAMS s >");
    client.say("XDEL s 5");
    let all = client.say("XINFO STREAM s FULL COUNT 0");
    client.say("COPY s t");
    client.say("RENAME s u");
    for key in ["t", "u"] {
        assert_eq!(client.say(&format!("XINFO STREAM {key} FULL COUNT 0")), all);
    }
    let Value::Bulk(dumped) = client.say("DUMP t") else { panic!("no payload") };
    assert_eq!(client.call(&[b"RESTORE".as_slice(), b"v", b"0", &dumped]), ok());
    assert_eq!(client.say("XINFO STREAM v FULL COUNT 0"), all);
    client.say("XTRIM t MAXLEN 0");
    assert_eq!(client.say("XINFO STREAM u FULL COUNT 0"), all);
}

/// What Redis 5 gives for a stream of six entries, of which it has deleted one and trimmed three,
/// with two groups, of which one has read four.
const DUMPED: &[u8] = b"\
    \x0F\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xC3\x40\x4A\x40\
    \x57\x16\x57\x00\x00\x00\x23\x00\x02\x01\x04\x01\x01\x01\x84\x64\x61\x74\x61\x05\x00\x01\x03\
    \x01\x00\x20\x01\x03\x81\x61\x02\x04\x20\x0A\x00\x01\x40\x0A\x00\x62\x60\x0A\x00\x02\x40\x0A\
    \x00\x63\x60\x0A\x40\x22\x01\x81\x64\x20\x0A\x40\x39\x20\x0A\x00\x65\x60\x0A\x00\x05\x40\x0A\
    \x00\x66\x20\x0A\x00\xFF\x02\x06\x00\x02\x02\x67\x31\x05\x00\x04\x00\x00\x00\x00\x00\x00\x00\
    \x01\x00\x00\x00\x00\x00\x00\x00\x00\x3E\xF7\x83\x43\x7A\x01\x00\x00\x01\x00\x00\x00\x00\x00\
    \x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x3E\xF7\x83\x43\x7A\x01\x00\x00\x01\x00\x00\x00\
    \x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x3E\xF7\x83\x43\x7A\x01\x00\x00\x01\x00\
    \x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x3E\xF7\x83\x43\x7A\x01\x00\x00\
    \x01\x01\x03\x63\x31\x31\x3E\xF7\x83\x43\x7A\x01\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\
    \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\
    \x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
    \x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x02\x67\x32\x00\x00\x00\x00\x09\x00\x3D\x52\xEF\x68\
    \x67\x52\x1D\xFA";

#[test]
fn a_stream_that_redis_has_dumped_is_restored() {
    let mut client = Client::new();
    assert_eq!(client.call(&[b"RESTORE".as_slice(), b"s", b"0", DUMPED]), ok());
    let left = array(vec![entry("5-0", &["data", "e"]), entry("6-0", &["data", "f"])]);
    assert_eq!(client.say("XRANGE s - +"), left);
    let full = client.say("XINFO STREAM s FULL");
    assert_eq!(at(&full, "entries-added"), int(2));
    assert_eq!(at(&full, "last-generated-id"), bulk("6-0"));
    let groups = client.say("XINFO GROUPS s");
    assert_eq!((of_first(&groups, "lag"), of_first(&groups, "pending")), (int(1), int(4)));
    let consumers = array(vec![bulks(&["c11", "4"])]);
    let pending = client.say("XPENDING s g1");
    assert_eq!(pending, array(vec![int(4), bulk("1-0"), bulk("5-0"), consumers]));
    assert_eq!(client.say("XADD s 7 data g"), bulk("7-0"));
}
