//! Sets.

use std::collections::BTreeSet;

use crate::support::{Client, bulk, error, int};
use kstone_ports::keys::Value;

/// The members in a reply.
#[track_caller]
fn members(value: Value) -> BTreeSet<Vec<u8>> {
    let (Value::Set(items) | Value::Array(items)) = value else { panic!("no list: {value:?}") };
    let len = items.len();
    let members: BTreeSet<Vec<u8>> = items
        .into_iter()
        .map(|item| if let Value::Bulk(item) = item { item } else { panic!("{item:?}") })
        .collect();
    assert_eq!(members.len(), len, "a member came twice");
    members
}

fn set(words: &str) -> BTreeSet<Vec<u8>> {
    words.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
}

/// Adds `m0`, `m1`, ….
fn fill(client: &mut Client, key: &str, count: usize) {
    for start in (0..count).step_by(500) {
        let mut words = vec!["SADD".to_owned(), key.to_owned()];
        words.extend((start..count.min(start + 500)).map(|n| format!("m{n}")));
        client.call(&words);
    }
}

#[test]
fn members_are_added_once_and_removed() {
    let mut client = Client::new();
    assert_eq!(client.say("SADD s a b a"), int(2));
    assert_eq!(client.say("SADD s b c"), int(1));
    assert_eq!(client.say("SCARD s"), int(3));
    assert_eq!(client.say("SISMEMBER s a"), int(1));
    assert_eq!(client.say("SMISMEMBER s a x c"), Value::Array(vec![int(1), int(0), int(1)]));
    assert_eq!(members(client.say("SMEMBERS s")), set("a b c"));
    assert_eq!(client.say("SREM s a x b"), int(2));
    assert_eq!(client.say("SREM s c"), int(1));
    assert_eq!(client.say("EXISTS s"), int(0));
    client.say("SET string 1");
    assert!(error(client.say("SADD string a")).starts_with("WRONGTYPE"));
}

#[test]
fn members_may_be_long() {
    let mut client = Client::new();
    for len in [0, 4096, 4097, 2 << 20] {
        let member = vec![b'm'; len];
        assert_eq!(client.call(&[&b"SADD"[..], b"s", &member]), int(1), "{len}");
        assert_eq!(client.call(&[&b"SADD"[..], b"s", &member]), int(0), "{len}");
        assert_eq!(client.call(&[&b"SMOVE"[..], b"s", b"t", &member]), int(1), "{len}");
        assert_eq!(client.call(&[&b"SISMEMBER"[..], b"t", &member]), int(1), "{len}");
    }
    assert_eq!(client.say("EXISTS s"), int(0));
    let lens: BTreeSet<usize> = members(client.say("SMEMBERS t")).iter().map(Vec::len).collect();
    assert_eq!(lens, BTreeSet::from([0, 4096, 4097, 2 << 20]));
    assert!(error(client.call(&[&b"SADD"[..], b"s", &vec![0; 17 << 20]])).contains("too long"));
}

#[test]
fn a_member_moves_only_between_sets() {
    let mut client = Client::new();
    client.say("SADD a x y");
    client.say("SADD b y");
    client.say("SET string 1");
    assert_eq!(client.say("SMOVE a b z"), int(0));
    assert_eq!(client.say("SMOVE a a x"), int(1));
    assert_eq!(client.say("SMOVE a b x"), int(1));
    assert_eq!(client.say("SMOVE a b y"), int(1));
    assert_eq!(client.say("EXISTS a"), int(0));
    assert_eq!(members(client.say("SMEMBERS b")), set("x y"));
    assert_eq!(client.say("SMOVE none string x"), int(0));
    assert!(error(client.say("SMOVE b string x")).starts_with("WRONGTYPE"));
    assert_eq!(client.say("SCARD b"), int(2));
}

#[test]
fn sets_are_combined() {
    let mut client = Client::new();
    client.say("SADD a 1 2 3 4 5");
    client.say("SADD b 4 5 6");
    client.say("SADD c 5 7");
    assert_eq!(members(client.say("SINTER a b")), set("4 5"));
    assert_eq!(members(client.say("SINTER a a b c")), set("5"));
    assert_eq!(members(client.say("SINTER a none")), set(""));
    assert_eq!(members(client.say("SUNION b none c")), set("4 5 6 7"));
    assert_eq!(members(client.say("SDIFF a b c none")), set("1 2 3"));
    assert_eq!(members(client.say("SDIFF c a")), set("7"));
    assert_eq!(members(client.say("SDIFF a a")), set(""));
    assert_eq!(members(client.say("SDIFF none a")), set(""));
    assert_eq!(client.say("SINTERCARD 2 a b"), int(2));
    assert_eq!(client.say("SINTERCARD 2 a b LIMIT 1"), int(1));
    assert_eq!(client.say("SINTERCARD 2 a b LIMIT 0"), int(2));
    assert!(error(client.say("SINTERCARD 3 a b")).contains("Number of keys"));
    assert!(error(client.say("SINTERCARD 0 a b")).contains("greater than 0"));
    assert!(error(client.say("SINTERCARD 2 a b LIMIT -1")).contains("LIMIT can't be negative"));
}

#[test]
fn a_combination_is_stored_over_anything_even_over_its_own_source() {
    let mut client = Client::new();
    client.say("SADD a 1 2 3");
    client.say("SADD b 3 4");
    client.say("SET target text");
    assert_eq!(client.say("SUNIONSTORE target a b"), int(4));
    assert_eq!(members(client.say("SMEMBERS target")), set("1 2 3 4"));
    assert_eq!(client.say("SINTERSTORE a a b"), int(1));
    assert_eq!(members(client.say("SMEMBERS a")), set("3"));
    assert_eq!(client.say("SDIFFSTORE target a b"), int(0));
    assert_eq!(client.say("EXISTS target"), int(0));
    client.say("SET text 1");
    assert!(error(client.say("SUNIONSTORE a b text")).starts_with("WRONGTYPE"));
    assert_eq!(members(client.say("SMEMBERS a")), set("3"));
}

#[test]
fn popped_members_are_different_and_gone() {
    let mut client = Client::new();
    fill(&mut client, "s", 1000);
    let mut popped = BTreeSet::new();
    // Few of many, most of them, all and more.
    for wanted in [1, 20, 300, 500, 500] {
        let some = members(client.say(&format!("SPOP s {wanted}")));
        assert_eq!(some.len(), wanted.min(1000 - popped.len()));
        for member in some {
            assert_eq!(client.call(&[&b"SISMEMBER"[..], b"s", &member]), int(0));
            assert!(popped.insert(member));
        }
        assert_eq!(client.say("SCARD s"), int(1000 - popped.len() as i64));
    }
    assert_eq!(popped.len(), 1000);
    assert_eq!(client.say("EXISTS s"), int(0));
    client.say("SADD s only");
    assert_eq!(client.say("SPOP s"), bulk("only"));
    assert_eq!(client.say("SPOP s"), Value::Null);
    assert!(error(client.say("SPOP s -1")).contains("must be positive"));
}

#[test]
fn every_member_of_a_large_set_is_as_likely_as_any_other() {
    const MEMBERS: usize = 1000;
    const DRAWS: usize = 20_000;
    let mut client = Client::new();
    fill(&mut client, "s", MEMBERS);
    let mut counts = vec![0usize; MEMBERS];
    for _ in 0..DRAWS / 200 {
        let Value::Array(drawn) = client.say("SRANDMEMBER s -200") else { panic!("no list") };
        assert_eq!(drawn.len(), 200);
        for member in drawn {
            let Value::Bulk(member) = member else { panic!("{member:?}") };
            let n: usize = String::from_utf8_lossy(&member[1..]).parse().unwrap();
            counts[n] += 1;
        }
    }
    // The sum of squares is 999 on average with a deviation of 45: eight of them are no accident.
    let expected = (DRAWS / MEMBERS) as f64;
    let square = |count: usize| (count as f64 - expected).powi(2) / expected;
    let sum: f64 = counts.into_iter().map(square).sum();
    assert!(sum < 999.0 + 8.0 * 45.0, "{sum}");
}

#[test]
fn random_members_are_different_unless_the_count_is_negative() {
    let mut client = Client::new();
    fill(&mut client, "s", 400);
    for wanted in [1, 10, 200, 400, 1000] {
        assert_eq!(members(client.say(&format!("SRANDMEMBER s {wanted}"))).len(), wanted.min(400));
    }
    let Value::Array(drawn) = client.say("SRANDMEMBER s -1000") else { panic!("no list") };
    assert_eq!(drawn.len(), 1000);
    assert_eq!(client.say("SRANDMEMBER none"), Value::Null);
    assert_eq!(client.say("SRANDMEMBER none 2"), Value::Array(vec![]));
    assert!(error(client.say("SRANDMEMBER s -9223372036854775808")).contains("out of range"));
    assert!(error(client.say("SRANDMEMBER s -9223372036854775807")).contains("out of range"));
    assert_eq!(client.say("SCARD s"), int(400));
}
