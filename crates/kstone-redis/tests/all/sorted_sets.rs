//! Sorted sets, as clients see them; from records and from memory alike.

use std::collections::BTreeMap;

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone_ports::keys::Value;

fn double(number: f64) -> Value {
    Value::Double(number)
}

/// Members with scores, as a client of the older protocol gets them.
fn scored(members: &[(&str, f64)]) -> Value {
    Value::Array(members.iter().flat_map(|(name, score)| [bulk(name), double(*score)]).collect())
}

#[test]
fn members_come_in_the_order_of_scores_and_then_of_names() {
    let mut client = Client::new();
    assert_eq!(client.say("ZADD z 2 b 1 c 2 a -inf d"), int(4));
    assert_eq!(client.say("ZRANGE z 0 -1"), bulks(&["d", "c", "a", "b"]));
    assert_eq!(client.say("ZRANGE z 0 1 REV"), bulks(&["b", "a"]));
    assert_eq!(client.say("ZADD z CH 5 c 2 b 7 e"), int(2));
    assert_eq!(client.say("ZRANGEBYSCORE z (2 +inf WITHSCORES"), scored(&[("c", 5.0), ("e", 7.0)]));
    assert_eq!(client.say("ZRANGE z +inf 2 BYSCORE REV LIMIT 1 2"), bulks(&["c", "b"]));
    assert!(error(client.say("ZRANGE z 0 -1 LIMIT 0 1")).contains("LIMIT is only supported"));
    assert_eq!(client.say("ZCARD z"), int(5));
    assert_eq!(client.say("TYPE z"), Value::Simple("zset".into()));
}

#[test]
fn what_may_not_be_added_is_not() {
    let mut client = Client::new();
    assert_eq!(client.say("ZADD z XX 1 a"), int(0));
    assert_eq!(client.say("EXISTS z"), int(0));
    assert_eq!(client.say("ZADD z 5 a"), int(1));
    assert_eq!(client.say("ZADD z NX 6 a 1 b"), int(1));
    assert_eq!(client.say("ZADD z GT CH 4 a 2 b"), int(1));
    assert_eq!(client.say("ZADD z LT INCR 1 a"), Value::Null);
    assert_eq!(
        client.say("ZMSCORE z a b c"),
        Value::Array(vec![double(5.0), double(2.0), Value::Null])
    );
    assert_eq!(client.say("ZADD z inf a"), int(0));
    assert!(error(client.say("ZINCRBY z -inf a")).contains("not a number (NaN)"));
    assert!(error(client.say("ZADD z nan a")).contains("not a valid float"));
    assert!(error(client.say("ZADD z 1 a 2")).contains("syntax error"));
    let long = "m".repeat(70_000);
    assert!(error(client.call(&["ZADD", "z", "1", &long])).contains("at most"));
    assert_eq!(client.say("ZCARD z"), int(2));
}

#[test]
fn minus_zero_is_kept_but_is_no_other_score() {
    let mut client = Client::new();
    assert_eq!(client.say("ZADD z -0 b 0 a 0 c"), int(3));
    let expected = scored(&[("a", 0.0), ("b", -0.0), ("c", 0.0)]);
    for _ in 0..4 {
        let shown = client.say("ZRANGE z 0 -1 WITHSCORES");
        assert_eq!(format!("{shown:?}"), format!("{expected:?}"));
    }
    assert_eq!(client.say("ZCOUNT z 0 0"), int(3));
    assert_eq!(client.say("ZCOUNT z (0 1"), int(0));
}

#[test]
fn a_set_without_members_is_gone() {
    let mut client = Client::new();
    client.say("ZADD z 1 a 2 b 3 c");
    assert_eq!(client.say("ZREM z a x"), int(1));
    assert_eq!(client.say("ZREMRANGEBYRANK z 0 -1"), int(2));
    assert_eq!(client.say("EXISTS z"), int(0));
    client.say("ZADD z 1 a");
    assert_eq!(client.say("ZPOPMIN z"), scored(&[("a", 1.0)]));
    assert_eq!(client.say("ZPOPMIN z"), Value::Array(vec![]));
    assert_eq!(client.say("DBSIZE"), int(0));
    assert_eq!(client.say("LPUSH z x"), int(1));
    assert!(error(client.say("ZADD z 1 a")).starts_with("WRONGTYPE"));
}

#[test]
fn names_are_ranges_too() {
    let mut client = Client::new();
    client.say("ZADD z 0 a 0 b 0 c 0 d");
    for _ in 0..4 {
        assert_eq!(client.say("ZRANGE z [b (d BYLEX"), bulks(&["b", "c"]));
        assert_eq!(client.say("ZREVRANGEBYLEX z + (b LIMIT 1 5"), bulks(&["c"]));
        assert_eq!(client.say("ZLEXCOUNT z - +"), int(4));
        assert_eq!(client.say("ZLEXCOUNT z + -"), int(0));
    }
    assert_eq!(client.say("ZREMRANGEBYLEX z - [b"), int(2));
    assert_eq!(client.say("ZRANGE z 0 -1"), bulks(&["c", "d"]));
}

#[test]
fn sets_are_put_together_with_weights() {
    let mut client = Client::new();
    client.say("ZADD a 1 x 2 y 3 z");
    client.say("ZADD b 10 y 20 z 30 w");
    client.say("SADD s y");
    assert_eq!(
        client.say("ZUNION 2 a b WEIGHTS 2 1 WITHSCORES"),
        scored(&[("x", 2.0), ("y", 14.0), ("z", 26.0), ("w", 30.0)])
    );
    assert_eq!(client.say("ZINTER 3 a b s AGGREGATE MIN WITHSCORES"), scored(&[("y", 1.0)]));
    assert_eq!(client.say("ZDIFF 2 a s"), bulks(&["x", "z"]));
    assert_eq!(client.say("ZINTERCARD 2 a b LIMIT 1"), int(1));
    assert_eq!(client.say("ZDIFFSTORE a 2 a b"), int(1));
    assert_eq!(client.say("ZRANGE a 0 -1"), bulks(&["x"]));
    assert_eq!(client.say("ZINTERSTORE a 2 a nothing"), int(0));
    assert_eq!(client.say("EXISTS a"), int(0));
    assert!(error(client.say("ZUNION 0 a")).contains("at least 1 input key"));
    assert_eq!(client.say("ZRANGESTORE c b 1 2"), int(2));
    assert_eq!(client.say("ZRANGE c 0 -1"), bulks(&["z", "w"]));
}

#[test]
fn random_members_are_members() {
    let mut client = Client::new();
    client.say("ZADD z 1 a 2 b 3 c 4 d 5 e");
    let Value::Array(all) = client.say("ZRANDMEMBER z 10") else { panic!("no list") };
    assert_eq!(all.len(), 5);
    let Value::Array(three) = client.say("ZRANDMEMBER z 3") else { panic!("no list") };
    assert!(three.iter().enumerate().all(|(at, one)| !three[at + 1..].contains(one)));
    let Value::Array(many) = client.say("ZRANDMEMBER z -200 WITHSCORES") else { panic!("no list") };
    assert_eq!(many.len(), 400);
    assert!(all.iter().all(|member| many.contains(member)), "each of five in 200 draws");
    assert_eq!(client.say("ZRANDMEMBER nothing"), Value::Null);
}

#[test]
fn who_waits_gets_the_lowest_member_once() {
    let client = Client::new();
    let mut waiting = client.another();
    let mut writing = client.another();
    let waiter = std::thread::spawn(move || waiting.say("BZPOPMIN a z 0"));
    while client.redis.blocked_clients() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(writing.say("ZADD z 2 b 1 a"), int(2));
    assert_eq!(writing.say("ZCARD z"), int(1), "served before the writer goes on");
    let expected = Value::Array(vec![bulk("z"), bulk("a"), double(1.0)]);
    assert_eq!(waiter.join().unwrap(), expected);
    let mut late = client.another();
    assert_eq!(late.say("BZPOPMAX nothing 0.01"), Value::NullArray);
    assert!(error(late.say("BZMPOP -1 1 z MIN")).contains("timeout is negative"));
}

#[test]
fn what_was_taken_from_the_ends_does_not_hide_what_comes_after() {
    let mut client = Client::new();
    // Large enough to be read from its records all the time.
    let mut add = vec!["ZADD".to_owned(), "z".to_owned()];
    for nth in 0..2000 {
        add.extend([nth.to_string(), format!("m{nth}")]);
    }
    assert_eq!(client.call(&add), int(2000));
    let first = |client: &mut Client| client.say("ZRANGE z 0 0");
    let last = |client: &mut Client| client.say("ZRANGE z 0 0 REV");
    client.say("ZPOPMIN z 5");
    assert_eq!(first(&mut client), bulks(&["m5"]));
    client.say("ZADD z 2 back");
    assert_eq!(client.say("ZPOPMIN z"), scored(&[("back", 2.0)]));
    client.say("ZPOPMAX z 5");
    assert_eq!(last(&mut client), bulks(&["m1994"]));
    client.say("ZADD z 5000 high");
    assert_eq!(client.say("ZPOPMAX z 2"), scored(&[("high", 5000.0), ("m1994", 1994.0)]));
    assert_eq!(client.say("ZREMRANGEBYSCORE z -inf 100"), int(96));
    client.say("ZADD z XX -7 m500");
    assert_eq!(first(&mut client), bulks(&["m500"]));
    assert_eq!(client.say("ZRANK z m101"), int(1));
    client.say("ZINCRBY z 9000 m500");
    assert_eq!(last(&mut client), bulks(&["m500"]));
    assert_eq!(client.say("ZREMRANGEBYRANK z 0 1889"), int(1890));
    assert_eq!(client.say("ZRANGEBYSCORE z -inf +inf"), bulks(&["m1992", "m1993", "m500"]));
    assert_eq!(client.say("ZCOUNT z -inf 1992"), int(1));
    assert_eq!(client.say("RENAME z y"), ok());
    client.say("ZADD y -1 low");
    assert_eq!(
        client.say("ZPOPMIN y 9"),
        scored(&[("low", -1.0), ("m1992", 1992.0), ("m1993", 1993.0), ("m500", 8993.0)])
    );
}

#[test]
fn a_large_set_is_emptied_at_once_and_begun_anew() {
    let mut client = Client::new();
    let mut add = vec!["ZADD".to_owned(), "z".to_owned()];
    for nth in 0..100 {
        add.extend([nth.to_string(), format!("m{nth}")]);
    }
    for empty in ["ZPOPMIN z 1000", "ZREMRANGEBYSCORE z -inf inf", "ZREMRANGEBYRANK z 0 -1"] {
        assert_eq!(client.call(&add), int(100));
        client.say("MULTI");
        client.say(empty);
        client.say("ZADD z 7 m7");
        client.say("ZRANGE z 0 -1");
        let Value::Array(replies) = client.say("EXEC") else { panic!("no list") };
        assert_eq!(replies.last(), Some(&bulks(&["m7"])), "{empty}");
        assert_eq!(client.say("ZCARD z"), int(1));
        assert_eq!(client.say("ZRANK z m7"), int(0));
        assert_eq!(client.say("ZSCORE z m8"), Value::Null);
        client.say("DEL z");
    }
}

/// Ranks and counts from a plain model, whatever was done in between, by any client.
#[test]
fn ranks_never_tell_of_what_is_no_more() {
    let mut client = Client::new();
    let mut model: BTreeMap<String, i64> = BTreeMap::new();
    let mut state = 7u64;
    let mut next = move |end: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % end
    };
    for round in 0..3000 {
        let (member, score) = (format!("m{}", next(200)), next(50) as i64);
        match next(40) {
            0 => {
                client.say("DEL z");
                model.clear();
            }
            1 => {
                // Inside a transaction the form is in use while the key is replaced.
                client.say("MULTI");
                client.say("ZRANK z m1");
                client.say("SET z x");
                client.say("DEL z");
                client.say("ZADD z 1 m1 2 m2");
                client.say("ZRANK z m2");
                let Value::Array(replies) = client.say("EXEC") else { panic!("no list") };
                assert_eq!(replies.last(), Some(&int(1)));
                model = [("m1".to_owned(), 1), ("m2".to_owned(), 2)].into();
            }
            2 => {
                client.say("RENAME z other");
                client.say("ZADD z 1 gone");
                client.say("ZRANK z gone");
                if !model.is_empty() {
                    assert_eq!(client.say("RENAME other z"), ok());
                } else {
                    model.insert("gone".to_owned(), 1);
                }
            }
            3 => {
                client.say("MULTI");
                client.say(&format!("ZADD z {score} {member}"));
                client.say("ZRANK z m1");
                client.say(&format!("ZREM z {member}"));
                client.say("EXEC");
                model.remove(&member);
            }
            4..8 => {
                if let Value::Array(popped) = client.say("ZPOPMIN z 3") {
                    for name in popped.iter().step_by(2) {
                        let Value::Bulk(name) = name else { panic!("no name: {name:?}") };
                        model.remove(std::str::from_utf8(name).unwrap());
                    }
                }
            }
            8..12 => {
                client.say(&format!("ZREM z {member}"));
                model.remove(&member);
            }
            _ => {
                client.say(&format!("ZADD z {score} {member}"));
                model.insert(member.clone(), score);
            }
        }
        let mut sorted: Vec<(i64, &str)> =
            model.iter().map(|(name, score)| (*score, name.as_str())).collect();
        sorted.sort();
        let rank = sorted.iter().position(|(_, name)| *name == member);
        let expected = rank.map_or(Value::Null, |rank| int(rank as i64));
        assert_eq!(client.say(&format!("ZRANK z {member}")), expected, "round {round}");
        let count = sorted.iter().filter(|(have, _)| *have >= score).count();
        assert_eq!(client.say(&format!("ZCOUNT z {score} inf")), int(count as i64));
        if round % 10 == 0 {
            let names: Vec<&str> = sorted.iter().map(|(_, name)| *name).collect();
            assert_eq!(client.say("ZRANGE z 0 -1"), bulks(&names), "round {round}");
            let last: Vec<&str> = names.iter().rev().take(4).rev().copied().collect();
            assert_eq!(client.say("ZRANGE z -4 -1"), bulks(&last));
        }
    }
}

#[test]
fn another_database_and_a_flush_show_their_own_ranks() {
    let mut client = Client::new();
    client.say("ZADD z 1 a 2 b 3 c");
    for _ in 0..4 {
        assert_eq!(client.say("ZREVRANK z a"), int(2));
    }
    client.say("SELECT 1");
    assert_eq!(client.say("ZREVRANK z a"), Value::Null);
    client.say("ZADD z 1 a");
    assert_eq!(client.say("ZREVRANK z a"), int(0));
    client.say("SWAPDB 0 1");
    assert_eq!(client.say("ZREVRANK z a"), int(2));
    client.say("FLUSHDB");
    client.say("ZADD z 9 a 8 x");
    assert_eq!(client.say("ZRANK z a"), int(1));
    client.say("PEXPIREAT z 1");
    assert_eq!(client.say("ZRANK z a"), Value::Null);
    client.say("ZADD z 1 a");
    assert_eq!(client.say("ZRANK z a"), int(0));
}
