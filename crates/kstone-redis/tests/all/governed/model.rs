//! Random commands, alone and together: what the policy heard adds up to what there is, and the
//! index of persons has every key of a person.

use kstone_core::env::{Random, SeededRandom};
use kstone_ports::keys::Value;

use crate::governed::Governed;

/// One random command.
fn command(random: &SeededRandom) -> String {
    let pick = |count: usize| (random.next_u64() % count as u64) as usize;
    let key = || {
        let prefixes =
            ["of:ann:", "of:bob:", "hour:", "sliding:", "three:", "no:", "number:", "k:"];
        format!("{}{}", prefixes[pick(prefixes.len())], pick(3))
    };
    let (a, b, n, m) = (key(), key(), pick(6), pick(30) + 1);
    match pick(44) {
        0..3 => format!("SET {a} {n}"),
        3 => format!("SET {a} {n} PX {m}"),
        4 => format!("MSET {a} {n} {b} {n}"),
        5 => format!("INCR {a}"),
        6 => format!("APPEND {a} {n}"),
        7 => format!("DEL {a} {b}"),
        8 => format!("PEXPIRE {a} {m}"),
        9 => format!("PERSIST {a}"),
        10 => format!("RENAME {a} {b}"),
        11 => format!("COPY {a} {b} REPLACE"),
        12 => format!("COPY {a} {b} DB {} REPLACE", pick(3)),
        13 => format!("MOVE {a} {}", pick(3)),
        14..17 => format!("HSET {a} f{n} v{m}"),
        17 => format!("HDEL {a} f{n}"),
        18 => format!("HPEXPIRE {a} {m} FIELDS 1 f{n}"),
        19 => format!("HINCRBY {a} f{n} 1"),
        20 => format!("RPUSH {a} {n} {m}"),
        21 => format!("LPUSH {a} {n} {m}"),
        22 => format!("LPOP {a} {n}"),
        23 => format!("LREM {a} 0 {n}"),
        24 => format!("LMOVE {a} {b} LEFT RIGHT"),
        25 => format!("LTRIM {a} 0 {n}"),
        26..28 => format!("SADD {a} {n} {m}"),
        28 => format!("SREM {a} {n}"),
        29 => format!("SPOP {a} {n}"),
        30 => format!("SUNIONSTORE {a} {b}"),
        31..33 => format!("ZADD {a} {n} m{m}"),
        33 => format!("ZPOPMIN {a} {n}"),
        34 => format!("ZUNIONSTORE {a} 1 {b}"),
        35..37 => format!("XADD {a} * f {n}"),
        37 => format!("XTRIM {a} MAXLEN {n}"),
        38 => format!("SORT {b} ALPHA STORE {a}"),
        39 => format!("GET {a}"),
        40 => format!("SELECT {}", pick(3)),
        41 if n == 0 => "FLUSHDB".to_owned(),
        42 => format!("SWAPDB {} {}", pick(3), pick(3)),
        _ => format!("SETRANGE {a} {n} x"),
    }
}

fn run(seed: u64) {
    let random = SeededRandom::new(seed);
    let mut governed = Governed::new();
    for round in 0..60 {
        let commands: Vec<_> = (0..random.next_u64() % 8 + 1).map(|_| command(&random)).collect();
        match random.next_u64() % 3 {
            0 => commands.iter().for_each(|line| drop(governed.say(line))),
            1 => {
                governed.do_("MULTI");
                commands.iter().for_each(|line| drop(governed.do_(line)));
                assert!(matches!(governed.say("EXEC"), Value::Array(_)));
            }
            _ => {
                let calls = commands.iter().map(|line| {
                    let words = line.split(' ').map(|word| format!("'{word}'"));
                    format!("redis.pcall({})\n", words.collect::<Vec<_>>().join(", "))
                });
                let script = calls.collect::<String>();
                let reply = governed.client.call(&["EVAL", &script, "0"]);
                assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
            }
        }
        governed.clock.advance(random.next_u64() % 20);
        governed.database.run_background().unwrap();
        let there = governed.look();
        let counted = governed.rules.totals();
        assert_eq!(counted, there, "seed {seed}, round {round}: {commands:#?}");
    }
    let index = governed.index();
    for db in 0..3 {
        governed.do_(&format!("SELECT {db}"));
        for person in ["ann", "bob"] {
            let Value::Array(keys) = governed.do_(&format!("KEYS of:{person}:*")) else {
                panic!("no keys")
            };
            for key in keys {
                let Value::Bulk(key) = key else { panic!("no key") };
                let place = format!("r{db}|{}", String::from_utf8(key).unwrap());
                assert!(index.contains(&(format!("subject#{person}"), place)), "seed {seed}");
            }
        }
    }
}

#[test]
fn what_the_policy_heard_adds_up_also_when_many_write_at_once() {
    let mut governed = Governed::new();
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            let mut client = governed.client.another();
            std::thread::spawn(move || {
                let random = SeededRandom::new(seed);
                for _ in 0..800 {
                    client.say(&command(&random));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    governed.clock.advance(100);
    governed.database.run_background().unwrap();
    let there = governed.look();
    assert_eq!(governed.rules.totals(), there);
}

#[test]
fn what_the_policy_heard_adds_up_to_what_there_is() {
    (0..40).for_each(run);
}
