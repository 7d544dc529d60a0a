//! Lists, as their commands show them.

use std::collections::VecDeque;

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone_ports::keys::Value;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn filled(elements: &str) -> Client {
    let mut client = Client::new();
    client.say(&format!("RPUSH l {elements}"));
    client
}

fn all(client: &mut Client) -> String {
    let Value::Array(elements) = client.say("LRANGE l 0 -1") else { panic!("no list") };
    let texts: Vec<String> = elements
        .into_iter()
        .map(|element| match element {
            Value::Bulk(bytes) => String::from_utf8(bytes).unwrap(),
            other => panic!("not an element: {other:?}"),
        })
        .collect();
    texts.join(" ")
}

#[test]
fn both_ends_take_and_give() {
    let mut client = Client::new();
    assert_eq!(client.say("RPUSH l c d"), int(2));
    assert_eq!(client.say("LPUSH l b a"), int(4));
    assert_eq!(all(&mut client), "a b c d");
    assert_eq!(client.say("LPOP l"), bulk("a"));
    assert_eq!(client.say("RPOP l"), bulk("d"));
    assert_eq!(client.say("LLEN l"), int(2));
    assert_eq!(client.say("RPOP l 5"), bulks(&["c", "b"]));
    assert_eq!(client.say("EXISTS l"), int(0));
    assert_eq!(client.say("DBSIZE"), int(0));
    assert_eq!(client.say("LPOP l"), Value::Null);
    assert_eq!(client.say("LPOP l 1"), Value::NullArray);
}

#[test]
fn a_count_of_zero_pops_nothing_and_a_negative_one_is_refused() {
    let mut client = filled("a");
    assert_eq!(client.say("LPOP l 0"), bulks(&[]));
    assert_eq!(error(client.say("LPOP l -1")), "ERR value is out of range, must be positive");
    let arity = "ERR wrong number of arguments for 'lpop' command";
    assert_eq!(error(client.say("LPOP l 1 1")), arity);
    assert_eq!(all(&mut client), "a");
}

#[test]
fn pushing_only_to_what_is_there_makes_no_list() {
    let mut client = Client::new();
    assert_eq!(client.say("LPUSHX l a"), int(0));
    assert_eq!(client.say("EXISTS l"), int(0));
    client.say("RPUSH l b");
    assert_eq!(client.say("LPUSHX l a"), int(2));
    assert_eq!(client.say("RPUSHX l c"), int(3));
    assert_eq!(all(&mut client), "a b c");
}

#[test]
fn indices_count_from_either_end() {
    let mut client = filled("a b c");
    for (index, element) in [("0", "a"), ("2", "c"), ("-1", "c"), ("-3", "a")] {
        assert_eq!(client.say(&format!("LINDEX l {index}")), bulk(element));
    }
    assert_eq!(client.say("LINDEX l 3"), Value::Null);
    assert_eq!(client.say("LINDEX l -4"), Value::Null);
    assert_eq!(client.say("LINDEX none 0"), Value::Null);
    assert_eq!(client.say("LRANGE l -100 1"), bulks(&["a", "b"]));
    assert_eq!(client.say("LRANGE l 1 9223372036854775807"), bulks(&["b", "c"]));
    assert_eq!(client.say("LRANGE l 2 1"), bulks(&[]));
    assert_eq!(client.say("LRANGE l 0 -9223372036854775808"), bulks(&[]));
    assert_eq!(client.say("LSET l -1 z"), ok());
    assert_eq!(all(&mut client), "a b z");
    assert_eq!(error(client.say("LSET l 3 z")), "ERR index out of range");
    assert_eq!(error(client.say("LSET none 0 z")), "ERR no such key");
}

#[test]
fn another_type_is_refused_by_every_command() {
    let mut client = Client::new();
    client.say("SET s 1");
    client.say("RPUSH l a");
    for line in [
        "LPUSH s a",
        "RPUSHX s a",
        "LPOP s",
        "RPOP s 2",
        "LLEN s",
        "LRANGE s 0 1",
        "LINDEX s 0",
        "LSET s 0 a",
        "LINSERT s BEFORE a b",
        "LREM s 0 a",
        "LTRIM s 0 1",
        "LPOS s a",
        "LMOVE s l LEFT LEFT",
        "LMOVE l s LEFT LEFT",
        "LMPOP 2 s l LEFT",
        "BLPOP s 1",
        "BLMOVE l s LEFT LEFT 1",
        "BLMPOP 1 1 s LEFT",
    ] {
        assert_eq!(error(client.say(line)), WRONG_TYPE, "{line}");
    }
    assert_eq!(all(&mut client), "a");
}

#[test]
fn inserting_finds_the_first_pivot() {
    let mut client = filled("a b c b");
    assert_eq!(client.say("LINSERT l BEFORE b x"), int(5));
    assert_eq!(client.say("LINSERT l AFTER c y"), int(6));
    assert_eq!(all(&mut client), "a x b c y b");
    assert_eq!(client.say("LINSERT l AFTER none y"), int(-1));
    assert_eq!(client.say("LINSERT none AFTER a y"), int(0));
    assert_eq!(error(client.say("LINSERT l BESIDE a y")), "ERR syntax error");
}

#[test]
fn removing_counts_from_the_end_it_is_told() {
    let mut client = filled("x a x b x c x");
    assert_eq!(client.say("LREM l 1 x"), int(1));
    assert_eq!(all(&mut client), "a x b x c x");
    assert_eq!(client.say("LREM l -2 x"), int(2));
    assert_eq!(all(&mut client), "a x b c");
    assert_eq!(client.say("LREM l 0 none"), int(0));
    assert_eq!(client.say("LREM l 0 x"), int(1));
    assert_eq!(all(&mut client), "a b c");
    for element in ["a", "b", "c"] {
        assert_eq!(client.say(&format!("LREM l -9223372036854775808 {element}")), int(1));
    }
    assert_eq!(client.say("EXISTS l"), int(0));
}

#[test]
fn trimming_keeps_a_range_and_removes_an_empty_list() {
    let mut client = filled("a b c d e");
    assert_eq!(client.say("LTRIM l 1 -2"), ok());
    assert_eq!(all(&mut client), "b c d");
    assert_eq!(client.say("LTRIM l 2 1"), ok());
    assert_eq!(client.say("EXISTS l"), int(0));
    assert_eq!(client.say("LTRIM l 0 0"), ok());
}

#[test]
fn positions_of_matches_are_found_from_either_end() {
    let mut client = filled("a b c 1 2 3 c c");
    assert_eq!(client.say("LPOS l c"), int(2));
    assert_eq!(client.say("LPOS l none"), Value::Null);
    assert_eq!(client.say("LPOS l c RANK -1"), int(7));
    assert_eq!(client.say("LPOS l c RANK 4"), Value::Null);
    let positions = |numbers: &[i64]| Value::Array(numbers.iter().copied().map(int).collect());
    assert_eq!(client.say("LPOS l c COUNT 0"), positions(&[2, 6, 7]));
    assert_eq!(client.say("LPOS l c COUNT 2 RANK -1"), positions(&[7, 6]));
    assert_eq!(client.say("LPOS l c COUNT 0 MAXLEN 7"), positions(&[2, 6]));
    assert_eq!(client.say("LPOS l c COUNT 0 MAXLEN 1 RANK -1"), positions(&[7]));
    assert_eq!(client.say("LPOS none c COUNT 0"), positions(&[]));
    assert!(error(client.say("LPOS l c RANK 0")).starts_with("ERR RANK can't be zero"));
    assert_eq!(error(client.say("LPOS l c COUNT -1")), "ERR COUNT can't be negative");
    assert_eq!(error(client.say("LPOS l c RANK")), "ERR syntax error");
}

#[test]
fn an_element_moves_between_lists_and_around_in_one() {
    let mut client = filled("a b c");
    assert_eq!(client.say("LMOVE l m LEFT RIGHT"), bulk("a"));
    assert_eq!(client.say("RPOPLPUSH l m"), bulk("c"));
    assert_eq!(client.say("LRANGE m 0 -1"), bulks(&["c", "a"]));
    assert_eq!(client.say("LMOVE m m LEFT RIGHT"), bulk("c"));
    assert_eq!(client.say("LRANGE m 0 -1"), bulks(&["a", "c"]));
    assert_eq!(client.say("LMOVE l l LEFT RIGHT"), bulk("b"));
    assert_eq!(client.say("LMOVE l m RIGHT LEFT"), bulk("b"));
    assert_eq!(client.say("EXISTS l"), int(0));
    assert_eq!(client.say("LMOVE l m RIGHT LEFT"), Value::Null);
    assert_eq!(error(client.say("LMOVE l m UP LEFT")), "ERR syntax error");
}

#[test]
fn several_lists_are_popped_from_the_first_that_is_there() {
    let mut client = filled("a b c");
    let popped = |elements: &[&str]| Value::Array(vec![bulk("l"), bulks(elements)]);
    assert_eq!(client.say("LMPOP 2 none l LEFT"), popped(&["a"]));
    assert_eq!(client.say("LMPOP 2 none l RIGHT COUNT 10"), popped(&["c", "b"]));
    assert_eq!(client.say("LMPOP 2 none l RIGHT COUNT 10"), Value::NullArray);
    assert_eq!(error(client.say("LMPOP 0 l LEFT")), "ERR numkeys should be greater than 0");
    assert_eq!(error(client.say("LMPOP 2 l LEFT")), "ERR syntax error");
    assert_eq!(error(client.say("LMPOP 1 l LEFT COUNT 0")), "ERR count should be greater than 0");
    assert_eq!(error(client.say("LMPOP 1 l LEFT COUNT 1 COUNT 1")), "ERR syntax error");
}

#[test]
fn elements_may_be_any_bytes_of_any_length_up_to_the_limit() {
    let mut client = Client::new();
    let long = vec![b'x'; 1 << 20];
    for element in [&b""[..], b"\0\r\n\xff", &long] {
        client.call(&[b"RPUSH", &b"l"[..], element]);
        assert_eq!(client.call(&[&b"LINDEX"[..], b"l", b"-1"]), bulk(element));
    }
    let too_long = vec![b'x'; (16 << 20) + 1];
    let refused = client.call(&[b"RPUSH", &b"l"[..], &too_long]);
    assert!(error(refused).starts_with("ERR element exceeds maximum allowed size"));
    assert_eq!(client.say("LLEN l"), int(3));
}

#[test]
fn the_time_to_live_outlasts_every_change() {
    let mut client = filled("a b c d");
    client.say("PEXPIREAT l 99999999999999");
    for line in ["LPUSH l x", "LSET l 0 y", "LINSERT l AFTER a z", "LREM l 0 a", "LTRIM l 1 -1"] {
        client.say(line);
        assert_eq!(client.say("PEXPIRETIME l"), int(99_999_999_999_999), "{line}");
    }
}

/// Random changes, here and to a plain queue, must leave the same elements.
#[test]
fn random_changes_leave_what_they_leave_in_memory() {
    let mut client = Client::new();
    let mut model: VecDeque<String> = VecDeque::new();
    let mut state = 7u64;
    let mut random = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for step in 0..4000 {
        let element = random(8).to_string();
        match random(10) {
            0 | 1 => {
                client.say(&format!("LPUSH l {element}"));
                model.push_front(element);
            }
            2 | 3 => {
                client.say(&format!("RPUSH l {element}"));
                model.push_back(element);
            }
            4 => {
                let side = if random(2) == 0 { "BEFORE" } else { "AFTER" };
                let pivot = random(8).to_string();
                client.say(&format!("LINSERT l {side} {pivot} {element}"));
                if let Some(at) = model.iter().position(|have| *have == pivot) {
                    model.insert(at + usize::from(side == "AFTER"), element);
                }
            }
            5 => {
                let count = random(5) as i64 - 2;
                client.say(&format!("LREM l {count} {element}"));
                let mut left = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
                let mut stays = |have: &String| {
                    let goes = *have == element && left > 0;
                    left -= usize::from(goes);
                    !goes
                };
                if count < 0 {
                    let kept: Vec<_> = model.drain(..).rev().filter(&mut stays).collect();
                    model = kept.into_iter().rev().collect();
                } else {
                    model.retain(stays);
                }
            }
            6 => {
                let front = random(2) == 0;
                let count = random(4) as usize + 1;
                client.say(&format!("{} l {count}", if front { "LPOP" } else { "RPOP" }));
                let count = count.min(model.len());
                let range = if front { 0..count } else { model.len() - count..model.len() };
                model.drain(range);
            }
            7 if random(20) == 0 => {
                let (start, stop) = (random(30) as usize, random(200) as usize);
                client.say(&format!("LTRIM l {start} {stop}"));
                model.truncate(stop + 1);
                model.drain(..start.min(model.len()));
            }
            8 => {
                client.say("LMOVE l l LEFT RIGHT");
                if let Some(first) = model.pop_front() {
                    model.push_back(first);
                }
            }
            _ => {
                let index = random(model.len().max(1) as u64) as usize;
                client.say(&format!("LSET l {index} {element}"));
                if let Some(have) = model.get_mut(index) {
                    *have = element;
                }
            }
        }
        // The same stretch again and again: it is kept in memory, and has to follow every change.
        let newest: Vec<&str> = model.iter().take(5).map(String::as_str).collect();
        assert_eq!(client.say("LRANGE l 0 4"), bulks(&newest), "step {step}");
        if step % 16 == 0 {
            assert_eq!(client.say("LLEN l"), int(model.len() as i64), "step {step}");
            assert_eq!(all(&mut client), Vec::from(model.clone()).join(" "), "step {step}");
        }
    }
}

#[test]
fn large_cuts_leave_the_rest_as_it_was() {
    let elements: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    let cut = |line: &str| {
        let mut client = filled(&elements.join(" "));
        client.say(line);
        let left = all(&mut client);
        client.say("LPUSH l front");
        client.say("RPUSH l back");
        assert_eq!(all(&mut client), format!("front {left} back"), "{line}");
        left
    };
    assert_eq!(cut("LTRIM l 10 12"), "10 11 12");
    assert_eq!(cut("LTRIM l 3 -4"), elements[3..497].join(" "));
    assert_eq!(cut("LPOP l 400"), elements[400..].join(" "));
    assert_eq!(cut("RPOP l 30"), elements[..470].join(" "));
}

#[test]
fn a_long_list_is_drained_in_order_from_both_ends() {
    let mut client = Client::new();
    let mut model: VecDeque<String> = VecDeque::new();
    for n in 0..1500 {
        client.say(&format!("RPUSH l {n}"));
        model.push_back(n.to_string());
    }
    for n in 0.. {
        let front = (n / 400) % 2 == 0;
        let (line, wanted) = match front {
            true => ("LPOP l", model.pop_front()),
            false => ("RPOP l", model.pop_back()),
        };
        let Some(wanted) = wanted else { break };
        assert_eq!(client.say(line), bulk(wanted));
        match n % 97 {
            13 => {
                client.say(&format!("LPUSH l front{n}"));
                model.push_front(format!("front{n}"));
            }
            29 => {
                client.say(&format!("RPUSH l back{n}"));
                model.push_back(format!("back{n}"));
            }
            53 if model.len() > 2 => {
                client.say(&format!("LSET l 1 other{n}"));
                model[1] = format!("other{n}");
            }
            71 if model.len() > 2 => {
                client.say("LTRIM l 1 -2");
                model.pop_front();
                model.pop_back();
            }
            _ => {}
        }
    }
    assert_eq!(client.say("EXISTS l"), int(0));
}
