//! Going through keys and elements step by step.

use std::collections::BTreeSet;

use crate::support::{Client, error, int, ok};
use kstone_ports::keys::Value;

/// The cursor and the elements of a step.
#[track_caller]
fn step(value: Value) -> (String, Vec<String>) {
    let Value::Array(parts) = value else { panic!("no step: {value:?}") };
    let [Value::Bulk(cursor), Value::Array(found)] = parts.as_slice() else {
        panic!("no step: {parts:?}")
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let found = found.iter().map(|one| match one {
        Value::Bulk(one) => text(one),
        other => panic!("no element: {other:?}"),
    });
    (text(cursor), found.collect())
}

/// All steps from a cursor on; between two, `meanwhile` is called.
fn all_from(
    client: &mut Client,
    start: &str,
    line: impl Fn(&str) -> String,
    mut meanwhile: impl FnMut(&mut Client),
) -> Vec<String> {
    let (mut cursor, mut all) = (start.to_owned(), Vec::new());
    loop {
        let (next, found) = step(client.say(&line(&cursor)));
        all.extend(found);
        if next == "0" {
            return all;
        }
        meanwhile(client);
        cursor = next;
    }
}

#[track_caller]
fn assert_each_once(all: Vec<String>, expected: impl Iterator<Item = String>) {
    let len = all.len();
    let unique: BTreeSet<String> = all.into_iter().collect();
    assert_eq!(unique.len(), len, "something came twice");
    assert_eq!(unique, expected.collect());
}

#[test]
fn a_scan_shows_every_key_once() {
    let mut client = Client::new();
    for n in 0..1000 {
        client.say(&format!("SET key:{n} 1"));
    }
    for count in [1, 7, 100, 100_000] {
        let all = all_from(&mut client, "0", |at| format!("SCAN {at} COUNT {count}"), |_| ());
        assert_each_once(all, (0..1000).map(|n| format!("key:{n}")));
    }
    let all = all_from(&mut client, "0", |at| format!("SCAN {at} MATCH key:1??"), |_| ());
    assert_each_once(all, (100..200).map(|n| format!("key:{n}")));
}

#[test]
fn keys_with_many_parts_come_once_and_can_be_asked_for_by_type() {
    let mut client = Client::new();
    for n in 0..20 {
        for m in 0..50 {
            client.say(&format!("HSET hash:{n} f{m} 1"));
        }
        client.say(&format!("SADD set:{n} a"));
        client.say(&format!("SET string:{n} a"));
    }
    let all = all_from(&mut client, "0", |at| format!("SCAN {at} COUNT 3"), |_| ());
    assert_eq!(all.len(), 60);
    let all = all_from(&mut client, "0", |at| format!("SCAN {at} TYPE HASH COUNT 3"), |_| ());
    assert_each_once(all, (0..20).map(|n| format!("hash:{n}")));
    let all = all_from(&mut client, "0", |at| format!("SCAN {at} TYPE nothing"), |_| ());
    assert_each_once(all, std::iter::empty());
}

#[test]
fn keys_that_stay_are_shown_however_many_come_and_go() {
    let mut client = Client::new();
    for n in 0..300 {
        client.say(&format!("SET stays:{n} 1"));
        client.say(&format!("SET goes:{n} 1"));
    }
    let mut round = 0;
    let all = all_from(
        &mut client,
        "0",
        |at| format!("SCAN {at} COUNT 5"),
        |client| {
            client.say(&format!("DEL goes:{round} goes:{}", 299 - round % 300));
            client.say(&format!("SET comes:{round} 1"));
            round += 1;
        },
    );
    let stayed = all.into_iter().filter(|key| key.starts_with("stays")).collect();
    assert_each_once(stayed, (0..300).map(|n| format!("stays:{n}")));
}

#[test]
fn a_cursor_that_was_forgotten_misses_nothing() {
    let mut client = Client::new();
    for n in 0..2000 {
        client.say(&format!("SET key:{n} 1"));
    }
    let (mut cursor, mut seen) = ("0".to_owned(), BTreeSet::new());
    for _ in 0..50 {
        let (next, found) = step(client.say(&format!("SCAN {cursor} COUNT 3")));
        (cursor, _) = (next, seen.extend(found));
    }
    // As after a restart: the stripe is known, the place in it is not.
    let unknown = cursor.parse::<u64>().unwrap() % 256 + (1 << 50);
    let rest = all_from(&mut client, &unknown.to_string(), |at| format!("SCAN {at}"), |_| ());
    seen.extend(rest);
    assert_eq!(seen.len(), 2000);
}

#[test]
fn a_transaction_scans_what_it_has_written() {
    let mut client = Client::new();
    for n in 0..20 {
        client.say(&format!("SET key:{n} 1"));
    }
    assert_eq!(client.say("MULTI"), ok());
    client.say("DEL key:0 key:1");
    client.say("SET key:20 1");
    client.say("SADD key:2 a");
    client.say("SCAN 0 COUNT 100");
    client.say("FLUSHALL");
    client.say("SET only 1");
    client.say("SCAN 0 COUNT 100");
    let Value::Array(replies) = client.say("EXEC") else { panic!("no transaction") };
    let (cursor, found) = step(replies[3].clone());
    assert_eq!(cursor, "0");
    assert_each_once(found, (2..21).map(|n| format!("key:{n}")));
    assert_eq!(step(replies[6].clone()), ("0".to_owned(), vec!["only".to_owned()]));
}

#[test]
fn members_that_stay_are_shown_once_however_many_come_and_go() {
    let mut client = Client::new();
    for n in 0..500 {
        client.say(&format!("SADD s stays:{n} goes:{n}"));
    }
    let mut round = 0;
    let all = all_from(
        &mut client,
        "0",
        |at| format!("SSCAN s {at} COUNT 7"),
        |client| {
            client.say(&format!("SREM s goes:{round}"));
            client.say(&format!("SADD s comes:{round}"));
            round += 1;
        },
    );
    let stayed = all.into_iter().filter(|member| member.starts_with("stays")).collect();
    assert_each_once(stayed, (0..500).map(|n| format!("stays:{n}")));
}

#[test]
fn fields_are_scanned_with_and_without_their_values() {
    let mut client = Client::new();
    for n in 0..300 {
        client.say(&format!("HSET h f{n} v{n}"));
    }
    let all = all_from(&mut client, "0", |at| format!("HSCAN h {at} COUNT 9"), |_| ());
    assert_eq!(all.len(), 600);
    for pair in all.chunks(2) {
        assert_eq!(pair[0][1..], pair[1][1..]);
    }
    let names = all_from(&mut client, "0", |at| format!("HSCAN h {at} NOVALUES"), |_| ());
    assert_each_once(names, (0..300).map(|n| format!("f{n}")));
    let some = all_from(&mut client, "0", |at| format!("HSCAN h {at} MATCH f2?"), |_| ());
    assert_eq!(some.len(), 20);
}

#[test]
fn sorted_members_that_stay_are_shown_once_with_their_scores() {
    let mut client = Client::new();
    for n in 0..300 {
        client.say(&format!("ZADD z {n} stays:{n} {n} goes:{n}"));
    }
    let mut round = 0;
    let all = all_from(
        &mut client,
        "0",
        |at| format!("ZSCAN z {at} COUNT 4"),
        |client| {
            client.say(&format!("ZREM z goes:{}", 299 - round));
            client.say(&format!("ZADD z 1 comes:{round}"));
            round += 1;
        },
    );
    let stayed: Vec<_> = all.chunks(2).filter(|pair| pair[0].starts_with("stays")).collect();
    assert!(stayed.iter().all(|pair| pair[0] == format!("stays:{}", pair[1])));
    let stayed = stayed.into_iter().map(|pair| pair[0].clone()).collect();
    assert_each_once(stayed, (0..300).map(|n| format!("stays:{n}")));
    // A place that nobody knows any more is the beginning.
    let all =
        all_from(&mut client, &(1_u64 << 52).to_string(), |at| format!("ZSCAN z {at}"), |_| ());
    assert!((0..300).all(|n| all.contains(&format!("stays:{n}"))));
}

#[test]
fn a_small_set_or_hash_comes_in_one_step() {
    let mut client = Client::new();
    for n in 0..100 {
        client.say(&format!("SADD s {n}"));
        client.say(&format!("HSET h {n} 1"));
    }
    for (line, len) in [("SSCAN s 0", 100), ("HSCAN h 0 COUNT 1", 200)] {
        let (cursor, found) = step(client.say(line));
        assert_eq!((cursor.as_str(), found.len()), ("0", len), "{line}");
    }
}

#[test]
fn what_is_no_cursor_or_option_is_refused() {
    let mut client = Client::new();
    client.say("SET string 1");
    client.say("HSET h a 1");
    for line in ["SCAN x", "SCAN -", "SCAN 99999999999999999999", "SCAN 1.5", "SSCAN none x"] {
        assert_eq!(error(client.say(line)), "ERR invalid cursor", "{line}");
    }
    for line in ["SCAN 0 COUNT 0", "SCAN 0 WHAT", "HSCAN h 0 TYPE hash", "SCAN 0 MATCH"] {
        assert_eq!(error(client.say(line)), "ERR syntax error", "{line}");
    }
    assert!(error(client.say("SSCAN string 0")).starts_with("WRONGTYPE"));
    assert_eq!(step(client.say("SSCAN none 0")), ("0".to_owned(), vec![]));
    assert_eq!(client.say("EXISTS none"), int(0));
}
