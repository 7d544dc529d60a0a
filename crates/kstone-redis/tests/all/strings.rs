//! Strings, short and long.

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone_ports::keys::Value;

/// A byte for each position, so that a wrong position is noticed.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8 ^ (at / 251) as u8).collect()
}

#[test]
fn set_takes_its_options() {
    let mut client = Client::new();
    assert_eq!(client.say("SET a 1 XX"), Value::Null);
    assert_eq!(client.say("SET a 1 NX"), ok());
    assert_eq!(client.say("SET a 2 NX"), Value::Null);
    assert_eq!(client.say("SET a 2 NX GET"), bulk("1"));
    assert_eq!(client.say("SET a 2 XX GET"), bulk("1"));
    assert_eq!(client.say("SET b 1 GET"), Value::Null);
    assert_eq!(client.say("GET a"), bulk("2"));
    for options in ["NX XX", "EX", "EX 10 PX 10", "KEEPTTL EX 10", "PERSIST", "NONSENSE"] {
        assert_eq!(error(client.say(&format!("SET a 3 {options}"))), "ERR syntax error");
    }
    for options in ["EX 0", "PX -1", "EX 9223372036854775807", "PX 9223372036854775807"] {
        let expected = "ERR invalid expire time in 'set' command";
        assert_eq!(error(client.say(&format!("SET a 3 {options}"))), expected);
    }
    assert_eq!(client.say("GET a"), bulk("2"));
}

#[test]
fn an_expiry_is_set_kept_and_taken_away() {
    let mut client = Client::new();
    let at = |client: &mut Client| client.say("PEXPIRETIME a");
    assert_eq!(client.say("SET a 1 PXAT 99999999999999"), ok());
    assert_eq!(at(&mut client), int(99_999_999_999_999));
    for command in ["SET a 2 KEEPTTL", "INCR a", "APPEND a 0", "SETRANGE a 0 7", "INCRBYFLOAT a 1"]
    {
        client.say(command);
        assert_eq!(at(&mut client), int(99_999_999_999_999), "{command}");
    }
    assert_eq!(client.say("GETEX a EXAT 99999999998"), bulk("71"));
    assert_eq!(at(&mut client), int(99_999_999_998_000));
    assert_eq!(client.say("GETEX a"), bulk("71"));
    assert_eq!(at(&mut client), int(99_999_999_998_000));
    assert_eq!(client.say("GETEX a PERSIST"), bulk("71"));
    assert_eq!(at(&mut client), int(-1));
    assert_eq!(client.say("SET a 1 EXAT 99999999999"), ok());
    assert_eq!(client.say("SET a 2"), ok());
    assert_eq!(at(&mut client), int(-1));
    assert_eq!(client.say("GETEX a PXAT 1"), bulk("2"));
    assert_eq!(client.say("EXISTS a"), int(0));
    assert_eq!(client.say("SET a 1 PXAT 1"), ok());
    assert_eq!(client.say("GET a"), Value::Null);
}

#[test]
fn several_keys_are_set_together_or_not_at_all() {
    let mut client = Client::new();
    assert_eq!(client.say("MSET a 1 b 2 a 3"), ok());
    assert_eq!(client.say("MGET a b c"), Value::Array(vec![bulk("3"), bulk("2"), Value::Null]));
    assert_eq!(client.say("MSETNX c 1 a 1"), int(0));
    assert_eq!(client.say("EXISTS c"), int(0));
    assert_eq!(client.say("MSETNX c 1 d 1"), int(1));
    assert!(error(client.say("MSET a 1 b")).contains("wrong number of arguments for 'mset'"));
    assert_eq!(client.say("DBSIZE"), int(4));
}

#[test]
fn a_value_is_taken_away_or_exchanged() {
    let mut client = Client::new();
    assert_eq!(client.say("GETSET a 1"), Value::Null);
    assert_eq!(client.say("GETSET a 2"), bulk("1"));
    assert_eq!(client.say("GETDEL a"), bulk("2"));
    assert_eq!(client.say("GETDEL a"), Value::Null);
    assert_eq!(client.say("SETNX a 1"), int(1));
    assert_eq!(client.say("SETNX a 2"), int(0));
    assert_eq!(client.say("DBSIZE"), int(1));
}

#[test]
fn numbers_are_counted_without_overflow() {
    let mut client = Client::new();
    assert_eq!(client.say("INCR a"), int(1));
    assert_eq!(client.say("DECRBY a 11"), int(-10));
    assert_eq!(client.say("SET a 9223372036854775807"), ok());
    assert_eq!(error(client.say("INCR a")), "ERR increment or decrement would overflow");
    assert_eq!(error(client.say("DECRBY a -9223372036854775808")), "ERR decrement would overflow");
    assert_eq!(client.say("INCRBY a -9223372036854775808"), int(-1));
    assert_eq!(client.say("SET a 0.1"), ok());
    assert_eq!(error(client.say("INCR a")), "ERR value is not an integer or out of range");
    assert_eq!(client.say("INCRBYFLOAT a 0.2"), bulk("0.3"));
    assert_eq!(error(client.say("INCRBYFLOAT a abc")), "ERR value is not a valid float");
    let expected = "ERR increment would produce NaN or Infinity";
    assert_eq!(error(client.say("INCRBYFLOAT a +inf")), expected);
    assert_eq!(client.say("GET a"), bulk("0.3"));
}

#[test]
fn a_long_string_is_what_was_written_to_it() {
    let mut client = Client::new();
    for len in [32_768, 32_769, 100_000, 1_000_003, 5_000_000, 70_000, 70_001] {
        let value = pattern(len);
        assert_eq!(client.call(&[b"SET".as_slice(), b"a", &value]), ok());
        assert_eq!(client.say("GET a"), Value::Bulk(value.clone()), "{len}");
        assert_eq!(client.say("STRLEN a"), int(len as i64));
        assert_eq!(client.say("TYPE a"), Value::Simple("string".into()));
        let middle = Value::Bulk(value[32_000..70_001.min(len)].to_vec());
        assert_eq!(client.say("GETRANGE a 32000 70000"), middle);
    }
    assert_eq!(error(client.say("INCR a")), "ERR value is not an integer or out of range");
    assert_eq!(client.say("SET a short"), ok());
    assert_eq!(client.say("GET a"), bulk("short"));
    assert_eq!(client.say("DBSIZE"), int(1));
}

#[test]
fn a_string_grows_from_short_to_long_and_is_changed_in_places() {
    let mut client = Client::new();
    let mut expected = Vec::new();
    for step in 0..40 {
        let more = pattern(3001 + step);
        expected.extend_from_slice(&more);
        let len = int(expected.len() as i64);
        assert_eq!(client.call(&[b"APPEND".as_slice(), b"a", &more]), len);
    }
    assert_eq!(client.say("GET a"), Value::Bulk(expected.clone()));
    // Within a piece, across pieces, many pieces, beyond the end.
    for (at, len) in [(5, 10), (32_760, 20), (10_000, 90_000), (200_000, 5), (0, 1)] {
        let more = vec![b'#'; len];
        expected.resize(expected.len().max(at + len), 0);
        expected[at..at + len].copy_from_slice(&more);
        let reply = client.call(&[b"SETRANGE".as_slice(), b"a", at.to_string().as_bytes(), &more]);
        assert_eq!(reply, int(expected.len() as i64));
        assert_eq!(client.say("GET a"), Value::Bulk(expected.clone()), "{at} {len}");
    }
}

#[test]
fn a_long_string_is_copied_renamed_and_replaced() {
    let mut client = Client::new();
    let value = pattern(150_000);
    client.call(&[b"SET".as_slice(), b"a", &value]);
    assert_eq!(client.say("COPY a b"), int(1));
    assert_eq!(client.say("SETRANGE a 70000 xxxxx"), int(150_000));
    assert_eq!(client.say("GET b"), Value::Bulk(value.clone()));
    assert_eq!(client.say("RENAME b c"), ok());
    assert_eq!(client.say("GETDEL c"), Value::Bulk(value));
    assert_eq!(client.say("SETBIT c 800000 1"), int(0));
    let Value::Bulk(zeros) = client.say("GET c") else { panic!("no string") };
    assert_eq!(zeros.iter().filter(|byte| **byte != 0).count(), 1, "nothing of the old is left");
}

#[test]
fn a_long_string_over_a_longer_one_leaves_nothing_of_it() {
    let mut client = Client::new();
    client.call(&[b"SET".as_slice(), b"a", &[b'x'; 200_000]]);
    client.call(&[b"SET".as_slice(), b"a", &[b'y'; 40_000]]);
    assert_eq!(client.say("SETRANGE a 250000 z"), int(250_001));
    let expected = [&[b'y'; 40_000][..], &[0; 210_000], b"z"].concat();
    assert!(client.say("GET a") == Value::Bulk(expected));
}

#[test]
fn a_mostly_empty_string_may_be_very_long() {
    let mut client = Client::new();
    assert_eq!(client.say("SETRANGE a 536870911 x"), int(536_870_912));
    assert_eq!(client.say("GETRANGE a -2 -1"), bulk(b"\0x"));
    assert_eq!(client.say("GETRANGE a 1000000 1000003"), bulk(b"\0\0\0\0"));
    let too_long = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    assert_eq!(error(client.say("APPEND a y")), too_long);
    assert_eq!(error(client.say("SETRANGE a 536870912 y")), too_long);
    assert_eq!(error(client.say("SETRANGE b 9223372036854775807 y")), too_long);
    assert_eq!(client.say("DEL a"), int(1));
}

#[test]
fn a_value_larger_than_a_batch_replaces_one_in_one_step() {
    let mut client = Client::new();
    let old = pattern(1 << 20).repeat(40);
    assert_eq!(client.call(&[b"SET".as_slice(), b"a", &old]), ok());
    assert_eq!(client.say("COPY a b"), int(1));
    let new = vec![7; 65 << 20];
    assert_eq!(client.call(&[b"SET".as_slice(), b"a", &new, b"EX", b"100"]), ok());
    // Not with `assert_eq`, which would print it.
    assert!(client.say("GET a") == Value::Bulk(new));
    assert!(client.say("GET b") == Value::Bulk(old.clone()));
    assert_eq!(client.say("COPY b a REPLACE"), int(1));
    assert_eq!(client.say("SETRANGE b 0 x"), int(40 << 20));
    assert_eq!(client.say("COPY b a REPLACE"), int(1));
    let mut changed = old;
    changed[0] = b'x';
    assert!(client.say("GET a") == Value::Bulk(changed));
    assert_eq!(client.say("DBSIZE"), int(2));
}

#[test]
fn a_key_that_is_too_long_is_refused_alone() {
    let mut client = Client::new();
    let long = vec![b'k'; 65_537];
    assert_eq!(client.say("MULTI"), ok());
    client.say("SET a 1");
    client.call(&[b"SET".as_slice(), &long, b"1"]);
    // As a key it would do, but not with the name of a piece behind it.
    client.call(&[b"SET".as_slice(), &long[1..], &[b'v'; 40_000]]);
    client.call(&[b"SET".as_slice(), &long[1..], b"1"]);
    let Value::Array(replies) = client.say("EXEC") else { panic!("no replies") };
    assert_eq!((&replies[0], &replies[3]), (&ok(), &ok()));
    for refused in [&replies[1], &replies[2]] {
        assert!(error(refused.clone()).starts_with("ERR the key is too long"));
    }
    assert_eq!(client.say("DBSIZE"), int(2));
}

#[test]
fn ranges_count_from_both_ends() {
    let mut client = Client::new();
    client.say("SET a Hello");
    for (range, part) in
        [("0 -1", "Hello"), ("1 3", "ell"), ("-3 -2", "ll"), ("3 1", ""), ("9 10", "")]
    {
        assert_eq!(client.say(&format!("GETRANGE a {range}")), bulk(part), "{range}");
        assert_eq!(client.say(&format!("SUBSTR a {range}")), bulk(part), "{range}");
    }
    assert_eq!(client.say("GETRANGE missing 0 -1"), bulk(""));
    assert_eq!(error(client.say("SETRANGE a -1 x")), "ERR offset is out of range");
}

#[test]
fn what_two_strings_have_in_common_is_found() {
    let mut client = Client::new();
    client.say("MSET a ohmytext b mynewtext");
    assert_eq!(client.say("LCS a b"), bulk("mytext"));
    assert_eq!(client.say("LCS a b LEN"), int(6));
    let place = |one: [i64; 2], other: [i64; 2], len: i64| {
        let pair = |pair: [i64; 2]| Value::Array(pair.map(int).to_vec());
        Value::Array(vec![pair(one), pair(other), int(len)])
    };
    let matches = Value::Array(vec![place([4, 7], [5, 8], 4), place([2, 3], [0, 1], 2)]);
    let expected = vec![(bulk("matches"), matches), (bulk("len"), int(6))];
    assert_eq!(client.say("LCS a b IDX WITHMATCHLEN"), Value::Map(expected));
    let expected = vec![(bulk("matches"), Value::Array(vec![])), (bulk("len"), int(6))];
    assert_eq!(client.say("LCS a b IDX MINMATCHLEN 5"), Value::Map(expected));
    assert!(error(client.say("LCS a b IDX LEN")).contains("just use IDX"));
    assert_eq!(client.say("MGET a b"), bulks(&["ohmytext", "mynewtext"]));
}

#[test]
fn another_type_is_refused_unless_it_is_replaced() {
    let mut client = Client::new();
    client.say("RPUSH list x y");
    for command in ["GET list", "APPEND list a", "INCR list", "GETSET list a", "SET list a GET"] {
        assert!(error(client.say(command)).starts_with("WRONGTYPE"), "{command}");
    }
    assert_eq!(client.say("LLEN list"), int(2));
    assert_eq!(client.say("MGET list"), Value::Array(vec![Value::Null]));
    assert!(error(client.say("LCS list list")).starts_with("ERR The specified keys must"));
    assert_eq!(client.say("SET list a"), ok());
    assert_eq!(client.say("GET list"), bulk("a"));
}
